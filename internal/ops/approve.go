package ops

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// ApproveQuery names what a person would approve. An approval is a person's own:
// nothing that a model can reach plans or gives one.
type ApproveQuery struct {
	Namespace, Gate string
	// Bundle is an exact name; empty takes the newest one not yet in.
	Bundle            string
	ConsultChangeGate bool
}

// ApprovePlan is an approval that would be given.
type ApprovePlan struct {
	query    ApproveQuery
	preview  *Preview
	view     *view
	bundle   *v1alpha1.Bundle
	trail    string
	pin      approvePin
	refusals []Refusal
}

type approvePin struct {
	Namespace      string          `json:"namespace"`
	Gate           string          `json:"gate"`
	GateUID        string          `json:"gateUID"`
	GateGeneration int64           `json:"gateGeneration"`
	Bundle         string          `json:"bundle"`
	BundleUID      string          `json:"bundleUID"`
	BundleDigest   string          `json:"bundleDigest"`
	Approval       string          `json:"approval"`
	Trail          string          `json:"trail"`
	Verdicts       []PinnedVerdict `json:"verdicts"`
}

// Approved is an approval that was given.
type Approved struct {
	Bundle   Object
	Gate     string
	Actor    string
	At       string
	Warnings []Warning
}

// PlanApprove says what would be approved. Errors are Preview's.
func (o *Ops) PlanApprove(ctx context.Context, q ApproveQuery) (*ApprovePlan, error) {
	preview, from, err := o.preview(ctx, PreviewQuery{Namespace: q.Namespace, Gate: q.Gate, Bundle: q.Bundle, ConsultChangeGate: q.ConsultChangeGate})
	if err != nil {
		return nil, err
	}
	v, b := from.view, from.bundle
	p := &ApprovePlan{query: q, preview: preview, view: v, bundle: b}
	p.pin = approvePin{Namespace: v.g.Namespace, Gate: v.g.Name, GateUID: string(v.g.UID), GateGeneration: v.g.Generation, Bundle: preview.Bundle, Verdicts: preview.Pin.Verdicts}
	self := v.object()
	refuse := func(reason RefusalReason, obj Object, format string, args ...any) {
		p.refusals = append(p.refusals, Refusal{Reason: reason, Object: &obj, Detail: fmt.Sprintf(format, args...)})
	}
	if b == nil {
		refuse(RefusedNoBundle, self, "no Bundle from any admitted Beacon")
		return p, nil
	}
	obj := hecate(v1alpha1.KindBundle, b.Namespace, b.Name)
	verdict := gate.Judge(v.g, b)
	p.pin.BundleUID, p.pin.BundleDigest = string(b.UID), b.Spec.Digest
	if verdict.Approval != nil {
		p.pin.Approval = verdict.Approval.Actor
	}
	admission := gate.Admission(v.g, b.Spec.Beacon)
	switch {
	case admission == nil:
		refuse(RefusedNotAdmitted, obj, "%s comes from Beacon %s, which %s does not admit", b.Name, b.Spec.Beacon, v.g.Name)
	case !admission.RequireApproval:
		refuse(RefusedNotNeeded, self, "%s asks for no approval of Bundles of Beacon %s", v.g.Name, b.Spec.Beacon)
	}
	if a := verdict.Approval; a != nil {
		refuse(RefusedApproved, obj, "%s approved %s for %s at %s: that approval stands", clean(a.Actor, 120), b.Name, v.g.Name, stamp(a.At))
	}
	if v.g.Spec.Evidence != nil {
		if first := firstOf(from.artifacts); first != nil {
			p.trail = first.Trail
		}
		p.pin.Trail = p.trail
		switch {
		case o.DialFides == nil:
			refuse(RefusedNoEvidence, self, "the approval has to be recorded in the evidence server, and nothing may be asked here")
		case p.trail == "":
			refuse(RefusedNoEvidence, obj, "the approval has to be recorded on the trail of the first image, and none was found")
		}
	}
	return p, nil
}

// Namespace is the Gate's and the Bundle's.
func (p *ApprovePlan) Namespace() string { return p.pin.Namespace }

// Digest is of what is approved and what speaks for it.
func (p *ApprovePlan) Digest() string { return digestOf(p.pin) }

// Title says in one line what would be done.
func (p *ApprovePlan) Title() string {
	return fmt.Sprintf("approve %s for %s in %s", orNone(p.pin.Bundle), p.pin.Gate, p.pin.Namespace)
}

// Confirm is the Gate's name.
func (p *ApprovePlan) Confirm() string { return p.pin.Gate }

// Refused is the first refusal of the rules.
func (p *ApprovePlan) Refused() *RefusedError { return refusedBy(p.refusals) }

// Lines show what an approver decides on: what is in the Bundle, the evidence, and
// who may not approve.
func (p *ApprovePlan) Lines() []string {
	out := []string{"gate: " + p.pin.Namespace + "/" + p.pin.Gate, "bundle: " + orNone(p.pin.Bundle)}
	if p.bundle != nil {
		out = append(out, "digest: "+clean(p.pin.BundleDigest, 80), "artifacts:")
		out = append(out, artifactLines(p.bundle)...)
	}
	if p.trail != "" {
		out = append(out, "recorded too as sign-off on the trail: "+clean(p.trail, 80))
	}
	for _, c := range p.preview.Evidence {
		out = append(out, clean(fmt.Sprintf("evidence: %s %s %s", c.Check, c.Result, c.Detail), 300))
	}
	if k := p.preview.Packet; k != nil {
		for _, m := range k.Missing {
			out = append(out, "missing: "+clean(m, 200))
		}
		for _, x := range k.NotBy {
			out = append(out, fmt.Sprintf("may not approve: %s (%s)", clean(x.Who, 120), x.Why))
		}
		if !k.CommitterKnown && p.trail != "" {
			out = append(out, "Nobody has said who wrote the change: whether you may approve it is for you to know.")
		}
	}
	for _, r := range p.refusals {
		out = append(out, fmt.Sprintf("REFUSED %s: %s", r.Reason, clean(r.Detail, 300)))
	}
	return append(out, warningLines(p.warnings())...)
}

// warnings are those of the promotion that an approver has to see too.
func (p *ApprovePlan) warnings() []Warning {
	var out []Warning
	for _, w := range p.preview.Warnings {
		switch w.Kind {
		case WarnRollback, WarnFailedBefore, WarnEvidence, WarnEvidenceAsk, WarnNotAsked, WarnEvidencePart:
			out = append(out, w)
		}
	}
	return out
}

// ExcludedBy says why somebody may not approve, as far as the evidence tells; ""
// when nothing speaks against it.
func (p *ApprovePlan) ExcludedBy(who string) ExclusionReason {
	if p.preview.Packet == nil {
		return ""
	}
	for _, x := range p.preview.Packet.NotBy {
		if x.Who == who {
			return x.Why
		}
	}
	return ""
}

// Approve records the planned approval: first in the evidence server, where the
// Gate has one and where it has to count as a person's, then on the Bundle. One
// approval a Gate stands; another one is never overwritten. Errors are
// *RefusedError, *DriftedError, those of PlanApprove, *fides.Error and the API
// server's.
func (o *Ops) Approve(ctx context.Context, p *ApprovePlan, a Actor) (*Approved, error) {
	if r := p.Refused(); r != nil {
		return nil, r
	}
	q := p.query
	q.Namespace, q.Gate, q.Bundle = p.pin.Namespace, p.pin.Gate, p.pin.Bundle
	now, err := o.PlanApprove(ctx, q)
	if err != nil {
		return nil, err
	}
	if r := now.Refused(); r != nil && now.pin.Approval != p.pin.Approval {
		return nil, r // somebody else approved meanwhile: that stands
	}
	self := now.view.object()
	if diffs := differences(p.pin, now.pin); len(diffs) > 0 {
		return nil, &DriftedError{Object: &self, Differences: diffs}
	}
	if r := now.Refused(); r != nil {
		return nil, r
	}
	out := &Approved{Bundle: hecate(v1alpha1.KindBundle, p.pin.Namespace, p.pin.Bundle), Gate: p.pin.Gate, Actor: a.Name}
	if p.trail != "" {
		if err := o.signOff(ctx, now, a); err != nil {
			return nil, err
		}
	}
	at := o.now().UTC().Truncate(time.Second)
	out.At = at.Format(time.RFC3339)
	deadline := time.Now().Add(retryFor)
	for conflicts := 0; ; {
		err := o.approveOnce(ctx, p, a, out.At)
		switch {
		case err == nil:
			return out, nil
		case apierrors.IsConflict(err) && conflicts < maxConflicts:
			conflicts++
		case unanswered(err) && time.Now().Before(deadline):
		default:
			return nil, err
		}
		if !sleep(ctx, retryEvery/5) {
			return nil, err
		}
	}
}

// signOff records the approval on the trail, and refuses when it did not count.
func (o *Ops) signOff(ctx context.Context, p *ApprovePlan, a Actor) error {
	g := p.view.g
	self := p.view.object()
	server := g.Spec.Evidence.ServerURL
	if server == "" {
		server = o.FidesServer
	}
	token, _, missing := o.credentials(ctx, []*v1alpha1.Gate{g})
	if token == "" {
		return refusedBy([]Refusal{{Reason: RefusedNoEvidence, Object: &self, Detail: credentialDetail(g, missing)}})
	}
	c, err := o.DialFides(fides.Config{BaseURL: server, Token: token})
	if err != nil {
		return refusedBy([]Refusal{{Reason: RefusedNoEvidence, Object: &self, Detail: mask(err.Error(), token)}})
	}
	request := fides.ApprovalRequest{Role: fides.RoleApprover, Reason: clean(fmt.Sprintf("approves %s for %s/%s", p.pin.Bundle, p.pin.Namespace, p.pin.Gate), 300)}
	if PlainEmail(a.Name) == nil {
		request.OnBehalfOf = a.Name
	}
	r, err := c.Approve(ctx, p.trail, request)
	if err != nil {
		return err
	}
	if !r.Human() {
		return refusedBy([]Refusal{{Reason: RefusedNotHuman, Object: &self,
			Detail: fmt.Sprintf("the evidence server recorded the sign-off as that of %s, a service identity, which does not count; approve there as yourself", clean(r.ApprovedBy, 120))}})
	}
	return nil
}

func (o *Ops) approveOnce(ctx context.Context, p *ApprovePlan, a Actor, at string) error {
	obj := hecate(v1alpha1.KindBundle, p.pin.Namespace, p.pin.Bundle)
	u, err := o.whole(ctx, obj)
	if err != nil {
		return err
	}
	if string(u.GetUID()) != p.pin.BundleUID {
		return &DriftedError{Object: &obj, Differences: []Difference{{"bundleUID", p.pin.BundleUID, string(u.GetUID())}}}
	}
	list, _, err := unstructured.NestedSlice(u.Object, "status", "approvedFor")
	if err != nil {
		return err
	}
	for _, item := range list {
		m, _ := item.(map[string]any)
		if m["gate"] != p.pin.Gate {
			continue
		}
		if m["actor"] == a.Name && m["at"] == at {
			return nil // the answer to this very approval was lost
		}
		return refusedBy([]Refusal{{Reason: RefusedApproved, Object: &obj, Detail: fmt.Sprintf("%v approved it first: that approval stands", clean(fmt.Sprint(m["actor"]), 120))}})
	}
	list = append(list, map[string]any{"gate": p.pin.Gate, "actor": a.Name, "at": at})
	if err := unstructured.SetNestedSlice(u.Object, list, "status", "approvedFor"); err != nil {
		return err
	}
	return o.Client.Status().Update(ctx, u)
}
