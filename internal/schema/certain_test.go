package schema

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// rareCRD has what Flux's have not: rules that are in doubt, and bounds of every
// kind that are not.
const rareCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rares.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Rare, plural: rares, singular: rare, listKind: RareList}
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
            minProperties: 1
            maxProperties: 20
            properties:
              port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}], pattern: "^[0-9]+$"}
              small: {type: integer, format: int32, minimum: 3, maximum: 500}
              wide: {type: integer, format: int32}
              above: {type: integer, minimum: 3, exclusiveMinimum: true}
              ratio: {type: number, minimum: 0.25}
              even: {type: integer, multipleOf: 2}
              email: {type: string, format: email}
              data: {type: string, format: byte}
              time: {type: string, format: date-time}
              level: {type: integer, enum: [1, 2]}
              word: {type: string, enum: [a, b], nullable: true}
              names: {type: array, minItems: 1, maxItems: 2, items: {type: string, minLength: 2, maxLength: 5}}
              one: {type: object, properties: {left: {type: string}, right: {type: string}}, oneOf: [{required: [left]}, {required: [right]}]}
              any: {type: object, properties: {left: {type: string}, right: {type: string}}, anyOf: [{required: [left]}, {required: [right]}]}
              all: {type: object, properties: {x: {type: string}}, allOf: [{required: [x]}]}
              not: {type: object, properties: {x: {type: string}}, not: {required: [x]}}
              map: {type: object, additionalProperties: {type: integer}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// TestCertain holds that what is certain is true: of random objects, mutated, by
// the schemas of Flux and by one of rare rules, none that the API machinery's
// validator refuses passes as valid beyond doubt.
func TestCertain(t *testing.T) {
	s := newest(t)
	crds, problems := s.NewCRDs([]map[string]any{decode(t, rareCRD), decode(t, widgetCRD)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	g := generated{rand: rand.New(rand.NewPCG(3, 4))}
	all := map[string]*crd{}
	for id, d := range s.flux.by {
		all[id.kind+"."+id.group] = d
	}
	for id, d := range crds.by {
		all[id.kind+"."+id.group] = d
	}
	sure, valid, refused := 0, 0, 0
	for _, name := range sortedKeys(all) {
		d := all[name]
		if d.read() != nil {
			t.Fatal(name)
		}
		for _, version := range sortedKeys(d.versions) {
			sch, err := apiextensions.GetSchemaForVersion(d.internal, version)
			if err != nil {
				t.Fatal(err)
			}
			official, openAPI, err := validation.NewSchemaValidator(sch.OpenAPIV3Schema)
			if err != nil {
				t.Fatal(err)
			}
			c := newCertain(openAPI, 0)
			rounds := 400
			if !d.embedded {
				rounds = 20000
			}
			for i := range rounds {
				v := g.openAPI(openAPI, 0)
				if fields, _ := v.(map[string]any)["spec"].(map[string]any); !d.embedded && len(fields) > 2 {
					// One rule at a time, or the others hide it.
					for _, k := range g.shuffled(fields)[2:] {
						delete(fields, k)
					}
				}
				for range i % 3 {
					v = g.mutate(v)
				}
				in, err := deepCopy(v, 0)
				if err != nil {
					t.Fatal(err)
				}
				errs := validation.ValidateCustomResource(nil, in, official)
				switch certain := c.valid(in); {
				case len(errs) == 0:
					valid++
					if certain {
						sure++
					}
				case certain:
					t.Fatalf("%s %s: %v passes, but %v", name, version, in, errs)
				default:
					refused++
				}
			}
		}
	}
	t.Logf("%d valid, %d of them beyond doubt; %d refused", valid, sure, refused)
	if valid < 2000 || refused < 2000 || sure < valid*3/4 {
		t.Error("too few of one kind: the test proves little")
	}
}

func (g *generated) shuffled(m map[string]any) []string {
	out := sortedKeys(m)
	g.rand.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// openAPI is a value of a schema, mostly a valid one.
func (g *generated) openAPI(s *spec.Schema, depth int) any {
	if len(s.Enum) > 0 {
		return s.Enum[g.rand.IntN(len(s.Enum))]
	}
	typ := ""
	if len(s.Type) > 0 {
		typ = s.Type[g.rand.IntN(len(s.Type))]
	}
	switch typ {
	case "object":
		out := map[string]any{}
		for _, k := range sortedKeys(s.Properties) {
			p := s.Properties[k]
			if strings.Contains(strings.Join(s.Required, " "), k) || g.rand.IntN(2+depth) == 0 && depth < 10 {
				out[k] = g.openAPI(&p, depth+1)
			}
		}
		if a := s.AdditionalProperties; a != nil && a.Schema != nil {
			out["some.key/a"] = g.openAPI(a.Schema, depth+1)
		}
		return out
	case "array":
		out := []any{}
		for range g.rand.IntN(3) {
			if s.Items != nil && s.Items.Schema != nil {
				out = append(out, g.openAPI(s.Items.Schema, depth+1))
			}
		}
		return out
	case "string":
		return []any{"10m", "10m0s", "name", "name", "https://example.com", "oci://example.com/a", "10", "x@example.com", "aGVsbG8=", ""}[g.rand.IntN(10)]
	case "integer":
		return []any{1, 2, 3, 4, 500, 501, -1, 1 << 40, 3.0}[g.rand.IntN(9)]
	case "number":
		return []any{0.5, 0.25, 0.1, 1}[g.rand.IntN(4)]
	case "boolean":
		return g.rand.IntN(2) == 0
	}
	return map[string]any{"free": []any{1.0, "x", nil}}
}

// TestRareWalks holds that the walks for embedded resources and for lists that are
// sets are made where a schema asks for them, and only there.
func TestRareWalks(t *testing.T) {
	s := newest(t)
	crds, problems := s.NewCRDs([]map[string]any{decode(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: holders.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Holder, plural: holders, singular: holder, listKind: HolderList}
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
            properties:
              templates:
                type: array
                items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              byName:
                type: object
                additionalProperties: {type: array, x-kubernetes-list-type: set, items: {type: string}}
`)})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	sound := `{apiVersion: example.com/v1, kind: Holder, metadata: {name: h}, spec: {templates: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}], byName: {x: [a, b]}}}`
	if r := s.Validate(t.Context(), decode(t, sound), crds); len(r.Violations) > 0 {
		t.Errorf("sound: %+v", r.Violations)
	}
	for broken, want := range map[string]string{
		strings.Replace(sound, "name: a}", "name: a/b}", 1):       "InvalidValue /spec/templates/0/metadata/name fail",
		strings.Replace(sound, "apiVersion: v1, kind", "kind", 1): "MissingField /spec/templates/0/apiVersion fail",
		strings.Replace(sound, "[a, b]", "[a, a]", 1):             "InvalidValue /spec/byName/x/1 fail",
	} {
		if got := found(s.Validate(t.Context(), decode(t, broken), crds)); len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %v, want %s", broken, got, want)
		}
	}
}
