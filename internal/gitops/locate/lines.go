package locate

import (
	"bytes"
	"sort"
)

// lineMap turns the parser's line numbers into those of an editor. YAML 1.1 also
// breaks lines at a lone carriage return, NEL, LS and PS; Git and editors do not.
type lineMap struct {
	// total is the number of the last line.
	total int
	// extra are the parser's numbers of the lines that only YAML begins, ascending.
	extra []int
}

func newLineMap(data []byte) lineMap {
	m := lineMap{total: 1 + bytes.Count(data, []byte("\n"))}
	yamlLine := 1
	for i := 0; i < len(data); i++ {
		switch rest := data[i:]; {
		case data[i] == '\n':
			yamlLine++
		case data[i] == '\r' && !bytes.HasPrefix(rest, []byte("\r\n")),
			bytes.HasPrefix(rest, []byte("\u0085")),
			bytes.HasPrefix(rest, []byte("\u2028")),
			bytes.HasPrefix(rest, []byte("\u2029")):
			yamlLine++
			m.extra = append(m.extra, yamlLine)
		}
	}
	return m
}

// line is the editor's number of a line of the parser, within the file.
func (m lineMap) line(yamlLine int) int {
	n := yamlLine - sort.SearchInts(m.extra, yamlLine+1)
	return min(max(n, 1), m.total)
}

// lineAt is the number of the line that holds the byte at an offset.
func lineAt(data []byte, offset int) int {
	return 1 + bytes.Count(data[:offset], []byte("\n"))
}
