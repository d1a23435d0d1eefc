package gitops_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// TestMain lets the test binary be its own worker, as hecate-mcp is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "render-worker" {
		if err := render.Worker(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// files are the contents of a repository by slash path.
type files map[string]string

// with lays more files over these; an empty content takes the file away.
func (f files) with(more ...files) files {
	out := maps.Clone(f)
	for _, m := range more {
		for name, text := range m {
			if out[name] = text; text == "" {
				delete(out, name)
			}
		}
	}
	return out
}

// put makes a folder hold what the files say; an empty content removes a file.
func put(t testing.TB, dir string, f files) {
	t.Helper()
	for name, text := range f {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if text == "" {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// folder is a repository without Git.
func folder(t testing.TB, f files) string {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, f)
	return dir
}

// git runs the git binary, with no configuration but the repository's.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=file",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func commit(t testing.TB, dir, message string) string {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", message)
	return git(t, dir, "rev-parse", "HEAD")
}

// repository has one commit on main and stands on a branch change.
func repository(t testing.TB, f files) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	put(t, dir, f)
	commit(t, dir, "base")
	git(t, dir, "checkout", "-q", "-b", "change")
	return dir
}

func newEngine(t testing.TB, o gitops.Options) *gitops.Engine {
	t.Helper()
	e, err := gitops.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// limited is an engine with small bounds of the tree.
func limited(t testing.TB, l source.Limits) *gitops.Engine {
	return newEngine(t, gitops.Options{Limits: l})
}

// pooled is an engine that renders in worker processes, as hecate-mcp does.
func pooled(t testing.TB, timeout time.Duration) *gitops.Engine {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := render.NewPool([]string{self, "render-worker"}, 2, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return newEngine(t, gitops.Options{Builder: p})
}

// discover gives the graph of a folder.
func discover(t testing.TB, dir string, config ...gitops.Config) *gitops.FluxGraph {
	t.Helper()
	r := gitops.Repo{Path: dir}
	for _, c := range config {
		r.Config = c
	}
	g, err := newEngine(t, gitops.Options{}).DiscoverFluxGraph(context.Background(), r)
	if err != nil {
		t.Fatalf("DiscoverFluxGraph: %v", err)
	}
	return g
}

// graphOf gives the graph of files.
func graphOf(t testing.TB, f files, config ...gitops.Config) *gitops.FluxGraph {
	t.Helper()
	return discover(t, folder(t, f), config...)
}

func validate(t testing.TB, f files, config ...gitops.Config) *gitops.Validation {
	t.Helper()
	r := gitops.Repo{Path: folder(t, f)}
	for _, c := range config {
		r.Config = c
	}
	v, err := newEngine(t, gitops.Options{}).ValidateManifests(context.Background(), r, gitops.ValidateOptions{})
	if err != nil {
		t.Fatalf("ValidateManifests: %v", err)
	}
	return v
}

// impactOf commits a change to a repository with the base's files and gives what
// it touches.
func impactOf(t testing.TB, base, change files) *gitops.ImpactResult {
	t.Helper()
	dir := repository(t, base)
	put(t, dir, change)
	commit(t, dir, "change")
	return compute(t, dir, "change", "main")
}

func compute(t testing.TB, dir, head, base string) *gitops.ImpactResult {
	t.Helper()
	r, err := newEngine(t, gitops.Options{}).ComputeImpact(context.Background(), gitops.Repo{Path: dir, Ref: head}, base)
	if err != nil {
		t.Fatalf("ComputeImpact: %v", err)
	}
	return r
}

// key reads cluster/namespace/name, cluster/name or name.
func key(s string) gitops.KustomizationKey {
	k := gitops.KustomizationKey{Cluster: "prod", Namespace: "flux-system"}
	switch p := strings.Split(s, "/"); len(p) {
	case 3:
		k.Cluster, k.Namespace, k.Name = p[0], p[1], p[2]
	case 2:
		k.Cluster, k.Name = p[0], p[1]
	default:
		k.Name = s
	}
	return k
}

func keysOf(names ...string) []gitops.KustomizationKey {
	var out []gitops.KustomizationKey
	for _, n := range names {
		out = append(out, key(n))
	}
	return out
}

// nodeOf finds a node or ends the test.
func nodeOf(t testing.TB, g *gitops.FluxGraph, name string) gitops.KustomizationNode {
	t.Helper()
	n, ok := g.Kustomizations[key(name)]
	if !ok {
		t.Fatalf("no Kustomization %s among %v; unreferenced %v; notes %v", key(name), g.Keys(), unreferenced(g), g.Notes)
	}
	return n
}

func wantState(t testing.TB, g *gitops.FluxGraph, name string, want gitops.State, reason ...string) {
	t.Helper()
	n := nodeOf(t, g, name)
	if n.State != want {
		t.Errorf("%s is %s (%s), want %s", name, n.State, n.Reason, want)
	}
	for _, w := range reason {
		if !strings.Contains(n.Reason, w) {
			t.Errorf("%s: reason %q lacks %q", name, n.Reason, w)
		}
	}
}

func wantKeys(t testing.TB, g *gitops.FluxGraph, want ...string) {
	t.Helper()
	if w := keysOf(want...); !slices.Equal(g.Keys(), w) {
		t.Errorf("Kustomizations %v, want %v", g.Keys(), w)
	}
}

func unreferenced(g *gitops.FluxGraph) []string {
	var out []string
	for _, u := range g.Unreferenced {
		out = append(out, fmt.Sprintf("%s:%d %s", u.Place.File, u.Place.Line, u.Key.Name))
	}
	return out
}

// rendered are the objects of a node, as JSON, one a line.
func rendered(t testing.TB, g *gitops.FluxGraph, name string) string {
	t.Helper()
	var b strings.Builder
	for _, o := range nodeOf(t, g, name).Inspect().Rendered {
		b.Write(o)
		b.WriteByte('\n')
	}
	return b.String()
}

func wantRendered(t testing.TB, g *gitops.FluxGraph, name string, words ...string) {
	t.Helper()
	out := rendered(t, g, name)
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("%s does not render %s:\n%s(%s)", name, w, out, nodeOf(t, g, name).Reason)
		}
	}
}

// coded are the findings with a code.
func coded(all []gitops.Finding, code gitops.Code) []gitops.Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f gitops.Finding) bool { return f.Code != code })
}

// wantFinding wants one finding with the code and gives it.
func wantFinding(t testing.TB, all []gitops.Finding, code gitops.Code, words ...string) gitops.Finding {
	t.Helper()
	found := coded(all, code)
	if len(found) != 1 {
		t.Fatalf("%d findings %s, want one; all: %s", len(found), code, lines(all))
	}
	for _, w := range words {
		if !strings.Contains(fmt.Sprint(found[0]), w) {
			t.Errorf("finding %s lacks %q: %+v", code, w, found[0])
		}
	}
	return found[0]
}

func wantNoFailure(t testing.TB, all []gitops.Finding) {
	t.Helper()
	for _, f := range all {
		if f.Severity == gitops.SeverityFail {
			t.Errorf("finding %s", lines([]gitops.Finding{f}))
		}
	}
}

func lines(all []gitops.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "\n  %s %s %s:%d %s %s", f.Severity, f.Code, f.File, f.Line, f.Field, f.Message)
	}
	return b.String()
}

func wantCode(t testing.TB, err error, code gitops.ErrorCode, words ...string) *gitops.Error {
	t.Helper()
	var e *gitops.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("message %q lacks %q", e.Message, w)
		}
	}
	return e
}

// affected are the directly affected, as "name effect".
func affected(r *gitops.ImpactResult) []string {
	out := []string{}
	for _, a := range r.DirectlyAffected {
		out = append(out, short(a.KustomizationKey)+" "+string(a.Effect))
	}
	return out
}

// short is the way in which key reads a key back.
func short(k gitops.KustomizationKey) string {
	switch {
	case k.Namespace != "flux-system":
		return k.String()
	case k.Cluster != "prod":
		return k.Cluster + "/" + k.Name
	}
	return k.Name
}

func wantAffected(t testing.TB, r *gitops.ImpactResult, want ...string) {
	t.Helper()
	if got := affected(r); !slices.Equal(got, want) && len(got)+len(want) > 0 {
		t.Errorf("affected %q, want %q; unmapped %v", got, want, r.UnmappedFiles)
	}
}

func affectedOf(t testing.TB, r *gitops.ImpactResult, name string) gitops.Affected {
	t.Helper()
	for _, a := range r.DirectlyAffected {
		if a.KustomizationKey == key(name) {
			return a
		}
	}
	t.Fatalf("%s is not affected: %q; unmapped %v", name, affected(r), r.UnmappedFiles)
	return gitops.Affected{}
}

// wantReason wants a way from a file through the words, in that order.
func wantReason(t testing.TB, a gitops.Affected, file string, way ...string) {
	t.Helper()
	for _, r := range a.Reasons {
		if r.File != file {
			continue
		}
		rest := way
		for _, step := range r.Path {
			if len(rest) > 0 && strings.Contains(step, rest[0]) {
				rest = rest[1:]
			}
		}
		if len(rest) == 0 {
			return
		}
	}
	t.Errorf("%s: no reason from %s through %q in %q", a.KustomizationKey, file, way, a.Reasons)
}

// wantObjects compares the changes of objects, each "change Kind name".
func wantObjects(t testing.TB, a gitops.Affected, want ...string) {
	t.Helper()
	got := []string{}
	for _, o := range a.Objects {
		got = append(got, o.Change+" "+o.Kind+" "+o.Name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s: objects %q, want %q", a.KustomizationKey, got, want)
	}
}

func wantUnmapped(t testing.TB, r *gitops.ImpactResult, file string, reason gitops.UnmappedReason) gitops.UnmappedFile {
	t.Helper()
	for _, u := range r.UnmappedFiles {
		if u.File == file {
			if u.Reason != reason {
				t.Errorf("%s is unmapped as %s (%s), want %s", file, u.Reason, u.Detail, reason)
			}
			return u
		}
	}
	t.Errorf("%s is not unmapped: %v; affected %q", file, r.UnmappedFiles, affected(r))
	return gitops.UnmappedFile{}
}

// The documents of which repositories here are made.

const repoURL = "https://git.example.com/acme/fleet"

// ks is a Flux Kustomization; more are lines of its spec.
func ks(name, path string, more ...string) string {
	return ksOf("flux-system", name, path, "GitRepository", "flux-system", more...)
}

func ksOf(ns, name, path, kind, src string, more ...string) string {
	meta := "name: " + name
	if ns != "" {
		meta += ", namespace: " + ns
	}
	out := fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {%s}\nspec:\n  interval: 10m\n  path: %q\n  sourceRef: {kind: %s, name: %s}\n", meta, path, kind, src)
	if !slices.ContainsFunc(more, func(s string) bool { return strings.HasPrefix(s, "prune:") }) {
		more = append([]string{"prune: true"}, more...)
	}
	for _, m := range more {
		for l := range strings.SplitSeq(m, "\n") {
			out += "  " + l + "\n"
		}
	}
	return out
}

func gitRepo(ns, name, url string, more ...string) string {
	out := fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: %s, namespace: %s}\nspec:\n  interval: 1m\n  url: %s\n  ref: {branch: main}\n", name, ns, url)
	for _, m := range more {
		out += "  " + m + "\n"
	}
	return out
}

// docs joins documents.
func docs(all ...string) string { return strings.Join(all, "---\n") }

// cm is a ConfigMap; data are its lines.
func cm(name string, data ...string) string {
	out := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\ndata:\n"
	for _, d := range data {
		out += "  " + d + "\n"
	}
	return out
}

// kfile is a kustomization.yaml of kustomize; the arguments are its lines.
func kfile(all ...string) string {
	return "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + strings.Join(all, "\n") + "\n"
}

func resources(all ...string) string { return "resources: [" + strings.Join(all, ", ") + "]" }

// prod is a bootstrapped cluster: root flux-system on clusters/prod.
func prod(more ...files) files { return bootstrapped("clusters/prod").with(more...) }

func bootstrapped(path string) files {
	return files{path + "/flux-system/gotk-sync.yaml": docs(gitRepo("flux-system", "flux-system", repoURL), ks("flux-system", "./"+path))}
}
