package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// Preview answers "would this promotion cross, and who still has to act?". It
// lists every obstacle at once, runs what the Gate's evidence step would run
// (for any Bundle), and writes nothing unless q.ConsultChangeGate says that the
// change gate may be asked.
//
// A Gate or Bundle that does not exist is a NotFoundError, a part of a name
// that fits several Gates an AmbiguousError; refusals are part of the answer.
func (o *Ops) Preview(ctx context.Context, q PreviewQuery) (*Preview, error) {
	p, _, err := o.preview(ctx, q)
	return p, err
}

// previewed is what a Preview was made from.
type previewed struct {
	view      *view
	bundle    *v1alpha1.Bundle // nil when there is none
	artifacts []ArtifactEvidence
}

func (o *Ops) preview(ctx context.Context, q PreviewQuery) (*Preview, *previewed, error) {
	e, err := o.load(ctx, q.Namespace, unlabelledPassages)
	if err != nil {
		return nil, nil, err
	}
	g, err := e.findGate(q.Namespace, q.Gate)
	if err != nil {
		return nil, nil, err
	}
	if err := o.readPassages(ctx, e, []*v1alpha1.Gate{g}); err != nil {
		return nil, nil, err
	}
	if err := o.lookup(ctx, e, []*v1alpha1.Gate{g}); err != nil {
		return nil, nil, err
	}
	v := e.view(g)
	b, err := v.proposed(q.Bundle)
	if err != nil {
		return nil, nil, err
	}
	p := &Preview{
		Gate: g.Name, Namespace: g.Namespace, Bundle: q.Bundle,
		Refusals: []Refusal{}, Warnings: []Warning{}, Evidence: []EvidenceCheck{}, WhoMustAct: []Act{}, Incomplete: []Incomplete{},
	}
	var asked evidenceAnswer
	if b != nil {
		p.Bundle, p.Digest = b.Name, b.Spec.Digest
		asked = o.askGate(ctx, g, b, e.passages[v.key], q.ConsultChangeGate)
		p.Evidence = stepChecks(g, b, asked, q.ConsultChangeGate)
		p.Packet = packet(g, b, asked.view.Artifacts)
	}
	p.Refusals = v.refusals(b)
	p.Incomplete = append(append(p.Incomplete, e.incomplete...), asked.incomplete...)
	known := b != nil && v.passagesKnown() && !e.unread(v1alpha1.KindBundle, g.Namespace)
	p.Verdict = verdictOf(p.Refusals, p.Evidence, known)
	p.WouldCross = p.Verdict == PreviewCrosses
	p.Warnings = v.promotionWarnings(b, p.Evidence, asked.view.Artifacts)
	p.WhoMustAct = v.whoMustAct(b, p, asked.view.Artifacts)
	p.Pin = v.pin(b, p, asked.view.Artifacts)
	p.Summary = p.summarise(v)
	return p, &previewed{v, b, asked.view.Artifacts}, nil
}

// proposed is the Bundle to promote: the named one, else the newest one not yet
// in, else (at rest) the current one, which is then refused as such. nil when
// the Beacons gave none, or none could be read.
func (v *view) proposed(name string) (*v1alpha1.Bundle, error) {
	if name == "" {
		if f := v.front(); f != nil {
			return f, nil
		}
		if v.current != nil {
			return v.current, nil
		}
		return nil, nil
	}
	return v.e.bundle(v.g.Namespace, name)
}

// bundle finds a Bundle by its exact name, in every namespace for "": what
// crosses is never guessed from a part of a name. nil without an error when the
// Bundles could not be read.
func (e *estate) bundle(namespace, name string) (*v1alpha1.Bundle, error) {
	var all []string
	var found []Object
	for k := range e.byBundle {
		if namespace != AllNamespaces && k.Namespace != namespace {
			continue
		}
		all = append(all, k.Name)
		if k.Name == name {
			found = append(found, hecate(v1alpha1.KindBundle, k.Namespace, k.Name))
		}
	}
	switch {
	case len(found) == 1:
		return e.byBundle[key{Namespace: found[0].Namespace, Name: name}], nil
	case len(found) > 1:
		slices.SortFunc(found, func(a, b Object) int { return strings.Compare(a.Namespace, b.Namespace) })
		return nil, &AmbiguousError{Kind: v1alpha1.KindBundle, Name: name, Candidates: found}
	case e.unread(v1alpha1.KindBundle, namespace):
		return nil, nil
	}
	return nil, &NotFoundError{Object: hecate(v1alpha1.KindBundle, namespace, name), Candidates: nearest(name, all, MaxNames)}
}

// refusalOf maps the blockers that a promotion is refused for. Explain finds
// them, so that both answers have one source.
var refusalOf = map[BlockerKind]RefusalReason{
	BlockerSuspended:     RefusedSuspended,
	BlockerInvalidSteps:  RefusedInvalidSteps,
	BlockerNoPassage:     RefusedNoPassage,
	BlockerNameTooLong:   RefusedNameTooLong,
	BlockerInvalidWindow: RefusedBadWindow,
	BlockerUpstream:      RefusedUpstream,
	BlockerNotApproved:   RefusedNotApproved,
	BlockerWindowClosed:  RefusedWindow,
}

// refusals are all the obstacles that the rules put before a crossing of b, in
// the order of RefusalReasons.
func (v *view) refusals(b *v1alpha1.Bundle) []Refusal {
	out := []Refusal{}
	self := v.object()
	for _, p := range v.running {
		obj := v.passageObject(p)
		detail := fmt.Sprintf("Passage %s of %s is not finished", p.Name, p.Spec.Bundle)
		if !labelled(p) {
			detail += "; it lacks the label " + v1alpha1.LabelGate + ", so the Gate does not know of it"
		}
		out = append(out, Refusal{Reason: RefusedCrossing, Detail: detail, Object: &obj, Fix: "wait for it, or abort it"})
	}
	blockers := v.gateObstacles()
	switch {
	case b == nil && !v.e.unread(v1alpha1.KindBundle, v.g.Namespace):
		out = append(out, Refusal{Reason: RefusedNoBundle, Detail: "no Bundle from any admitted Beacon", Object: &self})
	case b == nil:
	default:
		obj := hecate(v1alpha1.KindBundle, b.Namespace, b.Name)
		verdict := gate.Judge(v.g, b)
		if !verdict.Admitted {
			out = append(out, Refusal{Reason: RefusedNotAdmitted, Object: &obj,
				Detail: fmt.Sprintf("%s comes from Beacon %s, which %s does not admit", b.Name, b.Spec.Beacon, v.g.Name)})
		}
		if verdict.Current {
			out = append(out, Refusal{Reason: RefusedCurrent, Detail: b.Name + " is already in this Gate", Object: &obj})
		}
		if len(b.Name) > gate.MaxLabelLength {
			out = append(out, Refusal{Reason: RefusedNameTooLong, Object: &obj,
				Detail: fmt.Sprintf("the Bundle's name has %d characters; a label value has at most %d", len(b.Name), gate.MaxLabelLength)})
		}
		blockers = append(blockers, v.bundleObstacles(b, nil)...)
	}
	for _, bl := range blockers {
		reason, ok := refusalOf[bl.Kind]
		if !ok || (bl.Kind == BlockerUpstream || bl.Kind == BlockerNotApproved) && v.isCurrent(b) {
			continue
		}
		out = append(out, Refusal{Reason: reason, Detail: bl.Detail, Object: bl.Object, Fix: bl.Fix, OpensAt: bl.OpensAt, Until: bl.Until})
	}
	order := Codes(RefusalReasons)
	slices.SortStableFunc(out, func(a, b Refusal) int {
		return slices.Index(order, a.Reason) - slices.Index(order, b.Reason)
	})
	return out
}

func (v *view) isCurrent(b *v1alpha1.Bundle) bool {
	return b != nil && v.g.Status.Current != nil && v.g.Status.Current.Bundle == b.Name
}

// verdictOf is the first of PreviewVerdicts that holds. known is false when
// something that the rules need could not be read.
func verdictOf(refusals []Refusal, checks []EvidenceCheck, known bool) PreviewVerdict {
	if len(refusals) > 0 {
		return PreviewRefused
	}
	has := func(results ...CheckResult) bool {
		return slices.ContainsFunc(checks, func(c EvidenceCheck) bool { return slices.Contains(results, c.Result) })
	}
	switch {
	case has(CheckFail):
		return PreviewWouldFail
	case !known || has(CheckUnknown, CheckNotAsked, CheckNotConfigured):
		return PreviewUnknown
	case has(CheckHold):
		return PreviewWouldHold
	}
	return PreviewCrosses
}

// whoMustAct turns refusals and evidence into people, in the order of Roles.
func (v *view) whoMustAct(b *v1alpha1.Bundle, p *Preview, artifacts []ArtifactEvidence) []Act {
	out := []Act{}
	add := func(who Role, what string, command *HumanStep) {
		if !slices.ContainsFunc(out, func(a Act) bool { return a.Who == who && a.What == what }) {
			out = append(out, Act{Who: who, What: what, Command: command})
		}
	}
	final := false // no act of anybody makes this Bundle cross
	for _, r := range p.Refusals {
		switch r.Reason {
		case RefusedCurrent, RefusedNotAdmitted, RefusedNoBundle:
			final = true
		case RefusedCrossing:
			add(RoleTime, r.Detail, nil)
		case RefusedWindow:
			what := "the window opens"
			if r.OpensAt != nil {
				what = "the window opens at " + stamp(*r.OpensAt)
			}
			add(RoleTime, what, nil)
		case RefusedNotApproved:
			add(RoleApprover, r.Detail, humanStep(approveCommand(v.g.Namespace, b.Name, v.g.Name), "approves "+b.Name+" for "+v.g.Name))
		case RefusedUpstream:
			add(RoleOperator, r.Detail+": it has to cross there first", nil)
		default:
			what := r.Detail
			if r.Fix != "" {
				what = r.Fix + ": " + r.Detail
			}
			add(RoleOperator, what, nil)
		}
	}
	for _, c := range p.Evidence {
		switch c.Result {
		case CheckFail:
			role := RoleEvidence
			if c.Check == CheckConfig {
				role = RoleOperator
			}
			add(role, fmt.Sprintf("%s: %s", c.Check, c.Detail), nil)
		case CheckHold:
			for _, h := range c.Hold {
				if h.Kind != HoldHuman && h.Kind != HoldServiceOnly {
					add(RoleEvidence, h.Detail, nil)
					continue
				}
				// The Gate's own approval is also recorded as sign-off; where it
				// asks for none, the sign-off is given in the evidence server.
				var command *HumanStep
				if p.Packet != nil && p.Packet.Required {
					command = humanStep(approveCommand(v.g.Namespace, b.Name, v.g.Name), "approves "+b.Name+" for "+v.g.Name)
				}
				add(RoleApprover, "sign off the trail in the evidence server: "+h.Detail, command)
			}
		}
	}
	for _, a := range artifacts {
		if a.Conclusion == ConcludeBrokenChain && len(p.Evidence) > 0 {
			add(RoleEvidence, a.image()+": "+a.Detail, nil)
		}
	}
	if !final && b != nil {
		if v.takesItself(b) {
			add(RoleTime, "the Gate is automatic: the controller opens the Passage", nil)
		} else {
			// No command that the rules refuse or the evidence step sinks.
			var command *HumanStep
			if p.Verdict != PreviewRefused && p.Verdict != PreviewWouldFail {
				command = humanStep(promoteCommand(v.g.Namespace, b.Name, v.g.Name), "opens a Passage of "+b.Name+" through "+v.g.Name)
			}
			add(RolePromoter, "ask for the crossing of "+b.Name, command)
		}
	}
	order := Codes(Roles)
	slices.SortStableFunc(out, func(a, b Act) int { return slices.Index(order, a.Who) - slices.Index(order, b.Who) })
	return out
}

// takesItself says whether the controller would take b without being asked: on
// an automatic Gate, the newest eligible Bundle, strictly newer than the
// current one, that did not fail here.
func (v *view) takesItself(b *v1alpha1.Bundle) bool {
	return v.g.Spec.Auto && v.automatic() == b
}

// automatic is what the controller of an automatic Gate would take next.
func (v *view) automatic() *v1alpha1.Bundle {
	for _, b := range v.newer {
		if v.verdicts[b.Name].Eligible() {
			if len(v.blocked(b)) > 0 {
				return nil // it does not fall back to the next
			}
			return b
		}
	}
	return nil
}

// pin collects what the decision rests on.
func (v *view) pin(b *v1alpha1.Bundle, p *Preview, artifacts []ArtifactEvidence) Pin {
	pin := Pin{
		Namespace: v.g.Namespace, Gate: v.g.Name, GateUID: string(v.g.UID), GateGeneration: v.g.Generation, Bundle: p.Bundle, Suspended: v.g.Spec.Suspend,
		Passages: []string{}, NotEligible: []RefusalReason{}, Checks: []PinnedCheck{}, Verdicts: []PinnedVerdict{},
		Window: string(v.window.Code),
	}
	if v.g.Spec.Passage != nil {
		pin.Steps = gate.DigestSteps(v.g.Spec.Passage.Steps, v.g.Spec.Vars)
	}
	if c := v.g.Status.Current; c != nil {
		pin.Current = c.Bundle
	}
	for _, r := range v.running {
		pin.Passages = append(pin.Passages, string(r.UID))
	}
	slices.Sort(pin.Passages)
	if b != nil {
		pin.BundleUID, pin.BundleDigest = string(b.UID), b.Spec.Digest
		if a := gate.Judge(v.g, b).Approval; a != nil {
			pin.Approval = a.Actor
		}
	}
	for _, r := range p.Refusals {
		switch r.Reason {
		case RefusedNotAdmitted, RefusedCurrent, RefusedUpstream, RefusedNotApproved:
			pin.NotEligible = append(pin.NotEligible, r.Reason)
		}
	}
	for _, c := range p.Evidence {
		pin.Checks = append(pin.Checks, PinnedCheck{c.Check, c.Digest, c.Result})
	}
	for _, a := range artifacts {
		pv := PinnedVerdict{Digest: a.Digest, Trail: a.Trail, Conclusion: a.Conclusion}
		if vd := a.Verdict; vd != nil {
			pv.Recommendation, pv.Passed = string(vd.Recommendation), slices.Sorted(slices.Values(vd.Passed))
			pv.Failed, pv.Missing, pv.Waived = controlKeys(vd)
		}
		pin.Verdicts = append(pin.Verdicts, pv)
	}
	return pin
}

// summarise says the answer in one line.
func (p *Preview) summarise(v *view) string {
	what := p.Bundle
	if what == "" {
		what = "nothing"
	}
	switch p.Verdict {
	case PreviewRefused:
		more := ""
		if n := len(p.Refusals) - 1; n > 0 {
			more = fmt.Sprintf(" (and %s more)", plural(n, "obstacle"))
		}
		return fmt.Sprintf("%s would not cross %s: %s%s", what, p.Gate, p.Refusals[0].Detail, more)
	case PreviewWouldFail, PreviewWouldHold, PreviewUnknown:
		verb := map[PreviewVerdict]string{
			PreviewWouldFail: "would fail at the evidence step of", PreviewWouldHold: "would be held by the evidence step of",
			PreviewUnknown: "may cross, but not everything is known about"}[p.Verdict]
		for _, want := range []CheckResult{CheckFail, CheckHold, CheckUnknown, CheckNotConfigured, CheckNotAsked} {
			for _, c := range p.Evidence {
				if c.Result == want && (want != CheckHold || p.Verdict != PreviewUnknown) {
					return fmt.Sprintf("%s %s %s: %s: %s", what, verb, p.Gate, c.Check, c.Detail)
				}
			}
		}
		return fmt.Sprintf("%s %s %s", what, verb, p.Gate)
	}
	if v.takesItself(v.e.byBundle[key{Namespace: v.g.Namespace, Name: p.Bundle}]) {
		return fmt.Sprintf("%s will cross %s by itself", what, p.Gate)
	}
	return fmt.Sprintf("%s would cross %s; somebody has to ask for it", what, p.Gate)
}
