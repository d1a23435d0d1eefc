package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// ExpandLists gives what the controller applies of built objects: the items of
// lists instead of the lists, and neither kustomize's own documents nor what has
// no name or kind.
func ExpandLists(objects []Object) ([]Object, error) {
	var out []Object
	for _, o := range objects {
		var head struct {
			APIVersion string            `json:"apiVersion"`
			Kind       string            `json:"kind"`
			Items      []json.RawMessage `json:"items"`
		}
		// Most objects have no items; only those are decoded whole.
		if bytes.Contains(o.JSON, []byte(`"items":[`)) && json.Unmarshal(o.JSON, &head) == nil && head.Items != nil {
			for i, item := range head.Items {
				data, err := json.Marshal(item)
				if err != nil {
					return nil, fmt.Errorf("item %d of %s: %w", i, head.Kind, err)
				}
				origin := o.Origin
				var of struct {
					Kind     string
					Metadata struct{ Name, Namespace string }
				}
				// An item with other types keeps the list's place.
				if json.Unmarshal(data, &of) == nil && of.Kind != "" {
					origin.Kind, origin.Namespace, origin.Name = of.Kind, of.Metadata.Namespace, of.Metadata.Name
				}
				out = append(out, Object{JSON: data, Origin: origin})
			}
			continue
		}
		if bytes.Contains(o.JSON, []byte("kustomize.config.k8s.io")) && json.Unmarshal(o.JSON, &head) == nil && strings.HasPrefix(head.APIVersion, "kustomize.config.k8s.io/") {
			continue
		}
		out = append(out, o)
	}
	return out, nil
}

// CommonMetadata puts spec.commonMetadata of a Kustomization over an object.
func CommonMetadata(kustomization map[string]any, o Object) (Object, error) {
	spec, _ := kustomization["spec"].(map[string]any)
	common, _ := spec["commonMetadata"].(map[string]any)
	labels, _ := common["labels"].(map[string]any)
	annotations, _ := common["annotations"].(map[string]any)
	if len(labels) == 0 && len(annotations) == 0 {
		return o, nil
	}
	var obj map[string]any
	dec := json.NewDecoder(bytes.NewReader(o.JSON))
	dec.UseNumber()
	if err := dec.Decode(&obj); err != nil {
		return o, fmt.Errorf("object: %w", err)
	}
	meta, ok := obj["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		obj["metadata"] = meta
	}
	for field, add := range map[string]map[string]any{"labels": labels, "annotations": annotations} {
		if len(add) == 0 {
			continue
		}
		have, _ := meta[field].(map[string]any)
		merged := make(map[string]any, len(have)+len(add))
		for k, v := range have {
			merged[k] = v
		}
		for k, v := range add {
			merged[k] = v
		}
		meta[field] = merged
	}
	data, err := json.Marshal(obj)
	if err != nil {
		return o, fmt.Errorf("object: %w", err)
	}
	return Object{JSON: data, Origin: o.Origin}, nil
}

// YAML is an object as people read it.
func YAML(o Object) ([]byte, error) { return yaml.JSONToYAML(o.JSON) }
