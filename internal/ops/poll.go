package ops

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// AnnotationRequestedAt asks a controller to reconcile now; its value is echoed in
// status.lastHandledReconcileAt.
const AnnotationRequestedAt = "reconcile.fluxcd.io/requestedAt"

// PollQuery names a Beacon, exactly or by a unique part.
type PollQuery struct{ Namespace, Beacon string }

// PollPlan is a Beacon that would be asked to look now.
type PollPlan struct {
	beacon *v1alpha1.Beacon
	pin    pollPin
}

type pollPin struct {
	Beacon     string `json:"beacon"`
	Namespace  string `json:"namespace"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	Suspended  bool   `json:"suspended"`
}

// Polled is a Beacon that was asked to look.
type Polled struct {
	Beacon Object
	// RequestedAt is what status.lastHandledReconcileAt will echo.
	RequestedAt string
}

// PlanPoll finds the Beacon. Errors are *NotFoundError and *AmbiguousError.
func (o *Ops) PlanPoll(ctx context.Context, q PollQuery) (*PollPlan, error) {
	var all []v1alpha1.Beacon
	if _, err := o.inDefault(v1alpha1.KindBeacon, q.Namespace, func(ns string) (err error) { all, err = o.listBeacons(ctx, ns); return err }); err != nil {
		return nil, err
	}
	var exact, part []*v1alpha1.Beacon
	for i := range all {
		switch b := &all[i]; {
		case b.Name == q.Beacon:
			exact = append(exact, b)
		case strings.Contains(b.Name, q.Beacon):
			part = append(part, b)
		}
	}
	if len(exact) > 0 {
		part = exact
	}
	switch len(part) {
	case 1:
		return planPoll(part[0]), nil
	case 0:
		names, _ := namesOf(all, nil)
		return nil, &NotFoundError{Object: hecate(v1alpha1.KindBeacon, q.Namespace, q.Beacon), Candidates: nearest(q.Beacon, names, MaxNames)}
	}
	amb := &AmbiguousError{Kind: v1alpha1.KindBeacon, Name: q.Beacon}
	for _, b := range part {
		amb.Candidates = append(amb.Candidates, hecate(v1alpha1.KindBeacon, b.Namespace, b.Name))
	}
	return nil, amb
}

func planPoll(b *v1alpha1.Beacon) *PollPlan {
	return &PollPlan{beacon: b, pin: pollPin{Beacon: b.Name, Namespace: b.Namespace, UID: string(b.UID), Generation: b.Generation, Suspended: b.Spec.Suspend}}
}

// Object is the Beacon.
func (p *PollPlan) Object() Object {
	return hecate(v1alpha1.KindBeacon, p.pin.Namespace, p.pin.Beacon)
}

// Digest is of the Beacon's identity and spec.
func (p *PollPlan) Digest() string { return digestOf(p.pin) }

// Title says in one line what would be done.
func (p *PollPlan) Title() string {
	return fmt.Sprintf("let Beacon %s in %s look at its sources now", p.pin.Beacon, p.pin.Namespace)
}

// Confirm is the Beacon's name.
func (p *PollPlan) Confirm() string { return p.pin.Beacon }

// Lines show what is watched and what follows from a find.
func (p *PollPlan) Lines() []string {
	b := p.beacon
	out := []string{"beacon: " + b.Namespace + "/" + b.Name, fmt.Sprintf("watches: %s", plural(len(b.Spec.Watch), "source"))}
	if b.Status.LastPolled != nil {
		out = append(out, "looked last: "+stamp(*b.Status.LastPolled))
	}
	if b.Status.LatestBundle != "" {
		out = append(out, "newest Bundle: "+clean(b.Status.LatestBundle, 253))
	}
	if b.Spec.Emit == v1alpha1.EmitManual {
		return append(out, "The Beacon is manual: it only discovers, and makes no Bundle by itself.")
	}
	return append(out, "What it finds becomes a new Bundle, which automatic Gates take up by themselves.")
}

// Refused is set for a suspended Beacon: the request would be echoed and nothing
// polled.
func (p *PollPlan) Refused() *RefusedError {
	if !p.pin.Suspended {
		return nil
	}
	obj := p.Object()
	return refusedBy([]Refusal{{Reason: RefusedSuspended, Object: &obj, Detail: "Beacon " + p.pin.Beacon + " is suspended: it would answer the request without looking", Fix: "resume it"}})
}

// maxConflicts bounds how often a write that met another one is tried again.
const maxConflicts = 10

// Poll asks the planned Beacon to look now. It updates the whole object, since
// upstream's role for it may update and not patch; fields that this build does
// not know are kept. Errors are *RefusedError, *DriftedError, *NotFoundError and
// the API server's.
func (o *Ops) Poll(ctx context.Context, p *PollPlan, _ Actor) (*Polled, error) {
	if r := p.Refused(); r != nil {
		return nil, r
	}
	value := strconv.FormatInt(o.now().UnixNano(), 10)
	if err := insist(ctx, func() error { return o.pollOnce(ctx, p, value) }); err != nil {
		return nil, err
	}
	return &Polled{Beacon: p.Object(), RequestedAt: value}, nil
}

// insist makes a write that reads first, and may be made again, until it is
// answered: an API server that is away is waited for, and what met another write
// starts over.
func insist(ctx context.Context, write func() error) error {
	deadline := time.Now().Add(retryFor)
	for conflicts := 0; ; {
		err := write()
		switch {
		case apierrors.IsConflict(err) && conflicts < maxConflicts:
			conflicts++
		case unanswered(err) && time.Now().Before(deadline):
		default:
			return err
		}
		if !sleep(ctx, retryEvery/5) {
			return err
		}
	}
}

func (o *Ops) pollOnce(ctx context.Context, p *PollPlan, value string) error {
	obj := p.Object()
	u, err := o.whole(ctx, obj)
	if err != nil {
		return err
	}
	var b v1alpha1.Beacon
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &b); err != nil {
		return err
	}
	if diffs := differences(p.pin, planPoll(&b).pin); len(diffs) > 0 {
		return &DriftedError{Object: &obj, Differences: diffs}
	}
	marks := u.GetAnnotations()
	if marks == nil {
		marks = map[string]string{}
	}
	marks[AnnotationRequestedAt] = value
	u.SetAnnotations(marks)
	return o.Client.Update(ctx, u)
}

// whole reads an object with every field that the API server has, known here or
// not: what is written back must lose none. One that is gone is a *NotFoundError.
func (o *Ops) whole(ctx context.Context, obj Object) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(obj.APIVersion)
	u.SetKind(obj.Kind)
	err := o.Client.Get(ctx, client.ObjectKey{Namespace: obj.Namespace, Name: obj.Name}, u)
	if sourceCode(err) == SourceNotFound {
		err = &NotFoundError{Object: obj}
	}
	return u, err
}
