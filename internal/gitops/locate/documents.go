package locate

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// Doc is one document, or one item of a List.
type Doc struct {
	APIVersion, Kind, Namespace, Name string
	// Line is the first line of the content, 1-based.
	Line int

	file *File
	node *yaml.Node
}

// Documents are the documents in their order, without empty ones; the items of a
// List follow it as documents of their own.
func (f *File) Documents() []Doc { return f.docs }

// Find gives the document of an object. Kind and name must match; a namespace
// matches when it is equal or one of both is empty, and an equal one is preferred.
func (f *File) Find(kind, namespace, name string) (Doc, bool) {
	var near Doc
	found := false
	for _, d := range f.docs {
		if d.Kind != kind || d.Name != name {
			continue
		}
		if d.Namespace == namespace {
			return d, true
		}
		if !found && (d.Namespace == "" || namespace == "") {
			near, found = d, true
		}
	}
	return near, found
}

// index lists the documents. Aliases can make many items look through the same
// long mapping: past a budget of looked-at entries they stay without a name.
func (f *File) index(budget int) {
	s := search{left: budget}
	// An item that aliases name often is one document.
	seen := map[*yaml.Node]bool{}
	var add func(n *yaml.Node)
	add = func(n *yaml.Node) {
		n = resolve(n)
		if seen[n] {
			return
		}
		seen[n] = true
		meta := s.child(n, "metadata")
		d := Doc{
			APIVersion: text(s.child(n, "apiVersion")),
			Kind:       text(s.child(n, "kind")),
			Namespace:  text(s.child(meta, "namespace")),
			Name:       text(s.child(meta, "name")),
			Line:       f.lines.line(n.Line),
			file:       f,
			node:       n,
		}
		f.docs = append(f.docs, d)
		items := s.child(n, "items")
		if !strings.HasSuffix(d.Kind, "List") || items == nil || items.Kind != yaml.SequenceNode {
			return
		}
		for _, item := range items.Content {
			add(item)
		}
	}
	for _, root := range f.roots {
		add(root)
	}
}

// text is a scalar's value, "" of anything else.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}
