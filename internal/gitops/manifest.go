package gitops

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// API groups that discovery reads.
const (
	groupKustomize = "kustomize.toolkit.fluxcd.io"
	groupSource    = "source.toolkit.fluxcd.io"
	groupHelm      = "helm.toolkit.fluxcd.io"
	groupArtifact  = "source.extensions.fluxcd.io"
	groupOperator  = "fluxcd.controlplane.io"
)

// manifest is one object as it would be applied. It is shared between calls and
// never changed once it is made.
type manifest struct {
	Object
	json   []byte
	taints []render.Taint
	// made and index are the object of a build that the manifest was made of; item
	// names it within a list.
	made  *provenance
	index int
	item  render.Origin

	once    sync.Once
	decoded map[string]any

	hashOnce sync.Once
	hash     string
}

// group is the API group, "" for the core group.
func (m *manifest) group() string { return groupOf(m.APIVersion) }

func groupOf(apiVersion string) string {
	g, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return g
}

// object decodes the manifest once; callers must not change it.
func (m *manifest) object() map[string]any {
	m.once.Do(func() {
		// The JSON came from the renderer; what does not decode has no fields.
		_ = json.Unmarshal(m.json, &m.decoded)
	})
	return m.decoded
}

// digest is a hash of the content, made once.
func (m *manifest) digest() string {
	m.hashOnce.Do(func() { m.hash = digest(string(m.json)) })
	return m.hash
}

// newManifest reads the identity of a rendered object.
func newManifest(o render.Object, taints []render.Taint) *manifest {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name         string `json:"name"`
			GenerateName string `json:"generateName"`
			Namespace    string `json:"namespace"`
		} `json:"metadata"`
	}
	// An object whose identity has other types is shown without one.
	_ = json.Unmarshal(o.JSON, &head)
	name := head.Metadata.Name
	if name == "" {
		name = head.Metadata.GenerateName
	}
	return &manifest{Object: Object{head.APIVersion, head.Kind, head.Metadata.Namespace, name}, json: o.JSON, item: o.Origin, taints: taints}
}

// str reads a string below an object, "" when it is absent or something else.
func str(obj any, path ...string) string {
	s, _ := at(obj, path...).(string)
	return s
}

// at reads a value below an object, nil when it is absent.
func at(obj any, path ...string) any {
	for _, p := range path {
		m, ok := obj.(map[string]any)
		if !ok {
			return nil
		}
		obj = m[p]
	}
	return obj
}

// list reads a list below an object.
func list(obj any, path ...string) []any {
	l, _ := at(obj, path...).([]any)
	return l
}

// isFluxKustomization tells Flux's Kustomization from kustomize's.
func isFluxKustomization(apiVersion, kind string) bool {
	return kind == "Kustomization" && groupOf(apiVersion) == groupKustomize
}

// complete tells a Kustomization from a fragment that patches one.
func complete(obj map[string]any) bool {
	return str(obj, "metadata", "name") != "" && str(obj, "spec", "path") != "" && str(obj, "spec", "sourceRef", "name") != "" && str(obj, "spec", "sourceRef", "kind") != ""
}
