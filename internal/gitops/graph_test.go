package gitops_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

// madeGraph makes a graph of lines "name: dep dep"; dependants are filled in as
// discovery does.
func madeGraph(lines ...string) *gitops.FluxGraph {
	g := &gitops.FluxGraph{Kustomizations: map[gitops.KustomizationKey]gitops.KustomizationNode{}, ReverseDeps: map[gitops.KustomizationKey][]gitops.KustomizationKey{}}
	for _, l := range lines {
		name, deps, _ := strings.Cut(l, ":")
		k := key(name)
		g.Kustomizations[k] = gitops.KustomizationNode{Key: k, DependsOn: keysOf(strings.Fields(deps)...)}
	}
	for _, k := range g.Keys() {
		for _, d := range g.Kustomizations[k].DependsOn {
			if !slices.Contains(g.ReverseDeps[d], k) {
				g.ReverseDeps[d] = append(g.ReverseDeps[d], k)
			}
		}
	}
	return g
}

func names(keys []gitops.KustomizationKey) string {
	var out []string
	for _, k := range keys {
		out = append(out, short(k))
	}
	return strings.Join(out, " ")
}

func TestReconcileOrder(t *testing.T) {
	for _, tc := range []struct {
		name  string
		graph []string
		want  string
		waves string // by key, sorted
	}{
		{"empty", nil, "", ""},
		{"nothing depends: by key", []string{"b", "a", "stage/z", "prod/other/a"}, "a b prod/other/a stage/z", "0 0 0 0"},
		{"a chain", []string{"a: b", "b: c", "c"}, "c b a", "2 1 0"},
		{"a shallow leaf is not pushed behind a deep one", []string{"crds", "a: crds", "b: a", "zz: crds"}, "crds a zz b", "1 2 0 1"},
		{"depth is the longest way", []string{"root", "mid: root", "leaf: root mid"}, "root mid leaf", "2 1 0"},
		{"a diamond", []string{"top: l r", "l: base", "r: base", "base"}, "base l r top", "0 1 1 2"},
		{"a dependency outside does not count", []string{"a: elsewhere", "b"}, "a b", "0 0"},
		{"one named twice counts once", []string{"a: b b", "b"}, "b a", "1 0"},
		{"a cycle comes last, and what is behind it", []string{"a: b", "b: a", "behind: a", "free"}, "free a b behind", "-1 -1 -1 0"},
		{"itself", []string{"a: a", "b"}, "b a", "-1 0"},
		{"before a cycle is placed", []string{"a: b pre", "b: a", "pre"}, "pre a b", "-1 -1 0"},
		{"clusters don't depend on each other", []string{"prod/a: stage/b", "stage/b"}, "stage/b a", "1 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := madeGraph(tc.graph...)
			if got := names(gitops.ReconcileOrder(g)); got != tc.want {
				t.Errorf("order %q, want %q", got, tc.want)
			}
			waves := gitops.Waves(g)
			var got []string
			for _, k := range g.Keys() {
				got = append(got, fmt.Sprint(waves[k]))
			}
			if strings.Join(got, " ") != tc.waves {
				t.Errorf("waves %v of %s, want %s", got, names(g.Keys()), tc.waves)
			}
		})
	}
}

func TestTopoSort(t *testing.T) {
	g := madeGraph("a: b", "b: c", "c", "d", "x: y", "y: x")
	for _, tc := range []struct{ name, subset, want string }{
		{"nothing", "", ""},
		{"all", "a b c d x y", "c d b a x y"},
		{"the way through a key outside counts", "a c", "c a"},
		{"unknown and repeated ones are left out", "d nobody d stage/a", "d"},
		{"a cycle comes last", "y a", "a y"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			subset := keysOf(strings.Fields(tc.subset)...)
			before := slices.Clone(subset)
			if got := names(gitops.TopoSort(g, subset)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if !slices.Equal(before, subset) {
				t.Error("the argument was changed")
			}
		})
	}
}

func TestCycles(t *testing.T) {
	for _, tc := range []struct {
		name  string
		graph []string
		want  []string
		stuck string // in or behind a cycle
	}{
		{"none", []string{"a: b", "b"}, nil, ""},
		{"itself", []string{"a: a"}, []string{"a"}, "a"},
		{"two", []string{"b: a", "a: b"}, []string{"a b"}, "a b"},
		{"the order is that of waiting", []string{"a: c", "c: b", "b: a"}, []string{"a c b"}, "a b c"},
		{"behind one is not in it", []string{"a: b", "b: a", "c: a", "d: c"}, []string{"a b"}, "a b c d"},
		{"a smaller key behind one", []string{"x: y", "y: x", "a: x"}, []string{"x y"}, "a x y"},
		{"before one is neither", []string{"a: b z", "b: a", "z"}, []string{"a b"}, "a b"},
		{"two apart", []string{"a: b", "b: a", "m: n", "n: m"}, []string{"a b", "m n"}, "a b m n"},
		{"the shortest way round", []string{"a: b", "b: a c", "c: a"}, []string{"a b", "a b c"}, "a b c"},
		{"two through one key, each from its smallest", []string{"a: b c", "b: a", "c: a"}, []string{"a b", "a c"}, "a b c"},
		{"a dependency outside", []string{"a: gone"}, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := madeGraph(tc.graph...)
			var got []string
			for _, c := range gitops.Cycles(g) {
				got = append(got, names(c))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("cycles %q, want %q", got, tc.want)
			}
			stuck := slices.Collect(maps.Keys(gitops.CycleNodes(g)))
			gitops.SortKeys(stuck)
			if names(stuck) != tc.stuck {
				t.Errorf("stuck %q, want %q", names(stuck), tc.stuck)
			}
		})
	}
}

func TestDanglingDeps(t *testing.T) {
	g := madeGraph("a: b gone", "b: stage/b prod/other/b", "prod/other/c: b", "stage/b")
	got := gitops.DanglingDeps(g)
	want := map[gitops.KustomizationKey][]gitops.KustomizationKey{key("a"): keysOf("gone"), key("b"): keysOf("prod/other/b")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestOrphansAndDependants(t *testing.T) {
	g := madeGraph("a: b", "b", "alone", "wants: gone", "c: a", "x: y", "y: x")
	if got := names(gitops.Orphans(g)); got != "alone" {
		t.Errorf("orphans %q", got)
	}
	for keys, want := range map[string]string{"b": "a c", "a": "c", "c": "", "b a": "c", "x": "y", "gone": "wants", "": ""} {
		if got := names(gitops.Dependants(g, keysOf(strings.Fields(keys)...))); got != want {
			t.Errorf("dependants of %q: %q, want %q", keys, got, want)
		}
	}
	if got := g.ReverseDeps[key("b")]; names(got) != "a" {
		t.Errorf("ReverseDeps %v", got)
	}
}

func TestPathsOfGraph(t *testing.T) {
	g := madeGraph("a", "b", "c", "outside", "stage/a", "stage/b")
	for name, p := range map[string]string{"a": "apps", "b": "apps", "c": "infra", "outside": "", "stage/a": "apps", "stage/b": "."} {
		n := g.Kustomizations[key(name)]
		n.RepoPath = p
		g.Kustomizations[key(name)] = n
	}
	if got := gitops.BuildRoots(g); !slices.Equal(got, []string{".", "apps", "infra"}) {
		t.Errorf("BuildRoots %q", got)
	}
	// Two clusters that build one folder are no duplicates.
	want := map[string][]gitops.KustomizationKey{"prod:apps": keysOf("a", "b")}
	if got := gitops.DuplicatePaths(g); !reflect.DeepEqual(got, want) {
		t.Errorf("DuplicatePaths %v", got)
	}
}

func TestNames(t *testing.T) {
	keys := keysOf("stage/b/a", "prod/b/a", "prod/a/z", "prod/a/b")
	gitops.SortKeys(keys)
	if got := fmt.Sprint(keys); got != "[prod/a/b prod/a/z prod/b/a stage/b/a]" {
		t.Errorf("SortKeys %s", got)
	}
	if got := gitops.SortedKinds(map[string]int{"Service": 1, "ConfigMap": 2, "Deployment": 2, "A": 1}); !slices.Equal(got, []string{"ConfigMap", "Deployment", "A", "Service"}) {
		t.Errorf("SortedKinds %q", got)
	}
	for in, want := range map[string]string{"": ".", ".": ".", "./": ".", "/": ".", "./a/b": "a/b", "/a/b/": "a/b", "a//b/./c": "a/b/c", "../a": "a", "a/../../b": "b", "./../..": "."} {
		if got := gitops.NormalizePath(in); got != want {
			t.Errorf("NormalizePath(%q) = %q, want %q", in, got, want)
		}
	}
}

// Random graphs: every key once, dependencies before dependants where there is no
// cycle, the same order every time, whatever the order of the map and of subset.
func TestOrderHoldsOnRandomGraphs(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(30)
		var spec []string
		for i := range n {
			line := fmt.Sprintf("k%02d:", i)
			for range r.IntN(4) {
				line += fmt.Sprintf(" k%02d", r.IntN(n+2)) // some are dangling, some in cycles
			}
			spec = append(spec, line)
		}
		g := madeGraph(spec...)
		order := gitops.ReconcileOrder(g)
		sorted := slices.Clone(order)
		gitops.SortKeys(sorted)
		if !slices.Equal(sorted, g.Keys()) {
			t.Fatalf("seed %d: the order has %v of %v", seed, sorted, g.Keys())
		}
		at := map[gitops.KustomizationKey]int{}
		for i, k := range order {
			at[k] = i
		}
		stuck, waves := gitops.CycleNodes(g), gitops.Waves(g)
		inCycle := map[gitops.KustomizationKey]bool{}
		for _, c := range gitops.Cycles(g) {
			if c[0] != slices.MinFunc(c, gitops.KustomizationKey.Compare) {
				t.Fatalf("seed %d: cycle %v does not begin with its smallest key", seed, c)
			}
			for i, k := range c {
				inCycle[k] = true
				if !slices.Contains(g.Kustomizations[k].DependsOn, c[(i+1)%len(c)]) {
					t.Fatalf("seed %d: %v is no cycle", seed, c)
				}
			}
		}
		for _, k := range order {
			if stuck[k] != (waves[k] == -1) || inCycle[k] && !stuck[k] {
				t.Fatalf("seed %d: %s: stuck %v, wave %d, in a cycle %v", seed, k, stuck[k], waves[k], inCycle[k])
			}
			if got := slices.Contains(gitops.Dependants(g, g.ReverseDeps[k]), k) || slices.Contains(g.ReverseDeps[k], k); got && !stuck[k] {
				t.Fatalf("seed %d: %s waits for itself but is placed", seed, k)
			}
			for _, d := range g.Kustomizations[k].DependsOn {
				if _, known := g.Kustomizations[d]; !known || stuck[k] {
					continue
				}
				if at[d] >= at[k] || waves[d] >= waves[k] {
					t.Fatalf("seed %d: %s comes before its dependency %s", seed, k, d)
				}
			}
		}
		// Every cycle keeps somebody: a stuck key waits for a stuck one.
		for k := range stuck {
			if !slices.ContainsFunc(g.Kustomizations[k].DependsOn, func(d gitops.KustomizationKey) bool { return stuck[d] }) {
				t.Fatalf("seed %d: %s is stuck behind nothing", seed, k)
			}
		}
		shuffled := slices.Clone(order)
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if again := gitops.TopoSort(g, shuffled); !slices.Equal(again, order) {
			t.Fatalf("seed %d: the order changes: %v, %v", seed, order, again)
		}
		some := shuffled[:r.IntN(n+1)]
		var want []gitops.KustomizationKey
		for _, k := range order {
			if slices.Contains(some, k) {
				want = append(want, k)
			}
		}
		if got := gitops.TopoSort(g, some); !slices.Equal(got, want) {
			t.Fatalf("seed %d: subset %v, want %v", seed, got, want)
		}
	}
}
