package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

// Repository is one that the user configured. A tool's argument can choose among
// these, never name a path.
type Repository struct {
	Name string
	Path string
}

// RepoScope says which files an answer is about.
type RepoScope struct {
	Repository string `json:"repository"`
	Ref        string `json:"ref,omitempty"`
	Commit     string `json:"commit,omitempty"`
	// WorkingTree is set when the files as they are on disk were read.
	WorkingTree bool `json:"workingTree,omitempty"`
	// Dirty says that the working tree differs from the commit.
	Dirty *bool `json:"dirty,omitempty"`
}

// repoResult is what every answer about a repository carries.
type repoResult struct {
	Summary   string         `json:"summary" jsonschema_description:"one line that stands alone"`
	Scope     RepoScope      `json:"scope" jsonschema_description:"{repository, ref, commit, workingTree, dirty}"`
	Notes     []string       `json:"notes,omitempty" jsonschema_description:"worth knowing"`
	NextSteps []ops.NextStep `json:"nextSteps,omitempty" jsonschema_description:"{tool, arguments, why}"`
}

// InRepo chooses a repository and a ref.
type InRepo struct {
	Repo string `json:"repo,omitempty" jsonschema_description:"needed when several are configured"`
	Ref  string `json:"ref,omitempty" jsonschema_description:"branch, tag, commit; default the working tree"`
}

// InCluster narrows to a cluster.
type InCluster struct {
	Cluster string `json:"cluster,omitempty" jsonschema_description:"only this cluster"`
}

// maxName bounds names of branches, clusters and the like, in bytes; file systems
// and Git take no longer ones.
const maxName = 255

// short refuses an argument that is longer than any name.
func short(argument, value string) error {
	if len(value) > maxName {
		return invalid("%s: %d bytes are too long for a name; at most %d", argument, len(value), maxName)
	}
	return nil
}

// repository resolves the argument against what was configured.
func (e *Env) repository(in InRepo) (gitops.Repo, RepoScope, error) {
	if err := errors.Join(short("repo", in.Repo), short("ref", in.Ref)); err != nil {
		return gitops.Repo{}, RepoScope{}, err
	}
	if len(e.Repositories) == 0 {
		return gitops.Repo{}, RepoScope{}, &Error{Code: NotFound, Message: "no repository is configured: start hecate-mcp with --repo PATH (or --repo NAME=PATH, several times)"}
	}
	var names []string
	var found *Repository
	for i, r := range e.Repositories {
		names = append(names, r.Name)
		if r.Name == in.Repo || in.Repo == "" && len(e.Repositories) == 1 {
			found = &e.Repositories[i]
		}
	}
	if found == nil {
		err := invalid("repo: no configured repository %s; there are: %s", quote(in.Repo), joined(names))
		if in.Repo == "" {
			err = invalid("repo: several are configured, name one of: %s", joined(names))
		}
		err.ValidValues = names
		return gitops.Repo{}, RepoScope{}, err
	}
	if strings.HasPrefix(in.Ref, "-") || strings.ContainsAny(in.Ref, "\x00\n") {
		return gitops.Repo{}, RepoScope{}, invalid("ref: %s is no branch, tag or commit", quote(in.Ref))
	}
	return gitops.Repo{Path: found.Path, Ref: in.Ref, Config: e.RepoConfig}, RepoScope{Repository: found.Name, Ref: in.Ref}, nil
}

// in fills the scope from the graph of the tree that was read.
func (s RepoScope) in(g *gitops.FluxGraph) RepoScope {
	s.Commit, s.WorkingTree, s.Dirty = g.Commit, g.Worktree, g.Dirty
	return s
}

// repositoryCodes gives errors of gitops their code.
var repositoryCodes = map[gitops.ErrorCode]Code{
	gitops.ErrInvalidConfig:   InvalidArgument,
	gitops.ErrInvalidArgument: InvalidArgument,
	gitops.ErrNotFound:        NotFound,
	gitops.ErrTooLarge:        TooLarge,
	gitops.ErrHistory:         InvalidArgument,
	gitops.ErrUnavailable:     Unavailable,
}

// fromGitops makes an error of gitops a coded one.
func fromGitops(err error) error {
	var ge *gitops.Error
	if !errors.As(err, &ge) {
		return err
	}
	code, ok := repositoryCodes[ge.Code]
	if !ok {
		code = Internal
	}
	reason := string(ge.Code)
	if reason == string(code) {
		reason = ""
	}
	return &Error{Code: code, Reason: reason, Message: ops.CleanCause(ge.Message, 600), ValidValues: ge.Valid}
}

// knownCluster refuses a cluster that the repository does not have.
func knownCluster(g *gitops.FluxGraph, cluster string) error {
	if cluster == "" {
		return nil
	}
	if err := short("cluster", cluster); err != nil {
		return err
	}
	var names []string
	for _, c := range g.Clusters {
		if c.Name == cluster {
			return nil
		}
		names = append(names, g.Mask(c.Name))
	}
	e := invalid("cluster: the repository has no cluster %s; there are: %s", quote(cluster), joined(names))
	e.ValidValues = names
	return e
}

// knownKustomization refuses a part of a name that no Kustomization has: an empty
// answer would read as a sound one. It names some that there are.
func knownKustomization(g *gitops.FluxGraph, cluster, part string) error {
	if part == "" {
		return nil
	}
	names := map[string]bool{}
	for _, k := range g.Keys() {
		if cluster != "" && k.Cluster != cluster {
			continue
		}
		if strings.Contains(k.Name, part) {
			return nil
		}
		names[g.Mask(k.Name)] = true
	}
	if len(names) == 0 {
		return &Error{Code: NotFound, Message: fmt.Sprintf("kustomization: no name contains %s; there is no Kustomization here at all", quote(part))}
	}
	valid := firstOf(slices.Sorted(maps.Keys(names)), maxCandidates)
	return &Error{Code: NotFound, Message: fmt.Sprintf("kustomization: no name contains %s; there are: %s", quote(part), joined(valid)), ValidValues: valid}
}

// meanings are a table of gitops in the form of the catalogue.
func meanings[C ~string](table []gitops.Meaning[C]) []ops.Meaning[C] {
	out := make([]ops.Meaning[C], 0, len(table))
	for _, m := range table {
		out = append(out, ops.Meaning[C]{Code: m.Code, Meaning: m.Meaning})
	}
	return out
}

// cleanFinding bounds what came from files.
func cleanFinding(f gitops.Finding) gitops.Finding {
	f.Message, f.Rule, f.Raw = ops.Clean(f.Message, 400), ops.Clean(f.Rule, 300), ops.CleanCause(f.Raw, 600)
	f.Field, f.File = ops.Clean(f.Field, 300), ops.Clean(f.File, 300)
	return f
}

// place is a finding's file and line for people.
func place(f gitops.Finding) string {
	switch {
	case f.File == "":
		return ""
	case f.Line == 0:
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// plural is "1 thing" or "n things".
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// joinTimeout bounds the look at the cluster for an answer about files.
const joinTimeout = 5 * time.Second

// gatesOf joins an answer to the promotion: the Gates that look at one of the
// Kustomizations, when a cluster source is there. The cluster of the repository
// that it is can't be told, so names decide.
func (e *Env) gatesOf(ctx context.Context, keys []gitops.KustomizationKey) ([]ops.FluxUse, string) {
	if !e.JoinGates || len(keys) == 0 {
		return nil, ""
	}
	// The files' answer must not wait for a cluster that does not answer.
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	uses, err := e.Ops.FluxUses(ctx)
	if err != nil {
		return nil, "Gates could not be read: " + toError(err).Message
	}
	var out []ops.FluxUse
	for _, u := range uses {
		for _, k := range keys {
			if u.Object.Kind == "Kustomization" && u.Object.Namespace == k.Namespace && u.Object.Name == k.Name {
				out = append(out, u)
				break
			}
		}
	}
	return out, ""
}
