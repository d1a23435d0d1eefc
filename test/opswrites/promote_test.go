package opswrites

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	hecate "github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

// outcome is how one of several promotions ended.
type outcome struct {
	plan *ops.PromotePlan
	done *ops.Promoted
	err  error
}

// race plans and makes promotions of one Gate at once. In every other round all
// have planned before the first one acts.
func race(t *testing.T, w *world, round, callers int, asked []*ops.Ops) []outcome {
	t.Helper()
	out := make([]outcome, callers)
	var planned, ended sync.WaitGroup
	planned.Add(callers)
	for i := range callers {
		ended.Go(func() {
			o := asked[i%len(asked)]
			out[i].plan, out[i].err = o.PlanPromote(t.Context(), w.promotion("dev"))
			planned.Done()
			if round%2 == 0 {
				planned.Wait()
			}
			if out[i].err == nil {
				out[i].done, out[i].err = o.Promote(t.Context(), out[i].plan, actor(fmt.Sprintf("call-%d-%d", round, i)))
			}
		})
	}
	ended.Wait()
	return out
}

// TestOneCrossingAtATime: of eight promotions at once, through two clients with no
// more than upstream's hecate-promoter may do, one opens a Passage, and the others
// learn whose.
func TestOneCrossingAtATime(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	asked := []*ops.Ops{w.ops(t, cluster.Promoter, nil), w.ops(t, cluster.Promoter, nil)}
	for round := range 20 {
		outcomes := race(t, w, round, 8, asked)
		winner := ""
		for _, x := range outcomes {
			if x.err == nil && (winner != "" || x.done.Own || len(x.done.Warnings) > 0) {
				t.Errorf("round %d: a second one, or %+v", round, x.done)
			}
			if x.err == nil {
				winner = x.done.Passage.Name
			}
		}
		if winner == "" {
			t.Fatalf("round %d: nobody won: %v", round, outcomes)
		}
		for _, x := range outcomes {
			if x.err != nil {
				wantRefused(t, x.err, ops.RefusedCrossing, winner)
			}
		}
		if all := w.passages(t, "dev"); len(all) != round+1 {
			t.Fatalf("round %d: %d Passages", round, len(all))
		}
		// Most Passages of this test are of the same second.
		w.finish(t, winner, v1alpha1.PassageAborted)
	}
}

// TestThroughARestart: while the API server is killed and comes back, a Gate never
// has two crossings, and asking again tells everybody how it ended.
func TestThroughARestart(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	asked := []*ops.Ops{w.ops(t, cluster.Promoter, nil), w.ops(t, cluster.Promoter, nil)}
	for round := range 6 {
		restarted := make(chan struct{})
		go func() {
			defer close(restarted)
			if round%2 == 0 {
				w.Restart(t)
			}
		}()
		outcomes := race(t, w, round, 4, asked)
		<-restarted
		winners := map[string]bool{}
		for i, x := range outcomes {
			if x.plan == nil {
				continue // it could not even plan: nothing was sent
			}
			done, err := x.done, x.err
			if err != nil && !ops.IsRefused(err) {
				done, err = asked[0].Promote(t.Context(), x.plan, actor(fmt.Sprintf("call-%d-%d", round, i)))
			}
			switch {
			case err == nil:
				winners[done.Passage.Name] = true
			case !ops.IsRefused(err):
				t.Errorf("round %d: after one retry: %v", round, err)
			}
		}
		active := 0
		for _, p := range w.passages(t, "dev") {
			if p.Active() {
				active++
				w.finish(t, p.Name, v1alpha1.PassageSucceeded)
			}
		}
		if len(winners) > 1 || active != len(winners) {
			t.Errorf("round %d: %d winners, %d running", round, len(winners), active)
		}
	}
}

// TestPassageAsUpstreamMakesIt holds what is written.
func TestPassageAsUpstreamMakesIt(t *testing.T) {
	w := newWorld(t, gate("dev", func(g *v1alpha1.Gate) { g.Spec.Vars = []v1alpha1.Var{{Name: "region", Value: "eu"}} }))
	o := w.ops(t, cluster.Promoter, nil)
	who := actor("call-1")
	who.Client = "evil\x1b[31m " + strings.Repeat("x", 400)
	done, err := o.Promote(t.Context(), w.plan(t, o, "dev"), who)
	if err != nil {
		t.Fatal(err)
	}
	p := w.passage(t, done.Passage.Name)
	if p.Spec.Gate != "dev" || p.Spec.Bundle != "web-2" || p.Spec.Actor != "mcp:promoter" || len(p.Spec.Steps) != 1 || len(p.Spec.Vars) != 1 ||
		p.Labels[v1alpha1.LabelGate] != "dev" || p.Labels[v1alpha1.LabelBundle] != "web-2" || p.GenerateName != "" || !strings.HasPrefix(p.Name, "dev-") {
		t.Errorf("%+v %+v", p.ObjectMeta, p.Spec)
	}
	for k, want := range map[string]string{ops.AnnotationRequestedBy: "promoter", ops.AnnotationConfirmedVia: "elicitation", ops.AnnotationCallID: "call-1"} {
		if p.Annotations[k] != want {
			t.Errorf("%s: %q", k, p.Annotations[k])
		}
	}
	if c := p.Annotations[ops.AnnotationClient]; strings.ContainsRune(c, 0x1b) || len(c) > 210 || !strings.HasPrefix(c, "evil x") {
		t.Errorf("client: %q", c)
	}
}

func TestActorsThatCannotAsk(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	o := w.ops(t, cluster.Promoter, nil)
	plan := w.plan(t, o, "dev")
	for _, name := range []string{"", "controller"} {
		_, err := o.Promote(t.Context(), plan, ops.Actor{Name: name})
		var invalid *ops.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(invalid.Message, "valid") {
			t.Errorf("%q: %v", name, err)
		}
	}
	if n := len(w.passages(t, "dev")); n != 0 {
		t.Errorf("%d Passages", n)
	}
}

// TestLostAnswer: the API server made the Passage and nobody heard. The call finds
// it by itself, also when it is made again, with the same plan, by another process.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	deaf, hearing := w.ops(t, cluster.Promoter, losing(1)), w.ops(t, cluster.Promoter, nil)
	plan := w.plan(t, hearing, "dev")
	first, err := deaf.Promote(t.Context(), plan, actor("call-1"))
	if err != nil || !first.Own {
		t.Fatalf("%+v, %v", first, err)
	}
	w.finish(t, first.Passage.Name, v1alpha1.PassageFailed) // long over when it is asked again
	again, err := hearing.Promote(t.Context(), plan, actor("call-1"))
	if err != nil || !again.Own || again.Passage != first.Passage {
		t.Errorf("%+v, %v", again, err)
	}
	_, err = hearing.Promote(t.Context(), plan, actor("call-2"))
	wantRefused(t, err, ops.RefusedCrossing, first.Passage.Name)
	_, err = hearing.Promote(t.Context(), plan, ops.Actor{Name: "mcp:promoter"})
	wantRefused(t, err, ops.RefusedCrossing, first.Passage.Name)
	if n := len(w.passages(t, "dev")); n != 1 {
		t.Errorf("%d Passages", n)
	}
}

// TestLostAnswerWithoutACall: even a call without an id of its own knows what it did.
func TestLostAnswerWithoutACall(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	o := w.ops(t, cluster.Promoter, losing(1))
	done, err := o.Promote(t.Context(), w.plan(t, o, "dev"), ops.Actor{Name: "mcp:promoter"})
	if err != nil || !done.Own {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestNotKnown: when nobody answers any more, the error says what is not known.
func TestNotKnown(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	var cut atomic.Bool
	o := w.ops(t, cluster.Promoter, func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if isWrite(r) {
				cut.Store(true)
			}
			if cut.Load() && err == nil {
				_ = resp.Body.Close()
				return nil, errors.New("the connection was cut")
			}
			return resp, err
		})
	})
	plan := w.plan(t, o, "dev")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := o.Promote(ctx, plan, actor("call-1"))
	if code := hecate.Classify(err); code != hecate.CodeUnavailable && code != hecate.CodeTimeout || !strings.Contains(err.Error(), "not known") {
		t.Errorf("%s: %v", code, err)
	}
	cut.Store(false)
	if done, err := w.ops(t, cluster.Promoter, nil).Promote(t.Context(), plan, actor("call-1")); err != nil || !done.Own {
		t.Errorf("asked again: %+v, %v", done, err)
	}
}

// TestOvertaken: whatever crossed since the plan was made is named, finished or not.
func TestOvertaken(t *testing.T) {
	for what, c := range map[string]struct {
		labels map[string]string
		phase  v1alpha1.PassagePhase
	}{
		"running":            {of("dev"), ""},
		"finished since":     {of("dev"), v1alpha1.PassageFailed},
		"without its label":  {nil, ""},
		"unlabelled, ended":  {nil, v1alpha1.PassageSucceeded},
		"by another's label": {of("dev"), v1alpha1.PassageAborted},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, gate("dev", nil))
			o := w.ops(t, cluster.Promoter, nil)
			plan := w.plan(t, o, "dev")
			w.open(t, "kubectl", "dev", "web-1", c.labels)
			if c.phase != "" {
				w.finish(t, "kubectl", c.phase)
			}
			_, err := o.Promote(t.Context(), plan, actor("call-1"))
			wantRefused(t, err, ops.RefusedCrossing, "kubectl")
		})
	}
}

// TestAtTheSameInstant: what nobody can keep out is said.
func TestAtTheSameInstant(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	o := w.ops(t, cluster.Promoter, before(func() { w.open(t, "kubectl", "dev", "web-1", nil) }))
	done, err := o.Promote(t.Context(), w.plan(t, o, "dev"), actor("call-1"))
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Warnings) != 1 || done.Warnings[0].Kind != ops.WarnConcurrent || done.Warnings[0].Object.Name != "kubectl" || !strings.Contains(done.Warnings[0].Detail, done.Passage.Name) {
		t.Errorf("%+v", done.Warnings)
	}
}

// TestDrift: what a plan rests on, changed before it is carried out. Nothing is
// opened, and the fields are named.
func TestDrift(t *testing.T) {
	guarded := func(g *v1alpha1.Gate) {
		g.Spec.Admits[0].RequireApproval = true
		g.Spec.Windows = []v1alpha1.Window{{Schedule: "0 0 1 1 *", Duration: metav1.Duration{Duration: 365 * 24 * time.Hour}}}
	}
	approve := func(o client.Object) {
		o.(*v1alpha1.Bundle).Status.ApprovedFor = []v1alpha1.BundleApproval{{Gate: "dev", Actor: "approver", At: metav1.Now()}}
	}
	none := func(*testing.T, *world, *ops.Ops) {}
	for what, c := range map[string]struct {
		prepare, change func(*testing.T, *world, *ops.Ops)
		fields          []string
	}{
		"the Gate was edited": {change: func(t *testing.T, w *world, _ *ops.Ops) {
			w.edit(t, gate("dev", nil), func(o client.Object) { o.(*v1alpha1.Gate).Spec.Passage.Steps[0].Uses = "git-push" })
		}, fields: []string{"gateGeneration", "steps"}},
		"the Gate was suspended": {change: func(t *testing.T, w *world, _ *ops.Ops) {
			w.edit(t, gate("dev", nil), func(o client.Object) { o.(*v1alpha1.Gate).Spec.Suspend = true })
		}, fields: []string{"gateGeneration", "suspended"}},
		"the approval was withdrawn": {change: func(t *testing.T, w *world, _ *ops.Ops) {
			w.status(t, bundle("web-2"), func(o client.Object) { o.(*v1alpha1.Bundle).Status.ApprovedFor = nil })
		}, fields: []string{"approval", "notEligible"}},
		"somebody else approved instead": {change: func(t *testing.T, w *world, _ *ops.Ops) {
			w.status(t, bundle("web-2"), func(o client.Object) { o.(*v1alpha1.Bundle).Status.ApprovedFor[0].Actor = "somebody" })
		}, fields: []string{"approval"}},
		"the window closed": {change: func(_ *testing.T, _ *world, o *ops.Ops) {
			o.Now = func() metav1.Time { return metav1.Date(2028, 12, 31, 12, 0, 0, 0, time.UTC) } // day 366
		}, fields: []string{"window"}},
		"another Bundle is current": {change: func(t *testing.T, w *world, _ *ops.Ops) {
			w.status(t, gate("dev", nil), func(o client.Object) {
				o.(*v1alpha1.Gate).Status.Current = &v1alpha1.GateEntry{Bundle: "web-1", EnteredAt: metav1.Now()}
			})
		}, fields: []string{"current"}},
		"the Bundle is another one of that name": {change: func(t *testing.T, w *world, _ *ops.Ops) {
			if err := w.admin.Delete(t.Context(), &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "web-2", Namespace: w.ns}}); err != nil {
				t.Fatal(err)
			}
			w.Create(t, w.ns, bundle("web-2"))
			w.status(t, bundle("web-2"), approve)
		}, fields: []string{"bundleUID"}},
		"the Gate is another one of that name": {change: func(t *testing.T, w *world, _ *ops.Ops) {
			if err := w.admin.Delete(t.Context(), &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "dev", Namespace: w.ns}}); err != nil {
				t.Fatal(err)
			}
			w.Create(t, w.ns, gate("dev", guarded))
		}, fields: []string{"gateUID"}},
		"the newest Passage was deleted": {
			prepare: func(t *testing.T, w *world, _ *ops.Ops) {
				w.open(t, "kubectl", "dev", "web-1", of("dev"))
				w.finish(t, "kubectl", v1alpha1.PassageAborted)
			},
			change: func(t *testing.T, w *world, _ *ops.Ops) {
				if err := w.admin.Delete(t.Context(), w.passage(t, "kubectl")); err != nil {
					t.Fatal(err)
				}
			}, fields: []string{"newestPassage"}},
		"the controller rewrote the status": {change: func(t *testing.T, w *world, _ *ops.Ops) {
			now := metav1.Now()
			w.status(t, gate("dev", nil), func(o client.Object) {
				s := &o.(*v1alpha1.Gate).Status
				s.ObservedGeneration, s.Eligible, s.LastHandledReconcileAt = 1, []string{"web-2"}, "x"
				s.Health = &v1alpha1.Health{Status: v1alpha1.HealthProgressing, ObservedAt: &now, Since: &now}
				s.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Idle", Message: "1 Bundle(s) eligible", ObservedGeneration: 1, LastTransitionTime: now}}
			})
			w.status(t, bundle("web-2"), func(o client.Object) {
				b := o.(*v1alpha1.Bundle)
				b.Status.ApprovedFor = append(b.Status.ApprovedFor, v1alpha1.BundleApproval{Gate: "other", Actor: "approver", At: now})
				b.Status.Cleared = []v1alpha1.BundleMark{{Gate: "other", At: now}}
			})
			w.edit(t, gate("dev", nil), func(o client.Object) { o.SetAnnotations(map[string]string{"reconcile.fluxcd.io/requestedAt": "1"}) })
		}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, gate("dev", guarded))
			w.status(t, bundle("web-2"), approve)
			o := w.ops(t, cluster.Promoter, nil)
			o.Now = func() metav1.Time { return metav1.Date(2028, 6, 1, 12, 0, 0, 0, time.UTC) }
			o.Untimed = true
			if c.prepare == nil {
				c.prepare = none
			}
			c.prepare(t, w, o)
			plan := w.plan(t, o, "dev")
			c.change(t, w, o)
			done, err := o.Promote(t.Context(), plan, actor("call-1"))
			if c.fields == nil {
				if err != nil || done.Own {
					t.Errorf("drifted: %+v, %v", done, err)
				}
				return
			}
			wantDrifted(t, err, c.fields...)
			for _, p := range w.passages(t, "dev") {
				if p.Active() {
					t.Errorf("Passage %s was opened", p.Name)
				}
			}
		})
	}
}

// TestForbidden: a user who may not write is told so, and nothing is tried again.
func TestForbidden(t *testing.T) {
	w := newWorld(t, gate("dev", nil))
	o := w.ops(t, cluster.Viewer, nil)
	plan := w.plan(t, o, "dev")
	w.Requests().Reset()
	if _, err := o.Promote(t.Context(), plan, actor("call-1")); hecate.Classify(err) != hecate.CodeForbidden {
		t.Errorf("%v", err)
	}
	if n := w.Requests().Count("create", "passages"); n != 1 {
		t.Errorf("%d tries", n)
	}
}
