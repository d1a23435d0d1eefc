package source

import (
	"path"
	"strings"
)

// maxAlternatives bounds what {a,b} groups of one pattern expand to.
const maxAlternatives = 256

// glob is a pattern with **, {a,b}, and what path.Match knows.
type glob struct{ alternatives [][]string }

// newGlob compiles a pattern; it fails with InvalidArgument.
func newGlob(pattern string) (*glob, error) {
	all, ok := expand(pattern)
	if !ok {
		return nil, fail(InvalidArgument, "the pattern %q has groups that are not closed or expand to more than %d patterns", pattern, maxAlternatives)
	}
	g := &glob{}
	for _, p := range all {
		parts := strings.Split(p, "/")
		for _, part := range parts {
			// doublestar negates a class with ! as well.
			if _, err := path.Match(negated(part), ""); err != nil {
				return nil, fail(InvalidArgument, "the pattern %q is malformed", pattern)
			}
		}
		for i := range parts {
			parts[i] = negated(parts[i])
		}
		g.alternatives = append(g.alternatives, parts)
	}
	return g, nil
}

func negated(part string) string { return strings.ReplaceAll(part, "[!", "[^") }

// expand writes out the {a,b} groups of a pattern.
func expand(pattern string) ([]string, bool) {
	open, depth := -1, 0
	var commas []int
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			if depth == 0 {
				open = i
			}
			depth++
		case ',':
			if depth == 1 {
				commas = append(commas, i)
			}
		case '}':
			if depth == 0 {
				continue
			}
			if depth--; depth > 0 {
				continue
			}
			tails, ok := expand(pattern[i+1:])
			if !ok {
				return nil, false
			}
			var out []string
			start := open + 1
			for _, end := range append(commas, i) {
				middles, ok := expand(pattern[start:end])
				if !ok || len(out)+len(middles)*len(tails) > maxAlternatives {
					return nil, false
				}
				for _, m := range middles {
					for _, t := range tails {
						out = append(out, pattern[:open]+m+t)
					}
				}
				start = end + 1
			}
			return out, true
		}
	}
	return []string{pattern}, depth == 0
}

// match tells whether the whole path matches.
func (g *glob) match(p string) bool {
	parts := strings.Split(p, "/")
	for _, a := range g.alternatives {
		if matchParts(a, parts) {
			return true
		}
	}
	return false
}

// matchParts matches part by part; ** is any number of parts, none as well. It
// goes back only to the last **, so it takes at most the product of the lengths.
func matchParts(pattern, parts []string) bool {
	i, j, star, from := 0, 0, -1, 0
	for j < len(parts) {
		if i < len(pattern) && pattern[i] == "**" {
			star, from = i, j
			i++
			continue
		}
		if i < len(pattern) {
			// newGlob checked the pattern.
			if ok, err := path.Match(pattern[i], parts[j]); err == nil && ok {
				i, j = i+1, j+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		from++
		i, j = star+1, from
	}
	for i < len(pattern) && pattern[i] == "**" {
		i++
	}
	return i == len(pattern)
}
