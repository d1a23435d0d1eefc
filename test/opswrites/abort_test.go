package opswrites

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

func (w *world) abortion(t *testing.T, o *ops.Ops, q ops.AbortQuery) *ops.AbortPlan {
	t.Helper()
	q.Namespace = w.ns
	p, err := o.PlanAbort(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// controller ends a Passage as soon as its abort is asked for, then does what next
// says.
func (w *world) controller(t *testing.T, passage string, next func()) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			var p v1alpha1.Passage
			if err := w.admin.Get(ctx, client.ObjectKey{Namespace: w.ns, Name: passage}, &p); err == nil && p.Spec.Abort {
				w.finish(t, passage, v1alpha1.PassageAborted)
				if next != nil {
					next()
				}
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
}

// TestAbortRecordsWho: who asked for the Passage stays on it beside who stopped it.
func TestAbortRecordsWho(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	o := w.ops(t, cluster.Promoter, nil)
	promoted, err := o.Promote(t.Context(), w.plan(t, o, "dev"), actor("call-1"))
	if err != nil {
		t.Fatal(err)
	}
	w.controller(t, promoted.Passage.Name, nil)
	plan := w.abortion(t, o, ops.AbortQuery{Gate: "dev"})
	if plan.Confirm() != "dev" || plan.Object() != promoted.Passage {
		t.Errorf("%s %+v", plan.Confirm(), plan.Object())
	}
	who := ops.Actor{Name: "mcp:somebody", RequestedBy: "somebody", ConfirmedVia: "terminal", Client: "test 2", CallID: "call-2"}
	done, err := o.Abort(t.Context(), plan, who)
	if err != nil || done.Phase != string(v1alpha1.PassageAborted) || done.Restarted != nil || len(done.Warnings) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	p := w.passage(t, promoted.Passage.Name)
	for k, want := range map[string]string{
		ops.AnnotationRequestedBy: "promoter", ops.AnnotationCallID: "call-1", ops.AnnotationConfirmedVia: "elicitation",
		ops.AnnotationAbortedBy: "mcp:somebody", ops.AnnotationRequestedBy + "-abort": "somebody", ops.AnnotationConfirmedVia + "-abort": "terminal",
		ops.AnnotationClient + "-abort": "test 2", ops.AnnotationCallID + "-abort": "call-2",
	} {
		if p.Annotations[k] != want {
			t.Errorf("%s: %q, want %q", k, p.Annotations[k], want)
		}
	}
	if p.Spec.Actor != "mcp:promoter" {
		t.Errorf("actor: %s", p.Spec.Actor)
	}
	// The same call once more is the same abort; another one comes too late.
	if _, err := o.Abort(t.Context(), plan, who); err != nil {
		t.Errorf("the same call: %v", err)
	}
	who.CallID = "call-3"
	_, err = o.Abort(t.Context(), plan, who)
	wantRefused(t, err, ops.RefusedFinished, p.Name)
	wantRefused(t, asError(w.abortion(t, o, ops.AbortQuery{Passage: p.Name}).Refused()), ops.RefusedFinished, p.Name)
	_, err = o.PlanAbort(t.Context(), ops.AbortQuery{Namespace: w.ns, Gate: "dev"})
	wantRefused(t, err, ops.RefusedNothingRuns, "dev")
}

// asError keeps a nil *RefusedError from becoming an error that is not nil.
func asError(r *ops.RefusedError) error {
	if r == nil {
		return nil
	}
	return r
}

// TestAbortOfSomebodysPassage: a Passage that kubectl made has room for the names
// themselves, and an abort whose answer is lost is not asked for twice.
func TestAbortOfSomebodysPassage(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	w.open(t, "kubectl", "dev", "web-2", of("dev"))
	o := w.ops(t, cluster.Promoter, losing(1))
	w.controller(t, "kubectl", nil)
	plan := w.abortion(t, o, ops.AbortQuery{Passage: "kubectl"})
	w.Requests().Reset()
	if _, err := o.Abort(t.Context(), plan, actor("call-1")); err != nil {
		t.Fatal(err)
	}
	if n := w.Requests().Count("patch", "passages"); n != 1 {
		t.Errorf("%d patches", n)
	}
	p := w.passage(t, "kubectl")
	if p.Annotations[ops.AnnotationRequestedBy] != "promoter" || p.Annotations[ops.AnnotationAbortedBy] != "mcp:promoter" || p.Annotations[ops.AnnotationCallID] != "call-1" {
		t.Errorf("%v", p.Annotations)
	}
}

func TestAbortTwice(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	p := w.open(t, "kubectl", "dev", "web-2", of("dev"))
	o := w.ops(t, cluster.Promoter, nil)
	plan := w.abortion(t, o, ops.AbortQuery{Gate: "dev"})
	w.edit(t, p, func(o client.Object) { o.(*v1alpha1.Passage).Spec.Abort = true })
	_, err := o.Abort(t.Context(), plan, actor("call-1"))
	wantRefused(t, err, ops.RefusedAborting, "kubectl")
}

// TestAbortHitsNoOther: the plan is about one Passage, not about a name.
func TestAbortHitsNoOther(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	old := w.open(t, "kubectl", "dev", "web-2", of("dev"))
	again := func() {
		if err := w.admin.Delete(context.Background(), old); err != nil {
			t.Error(err)
		}
		w.open(t, "kubectl", "dev", "web-2", of("dev"))
	}
	plain := w.ops(t, cluster.Promoter, nil)
	plan := w.abortion(t, plain, ops.AbortQuery{Gate: "dev"})
	// Another one comes between the last look and the patch.
	_, err := w.ops(t, cluster.Promoter, before(again)).Abort(t.Context(), plan, actor("call-1"))
	wantDrifted(t, err, "uid")
	_, err = plain.Abort(t.Context(), plan, actor("call-1"))
	wantDrifted(t, err, "uid")
	if p := w.passage(t, "kubectl"); p.Spec.Abort || len(p.Annotations) > 0 {
		t.Errorf("the other one was hit: %+v", p)
	}
	// What the API server makes of a UID that is not the object's.
	if err := w.admin.Patch(t.Context(), w.passage(t, "kubectl"), forceUID(old.UID)); !apierrors.IsInvalid(err) {
		t.Errorf("a patch for another UID: %v", err)
	}
	if err := w.admin.Delete(t.Context(), w.passage(t, "kubectl")); err != nil {
		t.Fatal(err)
	}
	if _, err := plain.Abort(t.Context(), plan, actor("call-1")); !ops.IsNotFound(err) {
		t.Errorf("gone: %v", err)
	}
}

// TestAbortOnAnAutomaticGate: the answer says that the controller may start the
// same Bundle again, and whether it did.
func TestAbortOnAnAutomaticGate(t *testing.T) {
	for name, restart := range map[string]bool{"left alone": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gate("dev", func(g *v1alpha1.Gate) { g.Spec.Auto = true }))
			w.open(t, "dev-a", "dev", "web-2", of("dev"))
			w.controller(t, "dev-a", func() {
				if restart {
					time.Sleep(300 * time.Millisecond)
					w.open(t, "dev-b", "dev", "web-2", of("dev"))
				}
			})
			o := w.ops(t, cluster.Promoter, nil)
			done, err := o.Abort(t.Context(), w.abortion(t, o, ops.AbortQuery{Gate: "dev"}), actor("call-1"))
			if err != nil {
				t.Fatal(err)
			}
			if len(done.Warnings) != 1 || done.Warnings[0].Kind != ops.WarnRestart {
				t.Errorf("%+v", done.Warnings)
			}
			if (done.Restarted != nil) != restart || restart && done.Restarted.Name != "dev-b" {
				t.Errorf("restarted: %+v", done.Restarted)
			}
		})
	}
}

func TestWatch(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	w.open(t, "kubectl", "dev", "web-2", of("dev"))
	o := w.ops(t, cluster.Viewer, nil)
	seen := 0
	last, err := o.Watch(t.Context(), w.ns, "kubectl", time.Millisecond, func(p *v1alpha1.Passage) {
		switch seen++; seen {
		case 1:
			w.Restart(t) // nobody answers for a while
		case 2:
			w.finish(t, "kubectl", v1alpha1.PassageFailed)
		}
	})
	if err != nil || seen != 3 || last.Phase() != v1alpha1.PassageFailed {
		t.Errorf("%d states, %v, %v", seen, last, err)
	}
	w.open(t, "another", "dev", "web-2", of("dev"))
	last, err = o.Watch(t.Context(), w.ns, "another", time.Millisecond, func(p *v1alpha1.Passage) {
		if err := w.admin.Delete(context.Background(), p); err != nil {
			t.Error(err)
		}
		w.open(t, "another", "dev", "web-2", of("dev"))
	})
	if !ops.IsNotFound(err) || last == nil {
		t.Errorf("another one of that name: %v, %v", last, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	last, err = o.Watch(ctx, w.ns, "another", time.Hour, func(*v1alpha1.Passage) { cancel() })
	if err != context.Canceled || last == nil {
		t.Errorf("given up: %v, %v", last, err)
	}
}
