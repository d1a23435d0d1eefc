// Package examples holds the demo: an estate made for this project, the evidence
// server that belongs to it, and the Flux repository behind it.
//
// It is for `--demo`, for the tests of the packages above, and for a reader who
// wants to see what Hecate's objects look like. It promises that the estate is
// consistent (digests, names, references, times: the package's tests hold it)
// and that nothing in it exists outside of it: hosts are example.com names and
// the token is no secret. It never opens a connection and holds no rule.
package examples
