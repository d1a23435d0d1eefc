// Package source materialises a Git repository, at a ref or as its working tree
// lies on disk, into a private folder as Flux's source-controller would make the
// artifact: no symlinks, no submodules, ignore rules applied.
//
// A Store owns the private folder. File contents are kept once, by content hash,
// and hard-linked into the folders of artifacts, so that opening the same commit
// again, or a working tree in which one file changed, costs little.
//
// The repository is untrusted: every walk is bounded by Limits, hostile names are
// refused, links are never followed, and every failure has a Code. It is never
// written to, no process is started and no network is used.
package source
