package writes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	hecate "github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

var buildDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hecate-mcp-writes-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "writes:", err)
		os.Exit(1)
	}
	buildDir = dir
	cluster.Main(cleaned{m})
}

// cleaned removes the binary after the tests: cluster.Main does not return.
type cleaned struct{ m *testing.M }

func (c cleaned) Run() int {
	code := c.m.Run()
	if err := os.RemoveAll(buildDir); err != nil {
		code = max(code, 1)
	}
	return code
}

var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "hecate-mcp")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/hecate-mcp").CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("cannot build the binary: %s", out), err)
	}
	return path, nil
})

// rounds is how often a race is run: the number given, unless the environment
// says another.
func rounds(t testing.TB, n int) int {
	t.Helper()
	if s := os.Getenv("HECATE_MCP_ROUNDS"); s != "" {
		v, err := strconv.Atoi(s)
		if err != nil || v < 1 {
			t.Fatalf("HECATE_MCP_ROUNDS=%q is no number of rounds", s)
		}
		return v
	}
	return n
}

// world is one namespace with a pipeline of two Gates and a Beacon, and a client
// that may do everything, as the controller.
type world struct {
	*cluster.Cluster
	admin client.Client
	ns    string
	n     int
}

const (
	staging, production = "staging", "production"
	beacon              = "shop"
)

func newWorld(t testing.TB) *world {
	t.Helper()
	c := cluster.Start(t)
	admin, err := client.New(c.Config(cluster.Admin), client.Options{Scheme: hecate.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Cluster: c, admin: admin, ns: c.Namespace(t)}
	step := []v1alpha1.Step{{Uses: "git-clone"}, {Uses: "flux-wait"}}
	w.create(t, &v1alpha1.Beacon{ObjectMeta: metav1.ObjectMeta{Name: beacon}, Spec: v1alpha1.BeaconSpec{Watch: []v1alpha1.WatchSource{{Image: &v1alpha1.ImageSource{Repo: "example.com/shop"}}}}})
	w.create(t, &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: staging}, Spec: v1alpha1.GateSpec{
		Admits: []v1alpha1.Admission{{From: v1alpha1.AdmissionSource{Beacon: beacon}}}, Passage: &v1alpha1.PassageTemplate{Steps: step}}})
	w.create(t, &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: production}, Spec: v1alpha1.GateSpec{
		Admits: []v1alpha1.Admission{{From: v1alpha1.AdmissionSource{Beacon: beacon}, RequireApproval: true}}, Passage: &v1alpha1.PassageTemplate{Steps: step}}})
	return w
}

func (w *world) create(t testing.TB, o client.Object) {
	t.Helper()
	o.SetNamespace(w.ns)
	if err := w.admin.Create(context.Background(), o); err != nil {
		t.Fatal(err)
	}
}

// bundle makes one more Bundle.
func (w *world) bundle(t testing.TB) *v1alpha1.Bundle {
	t.Helper()
	w.n++
	digest := fmt.Sprintf("%064x", w.n)
	b := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("shop-%012d", w.n), Labels: map[string]string{v1alpha1.LabelBeacon: beacon}},
		Spec: v1alpha1.BundleSpec{Beacon: beacon, Digest: digest, Artifacts: []v1alpha1.Artifact{{Image: &v1alpha1.ImageArtifact{Repo: "example.com/shop", Tag: fmt.Sprint(w.n), Digest: "sha256:" + digest}}}}}
	w.create(t, b)
	return b
}

// as is an Ops for a user, through the proxy that counts and fails.
func (w *world) as(t testing.TB, user string) *ops.Ops {
	t.Helper()
	c, err := client.New(w.Config(user), client.Options{Scheme: hecate.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	o := ops.New(c)
	o.DefaultNamespace, o.FidesServer = w.ns, ""
	return o
}

func (w *world) get(t testing.TB, o client.Object, name string) {
	t.Helper()
	if err := w.admin.Get(context.Background(), client.ObjectKey{Namespace: w.ns, Name: name}, o); err != nil {
		t.Fatal(err)
	}
}

// passages are those of a Gate.
func (w *world) passages(t testing.TB, gate string) []v1alpha1.Passage {
	t.Helper()
	var l v1alpha1.PassageList
	if err := w.admin.List(context.Background(), &l, client.InNamespace(w.ns), client.MatchingLabels{v1alpha1.LabelGate: gate}); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

func active(ps []v1alpha1.Passage) (out []v1alpha1.Passage) {
	for _, p := range ps {
		if p.Active() {
			out = append(out, p)
		}
	}
	return out
}

// finish ends a Passage as the controller does.
func (w *world) finish(t testing.TB, name string, phase v1alpha1.PassagePhase) {
	t.Helper()
	var p v1alpha1.Passage
	w.get(t, &p, name)
	now := metav1.Now()
	p.Status = &v1alpha1.PassageStatus{Phase: phase, StartedAt: &now, FinishedAt: &now, Message: "crossed " + p.Spec.Gate}
	if err := w.admin.Status().Update(context.Background(), &p); err != nil {
		t.Fatal(err)
	}
}

func query(w *world, gate, bundle string) ops.PromoteQuery {
	return ops.PromoteQuery{PreviewQuery: ops.PreviewQuery{Namespace: w.ns, Gate: gate, Bundle: bundle}}
}

func timeout(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
