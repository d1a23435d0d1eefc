package fidestest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

const (
	satisfied   = "00000000-0000-4000-8000-0000000000a1"
	failing     = "00000000-0000-4000-8000-0000000000a2"
	empty       = "00000000-0000-4000-8000-0000000000a3"
	unknown     = "11111111-1111-4111-8111-111111111111"
	environment = "c2a4b7d0-1111-4222-8333-944455566677"
	webSHA      = "aa00000000000000000000000000000000000000000000000000000000000001"
	workerSHA   = "aa00000000000000000000000000000000000000000000000000000000000002"
	looseSHA    = "bb00000000000000000000000000000000000000000000000000000000000003"
)

func loadState(t *testing.T) State {
	t.Helper()
	data, err := os.ReadFile("testdata/state.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func as(t *testing.T, s *Server, token string) *fides.Client {
	t.Helper()
	c, err := fides.New(fides.Config{BaseURL: "http://fides.demo.invalid", Token: token, HTTPClient: s.HTTPClient()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t *testing.T, change func(*State)) (*Server, *fides.Client) {
	t.Helper()
	state := loadState(t)
	if change != nil {
		change(&state)
	}
	s := New(state)
	clock := time.Date(2026, 5, 2, 0, 0, 0, 0, time.UTC)
	s.Now = func() time.Time { clock = clock.Add(time.Second); return clock }
	return s, as(t, s, "demo-token")
}

func TestVerdicts(t *testing.T) {
	waive := func(until string) func(*State) {
		return func(s *State) {
			at, err := time.Parse(time.RFC3339, until)
			if err != nil {
				t.Fatal(err)
			}
			s.Waivers = []Waiver{{Control: "CC7.2", Reason: "later", ApprovedBy: "ann@example.com", ExpiresAt: at}}
		}
	}
	signed := func(kind, role string) func(*State) {
		return func(s *State) { s.Trails[0].Approvals = []Approval{{By: "ann@example.com", Kind: kind, Role: role}} }
	}
	for _, c := range []struct {
		name, trail    string
		change         func(*State)
		recommendation string
		risk           int
		level          string
		holds          []fides.HoldKind
		concern        fides.ConcernKind
	}{
		{"nobody signed", satisfied, nil, "hold", 20, "medium", []fides.HoldKind{fides.AwaitingHuman}, ""},
		{"a person", satisfied, signed("session", "approver"), "approve", 0, "low", nil, ""},
		{"a service", satisfied, signed("service", "approver"), "hold", 20, "medium", []fides.HoldKind{fides.ServiceApprovalOnly}, ""},
		{"the deployer", satisfied, signed("session", "deployer"), "approve", 0, "low", nil, fides.DeployerSignOffOnly},
		{"two failing", failing, nil, "hold", 90, "high", []fides.HoldKind{fides.FailingControls}, ""},
		{"one of them waived", failing, waive("2026-06-01T00:00:00Z"), "hold", 65, "high", []fides.HoldKind{fides.FailingControls}, fides.Waived},
		{"waiver expired", failing, waive("2026-05-01T00:00:00Z"), "hold", 90, "high", []fides.HoldKind{fides.FailingControls}, ""},
		{"no evidence", empty, nil, "hold", 50, "high", []fides.HoldKind{fides.MissingEvidence}, ""},
		{"no controls", empty, func(s *State) { s.Controls = nil }, "hold", 20, "medium", []fides.HoldKind{fides.AwaitingHuman}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, client := start(t, c.change)
			v, err := client.ChangeGate(t.Context(), c.trail)
			if err != nil {
				t.Fatal(err)
			}
			var holds []fides.HoldKind
			for _, h := range v.Holds() {
				holds = append(holds, h.Kind)
			}
			if v.Recommendation != c.recommendation || v.RiskScore != c.risk || v.RiskLevel != c.level || !slices.Equal(holds, c.holds) {
				t.Errorf("got %s, risk %d %s, %v; want %s, %d %s, %v", v.Recommendation, v.RiskScore, v.RiskLevel, holds, c.recommendation, c.risk, c.level, c.holds)
			}
			found := c.concern == ""
			for _, concern := range v.Concerns() {
				found = found || concern.Kind == c.concern
			}
			if !found {
				t.Errorf("concerns %v lack %s", v.Concerns(), c.concern)
			}
		})
	}
}

// TestChangeGateWrites: the first read appends a finding that only the second
// answer counts, and a third read appends nothing more.
func TestChangeGateWrites(t *testing.T) {
	s, client := start(t, func(s *State) {
		s.Trails[0].Approvals = []Approval{{By: "ann@example.com", Kind: "session", Role: "approver"}, {By: "dan@example.com", Kind: "session", Role: "deployer"}}
	})
	for i, total := range []int{3, 4, 4} {
		v, err := client.ChangeGate(t.Context(), satisfied)
		if err != nil {
			t.Fatal(err)
		}
		if v.Attestations.Total != total || s.Writes() != 1 {
			t.Errorf("read %d: total %d and %d writes, want %d and 1", i+1, v.Attestations.Total, s.Writes(), total)
		}
	}
	hits, err := client.SearchAttestations(t.Context(), fides.AttestationFilter{Trail: satisfied, Type: fides.TypeSoD})
	if err != nil || len(hits) != 1 || !hits[0].IsCompliant {
		t.Errorf("got %v, %v", hits, err)
	}
	if _, err := client.ChangeGate(t.Context(), failing); err != nil || s.Writes() != 1 {
		t.Errorf("a trail without sign-offs: %v, %d writes", err, s.Writes())
	}
	if got := s.Requests(); len(got) != 5 || got[0] != "GET /api/v1/trails/"+satisfied+"/change-gate" {
		t.Errorf("got requests %v", got)
	}
}

func TestArtifactByDigest(t *testing.T) {
	older := func(s *State) { s.Older, s.ListsArtifacts = true, true }
	olderRLS := func(s *State) { s.Older = true }
	for _, c := range []struct {
		name, digest string
		change       func(*State)
		want         fides.ArtifactFinding
		code         fides.Code
	}{
		{"on a trail", webSHA, nil, fides.ArtifactFinding{State: fides.OnTrail, SHA256: webSHA, Name: "registry.example.com/shop/web", TrailID: satisfied}, ""},
		{"prefix and upper case", "sha256:" + strings.ToUpper(webSHA), nil, fides.ArtifactFinding{State: fides.OnTrail, SHA256: webSHA, Name: "registry.example.com/shop/web", TrailID: satisfied}, ""},
		{"on none", looseSHA, nil, fides.ArtifactFinding{State: fides.NoTrail, SHA256: looseSHA, Name: "registry.example.com/shop/loose"}, ""},
		{"unknown", strings.Repeat("f", 64), nil, fides.ArtifactFinding{State: fides.NotRegistered, SHA256: strings.Repeat("f", 64)}, ""},
		{"older server", webSHA, older, fides.ArtifactFinding{State: fides.OnTrail, SHA256: webSHA, Name: "registry.example.com/shop/web", TrailID: satisfied}, ""},
		{"older server, on none", looseSHA, older, fides.ArtifactFinding{State: fides.NoTrail, SHA256: looseSHA, Name: "registry.example.com/shop/loose"}, ""},
		{"older server that cannot list", webSHA, olderRLS, fides.ArtifactFinding{State: fides.TrailUnknown, SHA256: webSHA, Name: "registry.example.com/shop/web"}, fides.ServerError},
		{"a part of a digest", "aa00", nil, fides.ArtifactFinding{}, fides.InvalidArgument},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, client := start(t, c.change)
			got, err := client.ArtifactByDigest(t.Context(), c.digest)
			if got != c.want || fides.CodeOf(err) != c.code {
				t.Errorf("got %+v, %v; want %+v, %q", got, err, c.want, c.code)
			}
		})
	}
}

func TestSearchIsAPrefixMatch(t *testing.T) {
	_, client := start(t, nil)
	for filter, want := range map[fides.ArtifactFilter]int{
		{}:                        3,
		{SHA: "aa"}:               2,
		{SHA: "AA"}:               0,
		{SHA: "sha256:" + webSHA}: 0,
		{Name: "work"}:            1,
		{Commit: "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"}: 1,
	} {
		got, err := client.SearchArtifacts(t.Context(), filter)
		if err != nil || len(got) != want {
			t.Errorf("%+v: got %d, %v; want %d", filter, len(got), err, want)
		}
	}
	got, err := client.SearchArtifacts(t.Context(), fides.ArtifactFilter{})
	if err != nil || got[0].SHA256 != looseSHA || got[0].TrailID != nil || !got[0].TrailReported {
		t.Errorf("got %+v, %v; want the newest first, told to be on no trail", got, err)
	}
}

// TestErrors asks what the real server refuses (fides-facts.md).
func TestErrors(t *testing.T) {
	s, client := start(t, nil)
	ctx := t.Context()
	change := func(token string) error { _, err := as(t, s, token).ChangeGate(ctx, satisfied); return err }
	_, trail := client.VerifyChain(ctx, unknown)
	_, badTrail := client.VerifyChain(ctx, "nope")
	_, env := client.Allowlist(ctx, unknown)
	_, badEnv := client.Allowlist(ctx, "production")
	_, policyTrail := client.PolicyCheck(ctx, environment, unknown)
	_, artifact := client.Compliance(ctx, strings.Repeat("f", 64))
	_, attestation := client.Attestation(ctx, unknown)
	_, badSearch := client.SearchAttestations(ctx, fides.AttestationFilter{Trail: "nope"})
	_, list := client.Artifacts(ctx)
	_, role := client.Approve(ctx, satisfied, fides.ApprovalRequest{Role: "owner"})
	_, approveUnknown := client.Approve(ctx, unknown, fides.ApprovalRequest{Role: "approver"})
	_, stranger := client.Approve(ctx, satisfied, fides.ApprovalRequest{Role: "approver", OnBehalfOf: "stranger@example.com"})
	_, noEmail := client.Approve(ctx, satisfied, fides.ApprovalRequest{Role: "approver", OnBehalfOf: "mcp:ann@example.com"})
	_, attestTrail := client.Attest(ctx, fides.NewAttestation{TrailID: unknown, Payload: "{}"})
	_, attestArtifact := client.Attest(ctx, fides.NewAttestation{TrailID: satisfied, ArtifactSHA256: strings.Repeat("f", 64), Payload: "{}"})
	for name, c := range map[string]struct {
		err  error
		code fides.Code
	}{
		"no token":            {change(""), fides.Unauthenticated},
		"wrong token":         {change("wrong"), fides.Unauthenticated},
		"viewer reads":        {change("viewer-key"), ""},
		"health needs none":   {as(t, s, "").Healthz(ctx), ""},
		"unknown trail":       {trail, fides.NotFound},
		"bad trail":           {badTrail, fides.InvalidArgument},
		"unknown environment": {env, fides.NotFound},
		"bad environment":     {badEnv, fides.InvalidArgument},
		"policy's trail":      {policyTrail, fides.NotFound},
		"unknown artifact":    {artifact, fides.NotFound},
		"unknown attestation": {attestation, fides.NotFound},
		"bad search":          {badSearch, fides.InvalidArgument},
		"list under RLS":      {list, fides.ServerError},
		"role":                {role, fides.InvalidArgument},
		"approve unknown":     {approveUnknown, fides.ServerError},
		"stranger":            {stranger, fides.InvalidArgument},
		"no e-mail":           {noEmail, fides.InvalidArgument},
		"allow without why":   {client.AddToAllowlist(ctx, environment, workerSHA, ""), fides.InvalidArgument},
		"attest on unknown":   {attestTrail, fides.NotFound},
		"attest about nobody": {attestArtifact, fides.ServerError},
	} {
		if got := fides.CodeOf(c.err); got != c.code {
			t.Errorf("%s: got %v, want %q", name, c.err, c.code)
		}
	}
	if s.Writes() != 0 {
		t.Errorf("refusals wrote %d times", s.Writes())
	}
	_, open := start(t, func(s *State) { s.Token = "" })
	if _, err := open.VerifyChain(ctx, satisfied); fides.CodeOf(err) != fides.NotConfigured {
		t.Errorf("a server without its token: %v", err)
	}
}

func TestApprovals(t *testing.T) {
	s, _ := start(t, nil)
	ctx := t.Context()
	for _, c := range []struct {
		name, token string
		request     fides.ApprovalRequest
		by          string
		human       bool
		ignored     bool
		rows        int
	}{
		{"a key without delegation", "viewer-key", fides.ApprovalRequest{Role: "approver", OnBehalfOf: "ann@example.com"}, "service-account", false, true, 1},
		{"a key with delegation", "delegate-key", fides.ApprovalRequest{Role: "approver", OnBehalfOf: "ann@example.com"}, "ann@example.com", true, false, 2},
		{"the same person again", "ann-session", fides.ApprovalRequest{Role: "deployer"}, "ann@example.com", true, false, 2},
		{"nobody named", "delegate-key", fides.ApprovalRequest{Role: "approver"}, "service-account", false, false, 2},
	} {
		got, err := as(t, s, c.token).Approve(ctx, satisfied, c.request)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got.ApprovedBy != c.by || got.Human() != c.human || got.OnBehalfOfIgnored != c.ignored {
			t.Errorf("%s: got %+v", c.name, got)
		}
		rows, err := as(t, s, c.token).Approvals(ctx, satisfied)
		if err != nil || len(rows) != c.rows {
			t.Errorf("%s: got %d rows, %v; want %d", c.name, len(rows), err, c.rows)
		}
	}
	rows, err := as(t, s, "viewer-key").Approvals(ctx, satisfied)
	if err != nil || !fides.DeployerOnly(rows) {
		t.Errorf("got %+v, %v: ann's second sign-off left one deployer row", rows, err)
	}
}

func TestEnvironmentsAndWrites(t *testing.T) {
	s, client := start(t, nil)
	ctx := t.Context()
	policy, err := client.PolicyCheck(ctx, environment, failing)
	if err != nil || policy.Compliant || !slices.Equal(policy.Results[0].Missing, []string{"unit-tests", "vuln-scan"}) || policy.Results[1].Applies {
		t.Errorf("got %+v, %v", policy, err)
	}
	if policy, err = client.PolicyCheck(ctx, environment, satisfied); err != nil || !policy.Compliant {
		t.Errorf("got %+v, %v", policy, err)
	}
	for sha, want := range map[string]bool{webSHA: true, "sha256:" + webSHA: true, workerSHA: false} {
		if v, err := client.AllowlistCheck(ctx, environment, sha); err != nil || v.Approved != want {
			t.Errorf("%s: got %+v, %v", sha, v, err)
		}
	}
	if err := client.AddToAllowlist(ctx, environment, workerSHA, "accepted"); err != nil {
		t.Error(err)
	}
	if entries, err := client.Allowlist(ctx, environment); err != nil || len(entries) != 2 {
		t.Errorf("got %v, %v", entries, err)
	}
	if v, err := client.Compliance(ctx, workerSHA); err != nil || v.Compliant || len(v.Violations) != 2 {
		t.Errorf("got %+v, %v", v, err)
	}
	for _, sha := range []string{webSHA, looseSHA} {
		if v, err := client.Compliance(ctx, sha); err != nil || !v.Compliant || v.Violations == nil {
			t.Errorf("got %+v, %v", v, err)
		}
	}
	stored, err := client.Attest(ctx, fides.NewAttestation{TrailID: satisfied, ArtifactSHA256: webSHA, Name: "promotion", TypeName: fides.TypePromotion, Payload: `{"passage":"p1"}`})
	if err != nil {
		t.Fatal(err)
	}
	read, err := client.Attestation(ctx, stored.ID)
	if err != nil || string(read.Payload) != `{"passage":"p1"}` || read.ArtifactSHA256 != webSHA {
		t.Errorf("got %+v, %v", read, err)
	}
	hits, err := client.SearchAttestations(ctx, fides.AttestationFilter{Trail: satisfied})
	if err != nil || len(hits) != 4 || hits[0].ID != stored.ID {
		t.Errorf("got %+v, %v; want the promotion first of four", hits, err)
	}
	no := false
	if hits, err = client.SearchAttestations(ctx, fides.AttestationFilter{Compliant: &no}); err != nil || len(hits) != 2 {
		t.Errorf("got %+v, %v", hits, err)
	}
	if _, err := client.ReportArtifact(ctx, fides.NewArtifact{SHA256: looseSHA, TrailID: empty, Name: "x", Type: "container-image"}); err != nil {
		t.Error(err)
	}
	if found, err := client.ArtifactByDigest(ctx, looseSHA); err != nil || found.TrailID != empty {
		t.Errorf("got %+v, %v", found, err)
	}
	if s.Writes() != 3 {
		t.Errorf("got %d writes, want 3", s.Writes())
	}
}

func TestChain(t *testing.T) {
	_, client := start(t, func(s *State) {
		s.Trails[1].Chain = &fides.ChainVerdict{Count: 2, BrokenAt: 1, Reason: "content_hash does not match recomputed hash (tampering)"}
	})
	for trail, want := range map[string]fides.ChainState{satisfied: fides.ChainValid, failing: fides.ChainBroken, empty: fides.ChainUnhashed} {
		if v, err := client.VerifyChain(t.Context(), trail); err != nil || v.State() != want {
			t.Errorf("%s: got %+v, %v; want %s", trail, v, err, want)
		}
	}
}

// TestOverTheNetwork: the handler answers the same behind a real server.
func TestOverTheNetwork(t *testing.T) {
	s, _ := start(t, nil)
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	client, err := fides.New(fides.Config{BaseURL: server.URL, Token: "demo-token"})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := client.ChangeGate(t.Context(), failing); err != nil || v.RiskScore != 90 {
		t.Errorf("got %+v, %v", v, err)
	}
	wrong, err := fides.New(fides.Config{BaseURL: server.URL + "/elsewhere", Token: "demo-token"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.ChangeGate(t.Context(), failing); fides.CodeOf(err) != fides.NoSuchEndpoint {
		t.Errorf("a wrong base URL: %v", err)
	}
	resp, err := http.Get(server.URL + "/api/v1/artifacts")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusUnauthorized || resp.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("got %d, %v", resp.StatusCode, resp.Header)
	}
}

func TestNewCopies(t *testing.T) {
	state := loadState(t)
	s := New(state)
	if _, err := as(t, s, "demo-token").Attest(t.Context(), fides.NewAttestation{TrailID: empty, Name: "x", TypeName: "x", Payload: "{}"}); err != nil {
		t.Fatal(err)
	}
	if len(state.Trails[2].Attestations) != 0 {
		t.Error("a write reached the caller's state")
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ yaml, says string }{
		"unknown key":      {"tokens: x", "tokens"},
		"trail id":         {"trails: [{id: web-1}]", `trail "web-1"`},
		"trail twice":      {"trails: [{id: " + empty + "}, {id: " + empty + "}]", "twice"},
		"attestation id":   {"trails: [{id: " + empty + ", attestations: [{id: x, name: n, type: t}]}]", "attestation id"},
		"attestation type": {"trails: [{id: " + empty + ", attestations: [{name: n}]}]", "lacks"},
		"approval kind":    {"trails: [{id: " + empty + ", approvals: [{by: ann, kind: human, role: approver}]}]", "valid: session, service"},
		"approval role":    {"trails: [{id: " + empty + ", approvals: [{by: ann, kind: session, role: owner}]}]", "valid: approver, deployer"},
		"digest":           {"artifacts: [{sha256: 'sha256:aa'}]", "64 lower-case hex"},
		"artifact's trail": {"artifacts: [{sha256: " + webSHA + ", trail: " + empty + "}]", "not there"},
		"environment id":   {"environments: [{id: production}]", `environment "production"`},
	} {
		if _, err := Parse([]byte(c.yaml)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.says)
		}
	}
}
