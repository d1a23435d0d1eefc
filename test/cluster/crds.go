package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crd is one kind that a CustomResourceDefinition added, in its stored version.
type crd struct {
	gvk    schema.GroupVersionKind
	plural string
	scoped bool // in a namespace
}

// installCRDs creates the CRDs of dir, once, and returns when the API server
// answers for every kind of them.
func (c *Cluster) installCRDs(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("cannot install the CRDs of %s: %w", dir, err)
	}
	if c.installed[dir] {
		return nil
	}
	objects, err := readObjects(dir)
	if err != nil {
		return fmt.Errorf("cannot install the CRDs of %s: %w", dir, err)
	}
	var kinds []crd
	for _, o := range objects {
		k, err := kindOf(o)
		if err == nil {
			err = c.client.Create(context.Background(), o, client.FieldValidation("Strict"))
		}
		if err != nil {
			return fmt.Errorf("cannot install %s %s of %s: %w", o.GetKind(), o.GetName(), dir, err)
		}
		kinds = append(kinds, k)
	}
	for _, k := range kinds {
		if err := c.waitServed(k); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.installed[dir] = true
	c.kinds = append(c.kinds, kinds...)
	return nil
}

// kindOf reads what a CustomResourceDefinition defines.
func kindOf(o *unstructured.Unstructured) (crd, error) {
	if o.GetKind() != "CustomResourceDefinition" {
		return crd{}, fmt.Errorf("it is a %s, only CustomResourceDefinitions are expected here", o.GetKind())
	}
	var k crd
	// Strings that are missing stay empty, and the API server refuses the object.
	k.gvk.Group, _, _ = unstructured.NestedString(o.Object, "spec", "group")
	k.gvk.Kind, _, _ = unstructured.NestedString(o.Object, "spec", "names", "kind")
	k.plural, _, _ = unstructured.NestedString(o.Object, "spec", "names", "plural")
	scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
	k.scoped = scope == "Namespaced"
	versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
	if err != nil {
		return crd{}, err
	}
	for _, v := range versions {
		if m, ok := v.(map[string]any); ok && m["storage"] == true {
			k.gvk.Version, _ = m["name"].(string)
		}
	}
	return k, nil
}

// waitServed waits until a LIST of the kind works: "Established" alone comes
// a moment before the paths do.
func (c *Cluster) waitServed(k crd) error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := c.established(k)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *Cluster) established(k crd) error {
	name := k.plural + "." + k.gvk.Group
	o := &unstructured.Unstructured{}
	o.SetAPIVersion("apiextensions.k8s.io/v1")
	o.SetKind("CustomResourceDefinition")
	if err := c.client.Get(context.Background(), client.ObjectKey{Name: name}, o); err != nil {
		return fmt.Errorf("cannot see whether the CRD %s is established: %w", name, err)
	}
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("the conditions of the CRD %s: %w", name, err)
	}
	for _, condition := range conditions {
		if m, ok := condition.(map[string]any); ok && m["type"] == "Established" && m["status"] == "True" {
			if err := c.client.List(context.Background(), k.list(), client.Limit(1)); err != nil {
				return fmt.Errorf("the CRD %s is established and its kind not served: %w", name, err)
			}
			return nil
		}
	}
	return fmt.Errorf("the CRD %s is not established: conditions %v", name, conditions)
}

// list is an empty list of the kind.
func (k crd) list() *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	return l
}

// Clear deletes every custom object of a namespace, as the end of the test that
// made it does.
func (c *Cluster) Clear(t testing.TB, namespace string) {
	t.Helper()
	if err := c.clear(namespace); err != nil {
		t.Fatal(err)
	}
}

// clear deletes every custom object of a namespace. The namespace itself would
// never finish deleting, and what stays behind would be on every board over
// all namespaces that a later test looks at.
func (c *Cluster) clear(namespace string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.kinds {
		if !k.scoped {
			continue
		}
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(k.gvk)
		err := c.client.DeleteAllOf(context.Background(), o, client.InNamespace(namespace))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cannot clear namespace %s of %s: %w", namespace, k.plural, err)
		}
	}
	return nil
}
