package source_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// git runs the git binary, with no configuration but the repository's.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=file",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

// put writes files below a folder; the keys are slash paths.
func put(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// repo makes a repository with one commit on main.
func repo(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "init", "-q", "-b", "main")
	put(t, dir, files)
	commit(t, dir, "first")
	return dir
}

func commit(t testing.TB, dir, message string) string {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "--allow-empty", "-m", message)
	return git(t, dir, "rev-parse", "HEAD")
}

// everything lists a folder with what is said of each path, and the contents.
func everything(t testing.TB, dir string, say func(os.FileInfo) string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, rel, say(info))
		if d.Type().IsRegular() {
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%q\n", data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// age makes every file of a working tree old enough for its times to be believed.
func age(t testing.TB, dir string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return os.Chtimes(p, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func store(t testing.TB, l source.Limits) *source.Store {
	t.Helper()
	s, err := source.NewStore(l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func open(t testing.TB, s *source.Store, dir, ref string) *source.Tree {
	t.Helper()
	tree, err := s.Open(context.Background(), dir, ref)
	if err != nil {
		t.Fatalf("Open(%q): %v", ref, err)
	}
	t.Cleanup(tree.Release)
	return tree
}

func artifact(t testing.TB, tree *source.Tree, ignore string) *source.Artifact {
	t.Helper()
	a, err := tree.Artifact(ignore)
	if err != nil {
		t.Fatalf("Artifact: %v", err)
	}
	return a
}

func wantCode(t testing.TB, err error, code source.Code, words ...string) *source.Error {
	t.Helper()
	var e *source.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Fatalf("error %v, want code %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(e.Message, w) {
			t.Errorf("message %q lacks %q", e.Message, w)
		}
	}
	return e
}

func wantFiles(t testing.TB, a *source.Artifact, want ...string) {
	t.Helper()
	if got := strings.Join(a.Files(), " "); got != strings.Join(want, " ") {
		t.Errorf("files %q, want %q", got, strings.Join(want, " "))
	}
	// The folder is what Files says.
	var onDisk []string
	err := filepath.WalkDir(a.Dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(a.Dir, p)
			onDisk = append(onDisk, filepath.ToSlash(rel))
			if !d.Type().IsRegular() {
				t.Errorf("%s is no regular file", rel)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(onDisk) != len(a.Files()) {
		t.Errorf("on disk %q, Files %q", onDisk, a.Files())
	}
}

func content(t testing.TB, a *source.Artifact, p string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(a.Dir, filepath.FromSlash(p)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func dirtyOf(tree *source.Tree) string {
	switch {
	case tree.Dirty == nil:
		return "unknown"
	case *tree.Dirty:
		return "dirty"
	}
	return "clean"
}
