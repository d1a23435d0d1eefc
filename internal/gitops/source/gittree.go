package source

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// treeReader reads trees of a repository, counting what it lists.
type treeReader struct {
	ctx     context.Context
	objects storer.EncodedObjectStorer
	limits  Limits
	// safe refuses names that can't be written to a folder.
	safe  bool
	count int
	// seen holds what was read: hostile trees name one folder again and again.
	seen map[plumbing.Hash][]object.TreeEntry
}

// read gives the entries of one tree object.
func (r *treeReader) read(h plumbing.Hash, at string) ([]object.TreeEntry, error) {
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	entries, ok := r.seen[h]
	if !ok {
		var err error
		if entries, err = r.load(h, at); err != nil {
			return nil, err
		}
		if r.seen == nil {
			r.seen = map[plumbing.Hash][]object.TreeEntry{}
		}
		r.seen[h] = entries
	}
	if r.count += len(entries); r.count > r.limits.listed() {
		return nil, r.limits.tooMany()
	}
	return entries, nil
}

// load reads and checks a tree object.
func (r *treeReader) load(h plumbing.Hash, at string) ([]object.TreeEntry, error) {
	size, err := r.objects.EncodedObjectSize(h)
	if err != nil {
		return nil, coded(fmt.Sprintf("folder %q of the Git tree", at), err)
	}
	if size > maxTreeObject {
		return nil, fail(TooLarge, "folder %q has a Git tree of %d bytes; the limit is %d", at, size, maxTreeObject)
	}
	t, err := object.GetTree(r.objects, h)
	if err != nil {
		return nil, coded(fmt.Sprintf("folder %q of the Git tree", at), err)
	}
	if !r.safe {
		return t.Entries, nil
	}
	names := make(map[string]bool, len(t.Entries))
	for _, e := range t.Entries {
		if why := badName(e.Name); why != "" {
			return nil, fail(Unreadable, "folder %q of the Git tree has an entry named %q that is refused: %s", at, e.Name, why)
		}
		if names[e.Name] {
			return nil, fail(Unreadable, "folder %q of the Git tree has two entries named %q", at, e.Name)
		}
		names[e.Name] = true
	}
	return t.Entries, nil
}

// list flattens a tree into its leaves.
func (r *treeReader) list(h plumbing.Hash, at string, visit func(entry)) error {
	entries, err := r.read(h, at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := r.leaves(e, join(at, e.Name), visit); err != nil {
			return err
		}
	}
	return nil
}

func (r *treeReader) leaves(e object.TreeEntry, p string, visit func(entry)) error {
	if len(p) > maxPath {
		return fail(TooLarge, "the Git tree nests deeper than a path of %d bytes, at %q…", maxPath, p[:200])
	}
	if e.Mode == filemode.Dir {
		return r.list(e.Hash, p, visit)
	}
	visit(entry{path: p, mode: e.Mode, hash: e.Hash})
	return nil
}

// diff compares two trees, zero hashes being empty ones, and skips what is equal.
func (r *treeReader) diff(a, b plumbing.Hash, at string, visit func(p string, before, after *entry)) error {
	if a == b {
		return nil
	}
	sides := [2]map[string]object.TreeEntry{}
	var names []string
	for i, h := range []plumbing.Hash{a, b} {
		sides[i] = map[string]object.TreeEntry{}
		if h.IsZero() {
			continue
		}
		entries, err := r.read(h, at)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if _, twice := sides[i][e.Name]; !twice {
				sides[i][e.Name] = e
				if _, seen := sides[0][e.Name]; i == 0 || !seen {
					names = append(names, e.Name)
				}
			}
		}
	}
	for _, name := range names {
		if err := r.diffEntry(sides[0][name], sides[1][name], join(at, name), visit); err != nil {
			return err
		}
	}
	return nil
}

func (r *treeReader) diffEntry(x, y object.TreeEntry, p string, visit func(p string, before, after *entry)) error {
	if x.Hash == y.Hash && x.Mode == y.Mode {
		return nil
	}
	if len(p) > maxPath {
		return fail(TooLarge, "the Git tree nests deeper than a path of %d bytes, at %q…", maxPath, p[:200])
	}
	var dirs [2]plumbing.Hash
	var leaf [2]*entry
	for i, e := range []object.TreeEntry{x, y} {
		switch {
		case e.Mode == filemode.Empty && e.Hash.IsZero():
		case e.Mode == filemode.Dir:
			dirs[i] = e.Hash
		default:
			leaf[i] = &entry{path: p, mode: e.Mode, hash: e.Hash}
		}
	}
	if leaf[0] != nil || leaf[1] != nil {
		visit(p, leaf[0], leaf[1])
	}
	return r.diff(dirs[0], dirs[1], p, visit)
}
