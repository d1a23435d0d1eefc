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
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/gitignore"
	"golang.org/x/sync/errgroup"
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
	// cores has an element for each folder that is walked beside another.
	cores chan struct{}
	count atomic.Int64

	mu   sync.Mutex
	list listing
}

// listWorktree lists a folder on disk. r is nil for a plain folder; else the
// caller holds its lock.
func (s *Store) listWorktree(ctx context.Context, p *place, r *repository) (*listing, error) {
	w := &walker{ctx: ctx, limits: s.limits, prefix: p.prefix, modes: true, trackedDirs: map[string]bool{}, cores: make(chan struct{}, runtime.GOMAXPROCS(0))}
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
	if err := w.walk(folder{parent: root, name: ".", at: ".", rules: rules, ignored: ignored}); err != nil {
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

// folder is a folder to walk.
type folder struct {
	parent *os.Root
	name   string
	at     string
	depth  int
	// tracked: the index has something of this path.
	tracked bool
	// rules are those of the folders above; ignored says that only tracked files
	// count.
	rules   []gitignore.Pattern
	ignored bool
}

// walk lists a folder and what is below it.
func (w *walker) walk(d folder) error {
	if d.depth > maxDepth {
		return fail(TooLarge, "folders nest deeper than %d levels, at %q…", maxDepth, d.at[:min(len(d.at), 200)])
	}
	entries, err := w.read(d)
	if errors.Is(err, fs.ErrNotExist) && d.depth > 0 {
		return nil // it vanished
	}
	if err != nil {
		return err
	}
	named := func(name string) func(fs.DirEntry) bool {
		return func(e fs.DirEntry) bool { return e.Name() == name }
	}
	if d.depth > 0 && slices.ContainsFunc(entries, named(".git")) && !w.trackedDirs[w.full(d.at)] {
		w.add(entry{path: d.at, mode: filemode.Submodule, tracked: d.tracked})
		return nil
	}
	var root *os.Root
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() || e.Name() == ".gitignore" }) {
		if root, err = d.parent.OpenRoot(d.name); errors.Is(err, fs.ErrNotExist) && d.depth > 0 {
			return nil // as above
		} else if err != nil {
			return coded("folder "+d.at, err)
		}
		defer root.Close()
	}
	rules := d.rules
	if w.git != nil && !d.ignored && slices.ContainsFunc(entries, named(".gitignore")) {
		// One that is a link, a folder or can't be read has no rules, as in Git.
		if b, err := readIn(root, ".gitignore", maxRules); err == nil {
			rules = gitRules(rules, b, w.parts(d.at))
		}
	}
	match := gitignore.NewMatcher(rules)
	var files []entry
	var below []folder
	for _, e := range entries {
		if e.Name() == ".git" {
			continue
		}
		p := join(d.at, e.Name())
		if len(p) > maxPath {
			return fail(TooLarge, "a path is longer than %d bytes, at %q…", maxPath, p[:200])
		}
		full := w.full(p)
		file := entry{path: p}
		if w.git != nil {
			if ie := w.git.entries[full]; ie != nil {
				file.tracked, file.mode, file.hash = true, ie.Mode, ie.Hash
			}
		}
		ignored := d.ignored || !file.tracked && w.git != nil && match.Match(strings.Split(full, "/"), e.IsDir())
		switch {
		case e.IsDir() && file.mode == filemode.Submodule:
			files = append(files, entry{path: p, mode: file.mode, hash: file.hash, tracked: true})
		case e.IsDir() && (!ignored || w.trackedDirs[full] || file.tracked):
			below = append(below, folder{root, e.Name(), p, d.depth + 1, file.tracked, rules, ignored})
		case !e.IsDir() && (!ignored || file.tracked):
			if err := w.stat(e, &file); errors.Is(err, fs.ErrNotExist) {
				continue // it vanished
			} else if err != nil {
				return coded("file "+p, err)
			}
			files = append(files, file)
		}
	}
	w.add(files...)
	return w.walkAll(below)
}

// walkAll walks folders on as many cores as there are: nearly all of a walk is
// spent in the system.
func (w *walker) walkAll(folders []folder) error {
	var group errgroup.Group
	for _, d := range folders {
		select {
		case w.cores <- struct{}{}:
			group.Go(func() error {
				defer func() { <-w.cores }()
				return w.walk(d)
			})
			continue
		default:
		}
		if err := w.walk(d); err != nil {
			group.Go(func() error { return err })
			break
		}
	}
	return group.Wait()
}

// read lists the entries of a folder.
func (w *walker) read(d folder) ([]fs.DirEntry, error) {
	// What was a folder a moment ago may be a pipe now.
	f, err := d.parent.OpenFile(d.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, coded("folder "+d.at, err)
	}
	defer f.Close()
	var all []fs.DirEntry
	for {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		// In portions, so that a hostile folder does not fill the memory.
		entries, err := f.ReadDir(1024)
		if w.count.Add(int64(len(entries))) > int64(w.limits.listed()) {
			return nil, w.limits.tooMany()
		}
		all = append(all, entries...)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, coded("folder "+d.at, err)
		}
	}
}

// add keeps what a folder has.
func (w *walker) add(entries ...entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list.entries = append(w.list.entries, entries...)
}

// full is a path from the root of the repository.
func (w *walker) full(p string) string {
	if w.git != nil && w.prefix != "." {
		return w.prefix + "/" + p
	}
	return p
}

// stat says what is on disk.
func (w *walker) stat(d fs.DirEntry, e *entry) error {
	info, err := d.Info()
	if err != nil {
		return err
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
	e.hash = plumbing.ZeroHash
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
