package writes

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

const shop = "shop" // the namespace of the demo's repository

// TestReconcileFlux reconciles one Kustomization, and the set of the demo's change,
// with Flux's own controllers and a Git server.
func TestReconcileFlux(t *testing.T) {
	w := newWorld(t)
	cluster.StartFlux(t)
	flux, err := client.New(w.Config(cluster.Admin), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	repository := t.TempDir()
	if err := examples.Repository(repository); err != nil {
		t.Fatal(err)
	}
	// A namespace never goes away here: another run of this test may have made it.
	_ = flux.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: "cluster-settings"}, Data: map[string]string{"DOMAIN": "shop.example.com"}}
	if err := flux.Create(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	create := func(version, kind, name string, spec map[string]any) {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": shop}, "spec": spec}}
		if err := flux.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	// As in the repository, but that nothing happens by itself in an hour, and no
	// Deployment is waited for: nobody runs them here.
	create("source.toolkit.fluxcd.io/v1", "GitRepository", "deploy", map[string]any{"interval": "1h", "url": cluster.GitServer(t, repository), "ref": map[string]any{"branch": "main"}})
	for _, env := range []string{"dev", "staging", "production"} {
		create("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "storefront-"+env, map[string]any{"interval": "1h", "retryInterval": "1s", "prune": true, "path": "./apps/storefront/" + env,
			"sourceRef": map[string]any{"kind": "GitRepository", "name": "deploy"},
			"postBuild": map[string]any{"substituteFrom": []any{map[string]any{"kind": "ConfigMap", "name": "cluster-settings"}}}})
	}
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", repository}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	deployment := func(env string) (d appsv1.Deployment) {
		t.Helper()
		if err := flux.Get(t.Context(), client.ObjectKey{Namespace: shop, Name: "storefront-" + env}, &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	memory := func(env string) string {
		t.Helper()
		return deployment(env).Spec.Template.Spec.Containers[0].Resources.Requests.Memory().String()
	}

	s := w.serve(t, cluster.Admin, "--repo", repository)
	s.elicit = accepts
	s.initialize(t, true)

	a := s.call(t, "reconcile_flux", args{"kustomization": shop + "/storefront-dev", "wait": "1m"})
	if a.err != nil || !strings.Contains(a.raw, "1 of 1 Kustomizations are ready") {
		t.Fatalf("one: %s", a)
	}
	if want := "main@sha1:" + git("rev-parse", "main"); !strings.Contains(a.raw, want) || memory("dev") != "128Mi" {
		t.Errorf("not at %s with 128Mi but %s: %s", want, memory("dev"), a)
	}
	if message := string(s.asked[0]); !strings.Contains(message, "storefront-dev from GitRepository shop/deploy") {
		t.Errorf("the person was shown %s", message)
	}
	git("merge", "-q", "--ff-only", examples.Branch)
	a = s.call(t, "reconcile_flux", args{"ref": examples.Branch, "wait": "1m"})
	var out struct {
		Waves    [][]string
		Declined []struct{ Name, Code string }
		Results  []struct {
			Name     string
			Success  bool
			Revision string
		}
	}
	raw, err := json.Marshal(a.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(out.Waves) != "[[shop/storefront-dev] [shop/storefront-staging]]" && fmt.Sprint(out.Waves) != "[[shop/storefront-dev shop/storefront-staging]]" {
		t.Errorf("waves %v: %s", out.Waves, a)
	}
	if len(out.Declined) != 1 || out.Declined[0].Name != "storefront-production" || out.Declined[0].Code != "ValidationFailed" {
		t.Errorf("declined %v", out.Declined)
	}
	for _, r := range out.Results {
		if !r.Success || r.Revision != "main@sha1:"+git("rev-parse", examples.Branch) {
			t.Errorf("%s: %s", r.Name, a)
		}
	}
	if len(out.Results) != 2 || memory("dev") != "256Mi" || memory("staging") != "256Mi" {
		t.Errorf("dev has %s, staging %s: %s", memory("dev"), memory("staging"), a)
	}
	// What was declined Flux takes, without the field that there is not: its source
	// moved on, and nobody asked it to look twice.
	a = s.call(t, "reconcile_flux", args{"kustomization": shop + "/storefront-production", "wait": "1m"})
	if d := deployment("production"); a.err != nil || memory("production") != "256Mi" || *d.Spec.Replicas != 1 {
		t.Errorf("production has %s and %d replicas: %s", memory("production"), *d.Spec.Replicas, a)
	}
	// What can't be built is told in Flux's words.
	git("rm", "-q", "apps/storefront/base/service.yaml")
	git("-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "broken")
	a = s.call(t, "reconcile_flux", args{"kustomization": shop + "/storefront-staging", "wait": "5m"})
	if !strings.Contains(a.raw, "NotReady") || !strings.Contains(a.raw, "can't be built at main@sha1:"+git("rev-parse", "main")) || !strings.Contains(a.raw, "service.yaml") || !strings.Contains(a.raw, `0 of 1 Kustomizations`) {
		t.Errorf("one that can't be built: %s", a)
	}

	// Suspended while the person reads: the plan does not hold any more.
	s.mu.Lock()
	s.elicit = func(p json.RawMessage) any {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"})
		u.SetNamespace(shop)
		u.SetName("storefront-dev")
		if err := flux.Patch(context.Background(), u, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`))); err != nil {
			t.Error(err)
		}
		return accepts(p)
	}
	s.mu.Unlock()
	if a = s.call(t, "reconcile_flux", args{"kustomization": shop + "/storefront-dev"}); a.err == nil || a.err.Code != tools.Drifted || len(a.err.Differences) == 0 {
		t.Errorf("suspended meanwhile: %s", a)
	}
	asked := len(s.asked)
	for _, tc := range []struct {
		args   args
		code   tools.Code
		reason string
	}{
		{args{"kustomization": shop + "/storefront-dev"}, tools.Refused, "Suspended"},
		{args{"kustomization": shop + "/nowhere"}, tools.Refused, "NotInCluster"},
		{args{"kustomization": "storefront-dev"}, tools.InvalidArgument, ""},
		{args{"kustomization": shop + "/storefront-dev", "ref": "main"}, tools.InvalidArgument, ""},
		{args{"ref": "nowhere"}, tools.NotFound, ""},
		{args{"ref": examples.Branch, "cluster": "other"}, tools.InvalidArgument, ""},
		{args{"ref": examples.Branch, "wait": "1h"}, tools.InvalidArgument, ""},
	} {
		if a := s.call(t, "reconcile_flux", tc.args); a.err == nil || a.err.Code != tc.code || tc.reason != "" && a.err.Reason != tc.reason {
			t.Errorf("%v: %s", tc.args, a)
		}
	}
	if len(s.asked) != asked {
		t.Errorf("a person was asked about what is refused")
	}
}
