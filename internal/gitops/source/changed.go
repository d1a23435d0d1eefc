package source

import (
	"context"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// ChangeKind is what happened to a file.
type ChangeKind string

// The kinds of changes. There is no rename: a move is a Deleted and an Added.
const (
	Added    ChangeKind = "added"
	Modified ChangeKind = "modified"
	Deleted  ChangeKind = "deleted"
)

// Change is one file that differs. A change of the mode, of a link's target and
// of a submodule's commit is a Modified.
type Change struct {
	Path string
	Kind ChangeKind
}

// Changes are what a head changed since it left a base.
type Changes struct {
	// Base, Head and MergeBase are commits; Head is "" for a working tree.
	Base, Head, MergeBase string
	// Files are sorted by path, relative to the folder that was asked for.
	Files []Change
}

// Changed compares head with the merge base of base and head (three dots). head
// "" is the working tree, against the merge base of base and HEAD, with untracked
// files that Git does not ignore. Of several merge bases the newest is taken.
//
// It fails with Shallow where the history for that is missing, UnrelatedHistory
// where there is no common ancestor, and as Open does.
func (s *Store) Changed(ctx context.Context, repoPath, base, head string) (*Changes, error) {
	p, err := locate(repoPath)
	if err != nil {
		return nil, err
	}
	r, err := s.open(p, repoPath)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	from, err := r.resolve(ctx, base)
	if err != nil {
		return nil, err
	}
	name := head
	if name == "" {
		name = "HEAD"
	}
	to, err := r.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	bases, err := r.mergeBases(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if len(bases) == 0 {
		what := base + " and " + name + " have no common commit"
		if len(r.shallow) > 0 {
			return nil, r.errShallow(what + " in this clone")
		}
		return nil, fail(UnrelatedHistory, "%s: compare with a base that %s was branched from", what, name)
	}
	out := &Changes{Base: from.Hash.String(), MergeBase: bases[0].Hash.String()}
	top, err := r.folder(ctx, bases[0], p.prefix, s.limits)
	if err != nil {
		return nil, err
	}
	if head == "" && !p.bare {
		out.Files, err = s.changedOnDisk(ctx, p, r, top)
	} else {
		out.Head = to.Hash.String()
		out.Files, err = s.changedInGit(ctx, p, r, top, to)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out.Files, func(a, b Change) int {
		if n := strings.Compare(a.Path, b.Path); n != 0 {
			return n
		}
		return strings.Compare(string(a.Kind), string(b.Kind))
	})
	return out, nil
}

func (s *Store) changedInGit(ctx context.Context, p *place, r *repository, before plumbing.Hash, to *object.Commit) ([]Change, error) {
	after, err := r.folder(ctx, to, p.prefix, s.limits)
	if err != nil {
		return nil, err
	}
	var out []Change
	reader := &treeReader{ctx: ctx, objects: r.storage, limits: s.limits}
	err = reader.diff(before, after, ".", func(p string, x, y *entry) {
		switch {
		case x == nil:
			out = append(out, Change{p, Added})
		case y == nil:
			out = append(out, Change{p, Deleted})
		default:
			out = append(out, Change{p, Modified})
		}
	})
	return out, err
}

func (s *Store) changedOnDisk(ctx context.Context, p *place, r *repository, before plumbing.Hash) ([]Change, error) {
	disk, err := s.listWorktree(ctx, p, r)
	if err != nil {
		return nil, err
	}
	base := &listing{}
	if !before.IsZero() {
		if base, err = s.listCommit(ctx, r, before); err != nil {
			return nil, err
		}
	}
	var out []Change
	err = s.compare(p, r, -1).worktree(ctx, base.entries, disk.entries, func(c worktreeChange) bool {
		out = append(out, c.Change)
		return true
	})
	return out, err
}
