package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
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

// PlanAbort finds the Passage. Errors are *InvalidError, *NotFoundError,
// *AmbiguousError (two Passages on one Gate), *RefusedError when nothing crosses
// the Gate, and the API server's.
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
	switch {
	case q.Passage != "" && q.Gate != "":
		return nil, &InvalidError{"a Passage or a Gate says what to abort; both were given"}
	case q.Passage != "":
		return o.findPassage(ctx, q.Namespace, q.Passage)
	case q.Gate == "":
		return nil, &InvalidError{"a Passage or a Gate has to be named"}
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
	again, err := v.sure(v1alpha1.KindPassage)
	switch {
	case err != nil:
		return nil, err
	case again:
		return o.toAbort(ctx, AbortQuery{Namespace: g.Namespace, Gate: g.Name})
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
	return fmt.Sprintf("abort Passage %s, which takes %s through %s in %s", p.pin.Passage, clean(p.pin.Bundle, 253), clean(p.pin.Gate, 253), p.passage.Namespace)
}

// Confirm is the Gate's name, the Passage's where there is no such Gate: what a
// Passage says of its Gate may be any text.
func (p *AbortPlan) Confirm() string {
	if p.gate == nil {
		return p.passage.Name
	}
	return p.gate.Name
}

// Lines show how far the crossing is and what an abort does not undo.
func (p *AbortPlan) Lines() []string {
	x := p.passage
	out := []string{"passage: " + x.Namespace + "/" + x.Name, "gate: " + clean(x.Spec.Gate, 253), "bundle: " + clean(x.Spec.Bundle, 253), "asked for by: " + orNone(clean(x.Spec.Actor, 120)), "phase: " + phaseName(x),
		"What its steps did already stays: an abort undoes nothing."}
	out = append(out, warningLines(p.warnings())...)
	if x.Status != nil {
		for i, line := range listed(x.Status.Steps, func(s v1alpha1.StepStatus) string {
			return clean(fmt.Sprintf("%s: %s %s", s.Uses, s.Phase, s.Message), 200)
		}) {
			out = append(out, fmt.Sprintf("  %d. %s", i+1, line))
		}
	}
	return out
}

func (p *AbortPlan) warnings() []Warning {
	if p.gate == nil || !p.gate.Spec.Auto {
		return nil
	}
	obj := hecate(v1alpha1.KindGate, p.gate.Namespace, p.gate.Name)
	return []Warning{{WarnRestart, fmt.Sprintf("%s is automatic: the controller may start %s again, unless it has recorded the abort against that Bundle; suspend the Gate to keep it out", p.gate.Name, clean(p.pin.Bundle, 253)), &obj}}
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

// An abort is watched for a moment: the controller takes it up at once, and an
// automatic Gate opens its next Passage, if it does, right after.
const (
	settle      = 5 * time.Second
	settleEvery = 250 * time.Millisecond
	restartIn   = time.Second
)

// Abort asks the planned Passage to stop, by a merge patch that holds for this
// Passage only, and looks whether it does. Who asked is recorded on it. Errors
// are *RefusedError, *DriftedError, *NotFoundError and the API server's.
func (o *Ops) Abort(ctx context.Context, p *AbortPlan, a Actor) (*Aborted, error) {
	if r := p.Refused(); r != nil {
		return nil, r
	}
	if err := a.check(); err != nil {
		return nil, err
	}
	a = a.called()
	if err := insist(ctx, func() error { return o.abortOnce(ctx, p, a) }); err != nil {
		return nil, err
	}
	return o.aborted(ctx, p), nil
}

func (o *Ops) abortOnce(ctx context.Context, p *AbortPlan, a Actor) error {
	now, err := o.planned(ctx, p)
	if err != nil {
		return err
	}
	if now.Spec.Abort && a.CallID != "" && (now.Annotations[AnnotationCallID] == a.callMark() || now.Annotations[abortMark(AnnotationCallID)] == a.callMark()) {
		return nil // the answer to this very abort was lost
	}
	if r := abortRefusal(now); r != nil {
		return r
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": p.pin.UID, "annotations": abortMarks(a, now.Annotations)},
		"spec":     map[string]any{"abort": true},
	})
	if err != nil {
		return err
	}
	err = o.Client.Patch(ctx, now, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsInvalid(err) {
		// A UID can't be changed: so the API server refuses to hit another Passage
		// that has the name by now.
		if _, drifted := o.planned(ctx, p); drifted != nil {
			return drifted
		}
	}
	return err
}

// planned reads the Passage of the plan, and no other of its name.
func (o *Ops) planned(ctx context.Context, p *AbortPlan) (*v1alpha1.Passage, error) {
	now, err := o.Passage(ctx, p.passage.Namespace, p.pin.Passage)
	if err != nil {
		return nil, err
	}
	if obj := p.Object(); string(now.UID) != p.pin.UID {
		return nil, &DriftedError{Object: &obj, Differences: []Difference{{"uid", p.pin.UID, string(now.UID)}}}
	}
	return now, nil
}

// abortMarks say who asked for the abort. What says who asked for the Passage
// stays: beside it, the abort's have names of their own.
func abortMarks(a Actor, there map[string]string) map[string]string {
	marks := a.annotations()
	out := map[string]string{AnnotationAbortedBy: clean(a.Name, 200)}
	taken := false
	for k := range marks {
		taken = taken || there[k] != ""
	}
	for k, v := range marks {
		if taken {
			k = abortMark(k)
		}
		out[k] = v
	}
	return out
}

// abortMark is the annotation of an abort beside the one of the request.
func abortMark(annotation string) string { return annotation + "-abort" }

// aborted looks what came of it. It is done: nothing here is an error.
func (o *Ops) aborted(ctx context.Context, p *AbortPlan) *Aborted {
	out := &Aborted{Passage: p.Object(), Phase: phaseName(p.passage), Warnings: p.warnings()}
	automatic := p.gate != nil && p.gate.Spec.Auto
	for end := time.Now().Add(settle); ; {
		now, err := o.planned(ctx, p)
		if err == nil && out.Phase != phaseName(now) {
			out.Phase = phaseName(now)
			if !now.Active() {
				end = time.Now().Add(restartIn)
			}
		}
		if automatic {
			out.Restarted = o.restarted(ctx, p)
		}
		stopped := v1alpha1.PassagePhase(out.Phase).Terminal()
		if stopped && (!automatic || out.Restarted != nil) || time.Now().After(end) || !sleep(ctx, settleEvery) {
			return out
		}
	}
}

// restarted is another Passage of the same Bundle through the same Gate, nil when
// there is none.
func (o *Ops) restarted(ctx context.Context, p *AbortPlan) *Object {
	others, err := o.running(ctx, p.gate, p.passage.UID)
	if err != nil {
		return nil
	}
	for _, x := range others {
		if x.Spec.Bundle == p.pin.Bundle {
			obj := hecate(v1alpha1.KindPassage, x.Namespace, x.Name)
			return &obj
		}
	}
	return nil
}
