package fides

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	ownRecordings    = "testdata/recordings"
	sharedRecordings = "../../../shared/fides-recordings"
	testToken        = "fides_0123456789ab_0123456789abcdef0123456789abcdef0123456789abcdef"
)

// recording is one exchange, in the format of fides-recordings.
type recording struct {
	State   string `json:"state"`
	Request struct {
		Method string          `json:"method"`
		Path   string          `json:"path"`
		Auth   string          `json:"auth"`
		Body   json.RawMessage `json:"body"`
	} `json:"request"`
	Response struct {
		Status         *int              `json:"status"`
		TransportError string            `json:"transportError"`
		Headers        map[string]string `json:"headers"`
		RawBody        string            `json:"rawBody"`
	} `json:"response"`
}

type wantError struct {
	code  Code
	thing string
}

// wantErrors is every recording that is not an answer. Any other one must give
// a value equal to what was recorded.
var wantErrors = map[string]wantError{
	"allowlist/add-without-reason.json":      {code: InvalidArgument},
	"allowlist/unknown-environment.json":     {NotFound, "environment"},
	"approvals/bad-role.json":                {code: InvalidArgument},
	"approvals/bad-trail-id.json":            {code: InvalidArgument},
	"approvals/delegated-not-an-email.json":  {code: InvalidArgument},
	"approvals/delegated-unknown-user.json":  {code: InvalidArgument},
	"approvals/unknown-trail.json":           {code: ServerError},
	"artifacts/list-rls-on-500.json":         {code: ServerError},
	"attestation/bad-id.json":                {code: InvalidArgument},
	"attestation/unknown.json":               {NotFound, "attestation"},
	"change-gate/bad-trail-id.json":          {code: InvalidArgument},
	"change-gate/other-tenant-trail.json":    {NotFound, "trail"},
	"change-gate/unknown-trail.json":         {NotFound, "trail"},
	"compliance/missing-sha.json":            {code: InvalidArgument},
	"compliance/unknown-artifact.json":       {NotFound, "artifact"},
	"errors/auth-not-configured.json":        {code: NotConfigured},
	"errors/bad-token.json":                  {code: Unauthenticated},
	"errors/connection-refused.json":         {code: Unavailable},
	"errors/database-down-api-key.json":      {code: Unauthenticated},
	"errors/database-down-static-token.json": {code: ServerError},
	"errors/empty-200.json":                  {code: Unavailable},
	"errors/empty-204.json":                  {code: Unavailable},
	"errors/expired-key.json":                {code: Unauthenticated},
	"errors/no-such-endpoint.json":           {code: NoSuchEndpoint},
	"errors/no-token.json":                   {code: Unauthenticated},
	"errors/proxy-502-html.json":             {code: Unavailable},
	"errors/proxy-504-html.json":             {code: Unavailable},
	"errors/proxy-login-page-200.json":       {code: Unavailable},
	"errors/proxy-redirect-302.json":         {code: Unavailable},
	"errors/read-timeout.json":               {code: Unavailable},
	"errors/revoked-key.json":                {code: Unauthenticated},
	"errors/truncated-json.json":             {code: Unavailable},
	"errors/wrong-method.json":               {code: NoSuchEndpoint},
	"policy-check/bad-environment-id.json":   {code: InvalidArgument},
	"policy-check/no-trail-param.json":       {code: InvalidArgument},
	"policy-check/unknown-environment.json":  {NotFound, "environment"},
	"policy-check/unknown-trail.json":        {NotFound, "trail"},
	"search-attestations/bad-trail-id.json":  {code: InvalidArgument},
	"verify-chain/bad-trail-id.json":         {code: InvalidArgument},
	"verify-chain/unknown-trail.json":        {NotFound, "trail"},
	"writes/attest-unknown-artifact.json":    {code: ServerError},
	"writes/attest-unknown-trail.json":       {NotFound, "trail"},
}

// untyped are the requests that no exported method can send, and why; they go
// through the same code below the methods.
var untyped = map[string]string{
	"allowlist/with-sha256-prefix.json": "AllowlistCheck strips the prefix",
	"compliance/missing-sha.json":       "Compliance refuses it before asking",
	"errors/no-such-endpoint.json":      "there is no such endpoint",
	"errors/wrong-method.json":          "there is no such endpoint",
	"policy-check/no-trail-param.json":  "PolicyCheck refuses it before asking",
	"setup/create-exception.json":       "an administrator's endpoint, outside of this client",
}

func TestRecordings(t *testing.T) {
	for _, dir := range []string{ownRecordings, sharedRecordings} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			names := recordingsIn(t, dir)
			for _, name := range names {
				t.Run(name, func(t *testing.T) { replay(t, name, load(t, dir, name)) })
			}
			if dir == sharedRecordings {
				for name := range wantErrors {
					if !slices.Contains(names, name) {
						t.Errorf("wantErrors names %s, which is not recorded", name)
					}
				}
			}
		})
	}
}

// recordingsIn lists dir/file.json, and skips when the folder is not there.
func recordingsIn(t *testing.T, dir string) []string {
	t.Helper()
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		t.Skipf("%s is not there: it is not part of the repository", dir)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no recordings in %s (%v)", dir, err)
	}
	var out []string
	for _, p := range paths {
		out = append(out, filepath.Base(filepath.Dir(p))+"/"+filepath.Base(p))
	}
	return out
}

func load(t *testing.T, dir, name string) recording {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var rec recording
	if err := json.Unmarshal(data, &rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

func replay(t *testing.T, name string, rec recording) {
	base, path := split(t, rec.Request.Path)
	server := httptest.NewServer(answering(t, rec))
	defer server.Close()
	cfg := Config{BaseURL: server.URL + base, Token: testToken}
	if rec.Request.Auth == "none" {
		cfg.Token = ""
	}
	if rec.Response.Status == nil {
		switch {
		case strings.Contains(rec.Response.TransportError, "Refused"):
			server.Close()
		case strings.Contains(rec.Response.TransportError, "timed out"):
			cfg.HTTPClient = &http.Client{Timeout: 100 * time.Millisecond}
		default:
			t.Fatalf("unknown transport error %q", rec.Response.TransportError)
		}
	}
	client, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ask(t, client, name, rec.Request.Method, path, rec.Request.Body)

	want, isError := wantErrors[name]
	if !isError {
		if err != nil {
			t.Fatalf("got error %v, want the recorded value", err)
		}
		sameJSON(t, got, rec.Response.RawBody)
		return
	}
	if err == nil {
		t.Fatalf("got %+v, want an error with code %s", got, want.code)
	}
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %T (%v), want *Error", err, err)
	}
	if e.Code != want.code || e.Thing != want.thing {
		t.Errorf("got code %s of %q, want %s of %q (%v)", e.Code, e.Thing, want.code, want.thing, err)
	}
	status := 0
	if rec.Response.Status != nil {
		status = *rec.Response.Status
	}
	if e.Status != status || e.ContentType != rec.Response.Headers["content-type"] {
		t.Errorf("got status %d (%s), want %d (%s)", e.Status, e.ContentType, status, rec.Response.Headers["content-type"])
	}
	if e.Method != rec.Request.Method || !strings.HasPrefix(e.Path, strings.Split(rec.Request.Path, "?")[0]) {
		t.Errorf("got %s %s, want %s %s", e.Method, e.Path, rec.Request.Method, rec.Request.Path)
	}
	noLeak(t, e, rec.Response.RawBody)
}

// noLeak holds that an error shows neither the token nor a page.
func noLeak(t *testing.T, e *Error, body string) {
	t.Helper()
	text := e.Error() + fmt.Sprintf("%+v %#v", e, e)
	if strings.Contains(text, testToken) {
		t.Errorf("the error shows the token: %s", text)
	}
	if strings.Contains(text, "<") || e.Code == Unavailable && len(body) > 20 && strings.Contains(text, body[:20]) {
		t.Errorf("the error shows the body: %s", text)
	}
	if strings.ContainsAny(e.Message, "\r\n") || len([]rune(e.Message)) > 2*maxMessage {
		t.Errorf("the message is not one bounded line: %q", e.Message)
	}
}

// split takes the path of a proxy off, which is the base URL's.
func split(t *testing.T, path string) (base, rest string) {
	i := strings.Index(path, "/api/v1/")
	if i < 0 {
		t.Fatalf("%s is not a path of the API", path)
	}
	return path[:i], path[i:]
}

// answering is a server that gives the recorded answer to the recorded request
// and fails the test on any other request.
func answering(t *testing.T, rec recording) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want, err := url.Parse(rec.Request.Path)
		if err != nil {
			t.Error(err)
			return
		}
		if r.Method != rec.Request.Method || r.URL.Path != want.Path || query(r.URL) != query(want) {
			t.Errorf("got request %s %s, recorded is %s %s", r.Method, r.URL, rec.Request.Method, want)
		}
		if auth := r.Header.Get("Authorization"); (auth == "Bearer "+testToken) == (rec.Request.Auth == "none") {
			t.Errorf("got Authorization %q, recorded is %s", auth, rec.Request.Auth)
		}
		var sent bytes.Buffer
		if _, err := sent.ReadFrom(r.Body); err != nil {
			t.Error(err)
		}
		if rec.Request.Body != nil {
			if r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got Content-Type %q", r.Header.Get("Content-Type"))
			}
			sameJSON(t, json.RawMessage(sent.Bytes()), string(rec.Request.Body))
		} else if sent.Len() > 0 {
			t.Errorf("got a request body %q", sent.String())
		}
		if rec.Response.Status == nil { // the server that never answers
			<-r.Context().Done()
			return
		}
		for key, value := range rec.Response.Headers {
			w.Header().Set(key, value)
		}
		w.WriteHeader(*rec.Response.Status)
		if _, err := w.Write([]byte(rec.Response.RawBody)); err != nil && *rec.Response.Status != http.StatusNoContent {
			t.Error(err)
		}
	})
}

// query leaves policy out: the server does not read it, so Compliance does not
// send it.
func query(u *url.URL) string {
	q := u.Query()
	q.Del("policy")
	return q.Encode()
}

var routes = regexp.MustCompile(`^/api/v1/(search/artifacts|artifacts|compliance|search/attestations|attestations|attestations/([^/]+)|` +
	`trails/([^/]+)/(change-gate|verify-chain|approvals)|environments/([^/]+)/(policy-check|allowlist))$`)

// ask calls the method that belongs to a request. It fails the test when there
// is none and the file is not in untyped.
func ask(t *testing.T, c *Client, name, method, target string, body json.RawMessage) (any, error) {
	t.Helper()
	ctx := t.Context()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if _, ok := untyped[name]; ok {
		if strings.HasPrefix(name, "allowlist/") {
			return c.allowlistCheck(ctx, strings.Split(u.Path, "/")[4], q.Get("sha"))
		}
		var in, out any
		if body != nil {
			in = body
		}
		_, err := c.call(ctx, method, u.Path, q, in, shape{}, &out)
		return out, err
	}
	m := routes.FindStringSubmatch(u.Path)
	if m == nil {
		t.Fatalf("no method for %s %s: add one, or a reason to untyped", method, target)
	}
	attestation, trail, environment := m[2], m[3], m[5]
	read := func(into any) {
		if err := json.Unmarshal(body, into); err != nil {
			t.Fatal(err)
		}
	}
	switch {
	case method == http.MethodGet && m[1] == "search/artifacts":
		return c.SearchArtifacts(ctx, ArtifactFilter{SHA: q.Get("sha"), Commit: q.Get("commit"), Name: q.Get("name")})
	case method == http.MethodGet && m[1] == "artifacts":
		return c.Artifacts(ctx)
	case method == http.MethodPost && m[1] == "artifacts":
		var in NewArtifact
		read(&in)
		return c.ReportArtifact(ctx, in)
	case method == http.MethodGet && m[1] == "compliance":
		return c.Compliance(ctx, q.Get("sha256"))
	case method == http.MethodGet && m[1] == "search/attestations":
		return c.SearchAttestations(ctx, AttestationFilter{Type: q.Get("type"), Trail: q.Get("trail")})
	case method == http.MethodPost && m[1] == "attestations":
		var in NewAttestation
		read(&in)
		return c.Attest(ctx, in)
	case method == http.MethodGet && attestation != "":
		return c.Attestation(ctx, attestation)
	case method == http.MethodGet && m[4] == "change-gate":
		return c.ChangeGate(ctx, trail)
	case method == http.MethodGet && m[4] == "verify-chain":
		return c.VerifyChain(ctx, trail)
	case method == http.MethodGet && m[4] == "approvals":
		return c.Approvals(ctx, trail)
	case method == http.MethodPost && m[4] == "approvals":
		var in ApprovalRequest
		read(&in)
		return c.Approve(ctx, trail, in)
	case method == http.MethodGet && m[6] == "policy-check":
		return c.PolicyCheck(ctx, environment, q.Get("trail"))
	case method == http.MethodGet && m[6] == "allowlist" && q.Has("sha"):
		return c.AllowlistCheck(ctx, environment, q.Get("sha"))
	case method == http.MethodGet && m[6] == "allowlist":
		return c.Allowlist(ctx, environment)
	case method == http.MethodPost && m[6] == "allowlist":
		var in struct {
			SHA256 string `json:"artifact_sha256"`
			Reason string `json:"reason"`
		}
		read(&in)
		return map[string]string{"status": "approved"}, c.AddToAllowlist(ctx, environment, in.SHA256, in.Reason)
	}
	t.Fatalf("no method for %s %s", method, target)
	return nil, nil
}

// sameJSON compares a value with recorded JSON. The one difference allowed is a
// null list that became an empty one.
func sameJSON(t *testing.T, got any, recorded string) {
	t.Helper()
	data, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(recorded), &w); err != nil {
		t.Fatal(err)
	}
	if where := difference(g, w, "$"); where != "" {
		t.Errorf("%s differs\n got %s\nwant %s", where, data, recorded)
	}
}

func difference(got, want any, at string) string {
	switch w := want.(type) {
	case nil:
		if g, ok := got.([]any); got == nil || ok && len(g) == 0 {
			return ""
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return at
		}
		for i := range w {
			if d := difference(g[i], w[i], fmt.Sprintf("%s[%d]", at, i)); d != "" {
				return d
			}
		}
		return ""
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return at
		}
		for key := range w {
			value, ok := g[key]
			if !ok {
				return at + "." + key
			}
			if d := difference(value, w[key], at+"."+key); d != "" {
				return d
			}
		}
		return ""
	default:
		if got == want {
			return ""
		}
	}
	return at
}
