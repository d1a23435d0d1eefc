package render

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// maxNodes bounds a YAML document with its aliases written out.
const maxNodes = 5_000_000

// maxNesting bounds the depth of a document.
const maxNesting = 1000

var anchor = regexp.MustCompile(`(?m)(^|[\s\[{,:-])&[^\s\[\]{},]`)

// checkYAML refuses what a parser should not be handed: text that is none,
// aliases that grow, depth without end. Files that are no YAML pass.
func checkYAML(rel string, data []byte) *Error {
	switch path.Ext(rel) {
	case ".yaml", ".yml", ".json":
	default:
		if path.Base(rel) != "Kustomization" {
			return nil
		}
	}
	if !utf8.Valid(data) {
		return &Error{Code: InvalidYAML, File: rel, Line: badLine(data), Message: "it is not UTF-8"}
	}
	if depth := nesting(data); depth > maxNesting {
		return &Error{Code: InvalidYAML, File: rel, Line: 1, Message: fmt.Sprintf("it nests deeper than %d levels", maxNesting)}
	}
	// The byte first: it is forty times as fast, and most files have none.
	if bytes.IndexByte(data, '&') < 0 || !anchor.Match(data) {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	total := 0
	for {
		var n yaml.Node
		// The end, or what kustomize will refuse as well.
		if err := safely(func() error { return dec.Decode(&n) }); err != nil {
			return nil
		}
		total += grown(&n, map[*yaml.Node]int{}, 0)
		if total > maxNodes {
			return &Error{Code: InvalidYAML, File: rel, Line: n.Line, Message: fmt.Sprintf("its aliases grow to more than %d values", maxNodes)}
		}
	}
}

// grown counts the nodes of a tree as if each alias were written out.
func grown(n *yaml.Node, seen map[*yaml.Node]int, depth int) int {
	if depth > maxNesting {
		return maxNodes + 1
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if c, ok := seen[n]; ok {
		return c
	}
	// An anchor that holds itself would never end.
	seen[n] = maxNodes + 1
	total := 1
	for _, c := range n.Content {
		total += grown(c, seen, depth+1)
		if total > maxNodes {
			total = maxNodes + 1
			break
		}
	}
	seen[n] = total
	return total
}

// nesting is the deepest run of open brackets, and of the indicators of a
// sequence on one line: what makes a parser recurse by a byte a level.
func nesting(data []byte) int {
	open, deepest := 0, 0
	dashes := 0
	for i, b := range data {
		switch b {
		case '[', '{':
			open++
			deepest = max(deepest, open)
		case ']', '}':
			open = max(open-1, 0)
		case '\n':
			dashes = 0
		case '-', '?':
			if i+1 < len(data) && data[i+1] == ' ' {
				dashes++
				deepest = max(deepest, dashes)
			}
		}
	}
	return deepest
}

func badLine(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		data = data[n:]
	}
	return line
}
