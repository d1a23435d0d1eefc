package ops

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// promotionWarnings are what a person must see before saying yes; none of them
// stops the crossing by itself. In the order of WarningKinds.
func (v *view) promotionWarnings(b *v1alpha1.Bundle, checks []EvidenceCheck, artifacts []ArtifactEvidence) []Warning {
	out := []Warning{}
	self := v.object()
	add := func(kind WarningKind, obj *Object, format string, args ...any) {
		out = append(out, Warning{Kind: kind, Detail: fmt.Sprintf(format, args...), Object: obj})
	}
	if b != nil {
		obj := hecate(v1alpha1.KindBundle, b.Namespace, b.Name)
		if v.current != nil && slices.Contains(v.older, b) {
			add(WarnRollback, &obj, "%s is older than %s, which the Gate holds now", b.Name, v.current.Name)
		}
		if next := v.undoneBy(b); next != nil {
			nobj := hecate(v1alpha1.KindBundle, next.Namespace, next.Name)
			add(WarnUndone, &nobj, "the Gate is automatic: it will cross %s again at its next reconcile", next.Name)
		}
		if f := v.failureOf(b); f != nil {
			how, why := "failed", ""
			if f.aborted {
				how = "was aborted"
			} else if f.reason != "" {
				why = ": " + cleanCause(f.reason, 300)
			}
			fobj := obj
			if f.object != nil {
				fobj = v.passageObject(f.object)
			}
			add(WarnFailedBefore, &fobj, "%s %s here at %s%s", b.Name, how, stamp(f.at), why)
		}
	}
	// What explain calls a blocker of the Gate but no promotion is refused for.
	for _, bl := range v.gateObstacles() {
		switch bl.Kind {
		case BlockerUnhealthy, BlockerControllerStale, BlockerNotFound:
			add(WarnTargetHealth, bl.Object, "%s", bl.Detail)
		case BlockerVerifying, BlockerVerificationFailed:
			add(WarnNotVerified, bl.Object, "%s", bl.Detail)
		case BlockerStalled:
			kind := WarnStatusLags
			if v.verification.wedged {
				kind = WarnNotVerified
			}
			add(kind, bl.Object, "%s", bl.Detail)
		case BlockerOutcomeUnrecorded:
			add(WarnStatusLags, bl.Object, "%s", bl.Detail)
		}
	}
	out = append(out, v.upstreamWarnings(b)...)
	out = append(out, checkWarnings(checks, self)...)
	// Images that no check is about count too, where the Gate names a server. A
	// broken chain is told here unless a check has lost its word by it.
	if v.g.Spec.Evidence != nil {
		for _, a := range artifacts {
			told := slices.ContainsFunc(checks, func(c EvidenceCheck) bool { return c.Digest == a.Digest && c.Result == CheckUnknown })
			if a.Conclusion == ConcludeBrokenChain && !told {
				add(WarnEvidencePart, &self, "%s: %s", a.image(), a.Detail)
			}
			for _, c := range a.Concerns {
				add(WarnEvidencePart, &self, "%s: %s: %s", a.image(), c.Kind, c.Detail)
			}
		}
	}
	if slices.Contains(evidenceStep(v.g).checks, CheckChange) {
		add(WarnActor, &self, "the change step sends whoever asks as deployer: where the evidence server has delegation on, that has to be a plain e-mail address it knows, or the crossing fails")
	}
	order := Codes(WarningKinds)
	slices.SortStableFunc(out, func(a, b Warning) int { return slices.Index(order, a.Kind) - slices.Index(order, b.Kind) })
	return out
}

// checkWarnings are the checks that would not pass, those with the same thing to
// say in one.
func checkWarnings(checks []EvidenceCheck, gate Object) []Warning {
	kinds := map[CheckResult]WarningKind{CheckFail: WarnEvidence, CheckHold: WarnEvidence, CheckUnknown: WarnEvidenceAsk,
		CheckNotConfigured: WarnEvidenceAsk, CheckNotAsked: WarnNotAsked}
	type say struct {
		kind   WarningKind
		detail string
	}
	var order []say
	names := map[say][]string{}
	for _, c := range checks {
		kind, ok := kinds[c.Result]
		if !ok {
			continue
		}
		s := say{kind, c.Detail}
		if names[s] == nil {
			order = append(order, s)
		}
		if !slices.Contains(names[s], string(c.Check)) {
			names[s] = append(names[s], string(c.Check))
		}
	}
	var out []Warning
	for _, s := range order {
		out = append(out, Warning{s.kind, strings.Join(names[s], ", ") + ": " + s.detail, &gate})
	}
	return out
}

// undoneBy is the Bundle that an automatic Gate would cross right after b: an
// eligible one that is newer, which did not fail here.
func (v *view) undoneBy(b *v1alpha1.Bundle) *v1alpha1.Bundle {
	if !v.g.Spec.Auto {
		return nil
	}
	for _, o := range v.admitted { // newest first
		if o == b {
			return nil
		}
		// The current one, which clears and approves as it did, becomes eligible
		// again once b has replaced it.
		if verdict := v.verdicts[o.Name]; !verdict.Current && !verdict.Eligible() {
			continue
		}
		if len(v.blocked(o)) > 0 {
			return nil
		}
		return o
	}
	return nil
}

// upstreamWarnings say what is wrong with the Gates that b has to clear before.
func (v *view) upstreamWarnings(b *v1alpha1.Bundle) []Warning {
	if b == nil {
		return nil
	}
	admission := gate.Admission(v.g, b.Spec.Beacon)
	if admission == nil {
		return nil
	}
	var out []Warning
	for _, name := range admission.After {
		up := v.e.byGate[key{Namespace: v.g.Namespace, Name: name}]
		obj := hecate(v1alpha1.KindGate, v.g.Namespace, name)
		if up == nil {
			out = append(out, Warning{WarnUpstreamHealth, fmt.Sprintf("Gate %s does not exist", name), &obj})
			continue
		}
		if say := troubles(up); len(say) > 0 {
			out = append(out, Warning{WarnUpstreamHealth, fmt.Sprintf("Gate %s: %s", name, strings.Join(say, "; ")), &obj})
		}
	}
	return out
}

// troubles are what a Gate's own status says against it.
func troubles(g *v1alpha1.Gate) []string {
	var out []string
	if g.Spec.Suspend {
		out = append(out, "suspended")
	}
	if h := g.Status.Health; h != nil && (h.Status == v1alpha1.HealthDegraded || h.Status == v1alpha1.HealthUnknown) {
		say := "health is " + string(h.Status)
		if len(h.Issues) > 0 {
			say += " (" + clean(strings.Join(h.Issues, "; "), 200) + ")"
		}
		out = append(out, say)
	}
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil || c.ObservedGeneration < g.Generation {
		return out
	}
	switch c.Reason {
	case v1alpha1.GateReasonInvalidSteps, v1alpha1.GateReasonCrossingFailed, v1alpha1.GateReasonPassageFailed, v1alpha1.GateReasonVerifying:
		out = append(out, c.Reason+": "+cleanCause(c.Message, 200))
	}
	return out
}
