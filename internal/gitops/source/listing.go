package source

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// entry is one leaf of a tree: a file, or what an artifact leaves out.
type entry struct {
	path string
	// mode is Git's; Empty is something that is neither file nor link.
	mode filemode.FileMode
	// hash is the blob's (a submodule's commit); zero in a working tree.
	hash plumbing.Hash
	// stat is what the disk says of a file of a working tree.
	stat stat
	// tracked says that a working tree's index knows the entry.
	tracked bool
}

func (e *entry) isFile() bool {
	return e.mode == filemode.Regular || e.mode == filemode.Executable || e.mode == filemode.Deprecated
}

// listing is every leaf of a tree, sorted by path.
type listing struct {
	entries []entry
	notes   []Note
	// keys are, for a commit, the keys of its artifacts by ignore rules, guarded
	// by the store's build lock.
	keys map[string]string
}

func (l *listing) sort() {
	slices.SortFunc(l.entries, func(a, b entry) int { return strings.Compare(a.path, b.path) })
}

// folders are all folders of the tree, sorted.
func folders(entries []entry) []string {
	seen := map[string]bool{}
	var out []string
	for i := range entries {
		for d := path.Dir(entries[i].path); d != "." && !seen[d]; d = path.Dir(d) {
			seen[d] = true
			out = append(out, d)
		}
	}
	slices.Sort(out)
	return out
}

// Note is something a reader should know of a tree.
type Note struct{ text string }

func (n Note) String() string { return n.text }

func note(format string, args ...any) Note { return Note{fmt.Sprintf(format, args...)} }

// digest hashes strings, unambiguous between them.
func digest(parts ...string) string {
	h := sha256.New()
	var buf []byte
	for _, p := range parts {
		buf = append(append(strconv.AppendInt(buf[:0], int64(len(p)), 10), ':'), p...)
		h.Write(buf)
	}
	return hex.EncodeToString(h.Sum(nil))
}
