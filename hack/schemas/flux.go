package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"sigs.k8s.io/yaml"
)

// crds are the definitions of Flux's own kinds, sorted by name.
type crds struct {
	Sources []string         `json:"sources"` // modules and versions
	CRDs    []map[string]any `json:"crds"`
}

func flux() (*crds, error) {
	out := &crds{}
	for _, c := range controllers {
		dir, err := module(c)
		if err != nil {
			return nil, err
		}
		if err := out.folder(filepath.Join(dir, "config", "crd", "bases")); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
		out.Sources = append(out.Sources, c)
	}
	for _, m := range apiModules {
		version, err := command("go", "list", "-m", "-f", "{{.Version}}", m)
		if err != nil {
			return nil, err
		}
		dir, err := os.MkdirTemp("", "crds")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		if _, err := command("go", "tool", "controller-gen", "crd", "paths="+m+"/...", "output:crd:dir="+dir); err != nil {
			return nil, err
		}
		if err := out.folder(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", m, err)
		}
		out.Sources = append(out.Sources, m+"@"+strings.TrimSpace(string(version)))
	}
	sort.Slice(out.CRDs, func(i, j int) bool { return name(out.CRDs[i]) < name(out.CRDs[j]) })
	sort.Strings(out.Sources)
	return out, nil
}

// folder adds the CRDs of every file of a folder.
func (c *crds) folder(dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no CRDs")
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		var crd map[string]any
		if err := yaml.UnmarshalStrict(raw, &crd); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(f), err)
		}
		if crd["kind"] != "CustomResourceDefinition" || name(crd) == "" {
			return fmt.Errorf("%s: not one CRD", filepath.Base(f))
		}
		delete(crd, "status")
		spec, _ := crd["spec"].(map[string]any)
		versions, _ := spec["versions"].([]any)
		for _, v := range versions {
			v, _ := v.(map[string]any)
			delete(v, "additionalPrinterColumns")
			s, _ := v["schema"].(map[string]any)
			undescribe(s["openAPIV3Schema"])
		}
		c.CRDs = append(c.CRDs, crd)
	}
	return nil
}

func name(crd map[string]any) string {
	meta, _ := crd["metadata"].(map[string]any)
	n, _ := meta["name"].(string)
	return n
}

// undescribe drops the descriptions of a schema: texts only. A property may be
// called description, so it follows the schema and not every key.
func undescribe(v any) {
	s, ok := v.(map[string]any)
	if !ok {
		return
	}
	delete(s, "description")
	if props, ok := s["properties"].(map[string]any); ok {
		for _, p := range props {
			undescribe(p)
		}
	}
	for _, k := range []string{"items", "additionalProperties", "not"} {
		undescribe(s[k])
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[k].([]any)
		for _, p := range list {
			undescribe(p)
		}
	}
}
