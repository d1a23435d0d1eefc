package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type impactIn struct {
	Base string `json:"base,omitempty" jsonschema_description:"compare with its merge base; default: origin's default branch, else main"`
	InRepo
	InCluster
	InPage
	InFormat
}

type impactOut struct {
	repoResult
	Listed
	Base                 string                    `json:"base" jsonschema_description:"merge base's commit"`
	ChangedFiles         []gitops.ChangedFile      `json:"changedFiles" jsonschema_description:"{file, change}; concise: the first 50"`
	DirectlyAffected     []gitops.Affected         `json:"directlyAffected" jsonschema_description:"rendered output differs"`
	TransitivelyAffected []gitops.Waiting          `json:"transitivelyAffected" jsonschema_description:"wait, do not change: {cluster, namespace, name, wave}"`
	ReconcileSet         []gitops.KustomizationKey `json:"reconcileSet" jsonschema_description:"both, dependencies first"`
	UnmappedFiles        []gitops.UnmappedFile     `json:"unmappedFiles" jsonschema_description:"changed, affect nothing"`
	Counts               map[string]int            `json:"counts" jsonschema_description:"{list: count}, whole"`
	Gates                []ops.FluxUse             `json:"gates,omitempty" jsonschema_description:"that look at an affected one: {gate, namespace, through, object}"`
	Findings             []gitops.Finding          `json:"findings,omitempty" jsonschema_description:"about the change itself, as in validate_manifests"`
}

// Said names what validate_manifests spells out.
func (impactOut) Said() map[string]string {
	return map[string]string{"findings": "about the change itself, as in validate_manifests"}
}

// Bounds of the lists beside the affected Kustomizations, which are paged, and
// of what is shown of each.
const (
	maxImpactList    = 50
	maxObjectsShown  = 12
	maxReasonsShown  = 3
	maxReasonsDetail = 20
)

var computeImpact = New(About{
	Name:    "compute_impact",
	Title:   "What a change touches",
	Toolset: GitOps,
	Hints:   reads,
	Description: "What does a change (ref, or the working tree) do to a Flux repository? Compares what is rendered at merge base and head: which Kustomizations change and why, " +
		"objects added, changed, pruned, what waits for them, files that map to nothing; Gates when there is a cluster. Offline.",
}, func(ctx context.Context, env *Env, in impactIn) (impactOut, error) {
	repo, scope, err := env.repository(in.InRepo)
	if err != nil {
		return impactOut{}, err
	}
	if err := short("base", in.Base); err != nil {
		return impactOut{}, err
	}
	if strings.HasPrefix(in.Base, "-") || strings.ContainsAny(in.Base, "\x00\n") {
		return impactOut{}, invalid("base: %s is no branch, tag or commit", quote(in.Base))
	}
	r, err := env.GitOps.ComputeImpact(ctx, repo, in.Base)
	if err != nil {
		return impactOut{}, fromGitops(err)
	}
	out := impactOut{repoResult: repoResult{Scope: scope.in(r.Graph), Notes: r.Graph.Notes}, Base: r.Base,
		ChangedFiles: []gitops.ChangedFile{}, TransitivelyAffected: []gitops.Waiting{}, ReconcileSet: []gitops.KustomizationKey{}, UnmappedFiles: []gitops.UnmappedFile{}}
	mine := func(k gitops.KustomizationKey) bool { return in.Cluster == "" || k.Cluster == in.Cluster }
	if in.Cluster != "" && !r.HasCluster(in.Cluster) {
		return impactOut{}, knownCluster(r.Graph, in.Cluster)
	}
	limit := maxImpactList
	if in.detailed() {
		limit = 4 * maxImpactList
	}
	var affected []gitops.Affected
	var keys []gitops.KustomizationKey
	effects := map[gitops.Effect]int{}
	for _, a := range r.DirectlyAffected {
		if !mine(a.KustomizationKey) {
			continue
		}
		keys = append(keys, a.KustomizationKey)
		effects[a.Effect]++
		affected = append(affected, shownAffected(a, in.detailed()))
	}
	waiting := filter(r.TransitivelyAffected, func(w gitops.Waiting) bool { return mine(w.KustomizationKey) })
	set := filter(r.ReconcileSet, mine)
	out.Counts = map[string]int{"changedFiles": len(r.ChangedFiles), "directlyAffected": len(affected), "transitivelyAffected": len(waiting), "reconcileSet": len(set), "unmappedFiles": len(r.UnmappedFiles)}
	out.ChangedFiles = append(out.ChangedFiles, firstOf(r.ChangedFiles, limit)...)
	out.TransitivelyAffected = append(out.TransitivelyAffected, firstOf(waiting, limit)...)
	out.ReconcileSet = append(out.ReconcileSet, firstOf(set, 2*limit)...)
	out.UnmappedFiles = append(out.UnmappedFiles, firstOf(r.UnmappedFiles, limit)...)
	for _, f := range r.Findings {
		out.Findings = append(out.Findings, cleanFinding(f))
	}
	gates, note := env.gatesOf(ctx, keys)
	out.Gates = firstOf(gates, maxImpactList)
	if note != "" {
		out.Notes = append(out.Notes, note)
	}
	page, err := ops.Paginate(affected, func(a gitops.Affected) string { return a.Cluster + "\x00" + a.Namespace + "\x00" + a.Name }, in.Limit, in.Cursor,
		"compute_impact", scope.Repository, in.Base, in.Ref, in.Cluster, in.Format, r.Base)
	if err != nil {
		return impactOut{}, err
	}
	out.Listed, out.DirectlyAffected = listed(page), page.Items
	out.Summary = impactSummary(r, out, effects)
	masked(&out, r.Mask)
	if len(affected) > 0 {
		out.NextSteps = []ops.NextStep{{Tool: "validate_manifests", Arguments: in.again(), Why: "whether what it renders is sound"}}
	}
	return out, nil
}, func(w *Writer, out impactOut) {
	w.Summary(out.Summary)
	for _, a := range out.DirectlyAffected {
		w.Item("%s %s%s", a.KustomizationKey, w.Code(string(a.Effect)), kindCounts(a.Kinds))
		if a.Detail != "" {
			w.Sub("%s", a.Detail)
		}
		for _, r := range a.Reasons {
			w.Sub("%s", strings.Join(r.Path, " → "))
		}
		for _, o := range a.Objects {
			note := ""
			if o.Expands {
				note = " (what it expands to is not looked at)"
			}
			w.Sub("%s %s%s", o.Change, o.Object, note)
		}
	}
	if len(out.TransitivelyAffected) > 0 {
		w.Head("wait for these, and do not change")
		for _, t := range out.TransitivelyAffected {
			w.Item("%s (wave %d)", t.KustomizationKey, t.Wave)
		}
	}
	if len(out.Gates) > 0 {
		w.Head("Gates that look at them")
		for _, g := range out.Gates {
			w.Item("%s/%s through its %s: %s", g.Namespace, g.Gate, g.Through, strings.Trim(g.Object.Kind+" "+g.Object.Namespace+"/"+g.Object.Name, "/"))
		}
	}
	if len(out.UnmappedFiles) > 0 {
		w.Head("changed files that affect nothing")
		for _, u := range out.UnmappedFiles {
			detail := ""
			if u.Detail != "" {
				detail = ": " + u.Detail
			}
			w.Item("%s %s%s", u.File, w.Code(string(u.Reason)), detail)
		}
	}
	for _, f := range out.Findings {
		w.Item("%s %s %s: %s", f.Severity, w.Code(string(f.Code)), place(f), f.Message)
	}
	w.more(out.Truncated, out.NextCursor)
	w.repo(out.repoResult)
})

// shownAffected bounds what is shown of one Kustomization.
func shownAffected(a gitops.Affected, detailed bool) gitops.Affected {
	reasons, objects := maxReasonsShown, maxObjectsShown
	if detailed {
		reasons, objects = maxReasonsDetail, 10*maxObjectsShown
	}
	a.Reasons, a.Objects = firstOf(a.Reasons, reasons), firstOf(a.Objects, objects)
	a.Detail = ops.Clean(a.Detail, 300)
	return a
}

func filter[T any](in []T, keep func(T) bool) []T {
	var out []T
	for _, x := range in {
		if keep(x) {
			out = append(out, x)
		}
	}
	return out
}

func firstOf[T any](in []T, n int) []T { return in[:min(len(in), n)] }

// kindCounts is ": 2 Deployment, 1 Service", the most first.
func kindCounts(m map[string]int) string {
	var parts []string
	for _, k := range gitops.SortedKinds(m) {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], k))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(firstOf(parts, 6), ", ")
}

func impactSummary(r *gitops.ImpactResult, out impactOut, effects map[gitops.Effect]int) string {
	if len(r.ChangedFiles) == 0 {
		return "nothing changed"
	}
	s := fmt.Sprintf("%s: %s affected", plural(len(r.ChangedFiles), "changed file"), plural(out.Counts["directlyAffected"], "Kustomization"))
	var parts []string
	for _, m := range gitops.Effects {
		if n := effects[m.Code]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, m.Code))
		}
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	if n := out.Counts["transitivelyAffected"]; n > 0 {
		s += fmt.Sprintf(", %d wait for them", n)
	}
	if n := out.Counts["unmappedFiles"]; n > 0 {
		verb := "affect"
		if n == 1 {
			verb = "affects"
		}
		s += fmt.Sprintf("; %s %s nothing", plural(n, "file"), verb)
	}
	return s
}
