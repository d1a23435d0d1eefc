package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yannh/kubeconform/pkg/validator"
	"golang.org/x/sync/errgroup"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
	"github.com/hecate-mcp/hecate-mcp/internal/schema"
)

// repoEnv names a repository to measure instead of the one that is made.
const repoEnv = "HECATE_MCP_BENCH_REPO"

// cacheBytes is the bound of the engine's cache, its default.
const cacheBytes = 256 << 20

// workerArg makes the test binary a worker of render.Pool, as hecate-mcp is its own.
const workerArg = "render-worker"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerArg {
		if err := render.Worker(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// BenchmarkRepository measures one repository from all sides, which take turns
// in each iteration, and prints the table. The bars are goals, not limits.
func BenchmarkRepository(b *testing.B) {
	dir := repository(b)
	r := newRun(b, dir)
	for b.Loop() {
		r.cold()
		r.second()
		r.impact()
		r.rendering()
		r.validation()
	}
	b.ReportMetric(0, "ns/op") // of all sides together: says nothing
	r.report()
}

// repository is a private copy of the repository, in Git, whose files may be edited.
func repository(b *testing.B) string {
	b.Helper()
	dir := filepath.Join(b.TempDir(), "repository")
	if from := os.Getenv(repoEnv); from != "" {
		git(b, ".", "clone", "-q", from, dir)
		// The remote says which sources mean this repository.
		if url, err := exec.Command("git", "-C", from, "remote", "get-url", "origin").Output(); err == nil {
			git(b, dir, "remote", "set-url", "origin", strings.TrimSpace(string(url)))
		}
		return dir
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	if err := Write(dir); err != nil {
		b.Fatal(err)
	}
	git(b, dir, "init", "-q", "-b", "main")
	git(b, dir, "add", "-A")
	git(b, dir, "-c", "user.name=fleet", "-c", "user.email=fleet@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "fleet")
	return dir
}

func git(b *testing.B, dir string, args ...string) {
	b.Helper()
	if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
		b.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}

// run is one benchmark: the repository as it was found, and what was measured.
type run struct {
	b    *testing.B
	repo gitops.Repo
	// nodes are the Kustomizations that are built from this repository.
	nodes   []gitops.Inspection
	objects [][]byte
	builtin [][]byte // those of a kind that the API server itself serves
	set     *schema.Set
	crds    *schema.CRDs
	conform conform
	// leaf is the file that is edited, in the working tree, and what it held.
	leaf     string
	original []byte
	edits    int

	kustomize string // the CLI, "" without one
	times     map[string][]time.Duration
	allocs    map[string]uint64
	heap      map[string]uint64 // bytes allocated
	peak      int64
	affected  int
	differ    int
	broken    int
}

func newRun(b *testing.B, dir string) *run {
	b.Helper()
	r := &run{b: b, repo: gitops.Repo{Path: dir}, times: map[string][]time.Duration{}, allocs: map[string]uint64{}, heap: map[string]uint64{}}
	r.kustomize, _ = exec.LookPath("kustomize")
	// This engine stays: the artifacts that the nodes point into are its.
	engine := r.engine()
	v, err := engine.ValidateManifests(b.Context(), r.repo, gitops.ValidateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	// Before anything of another side ran in this process.
	r.peak = peakBytes()
	var crds []map[string]any
	for _, k := range v.Graph.Keys() {
		in := v.Graph.Kustomizations[k].Inspect()
		if in.Root == "" || in.Failure != "" || in.Remote || in.Unknown {
			continue
		}
		r.nodes = append(r.nodes, in)
		for _, o := range in.Rendered {
			r.objects = append(r.objects, o)
			if obj := decode(b, o); obj["kind"] == "CustomResourceDefinition" && !slices.ContainsFunc(crds, func(c map[string]any) bool { return name(c) == name(obj) }) {
				crds = append(crds, obj)
			}
		}
	}
	if len(r.nodes) == 0 {
		b.Fatal("nothing in this repository can be rendered whole: there is nothing to compare")
	}
	if r.set, err = schema.Open(schema.Options{}); err != nil {
		b.Fatal(err)
	}
	r.crds, _ = r.set.NewCRDs(crds) // those with problems judge nothing, on neither side
	r.conform = newConform(b, crds)
	r.sort()
	r.chooseLeaf(v.Graph)
	return r
}

// sort finds the objects that both validators know, and of those the built-in ones.
func (r *run) sort() {
	known := r.objects[:0:0]
	for _, o := range r.objects {
		obj := decode(r.b, o)
		ours := r.set.Validate(r.b.Context(), obj, r.crds)
		theirs := r.conform.judge(o)
		if !ours.Covered || theirs == validator.Skipped || theirs == validator.Error {
			continue
		}
		known = append(known, o)
		if ours.Authority == schema.AuthorityCore {
			r.builtin = append(r.builtin, o)
		}
	}
	r.objects = known
}

// chooseLeaf takes a manifest that one Kustomization builds: the first plain
// manifest in the folder of the one in the middle, or of those after it.
func (r *run) chooseLeaf(g *gitops.FluxGraph) {
	keys := g.Keys()
	for i := range keys {
		n := g.Kustomizations[keys[(len(keys)/2+i)%len(keys)]]
		if n.RepoPath == "" || n.State != gitops.StateRendered {
			continue
		}
		files, err := filepath.Glob(filepath.Join(r.repo.Path, filepath.FromSlash(n.RepoPath), "*.yaml"))
		if err != nil {
			r.b.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				r.b.Fatal(err)
			}
			if m, err := kyaml.Parse(string(data)); err != nil || m.GetKind() == "" || m.GetKind() == "Kustomization" || m.GetKind() == "Component" {
				continue
			}
			r.leaf, r.original = f, data
			if r.edit(); r.touched() == 1 {
				r.restore()
				return
			}
			r.restore()
		}
	}
	r.b.Fatal("no Kustomization has a manifest of its own to edit")
}

// touched is how many Kustomizations the edit alters.
func (r *run) touched() int {
	e := r.engine()
	i, err := e.ComputeImpact(r.b.Context(), r.repo, "HEAD")
	if err != nil {
		r.b.Fatal(err)
	}
	r.affected = len(i.DirectlyAffected)
	return r.affected
}

// edit sets an annotation in the leaf to a value that it never had.
func (r *run) edit() {
	m, err := kyaml.Parse(string(r.original))
	if err != nil {
		r.b.Fatal(err)
	}
	r.edits++
	if err := m.PipeE(kyaml.SetAnnotation("fleet.example.com/edit", fmt.Sprint("edit ", r.edits))); err != nil {
		r.b.Fatal(err)
	}
	text, err := m.String()
	if err != nil {
		r.b.Fatal(err)
	}
	r.write([]byte(text))
}

func (r *run) restore() { r.write(r.original) }

func (r *run) write(data []byte) {
	if err := os.WriteFile(r.leaf, data, 0o644); err != nil {
		r.b.Fatal(err)
	}
}

// engine is a fresh engine that renders in this process.
func (r *run) engine() *gitops.Engine { return r.engineWith(render.NewLocal()) }

func (r *run) engineWith(builder render.Builder) *gitops.Engine {
	e, err := gitops.New(gitops.Options{Builder: builder, CacheBytes: cacheBytes})
	if err != nil {
		r.b.Fatal(err)
	}
	r.b.Cleanup(func() { e.Close() })
	return e
}

// pool starts workers when they are needed; close it.
func (r *run) pool(workers int) *render.Pool {
	self, err := os.Executable()
	if err != nil {
		r.b.Fatal(err)
	}
	p, err := render.NewPool([]string{self, workerArg}, workers, time.Minute)
	if err != nil {
		r.b.Fatal(err)
	}
	return p
}

// time measures one side under a name.
func (r *run) time(name string, f func()) { r.passes(name, 1, f) }

// passes is time for the mean of n passes, of what is too short to be timed once.
func (r *run) passes(name string, n int, f func()) {
	runtime.GC() // nobody pays for another's garbage
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	for range n {
		f()
	}
	r.times[name] = append(r.times[name], time.Since(began)/time.Duration(n))
	runtime.ReadMemStats(&after)
	r.allocs[name], r.heap[name] = (after.Mallocs-before.Mallocs)/uint64(n), (after.TotalAlloc-before.TotalAlloc)/uint64(n)
}

func (r *run) validate(e *gitops.Engine) {
	if _, err := e.ValidateManifests(r.b.Context(), r.repo, gitops.ValidateOptions{}); err != nil {
		r.b.Fatal(err)
	}
}

// cold validates with a fresh engine, and does what a script would do instead:
// fluxcd/pkg for each Kustomization, kubeconform for each object.
func (r *run) cold() {
	r.time("cold", func() { r.validate(r.engine()) })
	r.time("cold pool", func() {
		pool := r.pool(2)
		defer pool.Close()
		r.validate(r.engineWith(pool))
	})
	r.time("flux+kubeconform", func() {
		for _, in := range r.nodes {
			objects, err := fluxBuild(in)
			if err != nil {
				r.b.Fatal(err)
			}
			for _, o := range objects {
				r.conform.judge(o)
			}
		}
	})
}

// second asks the same engine again: nothing changed, one leaf changed.
func (r *run) second() {
	e := r.engine()
	r.time("first", func() { r.validate(e) })
	r.time("unchanged", func() { r.validate(e) })
	r.edit()
	r.time("one file", func() { r.validate(e) })
	r.restore()
}

// impact asks what the edit alters, twice.
func (r *run) impact() {
	r.edit()
	defer r.restore()
	e := r.engine()
	ask := func() {
		i, err := e.ComputeImpact(r.b.Context(), r.repo, "HEAD")
		if err != nil {
			r.b.Fatal(err)
		}
		r.affected = len(i.DirectlyAffected)
	}
	r.time("impact", ask)
	r.time("impact again", ask)
}

// rendering builds all Kustomizations and nothing else.
func (r *run) rendering() {
	ctx := r.b.Context()
	ours := make([]render.Result, len(r.nodes))
	with := func(builder render.Builder, workers int) func() {
		return func() {
			r.each(workers, len(r.nodes), func(i int) {
				in := r.nodes[i]
				if ours[i] = builder.Build(ctx, render.Request{Root: in.Root, Path: in.Path, Kustomization: in.Object}); ours[i].Err != nil {
					r.b.Error(in.Path, ours[i].Err)
				}
			})
		}
	}
	r.time("render x1", with(render.NewLocal(), 1))
	r.time("render x2", with(render.NewLocal(), 2))
	// With the start of the workers, which parse kustomize's OpenAPI schema first,
	// as each process of the CLI does.
	for _, workers := range []int{1, 2} {
		r.time(fmt.Sprintf("pool x%d", workers), func() {
			pool := r.pool(workers)
			defer pool.Close()
			with(pool, workers)()
		})
	}
	// As a server has them from its first question on.
	for _, workers := range []int{1, 2} {
		pool := r.pool(workers)
		with(pool, workers)()
		r.time(fmt.Sprintf("running pool x%d", workers), with(pool, workers))
		pool.Close()
	}
	theirs := make([][][]byte, len(r.nodes))
	flux := func(workers int) func() {
		return func() {
			r.each(workers, len(r.nodes), func(i int) {
				var err error
				if theirs[i], err = fluxBuild(r.nodes[i]); err != nil {
					r.b.Error(r.nodes[i].Path, err)
				}
			})
		}
	}
	r.time("flux x1", flux(1))
	r.time("flux x2", flux(2))
	r.differ = 0
	for i := range theirs {
		if !slices.EqualFunc(ours[i].Objects, theirs[i], func(o render.Object, data []byte) bool { return slices.Equal(o.JSON, data) }) {
			r.differ++
		}
	}
	if r.kustomize == "" {
		return
	}
	// The CLI knows nothing of Flux: it needs a kustomization file, and gets the
	// folder as it is.
	var broken atomic.Int32
	cli := func(workers int) func() {
		return func() {
			broken.Store(0)
			r.each(workers, len(r.nodes), func(i int) {
				dir := filepath.Join(r.nodes[i].Root, filepath.FromSlash(r.nodes[i].Path))
				if err := exec.CommandContext(ctx, r.kustomize, "build", "--load-restrictor", "LoadRestrictionsNone", dir).Run(); err != nil {
					broken.Add(1)
				}
			})
		}
	}
	r.time("kustomize x1", cli(1))
	r.time("kustomize x2", cli(2))
	r.broken = int(broken.Load())
}

// validation judges the rendered bytes, decoding included, on both sides; the
// schemas and CRDs of both were compiled when the objects were sorted.
func (r *run) validation() {
	for _, set := range []struct {
		name    string
		objects [][]byte
	}{{"built-in", r.builtin}, {"all", r.objects}} {
		n := max(1, 5000/max(1, len(set.objects)))
		for _, workers := range []int{1, 2} {
			suffix := fmt.Sprintf(" %s x%d", set.name, workers)
			r.passes("schema"+suffix, n, func() {
				r.each(workers, len(set.objects), func(i int) {
					r.set.Validate(r.b.Context(), decode(r.b, set.objects[i]), r.crds)
				})
			})
			r.passes("kubeconform"+suffix, n, func() {
				r.each(workers, len(set.objects), func(i int) { r.conform.judge(set.objects[i]) })
			})
		}
	}
}

// each calls f for 0 to n-1, with so many goroutines.
func (r *run) each(workers, n int, f func(i int)) {
	var next atomic.Int64
	var group errgroup.Group
	for range workers {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
			return nil
		})
	}
	_ = group.Wait() // f has no errors
}
