package ops

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// forbidding refuses LISTs of some kinds: everywhere, or over all namespaces.
type forbidding struct {
	client.Client
	everywhere, clusterWide map[string]bool
}

func (f forbidding) List(ctx context.Context, l client.ObjectList, opts ...client.ListOption) error {
	kind := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", l), "*v1alpha1."), "List")
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	if f.everywhere[kind] || (o.Namespace == "" && f.clusterWide[kind]) {
		return apierrors.NewForbidden(schema.GroupResource{Group: "hecate.dev", Resource: strings.ToLower(kind) + "s"}, "", fmt.Errorf("not for you"))
	}
	return f.Client.List(ctx, l, opts...)
}

func kindSet(kinds ...string) map[string]bool {
	m := map[string]bool{}
	for _, k := range kinds {
		m[k] = true
	}
	return m
}

// TestUnread holds that nothing is concluded from the absence of what could not
// be read.
func TestUnread(t *testing.T) {
	ctx := context.Background()
	find := func(t *testing.T, o *Ops) *v1alpha1.Gate {
		t.Helper()
		gates, err := o.Gates(ctx, AllNamespaces)
		if err != nil || len(gates) == 0 {
			t.Fatal(err)
		}
		return &gates[0]
	}
	codes := func(x *Explanation) map[SourceCode]bool {
		m := map[SourceCode]bool{}
		for _, i := range x.Incomplete {
			m[i.Code] = true
		}
		return m
	}
	t.Run("Bundles", func(t *testing.T) {
		o := fromSnapshot(t, "testdata/states/awaiting-approval")
		o.Client = forbidding{Client: o.Client, everywhere: kindSet("Bundle")}
		g := find(t, o)
		x, err := o.Explain(ctx, g.Namespace, g.Name)
		if err != nil {
			t.Fatal(err)
		}
		if hasKind(x.Blockers, BlockerNoBundles, BlockerNotFound) || !codes(x)[SourceForbidden] || !strings.Contains(x.Summary, "could not be read") {
			t.Errorf("%s: %s %v", x.State, x.Summary, answered(x))
		}
		troubled, _, _, err := o.ExplainAll(ctx, AllNamespaces)
		if err != nil || len(troubled) == 0 {
			t.Errorf("a Gate that nobody could judge counts as resting (%v)", err)
		}
	})
	t.Run("Passages", func(t *testing.T) {
		o := fromSnapshot(t, "testdata/states/step-waiting")
		o.Client = forbidding{Client: o.Client, everywhere: kindSet("Passage")}
		g := find(t, o)
		x, err := o.Explain(ctx, g.Namespace, g.Name)
		if err != nil {
			t.Fatal(err)
		}
		if x.State != StateCrossing || x.Crossing == nil || x.Crossing.Passage != g.Status.ActivePassage || !codes(x)[SourceForbidden] {
			t.Errorf("%s: %s", x.State, x.Summary)
		}
		for _, b := range x.Blockers {
			if len(b.HumanSteps) > 0 {
				t.Errorf("%s offers %v though a crossing may be running", b.Kind, b.HumanSteps)
			}
		}
	})
	t.Run("narrowed", func(t *testing.T) {
		o := fromSnapshot(t, "../../examples/estate")
		o.Client = forbidding{Client: o.Client, clusterWide: kindSet("Bundle", "Beacon", "Passage")}
		o.DefaultNamespace = "payments"
		board, err := o.Overview(ctx, AllNamespaces)
		if err != nil {
			t.Fatal(err)
		}
		rows := map[string]GateRow{}
		for _, r := range board.Rows {
			rows[r.Namespace+"/"+r.Gate] = r
		}
		if r := rows["shop/production"]; r.Blocker == BlockerNoBundles || r.Blocker == BlockerNotFound || !strings.Contains(r.Summary, "could not be read") {
			t.Errorf("outside of what was read: %+v", r)
		}
		if r := rows["payments/live"]; r.Blocker != BlockerChangeHeld {
			t.Errorf("inside of what was read: %+v", r)
		}
		if len(board.Incomplete) == 0 {
			t.Error("nothing says what could not be read")
		}
	})
	t.Run("Gates", func(t *testing.T) {
		o := fromSnapshot(t, "testdata/states/resting")
		o.Client = forbidding{Client: o.Client, everywhere: kindSet("Gate")}
		if _, err := o.Overview(ctx, AllNamespaces); err == nil || sourceCode(err) != SourceForbidden {
			t.Errorf("got %v", err)
		}
	})
}

// TestLattice holds that the chain's cost does not grow with the number of
// paths: layers of two Gates, each after both of the layer above.
func TestLattice(t *testing.T) {
	const layers = 40 // 2^40 paths
	e := newEstate(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	created := metav1.NewTime(e.now.Add(-time.Hour))
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: "n", CreationTimestamp: created, Generation: 1}
	}
	var gates []v1alpha1.Gate
	for i := range layers {
		for _, side := range []string{"a", "b"} {
			g := v1alpha1.Gate{ObjectMeta: meta(fmt.Sprintf("g%02d%s", i, side))}
			a := v1alpha1.Admission{From: v1alpha1.AdmissionSource{Beacon: "web"}}
			if i > 0 {
				a.After = []string{fmt.Sprintf("g%02da", i-1), fmt.Sprintf("g%02db", i-1)}
			}
			g.Spec.Admits = []v1alpha1.Admission{a}
			g.Spec.Passage = &v1alpha1.PassageTemplate{Steps: []v1alpha1.Step{{Uses: "http"}}}
			gates = append(gates, g)
		}
	}
	e.addGates(gates)
	e.addBundles([]v1alpha1.Bundle{{ObjectMeta: meta("web-1"), Spec: v1alpha1.BundleSpec{Beacon: "web"}}})
	done := make(chan *Explanation, 1)
	go func() { done <- e.explain(&gates[len(gates)-1]) }()
	select {
	case x := <-done:
		if len(x.Chain) > maxLinks || len(x.Chain) < 10 {
			t.Errorf("the chain has %d links", len(x.Chain))
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the chain walks every path")
	}
}

// TestCause shortens the text of an error in its middle, after it was masked.
func TestCause(t *testing.T) {
	long := "pushing: " + strings.Repeat("and then ", 100) + "password: hunter2, remote rejected: the branch is protected"
	got := cleanCause(long, 80)
	if n := len([]rune(got)); n > 80 || n < 75 || !strings.HasPrefix(got, "pushing: and then") || !strings.HasSuffix(got, "remote rejected: the branch is protected") || !strings.Contains(got, " … ") {
		t.Errorf("%d characters: %s", n, got)
	}
	// The words before a secret go with the middle.
	for n := 30; n < 120; n++ {
		if got := cleanCause(long, n); strings.Contains(got, "unter2") || len([]rune(got)) > n {
			t.Errorf("%d: %s", n, got)
		}
	}
	for in, want := range map[string]string{"short": "short", strings.Repeat("é", 80): strings.Repeat("é", 80)} {
		if got := cleanCause(in, 80); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
	if got := cleanCause(strings.Repeat("x", maxCause+1)+"end", 80); len([]rune(got)) != 80 || strings.Contains(got, "end") {
		t.Errorf("without bound: %s", got)
	}
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"clone https://bot:s3cret@git.example.com/x.git":                      "clone https://***@git.example.com/x.git",
		"clone https://u:p@ss@git.example.com/x":                              "clone https://***@git.example.com/x",
		"GET https://api.example.com/?token=abc&x=1":                          "GET https://api.example.com/?token=***&x=1",
		"login failed, password: hunter2, user bob":                           "login failed, password: ***, user bob",
		`body {"token":"abc","id":1}`:                                         `body {"token":"***","id":1}`,
		"Authorization: Bearer abcdefghij.klmnopqrst":                         "Authorization: ***",
		"basic authentication failed":                                         "basic authentication failed",
		`reading Secret shop/fides: Secret "fides" not found`:                 `reading Secret shop/fides: Secret "fides" not found`,
		"a\x1b[31mred\x1b[0m \u202ebidi\u202c\nline two":                      "ared bidi line two",
		"key fides_0123456789ab_0123456789abcdef0123456789abcdef01234567 end": "key *** end",
	} {
		if got := clean(in, 500); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	raw := `{"url":"https://a:b@x.example.com","headers":{"Authorization":"Basic Zm9vOmJhcg==","X-Id":"7"},"password":"p","env":[{"name":"API_KEY","value":"v"},{"name":"REGION","value":"eu"}],"tokenRef":{"name":"keep"},"secretName":"keep","n":{"apiKey":12345},"body":"{\"access_token\":\"abc\"}"}`
	got := maskJSON([]byte(raw), 2000)
	for _, leak := range []string{"a:b@", "Zm9v", `"p"`, `"v"`, "12345", "abc"} {
		if strings.Contains(got, leak) {
			t.Errorf("%s leaks: %s", leak, got)
		}
	}
	for _, kept := range []string{`"keep"`, `"eu"`, `"7"`, "x.example.com"} {
		if !strings.Contains(got, kept) {
			t.Errorf("%s is lost: %s", kept, got)
		}
	}
}
