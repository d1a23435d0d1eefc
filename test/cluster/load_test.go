package cluster

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestLoad(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	c.Load(t, ns, "testdata/objects")
	assertLoaded(t, c, ns, "testdata/objects", 3)
	if status, _ := ask(t, c, Admin, http.MethodGet, "/api/v1/namespaces/elsewhere", ""); status != http.StatusNotFound {
		t.Errorf("the file's own namespace: %d, want 404: everything goes to the given one", status)
	}
}

func TestLoadKeepsNamespaces(t *testing.T) {
	c := Start(t)
	c.Load(t, "", "testdata/objects")
	assertLoaded(t, c, "elsewhere", "testdata/objects", 3)
}

func TestLoadedObjectsCanBeChanged(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	c.Load(t, ns, "testdata/objects")
	path := hecate + "/namespaces/" + ns + "/gates/dev"
	changed := mustAsk(t, c, Admin, http.MethodPatch, path, `{"spec":{"suspend":true}}`)
	if got := changed["metadata"].(map[string]any)["generation"]; got != 4.0 {
		t.Errorf("generation %v after a change of spec, want 4", got)
	}
	mustAsk(t, c, Admin, http.MethodDelete, path, "")
}

func TestCreate(t *testing.T) {
	c := Start(t)
	ns := c.Namespace(t)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hecate.dev/v1alpha1", "kind": "Beacon", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"watch": []any{map[string]any{"provider": map[string]any{"name": "p"}}}},
	}}
	o.SetCreationTimestamp(metav1.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC))
	c.Create(t, ns, o)
	got := mustAsk(t, c, Viewer, http.MethodGet, hecate+"/namespaces/"+ns+"/beacons/web", "")
	if at := got["metadata"].(map[string]any)["creationTimestamp"]; at != "2026-09-01T12:00:00Z" {
		t.Errorf("creationTimestamp %v, want the object's", at)
	}
}

// TestLoadScenarios holds the project's CRDs, too, against objects of a real controller.
func TestLoadScenarios(t *testing.T) {
	folders, err := filepath.Glob("../../../shared/scenarios/*/meta.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(folders) == 0 {
		t.Skip("../shared/scenarios is not beside the repository")
	}
	c := Start(t)
	for _, meta := range folders {
		dir := filepath.Dir(meta)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			ns := c.Namespace(t)
			c.Load(t, ns, dir)
			assertLoaded(t, c, ns, dir, -1)
		})
	}
}

// assertLoaded compares every custom object of the path with what the API
// server has in namespace: all of it, but for what an API server numbers itself.
func assertLoaded(t *testing.T, c *Cluster, namespace, path string, count int) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	objects, err := readObjects(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, want := range objects {
		if _, ok := c.custom(want); !ok {
			continue
		}
		seen++
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(want.GroupVersionKind())
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: want.GetName()}, got); err != nil {
			t.Errorf("%s %s: %v", want.GetKind(), want.GetName(), err)
			continue
		}
		if want.GetUID() == "" {
			got.SetUID("")
		}
		want.SetNamespace(namespace)
		for _, o := range []*unstructured.Unstructured{want, got} {
			o.SetResourceVersion("")
			o.SetManagedFields(nil)
		}
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Errorf("%s %s differs from the file (-file +server):\n%s", want.GetKind(), want.GetName(), diff)
		}
	}
	if seen == 0 || count >= 0 && seen != count {
		t.Errorf("%d custom objects in %s, want %d", seen, path, count)
	}
}
