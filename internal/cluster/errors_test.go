package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// status is an API server's failure.
func status(code int, reason, message string, details map[string]any) map[string]any {
	s := map[string]any{"apiVersion": "v1", "kind": "Status", "metadata": map[string]any{}, "status": "Failure",
		"message": message, "reason": reason, "code": code}
	if details != nil {
		s["details"] = details
	}
	return s
}

func gates(name string) map[string]any {
	d := map[string]any{"group": "hecate.dev", "kind": "gates"}
	if name != "" {
		d["name"] = name
	}
	return d
}

func TestClassifyAnswers(t *testing.T) {
	text := func(contentType, body string) func(http.ResponseWriter, int) {
		return func(w http.ResponseWriter, code int) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}
	}
	api := func(reason, message string, details map[string]any) func(http.ResponseWriter, int) {
		return func(w http.ResponseWriter, code int) { answerJSON(w, code, status(code, reason, message, details)) }
	}
	for name, tc := range map[string]struct {
		code   int
		answer func(http.ResponseWriter, int)
		get    Code
		list   Code
	}{
		"no such object":          {404, api("NotFound", `gates.hecate.dev "x" not found`, gates("x")), CodeNotFound, CodeNotFound},
		"kind not served":         {404, text("text/plain; charset=utf-8", "404 page not found\n"), CodeKindNotInstalled, CodeKindNotInstalled},
		"aggregated, not served":  {404, api("NotFound", "the server could not find the requested resource", map[string]any{}), CodeKindNotInstalled, CodeKindNotInstalled},
		"the page of a proxy":     {404, text("text/html", "<html>not here</html>"), CodeUnavailable, CodeUnavailable},
		"forbidden":               {403, api("Forbidden", "gates.hecate.dev is forbidden", gates("")), CodeForbidden, CodeForbidden},
		"unauthorized":            {401, api("Unauthorized", "Unauthorized", nil), CodeUnauthenticated, CodeUnauthenticated},
		"conflict":                {409, api("Conflict", "the object has been modified", gates("x")), CodeConflict, CodeConflict},
		"already exists":          {409, api("AlreadyExists", "exists", gates("x")), CodeConflict, CodeConflict},
		"expired":                 {410, api("Expired", "too old", nil), CodeExpired, CodeExpired},
		"bad request":             {400, api("BadRequest", "field label not supported: spec.gate", nil), CodeInvalidArgument, CodeInvalidArgument},
		"invalid":                 {422, api("Invalid", "spec.steps", gates("x")), CodeInvalidArgument, CodeInvalidArgument},
		"too many requests":       {429, api("TooManyRequests", "later", nil), CodeUnavailable, CodeUnavailable},
		"request entity":          {413, api("RequestEntityTooLarge", "big", nil), CodeTooLarge, CodeTooLarge},
		"internal error":          {500, api("InternalError", "oops", nil), CodeUnavailable, CodeUnavailable},
		"timeout of the server":   {500, api("ServerTimeout", "etcd", nil), CodeTimeout, CodeTimeout},
		"gateway":                 {502, text("text/html", "<html>bad gateway</html>"), CodeUnavailable, CodeUnavailable},
		"gateway timeout":         {504, text("text/plain", "upstream"), CodeTimeout, CodeTimeout},
		"forbidden by a firewall": {403, text("text/html", "<html>blocked</html>"), CodeForbidden, CodeForbidden},
	} {
		s := liveAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { tc.answer(w, tc.code) }))
		err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, &v1alpha1.Gate{})
		if got := Classify(fmt.Errorf("wrapped: %w", err)); got != tc.get {
			t.Errorf("%s, GET: got %s, want %s (%v)", name, got, tc.get, err)
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("GateList"))
		err = s.Client.List(t.Context(), list)
		if got := Classify(err); got != tc.list {
			t.Errorf("%s, LIST: got %s, want %s (%v)", name, got, tc.list, err)
		}
	}
}

func TestClassifyConnections(t *testing.T) {
	refused := httptest.NewServer(http.NotFoundHandler())
	refused.Close()
	release := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer hanging.Close()
	defer close(release)
	unknownCA := httptest.NewTLSServer(http.NotFoundHandler())
	defer unknownCA.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"kind": "GateList"`)
	}))
	defer cut.Close()

	for name, tc := range map[string]struct {
		url  string
		want Code
	}{
		"refused":    {refused.URL, CodeUnavailable},
		"hanging":    {hanging.URL, CodeTimeout},
		"unknown CA": {unknownCA.URL, CodeUnavailable},
		"no host":    {"http://no-such-host.invalid", CodeUnavailable},
		"cut":        {cut.URL, CodeUnavailable},
	} {
		// Only what hangs is to run into its time: a busy machine must not make a
		// handshake do the same.
		o := Options{Kubeconfig: kubeconfig(t, "test", tc.url, "", "test"), Timeout: time.Minute}
		if name == "hanging" {
			o.Timeout = 300 * time.Millisecond
		}
		err := open(t, o).Client.List(t.Context(), &v1alpha1.GateList{})
		if got := Classify(err); got != tc.want {
			t.Errorf("%s: got %s, want %s (%v)", name, got, tc.want, err)
		}
	}

	s := open(t, Options{Kubeconfig: kubeconfig(t, "test", hanging.URL, "", "test")})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Client.List(ctx, &v1alpha1.GateList{}); Classify(err) != CodeTimeout {
		t.Errorf("caller's deadline: %s (%v)", Classify(err), err)
	}
}

func TestClassifyOthers(t *testing.T) {
	s := liveAgainst(t, http.NotFoundHandler())
	unknown := &unstructured.Unstructured{}
	unknown.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	for name, tc := range map[string]struct {
		err  error
		want Code
	}{
		"nil":               {nil, ""},
		"outside the table": {s.Client.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "b"}, unknown), CodeKindNotInstalled},
		"canceled":          {fmt.Errorf("x: %w", context.Canceled), CodeTimeout},
		"usage":             {&UsageError{}, CodeInvalidArgument},
		"read-only":         {&ReadOnlyError{}, CodeRefused},
		"snapshot":          {&SnapshotError{Code: CodeTooLarge, Err: errors.New("x")}, CodeTooLarge},
		"dns":               {&net.DNSError{IsNotFound: true}, CodeUnavailable},
		"anything":          {errors.New("404 page not found"), CodeInternal},
	} {
		if got := Classify(tc.err); got != tc.want {
			t.Errorf("%s: got %q, want %q (%v)", name, got, tc.want, tc.err)
		}
	}
}

// The recorded answers of a real API server, replayed.
func TestClassifyRecordedAnswers(t *testing.T) {
	files, err := filepath.Glob("../../../shared/api-responses/*.json")
	if err != nil || len(files) == 0 {
		t.Skip("no recorded answers beside the repository")
	}
	want := map[int]Code{200: "", 201: "", 400: CodeInvalidArgument, 401: CodeUnauthenticated, 403: CodeForbidden,
		404: CodeNotFound, 409: CodeConflict, 410: CodeExpired, 422: CodeInvalidArgument}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var record struct {
			Response struct {
				Status int            `json:"status"`
				JSON   map[string]any `json:"json"`
			} `json:"response"`
		}
		if err := json.Unmarshal(data, &record); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		code, ok := want[record.Response.Status]
		if !ok {
			t.Errorf("%s: no expectation for status %d", file, record.Response.Status)
		}
		s := liveAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			answerJSON(w, record.Response.Status, record.Response.JSON)
		}))
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("GateList"))
		var got error
		if record.Response.Status < 300 {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Gate"))
			got = s.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "x"}, u)
		} else {
			got = s.Client.List(t.Context(), list)
		}
		if Classify(got) != code {
			t.Errorf("%s: got %q, want %q (%v)", filepath.Base(file), Classify(got), code, got)
		}
	}
}
