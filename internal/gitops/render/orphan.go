package render

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/locate"
)

// orphan is a patch of an object that a remote entry would bring: file is the
// kustomization file with the patch, "" for any.
type orphan struct{ file, kind, name string }

// maxOrphans bounds how often a build is tried again.
const maxOrphans = 200

// leaveOut decides whether a build that failed is tried again without a patch. A
// patch that names an object which is not there fails the whole build; where a
// remote entry was left out, that is our doing and not the repository's.
func (g *guard) leaveOut(err error) bool {
	if g.refusal != nil || len(g.stubs) == 0 || len(g.orphans) >= maxOrphans {
		return false
	}
	text := err.Error()
	ids := identity.FindAllStringSubmatch(text, -1)
	if len(ids) == 0 || !strings.Contains(text, "no matches for Id") {
		return false
	}
	last := ids[len(ids)-1]
	file := g.fileIn(text)
	if rel, ok := g.relative(g.overlay); file == "" && ok {
		file = rel
	}
	for _, o := range []orphan{{file, last[1], last[2]}, {"", last[1], last[2]}} {
		if !g.orphans[o] {
			if g.orphans == nil {
				g.orphans = map[orphan]bool{}
			}
			g.orphans[o] = true
			g.edited = map[string][]byte{}
			return true
		}
	}
	return false
}

// orphaned tells whether a patch is to be left out, and notes that.
func (v *visitor) orphaned(field string, p types.Patch) bool {
	if len(v.g.orphans) == 0 || p.Target != nil {
		return false
	}
	content := []byte(p.Patch)
	if p.Path != "" {
		content = v.g.files[path.Join(path.Dir(v.rel), p.Path)]
	}
	f, _ := locate.Parse(content) // kustomize has parsed it: problems are not ours to tell
	if f == nil {
		return false
	}
	for _, d := range f.Documents() {
		if !v.g.orphans[orphan{v.rel, d.Kind, d.Name}] && !v.g.orphans[orphan{"", d.Kind, d.Name}] {
			continue
		}
		v.changed = true
		line := lineOf(v.raw, p.Path)
		if p.Path == "" {
			line = lineOfObject(v.raw, d.Kind, d.Name)
		}
		s := Stub{File: v.rel, Line: line, Field: field, Value: d.Kind + "/" + d.Name, Dependent: true}
		if !slices.Contains(v.g.stubs, s) {
			v.g.stubs = append(v.g.stubs, s)
		}
		return true
	}
	return false
}
