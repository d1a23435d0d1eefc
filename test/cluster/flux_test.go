package cluster

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/live"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/reconcile"
)

// anyKind is a client of the administrator for every kind that the server has.
func anyKind(t *testing.T, c *Cluster) client.Client {
	t.Helper()
	cl, err := client.New(c.Config(Admin), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

func TestLive(t *testing.T) {
	c, _ := oracle(t)
	cl := anyKind(t, c)
	crds, err := live.CRDs(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, crd := range crds {
		name, _, _ := unstructured.NestedString(crd, "metadata", "name")
		found = found || name == "kustomizations.kustomize.toolkit.fluxcd.io"
	}
	if !found {
		t.Errorf("Flux's CRDs are not among the %d", len(crds))
	}
	object := func(version, kind, ns string, more map[string]any) map[string]any {
		o := map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": "live", "namespace": ns}}
		for k, v := range more {
			o[k] = v
		}
		return o
	}
	ask := live.DryRun(cl)
	for name, x := range map[string]struct {
		obj  map[string]any
		want string // "" accepted, "?" can't say, else a part of the refusal
	}{
		"sound":                 {object("v1", "ConfigMap", "shop", map[string]any{"data": map[string]any{"a": "b"}}), ""},
		"no namespace":          {map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "live"}}, ""},
		"an unknown field":      {object("v1", "ConfigMap", "shop", map[string]any{"dta": map[string]any{"a": "b"}}), "dta"},
		"a missing field":       {object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "shop", map[string]any{"spec": map[string]any{"prune": true}}), "spec.interval"},
		"an unknown kind":       {object("example.com/v1", "Nothing", "shop", nil), "?"},
		"a namespace not there": {object("v1", "ConfigMap", "nowhere", nil), "?"},
		"a secret":              {object("v1", "Secret", "shop", map[string]any{"type": "kubernetes.io/tls", "stringData": map[string]any{"other": "canary-9f2"}}), "data[tls.crt]"},
	} {
		t.Run(name, func(t *testing.T) {
			err := ask(t.Context(), x.obj)
			switch {
			case x.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case x.want == "?" && !errors.Is(err, gitops.ErrCannotSay):
				t.Errorf("got %v, want that it can't be said", err)
			case x.want != "" && x.want != "?" && (err == nil || errors.Is(err, gitops.ErrCannotSay) || !strings.Contains(err.Error(), x.want)):
				t.Errorf("got %v, want a refusal with %q", err, x.want)
			case err != nil && strings.Contains(err.Error(), "canary-9f2"):
				t.Errorf("a value of the Secret is in %v", err)
			}
		})
	}
}

// controller answers requests to reconcile as Flux's controllers do: it notes the
// request and reports the object as ready, or as failed.
func controller(ctx context.Context, cl client.Client, fail string, wg *sync.WaitGroup) {
	defer wg.Done()
	for ctx.Err() == nil {
		for _, kind := range []schema.GroupVersionKind{{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepositoryList"}, {Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "KustomizationList"}} {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := cl.List(ctx, list, client.InNamespace("shop")); err != nil {
				continue // the end, or a busy machine: the next round
			}
			for i := range list.Items {
				answer(ctx, cl, &list.Items[i], fail)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func answer(ctx context.Context, cl client.Client, u *unstructured.Unstructured, fail string) {
	requested := u.GetAnnotations()["reconcile.fluxcd.io/requestedAt"]
	handled, _, _ := unstructured.NestedString(u.Object, "status", "lastHandledReconcileAt")
	if requested == "" || requested == handled {
		return
	}
	ready := "True"
	if u.GetName() == fail {
		ready = "False"
	}
	status := map[string]any{"lastHandledReconcileAt": requested, "observedGeneration": u.GetGeneration(),
		"conditions": []any{map[string]any{"type": "Ready", "status": ready, "reason": "Test", "message": "said the test", "observedGeneration": u.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)}}}
	if u.GetKind() == "GitRepository" {
		status["artifact"] = map[string]any{"revision": "main@sha1:abc", "digest": "sha256:" + strings.Repeat("a", 64), "path": "x", "url": "http://x.invalid/x", "lastUpdateTime": time.Now().UTC().Format(time.RFC3339)}
	} else {
		status["lastAppliedRevision"], status["lastAttemptedRevision"] = "main@sha1:abc", "main@sha1:abc"
	}
	if ready == "False" {
		status["conditions"] = append(status["conditions"].([]any), map[string]any{"type": "Stalled", "status": "True", "reason": "Test", "message": "for good", "observedGeneration": u.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
	}
	u.Object["status"] = status
	// A conflict is tried again in the next round.
	_ = cl.Status().Update(ctx, u)
}

// TestReconcile works a plan off against the API server, with a controller that
// only answers.
func TestReconcile(t *testing.T) {
	c, _ := oracle(t)
	cl := anyKind(t, c)
	create := func(version, kind, name string, spec map[string]any) {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop"}, "spec": spec}}
		if err := cl.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cl.Delete(context.Background(), u) })
	}
	create("source.toolkit.fluxcd.io/v1", "GitRepository", "deploy", map[string]any{"interval": "1m", "url": "https://example.com/x"})
	source := reconcile.SourceRef{Kind: "GitRepository", Namespace: "shop", Name: "deploy"}
	key := func(name string) reconcile.Key { return reconcile.Key{Namespace: "shop", Name: name} }
	var nodes []reconcile.Node
	var want []reconcile.Key
	for name, needs := range map[string][]reconcile.Key{"base": nil, "web": {key("base")}, "broken": {key("base")}, "behind": {key("broken")}} {
		create("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, map[string]any{"interval": "1m", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "deploy"}})
		nodes = append(nodes, reconcile.Node{Key: key(name), DependsOn: needs, Source: source, Verdict: "pass", State: "rendered"})
		want = append(want, key(name))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Add(1)
	go controller(ctx, cl, "broken", &wg)
	defer wg.Wait()
	defer cancel()
	out, err := (&reconcile.Executor{Client: cl, Poll: 50 * time.Millisecond, Timeout: time.Minute}).Execute(ctx, reconcile.Build(nodes, want))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]reconcile.Code{}
	for _, r := range out.Results {
		got[r.Name] = r.Code
	}
	for name, code := range map[string]reconcile.Code{"base": reconcile.Ready, "web": reconcile.Ready, "broken": reconcile.NotReady, "behind": reconcile.DependencyFailed} {
		if got[name] != code {
			t.Errorf("%s: %s, want %s", name, got[name], code)
		}
	}
}
