package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// estate is the demo's folder, read as anybody's dump.
const estate = "../../examples/estate"

// TestSnapshotAnswersLikeTheDemo holds that where the objects come from changes
// neither a code nor an object of an explanation.
func TestSnapshotAnswersLikeTheDemo(t *testing.T) {
	isolate(t)
	type link struct {
		Kind   string
		Object struct{ Kind, Namespace, Name string }
		Depth  int
	}
	type codes struct {
		State, Namespace, Current string
		Blockers                  []struct{ Kind string }
		Chain, RootCauses         []link
	}
	explain := func(source ...string) (c codes, mode string) {
		o := hecate(context.Background(), append([]string{"call", "explain_gate", "--arg", "gate=production", "--arg", "namespace=*", "-o", "json"}, source...)...)
		if o.code != 0 {
			t.Fatalf("%q: exit code %d: %s", source, o.code, o.out)
		}
		o.oneJSON(t, &c)
		var s struct{ Scope struct{ Mode string } }
		o.oneJSON(t, &s)
		return c, s.Scope.Mode
	}
	demo, demoMode := explain("--demo")
	dump, dumpMode := explain("--snapshot", estate)
	if diff := cmp.Diff(demo, dump); diff != "" {
		t.Errorf("demo and snapshot differ (-demo +snapshot):\n%s", diff)
	}
	if len(demo.Chain) < 3 || len(demo.RootCauses) == 0 {
		t.Errorf("the demo's chain has %d links and %d roots", len(demo.Chain), len(demo.RootCauses))
	}
	if demoMode != "demo" || dumpMode != "snapshot" {
		t.Errorf("modes are %s and %s", demoMode, dumpMode)
	}
}

// TestNow holds that --now replaces the time of the capture.
func TestNow(t *testing.T) {
	isolate(t)
	var out struct{ Scope struct{ AsOf string } }
	hecate(context.Background(), "call", "list_gates", "--snapshot", estate, "--now", "2026-12-01T08:00:00+01:00", "-o", "json").oneJSON(t, &out)
	if out.Scope.AsOf != "2026-12-01T07:00:00Z" {
		t.Errorf("as of %s", out.Scope.AsOf)
	}
}

// emptyAPI serves empty lists and remembers what was asked, with which token: a
// client sends that over TLS only.
func emptyAPI(t *testing.T) (url string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.URL.Path+" "+r.Header.Get("Authorization"))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		kind := map[string]string{"gates": "GateList", "bundles": "BundleList", "passages": "PassageList", "beacons": "BeaconList"}[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]
		fmt.Fprintf(w, `{"apiVersion":"hecate.dev/v1alpha1","kind":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), seen...)
	}
}

// TestMergedKubeconfigs holds that KUBECONFIG may name several files that
// complete each other, and which namespace each context means.
func TestMergedKubeconfigs(t *testing.T) {
	isolate(t)
	url, asked := emptyAPI(t)
	contexts := writeFile(t, "contexts", `apiVersion: v1
kind: Config
current-context: one
contexts:
- {name: one, context: {cluster: c, user: u, namespace: team-one}}
- {name: two, context: {cluster: c, user: u, namespace: team-two}}
`)
	clusters := writeFile(t, "clusters", `apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: "`+url+`", insecure-skip-tls-verify: true}}
users:
- {name: u, user: {token: merged}}
`)
	t.Setenv("KUBECONFIG", strings.Join([]string{contexts, clusters}, string(os.PathListSeparator)))
	for _, c := range []struct {
		args            []string
		cluster, inside string
	}{
		{nil, "one", "/namespaces/team-one/gates"},
		{[]string{"--context", "two"}, "two", "/namespaces/team-two/gates"},
		{[]string{"--context", "two", "-n", "other"}, "two", "/namespaces/other/gates"},
		{[]string{"--context", "two", "-n", "other", "--arg", "namespace=mine"}, "two", "/namespaces/mine/gates"},
		{[]string{"-A"}, "one", "/apis/hecate.dev/v1alpha1/gates"},
		{[]string{"-n", "other", "--arg", "namespace=*"}, "one", "/apis/hecate.dev/v1alpha1/gates"},
	} {
		before := len(asked())
		var out struct {
			Total int
			Scope struct{ Cluster string }
		}
		o := hecate(context.Background(), append([]string{"call", "list_gates", "-o", "json"}, c.args...)...)
		o.oneJSON(t, &out)
		if o.code != 0 || out.Total != 0 || out.Scope.Cluster != c.cluster {
			t.Errorf("%q: exit code %d: %s", c.args, o.code, o.out)
		}
		if now := strings.Join(asked()[before:], "\n"); !strings.Contains(now, c.inside+" Bearer merged") {
			t.Errorf("%q asked\n%s\nnot %s", c.args, now, c.inside)
		}
	}
	o := hecate(context.Background(), "call", "list_gates", "--context", "three")
	if o.code != 1 || !strings.Contains(o.out, "valid: one, two") {
		t.Errorf("unknown context: exit code %d: %s", o.code, o.out)
	}
}
