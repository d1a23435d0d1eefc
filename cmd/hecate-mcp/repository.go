package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
	"github.com/hecate-mcp/hecate-mcp/internal/schema"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

// repoFlags say which repositories the tools may read and what their files
// can't say.
type repoFlags struct {
	repos             []string
	vars              []string
	schemaDirs        []string
	kubernetesVersion string
	liveCRDs, dryRun  bool
}

func (f *repoFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.repos, "repo", nil, "Flux repository that the tools may read, as PATH or NAME=PATH; repeatable")
	flags.StringArrayVar(&f.vars, "vars", nil, "value of a substitution variable that is not in the repository, as NAME=VALUE; repeatable")
	flags.StringArrayVar(&f.schemaDirs, "schema-dir", nil, "folder of further JSON schemas, advisory; repeatable")
	flags.StringVar(&f.kubernetesVersion, "kubernetes-version", "", "Kubernetes minor to validate against: "+strings.Join(schema.Versions(), ", ")+" (default: the newest)")
	flags.BoolVar(&f.liveCRDs, "live-crds", false, "validate against the CRDs of the cluster too (--kubeconfig, --context)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "ask the cluster's API server about every object when validating: a server-side dry run, which needs the right to patch")
}

// repositoryTimeout bounds a look at a repository in the shell, where nobody gives
// up after a minute and nothing is remembered for a second try.
const repositoryTimeout = 15 * time.Minute

// buildTimeout bounds one build in a worker.
const buildTimeout = 20 * time.Second

// open gives the environment its repositories and an engine, with --demo the
// demo's unless another is named; close stops the
// engine's workers and removes its private folder.
func (f *repoFlags) open(env *tools.Env, demo bool) (closing func(), err error) {
	closing = func() {}
	if len(f.repos) == 0 && !demo {
		return closing, nil
	}
	var demoDir string
	if len(f.repos) == 0 {
		if demoDir, err = os.MkdirTemp("", "hecate-mcp-demo-"); err != nil {
			return closing, runtimeError{fmt.Errorf("a folder for the demo's repository: %w", err)}
		}
		// Nobody misses what stays behind of a demo.
		closing = func() { _ = os.RemoveAll(demoDir) }
		if err := examples.Repository(demoDir); err != nil {
			return closing, runtimeError{err}
		}
		env.Repositories = append(env.Repositories, tools.Repository{Name: "demo", Path: demoDir})
	}
	seen := map[string]bool{}
	for _, r := range f.repos {
		name, path, named := strings.Cut(r, "=")
		switch {
		case !named:
			name, path = "", r
		case name == "":
			return closing, tools.Invalid("--repo %q: write it as PATH or NAME=PATH", r)
		}
		if path == "" {
			return closing, tools.Invalid("--repo %q: the path is missing; write it as PATH or NAME=PATH", r)
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return closing, tools.Invalid("--repo %q: %v", r, err)
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return closing, tools.Invalid("--repo %q is no folder", r)
		}
		if name == "" {
			name = filepath.Base(abs)
		}
		if seen[name] {
			return closing, tools.Invalid("--repo: two repositories are called %q; name them: --repo NAME=PATH", name)
		}
		seen[name] = true
		env.Repositories = append(env.Repositories, tools.Repository{Name: name, Path: abs})
	}
	env.RepoConfig.Vars = map[string]string{}
	for _, v := range f.vars {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			// The value may be a secret: it is not repeated.
			return closing, tools.Invalid("--vars: write it as NAME=VALUE")
		}
		if err := gitops.CheckVariable(name); err != nil {
			return closing, tools.Invalid("--vars: %v", err)
		}
		env.RepoConfig.Vars[name] = value
	}
	env.KubernetesVersion, env.LiveCRDs, env.DryRun = f.kubernetesVersion, f.liveCRDs, f.dryRun
	if (f.liveCRDs || f.dryRun) && (env.Source == nil || env.Source.AnyKind == nil) {
		return closing, tools.Invalid("--live-crds and --dry-run need a live cluster: --kubeconfig or --context")
	}
	self, err := os.Executable()
	if err != nil {
		return closing, runtimeError{fmt.Errorf("the path of this program, for its workers: %w", err)}
	}
	workers := min(max(runtime.GOMAXPROCS(0), 1), 4)
	pool, err := render.NewPool([]string{self, workerCommand}, workers, buildTimeout)
	if err != nil {
		return closing, runtimeError{err}
	}
	env.GitOps, err = gitops.New(gitops.Options{Builder: pool, Workers: workers, SchemaDirs: f.schemaDirs})
	if err != nil {
		pool.Close()
		return closing, runtimeError{err}
	}
	before := closing
	return func() {
		before()
		pool.Close()
		// The folder is this process's own and in the system's temporary one.
		_ = env.GitOps.Close()
	}, nil
}

// workerCommand is how this program starts itself as a worker.
const workerCommand = "render-worker"

// worker builds Kustomizations for its parent, where it can be killed and has no
// network.
func (a *app) worker() *cobra.Command {
	return &cobra.Command{
		Use:    workerCommand,
		Short:  "Build Kustomizations for the process that started this one",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := render.Worker(a.in, a.out); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
}
