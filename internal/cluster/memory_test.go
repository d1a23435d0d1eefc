package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// passages is a snapshot of Passages, two namespaces, some labelled.
func passages(t testing.TB, perNamespace int) client.Client {
	t.Helper()
	var text strings.Builder
	for _, ns := range []string{"two", "one"} {
		for i := range perNamespace {
			l := ""
			if i%2 == 0 {
				l = fmt.Sprintf("labels: {hecate.dev/gate: g%d}, ", i%4)
			}
			fmt.Fprintf(&text, "---\n{apiVersion: hecate.dev/v1alpha1, kind: Passage, metadata: {%snamespace: %s, name: p%04d}}\n", l, ns, i)
		}
	}
	s, err := Open(t.Context(), Options{Snapshot: write(t, map[string]string{"a.yaml": text.String()})})
	if err != nil {
		t.Fatal(err)
	}
	return s.Client
}

func selector(t *testing.T, s string) client.ListOption {
	t.Helper()
	sel, err := labels.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return client.MatchingLabelsSelector{Selector: sel}
}

func TestMemoryListSelects(t *testing.T) {
	c := passages(t, 4)
	for name, tc := range map[string]struct {
		opts []client.ListOption
		want string
	}{
		"all":           {nil, "one/p0000 one/p0001 one/p0002 one/p0003 two/p0000 two/p0001 two/p0002 two/p0003"},
		"namespace":     {[]client.ListOption{client.InNamespace("two")}, "two/p0000 two/p0001 two/p0002 two/p0003"},
		"no namespace":  {[]client.ListOption{client.InNamespace("zzz")}, ""},
		"label":         {[]client.ListOption{client.InNamespace("one"), client.MatchingLabels{"hecate.dev/gate": "g2"}}, "one/p0002"},
		"without label": {[]client.ListOption{client.InNamespace("one"), selector(t, "!hecate.dev/gate")}, "one/p0001 one/p0003"},
		"set":           {[]client.ListOption{client.InNamespace("one"), selector(t, "hecate.dev/gate in (g0, g2),hecate.dev/gate!=g0")}, "one/p0002"},
		"name":          {[]client.ListOption{client.MatchingFields{"metadata.name": "p0001"}}, "one/p0001 two/p0001"},
		"both fields":   {[]client.ListOption{client.MatchingFields{"metadata.name": "p0001", "metadata.namespace": "two"}}, "two/p0001"},
		"not a name":    {[]client.ListOption{client.InNamespace("one"), client.MatchingFieldsSelector{Selector: fields.ParseSelectorOrDie("metadata.name!=p0001")}}, "one/p0000 one/p0002 one/p0003"},
	} {
		expect(t, name, names(t, c, hecate, "Passage", tc.opts...), strings.Fields(tc.want)...)
		typed, meta := &v1alpha1.PassageList{}, &metav1.PartialObjectMetadataList{}
		meta.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("PassageList"))
		for _, l := range []client.ObjectList{typed, meta} {
			if err := c.List(t.Context(), l, tc.opts...); err != nil {
				t.Fatal(err)
			}
		}
		var fromTyped, fromMeta []string
		for i := range typed.Items {
			fromTyped = append(fromTyped, typed.Items[i].Namespace+"/"+typed.Items[i].Name)
		}
		for i := range meta.Items {
			fromMeta = append(fromMeta, meta.Items[i].Namespace+"/"+meta.Items[i].Name)
		}
		expect(t, name+", typed", fromTyped, strings.Fields(tc.want)...)
		expect(t, name+", metadata only", fromMeta, strings.Fields(tc.want)...)
	}
	for name, opt := range map[string]client.ListOption{
		"a field of spec":  client.MatchingFields{"spec.gate": "x"},
		"a token of ours?": client.Continue("bm9wZQ"),
		"no base64":        client.Continue("%"),
	} {
		if err := c.List(t.Context(), listOf(hecate, "Passage"), opt); Classify(err) != CodeInvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMemoryPages(t *testing.T) {
	c := passages(t, 4)
	var got []string
	token := ""
	for page := 1; ; page++ {
		l := &v1alpha1.PassageList{}
		if err := c.List(t.Context(), l, client.Limit(3), client.Continue(token)); err != nil {
			t.Fatal(err)
		}
		for i := range l.Items {
			got = append(got, l.Items[i].Namespace+"/"+l.Items[i].Name)
		}
		rest := int64(8 - len(got))
		if rest == 0 {
			if l.Continue != "" || l.RemainingItemCount != nil || page != 3 {
				t.Errorf("last page %d: %+v", page, l.ListMeta)
			}
			break
		}
		if l.Continue == "" || *l.RemainingItemCount != rest || len(l.Items) != 3 {
			t.Fatalf("page %d: %d items, %+v", page, len(l.Items), l.ListMeta)
		}
		token = l.Continue
	}
	expect(t, "pages", got, names(t, c, hecate, "Passage")...)
}

// What a caller does to its copy stays its own.
func TestMemoryGivesCopies(t *testing.T) {
	c := passages(t, 1)
	key := client.ObjectKey{Namespace: "one", Name: "p0000"}
	for range 2 {
		var p v1alpha1.Passage
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Passage"))
		l := &v1alpha1.PassageList{}
		for _, err := range []error{c.Get(t.Context(), key, &p), c.Get(t.Context(), key, u), c.List(t.Context(), l)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if p.Labels["hecate.dev/gate"] != "g0" || u.GetLabels()["hecate.dev/gate"] != "g0" || l.Items[0].Labels["hecate.dev/gate"] != "g0" {
			t.Fatal("an earlier caller changed the store")
		}
		p.Labels["hecate.dev/gate"] = "x"
		l.Items[0].Labels["hecate.dev/gate"] = "x"
		if err := unstructured.SetNestedField(u.Object, "x", "metadata", "labels", "hecate.dev/gate"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMemoryRefusesEveryWrite(t *testing.T) {
	c := passages(t, 1)
	p := &v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "p0000"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"abort":true}}`))
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": hecate, "kind": "Passage", "metadata": map[string]any{"name": "p0000"}}}
	apply := client.ApplyConfigurationFromUnstructured(u)
	ctx := t.Context()
	for verb, err := range map[string]error{
		"create":           c.Create(ctx, p),
		"update":           c.Update(ctx, p),
		"patch":            c.Patch(ctx, p, patch),
		"delete":           c.Delete(ctx, p),
		"deletecollection": c.DeleteAllOf(ctx, p),
		"apply":            c.Apply(ctx, apply),
		"status create":    c.Status().Create(ctx, p, p),
		"status update":    c.Status().Update(ctx, p),
		"status patch":     c.Status().Patch(ctx, p, patch),
		"status apply":     c.Status().Apply(ctx, apply),
		"scale update":     c.SubResource("scale").Update(ctx, p),
	} {
		var ro *ReadOnlyError
		if !errors.As(err, &ro) || ro.Mode != ModeSnapshot || ro.Kind != "Passage" || ro.Name != "p0000" || Classify(err) != CodeRefused {
			t.Errorf("%s: got %v (%+v)", verb, err, ro)
		}
	}
	if err := c.SubResource("scale").Get(ctx, p, p); Classify(err) != CodeInvalidArgument {
		t.Errorf("reading a subresource: %v", err)
	}
}

func TestMemoryKnowsScopes(t *testing.T) {
	c := passages(t, 1)
	for kind, want := range map[string]bool{"Secret": true, "Namespace": false} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind(kind)
		got, err := c.IsObjectNamespaced(u)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", kind, got, err)
		}
	}
	if gvk, err := c.GroupVersionKindFor(&v1alpha1.Gate{}); err != nil || gvk.Kind != "Gate" || c.Scheme() != Scheme() || c.RESTMapper() == nil {
		t.Errorf("%v, %v", gvk, err)
	}
}
