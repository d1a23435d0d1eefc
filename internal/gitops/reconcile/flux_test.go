package reconcile

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// fluxCluster is a fake API server with controllers that answer requests.
type fluxCluster struct {
	t      *testing.T
	server client.WithWatch // as the controllers see it
	client client.Client    // as the tested code sees it

	mu       sync.Mutex
	gets     map[string]int
	patches  []string // "Kind name" in their order
	flying   int
	mostUp   int
	failGet  func(o string) error
	failPut  func(o string) error
	onPatch  func(o string)
	slowness time.Duration

	// answer is what a controller makes of an object's request; nil is no answer.
	answer map[string]func(u *unstructured.Unstructured) map[string]any
	// revision is that of each source's next fetch.
	revision string
}

func newFlux(t *testing.T, objects ...*unstructured.Unstructured) *fluxCluster {
	t.Helper()
	c := &fluxCluster{t: t, gets: map[string]int{}, revision: "main@sha1:new", answer: map[string]func(*unstructured.Unstructured) map[string]any{}}
	scheme := runtime.NewScheme()
	kinds := []schema.GroupVersionKind{kustomizationKind}
	for k := range requestable {
		kinds = append(kinds, sourceGroup.WithKind(k))
	}
	b := fake.NewClientBuilder()
	for _, k := range kinds {
		scheme.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		list := k
		list.Kind += "List"
		scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(k)
		b.WithStatusSubresource(u)
	}
	b.WithScheme(scheme)
	for _, o := range objects {
		b.WithObjects(o)
	}
	c.server = b.Build()
	c.client = interceptor.NewClient(c.server, interceptor.Funcs{
		Get: func(ctx context.Context, cl client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			name := label(o, k.Name)
			c.mu.Lock()
			c.gets[name]++
			failing := c.failGet
			c.mu.Unlock()
			if failing != nil {
				if err := failing(name); err != nil {
					return err
				}
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return cl.Get(ctx, k, o, opts...)
		},
		Patch: func(ctx context.Context, cl client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			c.inspect(o, p)
			name := label(o, o.GetName())
			c.mu.Lock()
			c.flying++
			c.mostUp = max(c.mostUp, c.flying)
			failing, after, slow := c.failPut, c.onPatch, c.slowness
			c.mu.Unlock()
			time.Sleep(slow)
			defer func() {
				c.mu.Lock()
				c.flying--
				c.mu.Unlock()
			}()
			if failing != nil {
				if err := failing(name); err != nil {
					return err
				}
			}
			err := cl.Patch(ctx, o, p, opts...)
			c.mu.Lock()
			c.patches = append(c.patches, name)
			c.mu.Unlock()
			if after != nil {
				after(name)
			}
			return err
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			for _, k := range kinds {
				c.reconcileAll(ctx, k)
			}
			time.Sleep(time.Millisecond)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return c
}

// label is "Kind name".
func label(o client.Object, name string) string {
	return o.GetObjectKind().GroupVersionKind().Kind + " " + name
}

// inspect holds every patch to the one annotation.
func (c *fluxCluster) inspect(o client.Object, p client.Patch) {
	data, err := p.Data(o)
	var body struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err == nil {
		err = dec.Decode(&body)
	}
	_, timeErr := time.Parse(time.RFC3339Nano, body.Metadata.Annotations[requestedAt])
	if err != nil || timeErr != nil || p.Type() != types.MergePatchType || len(body.Metadata.Annotations) != 1 {
		c.t.Errorf("a patch of more or else than the annotation: %s %s (%v, %v)", p.Type(), data, err, timeErr)
	}
}

// reconcileAll answers the requests that are not handled yet, as the controllers
// do: what is suspended is left alone.
func (c *fluxCluster) reconcileAll(ctx context.Context, k schema.GroupVersionKind) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(k)
	if err := c.server.List(ctx, list); err != nil {
		if ctx.Err() == nil {
			c.t.Errorf("list %s: %v", k.Kind, err)
		}
		return
	}
	for i := range list.Items {
		u := &list.Items[i]
		s := statusOf(u)
		if s.suspended || s.annotation == "" || s.annotation == s.handled {
			continue
		}
		c.mu.Lock()
		answer := c.answer[k.Kind+" "+u.GetName()]
		revision := c.revision
		c.mu.Unlock()
		if answer == nil {
			answer = func(u *unstructured.Unstructured) map[string]any { return ready(u, revision) }
		}
		status := answer(u)
		if status == nil {
			continue
		}
		status["lastHandledReconcileAt"] = s.annotation
		c.setStatus(ctx, u, status)
	}
}

func (c *fluxCluster) setStatus(ctx context.Context, u *unstructured.Unstructured, status map[string]any) {
	patch, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		err = c.server.Status().Patch(ctx, u.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
		c.t.Errorf("status of %s: %v", u.GetName(), err)
	}
}

func condition(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
}

// ready is the status of an object that reconciled.
func ready(u *unstructured.Unstructured, revision string) map[string]any {
	s := map[string]any{
		"observedGeneration": u.GetGeneration(),
		"conditions":         []any{condition("Ready", "True", "Succeeded", "done")},
	}
	if u.GetKind() == "Kustomization" {
		s["lastAppliedRevision"] = revision
	} else {
		s["artifact"] = map[string]any{"revision": revision}
	}
	return s
}

func notReady(reason, message string) func(*unstructured.Unstructured) map[string]any {
	return func(u *unstructured.Unstructured) map[string]any {
		return map[string]any{"observedGeneration": u.GetGeneration(), "conditions": []any{condition("Ready", "False", reason, message)}}
	}
}

// never is a controller that does not answer.
func never(*unstructured.Unstructured) map[string]any { return nil }

func obj(gvk schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	u := object{gvk, key(name)}.empty()
	u.SetGeneration(3)
	if spec == nil {
		spec = map[string]any{}
	}
	u.Object["spec"] = spec
	return u
}

func ks(name string) *unstructured.Unstructured { return obj(kustomizationKind, name, nil) }

func repo(name string) *unstructured.Unstructured {
	return obj(sourceGroup.WithKind("GitRepository"), name, nil)
}

func suspended(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.Object["spec"].(map[string]any)["suspend"] = true
	return u
}
