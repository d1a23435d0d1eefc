// Package gitops answers questions about a Flux repository as Flux itself would
// answer them: which Kustomizations there are (DiscoverFluxGraph), what a change
// touches (ComputeImpact) and whether the repository is sound (ValidateManifests).
//
// An Engine owns what calls share: a private folder with materialised trees
// (package source), the builder (package render), the schemas (package schema)
// and a bounded cache by content, so that a second question after one changed
// file costs that file. Everything works offline; the repository is never
// written to, no network is used and no process is started but workers of this
// very binary.
//
// Identity is (cluster, namespace, name): two clusters in one repository use the
// same namespace and name as a matter of course. Nothing is concluded from a
// file alone: roots are rendered, their output holds the next Kustomizations,
// until nothing new appears. What can't be known here (another repository, a
// Helm chart, a variable that lives only in the cluster) is said with a code and
// taints what depends on it; it is never guessed and never an empty answer.
package gitops
