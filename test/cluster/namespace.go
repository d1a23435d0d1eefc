package cluster

import (
	"context"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var notInAName = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace makes a namespace for this test, named after it, and returns the
// name. When the test ends its custom objects are deleted.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	name := notInAName.ReplaceAllString(strings.ToLower(t.Name()), "-")
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 50)] + "-"}}
	if err := c.client.Create(t.Context(), ns); err != nil {
		t.Fatalf("cannot make a namespace for %s: %v", t.Name(), err)
	}
	c.clearAfter(t, ns.Name)
	return ns.Name
}

// ensureNamespace makes a namespace of that name if there is none.
func (c *Cluster) ensureNamespace(t testing.TB, name string) error {
	err := c.client.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	c.clearAfter(t, name)
	return nil
}

func (c *Cluster) clearAfter(t testing.TB, namespace string) {
	t.Cleanup(func() {
		if err := c.clear(namespace); err != nil {
			t.Error(err)
		}
	})
}
