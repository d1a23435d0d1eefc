package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type validateIn struct {
	InRepo
	InCluster
	Kustomization     string `json:"kustomization,omitempty" jsonschema_description:"part of the name"`
	Severity          string `json:"severity,omitempty" jsonschema:"enum=fail,enum=warn,enum=pass" jsonschema_description:"at least; default warn"`
	KubernetesVersion string `json:"kubernetesVersion,omitempty" jsonschema_description:"schemas, such as 1.36"`
	InPage
	InFormat
}

type validateOut struct {
	repoResult
	Listed
	// Status is the worst verdict; the command line's exit code 4 is fail.
	Status   gitops.Severity       `json:"status" jsonschema_description:"worst verdict"`
	Counts   map[string]int        `json:"counts" jsonschema_description:"findings: code: count"`
	Verdicts []gitops.Verdict      `json:"verdicts" jsonschema_description:"not passed (detailed: all)"`
	Passed   int                   `json:"passed" jsonschema_description:"Kustomizations without a failure or warning"`
	Findings []gitops.Finding      `json:"findings" jsonschema_description:"the worst first"`
	Coverage gitops.ValidationMeta `json:"coverage" jsonschema_description:"{kubernetesVersion, objects, validated, uncovered, byAuthority, notExpanded}"`
}

// Failed tells the command line that the verdict is a failure.
func (o validateOut) Failed() bool { return o.Status == gitops.SeverityFail }

// maxVerdicts bounds the verdicts of an answer; the counts are whole.
const maxVerdicts = 60

var validateManifests = New(About{
	Name:    "validate_manifests",
	Title:   "Validate a Flux repository",
	Toolset: GitOps,
	Hints:   reads,
	Description: "Is a Flux repository sound? Renders every Kustomization as Flux does; checks graph, builds, and each object against Kubernetes schemas and the repository's CRDs. " +
		"A verdict each, coded findings with file and line; what no schema covers is counted, not called valid. Offline.",
}, func(ctx context.Context, env *Env, in validateIn) (validateOut, error) {
	repo, scope, err := env.repository(in.InRepo)
	if err != nil {
		return validateOut{}, err
	}
	if err := errors.Join(short("kustomization", in.Kustomization), short("kubernetesVersion", in.KubernetesVersion)); err != nil {
		return validateOut{}, err
	}
	version := in.KubernetesVersion
	if version == "" {
		version = env.KubernetesVersion
	}
	options, err := env.live.options(ctx, env)
	if err != nil {
		return validateOut{}, err
	}
	options.KubernetesVersion = version
	v, err := env.GitOps.ValidateManifests(ctx, repo, options)
	if err != nil {
		return validateOut{}, fromGitops(err)
	}
	if err := knownCluster(v.Graph, in.Cluster); err != nil {
		return validateOut{}, err
	}
	if err := knownKustomization(v.Graph, in.Cluster, in.Kustomization); err != nil {
		return validateOut{}, err
	}
	out := validateOut{repoResult: repoResult{Scope: scope.in(v.Graph), Notes: v.Graph.Notes}, Status: gitops.SeverityPass, Counts: map[string]int{}, Coverage: v.Meta, Verdicts: []gitops.Verdict{}}
	mine := func(k gitops.KustomizationKey) bool {
		return (in.Cluster == "" || k.Cluster == in.Cluster) && strings.Contains(k.Name, in.Kustomization)
	}
	counts := map[gitops.Severity]int{}
	for _, x := range v.Verdicts {
		if !mine(x.KustomizationKey) {
			continue
		}
		counts[x.Status]++
		if x.Status == gitops.SeverityPass {
			out.Passed++
			if !in.detailed() {
				continue
			}
		}
		out.Verdicts = append(out.Verdicts, x)
	}
	slices.SortStableFunc(out.Verdicts, func(a, b gitops.Verdict) int { return gitops.CompareSeverity(b.Status, a.Status) })
	least := gitops.SeverityWarn
	if in.Severity != "" {
		least = gitops.Severity(in.Severity)
	}
	var findings []gitops.Finding
	worst := gitops.SeverityPass
	for _, f := range v.Findings {
		if (in.Cluster != "" || in.Kustomization != "") && !slices.ContainsFunc(f.Kustomizations, mine) {
			continue
		}
		if gitops.CompareSeverity(f.Severity, worst) > 0 {
			worst = f.Severity
		}
		out.Counts[string(f.Code)]++
		if gitops.CompareSeverity(f.Severity, least) < 0 {
			continue
		}
		f = cleanFinding(f)
		if !in.detailed() {
			f.Raw, f.Schema = "", ""
			f.Kustomizations = f.Kustomizations[:min(len(f.Kustomizations), 5)]
		}
		findings = append(findings, f)
	}
	out.Status = worst
	for s, n := range counts {
		if n > 0 && gitops.CompareSeverity(s, out.Status) > 0 {
			out.Status = s
		}
	}
	// A page has verdicts beside findings: the bytes are shared.
	if hidden := len(out.Verdicts) - maxVerdicts; hidden > 0 {
		out.Verdicts = out.Verdicts[:maxVerdicts]
		out.Notes = append(out.Notes, fmt.Sprintf("%d more verdicts are not shown: narrow with cluster or kustomization", hidden))
	}
	if !in.detailed() {
		out.Coverage.Validated = nil
	}
	index := 0
	position := func(gitops.Finding) string { index++; return fmt.Sprintf("%06d", index) }
	keys := make(map[string]string, len(findings))
	for _, f := range findings {
		keys[findingID(f)] = position(f)
	}
	page, err := ops.Paginate(findings, func(f gitops.Finding) string { return keys[findingID(f)] }, in.Limit, in.Cursor,
		"validate_manifests", scope.Repository, in.Ref, in.Cluster, in.Kustomization, in.Severity, in.KubernetesVersion, in.Format)
	if err != nil {
		return validateOut{}, err
	}
	out.Listed, out.Findings = listed(page), page.Items
	out.Summary = validateSummary(out, counts, v.Meta)
	masked(&out, v.Graph.Mask)
	return out, nil
}, func(w *Writer, out validateOut) {
	w.Summary(out.Summary)
	for _, f := range out.Findings {
		head := fmt.Sprintf("%s %s", f.Severity, w.Code(string(f.Code)))
		if p := place(f); p != "" {
			head += " " + p
		}
		w.Item("%s", head)
		w.Sub("%s", f.Message)
		var about []string
		if f.Object != nil {
			about = append(about, f.Object.String())
		}
		if f.Field != "" {
			about = append(about, f.Field)
		}
		if len(f.Kustomizations) > 0 {
			about = append(about, "in "+keyNames(f.Kustomizations, ", "))
		}
		if len(about) > 0 {
			w.Sub("%s", strings.Join(about, "  "))
		}
	}
	if len(out.Verdicts) > 0 {
		t := w.Table("VERDICT", "CLUSTER", "NAMESPACE", "NAME", "STATE", "OBJECTS", "FAIL", "WARN")
		for _, v := range out.Verdicts {
			t.Row(string(v.Status), v.Cluster, v.Namespace, v.Name, string(v.State), fmt.Sprint(v.Objects), fmt.Sprint(v.Fail), fmt.Sprint(v.Warn))
		}
		t.Flush()
	}
	w.Fact("coverage", coverage(out.Coverage))
	w.more(out.Truncated, out.NextCursor)
	w.repo(out.repoResult)
})

// findingID tells findings of one answer apart.
func findingID(f gitops.Finding) string {
	o := ""
	if f.Object != nil {
		o = f.Object.APIVersion + f.Object.String()
	}
	return strings.Join([]string{string(f.Code), string(f.Source), o, f.Field, f.Message, f.File, fmt.Sprint(f.Line), keyNames(f.Kustomizations, " ")}, "\x00")
}

func coverage(m gitops.ValidationMeta) string {
	uncovered := 0
	for _, n := range m.Uncovered {
		uncovered += n
	}
	s := fmt.Sprintf("%d of %d objects checked against Kubernetes %s", m.Objects-uncovered, m.Objects, m.KubernetesVersion)
	if uncovered > 0 {
		kinds := gitops.SortedKinds(m.Uncovered)
		more := ""
		if len(kinds) > 5 {
			more = fmt.Sprintf(" and %d more kinds", len(kinds)-5)
			kinds = kinds[:5]
		}
		s += fmt.Sprintf("; no schema for %d: %s%s", uncovered, strings.Join(kinds, ", "), more)
	}
	if m.NotExpanded > 0 {
		s += fmt.Sprintf("; %d charts or ResourceSets not looked into", m.NotExpanded)
	}
	return s
}

func validateSummary(out validateOut, counts map[gitops.Severity]int, m gitops.ValidationMeta) string {
	total := counts[gitops.SeverityFail] + counts[gitops.SeverityWarn] + counts[gitops.SeverityPass]
	if total == 0 && len(out.Findings) == 0 {
		return "nothing to validate: no Flux Kustomization found"
	}
	head := "sound"
	switch out.Status {
	case gitops.SeverityFail:
		head = "fails"
	case gitops.SeverityWarn:
		head = "no failure, but warnings"
	}
	s := fmt.Sprintf("%s: of %s %d fail, %d warn, %d pass", head, plural(total, "Kustomization"), counts[gitops.SeverityFail], counts[gitops.SeverityWarn], counts[gitops.SeverityPass])
	return s + "; " + coverage(m)
}
