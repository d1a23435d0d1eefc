package ops

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/fides/fidestest"
)

// writable gives an Ops over a snapshot a copy of the objects that takes writes.
// What a real API server does with them is test/opswrites' to say.
func writable(t *testing.T, o *Ops) *Ops {
	t.Helper()
	var objects []client.Object
	for _, l := range []client.ObjectList{&v1alpha1.GateList{}, &v1alpha1.BundleList{}, &v1alpha1.BeaconList{}, &v1alpha1.PassageList{}} {
		if err := list(context.Background(), o.Client, l, AllNamespaces, nil); err != nil {
			t.Fatal(err)
		}
		switch l := l.(type) {
		case *v1alpha1.GateList:
			objects = append(objects, pointers[v1alpha1.Gate](l.Items)...)
		case *v1alpha1.BundleList:
			objects = append(objects, pointers[v1alpha1.Bundle](l.Items)...)
		case *v1alpha1.BeaconList:
			objects = append(objects, pointers[v1alpha1.Beacon](l.Items)...)
		case *v1alpha1.PassageList:
			objects = append(objects, pointers[v1alpha1.Passage](l.Items)...)
		}
	}
	c := fake.NewClientBuilder().WithScheme(cluster.Scheme()).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.Gate{}, &v1alpha1.Bundle{}, &v1alpha1.Beacon{}, &v1alpha1.Passage{}).Build()
	o.Client = secretsOf{c, o.Client}
	return o
}

func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	var out []client.Object
	for i := range items {
		out = append(out, P(&items[i]))
	}
	return out
}

// secretsOf reads Secrets from elsewhere.
type secretsOf struct {
	client.Client
	secrets client.Reader
}

func (c secretsOf) Get(ctx context.Context, k client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Secret); ok {
		return c.secrets.Get(ctx, k, obj, opts...)
	}
	return c.Client.Get(ctx, k, obj, opts...)
}

func refusedFor(r *RefusedError) []RefusalReason {
	out := []RefusalReason{}
	if r == nil {
		return out
	}
	for _, x := range r.Refusals {
		out = append(out, x.Reason)
	}
	return out
}

// shown are a plan's lines, which have to be fit for a terminal.
func shown(t *testing.T, p Plan) string {
	t.Helper()
	noLeak(t, p.Lines())
	noLeak(t, p.Title())
	for _, l := range append(p.Lines(), p.Title(), p.Confirm()) {
		if len([]rune(l)) > 700 || strings.ContainsFunc(l, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			t.Errorf("not fit to be shown: %q", l)
		}
	}
	if len(p.Digest()) != 64 || p.Title() == "" || p.Confirm() == "" {
		t.Errorf("%q %q %q", p.Digest(), p.Title(), p.Confirm())
	}
	return strings.Join(p.Lines(), "\n")
}

// TestPlanRefusals plans promotions of the newest Bundle. Every reason that the
// rules have is met, all at once and the first one first, and a refused plan is not
// carried out.
func TestPlanRefusals(t *testing.T) {
	met := map[RefusalReason]bool{}
	for _, c := range []struct {
		state, gate, bundle string
		refused             []RefusalReason
	}{
		{"states/ready", "manual", "", nil},
		{"states/suspended", "manual", "", []RefusalReason{RefusedSuspended}},
		{"states/invalid-steps", "in-flight", "", []RefusalReason{RefusedCrossing, RefusedInvalidSteps}},
		{"states/invalid-steps-stale", "dev", "", nil},
		{"states/no-passage-template", "manual", "", []RefusalReason{RefusedNoPassage}},
		{"states/upstream", "two-and-approval", "", []RefusalReason{RefusedUpstream, RefusedNotApproved}},
		{"states/windows", "upstream", "", []RefusalReason{RefusedUpstream, RefusedNotApproved, RefusedWindow}},
		{"states/windows", "invalid", "", []RefusalReason{RefusedBadWindow}},
		{"states/two-passages", "dev", "", []RefusalReason{RefusedCrossing, RefusedCrossing}},
		{"states/unlabelled", "running", "", []RefusalReason{RefusedCrossing}},
		{"states/no-bundles", "on-failing", "", []RefusalReason{RefusedNoBundle}},
		{"states/resting", "production", "", []RefusalReason{RefusedCurrent}},
		{"states/name-too-long", "", "", []RefusalReason{RefusedNameTooLong}},
		{"evidence/shop", "other", "web-2", []RefusalReason{RefusedNotAdmitted}},
	} {
		t.Run(c.state+"/"+c.gate, func(t *testing.T) {
			o, ns := offline(t, filepath.Join("testdata", c.state))
			name := c.gate
			if name == "" {
				gates, err := o.Gates(t.Context(), ns)
				if err != nil || len(gates) == 0 {
					t.Fatal(err)
				}
				name = gates[0].Name
			}
			p, err := o.PlanPromote(t.Context(), PromoteQuery{PreviewQuery: PreviewQuery{Namespace: ns, Gate: name, Bundle: c.bundle}})
			if err != nil {
				t.Fatal(err)
			}
			said := shown(t, p)
			r := p.Refused()
			if got := refusedFor(r); !slices.Equal(got, append([]RefusalReason{}, c.refused...)) {
				t.Fatalf("refused for %v, want %v", got, c.refused)
			}
			_, err = o.Promote(t.Context(), p, Actor{Name: "mcp:ann"})
			if r == nil {
				if cluster.Classify(err) != cluster.CodeRefused {
					t.Errorf("a snapshot was written to: %v", err)
				}
				return
			}
			for _, reason := range c.refused {
				met[reason] = true
				if !strings.Contains(said, "REFUSED "+string(reason)) {
					t.Errorf("%s is not shown: %s", reason, said)
				}
			}
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Reason != string(c.refused[0]) || refused.Object == nil {
				t.Errorf("carried out: %v", err)
			}
		})
	}
	for _, m := range RefusalReasons {
		if !met[m.Code] {
			t.Errorf("%s was not met", m.Code)
		}
	}
}

// TestPlanWarnings: what a person must see before saying yes (answers 24) is in the
// lines, and a warning stops nothing.
func TestPlanWarnings(t *testing.T) {
	met := map[WarningKind]bool{}
	for _, c := range []struct {
		state, gate, bundle string
		warned              []WarningKind
	}{
		{"states/ready", "manual", "", nil},
		{"evidence/rollback", "manual", "web-1", []WarningKind{WarnRollback}},
		{"evidence/rollback", "dev", "web-1", []WarningKind{WarnUndone, WarnRollback}},
		{"states/failed", "manual", "", []WarningKind{WarnFailedBefore}},
		{"states/aborted", "manual", "", []WarningKind{WarnFailedBefore}},
		{"states/unhealthy", "degraded", "", []WarningKind{WarnTargetHealth}},
		{"states/stale-health", "", "", []WarningKind{WarnTargetHealth}},
		{"states/upstream", "suspended-down", "", []WarningKind{WarnUpstreamHealth}},
		{"states/verifying", "", "", []WarningKind{WarnNotVerified}},
	} {
		t.Run(c.state+"/"+c.gate, func(t *testing.T) {
			o, ns := offline(t, filepath.Join("testdata", c.state))
			var names []string
			if names = []string{c.gate}; c.gate == "" { // any Gate of the state
				gates, err := o.Gates(t.Context(), ns)
				if err != nil {
					t.Fatal(err)
				}
				names, _ = namesOf(gates, nil)
			}
			got := map[WarningKind]bool{}
			for _, name := range names {
				p, err := o.PlanPromote(t.Context(), PromoteQuery{PreviewQuery: PreviewQuery{Namespace: ns, Gate: name, Bundle: c.bundle}})
				if err != nil {
					t.Fatal(err)
				}
				said := shown(t, p)
				for _, w := range p.Warnings {
					got[w.Kind] = true
					if !strings.Contains(said, "WARNING "+string(w.Kind)+": "+clean(w.Detail, 300)) {
						t.Errorf("not shown: %+v", w)
					}
				}
			}
			for _, k := range c.warned {
				met[k] = true
				if !got[k] {
					t.Errorf("no warning %s among %v", k, got)
				}
			}
			if c.warned == nil && len(got) > 0 {
				t.Errorf("warned of %v", got)
			}
		})
	}
	// Those that an evidence server is needed for.
	for what, c := range map[string]struct {
		change  func(*fidestest.State)
		consult bool
		dead    bool
		warned  []WarningKind
	}{
		"compliant, not asked": {warned: []WarningKind{WarnNotAsked, WarnActor}},
		"asked":                {consult: true, warned: []WarningKind{WarnActor, WarnEvidencePart}},
		"not compliant": {change: func(s *fidestest.State) { s.Trails[0].Attestations[2].Compliant = false },
			warned: []WarningKind{WarnEvidence, WarnNotAsked, WarnActor, WarnEvidencePart}},
		"not answerable": {dead: true, warned: []WarningKind{WarnEvidenceAsk, WarnActor}},
	} {
		t.Run(what, func(t *testing.T) {
			s := evidenceState()
			if c.change != nil {
				c.change(&s)
			}
			url := serve(t, fidestest.New(s).Handler())
			if c.dead {
				url = "http://127.0.0.1:1"
			}
			o := online(t, testToken, url, url)
			p, err := o.PlanPromote(t.Context(), PromoteQuery{PreviewQuery: PreviewQuery{Namespace: "shop", Gate: "production", Bundle: "web-2", ConsultChangeGate: c.consult}})
			if err != nil || p.Refused() != nil {
				t.Fatalf("%v %v", err, p.Refused())
			}
			shown(t, p)
			for _, k := range c.warned {
				met[k] = true
				if !slices.Contains(warned(p.Preview), k) {
					t.Errorf("no warning %s among %v", k, warned(p.Preview))
				}
			}
		})
	}
	for _, k := range []WarningKind{WarnRollback, WarnUndone, WarnFailedBefore, WarnTargetHealth, WarnUpstreamHealth, WarnNotVerified,
		WarnEvidence, WarnEvidenceAsk, WarnNotAsked, WarnActor, WarnEvidencePart} {
		if !met[k] {
			t.Errorf("%s was not met", k)
		}
	}
}

// TestDeployerWouldApprove: an e-mail actor is recorded as deployer, whose sign-off
// counts as a person's; without somebody else's it would lift the hold alone.
func TestDeployerWouldApprove(t *testing.T) {
	approvals := func(as ...fidestest.Approval) func(*fidestest.State) {
		return func(s *fidestest.State) { s.Trails[0].Approvals = as }
	}
	for what, c := range map[string]struct {
		change  func(*fidestest.State)
		email   string
		gate    string
		dead    bool
		refused bool
	}{
		"no actor":              {change: approvals()},
		"another person":        {email: "ann@example.com"},
		"nobody":                {change: approvals(), email: "ann@example.com", refused: true},
		"the deployer approved": {email: "Approver@example.com", refused: true},
		"a service approved":    {change: approvals(fidestest.Approval{By: "ci", Kind: "service", Role: "approver"}), email: "ann@example.com", refused: true},
		"a deployer signed":     {change: approvals(fidestest.Approval{By: "bob@example.com", Kind: "session", Role: "deployer"}), email: "ann@example.com", refused: true},
		"not answerable":        {dead: true, email: "ann@example.com", refused: true},
		"no change step":        {gate: "plain", change: approvals(), email: "ann@example.com"},
	} {
		t.Run(what, func(t *testing.T) {
			s := evidenceState()
			if c.change != nil {
				c.change(&s)
			}
			url := serve(t, fidestest.New(s).Handler())
			if c.dead {
				url = "http://127.0.0.1:1"
			}
			o := writable(t, online(t, testToken, url, url))
			if c.gate == "" {
				c.gate = "production"
			}
			q := PromoteQuery{PreviewQuery: PreviewQuery{Namespace: "shop", Gate: c.gate, Bundle: "web-2"}, ActorEmail: c.email}
			p, err := o.PlanPromote(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(refusedFor(p.Refused()), RefusedDeployer); got != c.refused {
				t.Errorf("refused: %v", p.Refused())
			}
			if c.refused && (p.Verdict != PreviewRefused || !strings.Contains(shown(t, p), string(RefusedDeployer))) {
				t.Errorf("%s: %s", p.Verdict, p.Summary)
			}
			// Planned for nobody in particular, then made in the name of an address.
			q.ActorEmail = ""
			if p, err = o.PlanPromote(t.Context(), q); err != nil || p.Refused() != nil {
				t.Fatal(err, p.Refused())
			}
			name := c.email
			if name == "" {
				name = "mcp:ann"
			}
			_, err = o.Promote(t.Context(), p, Actor{Name: name})
			var r *RefusedError
			if errors.As(err, &r) != c.refused || c.refused && r.Reason != string(RefusedDeployer) {
				t.Errorf("acting: %v", err)
			}
		})
	}
	o, _ := offline(t, "testdata/evidence/shop")
	for _, bad := range []string{"ann", "Ann <ann@example.com>", "<ann@example.com>", "ann@example.com, bob@example.com", " ann@example.com", "\"a b\"@example.com", "mcp:ann@", strings.Repeat("a", 200) + "@example.com"} {
		_, err := o.PlanPromote(t.Context(), PromoteQuery{PreviewQuery: PreviewQuery{Namespace: "shop", Gate: "plain"}, ActorEmail: bad})
		var invalid *InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(invalid.Message, "ann@example.com") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestEvidenceDrift: the evidence is part of what a plan rests on.
func TestEvidenceDrift(t *testing.T) {
	for what, c := range map[string]struct {
		change  func(*fidestest.State)
		consult bool
		fields  []string
	}{
		"nothing": {},
		"a scan became bad": {change: func(s *fidestest.State) { s.Trails[0].Attestations[2].Compliant = false },
			fields: []string{"checks"}},
		"the change gate holds": {consult: true, change: func(s *fidestest.State) { s.Trails[0].Attestations[2].Compliant = false },
			fields: []string{"checks", "verdicts"}},
		"the sign-off is gone": {consult: true, change: func(s *fidestest.State) { s.Trails[0].Approvals = nil },
			fields: []string{"checks", "verdicts"}},
		"the chain broke": {change: func(s *fidestest.State) {
			s.Trails[0].Chain = &fides.ChainVerdict{Count: 3, BrokenAt: 1, Reason: "hash mismatch (tampering)"}
		}, fields: []string{"checks", "verdicts"}},
		"a control set changed": {consult: true, change: func(s *fidestest.State) {
			s.Controls = append(s.Controls, fidestest.Control{Key: "CC9", Name: "More", Types: []string{"unit-tests"}})
		}, fields: []string{"verdicts"}},
	} {
		t.Run(what, func(t *testing.T) {
			var now atomic.Pointer[fidestest.Server]
			now.Store(fidestest.New(evidenceState()))
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().Handler().ServeHTTP(w, r) }))
			o := writable(t, online(t, testToken, url, url))
			p, err := o.PlanPromote(t.Context(), PromoteQuery{PreviewQuery: PreviewQuery{Namespace: "shop", Gate: "production", Bundle: "web-2", ConsultChangeGate: c.consult}})
			if err != nil || p.Refused() != nil {
				t.Fatal(err, p.Refused())
			}
			s := evidenceState()
			if c.change != nil {
				c.change(&s)
			}
			now.Store(fidestest.New(s))
			_, err = o.Promote(t.Context(), p, Actor{Name: "mcp:ann", CallID: "call-1"})
			noDrift(t, err, c.fields)
		})
	}
}

// noDrift wants the drift of these fields, none for none.
func noDrift(t *testing.T, err error, fields []string) {
	t.Helper()
	var d *DriftedError
	switch {
	case len(fields) == 0:
		if err != nil {
			t.Error(err)
		}
		return
	case !errors.As(err, &d):
		t.Errorf("got %v, want the drift of %v", err, fields)
		return
	}
	var got []string
	for _, x := range d.Differences {
		got = append(got, x.Field)
	}
	if !slices.Equal(got, fields) {
		t.Errorf("%v drifted, want %v", d.Differences, fields)
	}
	noLeak(t, d.Differences)
	for _, x := range d.Differences {
		if x.Planned == x.Now || strings.ContainsAny(x.Planned+x.Now, "{}[]\"") {
			t.Errorf("not for people: %+v", x)
		}
	}
}

// TestDifferencesAreTold: a person sees what changed, not the whole of both.
func TestDifferencesAreTold(t *testing.T) {
	pin := Pin{GateGeneration: 2000000, Window: "open", Passages: []string{}, Suspended: true,
		Checks: []PinnedCheck{{CheckAssert, "sha256:2", CheckPass}, {CheckPolicy, "sha256:2", CheckPass}}}
	now := pin
	now.GateGeneration, now.Suspended, now.Approval, now.Passages = 2000001, false, "ann", []string{"uid-1"}
	now.Checks = []PinnedCheck{{CheckAssert, "sha256:2", CheckPass}, {CheckPolicy, "sha256:2", CheckFail}}
	want := []Difference{{"approval", "nothing", "ann"},
		{"checks", "check=policy digest=sha256:2 result=Pass", "check=policy digest=sha256:2 result=Fail"},
		{"gateGeneration", "2000000", "2000001"}, {"passages", "nothing", "uid-1"}, {"suspended", "true", "false"}}
	if got := differences(pin, now); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := differences(pin, pin); len(got) > 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

// TestApproveRules: who may not get an approval, and why.
func TestApproveRules(t *testing.T) {
	met := map[RefusalReason]bool{}
	for _, c := range []struct {
		what, gate, bundle string
		change             func(*fidestest.State)
		offline, dead      bool
		refused            []RefusalReason
		detail             string
	}{
		{what: "needs one", gate: "production", bundle: "web-4"},
		{what: "by default the newest", gate: "production"},
		{what: "not admitted", gate: "other", bundle: "web-4", refused: []RefusalReason{RefusedNotAdmitted}},
		{what: "needs none", gate: "plain", bundle: "web-4", refused: []RefusalReason{RefusedNotNeeded}},
		{what: "needs none, and is not admitted", gate: "other", bundle: "web-1", refused: []RefusalReason{RefusedNotAdmitted}},
		{what: "approved", gate: "production", bundle: "web-2", refused: []RefusalReason{RefusedApproved}, detail: "approver@example.com"},
		{what: "no Bundle", gate: "other", refused: []RefusalReason{RefusedNoBundle}},
		{what: "nothing may be asked", gate: "production", bundle: "web-4", offline: true, refused: []RefusalReason{RefusedNoEvidence}},
		{what: "the server is away", gate: "production", bundle: "web-4", dead: true, refused: []RefusalReason{RefusedNoEvidence}, detail: "127.0.0.1:1"},
		{what: "no trail", gate: "production", bundle: "web-4", change: func(s *fidestest.State) { s.Artifacts[2].Trail = "" },
			refused: []RefusalReason{RefusedNoEvidence}, detail: "on no trail"},
		{what: "no digest", gate: "production", bundle: "web-3", refused: []RefusalReason{RefusedNoEvidence}},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := evidenceState()
			if c.change != nil {
				c.change(&s)
			}
			srv := fidestest.New(s)
			url := serve(t, srv.Handler())
			if c.dead {
				url = "http://127.0.0.1:1"
			}
			o := online(t, testToken, url, url)
			if c.offline {
				o.DialFides = nil
			}
			o = writable(t, o)
			p, err := o.PlanApprove(t.Context(), ApproveQuery{Namespace: "shop", Gate: c.gate, Bundle: c.bundle})
			if err != nil {
				t.Fatal(err)
			}
			shown(t, p)
			if got := refusedFor(p.Refused()); !slices.Equal(got, append([]RefusalReason{}, c.refused...)) {
				t.Fatalf("refused for %v (%v), want %v", got, p.Refused(), c.refused)
			}
			if len(c.refused) == 0 {
				if p.pin.Bundle != "web-4" || !strings.Contains(shown(t, p), trail4) {
					t.Errorf("%s:\n%s", p.Title(), shown(t, p))
				}
				return
			}
			met[c.refused[0]] = true
			_, err = o.Approve(t.Context(), p, Actor{Name: "ann@example.com"})
			if !IsRefused(err) || !strings.Contains(err.Error(), c.detail) {
				t.Errorf("approved: %v", err)
			}
			if srv.Writes() != 0 {
				t.Errorf("written to the evidence server: %v", srv.Requests())
			}
		})
	}
	for _, k := range []RefusalReason{RefusedNotAdmitted, RefusedNotNeeded, RefusedApproved, RefusedNoBundle, RefusedNoEvidence} {
		if !met[k] {
			t.Errorf("%s was not met", k)
		}
	}
}

// TestApproveSignsOff: where the Gate has evidence, the approval counts there as
// this person's, or the Bundle stays as it is.
func TestApproveSignsOff(t *testing.T) {
	const key, session = "fides_aaaaaaaaaaaa_0123456789abcdef0123456789abcdef0123456789abcdef", "session-of-somebody"
	for _, c := range []struct {
		what, token, actor string
		change             func(*fidestest.State)
		reason             RefusalReason
		code               fides.Code
		posted, warned     bool
	}{
		{what: "delegated", token: testToken, actor: "ann@example.com", posted: true},
		{what: "the committer herself", token: testToken, actor: "ann@example.com", posted: true, warned: true,
			change: func(s *fidestest.State) { s.Trails[2].Committer = "ann@example.com" }},
		{what: "no delegation", token: testToken, actor: "ann@example.com", posted: true, reason: RefusedNotHuman,
			change: func(s *fidestest.State) { s.Delegation = false }},
		{what: "a key that may not delegate", token: key, actor: "ann@example.com", posted: true, reason: RefusedNotHuman},
		{what: "somebody else's session", token: session, actor: "ann@example.com", posted: true, reason: RefusedNotHuman},
		{what: "no e-mail address", token: testToken, actor: "system:admin", reason: RefusedNotHuman},
		{what: "not known there", token: testToken, actor: "eve@example.com", posted: true, code: fides.InvalidArgument},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := evidenceState()
			s.Delegation, s.Users = true, []string{"ann@example.com"}
			s.Keys = []fidestest.Key{{Token: key}, {Token: session, Person: "bob@example.com"}}
			s.Trails[2].Approvals = nil
			if c.change != nil {
				c.change(&s)
			}
			srv := fidestest.New(s)
			url := serve(t, srv.Handler())
			o := writable(t, online(t, c.token, url, url))
			p, err := o.PlanApprove(t.Context(), ApproveQuery{Namespace: "shop", Gate: "production", Bundle: "web-4"})
			if err != nil || p.Refused() != nil {
				t.Fatal(err, p.Refused())
			}
			done, err := o.Approve(t.Context(), p, Actor{Name: c.actor})
			b, gerr := o.Bundle(t.Context(), "shop", "web-4")
			if gerr != nil {
				t.Fatal(gerr)
			}
			if posted := slices.Contains(srv.Requests(), "POST /api/v1/trails/"+trail4+"/approvals"); posted != c.posted {
				t.Errorf("posted: %v", posted)
			}
			if c.reason == "" && c.code == "" {
				if err != nil || len(b.Status.ApprovedFor) != 1 || b.Status.ApprovedFor[0].Actor != c.actor || (len(done.Warnings) > 0) != c.warned {
					t.Errorf("%v, %+v, %+v", err, done, b.Status.ApprovedFor)
				}
				return
			}
			if len(b.Status.ApprovedFor) != 0 {
				t.Errorf("the Bundle was approved: %+v", b.Status.ApprovedFor)
			}
			var r *RefusedError
			var e *fides.Error
			if c.reason != "" && (!errors.As(err, &r) || r.Reason != string(c.reason)) || c.code != "" && (!errors.As(err, &e) || e.Code != c.code) {
				t.Errorf("%v", err)
			}
			noLeak(t, err.Error())
		})
	}
}

// TestUnreadPlans: what could not be read is not taken for absent.
func TestUnreadPlans(t *testing.T) {
	ctx := t.Context()
	for _, kind := range []string{"Passage", "Bundle"} {
		o, ns := offline(t, "testdata/states/ready")
		whole := o.Client
		o.Client = forbidding{Client: whole, everywhere: kindSet(kind)}
		if _, err := o.PlanPromote(ctx, PromoteQuery{PreviewQuery: PreviewQuery{Namespace: ns, Gate: "manual"}}); cluster.Classify(err) != cluster.CodeForbidden || !strings.Contains(err.Error(), kind) {
			t.Errorf("%s: promote: %v", kind, err)
		}
		if _, err := o.PlanApprove(ctx, ApproveQuery{Namespace: ns, Gate: "manual"}); cluster.Classify(err) != cluster.CodeForbidden {
			t.Errorf("%s: approve: %v", kind, err)
		}
		if kind == "Passage" {
			if _, err := o.PlanAbort(ctx, AbortQuery{Namespace: ns, Gate: "manual"}); cluster.Classify(err) != cluster.CodeForbidden {
				t.Errorf("%s: abort: %v", kind, err)
			}
		}
		// Over all namespaces only: the Gate's own can be read, and is.
		o.Client, o.DefaultNamespace = forbidding{Client: whole, clusterWide: kindSet(kind)}, "elsewhere"
		p, err := o.PlanPromote(ctx, PromoteQuery{PreviewQuery: PreviewQuery{Gate: "manual"}})
		if err != nil || p.Refused() != nil || p.Namespace != ns {
			t.Errorf("%s: over all namespaces: %v", kind, err)
		}
	}
}

// away fails every GET of a Secret as an API server does that goes down.
type away struct {
	client.Client
	times int
}

func (c *away) Get(ctx context.Context, k client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Secret); ok && c.times > 0 {
		c.times--
		return apierrors.NewServiceUnavailable("shutting down")
	}
	return c.Client.Get(ctx, k, obj, opts...)
}

// TestAwayIsNoDrift: that the token could not be read for a moment says nothing of
// the evidence.
func TestAwayIsNoDrift(t *testing.T) {
	url := serve(t, fidestest.New(evidenceState()).Handler())
	o := writable(t, online(t, testToken, url, url))
	q := PromoteQuery{PreviewQuery: PreviewQuery{Namespace: "shop", Gate: "production", Bundle: "web-2"}}
	p, err := o.PlanPromote(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	o.Client = &away{o.Client, 2}
	if _, err := o.PlanPromote(t.Context(), q); cluster.Classify(err) != cluster.CodeUnavailable {
		t.Errorf("planned on nothing: %v", err)
	}
	if _, err := o.Promote(t.Context(), p, Actor{Name: "mcp:ann"}); err != nil {
		t.Error(err)
	}
}

func TestAbortPlans(t *testing.T) {
	ctx := t.Context()
	o, ns := offline(t, "testdata/states/two-passages")
	_, err := o.PlanAbort(ctx, AbortQuery{Namespace: ns, Gate: "dev"})
	var ambiguous *AmbiguousError
	if !errors.As(err, &ambiguous) || ambiguous.Kind != v1alpha1.KindPassage || len(ambiguous.Candidates) != 2 {
		t.Fatalf("two at once: %v", err)
	}
	p, err := o.PlanAbort(ctx, AbortQuery{Namespace: ns, Passage: ambiguous.Candidates[0].Name})
	if err != nil || p.Refused() != nil || p.Object() != ambiguous.Candidates[0] || p.Confirm() != "dev" {
		t.Errorf("by name: %+v, %v", p, err)
	}
	shown(t, p)
	for _, q := range []AbortQuery{{Namespace: ns}, {Namespace: ns, Gate: "dev", Passage: ambiguous.Candidates[0].Name}} {
		var invalid *InvalidError
		if _, err := o.PlanAbort(ctx, q); !errors.As(err, &invalid) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	if _, err := o.PlanAbort(ctx, AbortQuery{Namespace: ns, Passage: "nope"}); !IsNotFound(err) {
		t.Errorf("no such Passage: %v", err)
	}
	if _, err := o.PlanPoll(ctx, PollQuery{Namespace: ns, Beacon: "nope"}); !IsNotFound(err) {
		t.Errorf("no such Beacon: %v", err)
	}
	// A Passage of no Gate, with any text for its name.
	o, ns = offline(t, "testdata/states/two-passages", "gate: dev", `gate: "\e[2Jno\r\nsuch"`)
	if p, err = o.PlanAbort(ctx, AbortQuery{Namespace: ns, Passage: ambiguous.Candidates[0].Name}); err != nil || p.Confirm() != ambiguous.Candidates[0].Name {
		t.Fatalf("of no Gate: %+v, %v", p, err)
	}
	shown(t, p)
	// An unlabelled Passage crosses as well as any.
	o, ns = offline(t, "testdata/states/unlabelled")
	if p, err = o.PlanAbort(ctx, AbortQuery{Namespace: ns, Gate: "running"}); err != nil || p.Refused() != nil {
		t.Errorf("unlabelled: %v", err)
	}
}

// TestHostilePlan: whoever writes a Bundle's or a Gate's text does not write on the
// person's terminal.
func TestHostilePlan(t *testing.T) {
	o, _ := offline(t, "testdata/evidence/shop",
		"registry.example.com/acme/web, tag: 2.0.0", `"registry.example.com/\e[2Jacme\u202e", tag: "x\r\nreplaces: nothing"`,
		"{bundle: web-1, enteredAt", `{bundle: "web-1\r\nREFUSED", enteredAt`,
		"as: evidence", `as: "\e]0;title\a"`,
		"actor: approver@example.com", `actor: "a\e[31m\u2066b https://u:hunter2@example.com/"`)
	p, err := o.PlanPromote(t.Context(), PromoteQuery{PreviewQuery: PreviewQuery{Namespace: "shop", Gate: "production", Bundle: "web-2"}})
	if err != nil {
		t.Fatal(err)
	}
	shown(t, p)
	a, err := o.PlanApprove(t.Context(), ApproveQuery{Namespace: "shop", Gate: "production", Bundle: "web-2"})
	if err != nil {
		t.Fatal(err)
	}
	shown(t, a)
	if r := a.Refused(); r == nil || strings.ContainsAny(r.Error(), "\x1b\u2066") {
		t.Errorf("%q", r)
	}
}

func TestLongPlan(t *testing.T) {
	many := make([]Warning, 100)
	if l := warningLines(many); len(l) != maxLines+1 || !strings.Contains(l[maxLines], "70 more") {
		t.Errorf("%d lines: %s", len(l), l[len(l)-1])
	}
}

func TestCallMarks(t *testing.T) {
	seen := map[string]string{}
	for _, id := range []string{"", "a1b2", "with space", "with  space", strings.Repeat("x", 101), strings.Repeat("x", 102), "token=abc", "token=abd", "\x1b[31mred", "red"} {
		mark := Actor{CallID: id}.callMark()
		if other, ok := seen[mark]; ok {
			t.Errorf("%q and %q are told apart by nothing", id, other)
		}
		seen[mark] = id
		if mark != clean(mark, 200) {
			t.Errorf("%q: not fit for an annotation: %q", id, mark)
		}
	}
	if a := (Actor{}).called(); a.CallID == "" || a.CallID == (Actor{}).called().CallID {
		t.Error("a call without an id gets none of its own")
	}
}

// TestSlot: the next name moves with every Passage, and with nothing else.
func TestSlot(t *testing.T) {
	g := testGate(nil)
	g.UID = "gate-1"
	made := func(name string, created time.Duration) *v1alpha1.Passage {
		p := testPassage(name, "web-1", created, v1alpha1.PassageSucceeded)
		p.UID = types.UID("uid-" + name)
		return &p
	}
	empty := slot(g, nil)
	if !regexp.MustCompile(`^dev-[a-z2-7]{10}$`).MatchString(empty) {
		t.Errorf("%q", empty)
	}
	// Twenty crossings of one second and twenty of the next: no name comes twice, the
	// order of the list says nothing, nor does what was collected of the old ones.
	var all []*v1alpha1.Passage
	seen := map[string]bool{}
	for i := range 40 {
		name := slot(g, all)
		if seen[name] {
			t.Fatalf("%d: %s twice", i, name)
		}
		seen[name] = true
		reversed := slices.Clone(all)
		slices.Reverse(reversed)
		if slot(g, reversed) != name {
			t.Errorf("%d: the order matters", i)
		}
		all = append(all, made(name, time.Hour-time.Duration(i/20)*time.Second))
	}
	if slot(g, all) != slot(g, all[20:]) {
		t.Error("collecting old Passages moves it")
	}
	other := testGate(nil)
	other.UID = "gate-2"
	if slot(other, nil) == empty {
		t.Error("another Gate of that name has the same")
	}
	busy := made("kubectl", 0)
	busy.Status = nil
	if slot(g, append(slices.Clone(all), busy)) == slot(g, all) {
		t.Error("somebody else's Passage does not move it")
	}
}
