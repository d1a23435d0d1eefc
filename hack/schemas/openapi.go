package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
)

// archive is what is known of one Kubernetes minor. internal/schema reads it.
type archive struct {
	Source      string         `json:"source"` // module and version
	Kinds       []kind         `json:"kinds"`
	Definitions map[string]any `json:"definitions"` // JSON schemas; $ref is "#/definitions/<name>"
	Lifecycle   []lifecycle    `json:"lifecycle"`
}

type kind struct {
	Group      string `json:"group,omitempty"`
	Version    string `json:"version"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced,omitempty"`
	Definition string `json:"definition"`
}

type operation struct {
	GVK struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
	RequestBody struct {
		Content map[string]struct {
			Schema struct {
				Ref string `json:"$ref"`
			} `json:"schema"`
		} `json:"content"`
	} `json:"requestBody"`
}

type document struct {
	Paths map[string]struct {
		Post *operation `json:"post"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

const component = "#/components/schemas/"

// core reads the kinds that can be created (a collection with POST) and all
// that their schemas refer to.
func core(r release) (*archive, error) {
	at := "k8s.io/kubernetes@" + r.kubernetes
	dir, err := module(at)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "api", "openapi-spec", "v3", "*.json"))
	if err != nil {
		return nil, err
	}
	a := &archive{Source: at, Definitions: map[string]any{}}
	raw := map[string]map[string]any{}
	kinds := map[kind]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var d document
		if err := json.Unmarshal(content, &d); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		for path, p := range d.Paths {
			// What is posted below a name is a subresource: it can't be applied.
			if p.Post == nil || p.Post.GVK.Kind == "" || strings.Contains(path, "{name}") {
				continue
			}
			k := kind{Group: p.Post.GVK.Group, Version: p.Post.GVK.Version, Kind: p.Post.GVK.Kind, Namespaced: strings.Contains(path, "{namespace}")}
			for _, c := range p.Post.RequestBody.Content {
				k.Definition = strings.TrimPrefix(c.Schema.Ref, component)
			}
			if d.Components.Schemas[k.Definition] == nil {
				return nil, fmt.Errorf("%s: %s has no schema", filepath.Base(file), path)
			}
			kinds[k] = true
		}
		for name, s := range d.Components.Schemas {
			s := strip(s)
			if have, ok := raw[name]; ok && !reflect.DeepEqual(have, s) {
				return nil, fmt.Errorf("%s: the schema %s differs from that of another group", filepath.Base(file), name)
			}
			raw[name] = s
		}
	}
	for k := range kinds {
		a.Kinds = append(a.Kinds, k)
		if err := a.reach(raw, k.Definition); err != nil {
			return nil, err
		}
	}
	sort.Slice(a.Kinds, func(i, j int) bool { return less(a.Kinds[i], a.Kinds[j]) })
	if len(a.Kinds) < 50 {
		return nil, fmt.Errorf("only %d kinds in %d files: the documents changed their form", len(a.Kinds), len(files))
	}
	return a, nil
}

func less(a, b kind) bool {
	if a.Group != b.Group {
		return a.Group < b.Group
	}
	if a.Version != b.Version {
		return a.Version < b.Version
	}
	return a.Kind < b.Kind
}

// reach adds a definition and what it refers to.
func (a *archive) reach(raw map[string]map[string]any, name string) error {
	if a.Definitions[name] != nil {
		return nil
	}
	s, ok := raw[name]
	if !ok {
		return fmt.Errorf("the schema %s does not exist", name)
	}
	a.Definitions[name] = s
	var err error
	refs(s, func(ref string) {
		if e := a.reach(raw, ref); e != nil {
			err = e
		}
	})
	return err
}

func refs(v any, found func(string)) {
	switch x := v.(type) {
	case map[string]any:
		for k, c := range x {
			if ref, ok := c.(string); ok && k == "$ref" {
				found(strings.TrimPrefix(ref, "#/definitions/"))
				continue
			}
			refs(c, found)
		}
	case []any:
		for _, c := range x {
			refs(c, found)
		}
	}
}

// kept are the keywords that decide something; descriptions and hints for
// patches are most of the documents and decide nothing here.
var kept = map[string]bool{
	"type": true, "format": true, "required": true, "enum": true, "pattern": true,
	"minimum": true, "maximum": true, "minLength": true, "maxLength": true, "minItems": true, "maxItems": true,
	"oneOf": true, "default": true,
	"x-kubernetes-list-type": true, "x-kubernetes-list-map-keys": true,
	"x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-int-or-string": true,
}

// strip is a schema without what decides nothing, in which an object with
// properties refuses others.
func strip(s map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range s {
		if kept[k] {
			out[k] = v
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		out["$ref"] = "#/definitions/" + strings.TrimPrefix(ref, component)
	}
	// allOf only wraps one reference, to let a default stand beside it.
	if all, ok := s["allOf"].([]any); ok {
		if len(all) != 1 {
			panic(fmt.Sprintf("allOf of %d schemas: no such thing was there when this was written", len(all)))
		}
		for k, v := range strip(all[0].(map[string]any)) {
			out[k] = v
		}
	}
	if props, ok := s["properties"].(map[string]any); ok {
		p := map[string]any{}
		for k, v := range props {
			p[k] = strip(v.(map[string]any))
		}
		out["properties"] = p
		if s["x-kubernetes-preserve-unknown-fields"] != true {
			out["additionalProperties"] = false
		}
	}
	for _, k := range []string{"items", "additionalProperties"} {
		if v, ok := s[k].(map[string]any); ok {
			out[k] = strip(v)
		}
	}
	return out
}
