package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
)

// generated are random documents, valid and mutated, by the archived schemas.
type generated struct {
	archive archive
	raw     map[string]json.RawMessage // definitions as they are archived
	rand    *rand.Rand
}

func newGenerated(t testing.TB) *generated {
	t.Helper()
	g := &generated{rand: rand.New(rand.NewPCG(1, 2))}
	if _, err := unpack(Versions()[0], &g.archive); err != nil {
		t.Fatal(err)
	}
	var a struct {
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	if _, err := unpack(Versions()[0], &a); err != nil {
		t.Fatal(err)
	}
	g.raw = a.Definitions
	for name, fields := range spared {
		g.spare(t, name, fields)
	}
	return g
}

// spare takes from a definition what the walker does not ask for either.
func (g *generated) spare(t testing.TB, name string, fields []string) {
	t.Helper()
	var d map[string]any
	if g.raw[name] == nil {
		return
	}
	if err := json.Unmarshal(g.raw[name], &d); err != nil {
		t.Fatal(err)
	}
	required, _ := d["required"].([]any)
	if required = slices.DeleteFunc(required, func(f any) bool { return slices.Contains(fields, f.(string)) }); len(required) > 0 {
		d["required"] = required
	} else {
		delete(d, "required")
	}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	g.raw[name] = raw
}

// kubeconform writes the schemas into a folder, one file a kind, and opens them.
func (g *generated) kubeconform(t testing.TB) validator.Validator {
	t.Helper()
	dir := t.TempDir()
	for _, k := range g.archive.Kinds {
		// As kubeconform makes the group of an API version: v1 has none but the version.
		group := k.Group
		if group == "" {
			group = k.Version
		}
		defs := map[string]json.RawMessage{}
		g.reach(k.Definition, defs)
		raw, err := json.Marshal(map[string]any{"$ref": "#/definitions/" + k.Definition, "definitions": defs})
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, group, strings.ToLower(k.Kind)+"_"+k.Version+".json")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v, err := validator.New([]string{dir + "/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"}, validator.Opts{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (g *generated) reach(name string, out map[string]json.RawMessage) {
	if out[name] != nil {
		return
	}
	out[name] = g.raw[name]
	for _, part := range strings.Split(string(g.raw[name]), `"#/definitions/`)[1:] {
		ref, _, _ := strings.Cut(part, `"`)
		g.reach(ref, out)
	}
}

func (g *generated) object(k archivedKind) map[string]any {
	obj := g.value(g.archive.Definitions[k.Definition], k.Definition, 0).(map[string]any)
	obj["apiVersion"], obj["kind"] = gvk{k.Group, k.Version, k.Kind}.apiVersion(), k.Kind
	return obj
}

// value is a valid value of a schema.
func (g *generated) value(d *definition, name string, depth int) any {
	if d.Ref != "" {
		name = strings.TrimPrefix(d.Ref, "#/definitions/")
		return g.value(g.archive.Definitions[name], name, depth)
	}
	switch name {
	case quantityName:
		return []any{"500m", 1.5, "2Gi", 3.0}[g.rand.IntN(4)]
	case intOrStringName:
		return []any{"10%", 8080.0}[g.rand.IntN(2)]
	}
	switch d.Type {
	case "object":
		out := map[string]any{}
		for _, k := range sortedKeys(d.Properties) {
			if slices.Contains(d.Required, k) || g.rand.IntN(3+depth) == 0 && depth < 12 {
				out[k] = g.value(d.Properties[k], "", depth+1)
			}
		}
		if len(d.Extra) > 0 && string(d.Extra) != "false" {
			var extra definition
			if err := json.Unmarshal(d.Extra, &extra); err != nil {
				panic(err)
			}
			out["some.key/a"] = g.value(&extra, "", depth+1)
		}
		return out
	case "array":
		out := []any{}
		if depth < 12 {
			out = append(out, g.value(d.Items, "", depth+1))
		}
		return out
	case "string":
		switch d.Format {
		case "byte":
			return "aGVsbG8="
		case "date-time":
			return "2026-01-02T15:04:05Z"
		}
		return "text"
	case "integer":
		return float64(g.rand.IntN(1000))
	case "number":
		return 0.5
	case "boolean":
		return true
	}
	return map[string]any{"free": []any{1.0, "x", nil}}
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// mutate changes one thing at a random place: a field that does not exist, one
// that is gone, a value of another type, a null. The result may be valid still.
func (g *generated) mutate(v any) any {
	switch x := v.(type) {
	case map[string]any:
		keys := sortedKeys(x)
		if len(keys) == 0 || g.rand.IntN(8) == 0 {
			x["unknwon"] = "x"
			return x
		}
		k := keys[g.rand.IntN(len(keys))]
		if k == "apiVersion" || k == "kind" || k == "unknwon" {
			return x
		}
		switch g.rand.IntN(8) {
		case 0:
			delete(x, k)
		case 1:
			x[k] = nil
		default:
			x[k] = g.mutate(x[k])
		}
		return x
	case []any:
		if len(x) > 0 && g.rand.IntN(4) > 0 {
			x[0] = g.mutate(x[0])
			return x
		}
	}
	return []any{"text", 7.0, 0.5, true, []any{}, map[string]any{}}[g.rand.IntN(6)]
}

// TestAgainstKubeconform compares the walker's verdict with the one of the
// validator that it replaces, on the same schemas.
func TestAgainstKubeconform(t *testing.T) {
	s, g := newest(t), newGenerated(t)
	kubeconform := g.kubeconform(t)
	var counts [2]int
	for _, k := range g.archive.Kinds {
		for i := range 24 {
			obj := g.object(k)
			if i > 0 {
				for range 1 + g.rand.IntN(2) {
					obj = g.mutate(obj).(map[string]any)
				}
			}
			w := walker{}
			w.value(s.kinds[gvk{k.Group, k.Version, k.Kind}].node, obj)
			ours := true
			for _, v := range w.out {
				// What kubeconform does not assert.
				ours = ours && (v.Severity != Fail || v.Rule == "format: byte" || v.Rule == "format: int32" || v.Rule == "quantity")
			}
			copied, err := deepCopy(obj, 0)
			if err != nil {
				t.Fatal(err)
			}
			withoutNulls(copied)
			raw, err := json.Marshal(copied)
			if err != nil {
				t.Fatal(err)
			}
			r := kubeconform.ValidateResource(resource.Resource{Bytes: raw})
			if r.Status == validator.Error {
				t.Fatalf("%s: %v", k.Kind, r.Err)
			}
			if theirs := r.Status == validator.Valid; theirs != ours {
				t.Errorf("%s: kubeconform says %v, here %v %+v\n%s\n%v", k.Kind, theirs, ours, w.out, raw, r.Err)
			}
			if i == 0 && !ours {
				t.Errorf("%s: a generated object is wrong: %+v", k.Kind, w.out)
			}
			if ours {
				counts[0]++
			} else {
				counts[1]++
			}
		}
	}
	t.Logf("%d valid and %d invalid documents, one verdict", counts[0], counts[1])
	if counts[0] < 200 || counts[1] < 500 {
		t.Errorf("too few of one sort: %v", counts)
	}
}

// BenchmarkValidate judges documents with rules and all, and the same documents
// with kubeconform in the same run; x-kubeconform is how many times faster.
func BenchmarkValidate(b *testing.B) {
	s, g := newest(b), newGenerated(b)
	kubeconform := g.kubeconform(b)
	var objs []map[string]any
	var raws [][]byte
	add := func(obj map[string]any) {
		raw, err := json.Marshal(obj)
		if err != nil {
			b.Fatal(err)
		}
		objs, raws = append(objs, obj), append(raws, raw)
	}
	for i, doc := range []string{deploymentYAML, serviceYAML, configYAML, roleYAML, ingressYAML} {
		for j := range 8 {
			obj := decode(b, doc)
			sub(obj, "metadata")["name"] = fmt.Sprintf("name-%d-%d", i, j)
			add(obj)
		}
	}
	theirs := func() {
		for _, raw := range raws {
			if r := kubeconform.ValidateResource(resource.Resource{Bytes: raw}); r.Status != validator.Valid {
				b.Fatal(r.Err)
			}
		}
	}
	theirs() // compiles the schemas
	b.ReportAllocs()
	for b.Loop() {
		for _, obj := range objs {
			if r := s.Validate(b.Context(), obj, nil); len(r.Violations) > 0 || !r.Covered {
				b.Fatal(r.Violations)
			}
		}
	}
	ours := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
	const rounds = 10
	start := time.Now()
	for range rounds {
		theirs()
	}
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/rounds/ours, "x-kubeconform")
	b.ReportMetric(float64(len(objs))*1e9/ours, "objects/s")
}
