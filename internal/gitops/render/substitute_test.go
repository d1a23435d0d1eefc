package render_test

import (
	"strings"
	"testing"

	fluxkustomize "github.com/fluxcd/pkg/kustomize"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// substitutions are objects with expressions; A, B and EMPTY have values.
var substitutions = map[string]string{
	"plain":            "data: {x: '${A}', y: 'a${A}b${B}c'}",
	"default":          "data: {x: '${NONE:=d}', y: '${A:-d}', z: '${EMPTY:-d}'}",
	"nested default":   "data: {x: '${NONE:=${A}}'}",
	"operators":        "data: {x: '${A^^}', y: '${A:0:2}', z: '${A/l/L}', w: '${#A}', v: '${A#v}', u: '${A%e}'}",
	"escaped":          "data: {x: '$${A}', y: 'costs $5', z: '$(A)', w: '$$'}",
	"unset":            "data: {x: '${NONE}', y: 'a${NONE}b'}",
	"becomes a number": "data:\n  x: ${NUMBER}\n  y: '${NUMBER}'\n  z: \"${NUMBER}\"\n",
	"becomes a bool":   "data:\n  x: ${BOOL}\n",
	"key":              "data: {'${A}': x}",
	"name":             "data: {}\nkind2: ${A}",
	"text block":       "data:\n  x: |\n    line ${A}\n    and ${B:=z}\n",
	"disabled":         "metadata: {name: x, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\ndata: {x: '${A}'}",
	"disabled label":   "metadata: {name: x, labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\ndata: {x: '${A}'}",
	"no dollar":        "data: {big: 12345678901234567, f: 1.0, t: 2024-01-01, oct: '0644'}",
	"dollar beside":    "data: {big: 12345678901234567, f: 1.0, t: 2024-01-01, oct: '0644', p: $}",
}

var values = map[string]string{"A": "value", "B": "b", "EMPTY": "", "NUMBER": "5", "BOOL": "true"}

func document(body string) string {
	if strings.Contains(body, "metadata:") {
		return "apiVersion: v1\nkind: ConfigMap\n" + body + "\n"
	}
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n" + body + "\n"
}

func TestSubstituteIsFluxSubstitute(t *testing.T) {
	factory := provider.NewDefaultDepProvider().GetResourceFactory()
	inline := map[string]any{}
	for k, v := range values {
		inline[k] = v
	}
	ks := kustomization(map[string]any{"postBuild": map[string]any{"substitute": inline}})
	for name, body := range substitutions {
		t.Run(name, func(t *testing.T) {
			res, err := factory.FromBytes([]byte(document(body)))
			if err != nil {
				t.Fatal(err)
			}
			data, err := res.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := render.Substitute(t.Context(), render.Object{JSON: data}, render.Vars{Values: values})
			if err != nil {
				t.Fatal(err)
			}
			want, err := fluxkustomize.SubstituteVariables(t.Context(), nil, unstructured.Unstructured{Object: ks}, res, fluxkustomize.SubstituteWithDryRun(true))
			if err != nil {
				t.Fatal(err)
			}
			if want == nil { // the mark that keeps an object
				want = res
			}
			w, err := want.AsYAML()
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(w), asYAML(t, []render.Object{got})[0]); d != "" {
				t.Errorf("not what fluxcd/pkg substitutes (-want +got):\n%s", d)
			}
		})
	}
}

func TestTaints(t *testing.T) {
	unknown := func(name string) bool { return strings.HasPrefix(name, "CLUSTER") }
	for name, c := range map[string]struct {
		body string
		want []render.Taint
		data string
	}{
		"whole value":       {"data: {x: '${CLUSTER}'}", []render.Taint{{Pointer: "/data/x", Variable: "CLUSTER"}}, "x: ${CLUSTER}"},
		"part of a value":   {"data: {x: 'a.${CLUSTER}.b'}", []render.Taint{{Pointer: "/data/x", Variable: "CLUSTER"}}, "x: a.${CLUSTER}.b"},
		"default not known": {"data: {x: '${CLUSTER:=d}'}", []render.Taint{{Pointer: "/data/x", Variable: "CLUSTER"}}, "x: ${CLUSTER}"},
		"operator":          {"data: {x: '${CLUSTER^^}'}", []render.Taint{{Pointer: "/data/x", Variable: "CLUSTER"}}, "x: ${CLUSTER}"},
		"substring":         {"data: {x: '${CLUSTER:0:3}'}", []render.Taint{{Pointer: "/data/x", Variable: "CLUSTER"}}, "x: ${CLUSTER}"},
		"in a default":      {"data: {x: '${NONE:=${CLUSTER}}'}", []render.Taint{{Pointer: "/data/x", Variable: "CLUSTER"}}, "x: ${CLUSTER}"},
		"key":               {"data: {'${CLUSTER}': x}", []render.Taint{{Pointer: "/data/${CLUSTER}", Variable: "CLUSTER"}}, "${CLUSTER}: x"},
		"list":              {"data: {x: [a, '${CLUSTER1}', '${A}']}", []render.Taint{{Pointer: "/data/x/1", Variable: "CLUSTER1"}}, "- ${CLUSTER1}"},
		"nothing sets it":   {"data: {x: '${NONE}'}", []render.Taint{{Variable: "NONE", Known: true}}, "x: null"},
		"has a default":     {"data: {x: '${NONE:=d}'}", nil, "x: d"},
		"is set":            {"data: {x: '${A}'}", nil, "x: value"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := yaml.YAMLToJSON([]byte(document(c.body)))
			if err != nil {
				t.Fatal(err)
			}
			o, taints, err := render.Substitute(t.Context(), render.Object{JSON: data}, render.Vars{Values: values, Unknown: unknown})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, taints); d != "" {
				t.Errorf("taints (-want +got):\n%s", d)
			}
			if text := asYAML(t, []render.Object{o})[0]; !strings.Contains(text, c.data) {
				t.Errorf("no %q in\n%s", c.data, text)
			}
		})
	}
}

func TestSubstituteErrors(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		values map[string]string
		says   string
	}{
		"name":       {"data: {x: '${A}'}", map[string]string{"a.b": "secret-value"}, `"a.b" is not allowed`},
		"expression": {"data: {x: '${A'}", values, "can't be parsed"},
		"no name":    {"data: {x: '${}'}", values, "can't be parsed"},
		"too large":  {"data: {x: '" + strings.Repeat("${A}", 40) + "'}", map[string]string{"A": strings.Repeat("x", 1<<20)}, "grows to more than"},
		"no YAML":    {"data: {x: '${A}'}", map[string]string{"A": "secret-value: [x"}, "no YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := yaml.YAMLToJSON([]byte(document(c.body)))
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = render.Substitute(t.Context(), render.Object{JSON: data}, render.Vars{Values: c.values})
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret-value") {
				t.Errorf("got %v, want %q and no value", err, c.says)
			}
		})
	}
}

func TestExpandListsAndCommonMetadata(t *testing.T) {
	objects := []render.Object{
		{JSON: []byte(`{"apiVersion":"v1","kind":"ConfigMapList","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}]}`)},
		{JSON: []byte(`{"apiVersion":"kustomize.config.k8s.io/v1beta1","kind":"Kustomization","metadata":{"name":"k"}}`)},
		{JSON: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","labels":{"x":"old","keep":"1"}},"n":12345678901234567}`)},
	}
	out, err := render.ExpandLists(objects)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 3 || out[0].Origin.Name != "a" || out[1].Origin.Name != "b" {
		t.Fatalf("%d objects: %+v", len(out), out)
	}
	ks := kustomization(map[string]any{"commonMetadata": map[string]any{"labels": map[string]any{"x": "new"}, "annotations": map[string]any{"y": "z"}}})
	o, err := render.CommonMetadata(ks, out[2])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"y":"z"},"labels":{"keep":"1","x":"new"},"name":"c"},"n":12345678901234567}`
	if string(o.JSON) != want {
		t.Errorf("got %s\nwant %s", o.JSON, want)
	}
}

func FuzzSubstitute(f *testing.F) {
	for _, body := range substitutions {
		f.Add(body)
	}
	f.Add("data: {x: '${CLUSTER/a/${CLUSTER2}}'}")
	f.Fuzz(func(t *testing.T, body string) {
		data, err := yaml.YAMLToJSON([]byte(document(body)))
		if err != nil {
			t.Skip()
		}
		vars := render.Vars{Values: values, Unknown: func(n string) bool { return strings.HasPrefix(n, "CLUSTER") }}
		o, _, err := render.Substitute(t.Context(), render.Object{JSON: data}, vars)
		if err == nil && strings.Contains(string(o.JSON), "hecatemcpunset") && !strings.Contains(body, "hecatemcpunset") {
			t.Errorf("a stand-in is left in %s", o.JSON)
		}
	})
}
