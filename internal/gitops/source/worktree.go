package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
)

// maxDepth bounds how deep folders nest on disk; each level holds a descriptor.
const maxDepth = 255

// walker lists a working tree: what is tracked, and what is not but could be,
// which leaves out what .gitignore ignores.
type walker struct {
	ctx    context.Context
	limits Limits
	// git is nil for a plain folder.
	git *gitIndex
	// prefix is where the walk starts below the root of the repository.
	prefix string
	// trackedDirs are the folders (from the root of the repository) that hold
	// tracked files: even an ignored one must be walked.
	trackedDirs map[string]bool
	// modes says whether the executable bit of the disk counts.
	modes bool
	count int
	list  listing
}

// listWorktree lists a folder on disk. r is nil for a plain folder; else the
// caller holds its lock.
func (s *Store) listWorktree(ctx context.Context, p *place, r *repository) (*listing, error) {
	w := &walker{ctx: ctx, limits: s.limits, prefix: p.prefix, modes: true, trackedDirs: map[string]bool{}}
	var rules []gitignore.Pattern
	ignored := false
	if r != nil {
		var err error
		if w.git, err = r.tracked(ctx, s.limits); err != nil {
			return nil, err
		}
		if w.git.unreadable {
			w.list.notes = append(w.list.notes, note("Git's index is of a form that can't be read here: what is tracked is taken from the commit"))
		}
		for name := range w.git.entries {
			for d := path.Dir(name); d != "." && !w.trackedDirs[d]; d = path.Dir(d) {
				w.trackedDirs[d] = true
			}
		}
		w.modes = r.config.Raw.Section("core").Option("filemode") != "false"
		rules, ignored = r.rulesAbove(p)
		if ignored && !w.trackedDirs[p.prefix] {
			w.list.notes = append(w.list.notes, note("this folder is ignored by the repository around it: it is read as a plain folder"))
			w.git, rules, ignored = nil, nil, false
		}
	}
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return nil, coded("the folder", err)
	}
	defer root.Close()
	if err := w.walk(root, ".", rules, ignored, 0); err != nil {
		return nil, err
	}
	if skipped := w.sparse(); skipped > 0 {
		w.list.notes = append(w.list.notes, note("this is a sparse checkout: %d tracked files are not on disk and not in the tree", skipped))
	}
	w.list.sort()
	return &w.list, nil
}

// tracked is the index, or the commit where the index can't be read.
func (r *repository) tracked(ctx context.Context, limits Limits) (*gitIndex, error) {
	g := r.readIndex()
	if !g.unreadable || len(g.entries) > 0 {
		return g, nil
	}
	head, err := r.head()
	if err != nil || head == nil {
		return g, err
	}
	reader := &treeReader{ctx: ctx, objects: r.storage, limits: limits}
	return g, reader.list(head.TreeHash, ".", func(e entry) { g.entries[e.path] = indexEntry(e) })
}

// rulesAbove reads the ignore rules that hold in a folder of a repository from
// outside it, and whether they ignore the folder itself.
func (r *repository) rulesAbove(p *place) (rules []gitignore.Pattern, ignored bool) {
	if b, err := readSmall(filepath.Join(r.commonDir, "info", "exclude")); err == nil {
		rules = gitRules(rules, b, nil)
	}
	if p.prefix == "." {
		return rules, false
	}
	parts := strings.Split(p.prefix, "/")
	for i := range parts {
		b, err := readSmall(filepath.Join(p.top, filepath.Join(parts[:i]...), ".gitignore"))
		if err == nil {
			rules = gitRules(rules, b, parts[:i])
		}
		if gitignore.NewMatcher(rules).Match(parts[:i+1], true) {
			return rules, true
		}
	}
	return rules, false
}

// gitRules appends the rules of a .gitignore file that lies in a folder.
func gitRules(rules []gitignore.Pattern, data []byte, folder []string) []gitignore.Pattern {
	rules = rules[:len(rules):len(rules)] // siblings must not share what is appended
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := strings.TrimSuffix(lines.Text(), "\r")
		if !strings.HasPrefix(line, "#") && strings.TrimSpace(line) != "" {
			rules = append(rules, gitignore.ParsePattern(line, folder))
		}
	}
	return rules
}

// walk lists one folder. ignored says that only tracked files count in it.
func (w *walker) walk(dir *os.Root, at string, rules []gitignore.Pattern, ignored bool, depth int) error {
	if depth > maxDepth {
		return fail(TooLarge, "folders nest deeper than %d levels, at %q…", maxDepth, at[:min(len(at), 200)])
	}
	if w.git != nil && !ignored {
		// A .gitignore that is a link, a folder or can't be read has no rules, as in Git.
		if b, err := readIn(dir, ".gitignore", maxRules); err == nil {
			rules = gitRules(rules, b, w.parts(at))
		}
	}
	match := gitignore.NewMatcher(rules)
	f, err := dir.Open(".")
	if err != nil {
		return coded("folder "+at, err)
	}
	defer f.Close()
	for {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		// In portions, so that a hostile folder does not fill the memory.
		entries, err := f.ReadDir(1024)
		for _, d := range entries {
			if d.Name() == ".git" {
				continue
			}
			if w.count++; w.count > w.limits.listed() {
				return w.limits.tooMany()
			}
			if err := w.visit(dir, d, join(at, d.Name()), rules, match, ignored, depth); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return coded("folder "+at, err)
		}
	}
}

func (w *walker) visit(dir *os.Root, d fs.DirEntry, p string, rules []gitignore.Pattern, match gitignore.Matcher, ignored bool, depth int) error {
	if len(p) > maxPath {
		return fail(TooLarge, "a path is longer than %d bytes, at %q…", maxPath, p[:200])
	}
	full := p
	if w.git != nil && w.prefix != "." {
		full = w.prefix + "/" + p
	}
	e := entry{path: p}
	var known bool
	if w.git != nil {
		if ie := w.git.entries[full]; ie != nil {
			known = true
			e.tracked, e.mode = true, ie.Mode
		}
		ignored = ignored || !known && match.Match(strings.Split(full, "/"), d.IsDir())
	}
	if d.IsDir() {
		if ignored && !w.trackedDirs[full] && !known {
			return nil
		}
		sub, err := dir.OpenRoot(d.Name())
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it vanished
		}
		if err != nil {
			return coded("folder "+p, err)
		}
		defer sub.Close()
		if _, err := sub.Lstat(".git"); err == nil && !w.trackedDirs[full] || e.mode == filemode.Submodule {
			return w.nested(e, full)
		}
		return w.walk(sub, p, rules, ignored, depth+1)
	}
	if ignored && !known {
		return nil
	}
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it vanished
	}
	if err != nil {
		return coded("file "+p, err)
	}
	was := e.mode
	e.stat = statOf(info)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		e.mode = filemode.Symlink
	case !info.Mode().IsRegular():
		e.mode = filemode.Empty
	case !w.modes && (was == filemode.Regular || was == filemode.Executable):
		e.mode = was
	case w.modes && info.Mode()&0o100 != 0:
		e.mode = filemode.Executable
	default:
		e.mode = filemode.Regular
	}
	w.list.entries = append(w.list.entries, e)
	return nil
}

// nested lists the folder of another repository, as one entry.
func (w *walker) nested(e entry, full string) error {
	if e.mode == filemode.Submodule {
		e.hash = w.git.entries[full].Hash
	}
	e.mode = filemode.Submodule
	w.list.entries = append(w.list.entries, e)
	return nil
}

func (w *walker) parts(at string) []string {
	full := CleanPath(w.prefix + "/" + at)
	if full == "." {
		return nil
	}
	return strings.Split(full, "/")
}

// sparse counts tracked files that a sparse checkout leaves off the disk.
func (w *walker) sparse() int {
	n := 0
	if w.git != nil {
		for name, e := range w.git.entries {
			if _, in := under(name, w.prefix); in && e.SkipWorktree {
				n++
			}
		}
	}
	return n
}

// openRegular opens a regular file below a folder and nothing else: the walk saw
// one, but the disk may have changed since.
func openRegular(root *os.Root, name string) (*os.File, os.FileInfo, error) {
	f, err := root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fail(Unreadable, "%s is no regular file any more", name)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// readIn reads a small regular file, no link, directly in a folder.
func readIn(dir *os.Root, name string, bound int64) ([]byte, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > bound {
		return nil, fail(TooLarge, "%s is no file or larger than %d bytes", name, bound)
	}
	f, _, err := openRegular(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, bound))
}

// known is what the store read of a file of a working tree.
type known struct {
	stat stat
	hash plumbing.Hash
	// young: it may have been written again since, unseen.
	young bool
}
