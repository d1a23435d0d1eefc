package source

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// dirtyBytes is how much may be read to tell whether a working tree is dirty;
// what Git's index proves costs nothing.
const dirtyBytes = 64 << 20

// comparison compares a working tree with a tree of Git.
type comparison struct {
	store  *Store
	repo   *repository
	place  *place
	disk   *diskIndex
	budget int64 // bytes that may be read; negative is without bound
	spent  bool
}

// unsure is a change that may only be one of line ends or of a filter.
type worktreeChange struct {
	Change
	unsure bool
}

func (s *Store) compare(p *place, r *repository, budget int64) *comparison {
	return &comparison{store: s, repo: r, place: p, disk: s.diskIndexOf(p.dir), budget: budget}
}

// full is the path of an entry from the root of the repository.
func (c *comparison) full(p string) string {
	if c.place.prefix == "." {
		return p
	}
	return c.place.prefix + "/" + p
}

// worktree lists what differs on disk from a tree; both lists are sorted. emit
// returns false to stop.
func (c *comparison) worktree(ctx context.Context, base, disk []entry, emit func(worktreeChange) bool) error {
	root, err := os.OpenRoot(c.place.dir)
	if err != nil {
		return coded("the folder", err)
	}
	defer root.Close()
	for i, j := 0, 0; i < len(base) || j < len(disk); {
		if err := ctx.Err(); err != nil {
			return err
		}
		var ch worktreeChange
		var differs bool
		switch {
		case j == len(disk) || i < len(base) && base[i].path < disk[j].path:
			ch.Change, differs = Change{base[i].path, Deleted}, !c.absent(&base[i])
			i++
		case i == len(base) || disk[j].path < base[i].path:
			e := &disk[j]
			// Git adds neither sockets nor the folders of other repositories.
			ch.Change, differs = Change{e.path, Added}, e.mode != filemode.Empty && (e.mode != filemode.Submodule || e.tracked)
			j++
		default:
			ch.Change = Change{base[i].path, Modified}
			if differs, ch.unsure, err = c.differs(root, &base[i], &disk[j]); err != nil {
				return err
			}
			if differs && disk[j].mode == filemode.Empty {
				ch.Kind = Deleted
			}
			i, j = i+1, j+1
		}
		if differs && !emit(ch) {
			return nil
		}
	}
	return nil
}

// absent tells whether a tracked entry may be missing on disk without being
// deleted: a sparse checkout, or a submodule that was not initialised.
func (c *comparison) absent(e *entry) bool {
	ie := c.repo.index.entries[c.full(e.path)]
	return ie != nil && (ie.SkipWorktree || e.mode == filemode.Submodule && ie.Hash == e.hash && ie.Mode == filemode.Submodule)
}

func (c *comparison) differs(root *os.Root, base, disk *entry) (differs, unsure bool, err error) {
	if base.mode != disk.mode {
		return true, false, nil
	}
	if disk.mode == filemode.Submodule {
		return base.hash != disk.hash, false, nil
	}
	if h, ok := c.repo.index.clean(c.full(disk.path), disk.mode, disk.stat); ok {
		return h != base.hash, false, nil
	}
	if h, ok := c.disk.hash(disk); ok {
		return h != base.hash, c.repo.index.converts, nil
	}
	if disk.isFile() {
		size, err := c.repo.storage.EncodedObjectSize(base.hash)
		if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) {
			return false, false, coded("file "+base.path, err)
		}
		// Without the object (a partial clone) the hash has to tell.
		if err == nil && size != disk.stat.size {
			return true, c.repo.index.converts, nil
		}
		if c.budget >= 0 {
			if c.budget -= disk.stat.size; c.budget < 0 {
				c.spent, c.budget = true, 0
				return true, true, nil
			}
		}
	}
	h, err := c.store.hashFile(root, c.disk, disk)
	if errors.Is(err, fs.ErrNotExist) {
		return true, false, nil
	}
	return h != base.hash, c.repo.index.converts, err
}

// dirty tells whether a working tree differs from a commit, nil when telling
// would cost too much or Git may have converted what it stored.
func (s *Store) dirty(ctx context.Context, p *place, r *repository, head *object.Commit, l *listing) (*bool, error) {
	top, err := r.folder(ctx, head, p.prefix, s.limits)
	if err != nil {
		return nil, err
	}
	base := &listing{}
	if !top.IsZero() {
		if base, err = s.listCommit(ctx, r, top); err != nil {
			var e *Error
			if errors.As(err, &e) {
				return nil, nil // a commit that can't be listed says nothing of the disk
			}
			return nil, err
		}
	}
	yes := true
	if !r.index.unreadable && r.staged(p, base) {
		return &yes, nil
	}
	c := s.compare(p, r, dirtyBytes)
	changed, unsure := false, false
	err = c.worktree(ctx, base.entries, l.entries, func(ch worktreeChange) bool {
		changed, unsure = changed || !ch.unsure, unsure || ch.unsure
		return !changed
	})
	if err != nil || unsure && !changed {
		return nil, err
	}
	return &changed, nil
}

// staged tells whether the index differs from a commit, below a folder.
func (r *repository) staged(p *place, base *listing) bool {
	n := 0
	for name := range r.index.entries {
		if _, in := under(name, p.prefix); in {
			n++
		}
	}
	if n != len(base.entries) {
		return true
	}
	for i := range base.entries {
		b := &base.entries[i]
		e := r.index.entries[CleanPath(p.prefix+"/"+b.path)]
		if e == nil || e.Hash != b.hash || e.Mode != b.mode {
			return true
		}
	}
	return false
}
