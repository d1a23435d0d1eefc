// Package estate makes the objects of a cluster of a given size, for tests and
// benchmarks: Gates in pipelines, Bundles at all stages, Passages with steps,
// so that the states on a board are mixed. The same size gives the same
// objects. It writes nothing anywhere.
package estate
