package ops

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

// recordedVerdict is a recorded verdict in the shape of an asked one: the
// recommendation and the risk are all that a cluster's objects keep of it.
func recordedVerdict(ref *v1alpha1.EvidenceRef) *fides.ChangeVerdict {
	out := &fides.ChangeVerdict{TrailID: clean(ref.Trail, 200), Recommendation: clean(ref.Verdict, 200),
		Summary:  "as recorded: controls, waivers and sign-offs were not asked; empty and 0 here mean not known",
		Approved: ref.Verdict == fides.RecommendApprove,
		Passed:   []string{}, Failed: []fides.ControlFinding{}, MissingEvidence: []fides.ControlFinding{}, Waived: []fides.WaivedControl{},
		Approvals: fides.Approvers{Approvers: []string{}, Deployers: []string{}}}
	if ref.Risk != nil {
		out.RiskScore = int(*ref.Risk)
	}
	return out
}

// cleaned is a verdict whose text may be shown: whoever may attest, name a
// control or waive one wrote it.
func cleaned(vd fides.ChangeVerdict) *fides.ChangeVerdict {
	line := func(s *string) { *s = clean(*s, 200) }
	lines := func(list []string) {
		for i := range list {
			line(&list[i])
		}
	}
	for _, s := range []*string{&vd.TrailID, &vd.Recommendation, &vd.Summary, &vd.RiskLevel} {
		line(s)
	}
	lines(vd.Passed)
	for _, findings := range [][]fides.ControlFinding{vd.Failed, vd.MissingEvidence} {
		for i := range findings {
			line(&findings[i].Control)
			line(&findings[i].Name)
			lines(findings[i].Reasons)
		}
	}
	for i := range vd.Waived {
		w := &vd.Waived[i]
		for _, s := range []*string{&w.Control, &w.Name, &w.Reason, &w.ApprovedBy} {
			line(s)
		}
		lines(w.WaivedReasons)
	}
	lines(vd.Approvals.Approvers)
	lines(vd.Approvals.Deployers)
	if s := vd.SegregationOfDuties; s != nil {
		line(&s.Committer)
		lines(s.Approvers)
		lines(s.Deployers)
		lines(s.Violations)
	}
	return &vd
}

// holdKinds are the kinds of the evidence server's client as ours.
var holdKinds = map[fides.HoldKind]HoldKind{
	fides.FailingControls:     HoldFailing,
	fides.MissingEvidence:     HoldMissing,
	fides.AwaitingHuman:       HoldHuman,
	fides.ServiceApprovalOnly: HoldServiceOnly,
	fides.HoldOther:           HoldOther,
}

// holdsOf says why a verdict withholds approval, one entry a control; empty
// exactly when it approves.
func holdsOf(vd *fides.ChangeVerdict) []Hold {
	var out []Hold
	for _, h := range vd.Holds() {
		kind := holdKinds[h.Kind]
		switch h.Kind {
		case fides.FailingControls:
			for _, c := range h.Controls {
				out = append(out, Hold{kind, "failing control " + controlText(c)})
				// A control with both kinds of trouble counts as failing; its
				// reasons keep them apart (fides-facts: "missing <type>").
				for _, r := range c.Reasons {
					if missing, ok := strings.CutPrefix(r, "missing "); ok {
						out = append(out, Hold{HoldMissing, clean("evidence of type "+missing+" is missing for "+controlText(c), 200)})
					}
				}
			}
		case fides.MissingEvidence:
			for _, c := range h.Controls {
				out = append(out, Hold{kind, "missing evidence for " + controlText(c)})
			}
		case fides.AwaitingHuman:
			out = append(out, Hold{kind, "awaiting a human approval"})
		case fides.ServiceApprovalOnly:
			out = append(out, Hold{kind, clean("awaiting a human approval: only a service identity signed off ("+strings.Join(h.Identities, ", ")+")", 200)})
		default:
			out = append(out, Hold{HoldOther, clean("the change gate recommends "+vd.Recommendation+": "+vd.Summary, 200)})
		}
	}
	return out
}

// controlText names a control with what is wrong with it.
func controlText(c fides.ControlFinding) string {
	return clean(fmt.Sprintf("%s %s (%s)", c.Control, c.Name, strings.Join(c.Reasons, ", ")), 200)
}

// controlKeys are the control sets of a verdict, each sorted.
func controlKeys(vd *fides.ChangeVerdict) (failed, missing, waived []string) {
	failed, missing, waived = []string{}, []string{}, []string{}
	for _, c := range vd.Failed {
		failed = append(failed, c.Control)
	}
	for _, c := range vd.MissingEvidence {
		missing = append(missing, c.Control)
	}
	for _, c := range vd.Waived {
		waived = append(waived, c.Control)
	}
	slices.Sort(failed)
	slices.Sort(missing)
	slices.Sort(waived)
	return failed, missing, waived
}
