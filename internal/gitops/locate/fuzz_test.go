package locate

import (
	"bytes"
	"testing"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{stream, aliased, bomb(4), "a: [", "\xff", "a: 1\na: 2", "a\r\rb: 1\u2028\n", "%YAML 1.1\n---\na: b\n...\n", "? ? a", "a: &a [*a]", "kind: List\nitems: [{}]", "a: {<<: [{b: 1}]}", "--- |\n x\n--- >\n"} {
		f.Add([]byte(s), "/data/list/1/deep")
	}
	f.Fuzz(func(t *testing.T, data []byte, pointer string) {
		last := 1 + bytes.Count(data, []byte("\n"))
		check := func(what string, line int) {
			if line < 0 || line > last {
				t.Errorf("%s: line %d of %d", what, line, last)
			}
		}
		file, problems := Parse(data)
		if file == nil {
			t.Fatal("no file")
		}
		for _, p := range problems {
			check(p.Message, p.Line)
		}
		for _, d := range file.Documents() {
			line, exact := d.Field(pointer)
			check("field", line)
			if pointer == "" && (!exact || line != d.Line) {
				t.Errorf("the empty pointer is the document: %d, %v", line, exact)
			}
			if _, ok := file.Find(d.Kind, d.Namespace, d.Name); !ok {
				t.Errorf("a listed document is not found: %+v", d)
			}
		}
		check("entry", KustomizationEntry(data, "", pointer))
	})
}
