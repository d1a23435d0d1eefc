package writes

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

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
// with a controller that only answers.
func TestReconcileFlux(t *testing.T) {
	w := newWorld(t)
	cluster.Start(t, "testdata/crds")
	flux, err := client.New(w.Config(cluster.Admin), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// A namespace never goes away here: another run of this test may have made it.
	_ = flux.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}})
	create := func(version, kind, name string, spec map[string]any) {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": shop}, "spec": spec}}
		if err := flux.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flux.Delete(context.Background(), u) })
	}
	create("source.toolkit.fluxcd.io/v1", "GitRepository", "deploy", map[string]any{"interval": "1m", "url": "https://example.com/x"})
	for _, name := range []string{"storefront-dev", "storefront-staging", "storefront-production"} {
		create("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, map[string]any{"interval": "1m", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "deploy"}})
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { fluxAnswers(ctx, flux) })
	defer wg.Wait()
	defer cancel()

	repository := t.TempDir()
	if err := examples.Repository(repository); err != nil {
		t.Fatal(err)
	}
	s := w.serve(t, cluster.Admin, "--repo", repository)
	s.elicit = accepts
	s.initialize(t, true)

	a := s.call(t, "reconcile_flux", args{"kustomization": shop + "/storefront-dev", "wait": "1m"})
	if a.err != nil || !strings.Contains(a.raw, "1 of 1 Kustomizations are ready") {
		t.Fatalf("one: %s", a)
	}
	if message := string(s.asked[0]); !strings.Contains(message, "storefront-dev from GitRepository shop/deploy") {
		t.Errorf("the person was shown %s", message)
	}
	a = s.call(t, "reconcile_flux", args{"ref": examples.Branch, "wait": "1m"})
	var out struct {
		Waves    [][]string
		Declined []struct{ Name, Code string }
		Results  []struct {
			Name    string
			Success bool
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
		if !r.Success {
			t.Errorf("%s: %s", r.Name, a)
		}
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

// fluxAnswers answers requests to reconcile as Flux's controllers do.
func fluxAnswers(ctx context.Context, cl client.Client) {
	for ctx.Err() == nil {
		for _, kind := range []schema.GroupVersionKind{{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepositoryList"}, {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "KustomizationList"}} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := cl.List(ctx, list, client.InNamespace(shop)); err != nil {
				continue // the end, or a busy machine: the next round
			}
			for i := range list.Items {
				u := &list.Items[i]
				requested := u.GetAnnotations()["reconcile.fluxcd.io/requestedAt"]
				if handled, _, _ := unstructured.NestedString(u.Object, "status", "lastHandledReconcileAt"); requested == "" || requested == handled {
					continue
				}
				const revision = "main@sha1:abc"
				u.Object["status"] = map[string]any{"lastHandledReconcileAt": requested, "observedGeneration": u.GetGeneration(), "lastAppliedRevision": revision,
					"artifact":   map[string]any{"revision": revision, "digest": "sha256:" + strings.Repeat("a", 64), "path": "x", "url": "http://x.invalid/x", "lastUpdateTime": time.Now().UTC().Format(time.RFC3339)},
					"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Test", "message": "ready", "observedGeneration": u.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}
				// A conflict is tried again in the next round.
				_ = cl.Status().Update(ctx, u)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}
