package writes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	hecate "github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/fides/fidestest"
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

// lane makes one more Gate like staging, which change may change. A call about it
// is no other test's.
func (w *world) lane(t testing.TB, change func(*v1alpha1.GateSpec)) string {
	t.Helper()
	w.n++
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("lane-%d", w.n)}, Spec: v1alpha1.GateSpec{
		Admits:  []v1alpha1.Admission{{From: v1alpha1.AdmissionSource{Beacon: beacon}}},
		Passage: &v1alpha1.PassageTemplate{Steps: []v1alpha1.Step{{Uses: "git-clone"}, {Uses: "flux-wait"}}}}}
	if change != nil {
		change(&g.Spec)
	}
	w.create(t, g)
	return g.Name
}

// gate edits a Gate, gateStatus and bundleStatus write a status as the controller.
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

func (w *world) bundleStatus(t testing.TB, name string, change func(*v1alpha1.Bundle)) {
	t.Helper()
	var b v1alpha1.Bundle
	w.get(t, &b, name)
	change(&b)
	if err := w.admin.Status().Update(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
}

// allow gives a user rights in the namespace.
func (w *world) allow(t testing.TB, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	admin, err := client.New(w.Config(cluster.Admin), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	own := metav1.ObjectMeta{Namespace: w.ns, Name: "of-" + user}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: own, Rules: rules},
		&rbacv1.RoleBinding{ObjectMeta: own, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: own.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}},
	} {
		if err := admin.Create(context.Background(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// writes counts what the API server was asked to change since Requests was reset.
// Asking who one is is a create too, and changes nothing.
func (w *world) writes() int {
	r, n := w.Requests(), 0
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
		n += r.Count(verb, "")
	}
	return n - r.Count("create", "selfsubjectreviews")
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

func timeout(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// all are the Passages of every Gate.
func (w *world) all(t testing.TB) []v1alpha1.Passage {
	t.Helper()
	var l v1alpha1.PassageList
	if err := w.admin.List(context.Background(), &l, client.InNamespace(w.ns)); err != nil {
		t.Fatal(err)
	}
	return l.Items
}

// closed is a window that is never open.
var closed = v1alpha1.Window{Schedule: "* * * * *", Duration: metav1.Duration{Duration: time.Hour}, Deny: true}

// idle writes the status of a Gate at rest, later by some time.
func idle(g *v1alpha1.Gate, later time.Duration) {
	now := metav1.NewTime(time.Now().Add(later))
	g.Status.ObservedGeneration = g.Generation
	g.Status.LastHandledReconcileAt = now.Format(time.RFC3339Nano)
	g.Status.Health = &v1alpha1.Health{Status: v1alpha1.HealthHealthy, ObservedAt: &now, Since: &now}
	meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.GateReasonIdle,
		Message: "at " + now.String(), ObservedGeneration: g.Generation})
}

// evidence is an evidence server that knows one Bundle's image.
type evidence struct {
	w   *world
	b   *v1alpha1.Bundle
	url string
	now atomic.Pointer[fidestest.Server]
}

const (
	evidenceEnvironment = "6cb8866f-ebfd-4e72-bf31-4bf768c711fa"
	evidenceToken       = "token-of-the-evidence-server"
)

// secretReader may read the evidence server's token.
var secretReader = rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"fides"}, Verbs: []string{"get"}}

func newEvidence(t testing.TB, w *world, b *v1alpha1.Bundle) *evidence {
	t.Helper()
	e := &evidence{w: w, b: b}
	e.set(t, true)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { e.now.Load().Handler().ServeHTTP(rw, r) }))
	t.Cleanup(s.Close)
	e.url = s.URL
	w.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "fides"}, Data: map[string][]byte{"token": []byte(evidenceToken)}})
	return e
}

// set says whether the Bundle's tests have passed.
func (e *evidence) set(t testing.TB, compliant bool, approvals ...fidestest.Approval) {
	t.Helper()
	const trail = "1f81966d-7d36-41bb-839b-8c0d0fe5757f"
	sha := strings.TrimPrefix(e.b.Spec.Artifacts[0].Image.Digest, "sha256:")
	at := time.Now().Add(-time.Hour)
	e.now.Store(fidestest.New(fidestest.State{Token: evidenceToken,
		Environments: []fidestest.Environment{{ID: evidenceEnvironment, Policies: []fidestest.Policy{{Name: "release", Types: []string{"unit-tests"}}}}},
		Trails: []fidestest.Trail{{ID: trail, Name: "shop", Committer: "dev@example.com", Approvals: approvals,
			Attestations: []fidestest.Attestation{{Name: "unit-tests", Type: "unit-tests", Compliant: compliant, SHA256: sha, At: at}}}},
		Artifacts: []fidestest.Artifact{{SHA256: sha, Trail: trail}},
	}))
}

// on gives a Gate the evidence server and a step that asks for the policies.
func (e *evidence) on(g *v1alpha1.GateSpec) { e.checks(g, "policy") }

func (e *evidence) checks(g *v1alpha1.GateSpec, names ...string) {
	with, err := json.Marshal(map[string]any{"gates": names})
	if err != nil {
		panic(err) // a list of strings
	}
	g.Evidence = &v1alpha1.EvidenceConfig{FidesEnvironment: evidenceEnvironment, ServerURL: e.url, CredentialsRef: &v1alpha1.LocalReference{Name: "fides"}}
	g.Passage.Steps = append([]v1alpha1.Step{{Uses: "evidence-gate", With: &apiextensionsv1.JSON{Raw: with}}}, g.Passage.Steps...)
}
