package demo_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// TestStandsStill holds that nothing moves without a write, whatever time
// passes.
func TestStandsStill(t *testing.T) {
	s := open(t, "")
	before, at := get[v1alpha1.Gate](t, s, "payments", "canary"), s.Now()
	s.pass(time.Hour)
	if after := get[v1alpha1.Gate](t, s, "payments", "canary"); !apiequality.Semantic.DeepEqual(before, after) || !s.Now().Equal(at) {
		t.Errorf("after an hour %+v at %v", after, s.Now())
	}
}

// TestEstateIsAtRest holds that the controllers agree with what the estate says
// they wrote: once they run, only times, ages and attempts change.
func TestEstateIsAtRest(t *testing.T) {
	s := open(t, "")
	still := open(t, "")
	poll(t, s, "shop", "storefront", "now")
	s.pass(95 * time.Second)
	var gates, before v1alpha1.GateList
	var bundles, bundlesBefore v1alpha1.BundleList
	var passages, passagesBefore v1alpha1.PassageList
	for list, from := range map[client.ObjectList]*stage{&gates: s, &bundles: s, &passages: s, &before: still, &bundlesBefore: still, &passagesBefore: still} {
		if err := from.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if len(gates.Items) < 6 || len(passages.Items) != len(passagesBefore.Items) || !apiequality.Semantic.DeepEqual(bundles.Items, bundlesBefore.Items) {
		t.Errorf("%d Gates, %d Passages; Bundles changed or not", len(gates.Items), len(passages.Items))
	}
	for i := range gates.Items {
		g, was := &gates.Items[i], &before.Items[i]
		if !g.Status.Health.ObservedAt.After(was.Status.Health.ObservedAt.Time) {
			t.Errorf("Gate %s was not looked at", g.Name)
		}
		for _, x := range []*v1alpha1.Gate{g, was} {
			x.ResourceVersion, x.Status.Health.ObservedAt = "", nil
			for j := range x.Status.Health.Issues {
				x.Status.Health.Issues[j], _, _ = strings.Cut(x.Status.Health.Issues[j], " (not ready for")
			}
			var details any
			if err := json.Unmarshal(x.Status.Health.Details.Raw, &details); err != nil {
				t.Fatal(err)
			}
			x.Status.Health.Details.Raw, _ = json.Marshal(details)
		}
		if !apiequality.Semantic.DeepEqual(g, was) {
			t.Errorf("Gate %s:\n now %+v\n was %+v", g.Name, asJSON(t, g.Status), asJSON(t, was.Status))
		}
	}
	for i := range passages.Items {
		p, was := &passages.Items[i], &passagesBefore.Items[i]
		if p.Active() && p.Status.Steps[p.Status.CurrentStep].Attempts <= was.Status.Steps[p.Status.CurrentStep].Attempts {
			t.Errorf("Passage %s waits and was not looked at", p.Name)
		}
		for _, x := range []*v1alpha1.Passage{p, was} {
			x.ResourceVersion = ""
			for j := range x.Status.Steps {
				st := &x.Status.Steps[j]
				st.Attempts = 0
				if st.Output != nil {
					var v any
					if err := json.Unmarshal(st.Output.Raw, &v); err != nil {
						t.Fatal(err)
					}
					st.Output.Raw, _ = json.Marshal(v)
				}
			}
		}
		if !apiequality.Semantic.DeepEqual(p, was) {
			t.Errorf("Passage %s:\n now %s\n was %s", p.Name, asJSON(t, p.Status), asJSON(t, was.Status))
		}
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func poll(t testing.TB, s *stage, namespace, name, token string) {
	t.Helper()
	b := get[v1alpha1.Beacon](t, s, namespace, name)
	b.Annotations = map[string]string{v1alpha1.AnnotationReconcile: token}
	if err := s.Client.Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// TestCrossing walks one second by second.
func TestCrossing(t *testing.T) {
	s := open(t, "")
	p := promote(t, s, "shop", "staging", "v1.8.0", "mcp:demo")
	if p.Name == "" || !strings.HasPrefix(p.Name, "staging-") || p.UID == "" || p.Generation != 1 || p.ResourceVersion == "" || !p.CreationTimestamp.Time.Equal(s.Now()) {
		t.Errorf("created %+v", p.ObjectMeta)
	}
	var seen []string
	for range 9 {
		now := get[v1alpha1.Passage](t, s, "shop", p.Name)
		seen = append(seen, string(now.Phase())+": "+phases(now))
		if waits := now.Status != nil && now.Active() && now.Status.Message != ""; waits != (len(seen) == 7 || len(seen) == 8) {
			t.Errorf("after %d s the message is %q", len(seen)-1, now.Status.Message)
		}
		s.pass(time.Second)
	}
	want := []string{
		": none",
		"Running: git-clone Running, set-image Pending, git-commit Pending, git-push Pending, flux-wait Pending",
		"Running: git-clone Succeeded, set-image Running, git-commit Pending, git-push Pending, flux-wait Pending",
		"Running: git-clone Succeeded, set-image Succeeded, git-commit Running, git-push Pending, flux-wait Pending",
		"Running: git-clone Succeeded, set-image Succeeded, git-commit Succeeded, git-push Running, flux-wait Pending",
		"Running: git-clone Succeeded, set-image Succeeded, git-commit Succeeded, git-push Succeeded, flux-wait Running",
		"Running: git-clone Succeeded, set-image Succeeded, git-commit Succeeded, git-push Succeeded, flux-wait Running",
		"Running: git-clone Succeeded, set-image Succeeded, git-commit Succeeded, git-push Succeeded, flux-wait Running",
		"Succeeded: git-clone Succeeded, set-image Succeeded, git-commit Succeeded, git-push Succeeded, flux-wait Succeeded",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("seen:\n%s", strings.Join(seen, "\n"))
	}
	p = get[v1alpha1.Passage](t, s, "shop", p.Name)
	if last := p.Status.Steps[4]; p.Status.Message != "crossed staging" || last.Attempts != 2 || p.Status.CurrentStep != 4 || len(p.Status.Watch) != 1 {
		t.Errorf("status %s", asJSON(t, p.Status))
	}
	g, b := get[v1alpha1.Gate](t, s, "shop", "staging"), bundle(t, s, "shop", "v1.8.0")
	if c := g.Status.Current; c.Passage != p.Name || c.Actor != "mcp:demo" || !c.EnteredAt.Equal(p.Status.FinishedAt) || g.Status.History[0] != *c ||
		g.Status.ActivePassage != "" || !slices.Contains(g.Status.Eligible, bundle(t, s, "shop", "v1.8.1").Name) || g.Status.Health.Status != v1alpha1.HealthHealthy {
		t.Errorf("Gate %s", asJSON(t, g.Status))
	}
	if c := b.Status.Cleared; c[len(c)-1].Passage != p.Name || c[len(c)-1].Gate != "staging" {
		t.Errorf("cleared %+v", c)
	}
	// Forward again: what was aborted once is no failure to repeat.
	p = promote(t, s, "shop", "staging", "v1.8.1", "mcp:demo")
	s.pass(time.Minute)
	if p = get[v1alpha1.Passage](t, s, "shop", p.Name); p.Phase() != v1alpha1.PassageSucceeded {
		t.Errorf("forward: %s", asJSON(t, p.Status))
	}
}

func TestHowCrossingsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		now, namespace, gate, bundle, actor string
		edits                               []string
		phase                               v1alpha1.PassagePhase
		steps, message                      string
	}{
		"refused by git-push as before": {
			namespace: "shop", gate: "dev", bundle: "v1.9.0", actor: "mcp:demo", phase: v1alpha1.PassageFailed,
			steps:   "git-clone Succeeded, set-image Succeeded, edit-yaml Failed/KeyNotFound, git-commit Succeeded, git-push Failed/GitRejected, flux-wait Skipped",
			message: "git-push: pushing main to https://git.example.com/shop/deploy.git: remote rejected refs/heads/main: protected branch hook declined",
		},
		"degraded": {
			namespace: "payments", gate: "sandbox", bundle: "4.2.0", actor: "mcp:demo", phase: v1alpha1.PassageFailed,
			steps:   "git-clone Succeeded, set-image Succeeded, git-commit Succeeded, git-push Succeeded, flux-wait Failed/FluxDegraded",
			message: "flux-wait: Kustomization payments/ledger-sandbox is not ready",
		},
		"approved on the trail": {
			now: "2026-12-01T08:00:00Z", namespace: "shop", gate: "production", bundle: "v1.7.2", actor: "release@example.com", phase: v1alpha1.PassageSucceeded,
			steps:   "evidence-gate Succeeded, git-clone Succeeded, set-image Succeeded, git-commit Succeeded, git-push Succeeded, flux-wait Succeeded",
			message: "crossed production",
		},
		"a deployer whom the evidence server does not know": {
			now: "2026-12-01T08:00:00Z", namespace: "shop", gate: "production", bundle: "v1.7.2", actor: "mcp:demo", phase: v1alpha1.PassageFailed,
			steps:   "evidence-gate Failed/EvidenceUnavailable, git-clone Skipped, set-image Skipped, git-commit Skipped, git-push Skipped, flux-wait Skipped",
			message: "evidence-gate: recording the deployer",
		},
		"held": {
			namespace: "shop", gate: "production", bundle: "v1.8.1", actor: "controller", phase: v1alpha1.PassageRunning,
			steps:   "evidence-gate Running, git-clone Pending, set-image Pending, git-commit Pending, git-push Pending, flux-wait Pending",
			message: "change gate is holding (risk 20): awaiting a human approval",
		},
		"held for too long": {
			namespace: "shop", gate: "production", bundle: "v1.8.1", actor: "controller", edits: []string{"holdTimeout: 24h", "holdTimeout: 3s"}, phase: v1alpha1.PassageFailed,
			steps:   "evidence-gate Failed/ChangeHeld, git-clone Skipped, set-image Skipped, git-commit Skipped, git-push Skipped, flux-wait Skipped",
			message: "evidence-gate: the change gate has withheld approval for longer than holdTimeout (3s)",
		},
		"not on any trail": {
			namespace: "shop", gate: "production", bundle: "v1.9.0", actor: "controller", phase: v1alpha1.PassageFailed,
			steps:   "evidence-gate Failed/NoEvidence, git-clone Skipped, set-image Skipped, git-commit Skipped, git-push Skipped, flux-wait Skipped",
			message: "evidence-gate: sha256:725c043df67cf3e0282eeec13a6c538014ee2fbae07d87369bda4b5660e967e8 is on no trail",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, c.now, c.edits...)
			p := promote(t, s, c.namespace, c.gate, c.bundle, c.actor)
			s.pass(20 * time.Second)
			p = get[v1alpha1.Passage](t, s, c.namespace, p.Name)
			if p.Phase() != c.phase || phases(p) != c.steps || !strings.HasPrefix(p.Status.Message, c.message) {
				t.Errorf("%s: %s\n%s", p.Phase(), phases(p), p.Status.Message)
			}
			b := bundle(t, s, c.namespace, c.bundle)
			if c.phase == v1alpha1.PassageFailed && (len(b.Status.Blocked) == 0 || b.Status.Blocked[0].Passage != p.Name || b.Status.Blocked[0].Reason != p.Status.Message) {
				t.Errorf("blocked %+v", b.Status.Blocked)
			}
			g := get[v1alpha1.Gate](t, s, c.namespace, c.gate)
			if held := c.phase == v1alpha1.PassageRunning; held != (g.Status.ActivePassage == p.Name) || held != (g.Status.Evidence != nil && g.Status.Evidence.Verdict == "hold") {
				t.Errorf("Gate %s", asJSON(t, g.Status))
			}
		})
	}
}

func abort(t testing.TB, s *stage, p *v1alpha1.Passage) {
	t.Helper()
	patch := `{"metadata":{"uid":"` + string(p.UID) + `","annotations":{"hecate-mcp.dev/requested-by":"demo"}},"spec":{"abort":true}}`
	if err := s.Client.Patch(t.Context(), p, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		t.Fatal(err)
	}
	if !p.Spec.Abort || p.Generation < 2 || p.Annotations["hecate-mcp.dev/requested-by"] != "demo" {
		t.Errorf("patched %+v", p)
	}
}

func TestAbort(t *testing.T) {
	s := open(t, "")
	abort(t, s, get[v1alpha1.Passage](t, s, "payments", "canary-p5xrl"))
	s.pass(time.Second)
	p := get[v1alpha1.Passage](t, s, "payments", "canary-p5xrl")
	if p.Phase() != v1alpha1.PassageAborted || p.Status.Message != "aborted" || p.Status.Steps[4].Phase != v1alpha1.StepAborted || p.Status.ObservedGeneration != 2 {
		t.Errorf("status %s", asJSON(t, p.Status))
	}
	if b := bundle(t, s, "payments", "4.2.1").Status.Blocked; len(b) != 1 || b[0].Passage != p.Name || b[0].Reason != "aborted" {
		t.Errorf("blocked %+v", b)
	}
	if g := get[v1alpha1.Gate](t, s, "payments", "canary"); g.Status.ActivePassage != "" || g.Status.Conditions[0].Reason != v1alpha1.GateReasonIdle {
		t.Errorf("Gate %s", asJSON(t, g.Status))
	}
}

// TestAutomaticGate aborts what an automatic Gate is held by, and lets the
// Gate before it go on: the automatic one takes up the next Bundle by itself.
func TestAutomaticGate(t *testing.T) {
	s := open(t, "", "suspend: true", "suspend: false")
	abort(t, s, get[v1alpha1.Passage](t, s, "payments", "live-hlfts"))
	s.pass(20 * time.Second)
	if p := get[v1alpha1.Passage](t, s, "payments", "canary-p5xrl"); p.Phase() != v1alpha1.PassageSucceeded {
		t.Fatalf("canary: %s", asJSON(t, p.Status))
	}
	g := get[v1alpha1.Gate](t, s, "payments", "live")
	p := get[v1alpha1.Passage](t, s, "payments", g.Status.ActivePassage)
	if p.Spec.Bundle != bundle(t, s, "payments", "4.2.1").Name || p.Spec.Actor != "controller" || p.Status.Evidence.Verdict != "hold" {
		t.Errorf("live opened %+v", p.Spec)
	}
	// It does not retry what was aborted, and opens no second one.
	s.pass(time.Minute)
	var all v1alpha1.PassageList
	if err := s.Client.List(t.Context(), &all, client.MatchingLabels{v1alpha1.LabelGate: "live"}); err != nil || len(all.Items) != 3 {
		t.Errorf("%d Passages of live, %v", len(all.Items), err)
	}
}

func TestApproveAndPoll(t *testing.T) {
	s := open(t, "")
	b := bundle(t, s, "shop", "v1.8.1")
	b.Status.ApprovedFor = append(b.Status.ApprovedFor, v1alpha1.BundleApproval{Gate: "production", Actor: "approver@example.com", At: b.CreationTimestamp})
	if err := s.Client.Status().Update(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if g := get[v1alpha1.Gate](t, s, "shop", "production"); slices.Contains(g.Status.Eligible, b.Name) {
		t.Error("eligible before the Gate reconciled")
	}
	poll(t, s, "payments", "ledger", "1234")
	s.pass(time.Second)
	if g := get[v1alpha1.Gate](t, s, "shop", "production"); !slices.Contains(g.Status.Eligible, b.Name) || g.Status.Conditions[0].Message != "2 Bundle(s) eligible; crossing must be requested" {
		t.Errorf("Gate %s", asJSON(t, g.Status))
	}
	x := get[v1alpha1.Beacon](t, s, "payments", "ledger")
	if x.Status.LastHandledReconcileAt != "1234" || !x.Status.LastPolled.Time.Equal(s.Now()) || x.Status.LatestBundle == "" {
		t.Errorf("Beacon %s", asJSON(t, x.Status))
	}
	// A long pause is no long answer, and the clock goes on.
	s.pass(240 * time.Hour)
	if x = get[v1alpha1.Beacon](t, s, "payments", "ledger"); s.Now().Sub(x.Status.LastPolled.Time) > 5*time.Minute {
		t.Errorf("polled at %v, now %v", x.Status.LastPolled, s.Now())
	}
}
