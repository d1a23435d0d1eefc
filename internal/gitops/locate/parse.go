package locate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// File is a parsed stream of YAML documents.
type File struct {
	lines lineMap
	// roots are the contents of the documents that hold anything.
	roots []*yaml.Node
	docs  []Doc
}

// Parse reads a stream. The File holds the documents before a malformed one; it
// is never nil. Problems are ordered by line; at most 1000 are reported.
func Parse(data []byte) (*File, []Problem) {
	f := &File{lines: newLineMap(data)}
	var problems []Problem
	sound, p := readable(data)
	if p != nil {
		problems = append(problems, *p)
	}
	roots, err := decode(sound)
	f.roots = roots
	if err != nil {
		problems = append(problems, f.syntax(sound, err))
	}
	problems = append(problems, f.check()...)
	slices.SortStableFunc(problems, func(a, b Problem) int { return a.Line - b.Line })
	f.index(1<<20 + 10*len(data))
	return f, problems[:min(len(problems), maxProblems)]
}

// readable is the part of a stream whose documents hold only characters that YAML
// allows, and what is wrong with the first other one. The parser itself reads
// ahead, and would lose documents that are sound.
func readable(data []byte) ([]byte, *Problem) {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		what := ""
		switch {
		case r == utf8.RuneError && size == 1:
			what = "a byte that is not UTF-8"
		case r < 0x20 && r != '\t' && r != '\n' && r != '\r', r >= 0x7F && r < 0xA0 && r != 0x85, r == 0xFFFE, r == 0xFFFF:
			what = fmt.Sprintf("the control character U+%04X, which YAML does not allow", r)
		}
		if what != "" {
			cut := bytes.LastIndex(data[:i], []byte("\n---")) + 1
			return data[:cut], &Problem{Line: lineAt(data, i), Kind: Syntax, Message: "the file holds " + what}
		}
		i += size
	}
	return data, nil
}

// decode gives the contents of the documents up to the first malformed one.
func decode(data []byte) (roots []*yaml.Node, err error) {
	// The parser panics on some malformed input instead of failing.
	defer func() {
		if v := recover(); v != nil {
			err = errors.New("the parser failed on it")
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		switch err := dec.Decode(&n); {
		case errors.Is(err, io.EOF):
			return roots, nil
		case err != nil:
			return roots, err
		}
		if n.Kind == yaml.DocumentNode && len(n.Content) > 0 && !empty(n.Content[0]) {
			roots = append(roots, n.Content[0])
		}
	}
}

// empty says that a document holds nothing, as between two `---`.
func empty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}

var (
	errorLine = regexp.MustCompile(`^line (\d+): `)
	// An anchor's name may be the beginning of a password that nobody quoted.
	anchorName = regexp.MustCompile(`(?s)unknown anchor '.*' referenced`)
)

func (f *File) syntax(data []byte, err error) Problem {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := errorLine.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
		text = text[len(m[0]):]
	}
	if n := firstFailing(data, err.Error()); n > 0 {
		line = n
	} else {
		line = f.lines.line(line)
	}
	text = anchorName.ReplaceAllString(text, "an alias to an anchor that is not defined before it (a value that begins with * must be quoted)")
	return Problem{Line: line, Kind: Syntax, Message: "not YAML: " + text}
}

// maxBisect bounds the text that is parsed again to find an error's line.
const maxBisect = 128 << 10

// firstFailing is the first line that, as the end of the text, makes the parser
// fail as it fails on the whole. The parser's own line is that of the construct
// around the error (a mapping's first line, say) or none at all. 0 when unknown.
func firstFailing(data []byte, message string) int {
	if len(data) > maxBisect {
		return 0
	}
	ends := []int{}
	for i, b := range data {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		ends = append(ends, len(data))
	}
	n := sort.Search(len(ends), func(i int) bool {
		_, err := decode(data[:ends[i]])
		return err != nil && err.Error() == message
	})
	if n == len(ends) {
		return 0
	}
	return n + 1
}
