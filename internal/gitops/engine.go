package gitops

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// Options are what an Engine is made of; zero values are the defaults.
type Options struct {
	// Builder renders; nil renders in this process.
	Builder render.Builder
	// Limits bound a tree.
	Limits source.Limits
	// Workers is how many Kustomizations are rendered at once, 2 by default.
	Workers int
	// CacheBytes bounds the memory of the cache, about 256 MiB by default.
	CacheBytes int
	// SchemaDirs are folders with further JSON schemas, advisory.
	SchemaDirs []string
}

// Engine answers questions about repositories. It is safe for concurrent use.
type Engine struct {
	store   *source.Store
	builder render.Builder
	cache   *cache
	workers int
	options Options

	schemas schemaSets
}

// New makes an Engine; Close removes its private folder.
func New(o Options) (*Engine, error) {
	store, err := source.NewStore(o.Limits)
	if err != nil {
		return nil, fmt.Errorf("a private folder for trees: %w", err)
	}
	if o.Builder == nil {
		o.Builder = render.NewLocal()
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.CacheBytes <= 0 {
		o.CacheBytes = 256 << 20
	}
	return &Engine{store: store, builder: o.Builder, cache: newCache(o.CacheBytes), workers: o.Workers, options: o}, nil
}

// Close removes the private folder.
func (e *Engine) Close() error { return e.store.Close() }

// Repo is a repository and what its user says of it.
type Repo struct {
	// Path is a folder: a Git repository, a working tree or plain files.
	Path string
	// Ref is a branch, tag or commit; "" is the working tree as it is.
	Ref string
	// Config lies over the repository's own file.
	Config Config
}

// artifactView is an artifact with an index of its folders.
type artifactView struct {
	art  *source.Artifact
	once sync.Once
	list []string
	dirs map[string]string // folder → digest of its entries' names

	// untold are builds whose origins could not be told in time: they are not asked
	// for again while this question lasts.
	mu     sync.Mutex
	untold map[*provenance]bool
}

func (a *artifactView) files() []string { a.index(); return a.list }

func (a *artifactView) hash(p string) (string, bool) { return a.art.Hash(p) }

// index digests each folder's list of entries, so that a cached render can tell
// that a folder it walked is as it was.
func (a *artifactView) index() {
	a.once.Do(func() {
		a.list = a.art.Files()
		entries := map[string]map[string]bool{".": {}}
		for _, f := range a.list {
			for child := f; child != "."; {
				dir := path.Dir(child)
				if entries[dir] == nil {
					entries[dir] = map[string]bool{}
				} else if entries[dir][path.Base(child)] {
					break
				}
				entries[dir][path.Base(child)] = true
				child = dir
			}
		}
		a.dirs = make(map[string]string, len(entries))
		for dir, names := range entries {
			all := make([]string, 0, len(names))
			for n := range names {
				all = append(all, n)
			}
			sort.Strings(all)
			a.dirs[dir] = digest(all...)
		}
	})
}

func (a *artifactView) isDir(p string) bool { a.index(); _, ok := a.dirs[p]; return ok }

// state digests what a read of a render saw.
func (a *artifactView) state(r render.Read) string {
	a.index()
	if h, ok := a.art.Hash(r.Path); ok {
		return h
	}
	d, ok := a.dirs[r.Path]
	switch {
	case !ok:
		return "missing"
	case r.Kind == render.Dir:
		return "dir " + d
	}
	return "folder"
}

// digest is a hash over strings, unambiguous between them.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// built is one build and the state of everything that decided it.
type built struct {
	result render.Result
	states []string
	size   int
	origin *provenance
	// id is unique to one build in one state of its files.
	id string
}

// unbuilt are the fields of a Kustomization that don't decide what is built.
// What is missing here only costs a build more. Of them postBuild, by way of the
// variables, and commonMetadata decide what is applied: see appliedKey.
var unbuilt = []string{"interval", "retryInterval", "timeout", "postBuild", "dependsOn", "healthChecks", "healthCheckExprs", "sourceRef", "decryption",
	"kubeConfig", "prune", "wait", "force", "suspend", "deletionPolicy", "serviceAccountName", "commonMetadata", "path"}

// buildKey is what a build depends on beside the files.
func buildKey(obj map[string]any, p string) string {
	spec := map[string]any{}
	if s, ok := obj["spec"].(map[string]any); ok {
		for k, v := range s {
			if !slices.Contains(unbuilt, k) {
				spec[k] = v
			}
		}
	}
	b, err := json.Marshal(spec)
	if err != nil {
		// Values that came from YAML or JSON always marshal.
		b = []byte(err.Error())
	}
	return digest("build", p, string(b))
}

// appliedKey is what the applied objects depend on beside the files and the
// variables.
func appliedKey(obj map[string]any, p string) string {
	b, err := json.Marshal(at(obj, "spec", "commonMetadata"))
	if err != nil {
		b = []byte(err.Error())
	}
	return digest("applied", buildKey(obj, p), string(b))
}

// build renders a Kustomization, or finds the same build in the cache: same
// fields, and every file, folder and missing file that it looked at is the same.
func (e *Engine) build(ctx context.Context, a *artifactView, obj map[string]any, p string) (*built, error) {
	key := buildKey(obj, p)
	var variants []*built
	if v, ok := e.cache.get(key); ok {
		variants = v.([]*built)
		for _, b := range variants {
			if b.fits(a) {
				return b, nil
			}
		}
	}
	r := e.builder.Build(ctx, render.Request{Root: a.art.Dir, Path: p, Kustomization: obj})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := &built{result: r, states: make([]string, len(r.Reads)), size: 256, origin: &provenance{object: obj, path: p, count: len(r.Objects)}}
	state := []string{key}
	for i, read := range r.Reads {
		b.states[i] = a.state(read)
		state = append(state, read.Path, b.states[i])
		b.size += 160 + len(read.Path)
	}
	for _, o := range r.Objects {
		b.size += 512 + 2*len(o.JSON)
	}
	b.id = digest(state...)
	// A timeout says more about the machine than about the files; a result that
	// looked at none (the builder's own failure) would fit any.
	if len(r.Reads) > 0 && (r.Err == nil || r.Err.Code != render.Timeout) {
		variants = append([]*built{b}, variants...)
		if len(variants) > maxVariants {
			variants = variants[:maxVariants]
		}
		size := 0
		for _, v := range variants {
			size += v.size
		}
		e.cache.put(key, variants, size)
	}
	return b, nil
}

// maxVariants is how many states of the files a build is remembered for: base
// and head of a change, and a few before.
const maxVariants = 4

func (b *built) fits(a *artifactView) bool {
	for i, r := range b.result.Reads {
		if a.state(r) != b.states[i] {
			return false
		}
	}
	return true
}

// under tells whether a slash path lies in a folder, or is it.
func under(p, dir string) bool {
	return dir == "." || p == dir || strings.HasPrefix(p, dir+"/")
}
