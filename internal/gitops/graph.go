package gitops

import (
	"cmp"
	"slices"
	"strings"
)

// State is how far a Kustomization could be followed.
type State string

// The states of a node.
const (
	StateRendered     State = "rendered"
	StatePartial      State = "partial"
	StateExternal     State = "external"
	StateUnreferenced State = "unreferenced"
	StateFailed       State = "failed"
)

// States are all node states and what they mean.
var States = []Meaning[State]{
	{StateRendered, "built from this repository, whole"},
	{StatePartial, "built, but remote entries or unknown variables leave gaps: see reason"},
	{StateExternal, "its source is another repository or artifact: see reason"},
	{StateUnreferenced, "its file is rendered by no Kustomization: Flux does not know it"},
	{StateFailed, "it can't be built: see reason"},
}

// SourceRef names the source of a Kustomization.
type SourceRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is Kind/namespace/name.
func (s SourceRef) String() string { return s.Kind + "/" + s.Namespace + "/" + s.Name }

// Place is where something stands in the repository.
type Place struct {
	File string
	Line int
}

// KustomizationNode is one Flux Kustomization of one cluster.
type KustomizationNode struct {
	Key KustomizationKey
	// Path is spec.path, normalized, against the root of the source's artifact.
	Path string
	// RepoPath is the same folder in this repository, "" when it is elsewhere.
	RepoPath string
	// DependsOn are the keys that spec.dependsOn names, in that order.
	DependsOn []KustomizationKey
	SourceRef SourceRef
	State     State
	// Reason says why the state is not rendered.
	Reason string
	// Root is set on what Flux is started with; Parent is the Kustomization
	// that renders this one otherwise.
	Root      bool
	Parent    KustomizationKey
	Suspended bool
	// Place is where its document stands.
	Place Place

	node *node
}

// FluxGraph is the graph of a repository at one ref.
type FluxGraph struct {
	Kustomizations map[KustomizationKey]KustomizationNode
	// ReverseDeps are the keys that wait for a key, sorted.
	ReverseDeps map[KustomizationKey][]KustomizationKey
	// Unreferenced are documents of Kustomizations that nothing renders.
	Unreferenced []KustomizationNode
	// Clusters are the clusters' names with their root paths, sorted.
	Clusters []ClusterInfo
	// Findings are what discovery itself found.
	Findings []Finding
	// Notes say what a reader should know of the repository itself.
	Notes []string
	// Commit is what was read; Worktree says that it was the files on disk, and
	// Dirty, when it is known, whether they differ from the commit.
	Commit   string
	Worktree bool
	Dirty    *bool

	repo    *snapshot
	secrets *strings.Replacer
}

// ClusterInfo is one cluster of the repository.
type ClusterInfo struct {
	Name           string   `json:"name" jsonschema_description:"cluster"`
	Roots          []string `json:"roots" jsonschema_description:"paths or files that Flux is started with"`
	From           string   `json:"from" jsonschema_description:"how it was found: config, FluxInstance, bootstrap, document"`
	Kustomizations int      `json:"kustomizations" jsonschema_description:"how many"`
}

// Kinds counts the objects that a Kustomization renders, by kind.
func (n KustomizationNode) Kinds() map[string]int {
	out := map[string]int{}
	if n.node != nil {
		for _, m := range n.node.manifests {
			out[m.Kind]++
		}
	}
	return out
}

// Keys returns all keys, sorted.
func (g *FluxGraph) Keys() []KustomizationKey {
	keys := make([]KustomizationKey, 0, len(g.Kustomizations))
	for k := range g.Kustomizations {
		keys = append(keys, k)
	}
	SortKeys(keys)
	return keys
}

// index fills ReverseDeps from the nodes.
func (g *FluxGraph) index() {
	g.ReverseDeps = map[KustomizationKey][]KustomizationKey{}
	for _, k := range g.Keys() {
		for _, d := range g.Kustomizations[k].DependsOn {
			if !slices.Contains(g.ReverseDeps[d], k) {
				g.ReverseDeps[d] = append(g.ReverseDeps[d], k)
			}
		}
	}
}

// depths gives each key that can be placed the length of the longest chain of
// dependsOn below it. Keys in a cycle, or behind one, have none.
func depths(g *FluxGraph) map[KustomizationKey]int {
	waits := map[KustomizationKey]int{}
	depth := map[KustomizationKey]int{}
	after := map[KustomizationKey][]KustomizationKey{}
	var ready []KustomizationKey
	for _, k := range g.Keys() {
		seen := map[KustomizationKey]bool{}
		for _, d := range g.Kustomizations[k].DependsOn {
			if _, known := g.Kustomizations[d]; known && !seen[d] {
				seen[d] = true
				waits[k]++
				after[d] = append(after[d], k)
			}
		}
		if waits[k] == 0 {
			ready = append(ready, k)
			depth[k] = 0
		}
	}
	placed := map[KustomizationKey]int{}
	for len(ready) > 0 {
		k := ready[0]
		ready = ready[1:]
		placed[k] = depth[k]
		for _, n := range after[k] {
			depth[n] = max(depth[n], depth[k]+1)
			if waits[n]--; waits[n] == 0 {
				ready = append(ready, n)
			}
		}
	}
	return placed
}

// ReconcileOrder returns every key with its dependencies before it: by depth,
// then cluster, namespace and name, which is the order in which Flux, that
// starts everything whose dependencies are ready, gets to them. Dependencies
// outside the graph don't count; what can't be placed comes last, sorted.
func ReconcileOrder(g *FluxGraph) []KustomizationKey { return order(g, g.Keys()) }

// TopoSort is ReconcileOrder of a subset: depths are those in the whole graph,
// so a chain through a key outside the subset still counts. Unknown keys and
// duplicates are left out.
func TopoSort(g *FluxGraph, subset []KustomizationKey) []KustomizationKey { return order(g, subset) }

func order(g *FluxGraph, keys []KustomizationKey) []KustomizationKey {
	depth := depths(g)
	var out, rest []KustomizationKey
	seen := map[KustomizationKey]bool{}
	for _, k := range keys {
		if _, known := g.Kustomizations[k]; !known || seen[k] {
			continue
		}
		seen[k] = true
		if _, placed := depth[k]; placed {
			out = append(out, k)
		} else {
			rest = append(rest, k)
		}
	}
	slices.SortFunc(out, func(a, b KustomizationKey) int { return cmp.Or(cmp.Compare(depth[a], depth[b]), a.Compare(b)) })
	SortKeys(rest)
	return append(out, rest...)
}

// Waves gives each key its wave: the depth of dependsOn below it, -1 when a
// cycle keeps it from ever running.
func Waves(g *FluxGraph) map[KustomizationKey]int {
	depth := depths(g)
	out := make(map[KustomizationKey]int, len(g.Kustomizations))
	for k := range g.Kustomizations {
		if d, ok := depth[k]; ok {
			out[k] = d
		} else {
			out[k] = -1
		}
	}
	return out
}

// CycleNodes returns the keys that can never run: those in a cycle of dependsOn
// and those behind one.
func CycleNodes(g *FluxGraph) map[KustomizationKey]bool {
	depth := depths(g)
	out := map[KustomizationKey]bool{}
	for k := range g.Kustomizations {
		if _, ok := depth[k]; !ok {
			out[k] = true
		}
	}
	return out
}

// Cycles returns cycles of dependsOn, each in order and beginning with its
// smallest key, so that every key in a cycle is named: the shortest way round
// through the smallest key that no cycle before names.
func Cycles(g *FluxGraph) [][]KustomizationKey {
	stuck := CycleNodes(g)
	var out [][]KustomizationKey
	done := map[KustomizationKey]bool{}
	for _, start := range g.Keys() {
		if !stuck[start] || done[start] {
			continue
		}
		way := shortestWayBack(g, start)
		if way == nil {
			continue // behind a cycle, not in one
		}
		first := 0
		for i, k := range way {
			done[k] = true
			if k.Compare(way[first]) < 0 {
				first = i
			}
		}
		out = append(out, append(slices.Clone(way[first:]), way[:first]...))
	}
	return out
}

// shortestWayBack follows dependsOn breadth first until it meets start again.
func shortestWayBack(g *FluxGraph, start KustomizationKey) []KustomizationKey {
	from := map[KustomizationKey]KustomizationKey{}
	queue := []KustomizationKey{start}
	for len(queue) > 0 {
		k := queue[0]
		queue = queue[1:]
		for _, d := range g.Kustomizations[k].DependsOn {
			if d == start {
				way := []KustomizationKey{k}
				for k != start {
					k = from[k]
					way = append(way, k)
				}
				slices.Reverse(way)
				return way
			}
			if _, known := g.Kustomizations[d]; !known {
				continue
			}
			if _, seen := from[d]; !seen {
				from[d] = k
				queue = append(queue, d)
			}
		}
	}
	return nil
}

// DanglingDeps returns, by key, the dependsOn that name no Kustomization of the
// graph. The referrer is the key.
func DanglingDeps(g *FluxGraph) map[KustomizationKey][]KustomizationKey {
	out := map[KustomizationKey][]KustomizationKey{}
	for k, n := range g.Kustomizations {
		for _, d := range n.DependsOn {
			// A name with a variable that nobody substituted names nothing yet.
			if _, known := g.Kustomizations[d]; !known && variableIn(d.Namespace+d.Name) == "" {
				out[k] = append(out[k], d)
			}
		}
	}
	return out
}

// DuplicatePaths returns the folders of this repository that several
// Kustomizations of one cluster build, as "cluster:path", with their keys.
func DuplicatePaths(g *FluxGraph) map[string][]KustomizationKey {
	by := map[string][]KustomizationKey{}
	for _, k := range g.Keys() {
		if p := g.Kustomizations[k].RepoPath; p != "" {
			by[k.Cluster+":"+p] = append(by[k.Cluster+":"+p], k)
		}
	}
	for p, keys := range by {
		if len(keys) < 2 {
			delete(by, p)
		}
	}
	return by
}

// Orphans returns the keys that wait for nothing and for which nothing waits.
func Orphans(g *FluxGraph) []KustomizationKey {
	var out []KustomizationKey
	for _, k := range g.Keys() {
		if len(g.Kustomizations[k].DependsOn) == 0 && len(g.ReverseDeps[k]) == 0 {
			out = append(out, k)
		}
	}
	return out
}

// BuildRoots returns the folders of this repository that are built, each once,
// sorted.
func BuildRoots(g *FluxGraph) []string {
	var out []string
	for _, n := range g.Kustomizations {
		if n.RepoPath != "" {
			out = append(out, n.RepoPath)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Dependants returns everything that waits for one of the keys, directly or
// through others, without the keys themselves, sorted.
func Dependants(g *FluxGraph, keys []KustomizationKey) []KustomizationKey {
	seen := map[KustomizationKey]bool{}
	for _, k := range keys {
		seen[k] = true
	}
	queue := slices.Clone(keys)
	var out []KustomizationKey
	for len(queue) > 0 {
		k := queue[0]
		queue = queue[1:]
		for _, n := range g.ReverseDeps[k] {
			if !seen[n] {
				seen[n] = true
				out = append(out, n)
				queue = append(queue, n)
			}
		}
	}
	SortKeys(out)
	return out
}
