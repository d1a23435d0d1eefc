package ops

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
)

// fromSnapshot opens a folder as an Ops that asks nobody else.
func fromSnapshot(t testing.TB, dir string) *Ops {
	t.Helper()
	// want.yaml is the test's, and not an object.
	copied := filepath.Join(t.TempDir(), filepath.Base(dir))
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(copied, "want.yaml")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	src, err := cluster.Open(context.Background(), cluster.Options{Snapshot: copied})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range src.Warnings {
		t.Errorf("%s: %s", dir, w)
	}
	o := New(src.Client)
	o.DialFides = nil
	o.Now = func() metav1.Time { return metav1.NewTime(src.Now()) }
	return o
}

// wantGate is what a state's want.yaml expects of one Gate.
type wantGate struct {
	State    State         `json:"state"`
	Kinds    []BlockerKind `json:"kinds"`
	Roots    []ChainKind   `json:"roots"`
	Warnings []WarningKind `json:"warnings"`
}

type wantState struct {
	Gates map[string]wantGate `json:"gates"`
}

func answered(x *Explanation) wantGate {
	w := wantGate{State: x.State, Kinds: []BlockerKind{}, Roots: []ChainKind{}, Warnings: []WarningKind{}}
	for _, b := range x.Blockers {
		w.Kinds = append(w.Kinds, b.Kind)
	}
	for _, r := range x.RootCauses {
		w.Roots = append(w.Roots, r.Kind)
	}
	for _, r := range x.Warnings {
		w.Warnings = append(w.Warnings, r.Kind)
	}
	return w
}

// TestStates holds the project's own copies of the states: one folder a state.
func TestStates(t *testing.T) {
	dirs, err := filepath.Glob("testdata/states/*/want.yaml")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no states", err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var want wantState
			if err := yaml.UnmarshalStrict(raw, &want); err != nil {
				t.Fatal(err)
			}
			checkStates(t, fromSnapshot(t, dir), want.Gates)
		})
	}
}

func checkStates(t *testing.T, o *Ops, want map[string]wantGate) {
	t.Helper()
	ctx := context.Background()
	gates, err := o.Gates(ctx, AllNamespaces)
	if err != nil {
		t.Fatal(err)
	}
	board, err := o.Overview(ctx, AllNamespaces)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, g := range gates {
		w, ok := want[g.Name]
		if !ok {
			t.Errorf("%s: no expectation", g.Name)
			continue
		}
		seen++
		x, err := o.Explain(ctx, g.Namespace, g.Name)
		if err != nil {
			t.Errorf("%s: %v", g.Name, err)
			continue
		}
		// A list that an expectation leaves out is not asserted.
		got := answered(x)
		if w.Kinds == nil {
			got.Kinds = nil
		}
		if w.Roots == nil {
			got.Roots = nil
		}
		if w.Warnings == nil {
			got.Warnings = nil
		}
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", g.Name, diff, x.Summary)
		}
		checkShape(t, x)
		// The board is a second way to the same answer.
		i := slices.IndexFunc(board.Rows, func(r GateRow) bool { return r.Gate == g.Name && r.Namespace == g.Namespace })
		if i < 0 || board.Rows[i].State != x.State {
			t.Errorf("%s: the board says otherwise than explain (%s)", g.Name, x.State)
		} else if len(x.Blockers) > 0 && board.Rows[i].Blocker != x.Blockers[0].Kind {
			t.Errorf("%s: the board's blocker is %s, explain's first %s", g.Name, board.Rows[i].Blocker, x.Blockers[0].Kind)
		}
	}
	if seen != len(want) {
		t.Errorf("%d Gates were expected, %d are there", len(want), seen)
	}
}

// checkShape holds what every Explanation has whatever its state.
func checkShape(t *testing.T, x *Explanation) {
	t.Helper()
	if x.Summary == "" || x.Blockers == nil {
		t.Errorf("%s: no summary, or blockers are null", x.Gate)
	}
	if !slices.IsSortedFunc(x.Blockers, func(a, b Blocker) int { return rank[a.Kind] - rank[b.Kind] }) {
		t.Errorf("%s: blockers are not in the order to act", x.Gate)
	}
	for _, b := range x.Blockers {
		if _, known := rank[b.Kind]; !known {
			t.Errorf("%s: %s is not in BlockerKinds", x.Gate, b.Kind)
		}
		if b.Object == nil || b.Object.Name == "" || b.Detail == "" {
			t.Errorf("%s: blocker %s names no object or has no detail", x.Gate, b.Kind)
		}
		for _, h := range b.HumanSteps {
			if h.Command == "" || h.Why == "" {
				t.Errorf("%s: blocker %s has an empty human step", x.Gate, b.Kind)
			}
		}
		if b.Kind == BlockerUpstream && len(x.RootCauses) == 0 {
			t.Errorf("%s: UpstreamNotCleared without a root cause", x.Gate)
		}
	}
	for i, l := range x.Chain {
		if l.Object.Name == "" || l.Detail == "" {
			t.Errorf("%s: chain[%d] has no object or detail", x.Gate, i)
		}
		if i == 0 && l.Depth != 0 || i > 0 && l.Depth > x.Chain[i-1].Depth+1 {
			t.Errorf("%s: chain[%d] has depth %d", x.Gate, i, l.Depth)
		}
	}
	for _, e := range x.Eligible {
		if e == x.Current {
			t.Errorf("%s: the current Bundle is offered", x.Gate)
		}
	}
}

// scenarios are the states that a real controller wrote; they stand beside the
// project, not in it.
const scenarios = "../../../shared/scenarios"

func TestScenarios(t *testing.T) {
	if _, err := os.Stat(scenarios); err != nil {
		t.Skip("../shared/scenarios is not there: ", err)
	}
	raw, err := os.ReadFile("testdata/scenarios.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]wantState
	if err := yaml.UnmarshalStrict(raw, &want); err != nil {
		t.Fatal(err)
	}
	dirs, err := os.ReadDir(scenarios)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		w, ok := want[d.Name()]
		if !ok {
			t.Errorf("%s: no expectation", d.Name())
			continue
		}
		t.Run(d.Name(), func(t *testing.T) { checkStates(t, fromSnapshot(t, filepath.Join(scenarios, d.Name())), w.Gates) })
	}
}
