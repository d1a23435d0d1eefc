package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
	"github.com/hecate-mcp/hecate-mcp/test/estate"
)

// small is one pipeline.
var small = estate.Size{Gates: estate.Stages, Bundles: 4, Passages: 8}

// TestErrors asks as somebody who gets no answer: the code says why, and the
// shell's exit code says of which sort it is.
func TestErrors(t *testing.T) {
	c := start(t)
	ns := c.Namespace(t)
	c.Create(t, "", estate.Objects(small, []string{ns}, time.Now())...)
	as := func(user string) string { return c.Kubeconfig(t, user, ns) }
	for _, tc := range []struct {
		what, kubeconfig string
		tool             string
		arguments        args
		want             tools.Code
		exit             int
		retryable        bool
	}{
		{"nobody", as(cluster.Nobody), "list_gates", nil, tools.Forbidden, 2, false},
		{"nobody, everywhere", as(cluster.Nobody), "list_gates", args{"namespace": "*"}, tools.Forbidden, 2, false},
		{"nobody, one Gate", as(cluster.Nobody), "explain_gate", args{"gate": "x"}, tools.Forbidden, 2, false},
		{"no grant in this namespace", as(cluster.OneNamespace), "list_bundles", nil, tools.Forbidden, 2, false},
		{"unknown token", as(cluster.Stranger), "list_gates", nil, tools.Unauthenticated, 2, false},
		{"dead server", deadServer(t), "list_gates", nil, tools.Unavailable, 2, true},
		{"dead server, one Gate", deadServer(t), "explain_gate", args{"gate": "x"}, tools.Unavailable, 2, true},
		{"no Hecate", withoutHecate(t, c), "list_gates", nil, tools.KindNotInstalled, 2, false},
		{"no Hecate, one Gate", withoutHecate(t, c), "explain_gate", args{"gate": "x"}, tools.KindNotInstalled, 2, false},
		{"no Hecate, Passages", withoutHecate(t, c), "list_passages", nil, tools.KindNotInstalled, 2, false},
		{"no such Gate", as(cluster.Viewer), "explain_gate", args{"gate": "production-eu"}, tools.NotFound, 3, false},
		{"no such Bundle", as(cluster.Viewer), "get_evidence", args{"bundle": "app-nope"}, tools.NotFound, 3, false},
		{"no such Passage", as(cluster.Viewer), "get_passage", args{"passage": "nope"}, tools.NotFound, 3, false},
		{"several Gates", as(cluster.Viewer), "explain_gate", args{"gate": "app"}, tools.Ambiguous, 3, false},
		{"unknown argument", as(cluster.Viewer), "list_gates", args{"gates": "x"}, tools.InvalidArgument, 1, false},
	} {
		t.Run(tc.what, func(t *testing.T) {
			flags := []string{"--kubeconfig", tc.kubeconfig, "-n", ns}
			e := stdio(t, flags...).fail(t, tc.tool, tc.arguments)
			if e.Code != tc.want || e.Retryable != tc.retryable {
				t.Errorf("%s, retryable %v (%s); want %s, %v", e.Code, e.Retryable, e.Message, tc.want, tc.retryable)
			}
			if strings.Contains(e.Message, "token-of-") {
				t.Errorf("the message has a token in it: %s", e.Message)
			}
			stdout, exit := shell(t, tc.tool, tc.arguments, flags...)
			if printed := decodeError(t, stdout); printed.Code != tc.want || exit != tc.exit {
				t.Errorf("the shell: %s, exit %d; want %s, %d", printed.Code, exit, tc.want, tc.exit)
			}
		})
	}
}

// TestNotFoundNamesWhatIsThere: a wrong name leads to the right ones.
func TestNotFoundNamesWhatIsThere(t *testing.T) {
	c := start(t)
	ns := c.Namespace(t)
	c.Create(t, "", estate.Objects(small, []string{ns}, time.Now())...)
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, ns))
	wrong := strings.Replace(estate.GateName(0, 4), "production", "prodction", 1)
	e := s.fail(t, "explain_gate", args{"gate": wrong})
	if e.Code != tools.NotFound || e.Object == nil || e.Object.Name != wrong || e.Object.Namespace != ns {
		t.Errorf("%s on %v", e.Code, e.Object)
	}
	if len(e.Candidates) == 0 || e.Candidates[0].Name != estate.GateName(0, 4) || e.Candidates[0].Kind != v1alpha1.KindGate {
		t.Errorf("candidates %v, want %s first", e.Candidates, estate.GateName(0, 4))
	}
}

// TestOneNamespace: who may read one namespace gets that one, and is told what
// the answer leaves out.
func TestOneNamespace(t *testing.T) {
	c := start(t)
	mine, other := c.Namespace(t), c.Namespace(t)
	c.Create(t, "", estate.Objects(estate.Size{Gates: 2 * estate.Stages, Bundles: 8, Passages: 16}, []string{mine, other}, time.Now())...)
	c.Grant(t, cluster.OneNamespace, mine, "hecate-viewer")
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.OneNamespace, mine))

	all := s.call(t, "list_gates", args{"namespace": "*"})
	gates := rows(t, all, "gates")
	if len(gates) != estate.Stages || slices.ContainsFunc(gates, func(g map[string]any) bool { return g["namespace"] != mine }) {
		t.Errorf("%d Gates, want the %d of %s: %v", len(gates), estate.Stages, mine, gates)
	}
	if got := unread(t, all); !slices.Equal(got, []string{"Forbidden Beacon", "Forbidden Bundle", "Forbidden Gate", "Forbidden Passage"}) {
		t.Errorf("incomplete: %v", got)
	}
	one := s.call(t, "list_gates", nil)
	if got := unread(t, one); len(got) != 0 || one["total"] != float64(estate.Stages) {
		t.Errorf("in its namespace: total %v, incomplete %v", one["total"], got)
	}
	for _, tool := range []string{"list_bundles", "list_beacons", "list_passages", "get_audit_trail", "explain_gate"} {
		s.call(t, tool, nil)
		if e := s.fail(t, tool, args{"namespace": other}); e.Code != tools.Forbidden {
			t.Errorf("%s in another namespace: %s", tool, e.Code)
		}
	}
	for _, tool := range []string{"list_bundles", "list_beacons", "list_passages", "get_audit_trail", "explain_gate"} {
		t.Run("everywhere/"+tool, func(t *testing.T) {
			if got := unread(t, s.call(t, tool, args{"namespace": "*"})); len(got) == 0 {
				t.Error("does not say that it could not see every namespace")
			}
		})
	}
}

// TestEmptyIsAnAnswer: a namespace without objects is no error.
func TestEmptyIsAnAnswer(t *testing.T) {
	c := start(t)
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, c.Namespace(t)))
	for tool, list := range map[string]string{"list_gates": "gates", "list_bundles": "bundles", "list_beacons": "beacons", "list_passages": "passages", "get_audit_trail": "entries"} {
		a := s.call(t, tool, nil)
		if a["total"] != float64(0) || len(rows(t, a, list)) != 0 || len(unread(t, a)) != 0 {
			t.Errorf("%s: %v", tool, a)
		}
	}
	if x := s.call(t, "explain_gate", nil); x["total"] != float64(0) || x["atRest"] != float64(0) {
		t.Errorf("explain_gate: %v", x)
	}
}

// TestSecretThatMayNotBeRead: evidence needs a token from a Secret. Who may not
// read it is told which one, and still gets what the objects say.
func TestSecretThatMayNotBeRead(t *testing.T) {
	c := start(t)
	ns := c.Namespace(t)
	objects := estate.Objects(small, []string{ns}, time.Now())
	bundle := ""
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.Gate:
			o.Spec.Evidence = &v1alpha1.EvidenceConfig{FidesEnvironment: "3f0c1c1e-5d0c-4f7e-9b1a-2c7d8e9f0a1b",
				ServerURL: "http://127.0.0.1:9", CredentialsRef: &v1alpha1.LocalReference{Name: "fides-token"}}
		case *v1alpha1.Bundle:
			bundle = o.Name
		}
	}
	c.Create(t, "", objects...)
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, ns))
	ev := s.call(t, "get_evidence", args{"bundle": bundle})
	want := map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": ns, "name": "fides-token"}
	found := slices.ContainsFunc(rows(t, ev, "incomplete"), func(i map[string]any) bool {
		return i["code"] == "Forbidden" && fmt.Sprint(i["object"]) == fmt.Sprint(want)
	})
	if !found {
		t.Errorf("incomplete does not name the Secret: %v", ev["incomplete"])
	}
	if ev["bundle"] != bundle || len(rows(t, ev, "artifacts")) != 1 {
		t.Errorf("the rest of the answer is missing: %v", ev)
	}
}

// unread lists code and kind of what an answer could not read.
func unread(t *testing.T, answer map[string]any) []string {
	t.Helper()
	if answer["incomplete"] == nil {
		return nil
	}
	var out []string
	for _, i := range rows(t, answer, "incomplete") {
		kind, _ := i["object"].(map[string]any)["kind"].(string)
		out = append(out, i["code"].(string)+" "+kind)
	}
	return out
}

// deadServer is the kubeconfig of an API server that nobody runs.
func deadServer(t *testing.T) string {
	t.Helper()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	return kubeconfig(t, closed.URL, "token")
}

// withoutHecate is the kubeconfig of an API server that lacks the CRDs: the
// real one, asked for a group that nobody installed, so that its answers are real.
func withoutHecate(t *testing.T, c *cluster.Cluster) string {
	t.Helper()
	cfg := c.Config(cluster.Admin)
	target, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.Path = strings.Replace(r.Out.URL.Path, "/apis/"+v1alpha1.GroupVersion.Group+"/", "/apis/absent.example.com/", 1)
	}})
	t.Cleanup(s.Close)
	return kubeconfig(t, s.URL, cfg.BearerToken)
}

func kubeconfig(t *testing.T, server, token string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"test": {Server: server}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"test": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"test": {Cluster: "test", AuthInfo: "test", Namespace: metav1.NamespaceDefault}},
		CurrentContext: "test",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
