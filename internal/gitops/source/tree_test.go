package source_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

func TestCleanPath(t *testing.T) {
	for in, want := range map[string]string{"": ".", "/": ".", "./": ".", "./a/b/": "a/b", "/a": "a", "../../a": "a", "a/../..": ".", "a//b": "a/b"} {
		if got := source.CleanPath(in); got != want {
			t.Errorf("CleanPath(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRefs(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "one"})
	first := git(t, dir, "rev-parse", "HEAD")
	git(t, dir, "tag", "-a", "-m", "annotated", "v1")
	git(t, dir, "tag", "-a", "-m", "nested", "v1-again", "v1")
	put(t, dir, map[string]string{"a.yaml": "two"})
	second := commit(t, dir, "second")
	git(t, dir, "branch", "feature/x")
	git(t, dir, "update-ref", "refs/remotes/origin/stable", first)
	git(t, dir, "branch", "abc", first) // also hexadecimal
	git(t, dir, "checkout", "-q", "-b", "side", first)
	put(t, dir, map[string]string{"b.yaml": "b"})
	side := commit(t, dir, "side")
	git(t, dir, "checkout", "-q", "main")
	git(t, dir, "merge", "-q", "-m", "merge", "side")
	merge := git(t, dir, "rev-parse", "HEAD")
	s := store(t, source.Limits{})
	for _, packed := range []bool{false, true} {
		if packed {
			git(t, dir, "pack-refs", "--all")
			git(t, dir, "gc", "-q")
		}
		for ref, want := range map[string]string{"main": merge, "HEAD": merge, "@": merge, "feature/x": second, "refs/heads/feature/x": second, "v1": first, "v1-again": first, "v1^{}": first,
			"origin/stable": first, "abc": first, "HEAD~1": second, "HEAD^2": side, "HEAD^^": first, "main~2": first, "HEAD^0": merge, second: second, second[:8]: second} {
			tree := open(t, s, dir, ref)
			if tree.Commit != want || tree.Worktree || tree.Dirty != nil || tree.Ref != ref {
				t.Errorf("packed %v, %s: %+v, want commit %s", packed, ref, tree, want)
			}
		}
	}
	if got := content(t, artifact(t, open(t, s, dir, "v1"), ""), "a.yaml"); got != "one" {
		t.Errorf("v1 has %q", got)
	}
	for ref, code := range map[string]source.Code{"nope": source.UnknownRef, "HEAD~99": source.UnknownRef, "HEAD^3": source.UnknownRef, strings.Repeat("0", 40): source.UnknownRef,
		"~2": source.InvalidArgument, "^{/x}": source.InvalidArgument, "main..side": source.InvalidArgument, "HEAD@{1}": source.InvalidArgument, ":/x": source.InvalidArgument,
		"../../x": source.InvalidArgument, "-x": source.InvalidArgument, "a b": source.InvalidArgument, "HEAD~99999999999999999999": source.InvalidArgument} {
		_, err := s.Open(context.Background(), dir, ref)
		wantCode(t, err, code)
	}
	_, err := s.Open(context.Background(), dir, "nope")
	e := wantCode(t, err, source.UnknownRef, "nope", "feature/x")
	if len(e.Valid) == 0 || len(e.Valid) > 10 || !strings.Contains(strings.Join(e.Valid, " "), "v1") {
		t.Errorf("Valid %q", e.Valid)
	}
}

func TestPlaces(t *testing.T) {
	s := store(t, source.Limits{})
	ctx := context.Background()
	plain := t.TempDir()
	put(t, plain, map[string]string{"a.yaml": "a", ".gitignore": "a.yaml"})
	tree := open(t, s, plain, "")
	if tree.Commit != "" || !tree.Worktree || tree.Dirty != nil {
		t.Errorf("plain folder: %+v", tree)
	}
	wantFiles(t, artifact(t, tree, ""), "a.yaml")
	_, err := s.Open(ctx, plain, "main")
	wantCode(t, err, source.NotARepository)
	_, err = s.Remotes(plain)
	wantCode(t, err, source.NotARepository)
	_, err = s.Changed(ctx, plain, "main", "")
	wantCode(t, err, source.NotARepository)
	_, err = s.Open(ctx, filepath.Join(plain, "none"), "")
	wantCode(t, err, source.PathNotFound)
	_, err = s.Open(ctx, filepath.Join(plain, "a.yaml"), "")
	wantCode(t, err, source.InvalidArgument)
	_, err = s.Open(ctx, "", "")
	wantCode(t, err, source.InvalidArgument)

	empty := t.TempDir()
	git(t, empty, "init", "-q")
	put(t, empty, map[string]string{"a.yaml": "a"})
	if tree = open(t, s, empty, ""); tree.Commit != "" || tree.Dirty != nil {
		t.Errorf("before the first commit: %+v", tree)
	}
	wantFiles(t, artifact(t, tree, ""), "a.yaml")

	dir := repo(t, map[string]string{"sub/b.yaml": "b", "sub/.gitignore": "*.log", "c.yaml": "c", ".gitignore": "*.tmp"})
	bare := filepath.Join(t.TempDir(), "bare.git")
	git(t, dir, "clone", "-q", "--bare", dir, bare)
	if tree = open(t, s, bare, ""); tree.Commit == "" || tree.Worktree || tree.Ref != "HEAD" {
		t.Errorf("bare: %+v", tree)
	}
	wantFiles(t, artifact(t, tree, ""), "c.yaml", "sub/b.yaml")

	put(t, dir, map[string]string{"sub/x.tmp": "", "sub/x.log": "", "sub/new.yaml": "new", "outside.yaml": ""})
	tree = open(t, s, filepath.Join(dir, "sub"), "")
	if len(tree.Notes) != 1 || !strings.Contains(tree.Notes[0].String(), "folder sub of a larger") || dirtyOf(tree) != "dirty" {
		t.Errorf("subfolder: %v %s", tree.Notes, dirtyOf(tree))
	}
	wantFiles(t, artifact(t, tree, ""), "b.yaml", "new.yaml")
	wantFiles(t, artifact(t, open(t, s, filepath.Join(dir, "sub"), "main"), ""), "b.yaml")
	changes, err := s.Changed(ctx, filepath.Join(dir, "sub"), "main", "")
	if err != nil || fmt.Sprint(changes.Files) != "[{new.yaml added}]" {
		t.Errorf("subfolder: %v %v", changes, err)
	}
	put(t, dir, map[string]string{"build.tmp/a.yaml": "a"})
	tree = open(t, s, filepath.Join(dir, "build.tmp"), "")
	wantFiles(t, artifact(t, tree, ""), "a.yaml")
}

func TestWorktree(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "a", "tracked.log": "t", "ignored/kept.yaml": "k", ".gitignore": ""})
	put(t, dir, map[string]string{".gitignore": "*.log\nignored/\n!deep/keep.log\n"})
	commit(t, dir, "rules")
	age(t, dir)
	git(t, dir, "status") // refreshes the index
	s := store(t, source.Limits{})
	tree := open(t, s, dir, "")
	if dirtyOf(tree) != "clean" || tree.Commit != git(t, dir, "rev-parse", "HEAD") {
		t.Errorf("%s at %s", dirtyOf(tree), tree.Commit)
	}
	if n := s.FilesRead(); n != 0 {
		t.Errorf("%d files read to find a tree clean whose index proves it", n)
	}
	put(t, dir, map[string]string{"x.log": "", "ignored/other.yaml": "", "deep/keep.log": "keep", "deep/no.log": ""})
	tree = open(t, s, dir, "")
	wantFiles(t, artifact(t, tree, ""), "a.yaml", "deep/keep.log", "ignored/kept.yaml", "tracked.log")
	steps := []struct {
		name string
		do   func()
		want string
	}{
		{"untracked", func() {}, "dirty"},
		{"without it", func() { os.Remove(filepath.Join(dir, "deep/keep.log")) }, "clean"},
		{"same size", func() { put(t, dir, map[string]string{"a.yaml": "b"}) }, "dirty"},
		{"back again", func() { put(t, dir, map[string]string{"a.yaml": "a"}) }, "clean"},
		{"executable", func() { os.Chmod(filepath.Join(dir, "a.yaml"), 0o755) }, "dirty"},
		{"modes don't count", func() { git(t, dir, "config", "core.fileMode", "false") }, "clean"},
		{"staged", func() {
			put(t, dir, map[string]string{"a.yaml": "b"})
			git(t, dir, "add", "a.yaml")
			put(t, dir, map[string]string{"a.yaml": "a"})
		}, "dirty"},
		{"unstaged", func() { git(t, dir, "reset", "-q") }, "clean"},
		{"deleted", func() { os.Remove(filepath.Join(dir, "a.yaml")) }, "dirty"},
	}
	for _, st := range steps {
		st.do()
		if got := dirtyOf(open(t, s, dir, "")); got != st.want {
			t.Errorf("%s: %s, want %s", st.name, got, st.want)
		}
	}
}

func TestLinkedWorktree(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "a"})
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, dir, "worktree", "add", "-q", "-b", "other", linked)
	put(t, linked, map[string]string{"b.yaml": "b"})
	head := commit(t, linked, "b")
	put(t, linked, map[string]string{"c.yaml": "c"})
	s := store(t, source.Limits{})
	tree := open(t, s, linked, "")
	if tree.Commit != head || dirtyOf(tree) != "dirty" || len(tree.Notes) != 1 {
		t.Fatalf("%+v", tree)
	}
	if n := tree.Notes[0].String(); n != "this is a linked worktree of "+filepath.Base(dir) {
		t.Errorf("note %q", n)
	}
	wantFiles(t, artifact(t, tree, ""), "a.yaml", "b.yaml", "c.yaml")
	wantFiles(t, artifact(t, open(t, s, linked, "main"), ""), "a.yaml")
	changes, err := s.Changed(context.Background(), linked, "main", "")
	if err != nil || fmt.Sprint(changes.Files) != "[{b.yaml added} {c.yaml added}]" {
		t.Errorf("%v %v", changes, err)
	}
}

func TestSubmodule(t *testing.T) {
	inner := repo(t, map[string]string{"inner.yaml": "i"})
	dir := repo(t, map[string]string{"a.yaml": "a"})
	git(t, dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "apps/x")
	commit(t, dir, "submodule")
	s := store(t, source.Limits{})
	for _, ref := range []string{"", "main"} {
		tree := open(t, s, dir, ref)
		a := artifact(t, tree, "")
		wantFiles(t, a, "a.yaml")
		if a.Dropped()["apps/x"] != "submodule" || len(tree.Notes) != 1 || !strings.HasPrefix(tree.Notes[0].String(), "submodule folder apps/x: ") {
			t.Errorf("ref %q: %v %v", ref, a.Dropped(), tree.Notes)
		}
		if ref == "" && dirtyOf(tree) != "clean" {
			t.Error("a submodule made the tree dirty")
		}
	}
	put(t, inner, map[string]string{"inner.yaml": "j"})
	newer := commit(t, inner, "newer")
	git(t, dir, "update-index", "--cacheinfo", "160000,"+newer+",apps/x")
	git(t, dir, "commit", "-q", "-m", "newer")
	changes, err := s.Changed(context.Background(), dir, "main~1", "main")
	if err != nil || fmt.Sprint(changes.Files) != "[{apps/x modified}]" {
		t.Errorf("%v %v", changes, err)
	}
	nested := filepath.Join(dir, "nested")
	git(t, dir, "clone", "-q", inner, nested)
	wantFiles(t, artifact(t, open(t, s, dir, ""), ""), "a.yaml")
	if changes, err = s.Changed(context.Background(), dir, "main", ""); err != nil || len(changes.Files) != 0 {
		t.Errorf("a nested repository is no change: %v %v", changes, err)
	}
}

// TestReadOnly opens a repository that must stay as it is, to the time stamp.
func TestReadOnly(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "a", "sub/b.yaml": "b"})
	put(t, dir, map[string]string{"a.yaml": "changed"})
	state := func() string {
		return everything(t, dir, func(info os.FileInfo) string { return fmt.Sprint(info.Mode(), info.ModTime().UnixNano()) })
	}
	chmod := func(mask os.FileMode) {
		var dirs []string
		err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dirs {
			if err := os.Chmod(d, mask); err != nil {
				t.Fatal(err)
			}
		}
	}
	chmod(0o555)
	defer chmod(0o755)
	before := state()
	s := store(t, source.Limits{})
	for _, ref := range []string{"", "main"} {
		wantFiles(t, artifact(t, open(t, s, dir, ref), "x"), "a.yaml", "sub/b.yaml")
	}
	if _, err := s.Changed(context.Background(), dir, "main", ""); err != nil {
		t.Error(err)
	}
	if _, err := s.Remotes(dir); err != nil {
		t.Error(err)
	}
	if after := state(); after != before {
		t.Errorf("the repository changed:\n%s\n%s", before, after)
	}
}

func TestSparseCheckout(t *testing.T) {
	dir := repo(t, map[string]string{"a/x.yaml": "x", "b/y.yaml": "y"})
	git(t, dir, "sparse-checkout", "set", "--no-cone", "/a/")
	s := store(t, source.Limits{})
	tree := open(t, s, dir, "")
	if dirtyOf(tree) != "clean" || len(tree.Notes) != 1 || !strings.Contains(tree.Notes[0].String(), "sparse checkout: 1 tracked") {
		t.Errorf("%s %v", dirtyOf(tree), tree.Notes)
	}
	wantFiles(t, artifact(t, tree, ""), "a/x.yaml")
	changes, err := s.Changed(context.Background(), dir, "main", "")
	if err != nil || len(changes.Files) != 0 {
		t.Errorf("%v %v", changes, err)
	}
}

func TestExtensions(t *testing.T) {
	s := store(t, source.Limits{})
	for _, tt := range []struct{ name, value, word string }{{"partialClone", "origin", ""}, {"relativeWorktrees", "true", ""}, {"objectFormat", "sha1", ""}, {"objectFormat", "sha256", "objectFormat"}, {"refStorage", "reftable", "refStorage"}} {
		dir := repo(t, map[string]string{"a.yaml": "a"})
		git(t, dir, "config", "core.repositoryFormatVersion", "1")
		git(t, dir, "config", "extensions."+tt.name, tt.value)
		tree, err := s.Open(context.Background(), dir, "main")
		if tt.word == "" {
			if err != nil {
				t.Errorf("%s %s: %v", tt.name, tt.value, err)
				continue
			}
			tree.Release()
			continue
		}
		wantCode(t, err, source.Unreadable, tt.word)
	}
}
