package schema

import (
	"reflect"
	"strings"
	"sync"
	"testing"
)

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            x-kubernetes-validations:
            - {rule: "self.size <= self.limit", message: size must not be more than limit}
            - {rule: "self.size >= oldSelf.size", message: size never shrinks}
            properties:
              size: {type: integer, minimum: 1}
              limit: {type: integer, default: 10}
              color: {type: string, enum: [red, green]}
              note: {type: string}
              hosts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string}
                    port: {type: integer}
              values:
                type: object
                x-kubernetes-preserve-unknown-fields: true
                properties: {a: {type: string}}
              labels:
                type: object
                additionalProperties: {type: string}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    deprecationWarning: use v1, v1beta1 goes away
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - name: v1alpha1
    served: false
    storage: false
    schema: {openAPIV3Schema: {type: object}}
`

func TestCustom(t *testing.T) {
	s := newest(t)
	crds, problems := s.NewCRDs([]map[string]any{decode(t, widgetCRD), {"kind": "Other"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	base := decode(t, `
apiVersion: example.com/v1
kind: Widget
metadata: {name: w}
spec: {size: 3, hosts: [{name: a}, {name: b}], labels: {a.b/c: x}, values: {a: b, more: {c: 1}}}
`)
	for _, c := range []struct {
		name, at string
		value    any
		want     []string
		says     string
	}{
		{"valid", "/spec/color", "red", nil, ""},
		{"unknown", "/spec/sise", 1, []string{"UnknownField /spec/sise fail"}, "the API server refuses the object; did you mean size?"},
		{"unknown in a list", "/spec/hosts/0/prot", 1, []string{"UnknownField /spec/hosts/0/prot fail"}, "did you mean port?"},
		{"unknown at the top", "/specX", 1, []string{"UnknownField /specX fail"}, "did you mean spec?"},
		{"unknown metadata", "/metadata/label", map[string]any{}, []string{"UnknownField /metadata/label fail"}, "the API server refuses the object; did you mean labels?"},
		{"missing", "/spec/size", nil, []string{"MissingField /spec/size fail"}, "size is required"},
		{"type", "/spec/size", "3", []string{"WrongType /spec/size fail"}, "integer"},
		{"type in a map", "/spec/labels/a.b~1c", 3, []string{"WrongType /spec/labels/a.b~1c fail"}, "string"},
		{"enum", "/spec/color", "blue", []string{"InvalidValue /spec/color fail"}, `"red", "green"`},
		{"minimum", "/spec/size", 0, []string{"InvalidValue /spec/size fail"}, "greater than or equal to 1"},
		{"twice", "/spec/hosts/1/name", "a", []string{"InvalidValue /spec/hosts/1 fail"}, ""},
		{"a rule, by the default", "/spec/size", 11, []string{"CELRuleFailed /spec fail"}, "must not be more than limit"},
		{"no such version", "/apiVersion", "example.com/v3", []string{"UnknownKind /apiVersion fail"}, "use example.com/v1, example.com/v1beta1"},
		{"not served", "/apiVersion", "example.com/v1alpha1", []string{"UnknownKind /apiVersion fail"}, "does not serve"},
		{"deprecated", "/apiVersion", "example.com/v1beta1", []string{"DeprecatedAPI /apiVersion warn"}, "goes away"},
		{"name", "/metadata/name", "A", []string{"InvalidValue /metadata/name fail"}, ""},
		{"float", "/spec/size", 3.0, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			obj := set(t, base, c.at, c.value)
			r := s.Validate(t.Context(), obj, crds)
			want := c.want
			if want == nil {
				want = []string{}
			}
			if got := found(r); !reflect.DeepEqual(got, want) || r.Authority != AuthorityCRD || !r.Covered {
				t.Errorf("got %v of %s\n%+v\nwant %v", got, r.Authority, r.Violations, want)
			}
			for _, v := range r.Violations {
				if !strings.Contains(v.Message, c.says) {
					t.Errorf("%q does not say %q", v.Message, c.says)
				}
				if v.Code == CELRuleFailed && v.Rule != "self.size <= self.limit" {
					t.Errorf("the rule is %q", v.Rule)
				}
			}
		})
	}
	// As an API server answers when such an object is applied.
	withNull := set(t, base, "/spec/color", "red")
	withNull["status"], sub(withNull, "metadata")["creationTimestamp"] = nil, nil
	if r := s.Validate(t.Context(), withNull, crds); len(r.Violations) > 0 {
		t.Errorf("null of what Flux never applies: %+v", r.Violations)
	}
	sub(withNull, "spec")["note"], sub(withNull, "spec")["color"] = nil, nil
	if got, want := found(s.Validate(t.Context(), withNull, crds)), []string{"WrongType /spec/color fail", "WrongType /spec/note fail"}; !reflect.DeepEqual(got, want) {
		t.Errorf("null: got %v, want %v", got, want)
	}
	if r := s.Validate(t.Context(), base, nil); r.Covered {
		t.Errorf("without its CRD: %+v", r)
	}
}

func TestCRDProblems(t *testing.T) {
	s := newest(t)
	bad := strings.NewReplacer("self.size <= self.limit", "self.siez <= self.limit", "type: integer, minimum: 1", "minimum: 1").Replace(widgetCRD)
	_, problems := s.NewCRDs([]map[string]any{decode(t, bad)})
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
		if p.Name != "widgets.example.com" || p.Message == "" {
			t.Errorf("%+v", p)
		}
	}
	all := strings.Join(fields, " ")
	if !strings.Contains(all, "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/type") {
		t.Errorf("%+v", problems)
	}
	cel := strings.ReplaceAll(widgetCRD, "self.size <= self.limit", "self.siez <= self.limit")
	_, problems = s.NewCRDs([]map[string]any{decode(t, cel)})
	if len(problems) != 1 || problems[0].Field != "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations/0/rule" || !strings.Contains(problems[0].Message, "siez") {
		t.Errorf("%+v", problems)
	}
	for _, doc := range []string{
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: 7}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: a, names: {kind: B}, versions: [{name: v1, served: true, schema: {openAPIV3Schema: {type: [a]}}}]}}",
	} {
		crds, problems := s.NewCRDs([]map[string]any{decode(t, doc)})
		if len(problems) == 0 {
			t.Errorf("%s: no problem", doc)
		}
		s.Validate(t.Context(), decode(t, "{apiVersion: a/v1, kind: B, metadata: {name: c}}"), crds)
	}
}

func TestEmbeddedCRDs(t *testing.T) {
	s := newest(t)
	if len(s.flux.by) < 15 {
		t.Errorf("only %d", len(s.flux.by))
	}
	for id, d := range s.flux.by {
		if d.check(); len(d.problems) > 0 {
			t.Errorf("%v: %+v", id, d.problems)
		}
		for name, v := range d.versions {
			if err := v.compile(d); err != nil {
				t.Errorf("%v %s: %v", id, name, err)
			}
		}
	}
	obj := decode(t, `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {interval: 10m, prune: true, path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
`)
	if r := s.Validate(t.Context(), obj, nil); len(r.Violations) > 0 || r.Authority != AuthorityCRD || !strings.Contains(r.SchemaID, "embedded") {
		t.Errorf("%+v", r)
	}
	sub(obj, "spec")["interval"] = "10x"
	delete(sub(obj, "spec"), "prune")
	sub(obj, "spec", "sourceRef")["kind"] = "Gitrepository"
	want := []string{"InvalidValue /spec/interval fail", "MissingField /spec/prune fail", "InvalidValue /spec/sourceRef/kind fail"}
	if got := found(s.Validate(t.Context(), obj, nil)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestConcurrent is for the race detector: compiling is lazy.
func TestConcurrent(t *testing.T) {
	s, crd, obj := newest(t), decode(t, widgetCRD), decode(t, deploymentYAML)
	widget := decode(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: w}, spec: {size: 3}}")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			crds, _ := s.NewCRDs([]map[string]any{crd})
			for range 20 {
				for _, o := range []map[string]any{obj, widget} {
					if r := s.Validate(t.Context(), o, crds); len(r.Violations) > 0 || !r.Covered {
						t.Errorf("%+v", r)
					}
				}
			}
		})
	}
	group.Wait()
}

// TestBoundedCache holds that CRDs of many contents don't pile up.
func TestBoundedCache(t *testing.T) {
	c := newCompilations()
	for i := range maxCompiled * 2 {
		c.get([32]byte{byte(i), byte(i >> 8)}, func() *crd { return &crd{} })
	}
	if c.order.Len() != maxCompiled || len(c.by) != maxCompiled {
		t.Errorf("%d of %d", c.order.Len(), len(c.by))
	}
}

func TestPointerOf(t *testing.T) {
	obj := decode(t, `{spec: {m: {a.b/c: 1, "x[0]": {y: 1}}, l: [{a: 1}, {b: 2}], "a.b": {c: 1}}}`)
	for path, want := range map[string]string{
		"":                    "",
		"spec.l[1].b":         "/spec/l/1/b",
		"spec.m[a.b/c]":       "/spec/m/a.b~1c",
		"spec.m.a.b/c":        "/spec/m/a.b~1c",
		"spec.m.x[0].y":       "/spec/m/x[0]/y",
		"spec.a.b.c":          "/spec/a.b/c",
		"spec.missing":        "/spec/missing",
		"spec.l[7].b":         "/spec/l/7/b",
		"spec.l.0.a":          "/spec/l/0/a",
		"spec.m[unclosed":     "/spec/m/unclosed",
		"spec.nothing.at.all": "/spec/nothing/at/all",
	} {
		if got := pointerOf(obj, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
