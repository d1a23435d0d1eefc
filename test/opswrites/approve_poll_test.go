package opswrites

import (
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	hecate "github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

func needsApproval(g *v1alpha1.Gate) { g.Spec.Admits[0].RequireApproval = true }

// TestApprove: an approval stands beside those of other Gates, and the first one
// for a Gate is the only one, whoever comes at the same time.
func TestApprove(t *testing.T) {
	w := newWorld(t, gate("dev", needsApproval), gate("prod", needsApproval))
	approver := w.ops(t, cluster.Approver, nil)
	q := ops.ApproveQuery{Namespace: w.ns, Gate: "dev", Bundle: "web-2"}
	plan, err := approver.PlanApprove(t.Context(), q)
	if err != nil || plan.Refused() != nil || plan.Confirm() != "dev" || plan.Namespace() != w.ns {
		t.Fatalf("%+v, %v", plan, err)
	}
	// Somebody writes the Bundle's status at the same time: it is not lost.
	busy := w.ops(t, cluster.Approver, before(func() {
		w.status(t, bundle("web-2"), func(o client.Object) {
			b := o.(*v1alpha1.Bundle)
			b.Status.ApprovedFor = append(b.Status.ApprovedFor, v1alpha1.BundleApproval{Gate: "prod", Actor: "other", At: metav1.Now()})
			b.Status.Cleared = []v1alpha1.BundleMark{{Gate: "staging", At: metav1.Now()}}
		})
	}))
	done, err := busy.Approve(t.Context(), plan, ops.Actor{Name: "approver", RequestedBy: "approver"})
	if err != nil || done.Actor != "approver" || done.Gate != "dev" || done.Bundle.Name != "web-2" {
		t.Fatalf("%+v, %v", done, err)
	}
	var b v1alpha1.Bundle
	get := func() {
		t.Helper()
		if err := w.admin.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "web-2"}, &b); err != nil {
			t.Fatal(err)
		}
	}
	get()
	if len(b.Status.ApprovedFor) != 2 || b.Status.ApprovedFor[1].Actor != "approver" || b.Status.ApprovedFor[1].At.UTC().Format("2006-01-02T15:04:05Z") != done.At || len(b.Status.Cleared) != 1 {
		t.Errorf("%+v", b.Status)
	}
	// The plan of a second approver was made before, or is made now.
	_, err = approver.Approve(t.Context(), plan, ops.Actor{Name: "second"})
	wantRefused(t, err, ops.RefusedApproved, "web-2")
	if err != nil && !strings.Contains(err.Error(), "approver approved") {
		t.Errorf("the first is not named: %v", err)
	}
	plan, err = approver.PlanApprove(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(t, asError(plan.Refused()), ops.RefusedApproved, "web-2")
	get()
	if b.Status.ApprovedFor[1].Actor != "approver" {
		t.Errorf("overwritten: %+v", b.Status.ApprovedFor)
	}
}

// TestApproveAtTheSameInstant: a second approver who comes between the last look
// and the write does not overwrite the first either.
func TestApproveAtTheSameInstant(t *testing.T) {
	w := newWorld(t, gate("dev", needsApproval))
	o := w.ops(t, cluster.Approver, before(func() {
		w.status(t, bundle("web-2"), func(o client.Object) {
			o.(*v1alpha1.Bundle).Status.ApprovedFor = []v1alpha1.BundleApproval{{Gate: "dev", Actor: "first", At: metav1.Now()}}
		})
	}))
	plan, err := o.PlanApprove(t.Context(), ops.ApproveQuery{Namespace: w.ns, Gate: "dev", Bundle: "web-2"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Approve(t.Context(), plan, ops.Actor{Name: "second"})
	wantRefused(t, err, ops.RefusedApproved, "web-2")
	if err != nil && !strings.Contains(err.Error(), "first") {
		t.Error(err)
	}
}

func TestApproveWithALostAnswer(t *testing.T) {
	w := newWorld(t, gate("dev", needsApproval))
	o := w.ops(t, cluster.Approver, losing(1))
	plan, err := o.PlanApprove(t.Context(), ops.ApproveQuery{Namespace: w.ns, Gate: "dev", Bundle: "web-2"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Approve(t.Context(), plan, ops.Actor{Name: "approver"}); err != nil {
		t.Error(err)
	}
}

func TestApproveDrift(t *testing.T) {
	w := newWorld(t, gate("dev", needsApproval))
	o := w.ops(t, cluster.Approver, nil)
	plan, err := o.PlanApprove(t.Context(), ops.ApproveQuery{Namespace: w.ns, Gate: "dev", Bundle: "web-2"})
	if err != nil {
		t.Fatal(err)
	}
	w.edit(t, gate("dev", nil), func(o client.Object) { o.(*v1alpha1.Gate).Spec.Passage.Steps[0].Uses = "git-push" })
	_, err = o.Approve(t.Context(), plan, ops.Actor{Name: "approver"})
	wantDrifted(t, err, "gateGeneration")
	// A promoter may not approve, and hears that from the API server.
	p := w.ops(t, cluster.Promoter, nil)
	if plan, err = p.PlanApprove(t.Context(), ops.ApproveQuery{Namespace: w.ns, Gate: "dev", Bundle: "web-2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Approve(t.Context(), plan, ops.Actor{Name: "promoter"}); hecate.Classify(err) != hecate.CodeForbidden {
		t.Errorf("%v", err)
	}
}

// poker makes a user of upstream's hecate-poker role, which may update Beacons and
// not patch them.
func (w *world) poker(t *testing.T) string {
	t.Helper()
	c, err := client.New(w.Config(cluster.Admin), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "hecate-poker-"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"hecate.dev"}, Resources: []string{"beacons", "gates", "bundles", "passages"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"hecate.dev"}, Resources: []string{"beacons"}, Verbs: []string{"update"}},
	}}
	if err := c.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	w.Grant(t, cluster.OneNamespace, w.ns, role.Name)
	return cluster.OneNamespace
}

func (w *world) beacon(t *testing.T) *v1alpha1.Beacon {
	t.Helper()
	var b v1alpha1.Beacon
	if err := w.admin.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "web"}, &b); err != nil {
		t.Fatal(err)
	}
	return &b
}

// TestPoll: the annotation is written with no more than upstream's poker may do,
// and what somebody else writes at the same time stays.
func TestPoll(t *testing.T) {
	w := newWorld(t)
	user := w.poker(t)
	for what, on := range map[string]func(http.RoundTripper) http.RoundTripper{
		"plainly": nil, "with a lost answer": losing(1),
		"with a conflict": before(func() {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/other":"x"}}}`))
			if err := w.admin.Patch(t.Context(), w.beacon(t), patch); err != nil {
				t.Error(err)
			}
		}),
	} {
		t.Run(what, func(t *testing.T) {
			o := w.ops(t, user, on)
			plan, err := o.PlanPoll(t.Context(), ops.PollQuery{Namespace: w.ns, Beacon: "we"})
			if err != nil || plan.Refused() != nil || plan.Confirm() != "web" {
				t.Fatalf("%+v, %v", plan, err)
			}
			done, err := o.Poll(t.Context(), plan, actor("call-1"))
			if err != nil {
				t.Fatal(err)
			}
			b := w.beacon(t)
			if got := b.Annotations[ops.AnnotationRequestedAt]; got == "" || got != done.RequestedAt || strings.Trim(got, "0123456789") != "" {
				t.Errorf("%q, said %q", got, done.RequestedAt)
			}
			if what == "with a conflict" && b.Annotations["example.com/other"] != "x" {
				t.Errorf("overwritten: %v", b.Annotations)
			}
			if b.Generation != 1 {
				t.Errorf("the spec was written: generation %d", b.Generation)
			}
		})
	}
}

func TestPollRefusals(t *testing.T) {
	w := newWorld(t)
	o := w.ops(t, w.poker(t), nil)
	plan, err := o.PlanPoll(t.Context(), ops.PollQuery{Namespace: w.ns, Beacon: "web"})
	if err != nil {
		t.Fatal(err)
	}
	w.edit(t, w.beacon(t), func(o client.Object) { o.(*v1alpha1.Beacon).Spec.Suspend = true })
	_, err = o.Poll(t.Context(), plan, actor("call-1"))
	wantDrifted(t, err, "generation", "suspended")
	if plan, err = o.PlanPoll(t.Context(), ops.PollQuery{Namespace: w.ns, Beacon: "web"}); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, asError(plan.Refused()), ops.RefusedSuspended, "web")
	_, err = o.Poll(t.Context(), plan, actor("call-1"))
	wantRefused(t, err, ops.RefusedSuspended, "web")
	if b := w.beacon(t); len(b.Annotations) > 0 {
		t.Errorf("written: %v", b.Annotations)
	}
	if err := w.admin.Delete(t.Context(), w.beacon(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.PlanPoll(t.Context(), ops.PollQuery{Namespace: w.ns, Beacon: "web"}); !ops.IsNotFound(err) {
		t.Error(err)
	}
}
