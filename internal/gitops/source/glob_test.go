package source

import (
	"strings"
	"testing"
	"time"
)

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.md", "a.md", true}, {"*.md", "d/a.md", false}, {"**/*.md", "a.md", true}, {"**/*.md", "d/e/a.md", true}, {"d/**", "d", true}, {"d/**", "d/e/f", true}, {"d/**", "e/d/f", false},
		{"**/t/**", "a/t/b", true}, {"**/t/**/x", "a/t/b/c/x", true}, {"**/t/**/x", "a/b/x", false}, {"{a,b}/{c,d{e,f}}", "b/df", true}, {"{a,b}/{c,d{e,f}}", "b/d", false},
		{"[!a]*", "b1", true}, {"[!a]*", "a1", false}, {`\{a\}`, "{a}", true}, {"a}", "a}", true}, {"**", "x/y", true}, {"a/**/b/**/c", "a/b/x/b/c", true},
	} {
		g, err := newGlob(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		if got := g.match(tt.path); got != tt.want {
			t.Errorf("%s on %s: %v", tt.pattern, tt.path, got)
		}
	}
	g, err := newGlob(strings.Repeat("**/*a*/", 200) + "end")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if g.match(strings.Repeat("aaaa/", 800)) || time.Since(start) > 5*time.Second {
		t.Errorf("a pattern made to go back took %s", time.Since(start))
	}
}
