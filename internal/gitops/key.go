package gitops

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// KustomizationKey is the identity of a Flux Kustomization. Cluster is the name
// of the root that leads to it; it is never empty in a discovered graph.
type KustomizationKey struct {
	Cluster   string `json:"cluster" jsonschema_description:"cluster, named after its root"`
	Namespace string `json:"namespace" jsonschema_description:"namespace"`
	Name      string `json:"name" jsonschema_description:"name"`
}

// String is cluster/namespace/name.
func (k KustomizationKey) String() string { return k.Cluster + "/" + k.Namespace + "/" + k.Name }

// Compare orders by cluster, namespace, name.
func (k KustomizationKey) Compare(o KustomizationKey) int {
	return cmp.Or(cmp.Compare(k.Cluster, o.Cluster), cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

// SortKeys sorts keys by cluster, namespace, name.
func SortKeys(keys []KustomizationKey) { slices.SortFunc(keys, KustomizationKey.Compare) }

// NormalizePath is spec.path as kustomize-controller reads it: against the
// artifact's root, whatever it begins with; "." for the root itself.
func NormalizePath(p string) string { return source.CleanPath(p) }

// SortedKinds returns the kinds of a count by descending count, then name.
func SortedKinds(m map[string]int) []string {
	kinds := slices.Collect(maps.Keys(m))
	slices.SortFunc(kinds, func(a, b string) int { return cmp.Or(cmp.Compare(m[b], m[a]), cmp.Compare(a, b)) })
	return kinds
}
