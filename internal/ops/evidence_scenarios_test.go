package ops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scenario opens a folder that a real controller wrote. Nothing may be asked.
func scenario(t *testing.T, prefix string) (*Ops, string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "scenarios", prefix+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("../shared/scenarios is not there")
	}
	if _, err := os.Stat(found[0]); err != nil {
		t.Fatal(err)
	}
	return snapshot(t, found[0])
}

// TestScenarioEvidence: what the objects recorded is all that a snapshot has.
func TestScenarioEvidence(t *testing.T) {
	for _, c := range []struct {
		scenario, gate string
		status         []ArtifactStatus
		conclusion     Conclusion
		holds          []HoldKind
	}{
		{"e01", "awaiting", []ArtifactStatus{ArtifactRecorded}, ConcludeHold, []HoldKind{HoldHuman}},
		{"e01", "failing", []ArtifactStatus{ArtifactRecorded}, ConcludeHold, []HoldKind{HoldFailing}},
		{"e01", "failing-and-missing", []ArtifactStatus{ArtifactRecorded}, ConcludeHold, []HoldKind{HoldFailing, HoldFailing, HoldMissing}},
		{"e01", "missing", []ArtifactStatus{ArtifactRecorded}, ConcludeHold, []HoldKind{HoldMissing, HoldMissing}},
		{"e02", "production", []ArtifactStatus{ArtifactRecorded}, ConcludeApprove, nil},
		{"e04", "no-digest", []ArtifactStatus{ArtifactNoDigest}, ConcludeNoEvidence, nil},
		{"e04", "server-down", []ArtifactStatus{ArtifactUnavailable}, ConcludeUnknown, nil},
		{"e04", "no-evidence-block", []ArtifactStatus{ArtifactNotConfigured}, ConcludeUnknown, nil},
		{"e05", "production", []ArtifactStatus{ArtifactRecorded, ArtifactUnavailable}, ConcludeUnknown, nil},
	} {
		t.Run(c.scenario+"/"+c.gate, func(t *testing.T) {
			o, ns := scenario(t, c.scenario)
			gates, err := o.Gates(t.Context(), ns)
			if err != nil {
				t.Fatal(err)
			}
			bundles, err := o.Bundles(t.Context(), ns)
			if err != nil {
				t.Fatal(err)
			}
			bundle := ""
			for _, g := range gates {
				for _, b := range bundles {
					if g.Name == c.gate && g.Spec.Admits[0].From.Beacon == b.Spec.Beacon {
						bundle = b.Name
					}
				}
			}
			e := evidence(t, o, EvidenceQuery{Namespace: ns, Bundle: bundle, Gate: c.gate, ConsultChangeGate: true})
			var status []ArtifactStatus
			for _, a := range e.Artifacts {
				status = append(status, a.Status)
			}
			if !slices.Equal(status, c.status) || e.Conclusion != c.conclusion || e.Status != c.status[0] {
				t.Errorf("%v %s (%s), want %v %s", status, e.Conclusion, e.Summary, c.status, c.conclusion)
			}
			if c.holds != nil && !slices.Equal(holdKindsOf(e.Artifacts[0].Hold), c.holds) {
				t.Errorf("holds %+v, want %v", e.Artifacts[0].Hold, c.holds)
			}
		})
	}
}

// TestScenarioPreviews of the newest Bundle, unless one is named.
func TestScenarioPreviews(t *testing.T) {
	for _, c := range []struct {
		scenario, gate, bundle string
		verdict                PreviewVerdict
		refused                []RefusalReason
		warned                 []WarningKind
	}{
		{scenario: "e01", gate: "awaiting", verdict: PreviewRefused, refused: []RefusalReason{RefusedCrossing}},
		{scenario: "e02", gate: "production", verdict: PreviewRefused, refused: []RefusalReason{RefusedCurrent}},
		{scenario: "e04", gate: "bad-token", verdict: PreviewUnknown, warned: []WarningKind{WarnFailedBefore, WarnEvidenceAsk}},
		{scenario: "e04", gate: "no-digest", verdict: PreviewWouldFail, warned: []WarningKind{WarnFailedBefore, WarnEvidence}},
		{scenario: "e04", gate: "no-evidence-block", verdict: PreviewWouldFail, warned: []WarningKind{WarnFailedBefore, WarnEvidence}},
		{scenario: "e04", gate: "max-risk", verdict: PreviewUnknown, warned: []WarningKind{WarnFailedBefore, WarnEvidenceAsk, WarnActor}},
		{scenario: "e08", gate: "production", bundle: "web-6c5df9b56445", verdict: PreviewCrosses},
		{scenario: "e08", gate: "production", verdict: PreviewRefused, refused: []RefusalReason{RefusedNotApproved}},
		{scenario: "e08", gate: "open", verdict: PreviewCrosses},
		{scenario: "e08", gate: "other", verdict: PreviewRefused, refused: []RefusalReason{RefusedNoBundle}},
		{scenario: "e08", gate: "other", bundle: "web-6c5df9b56445", verdict: PreviewRefused, refused: []RefusalReason{RefusedNotAdmitted}},
		{scenario: "s05", gate: "dev", verdict: PreviewRefused, refused: []RefusalReason{RefusedInvalidSteps}},
		{scenario: "s08", gate: "production", verdict: PreviewRefused, refused: []RefusalReason{RefusedNotApproved}},
		{scenario: "s10", gate: "manual", verdict: PreviewRefused, refused: []RefusalReason{RefusedWindow}},
		{scenario: "s10", gate: "freeze", verdict: PreviewRefused, refused: []RefusalReason{RefusedWindow}},
		{scenario: "s10", gate: "open", verdict: PreviewCrosses},
		{scenario: "s25", gate: "dev", verdict: PreviewRefused, refused: []RefusalReason{RefusedCrossing, RefusedCrossing}},
	} {
		t.Run(strings.TrimSuffix(c.scenario+"/"+c.gate+"/"+c.bundle, "/"), func(t *testing.T) {
			o, ns := scenario(t, c.scenario)
			p := preview(t, o, PreviewQuery{Namespace: ns, Gate: c.gate, Bundle: c.bundle})
			if p.Verdict != c.verdict || !slices.Equal(reasons(p), append([]RefusalReason{}, c.refused...)) {
				t.Errorf("%s for %v (%s), want %s for %v", p.Verdict, reasons(p), p.Summary, c.verdict, c.refused)
			}
			for _, k := range c.warned {
				if !slices.Contains(warned(p), k) {
					t.Errorf("no warning %s among %+v", k, p.Warnings)
				}
			}
			if c.scenario == "s10" && c.refused != nil && c.gate == "manual" && (p.Refusals[0].OpensAt == nil || p.Refusals[0].OpensAt.Format("01-02") != "02-29") {
				t.Errorf("opens at %v, want the next 29 February", p.Refusals[0].OpensAt)
			}
		})
	}
}
