// Package fleet measures the repository side of hecate-mcp: what a rendered, a
// validated and a second answer cost beside fluxcd/pkg, the kustomize CLI and
// kubeconform on the same repository. It needs neither a control plane nor the
// network.
//
// Write makes the repository: two clusters, 150 Flux Kustomizations with bases,
// overlays, components, patches, generators and substitution, 8 to 12 objects
// each. HECATE_MCP_BENCH_REPO names another one instead. All sides take turns in
// one run on one machine: ratios travel, milliseconds do not, and no time fails
// anything.
package fleet
