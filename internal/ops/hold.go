package ops

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

const (
	stepEvidence = "evidence-gate"
	verdictHold  = "hold"

	// Reason codes of a failed evidence-gate step (hecate-facts, section 7).
	reasonNotCompliant        = "NotCompliant"
	reasonChangeHeld          = "ChangeHeld"
	reasonEvidenceUnavailable = "EvidenceUnavailable"
)

// holdGrammar is the closed form in which the controller records why the change
// gate holds (hecate-facts, section 7): status.evidence.blockers is the only
// place where a cluster has it. A line is matched whole; any other line is
// HoldOther. See docs/decisions.md.
var holdGrammar = []struct {
	kind HoldKind
	line *regexp.Regexp
}{
	{HoldFailing, regexp.MustCompile(`^failing control (\S+) (.*) \((.*)\)$`)},
	{HoldMissing, regexp.MustCompile(`^missing evidence for (\S+) (.*) \((.*)\)$`)},
	{HoldHuman, regexp.MustCompile(`^awaiting a human approval$`)},
}

// recordedHolds reads the recorded lines of a hold.
func recordedHolds(blockers []string) []Hold {
	out := []Hold{}
	for _, line := range blockers {
		h := Hold{Kind: HoldOther, Detail: clean(line, 200)}
		reasons := ""
		for _, g := range holdGrammar {
			if m := g.line.FindStringSubmatch(line); m != nil {
				h.Kind = g.kind
				if len(m) > 3 {
					reasons = m[3]
				}
				break
			}
		}
		out = append(out, h)
		// A control with both kinds of trouble is recorded as failing; its
		// reasons ("failed <type>", "missing <type>") keep them apart.
		if h.Kind == HoldFailing {
			for _, r := range strings.Split(reasons, ", ") {
				if missing, ok := strings.CutPrefix(r, "missing "); ok {
					out = append(out, Hold{HoldMissing, clean("evidence of type "+missing+" is missing: "+line, 200)})
				}
			}
		}
	}
	return out
}

// held turns a waiting evidence step into ChangeHeld, with the kinds of hold
// and the time left.
func (v *view) held(b *Blocker, p *v1alpha1.Passage, i int) {
	ev := p.Status.Evidence
	b.Kind = BlockerChangeHeld
	b.Hold = recordedHolds(ev.Blockers)
	if h, ok := v.e.holds[p.Namespace+"/"+p.Name]; ok {
		b.Hold = append(b.Hold, h)
	}
	risk := ""
	if ev.Risk != nil {
		risk = fmt.Sprintf(" (risk %d)", *ev.Risk)
	}
	b.Detail = fmt.Sprintf("the change gate holds %s%s%s", p.Spec.Bundle, risk, v.waited(b.Since))
	spec, err := gate.ParseEvidence(p.Spec.Steps[i])
	if err == nil {
		if spec.MaxRisk != nil && ev.Risk != nil && int(*ev.Risk) > *spec.MaxRisk {
			b.Hold = append(b.Hold, Hold{Kind: HoldRisk, Detail: fmt.Sprintf("risk %d is over maxRisk %d", *ev.Risk, *spec.MaxRisk)})
		}
		if b.Since != nil {
			until := metav1.NewTime(b.Since.Add(spec.HoldTimeout))
			b.Until = &until
			if until.Time.After(v.e.now) {
				b.Detail += fmt.Sprintf("; it gives up at %s (in %s)", stamp(until), span(until.Sub(v.e.now)))
			} else {
				b.Detail += fmt.Sprintf("; it should have given up at %s (%s ago)", stamp(until), span(until.Sub(v.e.now)))
			}
		}
	}
	b.NextSteps = append(b.NextSteps, NextStep{Tool: "get_evidence", Arguments: map[string]string{"bundle": p.Spec.Bundle, "gate": v.g.Name, "namespace": p.Namespace}, Why: "which controls, waivers and approvals; asking may write to the trail"})
}

// failedHolds keeps the kinds of a failed evidence step apart, from its reason
// code, its configuration and what the Passage recorded.
func failedHolds(p *v1alpha1.Passage, i int, st *v1alpha1.StepStatus) []Hold {
	var ev v1alpha1.EvidenceRef
	if p.Status.Evidence != nil {
		ev = *p.Status.Evidence
	} else if st.Output != nil {
		// The step's own output carries the same keys; it is the controller's,
		// and a shape that does not fit says nothing.
		_ = json.Unmarshal(st.Output.Raw, &ev)
	}
	var out []Hold
	switch st.Reason {
	case reasonEvidenceUnavailable:
		return []Hold{{HoldUnavailable, clean(st.Message, 200)}}
	case reasonChangeHeld:
		out = recordedHolds(ev.Blockers)
	case reasonNotCompliant:
		if spec, err := gate.ParseEvidence(p.Spec.Steps[i]); err == nil && spec.MaxRisk != nil && ev.Risk != nil && int(*ev.Risk) > *spec.MaxRisk {
			out = append(out, Hold{HoldRisk, fmt.Sprintf("risk %d is over maxRisk %d", *ev.Risk, *spec.MaxRisk)})
		}
	}
	return out
}
