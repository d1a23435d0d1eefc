package source

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Tree is a repository at one moment. Release gives it back.
type Tree struct {
	// Repo is the path and Ref the ref that were asked for; a bare repository
	// asked without a ref is read at HEAD.
	Repo, Ref string
	// Commit is what Ref resolved to; for a working tree it is HEAD's, "" for a
	// plain folder and before the first commit.
	Commit string
	// Worktree says that the files on disk were read.
	Worktree bool
	// Dirty tells whether the working tree differs from Commit (staged, changed
	// or untracked files); nil when that is not known, and always for a commit.
	Dirty *bool
	// Notes say what a reader should know of the tree.
	Notes []Note

	store *Store
	place *place
	list  *listing

	mu        sync.Mutex
	released  bool
	artifacts map[string]*Artifact
}

// Open reads a repository: at a ref (branch, tag, commit, origin/x, HEAD~2), or
// with ref "" as its working tree is on disk, without what Git ignores. A plain
// folder can be read that way, too. Contents are read only by Artifact.
//
// It fails with PathNotFound, InvalidArgument, NotARepository (a ref of a plain
// folder), UnknownRef, Shallow, TooLarge or Unreadable.
func (s *Store) Open(ctx context.Context, repoPath, ref string) (*Tree, error) {
	p, err := locate(repoPath)
	if err != nil {
		return nil, err
	}
	t := &Tree{Repo: repoPath, Ref: ref, store: s, place: p, artifacts: map[string]*Artifact{}, Notes: p.notes}
	if p.bare && ref == "" {
		t.Ref = "HEAD"
	}
	if t.Ref == "" && p.top == "" {
		t.Worktree = true
		t.list, err = s.listWorktree(ctx, p, nil)
	} else {
		var r *repository
		if r, err = s.open(p, repoPath); err != nil {
			return nil, err
		}
		defer r.mu.Unlock()
		t.Notes = append(t.Notes, r.linkedNote()...)
		if t.Ref == "" {
			t.Worktree = true
			err = t.openWorktree(ctx, r)
		} else {
			err = t.openCommit(ctx, r)
		}
	}
	if err != nil {
		return nil, err
	}
	t.noteEntries()
	return t, nil
}

func (t *Tree) openCommit(ctx context.Context, r *repository) error {
	c, err := r.resolve(ctx, t.Ref)
	if err != nil {
		return err
	}
	t.Commit = c.Hash.String()
	top, err := r.folder(ctx, c, t.place.prefix, t.store.limits)
	if err != nil {
		return err
	}
	if top.IsZero() {
		return fail(PathNotFound, "there is no folder %s at %s", t.place.prefix, t.Ref)
	}
	t.list, err = t.store.listCommit(ctx, r, top)
	return err
}

// folder is the tree of a folder at a commit, zero when there is none.
func (r *repository) folder(ctx context.Context, c *object.Commit, prefix string, limits Limits) (plumbing.Hash, error) {
	h := c.TreeHash
	if prefix == "." {
		return h, nil
	}
	reader := &treeReader{ctx: ctx, objects: r.storage, limits: limits}
	at := "."
	for _, name := range strings.Split(prefix, "/") {
		entries, err := reader.read(h, at)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		h = plumbing.ZeroHash
		for _, e := range entries {
			if e.Name == name && e.Mode == filemode.Dir {
				h = e.Hash
			}
		}
		if h.IsZero() {
			return h, nil
		}
		at = join(at, name)
	}
	return h, nil
}

// listCommit lists a tree of Git, or gives the list of the last time.
func (s *Store) listCommit(ctx context.Context, r *repository, h plumbing.Hash) (*listing, error) {
	// A repository may lie about what a hash stands for, but only to itself.
	key := r.commonDir + "\x00" + h.String()
	s.mu.Lock()
	l, ok := s.listings.get(key)
	s.mu.Unlock()
	if ok {
		return l, nil
	}
	l = &listing{}
	reader := &treeReader{ctx: ctx, objects: r.storage, limits: s.limits, safe: true}
	if err := reader.list(h, ".", func(e entry) { l.entries = append(l.entries, e) }); err != nil {
		return nil, err
	}
	l.sort()
	s.mu.Lock()
	s.listings.put(key, l)
	s.mu.Unlock()
	return l, nil
}

func (t *Tree) openWorktree(ctx context.Context, r *repository) error {
	list, err := t.store.listWorktree(ctx, t.place, r)
	if err != nil {
		return err
	}
	t.list = list
	t.Notes = append(t.Notes, list.notes...)
	t.store.diskIndexOf(t.place.dir).forget(list)
	head, err := r.head()
	if err != nil || head == nil {
		return err
	}
	t.Commit = head.Hash.String()
	t.Dirty, err = t.store.dirty(ctx, t.place, r, head, list)
	return err
}

// noteEntries adds notes on what an artifact leaves out and a reader may miss.
func (t *Tree) noteEntries() {
	modules := 0
	for i := range t.list.entries {
		e := &t.list.entries[i]
		if e.mode == filemode.Submodule {
			if modules++; modules <= maxValid {
				t.Notes = append(t.Notes, note("submodule folder %s: its content is another repository's and is left out", e.path))
			}
		}
		if path.Base(e.path) == sourceignore.IgnoreFile && !e.isFile() {
			t.Notes = append(t.Notes, note("%s is no regular file: its rules are not read", e.path))
		}
	}
	if modules > maxValid {
		t.Notes = append(t.Notes, note("%d more submodule folders are left out", modules-maxValid))
	}
}

// Release gives the tree back: its artifacts, and what Sub and Compose made of
// them, may be removed from then on. The store keeps some for the next Open.
func (t *Tree) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return
	}
	t.released = true
	t.store.build.Lock()
	defer t.store.build.Unlock()
	for _, a := range t.artifacts {
		a.refs--
	}
	t.store.evict()
}

// Artifact gives what source-controller would make of the tree. ignore is
// spec.ignore of the source, "" when it has none. Equal content under equal rules
// is the same *Artifact while the store has it.
//
// It fails with TooLarge or Unreadable.
func (t *Tree) Artifact(ignore string) (*Artifact, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return nil, fail(InvalidArgument, "the tree was released")
	}
	if a := t.artifacts[ignore]; a != nil {
		return a, nil
	}
	t.store.build.Lock()
	defer t.store.build.Unlock()
	a, err := t.materialise(ignore)
	if err != nil {
		return nil, err
	}
	a.refs++
	t.artifacts[ignore] = a
	t.store.evict()
	return a, nil
}

// contents brings contents of a tree into the store.
type contents interface {
	// fetch gives the hash and size of an entry and keeps its content.
	fetch(e *entry) (plumbing.Hash, int64, error)
	close()
}

type commitContents struct {
	store *Store
	repo  *repository
}

func (c *commitContents) fetch(e *entry) (plumbing.Hash, int64, error) {
	size, err := c.store.fetchBlob(c.repo, e.path, e.hash)
	return e.hash, size, err
}

func (c *commitContents) close() { c.repo.mu.Unlock() }

type diskContents struct {
	store *Store
	root  *os.Root
	index *diskIndex
}

func (c *diskContents) fetch(e *entry) (plumbing.Hash, int64, error) {
	return c.store.fetchFile(c.root, c.index, e)
}

func (c *diskContents) close() { c.root.Close() }

func (t *Tree) contents() (contents, error) {
	if !t.Worktree {
		r, err := t.store.open(t.place, t.Repo)
		if err != nil {
			return nil, err
		}
		return &commitContents{t.store, r}, nil
	}
	root, err := os.OpenRoot(t.place.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail(PathNotFound, "there is no folder %q any more", t.Repo)
	}
	if err != nil {
		return nil, coded("the folder", err)
	}
	return &diskContents{t.store, root, t.store.diskIndexOf(t.place.dir)}, nil
}

// materialise makes the artifact, or finds it. The caller holds build.
func (t *Tree) materialise(ignore string) (*Artifact, error) {
	if a := t.store.artifacts[t.list.keys[ignore]]; a != nil {
		return a.again(""), nil
	}
	c, err := t.contents()
	if err != nil {
		return nil, err
	}
	defer c.close()
	plan, err := t.plan(c, ignore)
	if err != nil {
		return nil, err
	}
	if t.Worktree {
		plan.slot = t.place.dir + "\x00" + ignore
	}
	a, err := t.store.make(plan)
	if err == nil && !t.Worktree && len(t.list.keys) < keepIdle {
		// A commit's list stays as it is; a working tree's files may change yet.
		if t.list.keys == nil {
			t.list.keys = map[string]string{}
		}
		t.list.keys[ignore] = a.key
	}
	return a, err
}

// plan decides what the artifact holds, and brings the contents into the store.
func (t *Tree) plan(c contents, ignore string) (*plan, error) {
	s, entries := t.store, t.list.entries
	if len(ignore) > maxRules {
		return nil, fail(TooLarge, "spec.ignore has %d bytes; the limit is %d", len(ignore), maxRules)
	}
	hashes := map[string]plumbing.Hash{}
	var ruleFiles []string
	for i := range entries {
		e := &entries[i]
		if path.Base(e.path) != sourceignore.IgnoreFile || !e.isFile() {
			continue
		}
		h, size, err := c.fetch(e)
		if err != nil {
			return nil, err
		}
		if size > maxRules {
			return nil, fail(TooLarge, "%s has %d bytes; the limit for ignore rules is %d", e.path, size, maxRules)
		}
		ruleFiles = append(ruleFiles, e.path)
		hashes[e.path] = h
	}
	rs, err := rulesOf(inFolderOrder(ruleFiles), func(p string) ([]byte, error) {
		b, err := os.ReadFile(s.blobPath(hashes[p]))
		return b, coded(p, err)
	}, ignore)
	if err != nil {
		return nil, err
	}
	if len(rs)*len(entries) > maxMatches {
		return nil, fail(TooLarge, "%d ignore rules over %d files are more than %d comparisons: shorten the .sourceignore files", len(rs), len(entries), maxMatches)
	}
	parts := []string{"tree", ignore}
	for _, f := range ruleFiles {
		parts = append(parts, "rules", f, hashes[f].String())
	}
	match := s.remembered(digest(parts...), rs, len(entries))
	p := &plan{hashes: map[string]plumbing.Hash{}, dropped: map[string]string{}}
	var kept []*entry
	for i := range entries {
		e := &entries[i]
		why, drop := match(e.path, false)
		switch {
		case e.mode == filemode.Symlink:
			why, drop = "symlink", true
		case e.mode == filemode.Submodule:
			why, drop = "submodule", true
		case !e.isFile():
			why, drop = "not a regular file", true
		}
		if drop {
			p.dropped[e.path] = why
			continue
		}
		kept = append(kept, e)
	}
	if len(kept) > s.limits.Files {
		return nil, fail(TooLarge, "the tree has %d files after ignore rules, more than the limit of %d: leave some out with a .sourceignore file or spec.ignore, open a part of the repository, or raise the limit", len(kept), s.limits.Files)
	}
	var total int64
	for _, e := range kept {
		h, size, err := c.fetch(e)
		if err != nil {
			return nil, err
		}
		if total += size; total > s.limits.TotalBytes {
			return nil, fail(TooLarge, "the files of the tree have more than %d bytes in all, the limit: leave some out with a .sourceignore file or spec.ignore, open a part of the repository, or raise the limit", s.limits.TotalBytes)
		}
		p.hashes[e.path] = h
		p.files = append(p.files, e.path)
	}
	for _, d := range folders(entries) {
		if _, drop := match(d, true); !drop {
			p.dirs = append(p.dirs, d)
		}
	}
	for i := range entries {
		f := entries[i].path
		parts = append(parts, f, p.dropped[f], p.hashes[f].String())
	}
	p.key = digest(parts...)
	return p, nil
}

// inFolderOrder sorts rule files as source-controller comes upon them: a folder's
// own before those of its subfolders, which follow by name.
func inFolderOrder(files []string) []string {
	slices.SortFunc(files, func(a, b string) int {
		return slices.Compare(strings.Split(path.Dir(a), "/"), strings.Split(path.Dir(b), "/"))
	})
	return files
}
