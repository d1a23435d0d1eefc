// Package v1alpha1 holds the four kinds of Hecate, wire-compatible with the
// group hecate.dev/v1alpha1: Beacon, Bundle, Gate and Passage.
//
// It promises that every object the upstream controller writes decodes here
// strictly and re-encodes without loss; the CRDs under internal/api/crds and
// the deep copies are generated from these types (make generate).
//
// It holds no rule and no behaviour: what a field means for a promotion is
// decided in internal/gate and internal/ops. The field set follows
// hecate-facts, section 2.
//
// +kubebuilder:object:generate=true
// +groupName=hecate.dev
package v1alpha1
