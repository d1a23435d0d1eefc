package writes

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides/fidestest"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

// invalidSteps is the condition of a Gate whose steps the controller does not take,
// as of a generation.
func invalidSteps(generation int64) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.GateReasonInvalidSteps,
		Message: "steps[0]: unknown step", ObservedGeneration: generation, LastTransitionTime: metav1.Now()}}
}

// passage opens one as kubectl would, with the label or not.
func (w *world) passage(t testing.TB, gate, bundle string, labelled bool) string {
	t.Helper()
	p := &v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{GenerateName: "kubectl-"}, Spec: v1alpha1.PassageSpec{Gate: gate, Bundle: bundle, Steps: []v1alpha1.Step{{Uses: "http"}}}}
	if labelled {
		p.Labels = map[string]string{v1alpha1.LabelGate: gate}
	}
	w.create(t, p)
	return p.Name
}

// bundleOf makes a Bundle of another name or Beacon.
func (w *world) bundleOf(t testing.TB, name, from string) string {
	t.Helper()
	digest := strings.Repeat("f", 64)
	w.create(t, &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.LabelBeacon: from}},
		Spec: v1alpha1.BundleSpec{Beacon: from, Digest: digest, Artifacts: []v1alpha1.Artifact{{Image: &v1alpha1.ImageArtifact{Repo: "example.com/" + from, Tag: "1", Digest: "sha256:" + digest}}}}})
	return name
}

// TestRefusals asks for what the rules refuse, over MCP: the answer has the rule's
// code, nobody is asked, and nothing is written.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	b := w.bundle(t)
	s := w.serve(t, cluster.Admin)
	s.initialize(t, true)
	s.person(accepts)
	evidence := newEvidence(t, w, b)
	actor := w.serve(t, cluster.Admin, "--actor", "ann@example.com")
	actor.initialize(t, true)
	actor.person(accepts)

	promote := func(gate string) (string, args) { return "promote_bundle", args{"gate": gate} }
	lane := func(t *testing.T, change func(*v1alpha1.GateSpec)) (string, args) { return promote(w.lane(t, change)) }
	for _, tc := range []struct {
		reason ops.RefusalReason
		name   string
		server *server
		call   func(t *testing.T) (tool string, a args)
		object string // kind of what is pointed at
	}{
		{ops.RefusedSuspended, "", s, func(t *testing.T) (string, args) {
			return lane(t, func(g *v1alpha1.GateSpec) { g.Suspend = true })
		}, "Gate"},
		{ops.RefusedInvalidSteps, "", s, func(t *testing.T) (string, args) {
			gate := w.lane(t, nil)
			w.gateStatus(t, gate, func(g *v1alpha1.Gate) { g.Status.Conditions = invalidSteps(g.Generation) })
			return promote(gate)
		}, "Gate"},
		{ops.RefusedNoPassage, "", s, func(t *testing.T) (string, args) {
			return lane(t, func(g *v1alpha1.GateSpec) { g.Passage = nil })
		}, "Gate"},
		{ops.RefusedNameTooLong, "Gate", s, func(t *testing.T) (string, args) {
			g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("g", 64)}}
			var lane v1alpha1.Gate
			w.get(t, &lane, staging)
			g.Spec = lane.Spec
			w.create(t, g)
			return promote(g.Name)
		}, "Gate"},
		{ops.RefusedNameTooLong, "Bundle", s, func(t *testing.T) (string, args) {
			w.bundleOf(t, strings.Repeat("b", 64), "long")
			return lane(t, func(g *v1alpha1.GateSpec) { g.Admits[0].From.Beacon = "long" })
		}, "Bundle"},
		{ops.RefusedNotAdmitted, "", s, func(t *testing.T) (string, args) {
			return "promote_bundle", args{"gate": w.lane(t, nil), "bundle": w.bundleOf(t, "foreign-1", "foreign")}
		}, "Bundle"},
		{ops.RefusedNoBundle, "", s, func(t *testing.T) (string, args) {
			return lane(t, func(g *v1alpha1.GateSpec) { g.Admits[0].From.Beacon = "nothing" })
		}, "Gate"},
		{ops.RefusedCurrent, "", s, func(t *testing.T) (string, args) {
			gate := w.lane(t, nil)
			w.gateStatus(t, gate, func(g *v1alpha1.Gate) {
				g.Status.Current = &v1alpha1.GateEntry{Bundle: b.Name, Digest: b.Spec.Digest, EnteredAt: metav1.Now()}
			})
			return "promote_bundle", args{"gate": gate, "bundle": b.Name}
		}, "Bundle"},
		{ops.RefusedUpstream, "", s, func(t *testing.T) (string, args) {
			return lane(t, func(g *v1alpha1.GateSpec) { g.Admits[0].After = []string{staging} })
		}, ""},
		{ops.RefusedUpstream, "that is not there", s, func(t *testing.T) (string, args) {
			return lane(t, func(g *v1alpha1.GateSpec) { g.Admits[0].After = []string{"nowhere"} })
		}, ""},
		{ops.RefusedNotApproved, "", s, func(t *testing.T) (string, args) { return promote(production) }, ""},
		{ops.RefusedNotApproved, "for another Gate only", s, func(t *testing.T) (string, args) {
			w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) {
				b.Status.ApprovedFor = []v1alpha1.BundleApproval{{Gate: "elsewhere", Actor: "ann", At: metav1.Now()}}
			})
			return promote(production)
		}, ""},
		{ops.RefusedWindow, "", s, func(t *testing.T) (string, args) {
			return lane(t, func(g *v1alpha1.GateSpec) { g.Windows = []v1alpha1.Window{closed} })
		}, "Gate"},
		{ops.RefusedBadWindow, "", s, func(t *testing.T) (string, args) {
			return lane(t, func(g *v1alpha1.GateSpec) {
				g.Windows = []v1alpha1.Window{{Schedule: "61 * * * *", Duration: metav1.Duration{Duration: time.Hour}}}
			})
		}, "Gate"},
		{ops.RefusedCrossing, "", s, func(t *testing.T) (string, args) {
			gate := w.lane(t, nil)
			w.passage(t, gate, b.Name, true)
			return promote(gate)
		}, "Passage"},
		{ops.RefusedCrossing, "without the label", s, func(t *testing.T) (string, args) {
			gate := w.lane(t, nil)
			w.passage(t, gate, b.Name, false)
			return promote(gate)
		}, "Passage"},
		{ops.RefusedDeployer, "", actor, func(t *testing.T) (string, args) {
			return lane(t, func(g *v1alpha1.GateSpec) { evidence.checks(g, "change") })
		}, "Gate"},
		{ops.RefusedDeployer, "whose own sign-off stands", actor, func(t *testing.T) (string, args) {
			evidence.set(t, true, fidestest.Approval{By: "Ann@example.com", Kind: "session", Role: "approver", At: time.Now()})
			return lane(t, func(g *v1alpha1.GateSpec) { evidence.checks(g, "change") })
		}, "Gate"},
		{ops.RefusedFinished, "", s, func(t *testing.T) (string, args) {
			p := w.passage(t, w.lane(t, nil), b.Name, true)
			w.finish(t, p, v1alpha1.PassageSucceeded)
			return "abort_passage", args{"passage": p}
		}, "Passage"},
		{ops.RefusedAborting, "", s, func(t *testing.T) (string, args) {
			var p v1alpha1.Passage
			w.get(t, &p, w.passage(t, w.lane(t, nil), b.Name, true))
			p.Spec.Abort = true
			if err := w.admin.Update(t.Context(), &p); err != nil {
				t.Fatal(err)
			}
			return "abort_passage", args{"passage": p.Name}
		}, "Passage"},
		{ops.RefusedNothingRuns, "", s, func(t *testing.T) (string, args) {
			return "abort_passage", args{"gate": w.lane(t, nil)}
		}, "Gate"},
		{ops.RefusedSuspended, "Beacon", s, func(t *testing.T) (string, args) {
			w.create(t, &v1alpha1.Beacon{ObjectMeta: metav1.ObjectMeta{Name: "asleep"}, Spec: v1alpha1.BeaconSpec{Suspend: true, Watch: []v1alpha1.WatchSource{{Image: &v1alpha1.ImageSource{Repo: "example.com/x"}}}}})
			return "poll_beacon", args{"beacon": "asleep"}
		}, "Beacon"},
	} {
		t.Run(strings.TrimSpace(string(tc.reason)+" "+tc.name), func(t *testing.T) {
			tool, a := tc.call(t)
			asked := len(tc.server.questions())
			w.Requests().Reset()
			got := tc.server.call(t, tool, a)
			w.refused(t, got, tools.Refused, string(tc.reason))
			// In the modern era just so, instead of a question.
			w.refused(t, tc.server.first(t, tool, a), tools.Refused, string(tc.reason))
			if n := len(tc.server.questions()) - asked; n > 0 {
				t.Errorf("a person was asked %d times", n)
			}
			if got.err == nil {
				return
			}
			if tc.object != "" && (got.err.Object == nil || got.err.Object.Kind != tc.object) {
				t.Errorf("object %+v, want a %s", got.err.Object, tc.object)
			}
			if got.err.Message == "" || len(got.err.Refusals) > 0 && string(got.err.Refusals[0].Reason) != got.err.Reason {
				t.Errorf("got %s", got)
			}
		})
	}

	t.Run("all obstacles at once", func(t *testing.T) {
		tool, a := lane(t, func(g *v1alpha1.GateSpec) {
			g.Suspend, g.Windows = true, []v1alpha1.Window{closed}
			g.Admits[0].After, g.Admits[0].RequireApproval = []string{staging}, true
		})
		w.Requests().Reset()
		got := s.call(t, tool, a)
		w.refused(t, got, tools.Refused, "Suspended")
		var reasons []ops.RefusalReason
		for _, r := range got.err.Refusals {
			reasons = append(reasons, r.Reason)
		}
		if want := []ops.RefusalReason{ops.RefusedSuspended, ops.RefusedUpstream, ops.RefusedNotApproved, ops.RefusedWindow}; !slices.Equal(reasons, want) {
			t.Errorf("refusals %v, want %v", reasons, want)
		}
	})

	// What is wrong with the question itself.
	for name, tc := range map[string]struct {
		tool string
		args args
		code tools.Code
	}{
		"no such Bundle":          {"promote_bundle", args{"gate": staging, "bundle": "shop-00000000000"}, tools.NotFound},
		"no such Gate":            {"promote_bundle", args{"gate": "nowhere"}, tools.NotFound},
		"a part of several Gates": {"promote_bundle", args{"gate": "lane"}, tools.Ambiguous},
		"no Gate":                 {"promote_bundle", args{}, tools.InvalidArgument},
		"a wait too long":         {"promote_bundle", args{"gate": staging, "wait": "11m"}, tools.InvalidArgument},
		"no such Passage":         {"abort_passage", args{"passage": "nowhere"}, tools.NotFound},
		"neither":                 {"abort_passage", args{}, tools.InvalidArgument},
		"both":                    {"abort_passage", args{"passage": "x", "gate": staging}, tools.InvalidArgument},
		"no such Beacon":          {"poll_beacon", args{"beacon": "nowhere"}, tools.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			asked := len(s.questions())
			w.Requests().Reset()
			got := s.call(t, tc.tool, tc.args)
			w.refused(t, got, tc.code, "")
			if len(s.questions()) != asked {
				t.Error("a person was asked")
			}
			if tc.args["bundle"] != nil && got.err != nil && len(got.err.Candidates) == 0 {
				t.Errorf("no candidates: %s", got)
			}
		})
	}

	t.Run("another person's sign-off lets the deployer ask", func(t *testing.T) {
		evidence.set(t, true, fidestest.Approval{By: "bob@example.com", Kind: "session", Role: "approver", At: time.Now()})
		tool, a := lane(t, func(g *v1alpha1.GateSpec) { evidence.checks(g, "change") })
		if got := actor.call(t, tool, a); got.err != nil {
			t.Fatal(got)
		}
		p := w.passages(t, a["gate"].(string))
		if len(p) != 1 || p[0].Spec.Actor != "ann@example.com" || p[0].Annotations[ops.AnnotationRequestedBy] != cluster.Admin {
			t.Errorf("Passages %+v", p)
		}
	})

	t.Run("steps that were invalid at an older generation", func(t *testing.T) {
		gate := w.lane(t, nil)
		w.gate(t, gate, func(g *v1alpha1.Gate) { g.Spec.Passage.Steps[0].Uses = "http" })
		w.gateStatus(t, gate, func(g *v1alpha1.Gate) { g.Status.Conditions = invalidSteps(g.Generation - 1) })
		s.question(t, "promote_bundle", args{"gate": gate})
	})
}

// TestActor starts servers with an actor that is no plain e-mail address.
func TestActor(t *testing.T) {
	w := newWorld(t)
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	for _, actor := range []string{"ann", "Ann <ann@example.com>", "mcp:ann", "controller", "ann@example.com, bob@example.com", "ann@example.com\n", " ann@example.com"} {
		out, err := exec.Command(path, "serve", "--allow-writes", "--kubeconfig", w.Kubeconfig(t, cluster.Promoter, w.ns), "--write-log", t.TempDir()+"/log", "--actor", actor).CombinedOutput()
		exit, _ := err.(*exec.ExitError)
		if exit == nil || exit.ExitCode() != 1 || !strings.Contains(string(out), "e-mail") {
			t.Errorf("%q: %v: %s", actor, err, out)
		}
	}
}

// TestWarnings shows each warning of a plan to the person who is asked.
func TestWarnings(t *testing.T) {
	w := newWorld(t)
	old := w.bundle(t)
	time.Sleep(1100 * time.Millisecond) // the order of Bundles has seconds
	b := w.bundle(t)
	s := w.serve(t, cluster.Promoter)
	w.allow(t, cluster.Promoter, secretReader)
	s.initialize(t, true)
	s.person(declines)
	evidence := newEvidence(t, w, b)
	holds := func(name string) func(*v1alpha1.Gate) {
		return func(g *v1alpha1.Gate) {
			idle(g, 0)
			g.Status.Current = &v1alpha1.GateEntry{Bundle: name, EnteredAt: metav1.Now()}
		}
	}
	for _, tc := range []struct {
		kind   ops.WarningKind
		name   string
		bundle string
		spec   func(*v1alpha1.GateSpec)
		state  func(t *testing.T, gate string)
		says   string
	}{
		{ops.WarnRollback, "", old.Name, nil, func(t *testing.T, gate string) { w.gateStatus(t, gate, holds(b.Name)) }, old.Name + " is older than " + b.Name},
		{ops.WarnUndone, "", old.Name, func(g *v1alpha1.GateSpec) { g.Auto = true }, func(t *testing.T, gate string) { w.gateStatus(t, gate, holds(b.Name)) }, b.Name},
		{ops.WarnFailedBefore, "", b.Name, nil, func(t *testing.T, gate string) {
			w.finish(t, w.passage(t, gate, b.Name, true), v1alpha1.PassageFailed)
		}, b.Name + " failed here at"},
		{ops.WarnFailedBefore, "whose Passage is gone", b.Name, nil, func(t *testing.T, gate string) {
			w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) {
				b.Status.Blocked = append(b.Status.Blocked, v1alpha1.BundleMark{Gate: gate, At: metav1.Now(), Reason: "the tests fell over"})
			})
		}, "the tests fell over"},
		{ops.WarnTargetHealth, "", b.Name, nil, func(t *testing.T, gate string) {
			w.gateStatus(t, gate, func(g *v1alpha1.Gate) {
				idle(g, 0)
				g.Status.Health.Status, g.Status.Health.Issues = v1alpha1.HealthDegraded, []string{"Kustomization shop/web is not ready"}
			})
		}, "Kustomization shop/web is not ready"},
		{ops.WarnTargetHealth, "stale", b.Name, func(g *v1alpha1.GateSpec) { g.Watch = []v1alpha1.Check{{Uses: "flux"}} }, func(t *testing.T, gate string) {
			w.gateStatus(t, gate, func(g *v1alpha1.Gate) { idle(g, -time.Hour) })
		}, ""},
		{ops.WarnUpstreamHealth, "", b.Name, func(g *v1alpha1.GateSpec) { g.Admits[0].After = []string{staging} }, func(t *testing.T, _ string) {
			w.gate(t, staging, func(g *v1alpha1.Gate) { g.Spec.Suspend = true })
			w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) {
				b.Status.Cleared = append(b.Status.Cleared, v1alpha1.BundleMark{Gate: staging, At: metav1.Now()})
			})
		}, "suspended"},
		{ops.WarnUpstreamHealth, "failing", b.Name, func(g *v1alpha1.GateSpec) { g.Admits[0].After = []string{production} }, func(t *testing.T, _ string) {
			w.gateStatus(t, production, func(g *v1alpha1.Gate) {
				idle(g, 0)
				g.Status.Conditions[0].Reason, g.Status.Conditions[0].Message = v1alpha1.GateReasonCrossingFailed, "a step fell over"
			})
			w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) {
				b.Status.Cleared = append(b.Status.Cleared, v1alpha1.BundleMark{Gate: production, At: metav1.Now()})
			})
		}, "CrossingFailed"},
		{ops.WarnNotVerified, "", b.Name, func(g *v1alpha1.GateSpec) { g.Verify = []v1alpha1.Check{{Uses: "flagger"}} }, func(t *testing.T, gate string) {
			w.gateStatus(t, gate, holds(old.Name))
		}, old.Name},
		{ops.WarnEvidence, "", b.Name, evidence.on, func(t *testing.T, _ string) { evidence.set(t, false) }, ""},
		{ops.WarnEvidenceAsk, "", b.Name, func(g *v1alpha1.GateSpec) {
			evidence.on(g)
			g.Evidence.ServerURL = "http://127.0.0.1:9"
		}, nil, ""},
		{ops.WarnEvidenceAsk, "may not be asked", b.Name, func(g *v1alpha1.GateSpec) {
			evidence.on(g)
			g.Evidence.CredentialsRef.Name = "not-mine"
		}, nil, ""},
		{ops.WarnNotAsked, "", b.Name, func(g *v1alpha1.GateSpec) { evidence.checks(g, "change") }, nil, "write to the trail"},
		{ops.WarnActor, "", b.Name, func(g *v1alpha1.GateSpec) { evidence.checks(g, "change") }, nil, "plain e-mail"},
	} {
		t.Run(strings.TrimSpace(string(tc.kind)+" "+tc.name), func(t *testing.T) {
			evidence.set(t, true)
			gate := w.lane(t, tc.spec)
			if tc.state != nil {
				tc.state(t, gate)
			}
			before := len(s.questions())
			w.Requests().Reset()
			w.refused(t, s.call(t, "promote_bundle", args{"gate": gate, "bundle": tc.bundle}), declined, "Declined")
			all := s.questions()
			if len(all) != before+1 {
				t.Fatalf("%d questions", len(all)-before)
			}
			var q struct{ Message string }
			if err := json.Unmarshal(all[before], &q); err != nil {
				t.Fatal(err)
			}
			_, line, found := strings.Cut(q.Message, "WARNING "+string(tc.kind)+": ")
			line, _, _ = strings.Cut(line, "\n")
			if !found || !strings.Contains(line, tc.says) || line == "" {
				t.Errorf("the person was shown\n%s", q.Message)
			}
			if strings.Contains(q.Message, evidenceToken) {
				t.Error("the token is in it")
			}
		})
	}
}
