package writes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

// TestOneCrossing promotes eight times at once through two clients with the rights
// of upstream's promoter: one Passage opens, and seven are told which.
func TestOneCrossing(t *testing.T) {
	w := newWorld(t)
	clients := []*ops.Ops{w.as(t, cluster.Promoter), w.as(t, cluster.Promoter)}
	for round := range rounds(t, 20) {
		w.bundle(t)
		var plans []*ops.PromotePlan
		for i := range 8 {
			p, err := clients[i%2].PlanPromote(timeout(t), query(w, staging, ""))
			if err != nil {
				t.Fatal(err)
			}
			plans = append(plans, p)
		}
		errs := make([]error, len(plans))
		names := make([]string, len(plans))
		var wg sync.WaitGroup
		for i, p := range plans {
			wg.Go(func() {
				r, err := clients[i%2].Promote(timeout(t), p, ops.Actor{Name: "mcp:promoter", CallID: fmt.Sprintf("%d-%d", round, i)})
				if errs[i] = err; err == nil {
					names[i] = r.Passage.Name
				}
			})
		}
		wg.Wait()
		open := active(w.passages(t, staging))
		if len(open) != 1 {
			t.Fatalf("round %d: %d Passages are open", round, len(open))
		}
		won := 0
		for i, err := range errs {
			var refused *ops.RefusedError
			switch {
			case err == nil && names[i] == open[0].Name:
				won++
			case errors.As(err, &refused) && refused.Reason == string(ops.RefusedCrossing) && refused.Object != nil && refused.Object.Name == open[0].Name:
			default:
				t.Fatalf("round %d: caller %d got %q, %v; open is %s", round, i, names[i], err, open[0].Name)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d callers won", round, won)
		}
		w.finish(t, open[0].Name, v1alpha1.PassageFailed)
	}
}

// TestOvertaken applies plans that another Passage came before: also one that is
// finished by then.
func TestOvertaken(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	o := w.as(t, cluster.Promoter)
	first, second := w.plan(t, o, staging), w.plan(t, o, staging)
	done, err := o.Promote(timeout(t), first, ops.Actor{Name: "a", CallID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	w.refused(t, o, second, ops.RefusedCrossing, done.Passage.Name)
	w.finish(t, done.Passage.Name, v1alpha1.PassageFailed)
	w.refused(t, o, second, ops.RefusedCrossing, done.Passage.Name)
	// The very call that opened it is told so, whatever became of the Passage.
	again, err := o.Promote(timeout(t), first, ops.Actor{Name: "a", CallID: "1"})
	if err != nil || !again.Own || again.Passage.Name != done.Passage.Name {
		t.Errorf("the same call again: %+v, %v", again, err)
	}
	// Two Passages within one second of time: the next name is free all the same.
	for range 5 {
		p := w.plan(t, o, staging)
		r, err := o.Promote(timeout(t), p, ops.Actor{Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		w.finish(t, r.Passage.Name, v1alpha1.PassageFailed)
	}
	if n := len(w.passages(t, staging)); n != 6 {
		t.Errorf("%d Passages", n)
	}
}

func (w *world) plan(t testing.TB, o *ops.Ops, gate string) *ops.PromotePlan {
	t.Helper()
	p, err := o.PlanPromote(timeout(t), query(w, gate, ""))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (w *world) refused(t testing.TB, o *ops.Ops, p *ops.PromotePlan, reason ops.RefusalReason, object string) {
	t.Helper()
	_, err := o.Promote(timeout(t), p, ops.Actor{Name: "b", CallID: "other"})
	var refused *ops.RefusedError
	if !errors.As(err, &refused) || refused.Reason != string(reason) || object != "" && (refused.Object == nil || refused.Object.Name != object) {
		t.Fatalf("got %v (%+v), want %s of %s", err, refused, reason, object)
	}
}

// TestLostAnswer loses the API server's answer to the create: the caller learns
// that its own Passage is there, and no second one opens.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	o := w.as(t, cluster.Promoter)
	p := w.plan(t, o, staging)
	a := ops.Actor{Name: "mcp:promoter", RequestedBy: "promoter", ConfirmedVia: "elicitation", Client: "test 1", CallID: "lost"}
	// The first create is answered with 503 by the proxy, the second goes through.
	w.Inject(t, cluster.Fault{Verb: "create", Resource: "passages", Times: 1, Status: http.StatusServiceUnavailable})
	r, err := o.Promote(timeout(t), p, a)
	if err != nil {
		t.Fatal(err)
	}
	// Made again, as after a lost answer, from the same plan.
	again, err := o.Promote(timeout(t), p, a)
	if err != nil || !again.Own || again.Passage.Name != r.Passage.Name {
		t.Fatalf("again: %+v %v", again, err)
	}
	ps := w.passages(t, staging)
	if len(ps) != 1 {
		t.Fatalf("%d Passages", len(ps))
	}
	for k, want := range map[string]string{ops.AnnotationRequestedBy: "promoter", ops.AnnotationConfirmedVia: "elicitation", ops.AnnotationClient: "test 1", ops.AnnotationCallID: "lost"} {
		if got := ps[0].Annotations[k]; got != want {
			t.Errorf("%s is %q", k, got)
		}
	}
	if ps[0].Spec.Actor != "mcp:promoter" || ps[0].Labels[v1alpha1.LabelGate] != staging || len(ps[0].Spec.Steps) != 2 || !strings.HasPrefix(ps[0].Name, "staging-") {
		t.Errorf("the Passage is %+v", ps[0])
	}
}

// TestConcurrentForeign opens a Passage with kubectl's means in the same instant:
// it can't be kept out, and is told.
func TestConcurrentForeign(t *testing.T) {
	w := newWorld(t)
	b := w.bundle(t)
	o := w.as(t, cluster.Promoter)
	p := w.plan(t, o, staging)
	o.Client = foreign{o.Client, func() {
		w.create(t, &v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{GenerateName: "staging-", Labels: map[string]string{v1alpha1.LabelGate: staging}},
			Spec: v1alpha1.PassageSpec{Gate: staging, Bundle: b.Name, Steps: []v1alpha1.Step{{Uses: "http"}}}})
	}}
	r, err := o.Promote(timeout(t), p, ops.Actor{Name: "a", CallID: "1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Warnings) != 1 || r.Warnings[0].Kind != ops.WarnConcurrent || r.Warnings[0].Object == nil || r.Warnings[0].Object.Name == r.Passage.Name {
		t.Errorf("warnings %+v", r.Warnings)
	}
}

// foreign does something right before each create.
type foreign struct {
	client.Client
	before func()
}

func (f foreign) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	f.before()
	return f.Client.Create(ctx, o, opts...)
}

// TestDrift changes what a plan rests on between plan and act.
func TestDrift(t *testing.T) {
	for _, tc := range []struct {
		name, gate string
		change     func(t *testing.T, w *world, b *v1alpha1.Bundle)
		field      string // "" for a change that must not matter
	}{
		{"the Gate is edited", staging, func(t *testing.T, w *world, _ *v1alpha1.Bundle) {
			w.gate(t, staging, func(g *v1alpha1.Gate) { g.Spec.Passage.Steps[0].Uses = "http" })
		}, "steps"},
		{"the Gate is suspended", staging, func(t *testing.T, w *world, _ *v1alpha1.Bundle) {
			w.gate(t, staging, func(g *v1alpha1.Gate) { g.Spec.Suspend = true })
		}, "suspended"},
		{"the window closes", staging, func(t *testing.T, w *world, _ *v1alpha1.Bundle) {
			w.gate(t, staging, func(g *v1alpha1.Gate) {
				g.Spec.Windows = []v1alpha1.Window{{Schedule: "* * * * *", Duration: metav1.Duration{Duration: time.Hour}, Deny: true}}
			})
		}, "window"},
		{"the approval is withdrawn", production, func(t *testing.T, w *world, b *v1alpha1.Bundle) {
			w.get(t, b, b.Name)
			b.Status.ApprovedFor = nil
			if err := w.admin.Status().Update(timeout(t), b); err != nil {
				t.Fatal(err)
			}
		}, "approval"},
		{"the Gate is another one", staging, func(t *testing.T, w *world, _ *v1alpha1.Bundle) {
			var g v1alpha1.Gate
			w.get(t, &g, staging)
			if err := w.admin.Delete(timeout(t), &g); err != nil {
				t.Fatal(err)
			}
			w.create(t, &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: staging}, Spec: g.Spec})
		}, "gateUID"},
		{"the Gate holds another Bundle", staging, func(t *testing.T, w *world, _ *v1alpha1.Bundle) {
			w.gateStatus(t, staging, func(g *v1alpha1.Gate) {
				g.Status.Current = &v1alpha1.GateEntry{Bundle: "shop-older", EnteredAt: metav1.Now()}
			})
		}, "current"},
		{"the controller rewrites the status", staging, func(t *testing.T, w *world, _ *v1alpha1.Bundle) {
			w.gateStatus(t, staging, func(g *v1alpha1.Gate) {
				g.Status.LastHandledReconcileAt = "2"
				meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.GateReasonIdle, Message: "2", ObservedGeneration: g.Generation})
			})
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			b := w.bundle(t)
			b.Status.ApprovedFor = []v1alpha1.BundleApproval{{Gate: production, Actor: "ann", At: metav1.Now()}}
			if err := w.admin.Status().Update(timeout(t), b); err != nil {
				t.Fatal(err)
			}
			w.gateStatus(t, tc.gate, func(g *v1alpha1.Gate) { g.Status.ObservedGeneration = g.Generation })
			o := w.as(t, cluster.Promoter)
			p := w.plan(t, o, tc.gate)
			if r := p.Refused(); r != nil {
				t.Fatal(r)
			}
			tc.change(t, w, b)
			_, err := o.Promote(timeout(t), p, ops.Actor{Name: "a", CallID: "1"})
			var drifted *ops.DriftedError
			switch {
			case tc.field == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.field == "":
			case !errors.As(err, &drifted):
				t.Errorf("got %v, want Drifted", err)
			case !strings.Contains(drifted.Error(), tc.field):
				t.Errorf("differences %+v, want %s", drifted.Differences, tc.field)
			}
			if n := len(w.passages(t, tc.gate)); (n == 0) != (tc.field != "") {
				t.Errorf("%d Passages", n)
			}
		})
	}
}

func (w *world) gate(t testing.TB, name string, change func(*v1alpha1.Gate)) {
	t.Helper()
	var g v1alpha1.Gate
	w.get(t, &g, name)
	change(&g)
	if err := w.admin.Update(context.Background(), &g); err != nil {
		t.Fatal(err)
	}
}

func (w *world) gateStatus(t testing.TB, name string, change func(*v1alpha1.Gate)) {
	t.Helper()
	var g v1alpha1.Gate
	w.get(t, &g, name)
	change(&g)
	if err := w.admin.Status().Update(context.Background(), &g); err != nil {
		t.Fatal(err)
	}
}
