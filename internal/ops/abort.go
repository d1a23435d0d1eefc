package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// AbortQuery names the Passage to stop: by its exact name, or the one that is
// crossing a Gate.
type AbortQuery struct {
	Namespace, Passage, Gate string
}

// AbortPlan is a crossing that would be stopped.
type AbortPlan struct {
	passage *v1alpha1.Passage
	// gate is nil when it is not there any more.
	gate *v1alpha1.Gate
	pin  abortPin
}

type abortPin struct {
	Passage string `json:"passage"`
	UID     string `json:"uid"`
	Bundle  string `json:"bundle"`
	Gate    string `json:"gate"`
}

// Aborted is a crossing that was asked to stop.
type Aborted struct {
	Passage Object
	// Phase is as last seen.
	Phase string
	// Restarted is the Passage that an automatic Gate opened for the same Bundle
	// since.
	Restarted *Object
	Warnings  []Warning
}

// PlanAbort finds the Passage. Errors are *NotFoundError, *AmbiguousError (two
// Passages on one Gate) and *RefusedError when nothing crosses the Gate.
func (o *Ops) PlanAbort(ctx context.Context, q AbortQuery) (*AbortPlan, error) {
	p, err := o.toAbort(ctx, q)
	if err != nil {
		return nil, err
	}
	plan := &AbortPlan{passage: p, pin: abortPin{Passage: p.Name, UID: string(p.UID), Bundle: p.Spec.Bundle, Gate: p.Spec.Gate}}
	g, err := o.Gate(ctx, p.Namespace, p.Spec.Gate)
	switch {
	case err == nil:
		plan.gate = g
	case !IsNotFound(err):
		return nil, err
	}
	return plan, nil
}

func (o *Ops) toAbort(ctx context.Context, q AbortQuery) (*v1alpha1.Passage, error) {
	if q.Passage != "" {
		return o.findPassage(ctx, q.Namespace, q.Passage)
	}
	e, err := o.load(ctx, q.Namespace, unlabelledPassages)
	if err != nil {
		return nil, err
	}
	g, err := e.findGate(q.Namespace, q.Gate)
	if err != nil {
		return nil, err
	}
	if err := o.readPassages(ctx, e, []*v1alpha1.Gate{g}); err != nil {
		return nil, err
	}
	v := e.view(g)
	self := v.object()
	if !v.passagesKnown() {
		return nil, refusedBy([]Refusal{{Reason: RefusedUnread, Object: &self, Detail: "the Passages of " + g.Name + " could not be read"}})
	}
	switch len(v.running) {
	case 0:
		return nil, refusedBy([]Refusal{{Reason: RefusedNothingRuns, Object: &self, Detail: "nothing is crossing " + g.Name}})
	case 1:
		return v.running[0], nil
	}
	amb := &AmbiguousError{Kind: v1alpha1.KindPassage, Name: g.Name}
	for _, p := range v.running {
		amb.Candidates = append(amb.Candidates, v.passageObject(p))
	}
	return nil, amb
}

// Object is the Passage.
func (p *AbortPlan) Object() Object {
	return hecate(v1alpha1.KindPassage, p.passage.Namespace, p.passage.Name)
}

// Digest is of the Passage's identity.
func (p *AbortPlan) Digest() string { return digestOf(p.pin) }

// Title says in one line what would be done.
func (p *AbortPlan) Title() string {
	return fmt.Sprintf("abort Passage %s, which takes %s through %s in %s", p.pin.Passage, p.pin.Bundle, p.pin.Gate, p.passage.Namespace)
}

// Confirm is the Gate's name.
func (p *AbortPlan) Confirm() string { return p.pin.Gate }

// Lines show how far the crossing is and what an abort does not undo.
func (p *AbortPlan) Lines() []string {
	x := p.passage
	out := []string{"passage: " + x.Namespace + "/" + x.Name, "gate: " + x.Spec.Gate, "bundle: " + x.Spec.Bundle, "asked for by: " + orNone(clean(x.Spec.Actor, 120)), "phase: " + phaseName(x)}
	if x.Status != nil {
		for i, s := range x.Status.Steps {
			if i == 2*MaxNames {
				break
			}
			out = append(out, clean(fmt.Sprintf("  %d. %s: %s %s", i+1, s.Uses, s.Phase, s.Message), 200))
		}
	}
	out = append(out, "What its steps did already stays: an abort undoes nothing.")
	return append(out, warningLines(p.warnings())...)
}

func (p *AbortPlan) warnings() []Warning {
	if p.gate == nil || !p.gate.Spec.Auto {
		return nil
	}
	obj := hecate(v1alpha1.KindGate, p.gate.Namespace, p.gate.Name)
	return []Warning{{WarnRestart, fmt.Sprintf("%s is automatic: the controller may start %s again, unless it has recorded the abort against that Bundle; suspend the Gate to keep it out", p.gate.Name, p.pin.Bundle), &obj}}
}

// Refused is set for a Passage that is finished or stopping already.
func (p *AbortPlan) Refused() *RefusedError { return abortRefusal(p.passage) }

func abortRefusal(p *v1alpha1.Passage) *RefusedError {
	obj := hecate(v1alpha1.KindPassage, p.Namespace, p.Name)
	switch {
	case !p.Active():
		return refusedBy([]Refusal{{Reason: RefusedFinished, Object: &obj, Detail: fmt.Sprintf("Passage %s is %s: there is nothing to stop", p.Name, p.Phase())}})
	case p.Spec.Abort:
		return refusedBy([]Refusal{{Reason: RefusedAborting, Object: &obj, Detail: fmt.Sprintf("the abort of Passage %s was asked for already", p.Name)}})
	}
	return nil
}

func phaseName(p *v1alpha1.Passage) string {
	if p.Phase() == "" {
		return PhaseNew
	}
	return string(p.Phase())
}

// settle is how long an abort is watched: the controller takes it up at once.
const settle = 5 * time.Second

// Abort asks the planned Passage to stop, by a merge patch that holds for this
// Passage only, and looks whether it does. Who asked is recorded on it. Errors
// are *RefusedError, *DriftedError, *NotFoundError and the API server's.
func (o *Ops) Abort(ctx context.Context, p *AbortPlan, a Actor) (*Aborted, error) {
	if r := p.Refused(); r != nil {
		return nil, r
	}
	deadline := time.Now().Add(retryFor)
	for {
		err := o.abortOnce(ctx, p, a)
		if err == nil {
			return o.aborted(ctx, p), nil
		}
		if !unanswered(err) || time.Now().After(deadline) || !sleep(ctx, retryEvery) {
			return nil, err
		}
	}
}

func (o *Ops) abortOnce(ctx context.Context, p *AbortPlan, a Actor) error {
	now, err := o.Passage(ctx, p.passage.Namespace, p.pin.Passage)
	if err != nil {
		return err
	}
	obj := p.Object()
	if string(now.UID) != p.pin.UID {
		return &DriftedError{Object: &obj, Differences: []Difference{{"uid", p.pin.UID, string(now.UID)}}}
	}
	marks := a.annotations()
	// The Passage may carry who asked for it: an abort does not overwrite that.
	marks[AnnotationAbortedBy] = marks[AnnotationRequestedBy]
	if now.Annotations[AnnotationRequestedBy] != "" {
		delete(marks, AnnotationRequestedBy)
		for _, k := range []string{AnnotationConfirmedVia, AnnotationClient, AnnotationCallID} {
			if v, ok := marks[k]; ok {
				delete(marks, k)
				marks[abortMark(k)] = v
			}
		}
	}
	if now.Spec.Abort && marks[AnnotationAbortedBy] == now.Annotations[AnnotationAbortedBy] && a.CallID != "" &&
		(now.Annotations[AnnotationCallID] == a.CallID || now.Annotations[abortMark(AnnotationCallID)] == a.CallID) {
		return nil // the answer to this very abort was lost
	}
	if r := abortRefusal(now); r != nil {
		return r
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.pin.UID, "annotations": marks},
		"spec":     map[string]any{"abort": true},
	})
	if err != nil {
		return err
	}
	return o.Client.Patch(ctx, now, client.RawPatch(types.MergePatchType, patch))
}

// abortMark is the annotation of an abort beside the one of the request.
func abortMark(annotation string) string { return annotation + "-abort" }

// aborted looks what came of it. It is done: nothing here is an error.
func (o *Ops) aborted(ctx context.Context, p *AbortPlan) *Aborted {
	out := &Aborted{Passage: p.Object(), Phase: phaseName(p.passage), Warnings: p.warnings()}
	for end := time.Now().Add(settle); ; {
		now, err := o.Passage(ctx, p.passage.Namespace, p.pin.Passage)
		if err == nil {
			out.Phase = phaseName(now)
			if !now.Active() {
				break
			}
		}
		if time.Now().After(end) || !sleep(ctx, 250*time.Millisecond) {
			break
		}
	}
	if p.gate == nil || !p.gate.Spec.Auto {
		return out
	}
	for _, sel := range passageSelectors(p.gate) {
		ps, err := o.listPassages(ctx, p.gate.Namespace, sel)
		if err != nil {
			continue
		}
		for i := range ps {
			x := &ps[i]
			if gateOf(x) == p.gate.Name && x.Active() && string(x.UID) != p.pin.UID && x.Spec.Bundle == p.pin.Bundle {
				obj := hecate(v1alpha1.KindPassage, x.Namespace, x.Name)
				out.Restarted = &obj
			}
		}
	}
	return out
}

// passageSelectors find a Gate's Passages: those with its label, which a long
// name cannot be, and those with none.
func passageSelectors(g *v1alpha1.Gate) []labels.Selector {
	out := []labels.Selector{unlabelledSelector()}
	if len(g.Name) <= gate.MaxLabelLength {
		out = append(out, ofGate(g.Name))
	}
	return out
}
