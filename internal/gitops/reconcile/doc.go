// Package reconcile asks Flux to reconcile a set of Kustomizations of one
// cluster, in dependency order, and says what came of each.
//
// Build makes the plan from the graph and its validation, without a cluster. It
// fails closed: what is unknown, not validated, unsound, in a cycle, suspended or
// waits for such a one is declined with a code, never planned. An Executor then
// requests each source once and each Kustomization after its dependencies, and
// waits for the controllers. BuildKubeconfig gives it isolated credentials.
//
// It writes one annotation (reconcile.fluxcd.io/requestedAt) and nothing else to
// the cluster: it never applies, resumes, forces or prunes. A token, a
// certificate and the values of variables never appear in an error.
package reconcile
