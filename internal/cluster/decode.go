package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// document is one object or list of a file, with its first line.
type document struct {
	line int
	data []byte
	json bool
}

// decodeFile adds the objects of one file to the store: YAML documents, or, in
// a .json file, JSON values one after the other. Errors are *SnapshotError.
func (s *store) decodeFile(file string, data []byte) error {
	number := 0
	each := func(d document) error {
		number++
		err := s.decodeDocument(file, d)
		if err == nil {
			return nil
		}
		return &SnapshotError{File: file, Document: number, Line: d.errorLine(err), Code: CodeInvalidArgument, Err: err}
	}
	if strings.HasSuffix(file, ".json") {
		return eachJSON(file, data, each)
	}
	return eachYAML(data, each)
}

// eachYAML calls each for every document that is not empty. A line that starts
// with "---" separates documents; what follows on that line belongs to the
// next one. Lines and columns of a document stay those of the file.
func eachYAML(data []byte, each func(document) error) error {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	var doc []byte
	first := 1
	flush := func() error {
		defer func() { doc = nil }()
		if blank(doc) {
			return nil
		}
		return each(document{line: first, data: doc})
	}
	for line := 1; len(data) > 0; line++ {
		text := data
		if end := bytes.IndexByte(data, '\n'); end >= 0 {
			text = data[:end+1]
		}
		data = data[len(text):]
		if separates(text) {
			if err := flush(); err != nil {
				return err
			}
			first = line
			doc = append(doc, "   "...)
			text = text[3:]
		}
		doc = append(doc, text...)
	}
	return flush()
}

// separates reports whether a line ends one YAML document and starts another.
func separates(line []byte) bool {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false
	}
	return len(line) == 3 || strings.ContainsRune(" \t\r\n", rune(line[3]))
}

// blank reports whether a document holds nothing but comments and space.
func blank(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}

// eachJSON calls each for every value of a stream of JSON values.
func eachJSON(file string, data []byte, each func(document) error) error {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	decoder := json.NewDecoder(bytes.NewReader(data))
	line, counted := 1, int64(0)
	lineAt := func(offset int64) int { // offsets only grow: each line is counted once
		offset = min(max(offset, counted), int64(len(data)))
		line += bytes.Count(data[counted:offset], []byte("\n"))
		counted = offset
		return line
	}
	for number := 1; ; number++ {
		start := decoder.InputOffset()
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			at := decoder.InputOffset()
			var syntax *json.SyntaxError
			switch {
			case errors.As(err, &syntax):
				at = syntax.Offset
			case errors.Is(err, io.ErrUnexpectedEOF):
				at = int64(len(data))
			}
			return &SnapshotError{File: file, Document: number, Line: lineAt(at), Code: CodeInvalidArgument, Err: err}
		}
		for start < int64(len(data)) && bytes.IndexByte([]byte(" \t\r\n"), data[start]) >= 0 {
			start++
		}
		if err := each(document{line: lineAt(start), data: raw, json: true}); err != nil {
			return err
		}
	}
}

// decodeDocument adds the object, or the objects of the list, of a document.
func (s *store) decodeDocument(file string, d document) error {
	data := d.data
	if !d.json {
		var err error
		if data, err = yaml.YAMLToJSONStrict(d.data); err != nil {
			return err
		}
	}
	var value any // int64 and float64, as unstructured objects want
	if err := utiljson.Unmarshal(data, &value); err != nil {
		return err
	}
	content, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is not a Kubernetes object; valid: an object or a list of kind List or <Kind>List", jsonType(value))
	}
	return s.addAll(content, file)
}

// addAll adds an object, or each item of a list: kind List, or a typed list as
// the API returns it, whose items need not say their kind.
func (s *store) addAll(content map[string]any, file string) error {
	items, isList := listItems(content)
	if !isList {
		return s.add(content, file)
	}
	apiVersion, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	kind = strings.TrimSuffix(kind, "List")
	if kind != "" {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return err
		}
		s.listed[gv.WithKind(kind).GroupKind()] = true
	}
	for i, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("item %d of the list is %s, not an object", i+1, jsonType(item))
		}
		if kind != "" {
			fillIn(object, "apiVersion", apiVersion)
			fillIn(object, "kind", kind)
		}
		if err := s.addAll(object, file); err != nil {
			return fmt.Errorf("item %d of the list: %w", i+1, err)
		}
	}
	return nil
}

func fillIn(object map[string]any, field, value string) {
	if _, present := object[field]; !present {
		object[field] = value
	}
}

// listItems returns the items of a list. A kind that merely ends in List is an
// object when it has a name.
func listItems(content map[string]any) ([]any, bool) {
	kind, _ := content["kind"].(string)
	if !strings.HasSuffix(kind, "List") {
		return nil, false
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		if name, _ := metadata["name"].(string); name != "" {
			return nil, false
		}
	}
	switch items := content["items"].(type) {
	case []any:
		return items, true
	case nil: // "items: null" or no items: how Go writes an empty list
		return nil, true
	default:
		return nil, false
	}
}

// jsonType names the type of a decoded value for an error, with its article.
func jsonType(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}

// yamlLine is where the YAML parser puts the line, its only place for it. It
// is shown, nothing is decided by it.
var yamlLine = regexp.MustCompile(`\bline (\d+)`)

// errorLine is the line of the file that an error is about: the parser's when
// it names one, else the document's first.
func (d document) errorLine(err error) int {
	if d.json {
		return d.line
	}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			return d.line + n - 1
		}
	}
	return d.line
}
