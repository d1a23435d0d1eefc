package gate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

func TestParseEvidence(t *testing.T) {
	risk := func(n int) *int { return &n }
	defaults := EvidenceSpec{Gates: []string{"assert"}, HoldTimeout: 24 * time.Hour, PollInterval: time.Minute}
	limit := defaults
	limit.MaxRisk = risk(0)
	highest := defaults
	highest.MaxRisk = risk(100)
	tests := []struct {
		with string // "" for none
		want EvidenceSpec
		err  string
	}{
		{`{"gates":["assert"]}`, defaults, ""},
		{`{"gates":["assert"],"holdTimeout":"0s","pollInterval":"0s"}`, defaults, ""},
		{`{"gates":["assert"],"maxRisk":0}`, limit, ""},
		{`{"gates":["assert"],"maxRisk":100}`, highest, ""},
		{`{"gates":["change","policy","allowlist","assert"],"policy":"p","maxRisk":40,"reportArtifacts":true,"holdTimeout":"1s","pollInterval":"2m"}`,
			EvidenceSpec{Gates: []string{"change", "policy", "allowlist", "assert"}, Policy: "p", MaxRisk: risk(40), ReportArtifacts: true, HoldTimeout: time.Second, PollInterval: 2 * time.Minute}, ""},
		{"", EvidenceSpec{}, "with.gates is empty, want one or more of assert, allowlist, policy, change"},
		{`{}`, EvidenceSpec{}, "with.gates is empty"},
		{`{"gates":["assert","approve"]}`, EvidenceSpec{}, `with.gates has "approve", valid are assert, allowlist, policy, change`},
		{`{"gates":["assert"],"maxRisk":101}`, EvidenceSpec{}, "with.maxRisk is 101, want 0 to 100"},
		{`{"gates":["assert"],"maxRisk":-1}`, EvidenceSpec{}, "with.maxRisk is -1"},
		{`{"gates":["assert"],"maxRisk":1.5}`, EvidenceSpec{}, "maxRisk"},
		{`{"gates":["assert"],"holdTimeout":"-1s"}`, EvidenceSpec{}, "with.holdTimeout is -1s"},
		{`{"gates":["assert"],"pollInterval":"-1s"}`, EvidenceSpec{}, "with.pollInterval is -1s"},
		{`{"gates":["assert"],"holdTimeout":"soon"}`, EvidenceSpec{}, "with: "},
		{`{"gates":["assert"],"maxrisks":1}`, EvidenceSpec{}, `unknown field "maxrisks"`},
		{`{"gates":"assert"}`, EvidenceSpec{}, "with: "},
	}
	for _, tt := range tests {
		step := v1alpha1.Step{Uses: StepEvidence}
		if tt.with != "" {
			step.With = with(tt.with)
		}
		got, err := ParseEvidence(step)
		if (err == nil) != (tt.err == "") || (err != nil && !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: error %v, want %q", tt.with, err, tt.err)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.with, d)
		}
	}
}

func TestEvidenceStep(t *testing.T) {
	g := prod()
	if _, found, err := EvidenceStep(g); found || err != nil {
		t.Errorf("no template: found %t, error %v", found, err)
	}
	g.Spec.Passage = &v1alpha1.PassageTemplate{Steps: []v1alpha1.Step{{Uses: "http"}}}
	if _, found, err := EvidenceStep(g); found || err != nil {
		t.Errorf("no evidence step: found %t, error %v", found, err)
	}
	g.Spec.Passage.Steps = append(g.Spec.Passage.Steps,
		v1alpha1.Step{Uses: StepEvidence, With: with(`{"gates":["change"]}`)},
		v1alpha1.Step{Uses: StepEvidence, With: with(`{"gates":["assert"]}`)})
	spec, found, err := EvidenceStep(g)
	if !found || err != nil || spec.Index != 1 || spec.Gates[0] != "change" {
		t.Errorf("two steps: %+v, found %t, error %v, want the first, at 1", spec, found, err)
	}
	g.Spec.Passage.Steps[1].With = with(`{}`)
	spec, found, err = EvidenceStep(g)
	if !found || spec.Index != 1 || err == nil || !strings.HasPrefix(err.Error(), "evidence of Gate shop/prod: steps[1] (evidence-gate): with.gates is empty") {
		t.Errorf("broken step: %+v, found %t, error %v", spec, found, err)
	}
}
