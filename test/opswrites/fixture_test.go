package opswrites

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	hecate "github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// world is a namespace with a Beacon, two Bundles and the Gates of a test.
type world struct {
	*cluster.Cluster
	ns    string
	admin client.Client
}

func newWorld(t *testing.T, gates ...*v1alpha1.Gate) *world {
	t.Helper()
	c := cluster.Start(t)
	w := &world{Cluster: c, ns: c.Namespace(t)}
	w.admin = w.client(t, cluster.Admin, nil)
	objects := []client.Object{
		&v1alpha1.Beacon{TypeMeta: kind(v1alpha1.KindBeacon), ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: v1alpha1.BeaconSpec{Watch: []v1alpha1.WatchSource{{Image: &v1alpha1.ImageSource{Repo: "registry.example.com/acme/web"}}}}},
		bundle("web-1"), bundle("web-2"),
	}
	for _, g := range gates {
		objects = append(objects, g)
	}
	c.Create(t, w.ns, objects...)
	return w
}

func kind(k string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: k}
}

func bundle(name string) *v1alpha1.Bundle {
	digit := name[len(name)-1:]
	return &v1alpha1.Bundle{TypeMeta: kind(v1alpha1.KindBundle), ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelBeacon: "web"}},
		Spec: v1alpha1.BundleSpec{Beacon: "web", Digest: strings.Repeat(digit, 64),
			Artifacts: []v1alpha1.Artifact{{Image: &v1alpha1.ImageArtifact{Repo: "registry.example.com/acme/web", Tag: digit + ".0.0", Digest: "sha256:" + strings.Repeat(digit, 64)}}}}}
}

func gate(name string, change func(*v1alpha1.Gate)) *v1alpha1.Gate {
	g := &v1alpha1.Gate{TypeMeta: kind(v1alpha1.KindGate), ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.GateSpec{Admits: []v1alpha1.Admission{{From: v1alpha1.AdmissionSource{Beacon: "web"}}},
			Passage: &v1alpha1.PassageTemplate{Steps: []v1alpha1.Step{{Uses: "http"}}}}}
	if change != nil {
		change(g)
	}
	return g
}

// client is one of a user; on sees its requests on their way.
func (w *world) client(t *testing.T, user string, on func(http.RoundTripper) http.RoundTripper) client.Client {
	t.Helper()
	src, err := hecate.Open(t.Context(), hecate.Options{Kubeconfig: w.Kubeconfig(t, user, w.ns), Wrap: on})
	if err != nil {
		t.Fatal(err)
	}
	return src.Client
}

func (w *world) ops(t *testing.T, user string, on func(http.RoundTripper) http.RoundTripper) *ops.Ops {
	t.Helper()
	o := ops.New(w.client(t, user, on))
	o.DialFides = nil
	return o
}

func (w *world) promotion(gate string) ops.PromoteQuery {
	return ops.PromoteQuery{PreviewQuery: ops.PreviewQuery{Namespace: w.ns, Gate: gate, Bundle: "web-2"}}
}

func (w *world) plan(t *testing.T, o *ops.Ops, gate string) *ops.PromotePlan {
	t.Helper()
	p, err := o.PlanPromote(t.Context(), w.promotion(gate))
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Refused(); r != nil {
		t.Fatal(r)
	}
	return p
}

func actor(call string) ops.Actor {
	return ops.Actor{Name: "mcp:promoter", RequestedBy: "promoter", ConfirmedVia: "elicitation", Client: "test 1", CallID: call}
}

// passages are those of a Gate, by its label.
func (w *world) passages(t *testing.T, gate string) []v1alpha1.Passage {
	t.Helper()
	var l v1alpha1.PassageList
	if err := w.admin.List(context.Background(), &l, client.InNamespace(w.ns), client.MatchingLabels{v1alpha1.LabelGate: gate}); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

func (w *world) passage(t *testing.T, name string) *v1alpha1.Passage {
	t.Helper()
	var p v1alpha1.Passage
	if err := w.admin.Get(context.Background(), client.ObjectKey{Namespace: w.ns, Name: name}, &p); err != nil {
		t.Fatal(err)
	}
	return &p
}

// open makes a Passage as somebody's kubectl would.
func (w *world) open(t *testing.T, name, gate, bundle string, labels map[string]string) *v1alpha1.Passage {
	t.Helper()
	p := &v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns, Labels: labels},
		Spec: v1alpha1.PassageSpec{Gate: gate, Bundle: bundle, Steps: []v1alpha1.Step{{Uses: "http"}}}}
	if err := w.admin.Create(context.Background(), p); err != nil {
		t.Error(err)
	}
	return p
}

func of(gate string) map[string]string { return map[string]string{v1alpha1.LabelGate: gate} }

// finish ends a Passage as the controller does.
func (w *world) finish(t *testing.T, name string, phase v1alpha1.PassagePhase) {
	t.Helper()
	now := metav1.Now()
	w.status(t, &v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.ns}}, func(o client.Object) {
		o.(*v1alpha1.Passage).Status = &v1alpha1.PassageStatus{Phase: phase, FinishedAt: &now}
	})
}

// status changes an object's status.
func (w *world) status(t *testing.T, o client.Object, change func(client.Object)) {
	t.Helper()
	w.change(t, o, change, func(o client.Object) error { return w.admin.Status().Update(context.Background(), o) })
}

// edit changes the rest of an object.
func (w *world) edit(t *testing.T, o client.Object, change func(client.Object)) {
	t.Helper()
	w.change(t, o, change, func(o client.Object) error { return w.admin.Update(context.Background(), o) })
}

func (w *world) change(t *testing.T, o client.Object, change func(client.Object), write func(client.Object) error) {
	t.Helper()
	o.SetNamespace(w.ns)
	if err := w.admin.Get(context.Background(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Error(err)
		return
	}
	change(o)
	if err := write(o); err != nil {
		t.Error(err)
	}
}

// roundTrip is an http.RoundTripper of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// losing carries writes out and loses the first n answers.
func losing(n int32) func(http.RoundTripper) http.RoundTripper {
	var lost atomic.Int32
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && isWrite(r) && lost.Add(1) <= n {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				return nil, errors.New("the connection was cut")
			}
			return resp, err
		})
	}
}

// before calls do once, right before the first write goes out.
func before(do func()) func(http.RoundTripper) http.RoundTripper {
	var done atomic.Bool
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if isWrite(r) && !done.Swap(true) {
				do()
			}
			return next.RoundTrip(r)
		})
	}
}

// wantRefused is the refusal with a reason, which names its object.
func wantRefused(t *testing.T, err error, reason ops.RefusalReason, object string) {
	t.Helper()
	var r *ops.RefusedError
	if !errors.As(err, &r) || r.Reason != string(reason) || r.Object == nil || r.Object.Name != object || len(r.Refusals) == 0 {
		t.Errorf("got %v (%+v), want %s with object %s", err, r, reason, object)
	}
}

// wantDrifted is the drift of exactly these fields.
func wantDrifted(t *testing.T, err error, fields ...string) {
	t.Helper()
	var d *ops.DriftedError
	if !errors.As(err, &d) {
		t.Errorf("got %v, want Drifted", err)
		return
	}
	var got []string
	for _, x := range d.Differences {
		got = append(got, x.Field)
		if x.Planned == x.Now {
			t.Errorf("no difference: %+v", x)
		}
	}
	if strings.Join(got, " ") != strings.Join(fields, " ") {
		t.Errorf("%+v drifted, want %v", d.Differences, fields)
	}
}

// forceUID is a merge patch of another UID.
func forceUID(uid types.UID) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"uid":"`+string(uid)+`"},"spec":{"abort":true}}`))
}
