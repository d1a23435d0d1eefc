package reconcile

import (
	"cmp"
	"slices"
)

// Key is the identity of a Kustomization within one cluster.
type Key struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is namespace/name.
func (k Key) String() string { return k.Namespace + "/" + k.Name }

// Compare orders by namespace, then name.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Namespace, o.Namespace), cmp.Compare(k.Name, o.Name))
}

// SourceRef is where a Kustomization's manifests come from. An empty Namespace
// is that of the Kustomization.
type SourceRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String is Kind namespace/name.
func (s SourceRef) String() string { return s.Kind + " " + s.Namespace + "/" + s.Name }

// Node is what the repository says about one Kustomization.
type Node struct {
	Key
	DependsOn []Key
	Source    SourceRef
	Suspended bool
	// Verdict is pass, warn or fail; "" when it was not validated.
	Verdict string
	// State is the node's state in the graph; "failed" counts as a failed verdict.
	State string
	// External says that its manifests are not in this repository.
	External bool
}

// Plan is what to reconcile, and what not and why. Its lists are never nil.
type Plan struct {
	// Waves are in dependency order: an item waits only for items of earlier ones.
	// Within a wave items are ordered by namespace and name.
	Waves    [][]Item   `json:"waves"`
	Declined []Declined `json:"declined"`
}

// Item is one Kustomization to reconcile.
type Item struct {
	Key
	// DependsOn are the planned items it waits for, directly or through
	// Kustomizations that are not planned; ordered.
	DependsOn []Key     `json:"dependsOn"`
	Source    SourceRef `json:"source"`
	Wave      int       `json:"wave"`
}

// Reason is why a wanted Kustomization is not planned.
type Reason string

// The reasons, in the order in which the first that holds is given.
const (
	NotInGraph         Reason = "NotFound"
	InCycle            Reason = "InCycle"
	ValidationFailed   Reason = "ValidationFailed"
	NotValidated       Reason = "NotValidated"
	SuspendedInGraph   Reason = "Suspended"
	DependencyDeclined Reason = "DependencyDeclined"
	// The next two are the cluster's, found when a plan is pinned.
	NotInCluster  Reason = "NotInCluster"
	SourceMissing Reason = "SourceMissing"
)

// Declined is a wanted Kustomization that is not planned.
type Declined struct {
	Key
	Code   Reason `json:"code"`
	Detail string `json:"detail"`
}

// sortedKeys are a set's keys in order, never nil.
func sortedKeys(set map[Key]bool) []Key {
	keys := make([]Key, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, Key.Compare)
	return keys
}
