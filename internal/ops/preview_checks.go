package ops

import (
	"fmt"
	"slices"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// evidenceSteps is what the evidence steps of a Gate run, taken together.
type evidenceSteps struct {
	found  bool
	checks []CheckName // in the order of CheckNames
	// maxRisk is the lowest of the steps' limits, nil for none.
	maxRisk *int
	// sure: a step runs unconditionally and its failure fails the Passage.
	sure bool
	// invalid says why a step's configuration cannot run, "" when it can.
	invalid string
}

// evidenceStep reads a Gate's evidence steps. A step with a condition counts
// too: whether it runs is known at run time only.
func evidenceStep(g *v1alpha1.Gate) evidenceSteps {
	var out evidenceSteps
	if g.Spec.Passage == nil {
		return out
	}
	wanted := map[CheckName]bool{}
	for i, s := range g.Spec.Passage.Steps {
		if s.Uses != stepEvidence {
			continue
		}
		out.found = true
		out.sure = out.sure || s.If == "" && !s.ContinueOnError
		spec, err := gate.ParseEvidence(s)
		if err != nil {
			out.invalid = fmt.Sprintf("steps[%d]: %s", i, clean(err.Error(), 200))
			continue
		}
		for _, name := range spec.Gates {
			wanted[CheckName(name)] = true
		}
		// A limit is about the risk that the same step's change check gives.
		if spec.MaxRisk != nil && slices.Contains(spec.Gates, string(CheckChange)) && (out.maxRisk == nil || *spec.MaxRisk < *out.maxRisk) {
			out.maxRisk = spec.MaxRisk
		}
	}
	for _, m := range CheckNames {
		if wanted[m.Code] {
			out.checks = append(out.checks, m.Code)
		}
	}
	if out.maxRisk != nil && wanted[CheckChange] {
		out.checks = append(out.checks, CheckMaxRisk)
	}
	return out
}

// stepChecks says how each check of the Gate's evidence step would end for b:
// assert and allowlist for every image, policy, change and maxRisk for the
// first one, as the step does. Empty when the Gate has no such step.
func stepChecks(g *v1alpha1.Gate, b *v1alpha1.Bundle, a evidenceAnswer, consult bool) []EvidenceCheck {
	step := evidenceStep(g)
	out := runChecks(step, g, b, a, consult)
	for i := range out {
		if c := &out[i]; !step.sure && c.Result == CheckFail {
			c.Result, c.Detail = CheckUnknown, "would fail the step, which has a condition or continueOnError and may not fail the crossing: "+c.Detail
		}
	}
	return out
}

func runChecks(step evidenceSteps, g *v1alpha1.Gate, b *v1alpha1.Bundle, a evidenceAnswer, consult bool) []EvidenceCheck {
	out := []EvidenceCheck{}
	if !step.found {
		return out
	}
	fail := func(detail string) []EvidenceCheck {
		return []EvidenceCheck{{Check: CheckConfig, Result: CheckFail, Detail: detail}}
	}
	switch {
	case step.invalid != "":
		return fail(step.invalid)
	case g.Spec.Evidence == nil:
		return fail("the Gate has no spec.evidence, so the step cannot run")
	}
	var pinned []ArtifactEvidence
	for _, art := range a.view.Artifacts {
		if art.Status != ArtifactNoDigest {
			pinned = append(pinned, art)
		}
	}
	if len(pinned) == 0 {
		return []EvidenceCheck{{Check: CheckConfig, Result: CheckFail, Detail: "the Bundle pins no image digest, so there is nothing to check"}}
	}
	if a.view.Status == ArtifactNotConfigured && a.view.Server != "" {
		return fail(a.view.Detail) // the step reads the same Secret
	}
	defer func() { distrust(out, pinned) }()
	for _, check := range step.checks {
		switch check {
		case CheckAssert, CheckAllowlist:
			for _, art := range pinned {
				out = append(out, row(check, art))
			}
		case CheckPolicy:
			out = append(out, row(check, pinned[0]))
		case CheckChange:
			out = append(out, changeRow(pinned[0], consult))
		case CheckMaxRisk:
			out = append(out, riskRow(pinned[0], *step.maxRisk, consult))
		}
	}
	return out
}

// distrust takes the word of a broken chain from the checks: the step itself
// never looks at the chain and would pass, but nothing on it says that it may.
func distrust(checks []EvidenceCheck, artifacts []ArtifactEvidence) {
	for i := range checks {
		c := &checks[i]
		broken := slices.ContainsFunc(artifacts, func(a ArtifactEvidence) bool {
			return a.Digest == c.Digest && a.Conclusion == ConcludeBrokenChain
		})
		if broken && c.Check != CheckAllowlist && (c.Result == CheckPass || c.Result == CheckHold) {
			c.Result, c.Detail = CheckUnknown, "the step would say "+string(c.Result)+", but the trail's hash chain is broken: its evidence cannot be trusted"
		}
	}
}

// row is the answer of one check about one image, as asked.
func row(check CheckName, art ArtifactEvidence) EvidenceCheck {
	if i := slices.IndexFunc(art.Checks, func(c EvidenceCheck) bool { return c.Check == check }); i >= 0 {
		return art.Checks[i]
	}
	return unasked(check, art)
}

// unasked says why there is no answer about an image.
func unasked(check CheckName, art ArtifactEvidence) EvidenceCheck {
	out := EvidenceCheck{Check: check, Digest: art.Digest, Result: CheckUnknown, Detail: art.Detail}
	switch art.Status {
	case ArtifactNotConfigured:
		out.Result = CheckNotConfigured
	case ArtifactNotRegistered, ArtifactNoTrail:
		// NoEvidence: there is nothing that could pass.
		out.Result = CheckFail
	case ArtifactRecorded:
		out.Detail = "not asked; what the objects recorded does not say"
	}
	return out
}

// changeRow is the change gate's answer.
func changeRow(art ArtifactEvidence, consult bool) EvidenceCheck {
	out := EvidenceCheck{Check: CheckChange, Digest: art.Digest}
	switch vd := art.Verdict; {
	case art.Status == ArtifactRecorded:
		out.Result, out.Detail = CheckUnknown, "not asked; the last crossing recorded no verdict"
		if vd != nil && vd.Recommendation != "" {
			out.Detail = "not asked; the last crossing recorded " + string(vd.Recommendation)
		}
		out.Hold = art.Hold
	case art.Trail == "":
		return unasked(CheckChange, art)
	case !consult:
		out.Result, out.Detail = CheckNotAsked, "asking the change gate can write to the trail"
	case vd == nil:
		out.Result, out.Detail = CheckUnknown, art.Detail
	case len(art.Hold) > 0:
		out.Result, out.Hold, out.Detail = CheckHold, art.Hold, art.Hold[0].Detail
		if n := len(art.Hold) - 1; n > 0 {
			out.Detail += fmt.Sprintf(" (and %d more)", n)
		}
	default:
		out.Result, out.Detail = CheckPass, fmt.Sprintf("approved, risk %d", vd.RiskScore)
	}
	return out
}

// riskRow compares the risk with the step's limit.
func riskRow(art ArtifactEvidence, limit int, consult bool) EvidenceCheck {
	out := changeRow(art, consult)
	out.Check, out.Hold = CheckMaxRisk, nil
	if out.Result != CheckPass && out.Result != CheckHold {
		return out
	}
	out.Result, out.Detail = CheckPass, fmt.Sprintf("risk %d, limit %d", art.Verdict.RiskScore, limit)
	if art.Verdict.RiskScore > limit {
		out.Result = CheckFail
		out.Hold = []Hold{{HoldRisk, out.Detail}}
	}
	return out
}
