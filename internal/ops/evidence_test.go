package ops

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/fides/fidestest"
)

const (
	testToken  = "fides_0123456789ab_0123456789abcdef0123456789abcdef0123456789abcdef"
	production = "11111111-aaaa-4aaa-8aaa-aaaaaaaaaaaa"
	staging    = "22222222-bbbb-4bbb-8bbb-bbbbbbbbbbbb"
	trail2     = "22222222-0000-4000-8000-000000000000"
	trail3     = "33333333-0000-4000-8000-000000000000"
	trail4     = "44444444-0000-4000-8000-000000000000"
)

func sha(digit string) string { return strings.Repeat(digit, 64) }

func at(clock string) time.Time {
	t, err := time.Parse(time.RFC3339, "2026-11-30T"+clock+"Z")
	if err != nil {
		panic(err)
	}
	return t
}

// satisfied is a trail with everything that the controls need and a person's
// approval.
func satisfied(id string) fidestest.Trail {
	return fidestest.Trail{ID: id, Committer: "committer@example.com",
		Attestations: []fidestest.Attestation{
			{Name: "sbom", Type: "sbom-cyclonedx", Compliant: true, At: at("08:00:00")},
			{Name: "unit-tests", Type: "unit-tests", Compliant: true, At: at("08:00:01")},
			{Name: "trivy", Type: "vuln-scan", Compliant: true, At: at("08:00:02")},
		},
		Approvals: []fidestest.Approval{{By: "approver@example.com", Kind: "session", Role: "approver", At: at("09:00:00")}}}
}

// evidenceState knows the images of testdata/evidence/shop, all of them fine.
func evidenceState() fidestest.State {
	environment := func(id string) fidestest.Environment {
		return fidestest.Environment{ID: id, Policies: []fidestest.Policy{{Name: "baseline", Types: []string{"vuln-scan"}}},
			Allowlist: []fidestest.AllowedImage{{SHA256: sha("2")}, {SHA256: sha("3")}, {SHA256: sha("4")}}}
	}
	return fidestest.State{Token: testToken,
		Controls: []fidestest.Control{{Key: "CC7.2", Name: "Vulnerability scanning", Types: []string{"vuln-scan"}},
			{Key: "CC8.1", Name: "Change evidence", Types: []string{"sbom-cyclonedx", "unit-tests"}}},
		Environments: []fidestest.Environment{environment(production), environment(staging)},
		Trails:       []fidestest.Trail{satisfied(trail2), satisfied(trail3), satisfied(trail4)},
		Artifacts: []fidestest.Artifact{{SHA256: sha("2"), Name: "web", Trail: trail2}, {SHA256: sha("3"), Name: "sidecar", Trail: trail3},
			{SHA256: sha("4"), Name: "web", Trail: trail4}}}
}

// withToken gives Secrets the value that a snapshot never keeps.
type withToken struct {
	client.Client
	token string
}

func (c withToken) Get(ctx context.Context, k client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, k, obj, opts...)
	if s, ok := obj.(*corev1.Secret); ok && err == nil && c.token != "" {
		s.Data = map[string][]byte{"token": []byte(c.token)}
	}
	return err
}

// serve starts a server over HTTP; its URL carries credentials that must not
// come out again.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return strings.Replace(srv.URL, "http://", "http://proxyuser:hunter2@", 1)
}

// online opens testdata/evidence/shop with evidence servers that may be asked.
func online(t *testing.T, token, stagingURL, productionURL string) *Ops {
	t.Helper()
	o, _ := offline(t, "testdata/evidence/shop", "STAGING", stagingURL, "PRODUCTION", productionURL)
	o.Client, o.DialFides = withToken{o.Client, token}, fides.New
	return o
}

func evidence(t *testing.T, o *Ops, q EvidenceQuery) *Evidence {
	t.Helper()
	e, err := o.Evidence(context.Background(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	noLeak(t, e)
	if e.Summary == "" {
		t.Error("no summary")
	}
	return e
}

// noLeak: no secret in an answer, and no null where a list is promised.
func noLeak(t *testing.T, answer any) {
	t.Helper()
	raw, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{testToken, "hunter2", "proxyuser", "<html", ":null"} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("%q in %s", secret, raw)
		}
	}
}

func concernKinds(a ArtifactEvidence) []ConcernKind {
	out := []ConcernKind{}
	for _, c := range a.Concerns {
		out = append(out, c.Kind)
	}
	return out
}

func holdKindsOf(hs []Hold) []HoldKind {
	out := []HoldKind{}
	for _, h := range hs {
		out = append(out, h.Kind)
	}
	return out
}

// TestEvidenceOfOneImage: every state of a trail has an answer of its own.
func TestEvidenceOfOneImage(t *testing.T) {
	anchored := func(count int, matches bool, when string) *fides.ChainVerdict {
		return &fides.ChainVerdict{Valid: true, Count: count, BrokenAt: -1,
			ExternalAnchor: &fides.ExternalAnchor{Anchored: true, HeadMatches: matches, AnchoredAt: at(when)}}
	}
	sod := ConcernSoD // until the crossing no deployer is recorded
	for _, c := range []struct {
		name       string
		change     func(*fidestest.State, *fidestest.Trail)
		skip       bool // do not consult the change gate
		status     ArtifactStatus
		conclusion Conclusion
		chain      HashChainStatus
		holds      []HoldKind
		concerns   []ConcernKind
	}{
		{name: "approve", conclusion: ConcludeApprove, concerns: []ConcernKind{sod}},
		{name: "not asked", skip: true, conclusion: ConcludeNotAsked},
		{name: "awaiting a human", conclusion: ConcludeHold, holds: []HoldKind{HoldHuman}, concerns: []ConcernKind{sod},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Approvals = nil }},
		{name: "service approval only", conclusion: ConcludeHold, holds: []HoldKind{HoldServiceOnly}, concerns: []ConcernKind{sod, ConcernService},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Approvals[0].Kind = "service" }},
		{name: "failing control", conclusion: ConcludeHold, holds: []HoldKind{HoldFailing}, concerns: []ConcernKind{sod, ConcernAttested},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Attestations[2].Compliant = false }},
		{name: "missing evidence", conclusion: ConcludeHold, holds: []HoldKind{HoldMissing}, concerns: []ConcernKind{sod},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Attestations = tr.Attestations[1:] }},
		{name: "failing and missing", conclusion: ConcludeHold, holds: []HoldKind{HoldFailing, HoldMissing}, concerns: []ConcernKind{sod, ConcernAttested},
			change: func(_ *fidestest.State, tr *fidestest.Trail) {
				tr.Attestations = tr.Attestations[1:]
				tr.Attestations[1].Compliant = false
			}},
		{name: "failing and missing in one control", conclusion: ConcludeHold, holds: []HoldKind{HoldFailing, HoldMissing}, concerns: []ConcernKind{sod, ConcernAttested},
			change: func(_ *fidestest.State, tr *fidestest.Trail) {
				tr.Attestations = tr.Attestations[1:]
				tr.Attestations[0].Compliant = false
			}},
		{name: "waived", conclusion: ConcludeApprove, concerns: []ConcernKind{sod, ConcernWaiver, ConcernAttested},
			change: func(s *fidestest.State, tr *fidestest.Trail) {
				tr.Attestations[2].Compliant = false
				s.Waivers = []fidestest.Waiver{{Control: "CC7.2", Reason: "no exploit", ApprovedBy: "auditor@example.com", ExpiresAt: time.Now().Add(time.Hour)}}
			}},
		{name: "the deployer's own sign-off", conclusion: ConcludeApprove, concerns: []ConcernKind{ConcernDeployer, sod},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Approvals[0].Role = "deployer" }},
		{name: "the committer approved", conclusion: ConcludeApprove, concerns: []ConcernKind{sod},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Committer = "approver@example.com" }},
		{name: "empty trail", status: ArtifactTrailEmpty, conclusion: ConcludeHold, chain: HashEmpty, holds: []HoldKind{HoldMissing, HoldMissing}, concerns: []ConcernKind{sod},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Attestations = nil }},
		{name: "broken chain outranks approve", conclusion: ConcludeBrokenChain, chain: HashBroken, concerns: []ConcernKind{sod},
			change: func(_ *fidestest.State, tr *fidestest.Trail) {
				tr.Chain = &fides.ChainVerdict{Valid: false, Count: 3, BrokenAt: 1, Reason: "hash mismatch (tampering)"}
			}},
		{name: "broken chain, change gate not asked", skip: true, conclusion: ConcludeBrokenChain, chain: HashBroken,
			change: func(_ *fidestest.State, tr *fidestest.Trail) {
				tr.Chain = &fides.ChainVerdict{Valid: false, Count: 3, BrokenAt: 1, Reason: "hash mismatch (tampering)"}
			}},
		{name: "anchored", conclusion: ConcludeApprove, chain: HashAnchored, concerns: []ConcernKind{sod},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Chain = anchored(3, true, "08:30:00") }},
		{name: "anchored, then extended", conclusion: ConcludeApprove, chain: HashExtended, concerns: []ConcernKind{sod, ConcernChain},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Chain = anchored(3, false, "08:00:01") }},
		{name: "anchored, then the tail removed", conclusion: ConcludeBrokenChain, chain: HashTruncated, concerns: []ConcernKind{sod},
			change: func(_ *fidestest.State, tr *fidestest.Trail) { tr.Chain = anchored(3, false, "08:30:00") }},
		{name: "unhashed", conclusion: ConcludeApprove, chain: HashEmpty, concerns: []ConcernKind{sod, ConcernChain},
			change: func(_ *fidestest.State, tr *fidestest.Trail) {
				tr.Chain = &fides.ChainVerdict{Valid: true, BrokenAt: -1}
			}},
		{name: "fewer chained than attested", conclusion: ConcludeApprove, chain: HashPartial, concerns: []ConcernKind{sod, ConcernChain},
			change: func(_ *fidestest.State, tr *fidestest.Trail) {
				tr.Chain = &fides.ChainVerdict{Valid: true, Count: 2, BrokenAt: -1}
			}},
		{name: "change record on hold", conclusion: ConcludeApprove, concerns: []ConcernKind{sod, ConcernChange},
			change: func(_ *fidestest.State, tr *fidestest.Trail) {
				tr.Attestations = append(tr.Attestations, fidestest.Attestation{Name: "check", Type: fides.TypeChange, Compliant: true, At: at("08:10:00"),
					Payload: json.RawMessage(`{"found":true,"number":"CHG1","state":"scheduled","approval":"approved","on_hold":true}`)})
			}},
		{name: "change record missing", conclusion: ConcludeApprove, concerns: []ConcernKind{sod, ConcernChange},
			change: func(_ *fidestest.State, tr *fidestest.Trail) {
				tr.Attestations = append(tr.Attestations, fidestest.Attestation{Name: "check", Type: fides.TypeChange, Compliant: true, At: at("08:10:00"), Payload: json.RawMessage(`{"found":false}`)})
			}},
		{name: "on no trail", status: ArtifactNoTrail, conclusion: ConcludeNoEvidence,
			change: func(s *fidestest.State, _ *fidestest.Trail) { s.Artifacts[2].Trail = "" }},
		{name: "not registered", status: ArtifactNotRegistered, conclusion: ConcludeNoEvidence,
			change: func(s *fidestest.State, _ *fidestest.Trail) { s.Artifacts = s.Artifacts[:2] }},
		{name: "an older server that tells no trail", status: ArtifactUnavailable, conclusion: ConcludeUnknown,
			change: func(s *fidestest.State, _ *fidestest.Trail) { s.Older = true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := evidenceState()
			if c.change != nil {
				c.change(&state, &state.Trails[2])
			}
			srv := fidestest.New(state)
			o := online(t, testToken, "http://127.0.0.1:1", serve(t, srv.Handler()))
			e := evidence(t, o, EvidenceQuery{Namespace: "shop", Bundle: "web-4", Gate: "production", ConsultChangeGate: !c.skip})
			if len(e.Artifacts) != 1 || len(e.Views) != 1 || len(e.Views[0].Artifacts) != 0 {
				t.Fatalf("one image, one view: %+v", e)
			}
			a := e.Artifacts[0]
			if c.status == "" {
				c.status = ArtifactOnTrail
			}
			if a.Status != c.status || e.Status != c.status || a.Conclusion != c.conclusion || e.Conclusion != c.conclusion {
				t.Errorf("%s/%s (%s/%s): %s, want %s/%s", a.Status, a.Conclusion, e.Status, e.Conclusion, a.Detail, c.status, c.conclusion)
			}
			if got := holdKindsOf(a.Hold); !slices.Equal(got, slices.Clip(append([]HoldKind{}, c.holds...))) {
				t.Errorf("holds %v, want %v", got, c.holds)
			}
			if got := concernKinds(a); !slices.Equal(got, append([]ConcernKind{}, c.concerns...)) {
				t.Errorf("concerns %+v, want %v", a.Concerns, c.concerns)
			}
			if a.Trail != "" {
				if c.chain == "" {
					c.chain = HashUnanchored
				}
				if a.Chain == nil || a.Chain.Status != c.chain {
					t.Errorf("chain %+v, want %s", a.Chain, c.chain)
				}
			}
			asked := slices.ContainsFunc(srv.Requests(), func(r string) bool { return strings.Contains(r, "change-gate") })
			if asked != (!c.skip && a.Trail != "") || (e.Verdict != nil) != asked {
				t.Errorf("change gate asked: %t, verdict %+v", asked, e.Verdict)
			}
			if c.skip && srv.Writes() != 0 {
				t.Errorf("%d writes without being told", srv.Writes())
			}
		})
	}
}

// TestEvidenceUnavailable: only a well-formed JSON answer is one; nothing else
// says anything about compliance.
func TestEvidenceUnavailable(t *testing.T) {
	page := func(status int, contentType, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			if status == http.StatusFound {
				w.Header().Set("Location", "https://login.example.com/?return=x")
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	wrong := evidenceState()
	wrong.Token = "another"
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, c := range []struct {
		name, url, says string
	}{
		{"login page", serve(t, page(200, "text/html", "<html>sign in</html>")), "200 (text/html)"},
		{"bad gateway", serve(t, page(502, "text/html", "<html>bad gateway</html>")), "502 (text/html)"},
		{"redirect", serve(t, page(302, "text/html", "")), "redirected to https://login.example.com"},
		{"empty", serve(t, page(200, "application/json", "")), "200"},
		{"no content", serve(t, page(204, "application/json", "")), "204"},
		{"truncated", serve(t, page(200, "application/json", `[{"sha256":"44`)), "200"},
		{"refused credentials", serve(t, fidestest.New(wrong).Handler()), "credentials refused, or the server's database is down"},
		{"server without a token", serve(t, fidestest.New(fidestest.State{}).Handler()), "503"},
		{"dead", closed.URL, "no answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := online(t, testToken, "http://127.0.0.1:1", c.url)
			e := evidence(t, o, EvidenceQuery{Namespace: "shop", Bundle: "web-2", Gate: "production", ConsultChangeGate: true})
			if e.Status != ArtifactUnavailable || e.Conclusion != ConcludeUnknown || e.Verdict != nil || len(e.Artifacts) != 2 {
				t.Errorf("%+v", e)
			}
			if !strings.Contains(e.Unavailable, c.says) {
				t.Errorf("says %q, want %q in it", e.Unavailable, c.says)
			}
			p := preview(t, o, PreviewQuery{Namespace: "shop", Gate: "production", Bundle: "web-2", ConsultChangeGate: true})
			noLeak(t, p)
			if p.Verdict != PreviewUnknown || !slices.Contains(warned(p), WarnEvidenceAsk) || slices.Contains(warned(p), WarnEvidence) {
				t.Errorf("unknown is not non-compliant: %s, %+v", p.Verdict, p.Warnings)
			}
		})
	}
}

// TestEvidenceNotConfigured: what is missing is said, each with its code.
func TestEvidenceNotConfigured(t *testing.T) {
	url := serve(t, fidestest.New(evidenceState()).Handler())
	for _, c := range []struct {
		gate, token, bundle, says string
		status                    ArtifactStatus
		secret                    string // Incomplete names it
		preview                   PreviewVerdict
	}{
		{"unconfigured", testToken, "web-4", "no spec.evidence", ArtifactNotConfigured, "", PreviewWouldFail},
		{"anonymous", testToken, "web-4", "names no credentialsRef", ArtifactNotConfigured, "", PreviewWouldFail},
		{"serverless", testToken, "web-4", "names no evidence server", ArtifactNotConfigured, "", PreviewUnknown},
		{"nosecret", testToken, "web-4", "absent", ArtifactNotConfigured, "absent", PreviewWouldFail},
		{"production", "", "web-4", "no token", ArtifactNotConfigured, "fides", PreviewRefused},
		{"production", testToken, "web-3", "pins no digest", ArtifactNoDigest, "", PreviewRefused},
	} {
		t.Run(c.gate+"/"+c.bundle, func(t *testing.T) {
			o := online(t, c.token, url, url)
			e := evidence(t, o, EvidenceQuery{Namespace: "shop", Bundle: c.bundle, Gate: c.gate, ConsultChangeGate: true})
			if e.Status != c.status || !strings.Contains(e.Unavailable, c.says) {
				t.Errorf("%s: %q, want %s: %q", e.Status, e.Unavailable, c.status, c.says)
			}
			named := ""
			for _, i := range e.Incomplete {
				if i.Object.Kind == "Secret" {
					named = i.Object.Name
				}
			}
			if named != c.secret {
				t.Errorf("incomplete %+v, want Secret %q", e.Incomplete, c.secret)
			}
			if p := preview(t, o, PreviewQuery{Namespace: "shop", Gate: c.gate, Bundle: c.bundle}); p.Verdict != c.preview {
				t.Errorf("preview says %s: %s, want %s", p.Verdict, p.Summary, c.preview)
			}
		})
	}
}

// forbidden refuses Secrets, as upstream's viewer role does.
type forbidden struct{ client.Client }

func (c forbidden) Get(ctx context.Context, k client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, ok := obj.(*corev1.Secret); ok {
		return apierrors.NewForbidden(corev1.Resource("secrets"), k.Name, errors.New("no"))
	}
	return c.Client.Get(ctx, k, obj, opts...)
}

// TestEvidenceForbidden: who may not read the Secret knows nothing, which is
// not that nothing is configured.
func TestEvidenceForbidden(t *testing.T) {
	o := online(t, testToken, "http://127.0.0.1:1", "http://127.0.0.1:1")
	o.Client = forbidden{o.Client}
	e := evidence(t, o, EvidenceQuery{Namespace: "shop", Bundle: "web-2", Gate: "production"})
	if e.Status != ArtifactUnavailable || e.Conclusion != ConcludeUnknown || len(e.Incomplete) != 1 || e.Incomplete[0].Code != SourceForbidden || e.Incomplete[0].Object.Name != "fides" {
		t.Errorf("%+v", e)
	}
	if p := preview(t, o, PreviewQuery{Namespace: "shop", Gate: "production", Bundle: "web-2"}); p.Verdict != PreviewUnknown || len(p.Incomplete) != 1 {
		t.Errorf("%+v", p)
	}
}

// TestEvidenceTextIsHarmless: what others wrote is shown without what could
// move a terminal or hide text, and bounded.
func TestEvidenceTextIsHarmless(t *testing.T) {
	state := evidenceState()
	state.Controls[0].Name = "evil\x1b[2J\u202e" + strings.Repeat("x", 5000)
	state.Trails[2].Attestations[2].Compliant = false
	state.Trails[2].Committer = "who\u202e\x07@example.com"
	o := online(t, testToken, "http://127.0.0.1:1", serve(t, fidestest.New(state).Handler()))
	raw, err := json.Marshal(evidence(t, o, EvidenceQuery{Namespace: "shop", Bundle: "web-4", Gate: "production", ConsultChangeGate: true}))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"\\u001b", "\u202e", "\\u202e", "\\u0007", strings.Repeat("x", 300)} {
		if strings.Contains(string(raw), bad) {
			t.Errorf("%q in the answer", bad)
		}
	}
}

// TestEvidenceOfEveryImage: each image has its own trail and verdict, though
// the Gate looks at the first one only.
func TestEvidenceOfEveryImage(t *testing.T) {
	state := evidenceState()
	state.Trails[1].Attestations[2].Compliant = false
	o := online(t, testToken, "http://127.0.0.1:1", serve(t, fidestest.New(state).Handler()))
	e := evidence(t, o, EvidenceQuery{Namespace: "shop", Bundle: "web-2", Gate: "production", ConsultChangeGate: true})
	if len(e.Artifacts) != 2 || e.Artifacts[0].Trail != trail2 || e.Artifacts[1].Trail != trail3 || e.Trail != trail2 || e.Digest != "sha256:"+sha("2") {
		t.Fatalf("%+v", e.Artifacts)
	}
	if e.Artifacts[0].Conclusion != ConcludeApprove || e.Artifacts[1].Conclusion != ConcludeHold || e.Conclusion != ConcludeHold {
		t.Errorf("%s, %s, %s", e.Artifacts[0].Conclusion, e.Artifacts[1].Conclusion, e.Conclusion)
	}
	if e.Verdict == nil || e.Verdict.Recommendation != "approve" {
		t.Errorf("the seed's verdict is the first image's: %+v", e.Verdict)
	}
	if !slices.Contains(concernKinds(e.Artifacts[1]), ConcernNotJudged) {
		t.Errorf("nothing points at the second image: %+v", e.Artifacts[1].Concerns)
	}
	if e.Packet == nil || !slices.ContainsFunc(e.Packet.Missing, func(s string) bool { return strings.Contains(s, "sidecar: failing control CC7.2") }) {
		t.Errorf("packet %+v", e.Packet)
	}
	p := preview(t, o, PreviewQuery{Namespace: "shop", Gate: "production", Bundle: "web-2", ConsultChangeGate: true})
	if p.Verdict != PreviewWouldFail { // assert looks at every image
		t.Errorf("%s: %s", p.Verdict, p.Summary)
	}
	if !slices.ContainsFunc(p.Warnings, func(w Warning) bool { return w.Kind == WarnEvidencePart && strings.Contains(w.Detail, "sidecar") }) {
		t.Errorf("nothing points at the second image: %+v", p.Warnings)
	}
}

// TestEvidenceOfEveryView: one dead server does not hide another's answer.
func TestEvidenceOfEveryView(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	o := online(t, testToken, closed.URL, serve(t, fidestest.New(evidenceState()).Handler()))
	e := evidence(t, o, EvidenceQuery{Namespace: "shop", Bundle: "web-2", ConsultChangeGate: true})
	if len(e.Views) != 3 {
		t.Fatalf("production's, staging's and the one without a server: %+v", e.Views)
	}
	if v := e.Views[0]; v.Environment != production || !slices.Equal(v.Gates, []string{"anonymous", "nosecret", "production"}) || v.Conclusion != ConcludeApprove {
		t.Errorf("the one that answers comes first: %+v", v)
	}
	for _, v := range e.Views[1:] {
		if v.Conclusion != ConcludeUnknown || len(v.Artifacts) != 2 {
			t.Errorf("%+v", v)
		}
	}
	if e.Conclusion != ConcludeApprove || e.Unavailable != "" || len(e.ApprovedIn) != 1 {
		t.Errorf("%+v", e)
	}
}

// TestPreviewEvidence runs what production's step would run.
func TestPreviewEvidence(t *testing.T) {
	row := func(check CheckName, result CheckResult) string { return string(check) + " " + string(result) }
	rows := func(p *Preview) []string {
		var out []string
		for _, c := range p.Evidence {
			out = append(out, row(c.Check, c.Result))
		}
		return out
	}
	pass := []string{row(CheckAssert, CheckPass), row(CheckAssert, CheckPass), row(CheckAllowlist, CheckPass), row(CheckAllowlist, CheckPass), row(CheckPolicy, CheckPass)}
	for _, c := range []struct {
		name    string
		change  func(*fidestest.State)
		skip    bool
		rows    []string
		verdict PreviewVerdict
		warned  []WarningKind
		acts    []Role
	}{
		{name: "all passes", rows: append(slices.Clone(pass), row(CheckChange, CheckPass), row(CheckMaxRisk, CheckPass)), verdict: PreviewCrosses,
			warned: []WarningKind{WarnActor, WarnEvidencePart}, acts: []Role{RolePromoter}},
		{name: "change gate not asked", skip: true, rows: append(slices.Clone(pass), row(CheckChange, CheckNotAsked), row(CheckMaxRisk, CheckNotAsked)), verdict: PreviewUnknown,
			warned: []WarningKind{WarnNotAsked, WarnActor}, acts: []Role{RolePromoter}},
		{name: "awaiting a human", change: func(s *fidestest.State) { s.Trails[0].Approvals = nil },
			rows: append(slices.Clone(pass), row(CheckChange, CheckHold), row(CheckMaxRisk, CheckPass)), verdict: PreviewWouldHold,
			warned: []WarningKind{WarnEvidence, WarnActor, WarnEvidencePart}, acts: []Role{RoleApprover, RolePromoter}},
		{name: "over the risk limit", change: func(s *fidestest.State) {
			s.Trails[0].Attestations = s.Trails[0].Attestations[2:]
			s.Trails[0].Approvals = nil
		},
			rows: append(slices.Clone(pass), row(CheckChange, CheckHold), row(CheckMaxRisk, CheckFail)), verdict: PreviewWouldFail,
			warned: []WarningKind{WarnEvidence, WarnActor, WarnEvidencePart}, acts: []Role{RoleEvidence, RoleEvidence, RolePromoter}},
		{name: "not on the allowlist", change: func(s *fidestest.State) { s.Environments[0].Allowlist = s.Environments[0].Allowlist[:1] },
			rows:    []string{row(CheckAssert, CheckPass), row(CheckAssert, CheckPass), row(CheckAllowlist, CheckPass), row(CheckAllowlist, CheckFail), row(CheckPolicy, CheckPass), row(CheckChange, CheckPass), row(CheckMaxRisk, CheckPass)},
			verdict: PreviewWouldFail, warned: []WarningKind{WarnEvidence, WarnActor, WarnEvidencePart}, acts: []Role{RoleEvidence, RolePromoter}},
		{name: "broken chain", change: func(s *fidestest.State) {
			s.Trails[0].Chain = &fides.ChainVerdict{Valid: false, Count: 3, BrokenAt: 0, Reason: "(tampering)"}
		},
			rows:    []string{row(CheckAssert, CheckUnknown), row(CheckAssert, CheckPass), row(CheckAllowlist, CheckPass), row(CheckAllowlist, CheckPass), row(CheckPolicy, CheckUnknown), row(CheckChange, CheckUnknown), row(CheckMaxRisk, CheckUnknown)},
			verdict: PreviewUnknown, warned: []WarningKind{WarnEvidenceAsk, WarnActor, WarnEvidencePart}, acts: []Role{RoleEvidence, RolePromoter}},
		{name: "not registered", change: func(s *fidestest.State) { s.Artifacts = s.Artifacts[1:] },
			rows:    []string{row(CheckAssert, CheckFail), row(CheckAssert, CheckPass), row(CheckAllowlist, CheckPass), row(CheckAllowlist, CheckPass), row(CheckPolicy, CheckFail), row(CheckChange, CheckFail), row(CheckMaxRisk, CheckFail)},
			verdict: PreviewWouldFail, warned: []WarningKind{WarnEvidence, WarnActor, WarnEvidencePart}},
		{name: "an environment that the server does not know", change: func(s *fidestest.State) { s.Environments = s.Environments[1:] },
			rows:    []string{row(CheckAssert, CheckPass), row(CheckAssert, CheckPass), row(CheckAllowlist, CheckUnknown), row(CheckAllowlist, CheckUnknown), row(CheckPolicy, CheckUnknown), row(CheckChange, CheckPass), row(CheckMaxRisk, CheckPass)},
			verdict: PreviewUnknown, warned: []WarningKind{WarnEvidenceAsk, WarnActor, WarnEvidencePart}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := evidenceState()
			if c.change != nil {
				c.change(&state)
			}
			srv := fidestest.New(state)
			o := online(t, testToken, "http://127.0.0.1:1", serve(t, srv.Handler()))
			p := preview(t, o, PreviewQuery{Namespace: "shop", Gate: "production", Bundle: "web-2", ConsultChangeGate: !c.skip})
			noLeak(t, p)
			if got := rows(p); !slices.Equal(got, c.rows) {
				t.Errorf("checks\n%v, want\n%v", got, c.rows)
			}
			if p.Verdict != c.verdict {
				t.Errorf("%s: %s, want %s", p.Verdict, p.Summary, c.verdict)
			}
			if got := warned(p); !slices.Equal(got, c.warned) {
				t.Errorf("warned of %v, want %v", got, c.warned)
			}
			if c.acts != nil && !slices.Equal(acts(p), c.acts) {
				t.Errorf("who must act %+v, want %v", p.WhoMustAct, c.acts)
			}
			if c.skip && srv.Writes() != 0 {
				t.Errorf("%d writes", srv.Writes())
			}
		})
	}
}

func TestPacket(t *testing.T) {
	state := evidenceState()
	state.Trails[2].Approvals = []fidestest.Approval{{By: "deployer@example.com", Kind: "session", Role: "deployer", At: at("09:00:00")}}
	o := online(t, testToken, "http://127.0.0.1:1", serve(t, fidestest.New(state).Handler()))
	p := evidence(t, o, EvidenceQuery{Namespace: "shop", Bundle: "web-4", Gate: "production", ConsultChangeGate: true}).Packet
	if p == nil || p.Gate != "production" || p.Bundle != "web-4" || !p.Required || p.ApprovedBy != "" || !p.CommitterKnown {
		t.Fatalf("%+v", p)
	}
	if want := []Exclusion{{"committer@example.com", ExcludedCommitter}, {"deployer@example.com", ExcludedDeployer}}; !slices.Equal(p.NotBy, want) {
		t.Errorf("not by %v, want %v", p.NotBy, want)
	}
	if want := []string{"sbom-cyclonedx", "unit-tests", "vuln-scan"}; !slices.Equal(p.Attested, want) {
		t.Errorf("attested %v, want %v", p.Attested, want)
	}
	if want := []string{"registry.example.com/acme/web:4.0.0@sha256:" + sha("4")}; !slices.Equal(p.Artifacts, want) {
		t.Errorf("artifacts %v, want %v", p.Artifacts, want)
	}
	if len(p.HumanSteps) != 1 || p.HumanSteps[0].Command != "hecate-mcp approve web-4 --gate production --namespace shop" {
		t.Errorf("%+v", p.HumanSteps)
	}
	// Approved already: nothing to run, and it says whose approval stands.
	p = evidence(t, o, EvidenceQuery{Namespace: "shop", Bundle: "web-2", Gate: "production"}).Packet
	if p.Required || p.ApprovedBy != "approver@example.com" || len(p.HumanSteps) != 0 || p.CommitterKnown {
		t.Errorf("%+v", p)
	}
}
