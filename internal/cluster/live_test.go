package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubeconfig writes a kubeconfig of one context and returns its path.
func kubeconfig(t *testing.T, name, server, namespace, current string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: c-%[1]s
  cluster: {server: %[2]q}
users:
- name: u-%[1]s
  user: {token: t-%[1]s}
contexts:
- name: %[1]s
  context: {cluster: c-%[1]s, user: u-%[1]s, namespace: %[3]q}
current-context: %[4]q
`, name, server, namespace, current)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// edit replaces a text in a file and returns the file's path.
func edit(t *testing.T, path, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), from, to, 1))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// noAmbientConfig hides the machine's own kubeconfig and Pod.
func noAmbientConfig(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
}

func open(t *testing.T, o Options) *Source {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// liveAgainst opens a live source whose API server is the handler.
func liveAgainst(t *testing.T, h http.Handler) *Source {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return open(t, Options{Kubeconfig: kubeconfig(t, "test", server.URL, "", "test")})
}

func answerJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func TestLiveMergesKubeconfigFiles(t *testing.T) {
	var token atomic.Value
	// client-go sends no credentials without TLS.
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token.Store(r.Header.Get("Authorization"))
		answerJSON(w, 200, map[string]any{"apiVersion": "hecate.dev/v1alpha1", "kind": "GateList", "items": []any{}})
	}))
	defer server.Close()
	first := edit(t, kubeconfig(t, "east", server.URL, "team-east", ""), "cluster: {server", "cluster: {insecure-skip-tls-verify: true, server")
	second := edit(t, kubeconfig(t, "west", server.URL, "", "west"), "cluster: {server", "cluster: {insecure-skip-tls-verify: true, server")
	t.Setenv("KUBECONFIG", first+string(os.PathListSeparator)+second)

	for _, tc := range []struct {
		context, flag            string
		cluster, namespace, user string
	}{
		{"", "", "west", "default", "t-west"},
		{"east", "", "east", "team-east", "t-east"},
		{"east", "mine", "east", "mine", "t-east"},
	} {
		s := open(t, Options{Context: tc.context, Namespace: tc.flag})
		if s.Mode != ModeLive || s.Cluster != tc.cluster || s.Namespace != tc.namespace || s.Offline || s.HTTPClient != nil {
			t.Errorf("context %q: got %s %s/%s offline %v", tc.context, s.Mode, s.Cluster, s.Namespace, s.Offline)
		}
		if err := s.Client.List(t.Context(), &v1alpha1.GateList{}); err != nil {
			t.Fatal(err)
		}
		if got := token.Load(); got != "Bearer "+tc.user {
			t.Errorf("context %q: asked with %q, want the token of %s", tc.context, got, tc.user)
		}
	}
}

func TestOpenUsageErrors(t *testing.T) {
	noAmbientConfig(t)
	good := kubeconfig(t, "east", "http://127.0.0.1:1", "", "east")
	noCurrent := kubeconfig(t, "east", "http://127.0.0.1:1", "", "")
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("\tnot yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	badCA := edit(t, kubeconfig(t, "east", "https://127.0.0.1:1", "", "east"), "cluster: {server", "cluster: {certificate-authority: gone.pem, server")
	for name, tc := range map[string]struct {
		o     Options
		says  string
		valid []string
	}{
		"no kubeconfig":         {Options{}, "there is no kubeconfig", nil},
		"kubeconfig is missing": {Options{Kubeconfig: "/does/not/exist"}, "/does/not/exist", nil},
		"kubeconfig is broken":  {Options{Kubeconfig: broken}, "cannot read the kubeconfig", nil},
		"certificate is gone":   {Options{Kubeconfig: badCA}, "gone.pem", nil},
		"context is unknown":    {Options{Kubeconfig: good, Context: "wst"}, `"wst"`, []string{"east"}},
		"no current context":    {Options{Kubeconfig: noCurrent}, "--context", []string{"east"}},
		"context, no file":      {Options{Context: "east"}, "no context", nil},
		"demo and snapshot":     {Options{Demo: true, Snapshot: "x"}, "--demo and --snapshot", nil},
		"demo and context":      {Options{Demo: true, Context: "x"}, "--demo and --context", nil},
		"snapshot, kubeconfig":  {Options{Snapshot: "x", Kubeconfig: good}, "--snapshot and --kubeconfig", nil},
		"snapshot is missing":   {Options{Snapshot: "/does/not/exist"}, "/does/not/exist", nil},
		"demo without estate":   {Options{Demo: true}, "no demo estate", nil},
	} {
		_, err := Open(t.Context(), tc.o)
		var usage *UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%s: got %v, want a *UsageError", name, err)
			continue
		}
		if !strings.Contains(err.Error(), tc.says) || !slices.Equal(usage.ValidValues, tc.valid) || Classify(err) != CodeInvalidArgument {
			t.Errorf("%s: %q (valid %q, %s) should say %q, valid %q", name, err, usage.ValidValues, Classify(err), tc.says, tc.valid)
		}
	}
}

// Open must not connect, and each question costs exactly its own request: no
// discovery.
func TestLiveConnectsOnlyToAnswer(t *testing.T) {
	var paths []string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.Method+" "+r.URL.Path)
		if got := r.Header.Get("User-Agent"); got != "hecate-mcp/1.2.3" {
			t.Errorf("user agent %q", got)
		}
		answerJSON(w, 200, map[string]any{"apiVersion": "x/v1", "kind": "List", "items": []any{}})
	})
	server := httptest.NewServer(h)
	defer server.Close()
	wrapped := 0
	s := open(t, Options{
		Kubeconfig: kubeconfig(t, "test", server.URL, "", "test"),
		UserAgent:  "hecate-mcp/1.2.3",
		Wrap: func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { wrapped++; return next.RoundTrip(r) })
		},
	})
	if len(paths) != 0 {
		t.Fatalf("Open asked %v", paths)
	}
	for _, k := range known[:12] {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind + "List"})
		if err := s.Client.List(t.Context(), list, client.InNamespace("ns")); err != nil {
			t.Errorf("%s: %v", k.kind, err)
		}
	}
	if len(paths) != 12 || wrapped != 12 || paths[0] != "GET /apis/hecate.dev/v1alpha1/namespaces/ns/beacons" || paths[11] != "GET /apis/flagger.app/v1beta1/namespaces/ns/canaries" {
		t.Errorf("asked %d times (wrapped %d): %q", len(paths), wrapped, paths)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestLiveIdentityIsAskedOnce(t *testing.T) {
	asked := 0
	s := liveAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if asked == 1 {
			answerJSON(w, 403, status(403, "Forbidden", "no", nil))
			return
		}
		body, _ := io.ReadAll(r.Body)
		if r.Method != "POST" || r.URL.Path != "/apis/authentication.k8s.io/v1/selfsubjectreviews" || len(body) == 0 {
			t.Errorf("asked %s %s", r.Method, r.URL.Path)
		}
		answerJSON(w, 201, map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
			"status": map[string]any{"userInfo": map[string]any{"username": "ann@example.com"}}})
	}))
	if _, err := s.Identity(t.Context()); Classify(err) != CodeForbidden {
		t.Errorf("first: %v", err)
	}
	for range 3 {
		if who, err := s.Identity(t.Context()); who != "ann@example.com" || err != nil {
			t.Errorf("got %q, %v", who, err)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want one failure and one answer", asked)
	}
}

func TestLiveClock(t *testing.T) {
	path := kubeconfig(t, "test", "http://127.0.0.1:1", "", "test")
	s := open(t, Options{Kubeconfig: path})
	if d := time.Since(s.Now()); d < 0 || d > time.Minute || s.Now().Location() != time.UTC || len(s.Warnings) != 0 {
		t.Errorf("clock %v, warnings %q", s.Now(), s.Warnings)
	}
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.FixedZone("x", 3600))
	s = open(t, Options{Kubeconfig: path, Now: &at})
	if !s.Now().Equal(at) || s.Now().Location() != time.UTC || len(s.Warnings) != 1 {
		t.Errorf("clock %v, warnings %q", s.Now(), s.Warnings)
	}
}

func TestPodNamespace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "namespace")
	if got := podNamespace(path); got != "default" {
		t.Errorf("without a file: %q", got)
	}
	if err := os.WriteFile(path, []byte("team\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := podNamespace(path); got != "team" {
		t.Errorf("got %q", got)
	}
}

// What a client of a snapshot gives must look like what a live one gives, the
// type of each object included.
func TestLiveAndSnapshotGiveTheSame(t *testing.T) {
	gate := map[string]any{"apiVersion": "hecate.dev/v1alpha1", "kind": "Gate",
		"metadata": map[string]any{"name": "prod", "namespace": "ns", "labels": map[string]any{"a": "b"}},
		"spec":     map[string]any{"admits": []any{map[string]any{"from": map[string]any{"beacon": "web"}}}}}
	live := liveAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/gates") {
			answerJSON(w, 200, map[string]any{"apiVersion": "hecate.dev/v1alpha1", "kind": "GateList",
				"metadata": map[string]any{"resourceVersion": "1"}, "items": []any{gate}})
			return
		}
		answerJSON(w, 200, gate)
	}))
	data, err := json.Marshal(gate)
	if err != nil {
		t.Fatal(err)
	}
	snapshot := open(t, Options{Snapshot: write(t, map[string]string{"gate.json": string(data)})})

	ask := func(s *Source) string {
		var got []any
		key := client.ObjectKey{Namespace: "ns", Name: "prod"}
		one, many := &v1alpha1.Gate{}, &v1alpha1.GateList{}
		uOne, uMany := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
		uOne.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Gate"))
		uMany.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("GateList"))
		for _, err := range []error{
			s.Client.Get(context.Background(), key, one), s.Client.List(context.Background(), many),
			s.Client.Get(context.Background(), key, uOne), s.Client.List(context.Background(), uMany),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		got = append(got, one, many.Items, many.ListMeta, uOne.Object, uMany.Items)
		out, err := json.MarshalIndent(got, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if l, s := ask(live), ask(snapshot); l != s {
		t.Errorf("live gives\n%s\nsnapshot gives\n%s", l, s)
	}
}
