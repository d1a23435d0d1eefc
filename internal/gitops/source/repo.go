package source

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

const dotGit = ".git"

// place is where a path that a user named lies.
type place struct {
	// dir is the folder itself, absolute.
	dir string
	// top is the root of the repository, or "" for a plain folder.
	top string
	// prefix is dir below top; "." for the root.
	prefix string
	bare   bool
	notes  []Note
}

// locate finds the repository of a folder: the folder itself, or one around it.
func locate(repoPath string) (*place, error) {
	if repoPath == "" || strings.ContainsRune(repoPath, 0) {
		return nil, fail(InvalidArgument, "the path of the repository is %q; it must name a folder", repoPath)
	}
	dir, err := filepath.Abs(repoPath)
	if err != nil {
		return nil, fail(InvalidArgument, "the path %q of the repository: %w", repoPath, plain(err))
	}
	if dir, err = filepath.EvalSymlinks(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fail(PathNotFound, "there is no folder %q", repoPath)
	} else if err != nil {
		return nil, fail(Unreadable, "the folder %q: %w", repoPath, plain(err))
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, fail(Unreadable, "the folder %q: %w", repoPath, plain(err))
	} else if !info.IsDir() {
		return nil, fail(InvalidArgument, "%q is a file; name the folder of the repository", repoPath)
	}
	if isGitDir(dir) {
		return &place{dir: dir, top: dir, prefix: ".", bare: true}, nil
	}
	for top := dir; ; top = filepath.Dir(top) {
		info, err := os.Lstat(filepath.Join(top, dotGit))
		if err == nil && (info.Mode().IsRegular() || isGitDir(filepath.Join(top, dotGit))) {
			rel, err := filepath.Rel(top, dir)
			if err != nil {
				return nil, fail(Unreadable, "the folder %q: %w", repoPath, plain(err))
			}
			p := &place{dir: dir, top: top, prefix: filepath.ToSlash(rel)}
			if p.prefix != "." {
				p.notes = append(p.notes, note("this is the folder %s of a larger Git repository: only it is read, and paths are relative to it", p.prefix))
			}
			return p, nil
		}
		if top == filepath.Dir(top) {
			return &place{dir: dir}, nil
		}
	}
}

// isGitDir tells whether a folder is a Git directory, as Git itself decides.
func isGitDir(dir string) bool {
	for _, name := range []string{"objects", "refs"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.IsDir() {
			return false
		}
	}
	_, err := os.Lstat(filepath.Join(dir, "HEAD"))
	return err == nil
}

// errNotARepository names the path as the user wrote it.
func errNotARepository(repoPath string) error {
	return fail(NotARepository, "%q is not a Git repository, nor does it lie in one: without Git only the files as they are on disk can be read (no ref, no history)", repoPath)
}

// repository is an open Git repository. go-git's storage is not safe for
// concurrent use, so mu is held around every use.
type repository struct {
	mu      sync.Mutex
	config  *config.Config
	storage *filesystem.Storage
	// gitDir is this working tree's own Git directory, commonDir the shared one.
	gitDir, commonDir string
	state             string
	shallow           map[plumbing.Hash]bool
	index             gitIndex
}

// open opens a repository, or gives the one that is open already when its packs
// and configuration are as they were. The caller must unlock it.
func (s *Store) open(p *place, repoPath string) (*repository, error) {
	if p.top == "" {
		return nil, errNotARepository(repoPath)
	}
	s.mu.Lock()
	r, known := s.repos.get(p.top)
	if !known {
		r = &repository{}
		s.repos.put(p.top, r)
	}
	s.mu.Unlock()
	r.mu.Lock()
	if r.storage != nil && r.state == r.onDisk() {
		return r, nil
	}
	if err := r.load(p, repoPath); err != nil {
		r.storage = nil
		r.mu.Unlock()
		return nil, err
	}
	return r, nil
}

// load opens the storage. git.PlainOpen is not used: it refuses repositories with
// sparse checkouts and partial clones for the extensions in their configuration.
func (r *repository) load(p *place, repoPath string) error {
	gitDir, err := gitDirOf(p)
	if err != nil || !isFile(filepath.Join(gitDir, "HEAD")) {
		return errNotARepository(repoPath)
	}
	r.gitDir, r.commonDir = gitDir, gitDir
	var common billy.Filesystem
	if b, err := readSmall(filepath.Join(gitDir, "commondir")); err == nil {
		if r.commonDir = strings.TrimSpace(string(b)); !filepath.IsAbs(r.commonDir) {
			r.commonDir = filepath.Join(gitDir, r.commonDir)
		}
		common = osfs.New(r.commonDir)
	}
	storage := filesystem.NewStorage(dotgit.NewRepositoryFilesystem(osfs.New(gitDir), common), cache.NewObjectLRUDefault())
	if r.config, err = storage.Config(); err != nil {
		return fail(Unreadable, "the configuration of the Git repository %q: %w", repoPath, plain(err))
	}
	for _, o := range r.config.Raw.Section("extensions").Options {
		if !slices.Contains(understood, strings.ToLower(o.Key)) && !(strings.EqualFold(o.Key, "objectformat") && strings.EqualFold(o.Value, "sha1")) {
			return fail(Unreadable, "the Git repository %q uses the extension %q, which can't be read here", repoPath, o.Key)
		}
	}
	r.storage, r.index = storage, gitIndex{}
	shallow, err := storage.Shallow()
	if err != nil {
		return fail(Unreadable, "the file shallow of the Git repository %q: %w", repoPath, plain(err))
	}
	r.shallow = map[plumbing.Hash]bool{}
	for _, h := range shallow {
		r.shallow[h] = true
	}
	r.state = r.onDisk()
	return nil
}

// understood are the extensions of Git's repository format that change nothing
// for a reader of objects and refs.
var understood = []string{"noop", "noop-v1", "partialclone", "preciousobjects", "relativeworktrees", "worktreeconfig"}

// gitDirOf is the Git directory of a working tree, or of a bare repository.
func gitDirOf(p *place) (string, error) {
	if p.bare {
		return p.top, nil
	}
	dot := filepath.Join(p.top, dotGit)
	if !isFile(dot) {
		return dot, nil
	}
	b, err := readSmall(dot)
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	dir, ok := strings.CutPrefix(line, "gitdir:")
	if !ok {
		return "", fail(Unreadable, "the file .git names no folder")
	}
	if dir = strings.TrimSpace(dir); !filepath.IsAbs(dir) {
		dir = filepath.Join(p.top, dir)
	}
	return dir, nil
}

func isFile(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.Mode().IsRegular()
}

// onDisk is the state of what go-git reads once and keeps.
func (r *repository) onDisk() string {
	var parts []string
	for _, f := range []string{filepath.Join(r.commonDir, "objects", "pack"), filepath.Join(r.commonDir, "objects", "info", "alternates"),
		filepath.Join(r.commonDir, "config"), filepath.Join(r.commonDir, "shallow"), r.gitDir} {
		info, err := os.Stat(f)
		if err != nil {
			// Absent is a state, too.
			parts = append(parts, "")
			continue
		}
		inode, changed := fileID(info)
		if f == r.gitDir {
			// Only its identity: every commit changes its times.
			changed = 0
			parts = append(parts, fmt.Sprint(inode))
			continue
		}
		parts = append(parts, fmt.Sprint(info.Size(), info.ModTime().UnixNano(), inode, changed))
	}
	return strings.Join(parts, "|")
}

// linkedNote says that this is a linked working tree, naming the main one.
func (r *repository) linkedNote() []Note {
	if r.commonDir == r.gitDir {
		return nil
	}
	main := filepath.Clean(r.commonDir)
	if filepath.Base(main) == dotGit {
		main = filepath.Dir(main)
	}
	return []Note{note("this is a linked worktree of %s", filepath.Base(main))}
}

// Remotes gives the URLs of all remotes, sorted, without credentials.
// It fails with NotARepository on a plain folder.
func (s *Store) Remotes(repoPath string) ([]string, error) {
	p, err := locate(repoPath)
	if err != nil {
		return nil, err
	}
	r, err := s.open(p, repoPath)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	var out []string
	for _, remote := range r.config.Remotes {
		for _, u := range remote.URLs {
			out = append(out, withoutCredentials(u))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// withoutCredentials strips user, password, query and fragment from a URL; the
// user of an SSH URL stays, since it is no secret and part of the address.
func withoutCredentials(raw string) string {
	scheme, rest, isURL := strings.Cut(raw, "://")
	if !isURL {
		// user@host:path, or a folder.
		if user, host, ok := strings.Cut(raw, "@"); ok && strings.Contains(user, ":") && !strings.Contains(user, "/") {
			return host
		}
		return raw
	}
	u, err := url.Parse(raw)
	if err != nil {
		// What can't be parsed loses everything that might be a credential.
		authority, path, _ := strings.Cut(rest, "/")
		path, _, _ = strings.Cut(path, "?")
		return scheme + "://" + authority[strings.LastIndex(authority, "@")+1:] + "/" + path
	}
	if u.User != nil {
		if name := u.User.Username(); name != "" && strings.Contains(u.Scheme, "ssh") {
			u.User = url.User(name)
		} else {
			u.User = nil
		}
	}
	u.RawQuery, u.Fragment, u.ForceQuery, u.RawFragment = "", "", false, ""
	return u.String()
}

// readSmall reads one of Git's own small files.
func readSmall(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSmallFile {
		return nil, fail(TooLarge, "%s is no file, or larger than %d bytes", filepath.Base(file), maxSmallFile)
	}
	return os.ReadFile(file)
}
