package source_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// nameStatus is what Git says of a diff, as Changes does.
func nameStatus(t *testing.T, dir string, args ...string) []source.Change {
	t.Helper()
	kinds := map[string]source.ChangeKind{"A": source.Added, "M": source.Modified, "T": source.Modified, "D": source.Deleted}
	var out []source.Change
	fields := strings.Split(git(t, dir, append([]string{"-c", "core.quotePath=false", "diff", "--no-renames", "--name-status", "-z"}, args...)...), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		out = append(out, source.Change{Path: fields[i+1], Kind: kinds[fields[i]]})
	}
	slices.SortFunc(out, func(a, b source.Change) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(string(a.Kind), string(b.Kind)))
	})
	return out
}

// mutate changes a working tree in some way or other.
func mutate(t *testing.T, r *rand.Rand, dir string) {
	t.Helper()
	for range 1 + r.IntN(4) {
		// Names that sort otherwise as paths than as folders are on purpose.
		name := []string{"a", "a.b", "a-b", "d/x", "d/y.yaml", "d.z", "d-z/q", "e/f/g", "e/f/h", "ü.yaml", "sp ace"}[r.IntN(11)]
		file := filepath.Join(dir, name)
		switch r.IntN(8) {
		case 0:
			os.RemoveAll(file)
		case 1:
			os.RemoveAll(file)
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err == nil {
				os.Symlink([]string{"x", "y"}[r.IntN(2)], file)
			}
		case 2:
			os.Chmod(file, []os.FileMode{0o644, 0o755}[r.IntN(2)])
		case 3:
			// A folder where a file was.
			os.RemoveAll(file)
			put(t, dir, map[string]string{name + "/in": fmt.Sprint(r.IntN(3))})
		default:
			os.RemoveAll(file)
			put(t, dir, map[string]string{name: fmt.Sprint(r.IntN(3))})
		}
	}
}

// TestChangedAsGit compares with Git on a history made at random.
func TestChangedAsGit(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	dir := repo(t, map[string]string{"a": "0", "d/x": "0", ".gitignore": "*.tmp\n"})
	commits := []string{git(t, dir, "rev-parse", "HEAD")}
	for i := range 20 {
		if i > 4 && i%5 == 0 {
			// Two commits merge each other: two merge bases.
			x, y := commits[len(commits)-1], commits[len(commits)-2]
			for _, pair := range [][2]string{{x, y}, {y, x}} {
				git(t, dir, "checkout", "-q", "-f", pair[0])
				git(t, dir, "merge", "-q", "-s", "ours", "--no-ff", "-m", "cross", pair[1])
				mutate(t, r, dir)
				commits = append(commits, commit(t, dir, "c"))
			}
			continue
		}
		git(t, dir, "checkout", "-q", "-f", commits[r.IntN(len(commits))])
		git(t, dir, "clean", "-qfd")
		if r.IntN(4) == 0 {
			// Merges that take our side whatever the conflict, and criss-cross.
			git(t, dir, "merge", "-q", "-s", "ours", "-m", "merge", commits[r.IntN(len(commits))])
		} else {
			mutate(t, r, dir)
		}
		commits = append(commits, commit(t, dir, "c"))
	}
	s := store(t, source.Limits{})
	ctx := context.Background()
	single := 0
	for range 50 {
		a, b := commits[r.IntN(len(commits))], commits[r.IntN(len(commits))]
		got, err := s.Changed(ctx, dir, a, b)
		if err != nil {
			t.Fatal(err)
		}
		bases := strings.Fields(git(t, dir, "merge-base", "--all", a, b))
		if !slices.Contains(bases, got.MergeBase) || got.Base != a || got.Head != b {
			t.Fatalf("%+v, Git's merge bases %v", got, bases)
		}
		if len(bases) == 1 {
			single++
		}
		if want := nameStatus(t, dir, got.MergeBase, b); fmt.Sprint(got.Files) != fmt.Sprint(want) {
			t.Errorf("%s...%s: %v, Git says %v", a, b, got.Files, want)
		}
		if want := nameStatus(t, dir, a+"..."+b); len(bases) == 1 && fmt.Sprint(got.Files) != fmt.Sprint(want) {
			t.Errorf("%s...%s: %v, Git says %v", a, b, got.Files, want)
		}
	}
	if single == 0 || single == 50 {
		t.Errorf("%d of 50 comparisons have one merge base; both kinds are wanted", single)
	}
	// The working tree: everything that is not ignored, as if it were added.
	for range 15 {
		git(t, dir, "checkout", "-q", "-f", commits[r.IntN(len(commits))])
		git(t, dir, "clean", "-qfd")
		mutate(t, r, dir)
		put(t, dir, map[string]string{"no.tmp": "", "d2/no.tmp": ""})
		if r.IntN(2) == 0 {
			git(t, dir, "add", "-A")
			mutate(t, r, dir)
		}
		base := commits[r.IntN(len(commits))]
		got, err := s.Changed(ctx, dir, base, "")
		if err != nil {
			t.Fatal(err)
		}
		dirty := dirtyOf(open(t, s, dir, ""))
		git(t, dir, "add", "-A")
		if want := nameStatus(t, dir, "--cached", got.MergeBase); fmt.Sprint(got.Files) != fmt.Sprint(want) || got.Head != "" {
			t.Errorf("working tree and %s: %v, Git says %v", base, got.Files, want)
		}
		if want := len(nameStatus(t, dir, "--cached", "HEAD")) > 0; want && dirty != "dirty" {
			t.Errorf("the tree is %s", dirty)
		}
		git(t, dir, "reset", "-q", "--hard")
	}
}

func TestHistoryErrors(t *testing.T) {
	ctx := context.Background()
	dir := repo(t, map[string]string{"a": "0"})
	for i := range 6 {
		put(t, dir, map[string]string{"a": fmt.Sprint(i + 1)})
		commit(t, dir, "next")
		if i == 0 {
			git(t, dir, "branch", "old")
		}
	}
	git(t, dir, "checkout", "-q", "-b", "topic", "main~1")
	put(t, dir, map[string]string{"b": "b"})
	commit(t, dir, "topic")
	git(t, dir, "checkout", "-q", "--orphan", "lonely")
	commit(t, dir, "lonely")
	git(t, dir, "checkout", "-q", "main")
	s := store(t, source.Limits{})

	_, err := s.Changed(ctx, dir, "main", "lonely")
	wantCode(t, err, source.UnrelatedHistory, "main", "lonely")
	_, err = s.Changed(ctx, dir, "nope", "main")
	wantCode(t, err, source.UnknownRef, "nope")

	shallow := filepath.Join(t.TempDir(), "shallow")
	git(t, dir, "clone", "-q", "--depth", "2", "--no-single-branch", "file://"+dir, shallow)
	// Within what there is, the answer is Git's.
	got, err := s.Changed(ctx, shallow, "origin/main", "origin/topic")
	if err != nil || fmt.Sprint(got.Files) != "[{b added}]" {
		t.Errorf("%v %v", got, err)
	}
	_, err = s.Changed(ctx, shallow, "origin/old", "main")
	wantCode(t, err, source.Shallow, "--unshallow")
	_, err = s.Open(ctx, shallow, "main~4")
	wantCode(t, err, source.Shallow)
	git(t, shallow, "fetch", "-q", "--unshallow")
	if got, err = s.Changed(ctx, shallow, "origin/old", "main"); err != nil || fmt.Sprint(got.Files) != "[{a modified}]" {
		t.Errorf("after unshallow: %v %v", got, err)
	}
}

func TestDefaultBase(t *testing.T) {
	ctx := context.Background()
	s := store(t, source.Limits{})
	dir := repo(t, map[string]string{"a": "0"})
	_, err := s.DefaultBase(ctx, dir, "main")
	wantCode(t, err, source.UnknownRef, "name a base")
	want := func(base string) {
		t.Helper()
		got, err := s.DefaultBase(ctx, dir, "")
		if err != nil || got != base {
			t.Errorf("%q %v, want %q", got, err, base)
		}
		if _, err := s.Changed(ctx, dir, base, ""); err != nil {
			t.Error(err)
		}
	}
	want("HEAD")
	commit(t, dir, "second")
	want("HEAD~1")
	git(t, dir, "checkout", "-q", "-b", "topic")
	want("main")
	git(t, dir, "branch", "-m", "main", "master")
	want("master")
	git(t, dir, "update-ref", "refs/remotes/origin/main", "HEAD")
	want("origin/main")
	git(t, dir, "update-ref", "refs/remotes/origin/trunk", "HEAD")
	git(t, dir, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk")
	want("origin/trunk")
}

func TestDefaultBaseOfARef(t *testing.T) {
	ctx := context.Background()
	s := store(t, source.Limits{})
	dir := repo(t, map[string]string{"a": "0"})
	commit(t, dir, "second")
	git(t, dir, "checkout", "-q", "-b", "topic")
	commit(t, dir, "third")
	git(t, dir, "checkout", "-q", "main")
	for head, want := range map[string]string{"topic": "main", "main": "main~1", "topic~1": "topic~1~1"} {
		if got, err := s.DefaultBase(ctx, dir, head); err != nil || got != want {
			t.Errorf("%s: %q %v, want %q", head, got, err, want)
		}
	}
	_, err := s.DefaultBase(ctx, dir, "nowhere")
	wantCode(t, err, source.UnknownRef, "nowhere")
}

func TestRemotes(t *testing.T) {
	dir := repo(t, map[string]string{"a": "0"})
	for name, u := range map[string]string{"https": "https://user:secret@example.com/a/b.git?token=secret", "token": "https://secret@example.com/c", "ssh": "ssh://git:secret@example.com/d", "scp": "git@example.com:e/f.git",
		"odd": "https://secret:p%zz@example.com/g?x=secret", "folder": "/srv/h"} {
		git(t, dir, "remote", "add", name, u)
	}
	got, err := store(t, source.Limits{}).Remotes(dir)
	want := "/srv/h git@example.com:e/f.git https://example.com/a/b.git https://example.com/c https://example.com/g ssh://git@example.com/d"
	if err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v %v, want %s", got, err, want)
	}
}
