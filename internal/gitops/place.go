package gitops

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/locate"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// parsed gives a file's documents for finding lines, remembered by content.
func (e *Engine) parsed(a *artifactView, file string) (*locate.File, []byte) {
	hash, ok := a.hash(file)
	if !ok {
		return nil, nil
	}
	type entry struct {
		file *locate.File
		data []byte
	}
	key := "place:" + hash
	if v, ok := e.cache.get(key); ok {
		en := v.(*entry)
		return en.file, en.data
	}
	data, err := readBounded(filepath.Join(a.art.Dir, filepath.FromSlash(file)), maxRawFile)
	if err != nil || data == nil {
		return nil, nil // it can't be read now: that is not its content
	}
	// What does not parse has no documents; the render says what is wrong.
	f, _ := locate.Parse(data)
	e.cache.put(key, &entry{f, data}, 256+20*len(data))
	return f, data
}

// placeOf is where the document of a manifest begins.
func (e *Engine) placeOf(a *artifactView, m *manifest) Place {
	from := e.originOf(a, m)
	switch {
	case from.File != "":
	case from.Generator != "":
		return Place{a.art.RepoPath(from.Generator), e.generatorLine(a, from)}
	default:
		return Place{}
	}
	return Place{a.art.RepoPath(from.File), e.lineOf(a, from)}
}

// generatorLine is where a kustomization file names what it generates: by the name
// of the object, without the hash that ends it; else the first line.
func (e *Engine) generatorLine(a *artifactView, from render.Origin) int {
	_, data := e.parsed(a, from.Generator)
	field := strings.ToLower(from.Kind[:1]) + from.Kind[1:] + "Generator"
	for _, name := range []string{from.Name, from.Name[:max(0, strings.LastIndexByte(from.Name, '-'))]} {
		if line := locate.KustomizationEntry(data, field, name); line > 0 {
			return line
		}
	}
	return 1
}

// lineOf is where the document of an origin begins, 0 when it is not found.
func (e *Engine) lineOf(a *artifactView, from render.Origin) int {
	if f, _ := e.parsed(a, from.File); f != nil {
		if doc, ok := f.Find(from.Kind, from.Namespace, from.Name); ok {
			return doc.Line
		}
	}
	return 0
}

// fieldPlace is where a person would edit a field of a rendered object: in its
// document; where the field is not there, in the file of the transformer that
// put it there, in the Kustomization's own document (its patches), or in one of
// those above it. A field that is missing belongs where its parent stands.
func (d *discovery) fieldPlace(n *node, m *manifest, pointer string, missing bool) Place {
	at, from := d.e.placeOf(n.art, m), d.e.originOf(n.art, m)
	if f, _ := d.e.parsed(n.art, from.File); f != nil {
		if doc, ok := f.Find(from.Kind, from.Namespace, from.Name); ok {
			line, exact := doc.Field(pointer)
			at.Line = line
			if exact || missing {
				return at
			}
		}
	}
	key := lastKey(pointer)
	if key == "" {
		return at
	}
	// A generator's object has no document of its own.
	if from.Generator != "" {
		if line := d.lineOfKeyAfter(n.art, from.Generator, key, at.Line); line > 0 {
			return Place{n.art.art.RepoPath(from.Generator), line}
		}
	}
	for i := len(from.Transformers) - 1; i >= 0; i-- {
		file := from.Transformers[i].File
		if line := d.lineOfKey(n.art, file, key); line > 0 {
			return Place{n.art.art.RepoPath(file), line}
		}
		// The patch stands in a file of its own.
		for _, part := range partsOf(n, file) {
			if line := d.lineOfKey(n.art, part, key); line > 0 {
				return Place{n.art.art.RepoPath(part), line}
			}
		}
	}
	for up := n; up != nil && len(from.Transformers) > 0; up = d.nodes[up.parent] {
		p := d.placeOf(up)
		if p.File == "" {
			break
		}
		if line := d.lineOfKey(d.snap.view, p.File, key); line > 0 {
			return Place{p.File, line}
		}
		if up.root != nil {
			break
		}
	}
	return at
}

// partsOf are the files that a kustomization file refers to, sorted.
func partsOf(n *node, file string) []string {
	if n.build == nil {
		return nil
	}
	var out []string
	for part, from := range n.build.result.Edges {
		if slices.Contains(from, file) {
			out = append(out, part)
		}
	}
	slices.Sort(out)
	return out
}

// lastKey is the last element of a pointer that is a name, not an index.
func lastKey(pointer string) string {
	parts := strings.Split(pointer, "/")
	for i := len(parts) - 1; i > 0; i-- {
		if strings.Trim(parts[i], "0123456789") != "" {
			return locate.Unescape(parts[i])
		}
	}
	return ""
}

// lineOfKey finds the line on which a key, a generator's literal, or a JSON
// patch's path that ends in it, stands in a file.
func (d *discovery) lineOfKey(a *artifactView, file, key string) int {
	return d.lineOfKeyAfter(a, file, key, 1)
}

// lineOfKeyAfter is lineOfKey from a line on.
func (d *discovery) lineOfKeyAfter(a *artifactView, file, key string, first int) int {
	if a == nil {
		return 0
	}
	_, data := d.e.parsed(a, file)
	if data == nil {
		return 0
	}
	quoted := regexp.QuoteMeta(key)
	re := regexp.MustCompile(`^.*(?:["']?` + quoted + `["']?\s*[:=]|path["']?:.*/` + quoted + `["']?\s*,?\s*$)`)
	for i, line := range bytes.Split(data, []byte("\n")) {
		if i+1 >= first && re.Match(line) {
			return i + 1
		}
	}
	return 0
}
