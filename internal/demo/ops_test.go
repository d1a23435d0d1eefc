package demo_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

func over(s *stage) *ops.Ops {
	o := ops.New(s.Client)
	o.Now = func() metav1.Time { return metav1.NewTime(s.Now()) }
	o.DefaultNamespace = s.Namespace
	o.DialFides = func(c fides.Config) (*fides.Client, error) {
		c.HTTPClient = s.HTTPClient
		return fides.New(c)
	}
	return o
}

var me = ops.Actor{Name: "mcp:demo", RequestedBy: "demo", ConfirmedVia: "terminal", Client: "test", CallID: "1"}

// TestOps holds that what the people's side does works on the demo, and that
// the demo answers it as an API server: one crossing at a time, a call that is
// repeated, and approvals by the rules of the evidence server.
func TestOps(t *testing.T) {
	s := open(t, "")
	o, ctx := over(s), t.Context()
	query := ops.PromoteQuery{PreviewQuery: ops.PreviewQuery{Namespace: "shop", Gate: "staging", Bundle: "storefront-de4370fba351"}}
	plan, err := o.PlanPromote(ctx, query)
	if err != nil {
		t.Fatal(err)
	}
	first, err := o.Promote(ctx, plan, me)
	if err != nil {
		t.Fatal(err)
	}
	again, err := o.Promote(ctx, plan, me)
	if err != nil || again.Passage != first.Passage {
		t.Errorf("the same call again: %+v, %v", again, err)
	}
	other := me
	other.CallID = "2"
	var refused *ops.RefusedError
	if _, err := o.Promote(ctx, plan, other); !errors.As(err, &refused) {
		t.Errorf("another call: %v", err)
	}
	s.pass(10 * time.Second)
	p := get[v1alpha1.Passage](t, s, "shop", first.Passage.Name)
	if p.Phase() != v1alpha1.PassageSucceeded || p.Spec.Actor != "mcp:demo" {
		t.Errorf("%s by %s", p.Phase(), p.Spec.Actor)
	}

	poll, err := o.PlanPoll(ctx, ops.PollQuery{Namespace: "shop", Beacon: "storefront"})
	if err != nil {
		t.Fatal(err)
	}
	polled, err := o.Poll(ctx, poll, me)
	if err != nil {
		t.Fatal(err)
	}
	s.pass(time.Second)
	if x := get[v1alpha1.Beacon](t, s, "shop", "storefront"); x.Status.LastHandledReconcileAt != polled.RequestedAt {
		t.Errorf("asked %s, handled %s", polled.RequestedAt, x.Status.LastHandledReconcileAt)
	}

	stop, err := o.PlanAbort(ctx, ops.AbortQuery{Namespace: "payments", Passage: "canary-p5xrl"})
	if err != nil {
		t.Fatal(err)
	}
	s.tick = 300 * time.Millisecond // Abort looks whether it was taken up
	if _, err := o.Abort(ctx, stop, me); err != nil {
		t.Fatal(err)
	}
	s.tick = 0
	s.pass(time.Second)
	if p := get[v1alpha1.Passage](t, s, "payments", "canary-p5xrl"); p.Phase() != v1alpha1.PassageAborted {
		t.Errorf("aborted: %s", p.Phase())
	}

	approve, err := o.PlanApprove(ctx, ops.ApproveQuery{Namespace: "shop", Gate: "production", Bundle: "storefront-ad9f857c874a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Approve(ctx, approve, ops.Actor{Name: "approver@example.com", RequestedBy: "demo", ConfirmedVia: "terminal", CallID: "3"}); err != nil {
		t.Fatal(err)
	}
	s.pass(time.Second)
	if g := get[v1alpha1.Gate](t, s, "shop", "production"); !slices.Contains(g.Status.Eligible, bundle(t, s, "shop", "v1.8.1").Name) {
		t.Errorf("eligible %v", g.Status.Eligible)
	}
}
