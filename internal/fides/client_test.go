package fides

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	trailA = "5f0c2b1e-3a64-4d7b-9c1d-0a6f7f2e9b01"
	envA   = "c2a4b7d0-1111-4222-8333-944455566677"
)

var shaA = strings.Repeat("ab", 32)

// serve makes a client of a server that gives one answer to everything.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := New(Config{BaseURL: server.URL, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func text(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil // no guessing by net/http
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// calls is one call of each method, for properties that all of them share.
var calls = map[string]func(context.Context, *Client) error{
	"Healthz": func(ctx context.Context, c *Client) error { return c.Healthz(ctx) },
	"SearchArtifacts": func(ctx context.Context, c *Client) error {
		_, err := c.SearchArtifacts(ctx, ArtifactFilter{})
		return err
	},
	"ArtifactByDigest": func(ctx context.Context, c *Client) error {
		_, err := c.ArtifactByDigest(ctx, shaA)
		return err
	},
	"Artifacts":      func(ctx context.Context, c *Client) error { _, err := c.Artifacts(ctx); return err },
	"ReportArtifact": func(ctx context.Context, c *Client) error { _, err := c.ReportArtifact(ctx, NewArtifact{}); return err },
	"ChangeGate":     func(ctx context.Context, c *Client) error { _, err := c.ChangeGate(ctx, trailA); return err },
	"VerifyChain":    func(ctx context.Context, c *Client) error { _, err := c.VerifyChain(ctx, trailA); return err },
	"Approvals":      func(ctx context.Context, c *Client) error { _, err := c.Approvals(ctx, trailA); return err },
	"Approve": func(ctx context.Context, c *Client) error {
		_, err := c.Approve(ctx, trailA, ApprovalRequest{Role: RoleApprover})
		return err
	},
	"PolicyCheck":    func(ctx context.Context, c *Client) error { _, err := c.PolicyCheck(ctx, envA, trailA); return err },
	"AllowlistCheck": func(ctx context.Context, c *Client) error { _, err := c.AllowlistCheck(ctx, envA, shaA); return err },
	"Allowlist":      func(ctx context.Context, c *Client) error { _, err := c.Allowlist(ctx, envA); return err },
	"AddToAllowlist": func(ctx context.Context, c *Client) error { return c.AddToAllowlist(ctx, envA, shaA, "why") },
	"Compliance":     func(ctx context.Context, c *Client) error { _, err := c.Compliance(ctx, shaA); return err },
	"SearchAttestations": func(ctx context.Context, c *Client) error {
		_, err := c.SearchAttestations(ctx, AttestationFilter{})
		return err
	},
	"Attestation": func(ctx context.Context, c *Client) error { _, err := c.Attestation(ctx, trailA); return err },
	"Attest":      func(ctx context.Context, c *Client) error { _, err := c.Attest(ctx, NewAttestation{}); return err },
}

// TestNoAnswer sends every method what is no answer to it.
func TestNoAnswer(t *testing.T) {
	const js = "application/json"
	for name, h := range map[string]http.HandlerFunc{
		"empty 200":        text(200, js, ""),
		"blank 200":        text(200, js, " \n"),
		"204":              text(204, "", ""),
		"null":             text(200, js, "null"),
		"number":           text(200, js, "42"),
		"text":             text(200, js, "approved"),
		"empty object":     text(200, js, "{}"),
		"array of null":    text(200, js, "[null]"),
		"array of numbers": text(200, js, "[1]"),
		"array of {}":      text(200, js, "[{}]"),
		"two values":       text(200, js, "[]{}"),
		"error in JSON":    text(200, js, `{"error":"no"}`),
		"HTML":             text(200, "text/html; charset=utf-8", "<html>[]</html>"),
		"JSON as HTML":     text(200, "text/html", `[]`),
		"over 1 MiB":       text(200, js, "[]"+strings.Repeat(" ", 1<<20)), // its beginning is a whole answer
		"redirect":         func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"502 text":         text(502, "text/plain", "bad gateway"),
		"503 envoy":        text(503, "text/plain", "no healthy upstream"),
		"404 of a backend": text(404, "text/plain; charset=utf-8", "default backend - 404"),
		"404 HTML":         text(404, "text/html", "<h1>trail not found</h1>"),
		"404 JSON":         text(404, js, `{"message":"trail not found"}`),
		"401 HTML":         text(401, "text/html", "<h1>Sign in</h1>"),
		"400 without type": text(400, "", "Client sent an HTTP request to an HTTPS server."),
		"500 JSON":         text(500, js, `{"recommendation":"approve"}`),
		"429":              text(429, "text/plain", "slow down"),
		"cut connection": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", js)
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("[]"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, h)
			for method, call := range calls {
				err := call(t.Context(), c)
				if CodeOf(err) != Unavailable {
					t.Errorf("%s: got %v, want Unavailable", method, err)
					continue
				}
				var e *Error
				errors.As(err, &e)
				noLeak(t, e, "")
			}
		})
	}
}

// TestWrongShape sends the change gate a whole verdict with one thing wrong.
func TestWrongShape(t *testing.T) {
	const good = `{"trail_id":"` + trailA + `","recommendation":"approve","approved":true,"risk_score":0,"passed":[],"failed":[],"missing_evidence":[],"waived":[],` +
		`"attestations":{"total":0,"non_compliant":0},"approvals":{"count":1,"human_approvers":1,"approvers":[],"deployers":[]}}`
	if _, err := serve(t, text(200, "application/json", good)).ChangeGate(t.Context(), trailA); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	for _, c := range []struct{ name, old, new, says string }{
		{"no recommendation", `"recommendation":"approve",`, ``, "recommendation"},
		{"null recommendation", `"recommendation":"approve"`, `"recommendation":null`, "recommendation"},
		{"other case", `"recommendation"`, `"Recommendation"`, "recommendation"},
		{"number as recommendation", `"approve"`, `1`, "recommendation"},
		{"text as risk", `"risk_score":0`, `"risk_score":"low"`, "risk_score"},
		{"fraction as risk", `"risk_score":0`, `"risk_score":0.5`, "risk_score"},
		{"no failed", `"failed":[],`, ``, "failed"},
		{"failed as object", `"failed":[]`, `"failed":{}`, "failed"},
		{"no human count", `"human_approvers":1,`, ``, "approvals.human_approvers"},
		{"null approvals", `"approvals":{`, `"approvals":null,"x":{`, "approvals.count"},
		{"another trail", trailA, strings.Replace(trailA, "5", "6", 1), "trail_id"},
		{"in an array", good, "[" + good + "]", "trail_id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := serve(t, text(200, "application/json", strings.Replace(good, c.old, c.new, 1))).ChangeGate(t.Context(), trailA)
			if CodeOf(err) != Unavailable || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want Unavailable about %s", err, c.says)
			}
			if v.Approves() {
				t.Error("a verdict came with the error")
			}
		})
	}
}

// TestRedirectKeepsToken holds that no redirect is followed, to another host or
// to the same, whatever the caller's client would do.
func TestRedirectKeepsToken(t *testing.T) {
	var reached atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+"/login?back=secret", status)
		})
		for method, call := range calls {
			err := call(t.Context(), c)
			var e *Error
			if !errors.As(err, &e) || e.Code != Unavailable || e.Status != status {
				t.Errorf("%s on %d: got %v", method, status, err)
			} else if strings.Contains(e.Error(), "secret") {
				t.Errorf("%s shows the redirect's query: %v", method, err)
			}
		}
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests followed a redirect", n)
	}
}

func TestMessagesAreBounded(t *testing.T) {
	c := serve(t, text(400, "text/plain; charset=utf-8", "bad\x1b[31m \u202eid "+testToken+"\nsecond line "+strings.Repeat("x", 5000)))
	_, err := c.ChangeGate(t.Context(), trailA)
	var e *Error
	if !errors.As(err, &e) || e.Code != InvalidArgument {
		t.Fatalf("got %v", err)
	}
	noLeak(t, e, "")
	if n := len([]rune(e.Message)); n > maxMessage+1 {
		t.Errorf("got a message of %d characters", n)
	}
	for _, bad := range []string{"\x1b", "\u202e", "\n"} {
		if strings.Contains(e.Message, bad) {
			t.Errorf("the message keeps %q", bad)
		}
	}
}

func TestUnknownReferenceIsSaid(t *testing.T) {
	c := serve(t, text(500, "text/plain; charset=utf-8", "internal server error\n"))
	for method, want := range map[string]string{"Approve": "the trail is unknown", "Attest": "digest is unknown"} {
		if err := calls[method](t.Context(), c); CodeOf(err) != ServerError || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", method, err, want)
		}
	}
}

func TestCancelled(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := c.ChangeGate(ctx, trailA)
	if CodeOf(err) != Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Unavailable and context.Canceled", err)
	}
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Code
	}{
		{nil, ""},
		{errors.New("else"), ""},
		{fmt.Errorf("wrapped: %w", &Error{Code: NotFound}), NotFound},
	} {
		if got := CodeOf(c.err); got != c.want {
			t.Errorf("CodeOf(%v) = %q, want %q", c.err, got, c.want)
		}
	}
}

func TestNew(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"http://fides.example.com", "http://fides.example.com/healthz"},
		{"https://fides.example.com/", "https://fides.example.com/healthz"},
		{"https://example.com/fides", "https://example.com/fides/healthz"},
		{"https://example.com/fides/", "https://example.com/fides/healthz"},
		{" https://user:hunter2@example.com/a ", "https://example.com/a/healthz"},
	} {
		var asked *http.Request
		client, err := New(Config{BaseURL: c.url, Token: " " + testToken + "\n", HTTPClient: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			asked = r
			return nil, errors.New("no network here")
		})}})
		if err != nil {
			t.Errorf("New(%q): %v", c.url, err)
			continue
		}
		if err := client.Healthz(t.Context()); CodeOf(err) != Unavailable {
			t.Errorf("%q: got %v", c.url, err)
		}
		if asked.URL.String() != c.want || asked.Header.Get("Authorization") != "Bearer "+testToken {
			t.Errorf("%q: asked %s as %q, want %s", c.url, asked.URL, asked.Header.Get("Authorization"), c.want)
		}
	}
	for _, url := range []string{"", "fides.example.com", "fides.example.com:8080", "ftp://user:hunter2@x", "http://", "http:opaque", "http://user:hunter2@x:port", "http://user:hunter2%zz@x", "http://x/?a=hunter2", "http://x/#hunter2"} {
		_, err := New(Config{BaseURL: url})
		if CodeOf(err) != InvalidArgument || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New(%q): got %v, want InvalidArgument without the credentials", url, err)
		}
	}
	if _, err := New(Config{BaseURL: "http://x", Token: "two\nlines"}); CodeOf(err) != InvalidArgument || strings.Contains(err.Error(), "two") {
		t.Errorf("a token of two lines: got %v", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPrintingHidesSecrets(t *testing.T) {
	cfg := Config{BaseURL: "https://user:hunter2@example.com", Token: testToken}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg), fmt.Sprintf("%v %+v %#v %s", c, c, c, c), c.URL()} {
		if strings.Contains(text, testToken) || strings.Contains(text, "hunter2") {
			t.Errorf("printed a secret: %s", text)
		}
	}
}

// TestIDsStayInTheirSegment holds that an id cannot lead to another endpoint.
func TestIDsStayInTheirSegment(t *testing.T) {
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked %s", r.URL) })
	for _, id := range []string{"", ".", "..", "../x", "a/b", "a?b", "a%2fb", "a b", strings.Repeat("a", 65), "\x00"} {
		_, change := c.ChangeGate(t.Context(), id)
		_, chain := c.VerifyChain(t.Context(), id)
		_, approvals := c.Approvals(t.Context(), id)
		_, approve := c.Approve(t.Context(), id, ApprovalRequest{})
		_, policy := c.PolicyCheck(t.Context(), id, trailA)
		_, policyTrail := c.PolicyCheck(t.Context(), envA, id)
		_, allow := c.AllowlistCheck(t.Context(), id, shaA)
		_, allowed := c.Allowlist(t.Context(), id)
		_, attestation := c.Attestation(t.Context(), id)
		for _, err := range []error{change, chain, approvals, approve, policy, policyTrail, allow, allowed, attestation, c.AddToAllowlist(t.Context(), id, shaA, "x")} {
			if CodeOf(err) != InvalidArgument {
				t.Errorf("id %q: got %v, want InvalidArgument", id, err)
			}
		}
	}
	for _, digest := range []string{"", "sha256:", "abc", "sha512:" + shaA, shaA + "0", strings.Repeat("g", 64)} {
		_, compliance := c.Compliance(t.Context(), digest)
		_, artifact := c.ArtifactByDigest(t.Context(), digest)
		_, allow := c.AllowlistCheck(t.Context(), envA, digest)
		for _, err := range []error{compliance, artifact, allow, c.AddToAllowlist(t.Context(), envA, digest, "x")} {
			if CodeOf(err) != InvalidArgument {
				t.Errorf("digest %q: got %v, want InvalidArgument", digest, err)
			}
		}
	}
}

// TestDigestEquality: the server matches prefixes, so what it returns is not
// what was asked for until the whole digest is equal.
func TestDigestEquality(t *testing.T) {
	other := strings.Replace(shaA, "ab", "AB", 1)
	c := serve(t, text(200, "application/json", `[{"sha256":"`+other+`","name":"x","trail_id":"`+trailA+`"},{"sha256":"`+shaA+`0","name":"y","trail_id":"`+trailA+`"}]`))
	got, err := c.ArtifactByDigest(t.Context(), shaA)
	if err != nil || got.State != NotRegistered || got.TrailID != "" {
		t.Errorf("got %+v, %v; want NotRegistered", got, err)
	}
}

func TestHealthz(t *testing.T) {
	if err := serve(t, text(200, "text/plain", "OK\n")).Healthz(t.Context()); err != nil {
		t.Error(err)
	}
	if err := serve(t, text(200, "text/html", "OK")).Healthz(t.Context()); CodeOf(err) != Unavailable {
		t.Errorf("an HTML page: got %v", err)
	}
}
