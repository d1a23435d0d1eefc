package render

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/locate"
)

// Bounds of one build. A repository of people's making stays far below.
const (
	maxFile  = 32 << 20  // bytes of a file
	maxBuild = 256 << 20 // bytes read, each read counted
	maxReads = 200_000   // files read, each read counted
)

// errReadOnly answers every attempt to write.
var errReadOnly = errors.New("the artifact is read-only")

// guard is the file system of one build: it shows the artifact and the edited
// entry over it, refuses everything outside, takes remote entries out of the
// kustomization files that are read, and keeps a record. One build uses it from
// one goroutine.
type guard struct {
	root        string
	overlay     string
	overlayData []byte

	reads   map[Read]bool
	order   []string          // files in the order in which they were read first
	files   map[string][]byte // their content on disk
	edges   map[string][]string
	entries map[[2]string]string // path, kustomization file → entry as written
	stubs   []Stub
	edited  map[string][]byte
	parsed  map[string]*locate.File

	openAPI bool // a kustomization has an openapi field
	alone   bool // and this build has the schema for itself
	// orphans are patches to leave out, see leaveOut.
	orphans map[orphan]bool
	// building: krusty reads, not the look before it.
	building bool

	count, bytes int
	refusal      *Error
}

func newGuard(root string) *guard {
	// The root may itself lie behind a link, as temporary folders do on some
	// systems; nothing in it does.
	if p, err := filepath.EvalSymlinks(root); err == nil {
		root = p
	}
	return &guard{root: filepath.Clean(root), reads: map[Read]bool{}, files: map[string][]byte{}, edges: map[string][]string{},
		entries: map[[2]string]string{}, edited: map[string][]byte{}}
}

var _ filesys.FileSystem = (*guard)(nil)

func (g *guard) record(rel string, kind ReadKind) { g.reads[Read{rel, kind}] = true }

func (g *guard) sortedReads() []Read {
	out := make([]Read, 0, len(g.reads))
	for r := range g.reads {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Read) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Kind, b.Kind)) })
	return out
}

// edge notes that a kustomization file refers to a path.
func (g *guard) edge(to, from, entry string) {
	rel, ok := g.relative(to)
	if !ok {
		return
	}
	if !slices.Contains(g.edges[rel], from) {
		g.edges[rel] = append(g.edges[rel], from)
	}
	g.entries[[2]string{rel, from}] = entry
}

// refuse ends the build with a coded error, the first one that was met.
func (g *guard) refuse(e *Error) error {
	if g.refusal == nil {
		g.refusal = e
	}
	return e
}

func (g *guard) outside(p string) error {
	return g.refuse(&Error{Code: RenderFailed, Message: fmt.Sprintf("%q is outside the artifact", filepath.Base(p))})
}

// Exists tells whether a path is there.
func (g *guard) Exists(p string) bool {
	if filepath.Clean(p) == g.overlay && g.overlay != "" {
		return true
	}
	_, err := g.stat(p)
	return err == nil
}

// IsDir tells whether a path is a folder.
func (g *guard) IsDir(p string) bool { return g.isDir(p) }

func (g *guard) isDir(p string) bool {
	info, err := g.stat(p)
	return err == nil && info.IsDir()
}

// stat looks at a path, on record. Links don't belong in an artifact and are not
// followed.
func (g *guard) stat(p string) (os.FileInfo, error) {
	rel, ok := g.relative(p)
	if !ok {
		return nil, fs.ErrNotExist
	}
	info, err := os.Lstat(filepath.Join(g.root, filepath.FromSlash(rel)))
	switch {
	case err != nil:
		g.record(rel, Missing)
		return nil, err
	case info.IsDir():
		g.record(rel, Folder)
	case !info.Mode().IsRegular():
		return nil, fs.ErrNotExist
	}
	return info, nil
}

// CleanedAbs splits a path into folder and file.
func (g *guard) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	abs := p
	if !filepath.IsAbs(abs) {
		return "", "", fmt.Errorf("%q is no absolute path", p)
	}
	abs = filepath.Clean(abs)
	if _, ok := g.relative(abs); !ok {
		return "", "", g.outside(p)
	}
	if abs == g.overlay {
		return filesys.ConfirmedDir(filepath.Dir(abs)), filepath.Base(abs), nil
	}
	info, err := g.stat(abs)
	if err != nil {
		return "", "", fmt.Errorf("%q does not exist: %w", abs, err)
	}
	if info.IsDir() {
		return filesys.ConfirmedDir(abs), "", nil
	}
	return filesys.ConfirmedDir(filepath.Dir(abs)), filepath.Base(abs), nil
}

// ReadFile reads a file as the build is to see it.
func (g *guard) ReadFile(p string) ([]byte, error) {
	rel, ok := g.relative(p)
	if !ok {
		return nil, g.outside(p)
	}
	abs := filepath.Join(g.root, filepath.FromSlash(rel))
	overlaid := abs == g.overlay && g.overlay != ""
	if data, ok := g.edited[rel]; ok && !overlaid {
		return data, g.account(len(data))
	}
	data, err := g.load(rel, abs, overlaid)
	if err != nil {
		return nil, err
	}
	if slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(rel)) {
		return g.kustomization(rel, data)
	}
	if err := g.builtin(rel, data); err != nil {
		return nil, err
	}
	return data, nil
}

// load reads a file once and checks that it can be handed to a parser.
func (g *guard) load(rel, abs string, overlaid bool) ([]byte, error) {
	if overlaid {
		return g.overlayData, g.account(len(g.overlayData))
	}
	if data, ok := g.files[rel]; ok {
		return data, g.account(len(data))
	}
	info, err := g.stat(abs)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", abs, fs.ErrNotExist)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("read %s: is a directory", abs)
	}
	if info.Size() > maxFile {
		return nil, g.refuse(&Error{Code: TooLarge, File: rel, Message: fmt.Sprintf("it is larger than %d bytes", maxFile)})
	}
	data, err := os.ReadFile(abs)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", abs, err)
	}
	g.record(rel, File)
	g.order = append(g.order, rel)
	g.files[rel] = data
	if e := checkYAML(rel, data); e != nil {
		return nil, g.refuse(e)
	}
	return data, g.account(len(data))
}

// account counts reads and bytes: bases can name each other in ways that grow
// without end.
func (g *guard) account(bytes int) error {
	g.count++
	g.bytes += bytes
	if g.count > maxReads || g.bytes > maxBuild {
		return g.refuse(&Error{Code: TooLarge, Message: fmt.Sprintf("the build reads more than %d files or %d bytes", maxReads, maxBuild)})
	}
	return nil
}

// Open opens a file for reading.
func (g *guard) Open(p string) (filesys.File, error) {
	data, err := g.ReadFile(p)
	if err != nil {
		return nil, err
	}
	f := filesys.MakeFsInMemory()
	if err := f.WriteFile("file", data); err != nil {
		return nil, err
	}
	return f.Open("file")
}

// ReadDir lists a folder.
func (g *guard) ReadDir(p string) ([]string, error) {
	rel, ok := g.relative(p)
	if !ok {
		return nil, g.outside(p)
	}
	entries, err := os.ReadDir(filepath.Join(g.root, filepath.FromSlash(rel)))
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", p, err)
	}
	g.record(rel, Dir)
	if err := g.account(0); err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.IsDir() || e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Glob finds the files of a pattern.
func (g *guard) Glob(pattern string) ([]string, error) {
	if _, ok := g.relative(pattern); !ok {
		return nil, g.outside(pattern)
	}
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if rel, ok := g.relative(filepath.Dir(pattern)); ok && !strings.ContainsAny(rel, "*?[") {
		g.record(rel, Dir)
	}
	return slices.DeleteFunc(matches, func(m string) bool { return !g.Exists(m) || g.isDir(m) }), nil
}

// Walk visits a folder and everything below it.
func (g *guard) Walk(p string, f filepath.WalkFunc) error {
	if _, ok := g.relative(p); !ok {
		return g.outside(p)
	}
	return filepath.Walk(p, func(p string, info os.FileInfo, err error) error {
		if rel, ok := g.relative(p); ok && err == nil && info.IsDir() {
			g.record(rel, Dir)
		}
		return f(p, info, err)
	})
}

// Create refuses.
func (g *guard) Create(string) (filesys.File, error) { return nil, errReadOnly }

// Mkdir refuses.
func (g *guard) Mkdir(string) error { return errReadOnly }

// MkdirAll refuses.
func (g *guard) MkdirAll(string) error { return errReadOnly }

// RemoveAll refuses.
func (g *guard) RemoveAll(string) error { return errReadOnly }

// WriteFile refuses.
func (g *guard) WriteFile(string, []byte) error { return errReadOnly }
