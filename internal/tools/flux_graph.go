package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type fluxGraphIn struct {
	InRepo
	InCluster
	State string `json:"state,omitempty" jsonschema:"enum=rendered,enum=partial,enum=external,enum=unreferenced,enum=failed" jsonschema_description:"only these"`
	InPage
	InFormat
}

// kustomizationRow is one Kustomization of the graph.
type kustomizationRow struct {
	gitops.KustomizationKey
	Path      string         `json:"path" jsonschema_description:"spec.path in the artifact"`
	State     gitops.State   `json:"state" jsonschema_description:"how far it could be followed"`
	Wave      int            `json:"wave" jsonschema_description:"depth; -1 behind a cycle"`
	DependsOn []string       `json:"dependsOn,omitempty" jsonschema_description:"namespace/name"`
	Reason    string         `json:"reason,omitempty" jsonschema_description:"why not rendered"`
	Suspended bool           `json:"suspended,omitempty" jsonschema_description:"spec.suspend"`
	Source    string         `json:"source,omitempty" jsonschema_description:"detailed: Kind/namespace/name"`
	File      string         `json:"file,omitempty" jsonschema_description:"detailed: where it is declared"`
	Line      int            `json:"line,omitempty" jsonschema_description:"line in file"`
	Objects   map[string]int `json:"objects,omitempty" jsonschema_description:"detailed: kind: count"`
}

type danglingRow struct {
	gitops.KustomizationKey
	Missing []string `json:"missing" jsonschema_description:"namespace/name"`
}

type duplicatePath struct {
	Cluster        string   `json:"cluster" jsonschema_description:"cluster"`
	Path           string   `json:"path" jsonschema_description:"folder"`
	Kustomizations []string `json:"kustomizations" jsonschema_description:"namespace/name"`
}

type unreferencedRow struct {
	Name string `json:"name" jsonschema_description:"name"`
	File string `json:"file" jsonschema_description:"where it is declared"`
	Line int    `json:"line,omitempty" jsonschema_description:"line in file"`
}

type fluxGraphOut struct {
	repoResult
	Listed
	Clusters       []gitops.ClusterInfo        `json:"clusters" jsonschema_description:"{name, roots, from, kustomizations}"`
	States         map[gitops.State]int        `json:"states" jsonschema_description:"state: count"`
	Kustomizations []kustomizationRow          `json:"kustomizations" jsonschema_description:"in reconcile order"`
	Cycles         [][]gitops.KustomizationKey `json:"cycles" jsonschema_description:"each in order"`
	Dangling       []danglingRow               `json:"dangling" jsonschema_description:"dependsOn without target"`
	DuplicatePaths []duplicatePath             `json:"duplicatePaths" jsonschema_description:"one folder, several Kustomizations"`
	Unreferenced   []unreferencedRow           `json:"unreferenced" jsonschema_description:"files that nothing renders"`
	Bootstrap      []string                    `json:"bootstrap,omitempty" jsonschema_description:"what Flux lacks to start from here"`
}

// maxGraphLists bounds each list beside the Kustomizations.
const maxGraphLists = 50

var getFluxGraph = New(About{
	Name:        "get_flux_graph",
	Title:       "The graph of a Flux repository",
	Toolset:     GitOps,
	Hints:       reads,
	Description: "Which Flux Kustomizations does a repository hold, by cluster, in which order do they run, what is wrong with the graph (cycles, dangling dependsOn, duplicate paths, unreferenced files)? Found by rendering from the roots.",
}, func(ctx context.Context, env *Env, in fluxGraphIn) (fluxGraphOut, error) {
	repo, scope, err := env.repository(in.InRepo)
	if err != nil {
		return fluxGraphOut{}, err
	}
	g, err := env.GitOps.DiscoverFluxGraph(ctx, repo)
	if err != nil {
		return fluxGraphOut{}, fromGitops(err)
	}
	if err := knownCluster(g, in.Cluster); err != nil {
		return fluxGraphOut{}, err
	}
	out := fluxGraphOut{repoResult: repoResult{Scope: scope.in(g), Notes: g.Notes}, States: map[gitops.State]int{}, Clusters: []gitops.ClusterInfo{},
		Cycles: [][]gitops.KustomizationKey{}, Dangling: []danglingRow{}, DuplicatePaths: []duplicatePath{}, Unreferenced: []unreferencedRow{}}
	mine := func(cluster string) bool { return in.Cluster == "" || cluster == in.Cluster }
	for _, c := range g.Clusters {
		if mine(c.Name) {
			out.Clusters = append(out.Clusters, c)
		}
	}
	waves := gitops.Waves(g)
	var rows []kustomizationRow
	for _, k := range gitops.ReconcileOrder(g) {
		n := g.Kustomizations[k]
		if !mine(k.Cluster) {
			continue
		}
		out.States[n.State]++
		if in.State != "" && string(n.State) != in.State {
			continue
		}
		row := kustomizationRow{KustomizationKey: k, Path: n.Path, State: n.State, Wave: waves[k], Reason: ops.Clean(n.Reason, 300), Suspended: n.Suspended}
		for _, d := range n.DependsOn {
			row.DependsOn = append(row.DependsOn, d.Namespace+"/"+d.Name)
		}
		if in.detailed() {
			row.Source, row.File, row.Line, row.Objects = n.SourceRef.String(), n.Place.File, n.Place.Line, n.Kinds()
		}
		rows = append(rows, row)
	}
	for _, u := range g.Unreferenced {
		out.States[gitops.StateUnreferenced]++
		if len(out.Unreferenced) < maxGraphLists {
			out.Unreferenced = append(out.Unreferenced, unreferencedRow{u.Key.Name, u.Place.File, u.Place.Line})
		}
	}
	for _, c := range gitops.Cycles(g) {
		if mine(c[0].Cluster) && len(out.Cycles) < maxGraphLists {
			out.Cycles = append(out.Cycles, c)
		}
	}
	dangling := gitops.DanglingDeps(g)
	for _, k := range g.Keys() {
		if missing := dangling[k]; len(missing) > 0 && mine(k.Cluster) && len(out.Dangling) < maxGraphLists {
			row := danglingRow{KustomizationKey: k}
			for _, m := range missing {
				row.Missing = append(row.Missing, m.Namespace+"/"+m.Name)
			}
			out.Dangling = append(out.Dangling, row)
		}
	}
	paths := gitops.DuplicatePaths(g)
	for _, p := range sortedPaths(paths) {
		cluster, folder, _ := strings.Cut(p, ":")
		if !mine(cluster) || len(out.DuplicatePaths) >= maxGraphLists {
			continue
		}
		d := duplicatePath{Cluster: cluster, Path: folder}
		for _, k := range paths[p] {
			d.Kustomizations = append(d.Kustomizations, k.Namespace+"/"+k.Name)
		}
		out.DuplicatePaths = append(out.DuplicatePaths, d)
	}
	out.Bootstrap = gitops.DetectBootstrapRequired(g).Missing
	order := map[gitops.KustomizationKey]int{}
	for i, r := range rows {
		order[r.KustomizationKey] = i
	}
	page, err := ops.Paginate(rows, func(r kustomizationRow) string { return fmt.Sprintf("%06d", order[r.KustomizationKey]) }, in.Limit, in.Cursor,
		"get_flux_graph", scope.Repository, in.Ref, in.Cluster, in.State)
	if err != nil {
		return fluxGraphOut{}, err
	}
	out.Listed, out.Kustomizations = listed(page), page.Items
	out.Summary = graphSummary(g, out, in.Cluster)
	masked(&out, g.Mask)
	if out.States[gitops.StateFailed] > 0 || len(out.Dangling)+len(out.Cycles) > 0 {
		out.NextSteps = []ops.NextStep{{Tool: "validate_manifests", Arguments: in.again(), Why: "each problem with file and line"}}
	}
	return out, nil
}, func(w *Writer, out fluxGraphOut) {
	w.Summary(out.Summary)
	for _, c := range out.Clusters {
		w.Item("cluster %s: %s from %s (%s)", c.Name, plural(c.Kustomizations, "Kustomization"), strings.Join(c.Roots, ", "), c.From)
	}
	t := w.Table("WAVE", "CLUSTER", "NAMESPACE", "NAME", "STATE", "PATH", "DEPENDS ON")
	for _, r := range out.Kustomizations {
		t.Row(fmt.Sprint(r.Wave), r.Cluster, r.Namespace, r.Name, string(r.State), r.Path, strings.Join(r.DependsOn, ", "))
	}
	t.Flush()
	for _, r := range out.Kustomizations {
		if r.Reason != "" {
			w.Item("%s: %s", r.KustomizationKey, r.Reason)
		}
	}
	for _, c := range out.Cycles {
		w.Item("cycle: %s", keyNames(c, " → "))
	}
	for _, d := range out.Dangling {
		w.Item("%s depends on %s, which is not there", d.KustomizationKey, strings.Join(d.Missing, ", "))
	}
	for _, d := range out.DuplicatePaths {
		w.Item("cluster %s: %s is built by %s", d.Cluster, d.Path, strings.Join(d.Kustomizations, ", "))
	}
	for _, u := range out.Unreferenced {
		w.Item("unreferenced: Kustomization %s in %s:%d", u.Name, u.File, u.Line)
	}
	for _, m := range out.Bootstrap {
		w.Item("to start Flux from here: %s", m)
	}
	w.more(out.Truncated, out.NextCursor)
	w.repo(out.repoResult)
})

// again are the arguments that ask another tool about the same files.
func (in InRepo) again() map[string]string {
	m := map[string]string{}
	if in.Repo != "" {
		m["repo"] = in.Repo
	}
	if in.Ref != "" {
		m["ref"] = in.Ref
	}
	return m
}

func sortedPaths(m map[string][]gitops.KustomizationKey) []string {
	out := make([]string, 0, len(m))
	for p := range m {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

func graphSummary(g *gitops.FluxGraph, out fluxGraphOut, cluster string) string {
	total := 0
	for s, n := range out.States {
		if s != gitops.StateUnreferenced {
			total += n
		}
	}
	if total == 0 && len(g.Unreferenced) == 0 {
		return "no Flux content: no file of the repository declares a Flux Kustomization"
	}
	s := fmt.Sprintf("%s in %s", plural(total, "Kustomization"), plural(len(out.Clusters), "cluster"))
	if cluster != "" {
		s = fmt.Sprintf("%s in cluster %s", plural(total, "Kustomization"), cluster)
	}
	var parts []string
	for _, m := range gitops.States {
		if n := out.States[m.Code]; n > 0 && m.Code != gitops.StateUnreferenced {
			parts = append(parts, fmt.Sprintf("%d %s", n, m.Code))
		}
	}
	s += ": " + strings.Join(parts, ", ")
	for _, p := range []struct {
		n    int
		what string
	}{{len(out.Cycles), "cycle"}, {len(out.Dangling), "dangling dependency"}, {len(out.Unreferenced), "unreferenced file"}} {
		if p.n > 0 {
			s += "; " + strings.Replace(plural(p.n, p.what), "dependencys", "dependencies", 1)
		}
	}
	return s
}

func keyNames(keys []gitops.KustomizationKey, sep string) string {
	var out []string
	for _, k := range keys {
		out = append(out, k.String())
	}
	return strings.Join(out, sep)
}

// repo prints the common part of an answer about a repository.
func (w *Writer) repo(r repoResult) {
	for _, n := range r.Notes {
		w.Line("note: %s", n)
	}
	w.tail(nil, nil, r.NextSteps, nil)
}
