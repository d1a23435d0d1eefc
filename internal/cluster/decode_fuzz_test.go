package cluster

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Whatever a snapshot holds: no panic, and an error is a coded one.
func FuzzSnapshot(f *testing.F) {
	for _, seed := range []string{
		"", "---\n---\n", "a: &a [*a]", "a: &a {b: 1}\nc: *a", "[1]", "{}", "\x00", "\xef\xbb\xbf{}", "!!binary x: y", "? {a: b}\n: c",
		object(hecate, "Gate", "one", "dev"),
		object("v1", "Secret", "", "s") + "--- " + object(hecate, "Passage", "one", "p"),
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: hecate.dev/v1alpha1, kind: Bundle, metadata: {name: b, labels: {a: b}}, spec: {artifacts: [{image: {repo: r}}]}}\n",
		`{"apiVersion":"hecate.dev/v1alpha1","kind":"GateList","items":[{"metadata":{"name":"a"},"spec":{"passage":{"steps":[{"uses":"http","with":{"a":1e99}}]}}}]}`,
		"apiVersion: hecate.dev/v1alpha1\nkind: Gate\nmetadata: {name: x, creationTimestamp: .nan}\nspec: {windows: [{duration: 5}]}",
		"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: {group: 1, names: []}",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, asJSON bool) {
		name := "a.yaml"
		if asJSON {
			name = "a.json"
		}
		s, err := OpenDemo(fstest.MapFS{name: {Data: data}, "meta.json": {Data: []byte(`{}`)}}, nil, Options{})
		if err != nil {
			var coded *SnapshotError
			if !errors.As(err, &coded) || coded.Code == "" || coded.File != name {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for _, kind := range []string{"Beacon", "Bundle", "Gate", "Passage"} {
			if err := s.Client.List(t.Context(), listOf(hecate, kind)); err != nil && Classify(err) != CodeKindNotInstalled {
				t.Fatal(err)
			}
		}
		if err := s.Client.List(t.Context(), &v1alpha1.GateList{}); err != nil && Classify(err) != CodeKindNotInstalled {
			t.Fatal(err)
		}
	})
}
