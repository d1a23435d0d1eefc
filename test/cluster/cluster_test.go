package cluster

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

func TestStart(t *testing.T) {
	c := Start(t)
	t.Logf("ready after %s", c.Startup)
	version := mustAsk(t, c, Viewer, http.MethodGet, "/version", "")
	if got, _ := version["gitVersion"].(string); !strings.HasPrefix(got, "v1.") {
		t.Errorf("the API server calls itself %q, want v1.…", got)
	}
	if again := Start(t); again != c {
		t.Error("a second Start gave another instance")
	}
}

func TestStartInstallsAnotherFolder(t *testing.T) {
	c := Start(t, "testdata/crds")
	path := "/apis/example.com/v1/namespaces/" + c.Namespace(t) + "/widgets"
	mustAsk(t, c, Admin, http.MethodPost, path, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":3}}`)
}

func TestUsers(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	in, everywhere := hecate+"/namespaces/"+ns, hecate+"/gates"
	mustAsk(t, c, Admin, http.MethodPost, in+"/gates", gate)
	name := mustAsk(t, c, Admin, http.MethodPost, in+"/bundles", bundle)["metadata"].(map[string]any)["name"].(string)
	status := in + "/bundles/" + name + "/status"
	approval := `{"status":{"approvedFor":[{"gate":"dev","actor":"a","at":"2026-11-02T10:00:00Z"}]}}`
	abort := `{"spec":{"abort":true}}`
	mine := mustAsk(t, c, Promoter, http.MethodPost, in+"/passages", passage)["metadata"].(map[string]any)["name"].(string)

	for _, tc := range []struct {
		user, method, path, body string
		want                     int
	}{
		{Viewer, http.MethodGet, everywhere, "", 200},
		{Viewer, http.MethodGet, in + "/gates/dev", "", 200},
		{Viewer, http.MethodGet, in + "/gates/nope", "", 404},
		{Viewer, http.MethodGet, "/apis/nope.example.com/v1/things", "", 403},
		{Admin, http.MethodGet, hecate + "/namespaces/nope/gates", "", 200},
		{Viewer, http.MethodPost, in + "/passages", passage, 403},
		{Viewer, http.MethodPatch, status, approval, 403},
		{Viewer, http.MethodGet, "/api/v1/namespaces/" + ns + "/secrets/fides", "", 403},
		{Promoter, http.MethodPost, in + "/passages?dryRun=All", passage, 201},
		{Promoter, http.MethodPost, in + "/passages", `{"apiVersion":"hecate.dev/v1alpha1","kind":"Passage","metadata":{"generateName":"dev-"},"spec":{"gate":"dev","bundle":"b","steps":[]}}`, 422},
		{Promoter, http.MethodPatch, in + "/passages/" + mine, abort, 200},
		{Promoter, http.MethodPatch, status, approval, 403},
		{Approver, http.MethodPatch, status, approval, 200},
		{Approver, http.MethodPost, in + "/passages", passage, 403},
		{OneNamespace, http.MethodGet, in + "/gates", "", 403},
		{Nobody, http.MethodGet, in + "/gates", "", 403},
		{Stranger, http.MethodGet, in + "/gates", "", 401},
	} {
		got, answer := ask(t, c, tc.user, tc.method, tc.path, tc.body)
		if got != tc.want {
			t.Errorf("%s %s as %s: %d (%v), want %d", tc.method, strings.ReplaceAll(tc.path, ns, "NS"), tc.user, got, answer["message"], tc.want)
		}
	}
}

func TestGrant(t *testing.T) {
	c := Start(t)
	granted, other := c.Namespace(t), c.Namespace(t)
	c.Grant(t, OneNamespace, granted, "hecate-viewer")
	for path, want := range map[string]int{
		hecate + "/namespaces/" + granted + "/gates": 200,
		hecate + "/namespaces/" + other + "/gates":   403,
		hecate + "/gates": 403,
	} {
		if got, answer := ask(t, c, OneNamespace, http.MethodGet, path, ""); got != want {
			t.Errorf("GET %s: %d (%v), want %d", path, got, answer["message"], want)
		}
	}
}

func TestKubeconfig(t *testing.T) {
	c := Start(t)
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: c.Kubeconfig(t, Viewer, "shop")}, nil)
	namespace, _, err := loader.Namespace()
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := loader.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if want := c.Config(Viewer); namespace != "shop" || cfg.Host != want.Host || cfg.BearerToken != want.BearerToken {
		t.Errorf("namespace %q, host %q, token %q; want shop, %q, %q", namespace, cfg.Host, cfg.BearerToken, want.Host, want.BearerToken)
	}
}

func TestRestart(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	path := hecate + "/namespaces/" + ns + "/gates"
	mustAsk(t, c, Admin, http.MethodPost, path, gate)
	c.Restart(t)
	mustAsk(t, c, Viewer, http.MethodGet, path+"/dev", "")
}

func TestNamespaceIsClearedAfterTheTest(t *testing.T) {
	c := Start(t)
	var path string
	t.Run("inner", func(t *testing.T) {
		path = hecate + "/namespaces/" + c.Namespace(t) + "/gates"
		mustAsk(t, c, Admin, http.MethodPost, path, gate)
	})
	if items := mustAsk(t, c, Viewer, http.MethodGet, path, "")["items"].([]any); len(items) != 0 {
		t.Errorf("%d Gates are left", len(items))
	}
}
