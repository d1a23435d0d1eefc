package locate

import "gopkg.in/yaml.v3"

// check finds duplicate keys and aliases that grow out of bounds.
func (f *File) check() []Problem {
	c := checker{file: f, size: map[*yaml.Node]int{}}
	for _, root := range f.roots {
		c.nodes = 0
		total := c.walk(root)
		if c.selfLine > 0 {
			c.add(Problem{Line: c.selfLine, Kind: Syntax, Message: "an anchor's value holds an alias to itself: it has no end"})
		} else if excessive(total, c.nodes) {
			c.add(Problem{Line: f.lines.line(root.Line), Kind: Syntax, Message: "the document grows out of bounds through its aliases"})
		}
		c.selfLine = 0
	}
	return c.problems
}

type checker struct {
	file     *File
	problems []Problem
	// size is how many nodes an anchor stands for when its aliases are expanded;
	// 0 while its value is being walked. An alias refers to an earlier anchor, so
	// the figure is there when it is needed and nothing is walked twice.
	size     map[*yaml.Node]int
	nodes    int
	selfLine int
}

func (c *checker) add(p Problem) {
	if len(c.problems) < maxProblems {
		c.problems = append(c.problems, p)
	}
}

// maxSize is where counting an expansion stops.
const maxSize = 1 << 40

// walk gives a node's size with its aliases expanded. It recurses as deep as the
// text is nested, which the parser bounds at 10,000.
func (c *checker) walk(n *yaml.Node) int {
	c.nodes++
	if n.Kind == yaml.AliasNode {
		size := c.size[n.Alias]
		if size == 0 && c.selfLine == 0 {
			c.selfLine = c.file.lines.line(n.Line)
		}
		return min(size+1, maxSize)
	}
	if n.Anchor != "" {
		c.size[n] = 0
	}
	if n.Kind == yaml.MappingNode {
		c.duplicates(n)
	}
	size := 1
	for _, child := range n.Content {
		size = min(size+c.walk(child), maxSize)
	}
	if n.Anchor != "" {
		c.size[n] = size
	}
	return size
}

func (c *checker) duplicates(n *yaml.Node) {
	if len(n.Content) < 4 {
		return
	}
	first := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			continue
		}
		line := c.file.lines.line(k.Line)
		if at, ok := first[k.Value]; ok {
			c.add(duplicate(k.Value, at, line))
			continue
		}
		first[k.Value] = line
	}
}

// excessive is the rule of the decoders (yaml.v2, yaml.v3): the share of nodes
// that come out of aliases may be 99 % in a small document, 10 % in a large one.
func excessive(total, written int) bool {
	const small, large = 400_000, 4_000_000
	if total <= 100 {
		return false
	}
	allowed := 0.99
	switch {
	case total >= large:
		allowed = 0.10
	case total > small:
		allowed -= 0.89 * float64(total-small) / float64(large-small)
	}
	return float64(total-written)/float64(total) > allowed
}
