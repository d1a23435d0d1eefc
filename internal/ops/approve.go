package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// PlanApprove says what would be approved. Errors are Preview's, and the API
// server's where it did not let the Bundles be read.
func (o *Ops) PlanApprove(ctx context.Context, q ApproveQuery) (*ApprovePlan, error) {
	preview, from, err := o.surePreview(ctx, PreviewQuery(q))
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
	admission := gate.Admission(v.g, b.Spec.Beacon)
	switch {
	case admission == nil:
		refuse(RefusedNotAdmitted, obj, "%s comes from Beacon %s, which %s does not admit", b.Name, b.Spec.Beacon, v.g.Name)
	case !admission.RequireApproval:
		refuse(RefusedNotNeeded, self, "%s asks for no approval of Bundles of Beacon %s", v.g.Name, b.Spec.Beacon)
	case q.Bundle == "" && verdict.Current:
		refuse(RefusedCurrent, obj, "%s is in %s already, and nothing newer waits", b.Name, v.g.Name)
	}
	if a := verdict.Approval; a != nil {
		p.pin.Approval = a.Actor
		refuse(RefusedApproved, obj, "%s approved %s for %s at %s: that approval stands", clean(a.Actor, 120), b.Name, v.g.Name, stamp(a.At))
	}
	if v.g.Spec.Evidence != nil {
		first := firstOf(from.artifacts)
		if first != nil {
			p.trail = first.Trail
		}
		p.pin.Trail = p.trail
		switch {
		case o.DialFides == nil:
			refuse(RefusedNoEvidence, self, "the approval has to be recorded in the evidence server, and none may be asked here")
		case p.trail == "" && first != nil && first.Detail != "":
			refuse(RefusedNoEvidence, obj, "the approval has to be recorded on the trail of the first image: %s", first.Detail)
		case p.trail == "":
			refuse(RefusedNoEvidence, obj, "the approval has to be recorded on the trail of the first image, and there is none")
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
	out = append(out, refusalLines(p.refusals)...)
	out = append(out, warningLines(p.warnings())...)
	out = append(out, evidenceLines(p.preview.Evidence)...)
	if k := p.preview.Packet; k != nil {
		out = append(out, listed(k.Missing, func(m string) string { return "missing: " + clean(m, 200) })...)
		out = append(out, listed(k.NotBy, func(x Exclusion) string { return fmt.Sprintf("may not approve: %s (%s)", clean(x.Who, 120), x.Why) })...)
		if !k.CommitterKnown && p.trail != "" {
			out = append(out, "Nobody has said who wrote the change: whether you may approve it is for you to know.")
		}
	}
	if p.trail != "" {
		out = append(out, "recorded too as sign-off on the trail: "+clean(p.trail, 80))
	}
	if p.bundle != nil {
		out = append(out, "digest: "+clean(p.pin.BundleDigest, 80), "artifacts:")
		out = append(out, artifactLines(p.bundle)...)
	}
	return out
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
		if strings.EqualFold(x.Who, who) {
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
	if err := a.check(); err != nil {
		return nil, err
	}
	q := p.query
	q.Namespace, q.Gate, q.Bundle = p.pin.Namespace, p.pin.Gate, p.pin.Bundle
	now, err := o.PlanApprove(ctx, q)
	if err != nil {
		return nil, err
	}
	if r := now.Refused(); r != nil && now.pin.Approval != "" {
		return nil, r // somebody else approved meanwhile: that stands
	}
	self := now.view.object()
	if diffs := differences(p.pin, now.pin); len(diffs) > 0 {
		return nil, &DriftedError{Object: &self, Differences: diffs}
	}
	if r := now.Refused(); r != nil {
		return nil, r
	}
	var warnings []Warning
	if p.trail != "" {
		if warnings, err = o.signOff(ctx, now, a); err != nil {
			return nil, err
		}
	}
	out := &Approved{Warnings: warnings, Bundle: hecate(v1alpha1.KindBundle, p.pin.Namespace, p.pin.Bundle), Gate: p.pin.Gate, Actor: clean(a.Name, 200),
		At: o.now().UTC().Format(time.RFC3339)}
	if err := insist(ctx, func() error { return o.approveOnce(ctx, p, out) }); err != nil {
		if p.trail != "" {
			err = fmt.Errorf("the sign-off stands on trail %s, but the Bundle is not approved: %w", p.trail, err)
		}
		return nil, err
	}
	return out, nil
}

// signOff records the approval on the trail, and refuses when it would not or did
// not count as this person's. That the approver wrote or deploys the change is for
// the evidence server to hold against it: here it is a warning.
func (o *Ops) signOff(ctx context.Context, p *ApprovePlan, a Actor) ([]Warning, error) {
	g := p.view.g
	self := p.view.object()
	refuse := func(reason RefusalReason, format string, args ...any) ([]Warning, error) {
		return nil, refusedBy([]Refusal{{Reason: reason, Object: &self, Detail: fmt.Sprintf(format, args...)}})
	}
	// Without an address nobody can be named, and the key's owner would be recorded.
	if PlainEmail(a.Name) != nil {
		return refuse(RefusedNotHuman, "the evidence server knows people by e-mail address, and the cluster knows you as %s: approve there as yourself", clean(a.Name, 120))
	}
	server := g.Spec.Evidence.ServerURL
	if server == "" {
		server = o.FidesServer
	}
	token, _, missing := o.credentials(ctx, []*v1alpha1.Gate{g})
	if token == "" {
		return refuse(RefusedNoEvidence, "%s", credentialDetail(g, missing))
	}
	c, err := o.DialFides(fides.Config{BaseURL: server, Token: token})
	if err != nil {
		return refuse(RefusedNoEvidence, "%s", mask(err.Error(), token))
	}
	r, err := c.Approve(ctx, p.trail, fides.ApprovalRequest{Role: fides.RoleApprover, OnBehalfOf: a.Name,
		Reason: clean(fmt.Sprintf("approves %s for %s/%s", p.pin.Bundle, p.pin.Namespace, p.pin.Gate), 300)})
	switch {
	case err != nil:
		return nil, err
	case r.OnBehalfOfIgnored:
		return refuse(RefusedNotHuman, "the evidence server recorded the sign-off as that of %s (%s) and not as yours: its key may not delegate; approve there as yourself", clean(r.ApprovedBy, 120), clean(r.Kind, 40))
	case !r.Human():
		return refuse(RefusedNotHuman, "the evidence server recorded the sign-off of %s as a service identity's, which does not count; approve there as yourself", clean(r.ApprovedBy, 120))
	}
	var out []Warning
	if sod := r.SegregationOfDuties; sod != nil {
		if strings.EqualFold(sod.Committer, a.Name) {
			out = append(out, Warning{WarnEvidencePart, clean(a.Name, 120) + " wrote the change too: a segregation-of-duties violation", &self})
		}
		if slices.ContainsFunc(sod.Deployers, func(d string) bool { return strings.EqualFold(d, a.Name) }) {
			out = append(out, Warning{WarnEvidencePart, clean(a.Name, 120) + " deploys the change too: a segregation-of-duties violation", &self})
		}
	}
	return out, nil
}

// approveOnce writes what out says to the Bundle, unless it stands there.
func (o *Ops) approveOnce(ctx context.Context, p *ApprovePlan, out *Approved) error {
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
		if m["actor"] == out.Actor && m["at"] == out.At {
			return nil // the answer to this very approval was lost
		}
		return refusedBy([]Refusal{{Reason: RefusedApproved, Object: &obj, Detail: fmt.Sprintf("%v approved it first: that approval stands", clean(fmt.Sprint(m["actor"]), 120))}})
	}
	list = append(list, map[string]any{"gate": p.pin.Gate, "actor": out.Actor, "at": out.At})
	if err := unstructured.SetNestedSlice(u.Object, list, "status", "approvedFor"); err != nil {
		return err
	}
	return o.Client.Status().Update(ctx, u)
}
