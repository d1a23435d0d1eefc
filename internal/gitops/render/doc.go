// Package render builds what kustomize-controller would apply for one Flux
// Kustomization, from a folder that holds the artifact of its source.
//
// It edits the entry with fluxcd/pkg's own generator and builds with krusty, so
// that the bytes are those of fluxcd/pkg's Build (a differential test holds
// that), without that function's cost of parsing the OpenAPI schema at every
// build. Beside the objects it tells what the build looked at, where each object
// comes from, and what was left out.
//
// It never writes into the folder, never reads outside it and never fetches:
// remote entries are stubbed and named (guard.go). A Pool builds in worker
// processes of this very program, which have no PATH, no network client and a
// bound on memory, and which can be killed; NewLocal builds in this process, with
// the guard alone.
package render
