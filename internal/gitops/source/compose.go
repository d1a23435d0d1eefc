package source

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/go-git/go-git/v5/plumbing"
)

// Part is one copy operation of an ArtifactGenerator.
type Part struct {
	From *Artifact
	// Source names what is copied: a file or folder (which is copied as itself,
	// into To), or a pattern. "dir/**" copies what is in a folder, without its
	// name; any other pattern keeps the whole path. In a pattern ** matches one
	// level, as * does, and folders that match are copied whole.
	Source string
	// To is the destination: "" or "." is the root, "dir/" is in a folder.
	To string
	// Exclude are patterns with ** and {a,b}, over the path in From, the path
	// below the fixed part of Source, and for patterns without a slash the name.
	Exclude []string
}

// composer collects the files of a composed artifact.
type composer struct {
	store   *Store
	hashes  map[string]plumbing.Hash
	origin  map[string]string
	dirs    map[string]bool
	parents []*Artifact
	from    *Artifact
	exclude []*glob
	raw     []string
	base    string
	// count bounds what may be copied over and over.
	count int
}

// Compose makes an artifact as Flux's ArtifactGenerator does: copies in order,
// later ones over earlier ones, then the default ignore rules. It lives as long
// as the artifacts that it was made from.
//
// It fails with InvalidArgument (a pattern, a destination), PathNotFound (nothing
// to copy) or TooLarge.
func (s *Store) Compose(parts []Part) (*Artifact, error) {
	c := &composer{store: s, hashes: map[string]plumbing.Hash{}, origin: map[string]string{}, dirs: map[string]bool{}}
	for _, p := range parts {
		if err := c.part(p); err != nil {
			return nil, err
		}
	}
	plan, err := c.plan()
	if err != nil {
		return nil, err
	}
	s.build.Lock()
	defer s.build.Unlock()
	for _, f := range plan.files {
		// A parent that was released may have been removed.
		if s.blobs[plan.hashes[f]] == nil {
			return nil, fail(InvalidArgument, "an artifact was composed from one that was released")
		}
	}
	a, err := s.make(plan)
	if err != nil {
		return nil, err
	}
	a.parents = slices.DeleteFunc(a.parents, func(p *Artifact) bool { return !p.inUse() })
	for _, p := range c.parents {
		if p != a && !slices.Contains(a.parents, p) {
			a.parents = append(a.parents, p)
		}
	}
	s.evict()
	return a, nil
}

func (c *composer) part(p Part) error {
	if p.From == nil || p.From.store != c.store {
		return fail(InvalidArgument, "a copy of %q has no source artifact of this store", p.Source)
	}
	to := CleanPath(p.To)
	if strings.HasPrefix(p.To, "/") || slices.Contains(strings.Split(p.To, "/"), "..") {
		return fail(InvalidArgument, "the destination %q of a copy leaves the artifact", p.To)
	}
	c.from, c.exclude, c.raw = p.From, nil, p.Exclude
	c.parents = append(c.parents, p.From.root())
	alternatives := 0
	for _, x := range p.Exclude {
		g, err := newGlob(x)
		if err != nil {
			return err
		}
		c.exclude = append(c.exclude, g)
		alternatives += len(g.alternatives)
	}
	if alternatives*len(p.From.Files()) > maxMatches/100 {
		return fail(TooLarge, "%d patterns that exclude from %d files are too many comparisons: write fewer", alternatives, len(p.From.Files()))
	}
	if slices.Contains(strings.Split(p.Source, "/"), "..") || strings.HasPrefix(p.Source, "/") {
		return fail(InvalidArgument, "the source %q of a copy leaves its artifact", p.Source)
	}
	if !strings.ContainsAny(p.Source, "*?[]") {
		return c.single(CleanPath(p.Source), to, strings.HasSuffix(p.To, "/"))
	}
	return c.pattern(p.Source, to)
}

// single copies a file or a folder that is named outright.
func (c *composer) single(src, to string, into bool) error {
	if c.from.isDir(src) {
		c.base = src
		return c.folder(src, path.Join(to, path.Base(src)))
	}
	if _, ok := c.from.Hash(src); !ok {
		return fail(PathNotFound, "there is no file or folder %s to copy", src)
	}
	c.base = "."
	if c.excluded(src) {
		return nil
	}
	if into || to == "." || c.dirs[to] {
		to = path.Join(to, path.Base(src))
	}
	return c.file(src, to)
}

// pattern copies what matches, level by level.
func (c *composer) pattern(pattern, to string) error {
	parts := strings.Split(pattern, "/")
	var fixed []string
	for _, p := range parts {
		if strings.ContainsAny(p, "*?[]") {
			break
		}
		fixed = append(fixed, p)
	}
	if c.base = path.Join(fixed...); c.base == "" {
		c.base = "."
	}
	for _, p := range parts {
		if _, err := path.Match(p, ""); err != nil {
			return fail(InvalidArgument, "the source %q of a copy is a malformed pattern", pattern)
		}
	}
	seen := map[string]bool{}
	found, copied := false, false
	visit := func(p string) error {
		if seen[p] {
			return nil
		}
		seen[p] = true
		if ok, err := path.Match(pattern, p); err != nil || !ok {
			return nil // a malformed pattern was refused above
		}
		found = true
		if c.excluded(p) {
			return nil
		}
		copied = true
		dest := path.Join(to, p)
		if dir, ok := strings.CutSuffix(pattern, "/**"); ok {
			if rest, ok := strings.CutPrefix(p, dir+"/"); ok {
				dest = path.Join(to, rest)
			}
		}
		if c.from.isDir(p) {
			return c.folder(p, dest)
		}
		return c.file(p, dest)
	}
	for _, f := range c.from.Files() {
		// The path of a match has as many parts as the pattern.
		names := strings.SplitN(f, "/", len(parts)+1)
		if len(names) < len(parts) {
			continue
		}
		if err := visit(strings.Join(names[:len(parts)], "/")); err != nil {
			return err
		}
	}
	if !found {
		return fail(PathNotFound, "nothing matches %q, which is to be copied", pattern)
	}
	if !copied {
		return fail(PathNotFound, "everything that matches %q is excluded", pattern)
	}
	return nil
}

// folder copies a folder's files.
func (c *composer) folder(src, to string) error {
	if err := c.mkdir(to); err != nil {
		return err
	}
	for _, f := range c.from.Files() {
		rest, in := under(f, src)
		if !in || c.excludedBelow(f, src) {
			continue
		}
		if err := c.file(f, path.Join(to, rest)); err != nil {
			return err
		}
	}
	return nil
}

// excludedBelow tells whether a file, or a folder between it and src, is excluded.
func (c *composer) excludedBelow(f, src string) bool {
	if len(c.exclude) == 0 {
		return false
	}
	for p := f; p != src && p != "."; p = path.Dir(p) {
		if c.excluded(p) {
			return true
		}
	}
	return false
}

func (c *composer) excluded(p string) bool {
	below, ok := under(p, c.base)
	for i, g := range c.exclude {
		if g.match(p) || !strings.Contains(c.raw[i], "/") && g.match(path.Base(p)) || ok && below != "." && g.match(below) {
			return true
		}
	}
	return false
}

// mkdir adds a folder and those around it; a file in its way is an error, as it
// is for Flux.
func (c *composer) mkdir(dir string) error {
	for ; dir != "." && !c.dirs[dir]; dir = path.Dir(dir) {
		if _, isFile := c.hashes[dir]; isFile {
			return fail(InvalidArgument, "a copy needs a folder %s, where an earlier copy put a file", dir)
		}
		c.dirs[dir] = true
	}
	return nil
}

func (c *composer) file(src, to string) error {
	if c.count++; c.count > c.store.limits.listed() {
		return c.store.limits.tooMany()
	}
	if err := c.mkdir(path.Dir(to)); err != nil {
		return err
	}
	if c.dirs[to] || to == "." {
		return fail(InvalidArgument, "a copy would put the file %s where there is a folder", to)
	}
	c.hashes[to] = c.from.root().hashes[path.Join(c.from.at, src)]
	c.origin[to] = c.from.RepoPath(src)
	return nil
}

// plan applies the default ignore rules and limits.
func (c *composer) plan() (*plan, error) {
	rs := rules{}.add(sourceignore.VCSPatterns(nil), fromVCS).add(sourceignore.DefaultPatterns(nil), fromDefaults)
	p := &plan{hashes: map[string]plumbing.Hash{}, dropped: map[string]string{}, origin: map[string]string{}}
	for f := range c.hashes {
		p.files = append(p.files, f)
	}
	slices.Sort(p.files)
	parts := []string{"composed"}
	keptFrom := map[string]bool{}
	dropped := map[string]string{}
	p.files = slices.DeleteFunc(p.files, func(f string) bool {
		if why, drop := rs.match(f, false); drop {
			dropped[c.origin[f]] = why
			return true
		}
		h := c.hashes[f]
		p.hashes[f], p.origin[f] = h, c.origin[f]
		keptFrom[c.origin[f]] = true
		parts = append(parts, f, string(h[:]), c.origin[f])
		return false
	})
	for f, why := range dropped {
		// What one copy dropped another may have kept, under another name.
		if !keptFrom[f] {
			p.dropped[f] = why
		}
	}
	for _, f := range slices.Sorted(maps.Keys(p.dropped)) {
		parts = append(parts, "dropped", f, p.dropped[f])
	}
	if len(p.files) > c.store.limits.Files {
		return nil, fail(TooLarge, "a composed artifact has %d files, more than the limit of %d", len(p.files), c.store.limits.Files)
	}
	for d := range c.dirs {
		if _, drop := rs.match(d, true); !drop {
			p.dirs = append(p.dirs, d)
		}
	}
	slices.Sort(p.dirs)
	for _, d := range p.dirs {
		parts = append(parts, "dir", d)
	}
	p.key = digest(parts...)
	return p, nil
}
