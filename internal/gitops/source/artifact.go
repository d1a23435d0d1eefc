package source

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
)

// Artifact is a folder as a controller would see it. Its files are shared by hard
// links and must not be written to.
type Artifact struct {
	// Dir is the folder, absolute and private to this process.
	Dir string

	store *Store
	// whole and at are set for the view of a folder of another artifact.
	whole *Artifact
	at    string

	key     string
	files   []string
	dirs    []string
	hashes  map[string]plumbing.Hash
	dropped map[string]string
	// origin is, for a composed artifact, the repository path of each file.
	origin map[string]string

	// slot names what the artifact is a state of, "" for one that lasts: see plan.
	slot string

	// used, refs and parents are guarded by the store's build lock. A composed
	// artifact is in use while one that it was made from is.
	used, refs int
	parents    []*Artifact

	mu   sync.Mutex
	subs map[string]*Artifact
}

// plan is what an artifact will hold.
type plan struct {
	key string
	// slot is the working tree that this is a state of, with the ignore rules; ""
	// for a commit and a composed artifact. A state that was left behind is of no
	// use to anyone, so the next one is made of its folder.
	slot    string
	files   []string // sorted
	dirs    []string // that exist even without files
	hashes  map[string]plumbing.Hash
	dropped map[string]string
	origin  map[string]string
}

// make writes an artifact's folder, or gives the one that is there. All contents
// are in the store. The caller holds build.
func (s *Store) make(p *plan) (*Artifact, error) {
	if a := s.artifacts[p.key]; a != nil {
		return a.again(p.slot), nil
	}
	if s.closed {
		return nil, fail(Unreadable, "the store is closed")
	}
	s.clock++
	dirs := map[string]bool{}
	add := func(d string) {
		for ; d != "." && !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	for _, d := range p.dirs {
		add(d)
	}
	for _, f := range p.files {
		add(path.Dir(f))
	}
	a := &Artifact{Dir: filepath.Join(s.dir, fmt.Sprintf("tree-%d", s.clock)), store: s, key: p.key, slot: p.slot, used: s.clock,
		files: p.files, hashes: p.hashes, dropped: p.dropped, origin: p.origin, subs: map[string]*Artifact{}}
	for d := range dirs {
		a.dirs = append(a.dirs, d)
	}
	slices.Sort(a.dirs)
	for _, h := range a.hashes {
		s.blobs[h].refs++
	}
	before := s.leftBehind(p.slot)
	if before != nil {
		s.drop(before)
	}
	s.artifacts[p.key] = a
	if err := a.write(before); err != nil {
		// The half of a folder is of no use; what stays goes with the store.
		_ = os.RemoveAll(a.Dir)
		s.drop(a)
		return nil, coded("the private folder", err)
	}
	return a, nil
}

// again takes an artifact that is there once more; a commit's lasts.
func (a *Artifact) again(slot string) *Artifact {
	a.store.clock++
	a.used = a.store.clock
	if slot == "" {
		a.slot = ""
	}
	return a
}

// leftBehind is the last state of a slot, when nobody uses it; nil when there is none.
func (s *Store) leftBehind(slot string) *Artifact {
	var last *Artifact
	for _, a := range s.artifacts {
		if slot != "" && a.slot == slot && !a.inUse() && (last == nil || a.used > last.used) {
			last = a
		}
	}
	return last
}

// write makes the folder: of the folder of the state before, or anew. Most edits
// touch a few files of thousands.
func (a *Artifact) write(before *Artifact) error {
	if before != nil {
		if err := os.Rename(before.Dir, a.Dir); err == nil && a.change(before) == nil {
			return nil
		}
		// Somebody was in the private folder.
		for _, dir := range []string{before.Dir, a.Dir} {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
	}
	if err := os.Mkdir(a.Dir, 0o700); err != nil {
		return err
	}
	return a.change(&Artifact{})
}

// change brings the folder from what another artifact holds to what this one does.
func (a *Artifact) change(from *Artifact) error {
	at := func(p string) string { return filepath.Join(a.Dir, filepath.FromSlash(p)) }
	for _, f := range from.files {
		if h, ok := a.hashes[f]; !ok || h != from.hashes[f] {
			if err := os.Remove(at(f)); err != nil {
				return err
			}
		}
	}
	for _, d := range slices.Backward(from.dirs) { // sorted: parents come first
		if _, stays := slices.BinarySearch(a.dirs, d); !stays {
			if err := os.Remove(at(d)); err != nil {
				return err
			}
		}
	}
	for _, d := range a.dirs {
		if _, there := slices.BinarySearch(from.dirs, d); !there {
			if err := os.Mkdir(at(d), 0o700); err != nil {
				return err
			}
		}
	}
	for _, f := range a.files {
		if h, ok := from.hashes[f]; !ok || h != a.hashes[f] {
			if err := a.store.link(a.hashes[f], at(f)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Artifact) inUse() bool {
	return a.refs > 0 || slices.ContainsFunc(a.parents, (*Artifact).inUse)
}

// root is the artifact that this one is a view of, itself for a whole one.
func (a *Artifact) root() *Artifact {
	if a.whole != nil {
		return a.whole
	}
	return a
}

// Files are the files, as sorted slash paths relative to Dir. The slice must not
// be changed.
func (a *Artifact) Files() []string { return a.files }

// Hash is the hash of a regular file's content, false when there is none.
func (a *Artifact) Hash(p string) (string, bool) {
	root := a.root()
	h, ok := root.hashes[path.Join(a.at, CleanPath(p))]
	if !ok {
		return "", false
	}
	return h.String(), true
}

// RepoPath is the path in the repository of a path in the artifact. For a folder
// or a missing path of a composed artifact it is the best guess: where the files
// around it come from.
func (a *Artifact) RepoPath(p string) string {
	root := a.root()
	p = path.Join(a.at, CleanPath(p))
	if p == "" {
		p = "."
	}
	if root.origin == nil {
		return p
	}
	if o, ok := root.origin[p]; ok {
		return o
	}
	// The first file below a folder tells where the folder comes from, when the
	// copy kept the names in between.
	for dir, rest := p, "."; ; dir, rest = path.Dir(dir), path.Join(path.Base(dir), rest) {
		first := sort.SearchStrings(root.files, dir+"/")
		if dir == "." {
			first = 0
		}
		if first < len(root.files) {
			f := root.files[first]
			if below, in := under(f, dir); in {
				if from, ok := strings.CutSuffix("/"+root.origin[f], "/"+below); ok {
					return CleanPath(path.Join(from, rest))
				}
				return p
			}
		}
		if dir == "." {
			return p
		}
	}
}

// Dropped says of each path in the repository that the artifact leaves out why:
// "ignored by …", "symlink", "submodule" or "not a regular file". It must not be
// changed.
func (a *Artifact) Dropped() map[string]string { return a.dropped }

// Sub is the artifact seen from one of its folders; the same folder gives the
// same *Artifact. It fails with PathNotFound.
func (a *Artifact) Sub(dir string) (*Artifact, error) {
	dir = CleanPath(dir)
	if dir == "." {
		return a, nil
	}
	root := a.root()
	at := path.Join(a.at, dir)
	if _, found := slices.BinarySearch(root.dirs, at); !found {
		e := fail(PathNotFound, "there is no folder %s in the artifact", dir)
		if _, isFile := root.hashes[at]; isFile {
			e.Message = dir + " is a file of the artifact, not a folder"
		}
		for _, d := range root.dirs {
			if path.Dir(d) == path.Dir(at) && len(e.Valid) < maxValid {
				e.Valid = append(e.Valid, d)
			}
		}
		return nil, e
	}
	root.mu.Lock()
	defer root.mu.Unlock()
	if s := root.subs[at]; s != nil {
		return s, nil
	}
	s := &Artifact{Dir: filepath.Join(root.Dir, filepath.FromSlash(at)), store: root.store, whole: root, at: at, dropped: map[string]string{}}
	for _, f := range root.files[sort.SearchStrings(root.files, at+"/"):] {
		rest, in := strings.CutPrefix(f, at+"/")
		if !in {
			break
		}
		s.files = append(s.files, rest)
	}
	from := root.RepoPath(at)
	for p, why := range root.dropped {
		if _, in := under(p, from); in {
			s.dropped[p] = why
		}
	}
	root.subs[at] = s
	return s, nil
}

// isDir tells whether a path of a whole artifact is a folder.
func (a *Artifact) isDir(p string) bool {
	if p == "." {
		return true
	}
	_, found := slices.BinarySearch(a.root().dirs, path.Join(a.at, p))
	return found
}
