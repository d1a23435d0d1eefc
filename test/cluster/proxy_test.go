package cluster

import (
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

func TestRequestsAreCounted(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	path := hecate + "/namespaces/" + ns + "/bundles"
	for range 3 {
		mustAsk(t, c, Admin, http.MethodPost, path, bundle)
	}
	n := c.Requests()
	n.Reset()
	if n.Count("", "") != 0 || n.Bytes() != 0 {
		t.Fatalf("after Reset: %d requests, %d bytes", n.Count("", ""), n.Bytes())
	}
	first := mustAsk(t, c, Viewer, http.MethodGet, path+"?limit=2", "")
	mustAsk(t, c, Viewer, http.MethodGet, path+"?limit=2&continue="+continueToken(t, first), "")
	ask(t, c, Nobody, http.MethodGet, hecate+"/gates", "")
	c.Namespace(t) // the harness's own request
	for _, tc := range []struct {
		what      string
		got, want int
	}{
		{"all", n.Count("", ""), 3},
		{"list bundles", n.Count("list", "bundles"), 2},
		{"LISTs of bundles", n.Lists("bundles"), 1},
		{"LISTs", n.Lists(""), 2},
		{"refused ones", n.Count("list", "gates"), 1},
		{"create", n.Count("create", ""), 0},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %d, want %d; counted:\n%s", tc.what, tc.got, tc.want, n)
		}
	}
	if n.Bytes() < 1000 {
		t.Errorf("%d bytes for three Bundles and a refusal", n.Bytes())
	}
	if want := "list bundles (further pages): 1\nlist bundles: 1\nlist gates: 1"; n.String() != want {
		t.Errorf("counted:\n%s\nwant:\n%s", n, want)
	}
}

func TestCompactExpiresContinueTokens(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	path := hecate + "/namespaces/" + ns + "/bundles"
	mustAsk(t, c, Admin, http.MethodPost, path, bundle)
	mustAsk(t, c, Admin, http.MethodPost, path, bundle)
	first := mustAsk(t, c, Viewer, http.MethodGet, path+"?limit=1", "")
	mustAsk(t, c, Admin, http.MethodPost, path, bundle) // or the token's revision were the newest
	c.Compact(t)
	status, answer := ask(t, c, Viewer, http.MethodGet, path+"?limit=1&continue="+continueToken(t, first), "")
	if status != http.StatusGone || answer["reason"] != "Expired" {
		t.Errorf("the second page after a compaction: %d %v, want 410 Expired", status, answer["reason"])
	}
}

func TestInject(t *testing.T) {
	c := Start(t)
	path := hecate + "/namespaces/" + c.Namespace(t) + "/gates"
	t.Run("while the subtest runs", func(t *testing.T) {
		c.Inject(t, Fault{Resource: "gates", Continued: true, Status: http.StatusGone})
		c.Inject(t, Fault{Verb: "list", Resource: "gates", Times: 1, Status: http.StatusUnauthorized})
		c.Inject(t, Fault{Verb: "create", Status: http.StatusServiceUnavailable})
		for i, tc := range []struct {
			method, query, body, reason string
			want                        int
		}{
			{http.MethodGet, "?continue=x", "", "Expired", 410},
			{http.MethodGet, "", "", "Unauthorized", 401},
			{http.MethodGet, "", "", "", 200}, // the one time is over
			{http.MethodPost, "", gate, "ServiceUnavailable", 503},
		} {
			got, answer := ask(t, c, Admin, tc.method, path+tc.query, tc.body)
			reason, _ := answer["reason"].(string)
			if got != tc.want || reason != tc.reason {
				t.Errorf("request %d, %s %s: %d %q (%v), want %d %q", i, tc.method, tc.query, got, reason, answer["message"], tc.want, tc.reason)
			}
		}
	})
	mustAsk(t, c, Admin, http.MethodPost, path, gate)
}

func TestInjectDelay(t *testing.T) {
	c := Start(t)
	c.Inject(t, Fault{Resource: "gates", Delay: 200 * time.Millisecond})
	began := time.Now()
	mustAsk(t, c, Viewer, http.MethodGet, hecate+"/gates", "")
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("answered after %s, want at least 200 ms", took)
	}
}

// TestWatch sees that the proxy passes a stream on as it comes.
func TestWatch(t *testing.T) {
	c := Start(t)
	path := hecate + "/namespaces/" + c.Namespace(t) + "/gates"
	mustAsk(t, c, Admin, http.MethodPost, path, gate)
	event := mustAsk(t, c, Viewer, http.MethodGet, path+"?watch=1&timeoutSeconds=1", "")
	if event["type"] != "ADDED" {
		t.Errorf("the watch's first event is %v, want ADDED", event["type"])
	}
}

func TestAskingADeadServer(t *testing.T) {
	c := Start(t)
	if err := c.api.kill(); err != nil {
		t.Fatal(err)
	}
	httpClient, err := rest.HTTPClientFor(c.Config(Viewer))
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := httpClient.Get(c.Config(Viewer).Host + "/version"); err == nil {
		resp.Body.Close()
		t.Errorf("asking while the API server is down: %s, want a broken connection", resp.Status)
	}
	c.Restart(t)
	mustAsk(t, c, Viewer, http.MethodGet, "/version", "")
}
