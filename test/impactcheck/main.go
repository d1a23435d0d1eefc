// Command impactcheck holds compute_impact against a truth that is not ours, on
// the last commits of any Flux repository:
//
//	go run ./test/impactcheck REPO [-n 25] [-config FILE] [-vars NAME=VALUE]
//
// The truth is fluxcd/pkg's own generator, Build and SubstituteVariables, run on
// every Kustomization at both sides of every commit: a Kustomization is affected
// when what they give differs, or when only one side has it. The table shows
// recall and precision, and beside them how many rendered outputs differ from the
// reference's in a single byte. What the reference can't build without the
// network is counted as unchecked. The exit code is 1 when anything is off.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	fluxkustomize "github.com/fluxcd/pkg/kustomize"
	securefs "github.com/fluxcd/pkg/kustomize/filesys"
	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

func main() {
	n := flag.Int("n", 25, "first-parent commits, the newest first")
	verbose := flag.Bool("v", false, "print every disagreement")
	file := flag.String("config", "", "a .hecate-mcp.yaml that lies over the repository's own")
	vars := vars{}
	flag.Var(vars, "vars", "NAME=VALUE of a variable that is not in the repository; repeatable")
	// The repository may come first or last.
	args := os.Args[1:]
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		args = append(slices.Clone(args[1:]), args[0])
	}
	if err := flag.CommandLine.Parse(args); err != nil || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: impactcheck REPO [-n 25] [-v] [-config FILE] [-vars NAME=VALUE]")
		os.Exit(2)
	}
	config, err := readConfig(*file, vars)
	if err != nil {
		fmt.Fprintln(os.Stderr, "impactcheck:", err)
		os.Exit(2)
	}
	ok, err := check(context.Background(), os.Stdout, flag.Arg(0), *n, *verbose, config)
	if err != nil {
		fmt.Fprintln(os.Stderr, "impactcheck:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// readConfig reads a configuration and lays variables over it.
func readConfig(file string, vars vars) (gitops.Config, error) {
	var c gitops.Config
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil {
			return c, err
		}
		if c, err = gitops.ParseConfig(data); err != nil {
			return c, err
		}
	}
	if c.Vars == nil {
		c.Vars = map[string]string{}
	}
	for k, v := range vars {
		c.Vars[k] = v
	}
	return c, nil
}

// vars is a repeatable flag.
type vars map[string]string

func (v vars) String() string { return "" }

// Set adds a variable.
func (v vars) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return errors.New("write it as NAME=VALUE")
	}
	v[name] = value
	return nil
}

// total is a line of the table.
type total struct {
	kustomizations, truth, found, right, unknown, unchecked, compared, differ int
}

func check(ctx context.Context, w io.Writer, repo string, n int, verbose bool, config gitops.Config) (bool, error) {
	commits, err := lastCommits(repo, n)
	if err != nil {
		return false, err
	}
	engine, err := gitops.New(gitops.Options{Builder: render.NewLocal()})
	if err != nil {
		return false, err
	}
	defer engine.Close()
	fmt.Fprintf(w, "%s: %d commits\n%-10s %6s %8s %8s %8s %8s %10s %9s %7s\n", filepath.Base(repo), len(commits)-1,
		"commit", "nodes", "affected", "found", "right", "unknown", "unchecked", "compared", "differ")
	var sum total
	truths := map[string]map[gitops.KustomizationKey]outcome{}
	at := func(commit string, t *total) (map[gitops.KustomizationKey]outcome, error) {
		if m, ok := truths[commit]; ok {
			return m, nil
		}
		g, err := engine.DiscoverFluxGraph(ctx, gitops.Repo{Path: repo, Ref: commit, Config: config})
		if err != nil {
			return nil, fmt.Errorf("commit %s: %w", commit[:10], err)
		}
		m := map[gitops.KustomizationKey]outcome{}
		for _, k := range g.Keys() {
			o := reference(ctx, g.Kustomizations[k].Inspect())
			m[k] = o
			if o.state == built {
				t.compared++
				if o.differs != "" {
					t.differ++
					if verbose {
						fmt.Fprintf(w, "  %s at %s is not what fluxcd/pkg builds: %s\n", k, commit[:10], o.differs)
					}
				}
			}
		}
		truths[commit] = m
		return m, nil
	}
	ok := true
	for i := 0; i+1 < len(commits); i++ {
		head, base := commits[i], commits[i+1]
		var t total
		after, err := at(head, &t)
		if err != nil {
			return false, err
		}
		before, err := at(base, &t)
		if err != nil {
			return false, err
		}
		impact, err := engine.ComputeImpact(ctx, gitops.Repo{Path: repo, Ref: head, Config: config}, base)
		if err != nil {
			return false, fmt.Errorf("commit %s: %w", head[:10], err)
		}
		found := map[gitops.KustomizationKey]gitops.Effect{}
		for _, a := range impact.DirectlyAffected {
			found[a.KustomizationKey] = a.Effect
		}
		keys := map[gitops.KustomizationKey]bool{}
		for k := range after {
			keys[k] = true
		}
		for k := range before {
			keys[k] = true
		}
		t.kustomizations = len(after)
		for k := range keys {
			b, inBase := before[k]
			h, inHead := after[k]
			effect, predicted := found[k]
			if inBase && inHead && (b.state == unchecked || h.state == unchecked || b.state == failed && h.state == failed) {
				t.unchecked++
				if effect == gitops.EffectUnknown {
					t.unknown++
				}
				continue
			}
			affected := inBase != inHead || b.state != h.state || b.output != h.output
			switch {
			case affected && predicted:
				t.truth, t.found, t.right = t.truth+1, t.found+1, t.right+1
			case affected:
				t.truth++
			case predicted:
				t.found++
			}
			if affected != predicted && verbose {
				fmt.Fprintf(w, "  %s: %s: affected %v, found %v\n", head[:10], k, affected, predicted)
			}
		}
		fmt.Fprintf(w, "%-10s %6d %8d %8d %8d %8d %10d %9d %7d\n", head[:10], t.kustomizations, t.truth, t.found, t.right, t.unknown, t.unchecked, t.compared, t.differ)
		sum.truth, sum.found, sum.right, sum.unknown, sum.unchecked = sum.truth+t.truth, sum.found+t.found, sum.right+t.right, sum.unknown+t.unknown, sum.unchecked+t.unchecked
		sum.compared, sum.differ, sum.kustomizations = sum.compared+t.compared, sum.differ+t.differ, max(sum.kustomizations, t.kustomizations)
		ok = ok && t.truth == t.right && t.found == t.right && t.differ == 0
		delete(truths, head)
	}
	fmt.Fprintf(w, "%-10s %6d %8d %8d %8d %8d %10d %9d %7d\nrecall %s, precision %s, outputs that differ from fluxcd/pkg's: %d of %d\n", "total", sum.kustomizations, sum.truth, sum.found, sum.right, sum.unknown, sum.unchecked, sum.compared, sum.differ,
		ratio(sum.right, sum.truth), ratio(sum.right, sum.found), sum.differ, sum.compared)
	return ok, nil
}

func ratio(a, b int) string {
	if b == 0 {
		return "1.000 (nothing to find)"
	}
	return fmt.Sprintf("%.3f", float64(a)/float64(b))
}

// lastCommits are n commits along first parents and the one before them.
func lastCommits(path string, n int) ([]string, error) {
	r, err := git.PlainOpen(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	head, err := r.ResolveRevision(plumbing.Revision("HEAD"))
	if err != nil {
		return nil, fmt.Errorf("%s: HEAD: %w", filepath.Base(path), err)
	}
	var out []string
	for hash := *head; len(out) <= n; {
		c, err := r.CommitObject(hash)
		if err != nil {
			return nil, fmt.Errorf("commit %s: %w", hash, err)
		}
		out = append(out, hash.String())
		if c.NumParents() == 0 {
			break
		}
		hash = c.ParentHashes[0]
	}
	return out, nil
}

// state is what the reference could do with a Kustomization.
type state int

const (
	unchecked state = iota
	built
	unknown // built, with variables that have no value here
	failed
)

// outcome is what the reference gives for one Kustomization.
type outcome struct {
	state   state
	output  string
	differs string
}

// reference builds with fluxcd/pkg alone.
func reference(ctx context.Context, in gitops.Inspection) outcome {
	if in.Root == "" || in.Remote {
		return outcome{}
	}
	objects, err := fluxBuild(ctx, in)
	if err != nil {
		if in.Failure == "" {
			return outcome{state: built, differs: "it fails: " + err.Error()}
		}
		return outcome{state: failed}
	}
	if in.Failure != "" {
		return outcome{state: built, differs: "it builds, where hecate-mcp says: " + in.Failure, output: string(bytes.Join(objects, nil))}
	}
	o := outcome{state: built, output: string(bytes.Join(objects, []byte("\n")))}
	if in.Unknown {
		// The reference puts an empty text where hecate-mcp keeps the variable: a
		// truth about changes, but no bytes to compare.
		o.state = unknown
		return o
	}
	if len(objects) != len(in.Rendered) {
		o.differs = fmt.Sprintf("%d objects, not %d", len(objects), len(in.Rendered))
		return o
	}
	for i := range objects {
		if !bytes.Equal(objects[i], in.Rendered[i]) {
			o.differs = fmt.Sprintf("object %d", i)
			return o
		}
	}
	return o
}

// fluxBuild is what kustomize-controller does with an artifact, with the edited
// entry laid over it instead of written.
func fluxBuild(ctx context.Context, in gitops.Inspection) ([][]byte, error) {
	ks := unstructured.Unstructured{Object: in.Object}
	entry := filepath.Join(in.Root, filepath.FromSlash(in.Path))
	if info, err := os.Stat(entry); err != nil || !info.IsDir() {
		return nil, errors.New("no such folder")
	}
	manifest, file, _, err := fluxkustomize.NewGenerator(in.Root, ks).GenerateManifest(entry)
	if err != nil {
		return nil, err
	}
	disk, err := securefs.MakeFsOnDiskSecureBuild(in.Root)
	if err != nil {
		return nil, err
	}
	m, err := fluxkustomize.Build(overlay{disk, file, manifest}, entry)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, res := range m.Resources() {
		if in.Substitutes {
			with := ks.DeepCopy()
			values := map[string]any{}
			for k, v := range in.Values {
				values[k] = v
			}
			if err := unstructured.SetNestedMap(with.Object, values, "spec", "postBuild", "substitute"); err != nil {
				return nil, err
			}
			done, err := fluxkustomize.SubstituteVariables(ctx, nil, *with, res, fluxkustomize.SubstituteWithDryRun(true))
			if err != nil {
				return nil, err
			}
			if done != nil { // nil is an object that is marked to be kept
				res = done
			}
		}
		data, err := res.MarshalJSON()
		if err != nil {
			return nil, err
		}
		objects, err := render.ExpandLists([]render.Object{{JSON: data}})
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			if o, err = render.CommonMetadata(in.Object, o); err != nil {
				return nil, err
			}
			out = append(out, compact(o.JSON))
		}
	}
	return out, nil
}

func compact(data []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return data
	}
	return b.Bytes()
}

// overlay shows one file over a folder.
type overlay struct {
	filesys.FileSystem
	path string
	data []byte
}

// Exists tells whether a path is there.
func (o overlay) Exists(p string) bool {
	return filepath.Clean(p) == filepath.Clean(o.path) || o.FileSystem.Exists(p)
}

// ReadFile reads a file.
func (o overlay) ReadFile(p string) ([]byte, error) {
	if filepath.Clean(p) == filepath.Clean(o.path) {
		return o.data, nil
	}
	return o.FileSystem.ReadFile(p)
}

// CleanedAbs splits a path into folder and file.
func (o overlay) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	if filepath.Clean(p) == filepath.Clean(o.path) {
		return filesys.ConfirmedDir(filepath.Dir(o.path)), filepath.Base(o.path), nil
	}
	return o.FileSystem.CleanedAbs(p)
}
