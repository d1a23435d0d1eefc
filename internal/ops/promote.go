package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// PromoteQuery asks for a promotion.
type PromoteQuery struct {
	PreviewQuery
	// ActorEmail is recorded as the actor instead of the API server's user; ""
	// for none.
	ActorEmail string
}

// PromotePlan is what a promotion would do: the Preview, and what it rests on.
type PromotePlan struct {
	*Preview
	query PromoteQuery
	// slot is the name of the Passage that would be opened.
	slot string
	// known are the Passages of the Gate, by UID.
	known    map[string]bool
	view     *view
	bundle   *v1alpha1.Bundle
	refusals []Refusal
}

// Promoted is a promotion that was made.
type Promoted struct {
	Passage  Object
	Warnings []Warning
	// Own: the Passage was there already, from this very call.
	Own bool
}

// PlanPromote says what a promotion would do. It is Preview, with a name for the
// Passage and the rules for the actor. Errors are Preview's and *InvalidError.
func (o *Ops) PlanPromote(ctx context.Context, q PromoteQuery) (*PromotePlan, error) {
	if q.ActorEmail != "" {
		if err := PlainEmail(q.ActorEmail); err != nil {
			return nil, err
		}
	}
	preview, from, err := o.preview(ctx, q.PreviewQuery)
	if err != nil {
		return nil, err
	}
	v := from.view
	passages := v.e.passages[v.key]
	p := &PromotePlan{Preview: preview, query: q, slot: slot(v.g, passages), known: map[string]bool{}, view: v, bundle: from.bundle}
	for _, x := range passages {
		p.known[string(x.UID)] = true
	}
	p.refusals = slices.Clone(preview.Refusals)
	self := v.object()
	if !v.passagesKnown() {
		p.refusals = append(p.refusals, Refusal{Reason: RefusedUnread, Object: &self, Detail: "the Passages of " + v.g.Name + " could not be read: whether one is crossing is not known"})
	}
	if q.ActorEmail != "" && slices.Contains(evidenceStep(v.g).checks, CheckChange) && !personApproved(from.artifacts) {
		p.refusals = append(p.refusals, Refusal{Reason: RefusedDeployer, Object: &self, Fix: "promote without an e-mail actor, or after a person approved",
			Detail: fmt.Sprintf("the change step records %s as deployer, and no other person has signed the trail off, as far as can be told: that sign-off alone would lift the hold", clean(q.ActorEmail, 200))})
	}
	return p, nil
}

// personApproved says whether a person has approved the trail that the change
// step looks at, the first image's.
func personApproved(artifacts []ArtifactEvidence) bool {
	first := firstOf(artifacts)
	return first != nil && slices.ContainsFunc(first.Approvals, func(a TrailApproval) bool {
		return a.Kind == fides.KindSession && a.Role == fides.RoleApprover
	})
}

// Digest is the pin's: the Passage's name is no part of it, since the Passages
// that it comes from are judged one by one.
func (p *PromotePlan) Digest() string { return p.Pin.Digest() }

// Title says in one line what would be done.
func (p *PromotePlan) Title() string {
	return fmt.Sprintf("promote %s through %s in %s", orNone(p.Bundle), p.Gate, p.Namespace)
}

// Confirm is the Gate's name.
func (p *PromotePlan) Confirm() string { return p.Gate }

// Refused is the first refusal of the rules.
func (p *PromotePlan) Refused() *RefusedError { return refusedBy(p.refusals) }

// Lines show what would cross, how, and every warning.
func (p *PromotePlan) Lines() []string {
	g := p.view.g
	out := []string{"gate: " + p.Namespace + "/" + p.Gate, "bundle: " + orNone(p.Bundle)}
	if p.bundle != nil {
		out = append(out, "digest: "+clean(p.Preview.Digest, 80), "artifacts:")
		out = append(out, artifactLines(p.bundle)...)
	}
	out = append(out, "replaces: "+orNone(p.Pin.Current))
	if g.Spec.Passage != nil {
		out = append(out, "steps:")
		for i, s := range g.Spec.Passage.Steps {
			if i == 2*MaxNames {
				out = append(out, fmt.Sprintf("  … and %d more", len(g.Spec.Passage.Steps)-i))
				break
			}
			out = append(out, fmt.Sprintf("  %d. %s", i+1, clean(s.Uses, 80)))
		}
	}
	if p.Pin.Approval != "" {
		out = append(out, "approved by: "+clean(p.Pin.Approval, 120))
	}
	if p.query.ActorEmail != "" {
		out = append(out, "recorded as: "+clean(p.query.ActorEmail, 200))
	}
	out = append(out, "would end: "+string(p.Verdict))
	for _, c := range p.Evidence {
		out = append(out, clean(fmt.Sprintf("evidence: %s %s %s", c.Check, c.Result, c.Detail), 300))
	}
	for _, r := range p.refusals {
		out = append(out, fmt.Sprintf("REFUSED %s: %s", r.Reason, clean(r.Detail, 300)))
	}
	return append(out, warningLines(p.Warnings)...)
}

// Bounds of making one promotion when the API server does not answer.
const (
	retryEvery = 500 * time.Millisecond
	retryFor   = 30 * time.Second
)

// Promote opens the planned Passage: it plans again, compares, and creates the
// Passage under the plan's name, which the API server gives once. Made again with
// the same plan and the same CallID it finds its own Passage, so an answer that
// was lost is asked for again, here and by callers, without a second crossing.
//
// Errors are *RefusedError (also when another Passage came first: its object
// names it), *DriftedError, those of PlanPromote, and the API server's. After
// one of the last, when the API server does not answer at all, the Passage may
// be there or not; promoting again tells.
func (o *Ops) Promote(ctx context.Context, p *PromotePlan, a Actor) (*Promoted, error) {
	if r := p.Refused(); r != nil {
		return nil, r
	}
	deadline := time.Now().Add(retryFor)
	for {
		done, err := o.promoteOnce(ctx, p, a)
		if err == nil || !unanswered(err) {
			return done, err
		}
		if time.Now().After(deadline) || !sleep(ctx, retryEvery) {
			return nil, fmt.Errorf("the API server gave no answer: whether Passage %s was opened is not known; asking again opens no second one: %w", p.slot, err)
		}
	}
}

func (o *Ops) promoteOnce(ctx context.Context, p *PromotePlan, a Actor) (*Promoted, error) {
	q := p.query
	q.Namespace, q.Gate, q.Bundle = p.Namespace, p.Gate, p.Bundle
	now, err := o.PlanPromote(ctx, q)
	if err != nil {
		return nil, err
	}
	v := now.view
	for _, x := range v.e.passages[v.key] {
		if x.Name == p.slot && own(x, a) {
			return &Promoted{Passage: v.passageObject(x), Own: true, Warnings: now.concurrent(x)}, nil
		}
	}
	if err := p.compare(now); err != nil {
		return nil, err
	}
	passage, err := gate.BuildPassage(v.g, now.bundle, a.Name)
	if err != nil {
		return nil, err
	}
	passage.GenerateName, passage.Name, passage.Annotations = "", p.slot, a.annotations()
	err = o.Client.Create(ctx, passage)
	if apierrors.IsAlreadyExists(err) {
		var there v1alpha1.Passage
		if err := o.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.slot}, &there); err != nil {
			return nil, err
		}
		if own(&there, a) {
			return &Promoted{Passage: v.passageObject(&there), Own: true}, nil
		}
		return nil, overtaken(&there)
	}
	if err != nil {
		return nil, err
	}
	return &Promoted{Passage: v.passageObject(passage), Warnings: o.besides(ctx, v.g, passage)}, nil
}

// own says whether a Passage was opened by this very call.
func own(p *v1alpha1.Passage, a Actor) bool {
	return a.CallID != "" && p.Annotations[AnnotationCallID] == a.annotations()[AnnotationCallID]
}

// overtaken is the refusal of a plan that another Passage came before.
func overtaken(by *v1alpha1.Passage) *RefusedError {
	obj := hecate(v1alpha1.KindPassage, by.Namespace, by.Name)
	detail := fmt.Sprintf("Passage %s of %s came first", by.Name, by.Spec.Bundle)
	if !by.Active() {
		detail += fmt.Sprintf(", and is %s by now", by.Phase())
	}
	r := Refusal{Reason: RefusedCrossing, Detail: detail, Object: &obj, Fix: "look at it, then plan again"}
	return refusedBy([]Refusal{r})
}

// compare holds the plan against a new one of the same question.
func (p *PromotePlan) compare(now *PromotePlan) error {
	v := now.view
	// Of several that came since, the one that crosses is named.
	var since *v1alpha1.Passage
	for _, x := range v.e.passages[v.key] {
		if !p.known[string(x.UID)] && (since == nil || x.Active() && !since.Active()) {
			since = x
		}
	}
	if since != nil {
		return overtaken(since)
	}
	self := v.object()
	diffs := differences(p.Pin, now.Pin)
	if len(diffs) == 0 && p.slot != now.slot {
		diffs = append(diffs, Difference{"newestPassage", "as planned", "deleted since"})
	}
	if len(diffs) > 0 {
		return &DriftedError{Object: &self, Differences: diffs}
	}
	if r := now.Refused(); r != nil {
		return r
	}
	return nil
}

// concurrent warns of other Passages of the Gate that are not finished.
func (p *PromotePlan) concurrent(mine *v1alpha1.Passage) []Warning {
	return concurrent(p.view.running, mine)
}

func concurrent(running []*v1alpha1.Passage, mine *v1alpha1.Passage) []Warning {
	var out []Warning
	for _, x := range running {
		if x.UID != mine.UID && mine.Active() {
			obj := hecate(v1alpha1.KindPassage, x.Namespace, x.Name)
			out = append(out, Warning{Kind: WarnConcurrent, Object: &obj, Detail: fmt.Sprintf("Passage %s of %s is not finished either: two crossings of %s run side by side; abort one", x.Name, x.Spec.Bundle, mine.Spec.Gate)})
		}
	}
	return out
}

// besides looks once more after a Passage was opened: somebody who creates
// Passages under other names (kubectl, the controller of an automatic Gate) may
// have done so in the same instant.
func (o *Ops) besides(ctx context.Context, g *v1alpha1.Gate, mine *v1alpha1.Passage) []Warning {
	var running []*v1alpha1.Passage
	for _, sel := range passageSelectors(g) {
		ps, err := o.listPassages(ctx, g.Namespace, sel)
		if err != nil {
			obj := hecate(v1alpha1.KindPassage, mine.Namespace, mine.Name)
			return []Warning{{WarnConcurrent, "whether another Passage was opened at the same instant could not be read", &obj}}
		}
		for i := range ps {
			if gateOf(&ps[i]) == g.Name && ps[i].Active() {
				running = append(running, &ps[i])
			}
		}
	}
	return concurrent(running, mine)
}

// unanswered says that the API server's answer is missing, so that what was asked
// may have happened or not.
func unanswered(err error) bool {
	switch cluster.Classify(err) {
	case cluster.CodeUnavailable, cluster.CodeTimeout:
		return !errors.Is(err, context.Canceled)
	}
	return false
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
