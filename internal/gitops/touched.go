package gitops

import (
	"maps"
	"path"
	"slices"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// touched is what of a change the builds of both sides looked at. Each build's
// reads are gone through once, however many files and questions there are.
type touched struct {
	changed map[string]string   // file → how it changed
	comings map[string][]string // folder → files that come or go in it
	ignores []string            // changed .sourceignore files
	hitsOf  map[*node][]hit
	readBy  map[string][]string // file → Kustomizations whose build looked at it
}

func touch(files []ChangedFile) touched {
	t := touched{changed: map[string]string{}, comings: map[string][]string{}, hitsOf: map[*node][]hit{}}
	for _, f := range files {
		t.changed[f.File] = f.Change
		if f.Change != string(source.Modified) {
			dir := path.Dir(f.File)
			t.comings[dir] = append(t.comings[dir], f.File)
		}
		if path.Base(f.File) == ".sourceignore" {
			t.ignores = append(t.ignores, f.File)
		}
	}
	return t
}

// hit is a changed file that a build looked at: local is its path in the
// artifact, repo in the repository.
type hit struct{ repo, local string }

// hits finds the changed files in a read-set. A folder that was walked, and a
// file that was looked for, count for files that come and go.
func (t *touched) hits(n *node) []hit {
	if n.build == nil {
		return nil
	}
	out, ok := t.hitsOf[n]
	if ok {
		return out
	}
	for _, r := range n.build.result.Reads {
		repo := n.art.art.RepoPath(r.Path)
		switch _, ok := t.changed[repo]; {
		case ok && (r.Kind == render.File || r.Kind == render.Missing):
			out = append(out, hit{repo, r.Path})
		case r.Kind == render.Dir:
			for _, f := range t.comings[repo] {
				out = append(out, hit{f, path.Join(r.Path, path.Base(f))})
			}
		}
	}
	t.hitsOf[n] = out
	return out
}

// readers names the Kustomizations whose build looked at a file, sorted.
func (c *comparison) readers(file string) []string {
	if c.readBy == nil {
		names := map[string]map[string]bool{}
		for _, s := range c.sides() {
			for k, n := range s.d.nodes {
				for _, h := range c.hits(n) {
					if names[h.repo] == nil {
						names[h.repo] = map[string]bool{}
					}
					names[h.repo][k.String()] = true
				}
			}
		}
		c.readBy = map[string][]string{}
		for f, by := range names {
			c.readBy[f] = slices.Sorted(maps.Keys(by))
		}
	}
	return c.readBy[file]
}

// folders yields the folders that a file lies in, the innermost first, and "."
// last.
func folders(file string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for dir := file; dir != "."; {
			if dir = path.Dir(dir); !yield(dir) {
				return
			}
		}
	}
}
