package ops

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

// The states under testdata show rules together; here each stands alone.

var clock = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(clock.Add(-d)) }

func meta1(name string, created metav1.Time, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Namespace: "n", Generation: 1, CreationTimestamp: created}
	for i := 0; i+1 < len(labels); i += 2 {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		m.Labels[labels[i]] = labels[i+1]
	}
	return m
}

func testGate(change func(*v1alpha1.Gate)) *v1alpha1.Gate {
	g := &v1alpha1.Gate{ObjectMeta: meta1("dev", ago(time.Hour))}
	g.Spec.Admits = []v1alpha1.Admission{{From: v1alpha1.AdmissionSource{Beacon: "web"}}}
	g.Spec.Passage = &v1alpha1.PassageTemplate{Steps: []v1alpha1.Step{{Uses: "http"}}}
	g.Status.ObservedGeneration = 1
	g.Status.Health = &v1alpha1.Health{Status: v1alpha1.HealthHealthy, ObservedAt: ptr(ago(10 * time.Second))}
	if change != nil {
		change(g)
	}
	return g
}

func testBundle(name string, created time.Duration, status v1alpha1.BundleStatus) v1alpha1.Bundle {
	return v1alpha1.Bundle{ObjectMeta: meta1(name, ago(created)), Spec: v1alpha1.BundleSpec{Beacon: "web"}, Status: status}
}

func testPassage(name, bundle string, created time.Duration, phase v1alpha1.PassagePhase) v1alpha1.Passage {
	p := v1alpha1.Passage{ObjectMeta: meta1(name, ago(created), v1alpha1.LabelGate, "dev"), Spec: v1alpha1.PassageSpec{Gate: "dev", Bundle: bundle, Steps: []v1alpha1.Step{{Uses: "http"}}}}
	if phase != "" {
		p.Status = &v1alpha1.PassageStatus{Phase: phase}
		if phase.Terminal() {
			p.Status.FinishedAt = ptr(ago(created - time.Second))
		}
	}
	return p
}

func testEstate(g *v1alpha1.Gate, bundles []v1alpha1.Bundle, passages ...v1alpha1.Passage) *estate {
	e := newEstate(clock)
	e.addGates([]v1alpha1.Gate{*g})
	e.addBundles(bundles)
	e.addBeacons([]v1alpha1.Beacon{{ObjectMeta: meta1("web", ago(time.Hour))}})
	e.addPassages(passages)
	e.read[key{Namespace: "n", Name: "dev"}] = true
	return e
}

func kindsOf(x *Explanation) []BlockerKind { return answered(x).Kinds }

func TestAbortedIsToldFromTheRecord(t *testing.T) {
	for reason, want := range map[string]BlockerKind{"aborted": BlockerPassageAborted, "aborted by a timeout of the registry": BlockerPassageFail, "http: 500": BlockerPassageFail} {
		b := testBundle("web-2", 10*time.Minute, v1alpha1.BundleStatus{Blocked: []v1alpha1.BundleMark{{Gate: "dev", At: ago(5 * time.Minute), Passage: "dev-gone", Reason: reason}}})
		e := testEstate(testGate(func(g *v1alpha1.Gate) { g.Spec.Auto = true; g.Status.Eligible = []string{"web-2"} }), []v1alpha1.Bundle{b})
		if x := e.explain(&e.gates[0]); x.State != StateFailed || !hasKind(x.Blockers, want) {
			t.Errorf("%q: %s %v", reason, x.State, kindsOf(x))
		}
	}
}

// TestOneBundlesFailure holds that another Bundle's success does not mend the
// failure of the newest one: an automatic Gate still does not retry it.
func TestOneBundlesFailure(t *testing.T) {
	mark := v1alpha1.BundleMark{Gate: "dev", At: ago(20 * time.Minute), Passage: "dev-a", Reason: "http: 500"}
	bundles := []v1alpha1.Bundle{
		testBundle("web-2", 30*time.Minute, v1alpha1.BundleStatus{Blocked: []v1alpha1.BundleMark{mark}}),
		testBundle("web-1", 50*time.Minute, v1alpha1.BundleStatus{Cleared: []v1alpha1.BundleMark{{Gate: "dev", At: ago(10 * time.Minute), Passage: "dev-b"}}}),
	}
	g := testGate(func(g *v1alpha1.Gate) {
		g.Spec.Auto = true
		g.Status.Eligible = []string{"web-2"}
		g.Status.Current = &v1alpha1.GateEntry{Bundle: "web-1", Passage: "dev-b", EnteredAt: ago(10 * time.Minute)}
	})
	e := testEstate(g, bundles, testPassage("dev-a", "web-2", 20*time.Minute+time.Second, v1alpha1.PassageFailed), testPassage("dev-b", "web-1", 10*time.Minute+time.Second, v1alpha1.PassageSucceeded))
	if x := e.explain(&e.gates[0]); x.State != StateFailed || x.Blockers[0].Bundles[0] != "web-2" {
		t.Errorf("%s %v: %s", x.State, kindsOf(x), x.Summary)
	}
}

func TestVerifierWithoutItsKind(t *testing.T) {
	g := testGate(func(g *v1alpha1.Gate) {
		g.Spec.Verify = []v1alpha1.Check{{Uses: verifierFlagger, With: &apiextensionsv1.JSON{Raw: []byte(`{"name":"web"}`)}}}
		g.Status.Current = &v1alpha1.GateEntry{Bundle: "web-1", Passage: "dev-a", EnteredAt: ago(10 * time.Minute)}
	})
	canary := Object{APIVersion: canaryVersion, Kind: "Canary", Namespace: "n", Name: "web"}
	for _, c := range []struct {
		live liveObject
		want BlockerKind
	}{
		{liveObject{code: SourceNotInstalled}, BlockerStalled},
		{liveObject{code: SourceNotFound}, BlockerStalled},
		{liveObject{code: SourceForbidden}, BlockerVerifying},
		{liveObject{found: true, phase: "Progressing"}, BlockerVerifying},
		{liveObject{found: true, phase: "Failed"}, BlockerVerificationFailed},
	} {
		e := testEstate(g, []v1alpha1.Bundle{testBundle("web-1", 30*time.Minute, v1alpha1.BundleStatus{})})
		e.live[canary] = c.live
		if x := e.explain(&e.gates[0]); !hasKind(x.Blockers, c.want) {
			t.Errorf("%+v: %v", c.live, kindsOf(x))
		}
	}
}

func TestPassageThatNobodyPicksUp(t *testing.T) {
	b := []v1alpha1.Bundle{testBundle("web-1", 30*time.Minute, v1alpha1.BundleStatus{})}
	g := testGate(func(g *v1alpha1.Gate) { g.Status.Eligible = []string{"web-1"} })
	for age, stale := range map[time.Duration]bool{time.Minute: false, 2 * time.Minute: false, 2*time.Minute + time.Second: true} {
		e := testEstate(g, b, testPassage("dev-a", "web-1", age, ""))
		x := e.explain(&e.gates[0])
		if hasKind(x.Blockers, BlockerControllerStale) != stale || (len(x.Warnings) > 0) == stale {
			t.Errorf("%s old: %v %v", age, kindsOf(x), x.Warnings)
		}
	}
}

func TestAdoptedWatchIsNamed(t *testing.T) {
	g := testGate(func(g *v1alpha1.Gate) {
		g.Status.Current = &v1alpha1.GateEntry{Bundle: "web-1", Passage: "dev-a", EnteredAt: ago(10 * time.Minute)}
		g.Status.Health.Status = v1alpha1.HealthDegraded
	})
	p := testPassage("dev-a", "web-1", 10*time.Minute, v1alpha1.PassageSucceeded)
	p.Status.Watch = []v1alpha1.Check{{Uses: checkerFlux, With: &apiextensionsv1.JSON{Raw: []byte(`{"resources":[{"kind":"Kustomization","name":"web"}]}`)}}}
	e := testEstate(g, []v1alpha1.Bundle{testBundle("web-1", 30*time.Minute, v1alpha1.BundleStatus{})}, p)
	x := e.explain(&e.gates[0])
	b := first(x.Blockers, BlockerUnhealthy)
	if x.State != StateIdle || len(b.Objects) != 1 || b.Objects[0].Name != "web" || b.Objects[0].Namespace != "n" {
		t.Errorf("%s: %+v", x.State, b.Objects)
	}
}

func TestSinkingStep(t *testing.T) {
	failed := func(message string) v1alpha1.StepStatus {
		return v1alpha1.StepStatus{Uses: "http", Phase: v1alpha1.StepFailed, Message: message}
	}
	ok := v1alpha1.StepStatus{Uses: "http", Phase: v1alpha1.StepSucceeded}
	for name, c := range map[string]struct {
		message   string
		current   int32
		steps     []v1alpha1.StepStatus
		tolerated []int
		want      int
	}{
		"currentStep":                             {"x", 1, []v1alpha1.StepStatus{failed("t"), failed("x")}, []int{0}, 1},
		"the message, when currentStep is off":    {"x", 0, []v1alpha1.StepStatus{ok, failed("x")}, nil, 1},
		"not a tolerated one behind":              {"gone", 5, []v1alpha1.StepStatus{failed("a"), failed("t")}, []int{1}, 0},
		"nothing failed (the Bundle is missing)":  {"Bundle x no longer exists", 0, nil, nil, -1},
		"currentStep without its message":         {"other", 1, []v1alpha1.StepStatus{ok, failed("a")}, nil, 1},
		"the message of a later one wins over it": {"b", 1, []v1alpha1.StepStatus{ok, failed("a"), failed("b")}, []int{1}, 2},
	} {
		p := &v1alpha1.Passage{Status: &v1alpha1.PassageStatus{Phase: v1alpha1.PassageFailed, Message: c.message, CurrentStep: c.current, Steps: c.steps}}
		for range c.steps {
			p.Spec.Steps = append(p.Spec.Steps, v1alpha1.Step{Uses: "http"})
		}
		for _, i := range c.tolerated {
			p.Spec.Steps[i].ContinueOnError = true
		}
		if i, _ := sinkingStep(p); i != c.want {
			t.Errorf("%s: step %d, want %d", name, i, c.want)
		}
	}
}

func TestRiskAtTheLimit(t *testing.T) {
	for risk, over := range map[int32]bool{49: false, 50: false, 51: true} {
		p := testPassage("dev-a", "web-1", time.Minute, v1alpha1.PassageFailed)
		p.Spec.Steps = []v1alpha1.Step{{Uses: stepEvidence, With: &apiextensionsv1.JSON{Raw: []byte(`{"gates":["change"],"maxRisk":50}`)}}}
		p.Status.Evidence = &v1alpha1.EvidenceRef{Risk: &risk}
		holds := failedHolds(&p, 0, &v1alpha1.StepStatus{Uses: stepEvidence, Phase: v1alpha1.StepFailed, Reason: reasonNotCompliant})
		if (len(holds) == 1 && holds[0].Kind == HoldRisk) != over {
			t.Errorf("risk %d of 50: %v", risk, holds)
		}
	}
}

// demo is the embedded estate with its evidence server.
func demo(t *testing.T) *Ops {
	t.Helper()
	src, err := cluster.OpenDemo(examples.Estate(), examples.Fides(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := New(src.Client)
	o.Now = func() metav1.Time { return metav1.NewTime(src.Now()) }
	o.DialFides = func(c fides.Config) (*fides.Client, error) {
		c.HTTPClient = src.HTTPClient
		return fides.New(c)
	}
	return o
}

// TestTrailIsAskedOnce holds that two images on one trail are told the same of
// it, though reading the change gate writes to it.
func TestTrailIsAskedOnce(t *testing.T) {
	for range 5 {
		ev, err := demo(t).Evidence(context.Background(), EvidenceQuery{Namespace: "shop", Bundle: "storefront-de4370fba351", ConsultChangeGate: true})
		if err != nil {
			t.Fatal(err)
		}
		a, b := ev.Artifacts[0], ev.Artifacts[1]
		if a.Trail == "" || a.Trail != b.Trail {
			t.Fatalf("the demo's images are on trails %q and %q", a.Trail, b.Trail)
		}
		x, _ := json.Marshal([]any{a.Verdict, a.Chain, a.Attestations, a.MoreAttestations})
		y, _ := json.Marshal([]any{b.Verdict, b.Chain, b.Attestations, b.MoreAttestations})
		if string(x) != string(y) {
			t.Errorf("one trail, two answers:\n%s\n%s", x, y)
		}
	}
}

// TestHoldIsAsked holds what the list of approvals adds to a recorded hold: a
// service's sign-off does not count, and a server that cannot be asked is a kind
// of hold of its own. The change gate is never asked for it.
func TestHoldIsAsked(t *testing.T) {
	const service, person, none = "7a5c5e3b-d5ed-4de9-80dd-56eabc42c205", "29bff01b-0cb4-461a-85b2-660deda42d8e", "ee2a669d-3fdf-49b0-8821-22754281bc71"
	ctx := context.Background()
	for name, c := range map[string]struct {
		trail  string
		change func(*Ops, *v1alpha1.Gate)
		want   HoldKind
	}{
		"a service signed":     {service, nil, HoldServiceOnly},
		"a person signed":      {person, nil, ""},
		"nobody signed":        {none, nil, ""},
		"no such Secret":       {none, func(_ *Ops, g *v1alpha1.Gate) { g.Spec.Evidence.CredentialsRef.Name = "absent" }, HoldUnavailable},
		"no server is known":   {none, func(_ *Ops, g *v1alpha1.Gate) { g.Spec.Evidence.ServerURL = "" }, HoldUnavailable},
		"the server is away":   {none, func(_ *Ops, g *v1alpha1.Gate) { g.Spec.Evidence.ServerURL = "http://away.demo.invalid" }, HoldUnavailable},
		"a trail that is gone": {"not-a-trail", nil, HoldUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			o := demo(t)
			o.FidesServer = ""
			g, err := o.Gate(ctx, "payments", "live")
			if err != nil {
				t.Fatal(err)
			}
			if c.change != nil {
				c.change(o, g)
			}
			e := newEstate(o.now())
			hold, err := o.askHold(ctx, e, g, &v1alpha1.EvidenceRef{Trail: c.trail, Verdict: verdictHold})
			if err != nil {
				t.Fatal(err)
			}
			got := HoldKind("")
			if hold != nil {
				got = hold.Kind
			}
			if got != c.want {
				t.Errorf("got %q (%+v), want %q", got, hold, c.want)
			}
		})
	}
}

// TestRunningHoldAtTheLimit is TestRiskAtTheLimit for a crossing that waits.
func TestRunningHoldAtTheLimit(t *testing.T) {
	for risk, over := range map[int32]bool{50: false, 51: true} {
		p := testPassage("dev-a", "web-1", time.Minute, v1alpha1.PassageRunning)
		p.Spec.Steps = []v1alpha1.Step{{Uses: stepEvidence, With: &apiextensionsv1.JSON{Raw: []byte(`{"gates":["change"],"maxRisk":50,"holdTimeout":"2h"}`)}}}
		p.Status.Evidence = &v1alpha1.EvidenceRef{Verdict: verdictHold, Risk: &risk, Blockers: []string{"awaiting a human approval"}}
		p.Status.Steps = []v1alpha1.StepStatus{{Uses: stepEvidence, Phase: v1alpha1.StepRunning, StartedAt: ptr(ago(time.Minute))}}
		e := testEstate(testGate(nil), []v1alpha1.Bundle{testBundle("web-1", time.Hour, v1alpha1.BundleStatus{})}, p)
		b := first(e.explain(&e.gates[0]).Blockers, BlockerChangeHeld)
		kinds := map[HoldKind]bool{}
		for _, h := range b.Hold {
			kinds[h.Kind] = true
		}
		if !kinds[HoldHuman] || kinds[HoldRisk] != over || b.Until == nil || !b.Until.Time.Equal(clock.Add(119*time.Minute)) {
			t.Errorf("risk %d of 50: %+v until %v", risk, b.Hold, b.Until)
		}
	}
}

// TestUntimed holds that age concludes nothing where nobody knows when the
// objects were read: what is stale by the clock only lags.
func TestUntimed(t *testing.T) {
	b := []v1alpha1.Bundle{testBundle("web-1", 50*time.Minute, v1alpha1.BundleStatus{})}
	for name, p := range map[string]v1alpha1.Passage{
		"an outcome not recorded": testPassage("dev-a", "web-1", 40*time.Minute, v1alpha1.PassageSucceeded),
		"not picked up":           testPassage("dev-a", "web-1", 40*time.Minute, ""),
	} {
		g := testGate(func(g *v1alpha1.Gate) {
			g.Status.ActivePassage = "dev-a"
			g.Status.Eligible = []string{"web-1"}
			g.Status.Health.ObservedAt = ptr(ago(39 * time.Minute))
		})
		e := testEstate(g, b, p)
		if x := e.explain(&e.gates[0]); !hasKind(x.Blockers, BlockerStalled, BlockerControllerStale) {
			t.Errorf("%s, timed: %v", name, kindsOf(x))
		}
		e.untimed = true
		x := e.explain(&e.gates[0])
		if hasKind(x.Blockers, BlockerStalled, BlockerControllerStale) || len(x.Warnings) == 0 || x.Warnings[0].Kind != WarnStatusLags {
			t.Errorf("%s, untimed: %v %v", name, kindsOf(x), x.Warnings)
		}
	}
}
