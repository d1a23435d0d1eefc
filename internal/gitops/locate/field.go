package locate

import (
	"math"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

var (
	escaper   = strings.NewReplacer("~", "~0", "/", "~1")
	unescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

// Escape makes a key an element of a JSON pointer.
func Escape(key string) string { return escaper.Replace(key) }

// Unescape gives the key that an element of a JSON pointer stands for.
func Unescape(element string) string { return unescaper.Replace(element) }

// Field gives the line of the key (of a list's item: its first line) of the
// deepest element of a JSON pointer that exists, and whether all of it exists.
// What an alias or a merge key brings in is found where it is written.
func (d Doc) Field(pointer string) (line int, exact bool) {
	line = d.Line
	if pointer == "" {
		return line, true
	}
	if d.node == nil || pointer[0] != '/' {
		return line, false
	}
	n := d.node
	for token := range strings.SplitSeq(pointer[1:], "/") {
		at, next := step(n, Unescape(token))
		if next == nil {
			return line, false
		}
		line, n = d.file.lines.line(at), next
	}
	return line, true
}

// step goes to one child of a node and gives the parser's line of its key.
func step(n *yaml.Node, token string) (line int, next *yaml.Node) {
	switch n = resolve(n); n.Kind {
	case yaml.MappingNode:
		s := search{left: math.MaxInt}
		if key, value := s.find(n, token); value != nil {
			return key.Line, value
		}
	case yaml.SequenceNode:
		i, err := strconv.Atoi(token)
		if err != nil || i < 0 || i >= len(n.Content) || strconv.Itoa(i) != token {
			return 0, nil
		}
		return n.Content[i].Line, n.Content[i]
	}
	return 0, nil
}

// search finds keys in mappings and what they merge.
type search struct {
	// left is how many more entries may be looked at; then nothing is found.
	left int
	// seen are the merged mappings that this key was looked for in, so that merges
	// of merges cost no more than the text is long.
	seen map[*yaml.Node]bool
}

// child is a mapping's value, its alias followed; nil when there is none.
func (s *search) child(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	s.seen = nil
	_, value := s.find(n, key)
	if value == nil {
		return nil
	}
	return resolve(value)
}

// find looks for a key in a mapping: among its own first, then in what it merges,
// earlier ones before later ones.
func (s *search) find(m *yaml.Node, key string) (k, v *yaml.Node) {
	merges := false
	for i := 0; i+1 < len(m.Content); i += 2 {
		if s.left--; s.left < 0 {
			return nil, nil
		}
		name := resolve(m.Content[i])
		if isMerge(m.Content[i]) {
			merges = true
		} else if name.Kind == yaml.ScalarNode && name.Value == key {
			return m.Content[i], m.Content[i+1]
		}
	}
	if !merges {
		return nil, nil
	}
	if s.seen == nil {
		s.seen = map[*yaml.Node]bool{m: true}
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if !isMerge(m.Content[i]) {
			continue
		}
		merged := resolve(m.Content[i+1])
		from := []*yaml.Node{merged}
		if merged.Kind == yaml.SequenceNode {
			from = merged.Content
		}
		for _, o := range from {
			if s.left--; s.left < 0 {
				return nil, nil
			}
			if o = resolve(o); o.Kind != yaml.MappingNode || s.seen[o] {
				continue
			}
			s.seen[o] = true
			if k, v := s.find(o, key); v != nil {
				return k, v
			}
		}
	}
	return nil, nil
}

// isMerge says that a key is a plain `<<`; a quoted one is an ordinary key.
func isMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && n.Tag == "!!merge"
}

// resolve gives what an alias refers to; an anchor is never an alias itself.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}
