package source_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	gogit "github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// forge writes objects that Git itself would refuse to make.
type forge struct {
	t    *testing.T
	dir  string
	repo *gogit.Repository
}

func newForge(t *testing.T) *forge {
	dir := t.TempDir()
	r, err := gogit.PlainInit(dir, true)
	if err != nil {
		t.Fatal(err)
	}
	return &forge{t, dir, r}
}

func (f *forge) raw(typ plumbing.ObjectType, data []byte) plumbing.Hash {
	f.t.Helper()
	obj := f.repo.Storer.NewEncodedObject()
	obj.SetType(typ)
	w, err := obj.Writer()
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	h, err := f.repo.Storer.SetEncodedObject(obj)
	if err != nil {
		f.t.Fatal(err)
	}
	return h
}

func (f *forge) tree(entries ...object.TreeEntry) plumbing.Hash {
	var b []byte
	for _, e := range entries {
		b = append(b, fmt.Sprintf("%o %s\x00", uint32(e.Mode), e.Name)...)
		b = append(b, e.Hash[:]...)
	}
	return f.raw(plumbing.TreeObject, b)
}

func (f *forge) commit(tree plumbing.Hash, parents ...string) string {
	var of strings.Builder
	for _, p := range parents {
		fmt.Fprintf(&of, "parent %s\n", p)
	}
	return f.raw(plumbing.CommitObject, fmt.Appendf(nil, "tree %s\n%sauthor a <a@example.com> 1 +0000\ncommitter a <a@example.com> 1 +0000\n\nx\n", tree, of.String())).String()
}

func TestHostileTrees(t *testing.T) {
	f := newForge(t)
	blob := f.raw(plumbing.BlobObject, []byte("x"))
	file := func(name string) object.TreeEntry {
		return object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: blob}
	}
	dir := func(name string, h plumbing.Hash) object.TreeEntry {
		return object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: h}
	}
	inner := f.tree(file("x"))
	// Ten times the same folder, eight levels deep, is a hundred million files.
	bomb := inner
	for range 8 {
		var level []object.TreeEntry
		for i := range 10 {
			level = append(level, dir(fmt.Sprint(i), bomb))
		}
		bomb = f.tree(level...)
	}
	deep := inner
	for range 30 {
		deep = f.tree(dir(strings.Repeat("d", 200), deep))
	}
	tests := []struct {
		name string
		tree plumbing.Hash
		code source.Code
		word string
	}{
		{"parent", f.tree(file("..")), source.Unreadable, `".."`},
		{"parent folder", f.tree(dir("..", inner)), source.Unreadable, `".."`},
		{"itself", f.tree(file(".")), source.Unreadable, `"."`},
		{"absolute", f.tree(file("/etc/passwd")), source.Unreadable, `"/etc/passwd"`},
		{"with a slash", f.tree(dir("a", f.tree(file("b/../../c")))), source.Unreadable, `"b/../../c"`},
		{"git folder", f.tree(dir("a", f.tree(dir(".git", inner)))), source.Unreadable, `".git"`},
		{"git folder, other case", f.tree(dir(".GIT", inner)), source.Unreadable, `".GIT"`},
		{"twice", f.tree(file("a"), dir("a", inner)), source.Unreadable, `"a"`},
		{"missing folder", f.tree(dir("a", plumbing.NewHash(strings.Repeat("ab", 20)))), source.Unreadable, "a"},
		{"missing file", f.tree(object.TreeEntry{Name: "gone", Mode: filemode.Regular, Hash: plumbing.NewHash(strings.Repeat("ab", 20))}), source.Unreadable, "gone"},
		{"a folder that is a file", f.tree(dir("a", blob)), source.Unreadable, "a"},
		{"a file that is a folder", f.tree(object.TreeEntry{Name: "a", Mode: filemode.Regular, Hash: inner}), source.Unreadable, "a"},
		{"malformed", f.raw(plumbing.TreeObject, []byte("100644 x")), source.Unreadable, "tree"},
		{"bomb", bomb, source.TooLarge, "listed"},
		{"deep", deep, source.TooLarge, "deeper"},
		{"backslash", f.tree(file(`a\..\b`)), "", ""},
		{"no UTF-8", f.tree(file("\xff\xfe")), "", ""},
		{"control characters", f.tree(file("a\nb\x1b[31m")), "", ""},
	}
	s := store(t, source.Limits{})
	ordinary := f.commit(f.tree(file("x")))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			c := f.commit(tt.tree)
			tree, err := s.Open(context.Background(), f.dir, c)
			if err == nil {
				defer tree.Release()
				var a *source.Artifact
				if a, err = tree.Artifact(""); err == nil {
					wantFiles(t, a, a.Files()...)
				}
			}
			if tt.code == "" {
				if err != nil {
					t.Error(err)
				}
			} else {
				wantCode(t, err, tt.code, tt.word)
			}
			// A diff writes nothing, so it may name what can't be written; it must
			// end, without a panic, in an answer or a coded error.
			var e *source.Error
			if _, err = s.Changed(context.Background(), f.dir, ordinary, f.commit(tt.tree, ordinary)); err != nil && !errors.As(err, &e) {
				t.Errorf("Changed: %v", err)
			}
			if d := time.Since(start); d > 20*time.Second {
				t.Errorf("it took %s", d)
			}
		})
	}
}

// TestLyingPack has an object under another's hash, as a crafted pack may.
func TestLyingPack(t *testing.T) {
	f := newForge(t)
	good, evil := f.raw(plumbing.BlobObject, []byte("good")), f.raw(plumbing.BlobObject, []byte("evil"))
	c := f.commit(f.tree(object.TreeEntry{Name: "a.yaml", Mode: filemode.Regular, Hash: good}))
	object := func(h plumbing.Hash) string {
		return filepath.Join(f.dir, "objects", h.String()[:2], h.String()[2:])
	}
	data, err := os.ReadFile(object(evil))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(object(good)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(object(good), data, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = open(t, store(t, source.Limits{}), f.dir, c).Artifact("")
	wantCode(t, err, source.Unreadable, "a.yaml")
}

func TestHostileFolders(t *testing.T) {
	ctx := context.Background()
	s := store(t, source.Limits{Files: 100})

	dir := t.TempDir()
	put(t, dir, map[string]string{"a.yaml": "a"})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := artifact(t, open(t, s, dir, ""), "")
	wantFiles(t, a, "a.yaml")
	if a.Dropped()["pipe"] != "not a regular file" {
		t.Errorf("dropped %v", a.Dropped())
	}

	deep := t.TempDir()
	put(t, deep, map[string]string{strings.Repeat("d/", 300) + "x": ""})
	_, err := s.Open(ctx, deep, "")
	wantCode(t, err, source.TooLarge, "deeper")

	many := t.TempDir()
	for i := range 500 {
		put(t, many, map[string]string{fmt.Sprint(i): ""})
	}
	_, err = s.Open(ctx, many, "")
	wantCode(t, err, source.TooLarge, "400")

	sparse := t.TempDir()
	huge, err := os.Create(filepath.Join(sparse, "huge.yaml"))
	if err == nil {
		err = huge.Truncate(200 << 20)
	}
	if err != nil {
		t.Fatal(err)
	}
	huge.Close()
	_, err = open(t, s, sparse, "").Artifact("")
	wantCode(t, err, source.TooLarge, "huge.yaml", "209715200")

	rules := t.TempDir()
	put(t, rules, map[string]string{".sourceignore": strings.Repeat("*a*b*c\n", 300_000)})
	_, err = open(t, s, rules, "").Artifact("")
	wantCode(t, err, source.TooLarge, ".sourceignore")

	fake := t.TempDir()
	put(t, fake, map[string]string{".git": "gitdir: /nowhere/at/all\n", "a.yaml": ""})
	_, err = s.Open(ctx, fake, "")
	wantCode(t, err, source.NotARepository)

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Open(cancelled, dir, ""); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}
