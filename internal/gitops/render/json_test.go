package render

import (
	"bytes"
	"testing"

	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resource"
)

// awkward are documents that print and parse can make something else of, with
// whether the short way takes them.
var awkward = []struct {
	name, body string
	short      bool
}{
	{"plain scalars", "s: text\ni: 1\nf: 1.5\nb: true\nn: null\ne:\n", true},
	{"texts that look like others", "a: \"true\"\nb: '1'\nc: \"null\"\nd: '1.5e3'\ne: \"\"\nf: '~'\n", true},
	{"words of YAML 1.1", "a: yes\nb: on\nc: 0o14\nd: 014\ne: 1_000\nf: .inf\n", true},
	{"white space at the ends", "a: ' x '\nb: \"x \"\n", true},
	{"comments", "# head\na: 1 # line\n# foot\n\nb:\n  # inner\n  - 1\n  # last\n", true},
	{"numbers beyond", "a: 9223372036854775807\nb: 9223372036854775808\nc: 18446744073709551616\nd: 1e400\n", true},
	{"lists in maps in lists", "a:\n- - 1\n  - b: []\n    c: {}\n", true},
	{"not a text for a key", "a: {1: x, true: y}\n", false},
	{"no key", "a: {\"\": x}\n", false},
	{"an anchor for a key", "a: 1\n&b : 2\n", false},
	{"flow", "a: [x, \"1\", 2]\nb: {c: d}\ne: []\nf: {}\n", true},
	{"flow in flow", "a: [[x]]\n", false},
	{"flow with a comment", "a:\n  # c\n  {b}\n", false},
	{"HTML", "a: <b>&amp;\n", true},
	{"no ASCII", "a: \"ä→𝄞\"\n", true},
	{"a block", "a: |\n  x\n   y\n", false},
	{"a block with white space before it", "a: |2\n    x\n  y\n", false},
	{"folded", "a: >-\n  x\n  y\n\n  z\n", false},
	{"several lines in quotes", "a: \"x\\ny\"\n", false},
	{"a tab", "a: \"x\\ty\"\n", false},
	{"a line separator", "a: \"x\\u2028y\\u0085z\"\n", false},
	{"a byte order mark", "a: \"\\ufeffx\"\n", false},
	{"a time", "a: 2020-01-02\nb: 2020-01-02T03:04:05Z\n", false},
	{"a tag", "a: !!str 1\nb: !!binary aGk=\nc: !!float 1\n", false},
	{"an anchor, which kustomize takes out", "a: &x {b: 1}\nc: *x\n", true},
	{"a merge, which kustomize carries out", "a: &x {b: 1}\nc: {<<: *x, d: 2}\n", true},
}

func TestObjectJSON(t *testing.T) {
	for _, c := range awkward {
		t.Run(c.name, func(t *testing.T) {
			res := parsed(t, c.body)
			if res == nil {
				t.Fatal("kustomize does not read it")
			}
			if got := plain(res.YNode(), 0); got != c.short {
				t.Errorf("the short way takes it: %t", got)
			}
			same(t, res)
		})
	}
}

// FuzzObjectJSON holds the short way against kustomize's own, byte for byte.
func FuzzObjectJSON(f *testing.F) {
	for _, c := range awkward {
		f.Add(c.body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if checkYAML("x.yaml", []byte(body)) != nil {
			t.Skip()
		}
		if res := parsed(t, body); res != nil {
			same(t, res)
		}
	})
}

func parsed(t *testing.T, body string) (res *resource.Resource) {
	t.Helper()
	head := "apiVersion: v1\nkind: X\nmetadata: {name: x}\n"
	err := safely(func() error {
		all, err := provider.NewDefaultDepProvider().GetResourceFactory().SliceFromBytes([]byte(head + body))
		if err == nil && len(all) > 0 {
			res = all[0]
		}
		return err
	})
	if err != nil {
		return nil
	}
	return res
}

func same(t *testing.T, res *resource.Resource) {
	t.Helper()
	got, gotErr := objectJSON(res)
	want, wantErr := res.MarshalJSON()
	if (gotErr == nil) != (wantErr == nil) || !bytes.Equal(got, want) {
		t.Errorf("got  %s %v\nwant %s %v", got, gotErr, want, wantErr)
	}
}
