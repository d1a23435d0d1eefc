package source_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

func TestIgnoreRules(t *testing.T) {
	files := map[string]string{"a.yaml": "a", "img/logo.png": "p", ".github/w.yaml": "w", ".gitignore": "", "apps/.sops.yaml": "s", "apps/b.yaml": "b", "docs/x/c.yaml": "c"}
	with := func(more map[string]string) map[string]string {
		out := map[string]string{}
		for _, m := range []map[string]string{files, more} {
			for k, v := range m {
				out[k] = v
			}
		}
		return out
	}
	tests := []struct {
		name, ignore string
		files        map[string]string
		want         string
		dropped      map[string]string
	}{
		{"defaults", "", files, "a.yaml apps/b.yaml docs/x/c.yaml",
			map[string]string{"img/logo.png": "default rules", ".github/w.yaml": "default rules", "apps/.sops.yaml": "default rules", ".gitignore": "version control"}},
		{"a .sourceignore turns the defaults off", "", with(map[string]string{".sourceignore": "/docs/\n"}), ".github/w.yaml .sourceignore a.yaml apps/.sops.yaml apps/b.yaml img/logo.png",
			map[string]string{"docs/x/c.yaml": "ignored by .sourceignore", ".gitignore": "version control"}},
		{"so does one below, whose rules hold there", "", with(map[string]string{"apps/.sourceignore": "*.yaml\n!b.yaml\n"}), ".github/w.yaml a.yaml apps/.sourceignore apps/b.yaml docs/x/c.yaml img/logo.png",
			map[string]string{"apps/.sops.yaml": "ignored by apps/.sourceignore"}},
		{"so does spec.ignore, which is last", "!docs/x/c.yaml\n*.png\n", with(map[string]string{".sourceignore": "docs/\n"}), ".github/w.yaml .sourceignore a.yaml apps/.sops.yaml apps/b.yaml docs/x/c.yaml",
			map[string]string{"img/logo.png": "spec.ignore"}},
		{"all but one folder", "/*\n!/apps/\n", files, "apps/.sops.yaml apps/b.yaml", map[string]string{"docs/x/c.yaml": "spec.ignore"}},
		{"comments are no rules", "# nothing\n\n", files, "a.yaml apps/b.yaml docs/x/c.yaml", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := repo(t, tt.files)
			s := store(t, source.Limits{})
			var both []*source.Artifact
			for _, ref := range []string{"", "main"} {
				a := artifact(t, open(t, s, dir, ref), tt.ignore)
				wantFiles(t, a, strings.Fields(tt.want)...)
				for f, why := range tt.dropped {
					if !strings.Contains(a.Dropped()[f], why) {
						t.Errorf("%s was dropped as %q, want %q", f, a.Dropped()[f], why)
					}
				}
				if len(a.Files())+len(a.Dropped()) != len(tt.files) {
					t.Errorf("%d files, %d dropped of %d", len(a.Files()), len(a.Dropped()), len(tt.files))
				}
				both = append(both, a)
			}
			if both[0] != both[1] {
				t.Error("the commit and the clean working tree are two artifacts")
			}
		})
	}
}

func TestFolderOfIgnoredFiles(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "a", "img/logo.png": "p"})
	a := artifact(t, open(t, store(t, source.Limits{}), dir, "main"), "")
	if info, err := os.Stat(filepath.Join(a.Dir, "img")); err != nil || !info.IsDir() {
		t.Errorf("source-controller keeps the folder: %v", err)
	}
	if sub, err := a.Sub("img"); err != nil || len(sub.Files()) != 0 || sub.Dropped()["img/logo.png"] == "" {
		t.Errorf("%v %v", sub, err)
	}
}

func TestSymlinks(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, map[string]string{"secret.yaml": "secret"})
	dir := repo(t, map[string]string{"a.yaml": "a"})
	for name, to := range map[string]string{"file": "a.yaml", "escape": outside, "up": "..", "loop": "loop", ".sourceignore": "a.yaml"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, dir, "links")
	s := store(t, source.Limits{})
	for _, ref := range []string{"", "main"} {
		tree := open(t, s, dir, ref)
		a := artifact(t, tree, "")
		wantFiles(t, a, "a.yaml")
		for _, l := range []string{"file", "escape", "up", "loop"} {
			if a.Dropped()[l] != "symlink" {
				t.Errorf("ref %q: %s was dropped as %q", ref, l, a.Dropped()[l])
			}
		}
		if len(tree.Notes) != 1 || !strings.Contains(tree.Notes[0].String(), ".sourceignore is no regular file") {
			t.Errorf("notes %v", tree.Notes)
		}
		if ref == "" && dirtyOf(tree) != "clean" {
			t.Error("links made the tree dirty")
		}
	}
	if err := os.Remove(filepath.Join(dir, "file")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("b.yaml", filepath.Join(dir, "file")); err != nil {
		t.Fatal(err)
	}
	changes, err := s.Changed(context.Background(), dir, "main", "")
	if err != nil || fmt.Sprint(changes.Files) != "[{file modified}]" {
		t.Errorf("%v %v", changes, err)
	}
}

func TestLimits(t *testing.T) {
	big := strings.Repeat("x", 5000)
	many := map[string]string{}
	for i := range 30 {
		many[fmt.Sprintf("f%02d.yaml", i)] = fmt.Sprint(i)
	}
	tests := []struct {
		name   string
		limits source.Limits
		files  map[string]string
		ignore string
		words  []string // nil is no error
	}{
		{"big file", source.Limits{FileBytes: 4000}, map[string]string{"a.yaml": "a", "deep/big.bin": big}, "", []string{"deep/big.bin", "5000", "4000", ".sourceignore"}},
		{"big file that is left out", source.Limits{FileBytes: 4000}, map[string]string{"a.yaml": "a", "deep/big.zip": big}, "", nil},
		{"big file that spec.ignore leaves out", source.Limits{FileBytes: 4000}, map[string]string{"a.yaml": "a", "deep/big.bin": big}, "*.bin", nil},
		{"many files", source.Limits{Files: 20}, many, "", []string{"30", "20", "spec.ignore"}},
		{"many files of which few count", source.Limits{Files: 20}, many, "f1*", nil},
		{"too many to list", source.Limits{Files: 7}, many, "f*", []string{"28", "listed"}},
		{"in all", source.Limits{TotalBytes: 9000}, map[string]string{"a.yaml": big, "b.yaml": big + "b"}, "", []string{"9000", "in all"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := repo(t, tt.files)
			s := store(t, tt.limits)
			for _, ref := range []string{"", "main"} {
				tree, err := s.Open(context.Background(), dir, ref)
				if err == nil {
					_, err = tree.Artifact(tt.ignore)
					tree.Release()
				}
				if tt.words == nil {
					if err != nil {
						t.Errorf("ref %q: %v", ref, err)
					}
					continue
				}
				wantCode(t, err, source.TooLarge, tt.words...)
			}
		})
	}
}

func TestSub(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "a", "apps/b.yaml": "b", "apps/x/c.yaml": "c", "apps/x/l.png": "l", "appsother/d.yaml": "d"})
	a := artifact(t, open(t, store(t, source.Limits{}), dir, "main"), "")
	sub, err := a.Sub("./apps/")
	if err != nil {
		t.Fatal(err)
	}
	wantFiles(t, sub, "b.yaml", "x/c.yaml")
	if sub.Dir != filepath.Join(a.Dir, "apps") || sub.RepoPath("x/c.yaml") != "apps/x/c.yaml" || sub.RepoPath(".") != "apps" || sub.RepoPath("none/x") != "apps/none/x" {
		t.Errorf("%s %s", sub.Dir, sub.RepoPath("."))
	}
	h, ok := sub.Hash("x/c.yaml")
	if whole, _ := a.Hash("apps/x/c.yaml"); !ok || h != whole || len(h) != 40 {
		t.Errorf("hash %q, of the whole %q", h, whole)
	}
	if _, ok := sub.Hash("a.yaml"); ok {
		t.Error("a file outside has a hash")
	}
	if len(sub.Dropped()) != 1 || sub.Dropped()["apps/x/l.png"] == "" {
		t.Errorf("dropped %v", sub.Dropped())
	}
	again, _ := a.Sub("apps")
	deep, err := sub.Sub("x")
	if err != nil || again != sub {
		t.Fatalf("%v, same view %v", err, again == sub)
	}
	wantFiles(t, deep, "c.yaml")
	if other, _ := a.Sub("apps/x"); other != deep || deep.RepoPath("c.yaml") != "apps/x/c.yaml" {
		t.Errorf("two ways to one folder: %v %s", other == deep, deep.RepoPath("c.yaml"))
	}
	if root, _ := a.Sub("."); root != a {
		t.Error("the root is another artifact")
	}
	_, err = a.Sub("none")
	wantCode(t, err, source.PathNotFound, "none")
	_, err = a.Sub("a.yaml")
	wantCode(t, err, source.PathNotFound, "a file")
}

func TestReuse(t *testing.T) {
	files := map[string]string{}
	for i := range 50 {
		files[fmt.Sprintf("d%d/f%d.yaml", i%7, i)] = fmt.Sprint("content ", i)
	}
	dir := repo(t, files)
	age(t, dir)
	s := store(t, source.Limits{})
	read := func(ref string, want int64, what string) *source.Artifact {
		t.Helper()
		before := s.FilesRead()
		tree := open(t, s, dir, ref)
		a := artifact(t, tree, "")
		if got := s.FilesRead() - before; got != want {
			t.Errorf("%s: %d files read, want %d", what, got, want)
		}
		tree.Release()
		return a
	}
	read("main", 50, "a commit")
	first := read("main", 0, "the same commit")
	// age changed the times, so that the index proves nothing; the store's own
	// memory must serve Dirty and Artifact at once.
	read("", 50, "a working tree")
	if read("", 0, "the same working tree") != first {
		t.Error("a clean working tree is another artifact than its commit")
	}
	put(t, dir, map[string]string{"d0/f0.yaml": "changed"})
	changed := read("", 1, "one changed file")
	if changed == first || content(t, changed, "d0/f0.yaml") != "changed" || content(t, first, "d0/f0.yaml") != "content 0" {
		t.Error("the change is not seen, or seen in the commit")
	}
	// Same size, and the time stamp set back: the file is young, and its inode
	// says that it changed.
	put(t, dir, map[string]string{"d0/f0.yaml": "chanGed"})
	if again := read("", 1, "a file of the same size"); content(t, again, "d0/f0.yaml") != "chanGed" {
		t.Error("an edit of the same size is not seen")
	}
	age(t, dir)
	read("", 50, "new time stamps")
	read("", 0, "nothing")
}

// TestStatesOfAWorkingTree edits a working tree: the folder of a state that was left behind becomes the next
// one's, whatever changed, and one that is in use or a commit's stays.
func TestStatesOfAWorkingTree(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "a", "apps/b.yaml": "b", "apps/c.yaml": "b", "file": "f"})
	s := store(t, source.Limits{})
	put(t, dir, map[string]string{"a.yaml": "0"})
	on := func(edit func(string)) *source.Artifact {
		t.Helper()
		edit(dir)
		tree := open(t, s, dir, "")
		defer tree.Release()
		a := artifact(t, tree, "")
		// What is in the folder is what a store that begins with this state has.
		fresh := artifact(t, open(t, store(t, source.Limits{}), dir, ""), "")
		kind := func(info os.FileInfo) string { return info.Mode().Type().String() }
		if got, want := everything(t, a.Dir, kind), everything(t, fresh.Dir, kind); got != want {
			t.Errorf("the folder has\n%s\nwant\n%s", got, want)
		}
		return a
	}
	move := func(from, to string) func(string) {
		return func(dir string) {
			if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
				t.Fatal(err)
			}
		}
	}
	last := on(func(string) {})
	for _, edit := range []func(string){
		func(d string) { put(t, d, map[string]string{"a.yaml": "1"}) },
		func(d string) { put(t, d, map[string]string{"a.yaml": "b", "apps/b.yaml": "1"}) },
		func(d string) { os.RemoveAll(filepath.Join(d, "apps")) },
		func(d string) { put(t, d, map[string]string{"apps": "a file where a folder was"}) },
		func(d string) {
			os.Remove(filepath.Join(d, "apps"))
			put(t, d, map[string]string{"apps/x/y/z.yaml": "z"})
		},
		move("apps/x", "x"),
		move("file", "x/file"),
		func(d string) { put(t, d, map[string]string{".sourceignore": "x/\n"}) },
		// Somebody was in the private folder.
		func(d string) {
			os.Remove(filepath.Join(last.Dir, "a.yaml"))
			put(t, d, map[string]string{"a.yaml": "2"})
		},
		func(d string) { os.RemoveAll(last.Dir); put(t, d, map[string]string{"a.yaml": "3"}) },
	} {
		next := on(edit)
		if _, err := os.Stat(last.Dir); next.Dir == last.Dir || !os.IsNotExist(err) {
			t.Errorf("the state before is still there in %s", last.Dir)
		}
		last = next
		if n := s.Artifacts(); n != 1 {
			t.Errorf("%d artifacts, want one", n)
		}
	}
	if got, want := s.Blobs(), 2; got != want {
		t.Errorf("%d contents, want %d", got, want)
	}

	held := open(t, s, dir, "")
	inUse := artifact(t, held, "")
	on(func(d string) { put(t, d, map[string]string{"a.yaml": "4"}) })
	if content(t, inUse, "a.yaml") != "3" {
		t.Error("a state in use was changed")
	}
	held.Release()
	// The commit of a clean working tree is not left behind when the tree moves on.
	ref := commit(t, dir, "clean")
	clean := on(func(string) {})
	tree := open(t, s, dir, ref)
	if artifact(t, tree, "") != clean {
		t.Error("a clean working tree is another artifact than its commit")
	}
	tree.Release()
	on(func(d string) { put(t, d, map[string]string{"a.yaml": "5"}) })
	if content(t, clean, "a.yaml") != "4" {
		t.Error("the folder of a commit was changed")
	}
}

func TestEviction(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "a"})
	s := store(t, source.Limits{})
	held := open(t, s, dir, git(t, dir, "rev-parse", "HEAD"))
	keep := artifact(t, held, "")
	composed, err := s.Compose([]source.Part{{From: keep, Source: "a.yaml", To: "x/"}})
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for i := range 20 {
		put(t, dir, map[string]string{"a.yaml": fmt.Sprint("version ", i)})
		tree := open(t, s, dir, commit(t, dir, "next"))
		dirs = append(dirs, artifact(t, tree, "").Dir)
		tree.Release()
	}
	if n := s.Artifacts(); n != 10 {
		t.Errorf("%d artifacts, want 8 idle, one in use and one composed of it", n)
	}
	if n := s.Blobs(); n != 9 {
		t.Errorf("%d contents, want 9", n)
	}
	if _, err := os.Stat(dirs[0]); !os.IsNotExist(err) {
		t.Errorf("the oldest folder is still there: %v", err)
	}
	if content(t, keep, "a.yaml") != "a" || content(t, composed, "x/a.yaml") != "a" {
		t.Error("an artifact in use was removed")
	}
	held.Release()
	held.Release()
	if _, err := held.Artifact("other"); err == nil {
		t.Error("a released tree gives artifacts")
	}
}

func TestClose(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "a"})
	s, err := source.NewStore(source.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := s.Open(context.Background(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	a := artifact(t, tree, "")
	private := filepath.Dir(a.Dir)
	if info, err := os.Stat(private); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(a.Dir, "a.yaml")); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v %v", info, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(private); !os.IsNotExist(err) {
		t.Errorf("the private folder is still there: %v", err)
	}
	if _, err = tree.Artifact("x"); err == nil {
		t.Error("a closed store gives artifacts")
	}
	tree.Release()
}

func TestConcurrent(t *testing.T) {
	dir := repo(t, map[string]string{"a.yaml": "0", "b/c.yaml": "c"})
	for i := range 4 {
		put(t, dir, map[string]string{"a.yaml": fmt.Sprint(i + 1)})
		commit(t, dir, "next")
	}
	s := store(t, source.Limits{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for k := range 10 {
				ref := []string{"", "main", "main~1", "main~2", "main~3"}[(i+k)%5]
				tree, err := s.Open(context.Background(), dir, ref)
				if err != nil {
					t.Error(err)
					return
				}
				a, err := tree.Artifact([]string{"", "# none"}[k%2])
				if err != nil {
					t.Error(err)
					return
				}
				want := map[string]string{"": "4", "main": "4", "main~1": "3", "main~2": "2", "main~3": "1"}[ref]
				if got, err := os.ReadFile(filepath.Join(a.Dir, "a.yaml")); err != nil || string(got) != want {
					t.Errorf("%s: %q %v", ref, got, err)
				}
				if sub, err := a.Sub("b"); err != nil || len(sub.Files()) != 1 {
					t.Error(err)
				}
				if _, err := s.Compose([]source.Part{{From: a, Source: "b/"}}); err != nil {
					t.Error(err)
				}
				if _, err := s.Changed(context.Background(), dir, "main~2", ref); err != nil {
					t.Error(err)
				}
				tree.Release()
			}
		})
	}
	wg.Wait()
}
