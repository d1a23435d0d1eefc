package locate

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const stream = `# a comment
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  namespace: a
data:
  "quo/ted~key": x
  list:
    - first
    - name: second
      deep: [1, 2]
--- {apiVersion: v1, kind: Service, metadata: {name: two}}
---
---
# only a comment
--- # trailing comment

kind: ConfigMap
metadata: {name: one, namespace: b}
`

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, problems := Parse([]byte(text))
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	return f
}

func TestDocuments(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"stream", stream, []string{"3 v1 ConfigMap a/one", "14 v1 Service /two", "20  ConfigMap b/one"}},
		{"empty", "", nil},
		{"comments only", "# x\n---\n# y\n", nil},
		{"BOM", "\uFEFFkind: A\nmetadata: {name: x}\n", []string{"1  A /x"}},
		{"CRLF", "---\r\nkind: A\r\nmetadata:\r\n  name: x\r\n---\r\nkind: B\r\n", []string{"2  A /x", "6  B /"}},
		{"JSON with tabs", "{\n\t\"kind\": \"A\",\n\t\"metadata\": {\"name\": \"x\"}\n}\n", []string{"1  A /x"}},
		{"no mapping", "- a\n--- text\n", []string{"1   /", "2   /"}},
		{"List", "kind: List\nitems:\n- kind: A\n  metadata: {name: x}\n- kind: BList\n  items:\n  - kind: B\n    metadata: {name: y}\n",
			[]string{"1  List /", "3  A /x", "5  BList /", "7  B /y"}},
		{"no List", "kind: Menu\nitems:\n- kind: A\n", []string{"1  Menu /"}},
		{"List through aliases", "x: &x {kind: A, metadata: {name: n}}\nkind: List\nitems: [*x, *x]\n", []string{"1  List /", "1  A /n"}},
		{"List of itself", "kind: List\nitems: &i\n- kind: List\n  items: *i\n", []string{"1  List /", "3  List /"}},
		{"merged identity", "base: &b {kind: A, metadata: &m {name: x}}\n<<: *b\n", []string{"1  A /x"}},
		{"names that are no text", "kind: A\nmetadata: {name: [x], namespace: 5}\n", []string{"1  A 5/"}},
		// U+2028 breaks a line for YAML, not for Git.
		{"separators", "x: \"a\u2028 b\u0085 c\"\n---\nkind: A\n", []string{"1   /", "3  A /"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := Parse([]byte(tt.text))
			var got []string
			for _, d := range f.Documents() {
				got = append(got, fmt.Sprintf("%d %s %s %s/%s", d.Line, d.APIVersion, d.Kind, d.Namespace, d.Name))
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("documents\n got %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestFind(t *testing.T) {
	f := mustParse(t, stream)
	tests := []struct {
		kind, namespace, name string
		line                  int
	}{
		{"ConfigMap", "a", "one", 3},
		{"ConfigMap", "b", "one", 20},
		{"ConfigMap", "", "one", 3},
		{"ConfigMap", "c", "one", 0},
		{"Service", "any", "two", 14},
		{"Service", "", "one", 0},
		{"Secret", "a", "one", 0},
	}
	for _, tt := range tests {
		d, ok := f.Find(tt.kind, tt.namespace, tt.name)
		if d.Line != tt.line || ok != (tt.line > 0) {
			t.Errorf("Find(%s, %s, %s) = line %d, %v; want %d", tt.kind, tt.namespace, tt.name, d.Line, ok, tt.line)
		}
	}
	// An equal namespace wins over an earlier document without one.
	f = mustParse(t, "kind: A\nmetadata: {name: x}\n---\nkind: A\nmetadata: {name: x, namespace: n}\n")
	if d, _ := f.Find("A", "n", "x"); d.Line != 4 {
		t.Errorf("the exact namespace is on line 4, got %d", d.Line)
	}
}

const aliased = `defaults: &d
  image: one
  env:
    - name: A
  nested: &n
    deep: 1
other: &o {port: 80, image: two}
app:
  <<: [*o, *d]
  port: 90
plain: *d
quoted:
  "<<": *d
chain:
  <<: *n
  deep: 2
loop: &l
  - *l
`

func TestField(t *testing.T) {
	tests := []struct {
		text, pointer string
		line          int
		exact         bool
	}{
		{stream, "", 3, true},
		{stream, "/metadata", 5, true},
		{stream, "/metadata/namespace", 7, true},
		{stream, "/metadata/labels", 5, false},
		{stream, "/metadata/labels/app", 5, false},
		{stream, "/spec", 3, false},
		{stream, "/data/quo~1ted~0key", 9, true},
		{stream, "/data/list/0", 11, true},
		{stream, "/data/list/1", 12, true},
		{stream, "/data/list/1/deep/1", 13, true},
		{stream, "/data/list/2", 10, false},
		{stream, "/data/list/-", 10, false},
		{stream, "/data/list/-1", 10, false},
		{stream, "/data/list/01", 10, false},
		{stream, "/data/list/99999999999999999999", 10, false},
		{stream, "/data/list/0/below/a/scalar", 11, false},
		{stream, "no pointer", 3, false},
		{aliased, "/app/port", 10, true},
		{aliased, "/app/image", 7, true},
		{aliased, "/app/env/0/name", 4, true},
		{aliased, "/app/missing", 8, false},
		{aliased, "/plain/nested/deep", 6, true},
		{aliased, "/quoted/image", 12, false},
		{aliased, "/quoted/<</image", 2, true},
		{aliased, "/chain/deep", 16, true},
		{aliased, "/loop/0/0/0/0", 18, true},
		{"a: 1\r\nb:\r\n  c: 2\r\n", "/b/c", 3, true},
		{"'': 1\n", "/", 1, true},
		{"x:\n  ? {complex: key}\n  : 1\n  true: 2\n  3: 4\n", "/x/3", 5, true},
		{"a: |\n  text\n  text\nb: 1\n", "/b", 4, true},
		{"a: x\u2028 y\nb: 1\n", "/b", 2, true},
	}
	for _, tt := range tests {
		f, _ := Parse([]byte(tt.text))
		line, exact := f.Documents()[0].Field(tt.pointer)
		if line != tt.line || exact != tt.exact {
			t.Errorf("Field(%q) = %d, %v; want %d, %v", tt.pointer, line, exact, tt.line, tt.exact)
		}
	}
	if line, exact := (Doc{}).Field("/a"); line != 0 || exact {
		t.Errorf("a Doc of no file: %d, %v", line, exact)
	}
}

func TestProblems(t *testing.T) {
	const secret = "hunter2"
	good := "kind: A\nmetadata: {name: x}\n---\n"
	tests := []struct {
		name, text string
		want       []string // "line kind key"
		docs       int
	}{
		{"sound", stream, nil, 3},
		{"bad indentation", "a: 1\nb:\n  c: 1\n  d: 2\n e: " + secret + "\n", []string{"5 InvalidYAML "}, 0},
		{"third document", good + good + "a: 1\nb: [\n", []string{"8 InvalidYAML "}, 2},
		{"no colon", good + "a: 1\nc " + secret + "\nd: 3\n", []string{"5 InvalidYAML "}, 1},
		{"tab indentation", good + "a:\n\tb: 1\n", []string{"5 InvalidYAML "}, 1},
		{"unclosed quote", good + "a: 1\nb: \"" + secret + "\nc: 1\n", []string{"5 InvalidYAML "}, 1},
		{"unclosed on line 1", "a: [" + secret + "\n", []string{"1 InvalidYAML "}, 0},
		{"long flow before it", "f: [a,\n b,\n c]\ng: {a: 1,\n b: 2}\nx: 1\n y: 2\nz: 1\n", []string{"7 InvalidYAML "}, 0},
		{"unknown anchor", good + "a: 1\npassword: *" + secret + "\n", []string{"5 InvalidYAML "}, 1},
		{"invalid UTF-8", good + "a: 1\nb: \xff" + secret + "\n", []string{"5 InvalidYAML "}, 1},
		{"control character", good + "a: \x00\n", []string{"4 InvalidYAML "}, 1},
		{"UTF-16", "\xff\xfea\x00:\x00", []string{"1 InvalidYAML "}, 0},
		{"duplicate", "a: 1\nb: {c: 1, d: 2, c: " + secret + "}\na: 3\na: 4\n", []string{"2 DuplicateKey c", "3 DuplicateKey a", "4 DuplicateKey a"}, 1},
		{"duplicate in a list of a later document", good + "l:\n- x: 1\n  y: 2\n  x: 3\n", []string{"7 DuplicateKey x"}, 2},
		{"duplicate before an error", "a: 1\na: 2\n---\nb: [\n", []string{"2 DuplicateKey a", "4 InvalidYAML "}, 1},
		{"one key in two mappings", "a: {k: 1}\nb: {k: 2}\n", nil, 1},
		{"complex keys", "? [a]\n: 1\n? [a]\n: 2\n", nil, 1},
		{"alias within itself", "x: 1\na: &a\n  b: *a\n", []string{"3 InvalidYAML "}, 1},
		{"alias used often", "a: &a {b: 1, c: 2}\nl: [*a, *a, *a, *a]\n", nil, 1},
		{"alias bomb", bomb(9), []string{"1 InvalidYAML "}, 1},
		{"too deep a flow", good + "a: " + strings.Repeat("[", 20000), []string{"4 InvalidYAML "}, 1},
		{"merge of no mapping", "a: {<<: 5}\n", nil, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, problems := Parse([]byte(tt.text))
			var got []string
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%d %s %s", p.Line, p.Kind, p.Key))
				if strings.Contains(p.Message, secret) || p.Message == "" {
					t.Errorf("message %q", p.Message)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("problems\n got %q (%v)\nwant %q", got, problems, tt.want)
			}
			if len(f.Documents()) != tt.docs {
				t.Errorf("%d documents, want %d", len(f.Documents()), tt.docs)
			}
		})
	}
	_, problems := Parse([]byte("a: 1\nb: 1\na: 2\n"))
	if m := problems[0].Message; !strings.Contains(m, `"a"`) || !strings.Contains(m, "line 1 ") || !strings.Contains(m, "line 3;") {
		t.Errorf("the message names the key and both lines, got %q", m)
	}
}

// bomb doubles nine aliases at each level.
func bomb(levels int) string {
	b := &strings.Builder{}
	fmt.Fprintln(b, "a0: &a0 x")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return b.String()
}

// Hostile files cost time in proportion to their length.
func TestBounded(t *testing.T) {
	lines := func(n int, format string) string {
		b := &strings.Builder{}
		for i := range n {
			fmt.Fprintf(b, format, i)
		}
		return b.String()
	}
	tests := map[string]string{
		"duplicate keys":      strings.Repeat("a: 1\n", 100_000),
		"comments":            strings.Repeat("#\n", 200_000) + "a: 1\n",
		"documents":           strings.Repeat("---\na: 1\n", 50_000),
		"bomb":                bomb(3000),
		"bomb of merges":      "m0: &m0 {a: 1}\n" + lines(20_000, "m%[1]d: &m%[1]d {<<: [*m0, *m0]}\n"),
		"chain of merges":     "x: &x-1 {a: 1}\n" + lines(20_000, "m%[1]d: &x%[1]d {<<: *x0}\n"),
		"items over one list": "big: &b\n" + lines(20_000, "  k%d: 1\n") + "kind: List\nitems:\n" + strings.Repeat("- <<: *b\n", 20_000),
		"deep block":          lines(3000, "%[1]d:\n") + strings.Repeat("- ", 9000) + "x\n",
		"deep flow":           strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"deep mappings":       strings.Repeat("{a: ", 9000) + strings.Repeat("}", 9000),
		"unclosed":            strings.Repeat("a: {\n", 9000),
		"error at the end":    strings.Repeat("a:\n- b: 1\n", 12_000) + "x: [",
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			f, problems := Parse([]byte(text))
			for _, d := range f.Documents()[:min(len(f.Documents()), 100)] {
				d.Field("/spec/replicas")
				d.Field("/m19999/missing")
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v for %d bytes", took, len(text))
			}
			if len(problems) > maxProblems {
				t.Errorf("%d problems", len(problems))
			}
			t.Log(len(text), "bytes", time.Since(start))
		})
	}
}

func TestKustomizationEntry(t *testing.T) {
	const text = `kind: Kustomization
resources:
- ../base
- app.yaml # comment
- "quoted.yaml"
components: &c
- comp
patches:
- path: app.yaml
  target: {kind: Deployment, name: comp}
- patch: |-
    - op: remove
crds: *c
`
	tests := []struct {
		field, value string
		line         int
	}{
		{"resources", "../base", 3},
		{"resources", "app.yaml", 4},
		{"resources", "quoted.yaml", 5},
		{"patches", "app.yaml", 9},
		{"patches", "Deployment", 10},
		{"crds", "comp", 7},
		{"", "comp", 7},
		{"", "path", 0},
		{"resources", "comp", 0},
		{"bases", "../base", 0},
	}
	for _, tt := range tests {
		if got := KustomizationEntry([]byte(text), tt.field, tt.value); got != tt.line {
			t.Errorf("KustomizationEntry(%q, %q) = %d, want %d", tt.field, tt.value, got, tt.line)
		}
	}
	for _, text := range []string{"", "[", "- ../base", "resources: 5", "resources:\n- [\n"} {
		if got := KustomizationEntry([]byte(text), "resources", "../base"); got != 0 {
			t.Errorf("%q: %d, want 0", text, got)
		}
	}
}
