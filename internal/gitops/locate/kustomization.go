package locate

import (
	"math"

	"gopkg.in/yaml.v3"
)

// KustomizationEntry is the line of a scalar equal to value anywhere below a
// top-level field of a kustomization file (resources, components, patches …; ""
// for any field); 0 when there is none. Keys are not entries.
func KustomizationEntry(data []byte, field, value string) int {
	f, _ := Parse(data) // what does not parse has no entries; who builds it says why
	s := search{left: math.MaxInt}
	for _, root := range f.roots {
		n := root
		if field != "" {
			if n = s.child(root, field); n == nil {
				continue
			}
		}
		if line := scalar(n, value); line > 0 {
			return f.lines.line(line)
		}
	}
	return 0
}

// scalar is the parser's line of the first scalar of that value at or below a
// node; aliases are not followed.
func scalar(n *yaml.Node, value string) int {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Value == value {
			return n.Line
		}
	case yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			if line := scalar(n.Content[i], value); line > 0 {
				return line
			}
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			if line := scalar(c, value); line > 0 {
				return line
			}
		}
	}
	return 0
}
