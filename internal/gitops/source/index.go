package source

import (
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// racy is how young a file may be for its times to prove nothing: a later write
// could leave them as they are.
const racy = 2 * time.Second

// stat is what tells, without reading, that a file is as it was.
type stat struct {
	size    int64
	mtime   int64 // nanoseconds
	changed int64 // of the inode, nanoseconds
	inode   uint64
}

func statOf(info os.FileInfo) stat {
	inode, changed := fileID(info)
	return stat{size: info.Size(), mtime: info.ModTime().UnixNano(), changed: changed, inode: inode}
}

// youngAt tells whether a file was written just before (or after) a moment.
func (s stat) youngAt(now time.Time) bool { return now.UnixNano()-s.mtime < int64(racy) }

// gitIndex is the index of a repository: what is tracked, and with which state
// of the disk Git saw it last.
type gitIndex struct {
	state   stat
	young   bool
	loaded  bool
	entries map[string]*index.Entry
	// unreadable says that there is an index that go-git can't read.
	unreadable bool
	// converts says that Git may store other bytes than the disk has.
	converts bool
}

// readIndex reads Git's index, unless it is as it was.
func (r *repository) readIndex() *gitIndex {
	info, err := os.Stat(filepath.Join(r.gitDir, "index"))
	now := time.Now()
	var state stat
	if err == nil {
		state = statOf(info)
	}
	if r.index.loaded && r.index.state == state && !r.index.young {
		return &r.index
	}
	r.index = gitIndex{state: state, young: state.youngAt(now), loaded: true, entries: map[string]*index.Entry{}}
	if err != nil {
		return &r.index // nothing was ever added
	}
	idx, err := r.storage.Index()
	if err != nil {
		// Some forms of the index (split, sparse) are unknown to go-git; the
		// caller falls back to the commit and says so.
		r.index.unreadable = true
		return &r.index
	}
	for _, e := range idx.Entries {
		r.index.entries[e.Name] = e
		if filepath.Base(e.Name) == ".gitattributes" {
			r.index.converts = true
		}
	}
	if v := r.config.Raw.Section("core").Option("autocrlf"); v == "true" || v == "input" {
		r.index.converts = true
	}
	return &r.index
}

// clean gives the hash that the index has of a file when the disk proves that
// the file was not written since.
func (g *gitIndex) clean(path string, mode filemode.FileMode, s stat) (plumbing.Hash, bool) {
	e := g.entries[path]
	if e == nil || e.IntentToAdd || e.Stage != 0 || e.Mode != mode || int64(e.Size) != s.size {
		return plumbing.ZeroHash, false
	}
	mtime := e.ModifiedAt.UnixNano()
	if mtime != s.mtime || mtime >= g.state.mtime {
		return plumbing.ZeroHash, false
	}
	if s.inode != 0 && e.Inode != 0 && e.Inode != uint32(s.inode) {
		return plumbing.ZeroHash, false
	}
	if s.changed != 0 && !e.CreatedAt.IsZero() && e.CreatedAt.UnixNano() != s.changed {
		return plumbing.ZeroHash, false
	}
	return e.Hash, true
}

// indexEntry makes an entry of an index, without a state of the disk.
func indexEntry(e entry) *index.Entry {
	return &index.Entry{Name: e.path, Mode: e.mode, Hash: e.hash}
}
