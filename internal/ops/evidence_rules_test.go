package ops

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

// TestTypesBeyondTheList holds that a type counts as attested only if every
// attestation of it is compliant, also those that the answer does not show.
func TestTypesBeyondTheList(t *testing.T) {
	at := func(i int) time.Time { return clock.Add(-time.Duration(i) * time.Minute) }
	var list []fides.AttestationHit
	for i := range maxAttestations + 2 {
		list = append(list, fides.AttestationHit{TypeName: "promotion", IsCompliant: true, CreatedAt: at(i)})
	}
	list[0].TypeName = "unit-tests"
	list = append(list, fides.AttestationHit{TypeName: "unit-tests", CreatedAt: at(30)}, fides.AttestationHit{TypeName: "sbom", IsCompliant: true, CreatedAt: at(31)})
	a := ArtifactEvidence{Repo: "r", Status: ArtifactOnTrail, Conclusion: ConcludeApprove}
	a.attested(list, true)
	b := testBundle("web-1", time.Hour, v1alpha1.BundleStatus{})
	p := packet(testGate(nil), &b, []ArtifactEvidence{a})
	if slices.Contains(p.Attested, "unit-tests") || !slices.Contains(p.Missing, "not compliant: unit-tests") || !slices.Contains(p.Attested, "sbom") {
		t.Errorf("attested %v, missing %v", p.Attested, p.Missing)
	}
}

// TestEvidenceStepThatMayNotCount holds that a check is certain to fail the
// crossing only where a step runs whatever happens and tolerates nothing.
func TestEvidenceStepThatMayNotCount(t *testing.T) {
	step := func(with string, change func(*v1alpha1.Step)) v1alpha1.Step {
		s := v1alpha1.Step{Uses: stepEvidence, With: &apiextensionsv1.JSON{Raw: []byte(with)}}
		if change != nil {
			change(&s)
		}
		return s
	}
	assert := `{"gates":["assert"]}`
	for name, c := range map[string]struct {
		steps []v1alpha1.Step
		sure  bool
		limit int
	}{
		"plain":            {[]v1alpha1.Step{step(assert, nil)}, true, -1},
		"with an if":       {[]v1alpha1.Step{step(assert, func(s *v1alpha1.Step) { s.If = "vars.env == 'prod'" })}, false, -1},
		"tolerated":        {[]v1alpha1.Step{step(assert, func(s *v1alpha1.Step) { s.ContinueOnError = true })}, false, -1},
		"limit of its own": {[]v1alpha1.Step{step(`{"gates":["assert"],"maxRisk":10}`, nil), step(`{"gates":["change"]}`, nil)}, true, -1},
		"the lowest":       {[]v1alpha1.Step{step(`{"gates":["change"],"maxRisk":40}`, nil), step(`{"gates":["change"],"maxRisk":30}`, nil)}, true, 30},
	} {
		got := evidenceStep(testGate(func(g *v1alpha1.Gate) { g.Spec.Passage.Steps = c.steps }))
		limit := -1
		if got.maxRisk != nil {
			limit = *got.maxRisk
		}
		if got.sure != c.sure || limit != c.limit || got.invalid != "" {
			t.Errorf("%s: sure %t, limit %d, invalid %q", name, got.sure, limit, got.invalid)
		}
	}
}

// TestAuditOfANarrowedUser holds that nothing is said to be gone where the user
// may not look.
func TestAuditOfANarrowedUser(t *testing.T) {
	o := fromSnapshot(t, "../../examples/estate")
	whole := audit(t, o, AuditQuery{})
	o.Client = forbidding{Client: o.Client, clusterWide: kindSet("Bundle", "Passage")}
	o.DefaultNamespace = "payments"
	narrow := audit(t, o, AuditQuery{})
	if len(narrow.Incomplete) != 2 {
		t.Errorf("incomplete: %+v", narrow.Incomplete)
	}
	said := map[string]bool{}
	for _, c := range whole.CompleteSince {
		said[c.Why] = true
	}
	for _, c := range narrow.CompleteSince {
		if strings.Contains(c.Why, "gone") && !said[c.Why] {
			t.Errorf("%s: %s", c.Source, c.Why)
		}
	}
	// A Bundle that nothing in sight names may be one that nobody could read.
	if _, err := o.Audit(context.Background(), AuditQuery{Bundle: "storefront-not-there"}); err != nil {
		t.Errorf("refused though Bundles were read in one namespace only: %v", err)
	}
}

// TestWorstView holds that a broken chain at one server outranks the approval
// of another, and that a server that did not answer outranks nothing.
func TestWorstView(t *testing.T) {
	answer := func(gate string, status ArtifactStatus, c Conclusion) evidenceAnswer {
		a := evidenceAnswer{view: EvidenceView{Gates: []string{gate}, Artifacts: []ArtifactEvidence{{Repo: "r", Digest: "sha256:1", Trail: "t", Status: status, Conclusion: c, Detail: "because of " + gate}}}}
		a.conclude()
		return a
	}
	b := testBundle("web-1", time.Hour, v1alpha1.BundleStatus{})
	for name, c := range map[string]struct {
		second evidenceAnswer
		want   Conclusion
		says   string
	}{
		"a broken chain": {answer("live", ArtifactOnTrail, ConcludeBrokenChain), ConcludeBrokenChain, "through live: BrokenChain: because of live"},
		"an approval":    {answer("live", ArtifactOnTrail, ConcludeApprove), ConcludeApprove, "through prod: Approve"},
		"no answer":      {answer("live", ArtifactUnavailable, ConcludeUnknown), ConcludeApprove, "through prod: Approve"},
	} {
		out := &Evidence{Bundle: b.Name}
		out.fill(&b, []evidenceAnswer{answer("prod", ArtifactOnTrail, ConcludeApprove), c.second})
		if say := out.summarise(); out.Conclusion != c.want || !strings.Contains(say, c.says) || out.Gate != "prod" || len(out.Views) != 2 {
			t.Errorf("%s: %s, %q", name, out.Conclusion, say)
		}
	}
}
