package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// loaders is how many objects are created at a time: benchmarks load thousands.
const loaders = 8

// Load creates the objects of YAML files, or of the *.yaml files of folders,
// in namespace. With namespace "" each stays in its own, made where it is missing.
//
// The API server checks spec and status strictly, like anybody's. Then
// creationTimestamp, generation, uid and managedFields are set to the file's: the order of
// Bundles, a status that lags and ages are what they were where the file was taken.
//
// Left out, and logged: Events, which the API server refuses when their object
// is in another namespace, and objects of kinds that it does not serve.
func (c *Cluster) Load(t testing.TB, namespace string, paths ...string) {
	t.Helper()
	objects, err := readObjects(paths...)
	if err != nil {
		t.Fatal(err)
	}
	c.create(t, namespace, objects)
}

// Create is Load for objects made by the test: each needs its apiVersion and kind.
func (c *Cluster) Create(t testing.TB, namespace string, objects ...client.Object) {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, o := range objects {
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatalf("cannot create the %T %s: %v", o, o.GetName(), err)
		}
		all = append(all, &unstructured.Unstructured{Object: m})
	}
	c.create(t, namespace, all)
}

func (c *Cluster) create(t testing.TB, namespace string, objects []*unstructured.Unstructured) {
	t.Helper()
	namespaces := map[string]bool{}
	left := map[string]int{}
	wanted := make([]*unstructured.Unstructured, 0, len(objects))
	for _, o := range objects {
		if o.GetKind() == "Event" {
			left[o.GetKind()]++
			continue
		}
		mapping, err := c.client.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		switch {
		case meta.IsNoMatchError(err):
			left[o.GetKind()]++
			continue
		case err != nil:
			t.Fatalf("cannot load %s %s: %v", o.GetKind(), o.GetName(), err)
		case mapping.Scope.Name() == meta.RESTScopeNameNamespace:
			if namespace != "" {
				o.SetNamespace(namespace)
			} else if ns := o.GetNamespace(); !namespaces[ns] {
				namespaces[ns] = true
				if err := c.ensureNamespace(t, ns); err != nil {
					t.Fatalf("cannot make namespace %q for %s %s: %v", ns, o.GetKind(), o.GetName(), err)
				}
			}
		}
		wanted = append(wanted, o)
	}
	if len(left) > 0 {
		t.Logf("not loaded, by kind: %v", left)
	}
	// Oldest first, for those whose time cannot be set afterwards.
	slices.SortStableFunc(wanted, func(a, b *unstructured.Unstructured) int {
		return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
	})
	var g errgroup.Group
	g.SetLimit(loaders)
	for _, o := range wanted {
		g.Go(func() error {
			if err := c.createOne(context.Background(), o); err != nil {
				return fmt.Errorf("cannot load %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// createOne creates an object, its status, and what of its metadata the API
// server would not take from a client.
func (c *Cluster) createOne(ctx context.Context, o *unstructured.Unstructured) error {
	kept := map[string]any{}
	for _, field := range []string{"creationTimestamp", "generation", "uid"} {
		if v, ok, err := unstructured.NestedFieldNoCopy(o.Object, "metadata", field); err == nil && ok && v != nil {
			kept[field] = v
		}
	}
	if kept["creationTimestamp"] != nil {
		// Who last changed it and when, too, or every object were edited just now.
		managed, _, err := unstructured.NestedSlice(o.Object, "metadata", "managedFields")
		if err != nil {
			return fmt.Errorf("its metadata: %w", err)
		}
		kept["managedFields"] = managed
	}
	status, hasStatus := o.Object["status"]
	for _, field := range []string{"creationTimestamp", "generation", "uid", "resourceVersion", "managedFields", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if err := c.client.Create(ctx, o, client.FieldValidation("Strict")); err != nil {
		return err
	}
	// A typed object without a status has an empty one, which nobody wrote.
	if m, isMap := status.(map[string]any); hasStatus && (!isMap || len(m) > 0) {
		o.Object["status"] = status
		if err := c.client.Status().Update(ctx, o, client.FieldValidation("Strict")); err != nil {
			return fmt.Errorf("its status: %w", err)
		}
	}
	if err := c.setMetadata(o, kept); err != nil {
		return fmt.Errorf("its metadata: %w", err)
	}
	return nil
}

// setMetadata writes fields of a custom object's metadata into the store, past
// the API server, which then sees the change as anybody's. Other kinds are not
// stored as JSON and stay as they are.
func (c *Cluster) setMetadata(o *unstructured.Unstructured, fields map[string]any) error {
	k, ok := c.custom(o)
	if !ok || len(fields) == 0 {
		return nil
	}
	key := fmt.Sprintf("/registry/%s/%s/", k.gvk.Group, k.plural)
	if k.scoped {
		key += o.GetNamespace() + "/"
	}
	key += o.GetName()
	value, _, err := c.etcd.get(key)
	if err != nil {
		return err
	}
	var stored map[string]any
	if err := utiljson.Unmarshal(value, &stored); err != nil {
		return fmt.Errorf("what is stored at %s: %w", key, err)
	}
	for name, v := range fields {
		if err := unstructured.SetNestedField(stored, v, "metadata", name); err != nil {
			return fmt.Errorf("metadata.%s: %w", name, err)
		}
	}
	if value, err = json.Marshal(stored); err != nil {
		return err
	}
	return c.etcd.put(key, value)
}

// custom returns the CRD of an object, if it has one of Start's.
func (c *Cluster) custom(o *unstructured.Unstructured) (crd, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		if k.gvk.GroupKind() == o.GroupVersionKind().GroupKind() {
			return k, true
		}
	}
	return crd{}, false
}
