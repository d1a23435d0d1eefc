// Package schema judges Kubernetes objects without a cluster: built-in kinds
// against embedded schemas of three Kubernetes minors, custom ones against
// their CRDs with the API server's own code, others against folders that the
// user names.
//
// It promises a verdict with its authority, an exact place (a JSON pointer)
// and what would be right, and that what it calls a failure an API server
// refuses. A kind that nothing here knows is uncovered, never valid.
//
// It never reaches the network, never changes an object that it is given and
// never repeats a value of a Secret.
package schema

//go:generate sh -c "cd ../../hack/schemas && go run ."
