package cluster

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

func estate() fstest.MapFS {
	return fstest.MapFS{
		"gates.yaml": {Data: []byte(object(hecate, "Gate", "shop", "dev"))},
		"meta.json":  {Data: []byte(`{"capturedAt": "2026-11-05T10:00:00Z"}`)},
	}
}

func TestDemo(t *testing.T) {
	s, err := OpenDemo(estate(), nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "gates", names(t, s.Client, hecate, "Gate"), "shop/dev")
	if s.Mode != ModeDemo || s.Cluster != "demo" || s.Namespace != "shop" || s.Offline || len(s.Warnings) != 0 ||
		!s.Now().Equal(time.Date(2026, 11, 5, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("source %+v at %v", s, s.Now())
	}
	if who, err := s.Identity(t.Context()); who != "demo" || err != nil {
		t.Errorf("identity %q, %v", who, err)
	}
	var ro *ReadOnlyError
	if err := s.Client.Create(t.Context(), &v1alpha1.Passage{}); !errors.As(err, &ro) || ro.Mode != ModeDemo {
		t.Errorf("create: %v", err)
	}
	if _, err := OpenDemo(fstest.MapFS{"a.yaml": {Data: []byte("x")}}, nil, Options{}); Classify(err) != CodeInvalidArgument {
		t.Errorf("a broken estate: %v", err)
	}
}

func TestDemoEvidenceServer(t *testing.T) {
	h := http.NewServeMux()
	h.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Host+" "+r.RequestURI+" "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "no")
		_, _ = io.Copy(w, r.Body)
	})
	h.HandleFunc("GET /plain", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	h.HandleFunc("GET /empty", func(http.ResponseWriter, *http.Request) {})
	h.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("oops") })
	h.HandleFunc("GET /away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
	})
	s := open(t, Options{Demo: true, DemoFS: estate(), DemoEvidence: h})
	base := "https://" + DemoEvidenceHost

	req, err := http.NewRequestWithContext(t.Context(), "POST", base+"/echo?x=1", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer t")
	resp, err := s.HTTPClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "body" || resp.StatusCode != http.StatusTeapot || resp.ContentLength != 4 ||
		resp.Header.Get("X-Seen") != DemoEvidenceHost+" /echo?x=1 Bearer t" || resp.Header.Get("X-Late") != "" {
		t.Errorf("%v: %q %+v", err, body, resp)
	}

	for path, want := range map[string]int{"/plain": 200, "/empty": 200, "/unknown": 404, "/panic": 0, "/away": 0} {
		resp, err := s.HTTPClient.Get(base + path)
		switch {
		case want == 0 && (err == nil || Classify(err) != CodeUnavailable):
			t.Errorf("%s: %v %v", path, resp, err)
		case want != 0 && (err != nil || resp.StatusCode != want):
			t.Errorf("%s: %v %v", path, resp, err)
		}
	}
	if _, err := s.HTTPClient.Get("https://example.com/"); err == nil || !strings.Contains(err.Error(), DemoEvidenceHost) {
		t.Errorf("another host: %v", err)
	}
}
