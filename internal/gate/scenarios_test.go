package gate

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// scenarios are folders of objects that the upstream controller wrote. They are
// handed out beside the checkout and not part of it.
func scenarios(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("../../../shared/scenarios/*/gates.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) == 0 {
		t.Skip("no folder shared/scenarios beside the checkout")
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	return dirs
}

func read(t *testing.T, dir, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s/%s: %v", dir, name, err)
	}
}

func TestDigestsOfScenarios(t *testing.T) {
	n := 0
	for _, dir := range scenarios(t) {
		var bundles v1alpha1.BundleList
		read(t, dir, "bundles.yaml", &bundles)
		for _, b := range bundles.Items {
			n++
			if got := BundleDigest(b.Spec.Artifacts); got != b.Spec.Digest {
				t.Errorf("%s: %s: BundleDigest = %s, the controller wrote %s", filepath.Base(dir), b.Name, got, b.Spec.Digest)
			}
		}
	}
	t.Logf("%d Bundles", n)
}

// TestEligibilityOfScenarios compares Judge with status.eligible, where the
// controller keeps it up to date.
func TestEligibilityOfScenarios(t *testing.T) {
	// What these show is a status that lags or is frozen; e08 was captured a
	// moment after an approval, which does not wake a Gate.
	stale := map[string]bool{"e08-approve-refusals": true, "s21-verifying": true, "s31-stale-gate-status": true, "s33-controller-down": true}
	n := 0
	for _, dir := range scenarios(t) {
		if stale[filepath.Base(dir)] {
			continue
		}
		var gates v1alpha1.GateList
		var bundles v1alpha1.BundleList
		read(t, dir, "gates.yaml", &gates)
		read(t, dir, "bundles.yaml", &bundles)
		SortNewestFirst(bundles.Items)
		for _, g := range gates.Items {
			if meta.IsStatusConditionFalse(g.Status.Conditions, v1alpha1.ConditionReady) {
				continue // suspended or invalid: eligible is cleared
			}
			var got []string
			for _, b := range bundles.Items {
				if b.Namespace == g.Namespace && Judge(&g, &b).Eligible() {
					got = append(got, b.Name)
				}
			}
			n++
			if d := cmp.Diff(g.Status.Eligible, got); d != "" {
				t.Errorf("%s: %s: eligible (-controller +ours):\n%s", filepath.Base(dir), g.Name, d)
			}
		}
	}
	t.Logf("%d Gates", n)
}

func TestWindowsOfScenario(t *testing.T) {
	scenarios(t)
	var gates v1alpha1.GateList
	read(t, "../../../shared/scenarios/s10-window-closed", "gates.yaml", &gates)
	now := time.Date(2026, 12, 1, 0, 15, 38, 364246000, time.UTC)
	want := map[string]string{
		"auto":   "outside every promotion window",
		"manual": "outside every promotion window",
		"freeze": `blocked by deny window "* * * * *"`,
		"open":   "",
	}
	for _, g := range gates.Items {
		st := CheckWindows(g.Spec.Windows, now)
		reason, ok := want[g.Name]
		if !ok || st.Reason != reason || st.Open != (reason == "") {
			t.Errorf("%s: Open = %t, Reason = %q, want %q", g.Name, st.Open, st.Reason, reason)
		}
	}
	if len(gates.Items) != len(want) {
		t.Errorf("%d Gates, want %d", len(gates.Items), len(want))
	}
}

// TestPassagesOfScenarios compares BuildPassage with the Passages that upstream
// created, where the Gate has not changed since.
func TestPassagesOfScenarios(t *testing.T) {
	n := 0
	for _, dir := range scenarios(t) {
		var gates v1alpha1.GateList
		var passages v1alpha1.PassageList
		read(t, dir, "gates.yaml", &gates)
		read(t, dir, "passages.yaml", &passages)
		for _, p := range passages.Items {
			for _, g := range gates.Items {
				if g.Name != p.Spec.Gate || g.Namespace != p.Namespace || g.Generation != 1 || p.GenerateName == "" || p.Labels[v1alpha1.LabelGate] == "" {
					continue
				}
				got, err := BuildPassage(&g, bundle(p.Spec.Bundle), p.Spec.Actor)
				if err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(dir), p.Name, err)
					continue
				}
				n++
				got.Spec.Abort = p.Spec.Abort
				if d := cmp.Diff(p.Spec, got.Spec); d != "" {
					t.Errorf("%s: %s: spec (-upstream +ours):\n%s", filepath.Base(dir), p.Name, d)
				}
				if DigestSteps(p.Spec.Steps, p.Spec.Vars) != DigestSteps(g.Spec.Passage.Steps, g.Spec.Vars) {
					t.Errorf("%s: %s: the copy's digest differs from the Gate's", filepath.Base(dir), p.Name)
				}
				if got.GenerateName != p.GenerateName || cmp.Diff(got.Labels, p.Labels) != "" || got.Namespace != p.Namespace {
					t.Errorf("%s: %s: metadata %s %v %s, upstream has %s %v %s", filepath.Base(dir), p.Name,
						got.GenerateName, got.Labels, got.Namespace, p.GenerateName, p.Labels, p.Namespace)
				}
			}
		}
	}
	t.Logf("%d Passages", n)
}
