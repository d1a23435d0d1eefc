package source_test

import (
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

func TestCompose(t *testing.T) {
	dir := repo(t, map[string]string{"README.md": "r", "apps/a/k.yaml": "k", "apps/a/sub/s.yaml": "s", "apps/a/notes.md": "n", "apps/b/k.yaml": "bk", "apps/top.yaml": "t",
		"infra/logo.svg": "l", "infra/x.yaml": "x", ".sourceignore": "#\n", "infra/p.png": "p", "z.yaml": "z"})
	s := store(t, source.Limits{})
	whole := artifact(t, open(t, s, dir, "main"), "*.none")
	apps, err := whole.Sub("apps")
	if err != nil {
		t.Fatal(err)
	}
	p := func(src, to string, exclude ...string) source.Part {
		return source.Part{From: whole, Source: src, To: to, Exclude: exclude}
	}
	tests := []struct {
		name  string
		parts []source.Part
		want  string
		code  source.Code
	}{
		{"a folder keeps its name", []source.Part{p("apps/a/", "")}, "a/k.yaml a/notes.md a/sub/s.yaml", ""},
		{"without the slash as well", []source.Part{p("apps/a", "dest")}, "dest/a/k.yaml dest/a/notes.md dest/a/sub/s.yaml", ""},
		{"** strips it", []source.Part{p("apps/a/**", "dest/")}, "dest/k.yaml dest/notes.md dest/sub/s.yaml", ""},
		{"everything", []source.Part{p("apps/**", ".")}, "a/k.yaml a/notes.md a/sub/s.yaml b/k.yaml top.yaml", ""},
		{"the root", []source.Part{{From: apps, Source: "**", To: "x"}}, "x/a/k.yaml x/a/notes.md x/a/sub/s.yaml x/b/k.yaml x/top.yaml", ""},
		{"other patterns keep the path", []source.Part{p("apps/*/k.yaml", "d")}, "d/apps/a/k.yaml d/apps/b/k.yaml", ""},
		{"a pattern over folders", []source.Part{p("apps/[b]", "d")}, "d/apps/b/k.yaml", ""},
		{"a file under another name", []source.Part{p("z.yaml", "dir/y.yaml")}, "dir/y.yaml", ""},
		{"a file into a folder", []source.Part{p("z.yaml", "dir/")}, "dir/z.yaml", ""},
		{"a file into a folder that is there", []source.Part{p("apps/b", "dir"), p("z.yaml", "dir")}, "dir/b/k.yaml dir/z.yaml", ""},
		{"a file to the root", []source.Part{p("apps/top.yaml", "")}, "top.yaml", ""},
		{"exclude by name", []source.Part{p("apps/", "", "*.md")}, "apps/a/k.yaml apps/a/sub/s.yaml apps/b/k.yaml apps/top.yaml", ""},
		{"exclude with **", []source.Part{p("apps/**", "", "**/sub/**", "**/*.{md,txt}")}, "a/k.yaml b/k.yaml top.yaml", ""},
		{"exclude below the fixed part", []source.Part{p("apps/a/**", "", "sub/*.yaml")}, "k.yaml notes.md", ""},
		{"the default rules hold", []source.Part{p("infra/", "")}, "infra/logo.svg infra/x.yaml", ""},
		{"nothing there", []source.Part{p("none", "")}, "", source.PathNotFound},
		{"nothing matches", []source.Part{p("none/*", "")}, "", source.PathNotFound},
		{"all excluded", []source.Part{p("apps/*.yaml", "", "*.yaml")}, "", source.PathNotFound},
		{"source leaves", []source.Part{p("../x", "")}, "", source.InvalidArgument},
		{"destination leaves", []source.Part{p("z.yaml", "../x")}, "", source.InvalidArgument},
		{"file over folder", []source.Part{p("apps/b", "x"), p("z.yaml", "x/b/k.yaml/y")}, "", source.InvalidArgument},
		{"malformed", []source.Part{p("[", "")}, "", source.InvalidArgument},
		{"malformed exclude", []source.Part{p("z.yaml", "", "{a")}, "", source.InvalidArgument},
		{"endless exclude", []source.Part{p("z.yaml", "", strings.Repeat("{a,b}", 40))}, "", source.InvalidArgument},
		{"no source", []source.Part{{Source: "z.yaml"}}, "", source.InvalidArgument},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, err := s.Compose(tt.parts)
			if tt.code != "" {
				wantCode(t, err, tt.code)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantFiles(t, a, strings.Fields(tt.want)...)
			if again, err := s.Compose(tt.parts); err != nil || again != a {
				t.Errorf("the same again is another artifact: %v", err)
			}
		})
	}
	a, err := s.Compose([]source.Part{p("infra/**", "base"), {From: apps, Source: "a/**", To: "over"}, p("z.yaml", "base/x.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, a, "base/x.yaml"); got != "z" {
		t.Errorf("the later copy lost: %q", got)
	}
	for in, want := range map[string]string{"base/logo.svg": "infra/logo.svg", "base/x.yaml": "z.yaml", "base": "infra", "over": "apps/a", "over/sub": "apps/a/sub", "over/sub/s.yaml": "apps/a/sub/s.yaml",
		"over/none.yaml": "apps/a/none.yaml", "over/sub/no/ne": "apps/a/sub/no/ne", "nowhere": "nowhere"} {
		if got := a.RepoPath(in); got != want {
			t.Errorf("RepoPath(%s) = %s, want %s", in, got, want)
		}
	}
	if a.Dropped()["infra/p.png"] == "" {
		t.Errorf("dropped %v", a.Dropped())
	}
	sub, err := a.Sub("over")
	if err != nil || sub.RepoPath("k.yaml") != "apps/a/k.yaml" {
		t.Errorf("%v %v", sub, err)
	}
	twice, err := s.Compose([]source.Part{{From: a, Source: "over/", To: "deep"}})
	if err != nil || twice.RepoPath("deep/over/k.yaml") != "apps/a/k.yaml" {
		t.Errorf("%v", err)
	}
}
