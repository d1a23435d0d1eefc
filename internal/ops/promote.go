package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
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
	known  map[string]bool
	view   *view
	bundle *v1alpha1.Bundle // nil only in a refused plan
}

// Promoted is a promotion that was made.
type Promoted struct {
	Passage  Object
	Warnings []Warning
	// Own: the Passage was there already, from this very call.
	Own bool
}

// PlanPromote says what a promotion would do. It is Preview, with a name for the
// Passage and the rules for the actor. Errors are Preview's, *InvalidError, and the
// API server's where it did not let the Passages or Bundles be read.
func (o *Ops) PlanPromote(ctx context.Context, q PromoteQuery) (*PromotePlan, error) {
	if q.ActorEmail != "" {
		if err := PlainEmail(q.ActorEmail); err != nil {
			return nil, err
		}
	}
	preview, from, err := o.surePreview(ctx, q.PreviewQuery)
	if err != nil {
		return nil, err
	}
	v := from.view
	passages := v.e.passages[v.key]
	p := &PromotePlan{Preview: preview, query: q, slot: slot(v.g, passages), known: map[string]bool{}, view: v, bundle: from.bundle}
	for _, x := range passages {
		p.known[string(x.UID)] = true
	}
	if q.ActorEmail != "" && slices.Contains(evidenceStep(v.g).checks, CheckChange) && !approvedByOther(from.artifacts, q.ActorEmail) {
		self := v.object()
		p.Refusals = append(p.Refusals, Refusal{Reason: RefusedDeployer, Object: &self, Fix: "promote without an e-mail address as actor, or after another person approved",
			Detail: fmt.Sprintf("the change step records %s as deployer, and no other person is known to have signed the trail off: the deployer's own sign-off alone would lift the hold", clean(q.ActorEmail, 200))})
		p.Verdict, p.WouldCross = PreviewRefused, false
		p.Summary = p.summarise(v)
	}
	return p, nil
}

// approvedByOther says whether a person other than who has approved the trail that
// the change step looks at, the first image's.
func approvedByOther(artifacts []ArtifactEvidence, who string) bool {
	first := firstOf(artifacts)
	return first != nil && slices.ContainsFunc(first.Approvals, func(a TrailApproval) bool {
		return a.Kind == fides.KindSession && a.Role == fides.RoleApprover && !strings.EqualFold(a.By, who)
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
func (p *PromotePlan) Refused() *RefusedError { return refusedBy(p.Refusals) }

// Lines show what would cross, every warning, and how it would be done. A client's
// form is small: what a person must not miss comes before the long lists.
func (p *PromotePlan) Lines() []string {
	g := p.view.g
	out := []string{"gate: " + p.Namespace + "/" + p.Gate, "bundle: " + orNone(p.Bundle), "replaces: " + orNone(clean(p.Pin.Current, 253))}
	if p.Pin.Approval != "" {
		out = append(out, "approved by: "+clean(p.Pin.Approval, 120))
	}
	if p.query.ActorEmail != "" {
		out = append(out, "recorded as: "+clean(p.query.ActorEmail, 200))
	}
	out = append(out, "would end: "+string(p.Verdict))
	out = append(out, refusalLines(p.Refusals)...)
	out = append(out, warningLines(p.Warnings)...)
	out = append(out, evidenceLines(p.Evidence)...)
	if p.bundle != nil {
		out = append(out, "digest: "+clean(p.Preview.Digest, 80), "artifacts:")
		out = append(out, artifactLines(p.bundle)...)
	}
	if g.Spec.Passage != nil {
		out = append(out, "steps:")
		for i, line := range listed(g.Spec.Passage.Steps, func(s v1alpha1.Step) string { return clean(s.Uses+" "+s.As, 120) }) {
			out = append(out, fmt.Sprintf("  %d. %s", i+1, line))
		}
	}
	return out
}

// Bounds of making one write when the API server does not answer.
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
// names it), *DriftedError, *InvalidError, those of PlanPromote, and the API
// server's. After one of the last that says so, the Passage may be there or not;
// promoting again tells.
func (o *Ops) Promote(ctx context.Context, p *PromotePlan, a Actor) (*Promoted, error) {
	if r := p.Refused(); r != nil {
		return nil, r
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	a = a.called()
	sent := false
	deadline := time.Now().Add(retryFor)
	for {
		before := sent
		done, err := o.promoteOnce(ctx, p, a, &sent)
		switch {
		case err == nil:
			return done, nil
		case !unanswered(err) && !apierrors.IsAlreadyExists(err):
			return nil, err
		case sent && !before:
			deadline = time.Now().Add(retryFor) // however long it hung: look at least once
		}
		if time.Now().Before(deadline) && sleep(ctx, retryEvery) {
			continue
		}
		if sent {
			err = fmt.Errorf("whether Passage %s was opened is not known; asking again opens no second one: %w", p.slot, err)
		}
		return nil, err
	}
}

// promoteOnce looks for what is there already and else makes the Passage. sent is
// set once the API server may have been asked for one.
func (o *Ops) promoteOnce(ctx context.Context, p *PromotePlan, a Actor, sent *bool) (*Promoted, error) {
	var there v1alpha1.Passage
	err := o.Client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: p.slot}, &there)
	switch {
	case err == nil && there.Annotations[AnnotationCallID] == a.callMark():
		return &Promoted{Passage: p.view.passageObject(&there), Own: true, Warnings: o.besides(ctx, p.view.g, &there)}, nil
	case err == nil:
		return nil, overtaken(&there)
	case sourceCode(err) != SourceNotFound:
		return nil, err
	}
	q := p.query
	q.Namespace, q.Gate, q.Bundle = p.Namespace, p.Gate, p.Bundle
	if PlainEmail(a.Name) == nil {
		q.ActorEmail = a.Name // it is recorded, whoever planned
	}
	now, err := o.PlanPromote(ctx, q)
	if err != nil {
		return nil, err
	}
	if err := p.compare(now); err != nil {
		return nil, err
	}
	passage, err := gate.BuildPassage(now.view.g, now.bundle, clean(a.Name, 200))
	if err != nil {
		return nil, err
	}
	passage.GenerateName, passage.Name, passage.Annotations = "", p.slot, a.annotations()
	err = o.Client.Create(ctx, passage)
	*sent = *sent || err == nil || unanswered(err)
	if err != nil {
		return nil, err // also AlreadyExists: whose it is shows at the next look
	}
	return &Promoted{Passage: now.view.passageObject(passage), Warnings: o.besides(ctx, now.view.g, passage)}, nil
}

// overtaken is the refusal of a plan that another Passage came before.
func overtaken(by *v1alpha1.Passage) *RefusedError {
	obj := hecate(v1alpha1.KindPassage, by.Namespace, by.Name)
	detail := fmt.Sprintf("Passage %s of %s came first", by.Name, clean(by.Spec.Bundle, 253))
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

// besides looks once more after a Passage was opened: somebody who creates
// Passages under other names (kubectl, the controller of an automatic Gate) may
// have done so in the same instant.
func (o *Ops) besides(ctx context.Context, g *v1alpha1.Gate, mine *v1alpha1.Passage) []Warning {
	if !mine.Active() {
		return nil
	}
	others, err := o.running(ctx, g, mine.UID)
	if err != nil {
		obj := hecate(v1alpha1.KindPassage, mine.Namespace, mine.Name)
		return []Warning{{WarnConcurrent, "whether another Passage was opened at the same instant could not be read", &obj}}
	}
	var out []Warning
	for _, x := range others {
		obj := hecate(v1alpha1.KindPassage, x.Namespace, x.Name)
		out = append(out, Warning{Kind: WarnConcurrent, Object: &obj,
			Detail: fmt.Sprintf("Passage %s of %s is not finished either: it and %s cross %s side by side; abort one", x.Name, clean(x.Spec.Bundle, 253), mine.Name, mine.Spec.Gate)})
	}
	return out
}

// running are the Passages of a Gate that are not finished, but for one: those
// with its label, which a long name can't be, and those with none.
func (o *Ops) running(ctx context.Context, g *v1alpha1.Gate, but types.UID) ([]v1alpha1.Passage, error) {
	selectors := []labels.Selector{unlabelledSelector()}
	if len(g.Name) <= gate.MaxLabelLength {
		selectors = append(selectors, ofGate(g.Name))
	}
	var out []v1alpha1.Passage
	for _, s := range selectors {
		ps, err := o.listPassages(ctx, g.Namespace, s)
		if err != nil {
			return nil, err
		}
		for _, x := range ps {
			if gateOf(&x) == g.Name && x.Active() && x.UID != but {
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// unanswered says that the API server's answer is missing, so that what was asked
// may have happened or not.
func unanswered(err error) bool {
	switch cluster.Classify(err) {
	case cluster.CodeUnavailable, cluster.CodeTimeout:
		return true
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
