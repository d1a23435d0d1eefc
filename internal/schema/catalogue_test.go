package schema

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const thingSchema = `{"type":"object","required":["spec"],"additionalProperties":false,"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},
 "spec":{"type":"object","additionalProperties":false,"required":["size"],"properties":{"size":{"type":"integer"},"mode":{"enum":["a","b"]}}}}}`

func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCatalogue(t *testing.T) {
	for _, name := range []string{"example.com/thing_v1.json", "thing-example-v1.json", "thing-example.com-v1.json"} {
		s, err := Open(Options{Dirs: []string{folder(t, map[string]string{name: thingSchema})}})
		if err != nil {
			t.Fatal(err)
		}
		if s.ID() == newest(t).ID() {
			t.Error("a folder does not change the ID")
		}
		for doc, want := range map[string][]string{
			"{size: 1}":             {},
			"{size: 1, mode: null}": {},
			"{size: x}":             {"WrongType /spec/size warn"},
			"{size: 1, mode: c}":    {"InvalidValue /spec/mode warn"},
			"{size: 1, sise: 2}":    {"UnknownField /spec/sise warn"},
			"{}":                    {"MissingField /spec/size warn"},
		} {
			obj := decode(t, "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a}, spec: "+doc+"}")
			r := s.Validate(t.Context(), obj, nil)
			if got := found(r); !reflect.DeepEqual(got, want) || !r.Covered || r.Authority != AuthorityCatalogue || r.SchemaID != name {
				t.Errorf("%s %s: %v %+v", name, doc, got, r)
			}
		}
		if r := s.Validate(t.Context(), decode(t, "{apiVersion: example.com/v2, kind: Thing}"), nil); r.Covered {
			t.Errorf("another version: %+v", r)
		}
	}
}

func TestCatalogueRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		says  string
	}{
		"no JSON":     {map[string]string{"a/b_v1.json": "{"}, filepath.FromSlash("a/b_v1.json")},
		"no schema":   {map[string]string{"a/b_v1.json": `{"type": 7}`}, filepath.FromSlash("a/b_v1.json")},
		"a reference": {map[string]string{"a/b_v1.json": `{"$ref": "http://127.0.0.1:1/x.json"}`}, "not followed"},
		"nothing":     {map[string]string{"README.md": "x"}, "no .json files"},
	} {
		_, err := Open(Options{Dirs: []string{folder(t, c.files)}})
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(folder(t, map[string]string{"x.json": "{}"}), "x.json")
	for _, dir := range []string{file, file + ".absent"} {
		var e *Error
		if _, err := Open(Options{Dirs: []string{dir}}); !errors.As(err, &e) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
