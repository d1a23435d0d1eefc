package render

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	fluxkustomize "github.com/fluxcd/pkg/kustomize"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"
)

// NewLocal builds in this process, where a build can't be stopped and the guard
// has nothing beneath it: for tests and for repositories of one's own.
func NewLocal() Builder { return local{} }

type local struct{}

// lane keeps builds with an openapi field alone: the schema is a global of
// kustomize's and would leak into the builds beside them.
var lane sync.RWMutex

// schemaOnce parses the built-in OpenAPI schema before the first build: parallel
// builds must not meet its lazy initialisation.
var schemaOnce sync.Once

func prepare() { schemaOnce.Do(func() { openapi.Schema() }) }

// Build renders one Kustomization.
func (local) Build(ctx context.Context, r Request) Result {
	if err := ctx.Err(); err != nil {
		return Result{Err: &Error{Code: Timeout, Message: "the build was cancelled"}}
	}
	g := newGuard(r.Root)
	objects, err := build(g, r)
	out := Result{Reads: g.sortedReads(), Edges: g.edges, Stubs: g.stubs}
	if err != nil {
		out.Err = g.explain(err, r)
		return out
	}
	out.Objects = objects
	return out
}

func build(g *guard, r Request) ([]Object, error) {
	entry := filepath.Join(g.root, filepath.FromSlash(r.Path))
	if !g.IsDir(entry) {
		return nil, &Error{Code: PathNotFound, Message: fmt.Sprintf("there is no folder %q", r.Path)}
	}
	wanted, err := g.generate(r, entry)
	if err != nil {
		return nil, err
	}
	m, err := run(g, entry)
	for err != nil && g.leaveOut(err) {
		m, err = run(g, entry)
	}
	if err != nil {
		return nil, err
	}
	return g.objects(m, r, wanted)
}

// generate makes the entry's kustomization with fluxcd/pkg's generator, adds the
// annotations that tell where objects come from when that was asked, and lays it
// over the folder. It returns the build metadata that the repository itself asks
// for.
func (g *guard) generate(r Request, entry string) (wanted []string, err error) {
	if err := g.scan(entry); err != nil {
		return nil, err
	}
	if spec, ok := r.Kustomization["spec"].(map[string]any); ok {
		components, _ := spec["components"].([]any)
		for _, c := range components {
			if s, ok := c.(string); ok && !remote(s) {
				g.Exists(filepath.Join(entry, s))
			}
		}
	}
	var manifest []byte
	var file string
	err = safely(func() (err error) {
		manifest, file, _, err = fluxkustomize.NewGenerator(g.root, unstructured.Unstructured{Object: r.Kustomization}).GenerateManifest(entry)
		return err
	})
	if err != nil {
		return nil, err
	}
	var k types.Kustomization
	if r.Origins || bytes.Contains(manifest, []byte("buildMetadata")) {
		if err := yaml.Unmarshal(manifest, &k); err != nil {
			return nil, err
		}
		wanted = k.BuildMetadata
	}
	if r.Origins {
		k.BuildMetadata = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(wanted), types.OriginAnnotations, types.TransformerAnnotations))))
		if manifest, err = yaml.Marshal(k); err != nil {
			return nil, err
		}
	}
	g.overlay, g.overlayData = file, manifest
	return wanted, nil
}

// scan looks at what the generator looks at, with bounds and on record: the
// entry's kustomization file, or else every YAML file down to folders that have
// one.
func (g *guard) scan(entry string) error {
	if own, err := g.ownFile(entry); own != "" || err != nil {
		return err
	}
	names, err := g.ReadDir(entry)
	if err != nil {
		return err
	}
	for _, name := range names {
		p := filepath.Join(entry, name)
		if g.isDir(p) {
			if own, err := g.ownFile(p); err != nil {
				return err
			} else if own != "" {
				g.edge(p, "", name)
				continue
			}
			if err := g.scan(p); err != nil {
				return err
			}
			continue
		}
		if ext := path.Ext(name); ext == ".yaml" || ext == ".yml" {
			g.edge(p, "", name)
			if _, err := g.ReadFile(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownFile reads the kustomization file of a folder, "" when it has none.
func (g *guard) ownFile(dir string) (string, error) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if p := filepath.Join(dir, name); g.Exists(p) && !g.isDir(p) {
			_, err := g.ReadFile(p)
			return p, err
		}
	}
	return "", nil
}

// run builds with krusty, and again in the exclusive lane when a kustomization
// turns out to have an openapi field.
func run(g *guard, entry string) (resmap.ResMap, error) {
	prepare()
	g.building = true
	lane.RLock()
	m, err := krust(g, entry)
	lane.RUnlock()
	if !g.openAPI {
		return m, err
	}
	lane.Lock()
	defer lane.Unlock()
	g.alone = true
	// It resets the global schema before and after.
	m, err = fluxkustomize.Build(g, entry)
	openapi.Schema()
	return m, err
}

func krust(g *guard, entry string) (m resmap.ResMap, err error) {
	err = safely(func() (err error) {
		m, err = krusty.MakeKustomizer(&krusty.Options{LoadRestrictions: types.LoadRestrictionsNone, PluginConfig: types.DisabledPluginConfig()}).Run(g, entry)
		return err
	})
	return m, err
}

// safely turns a panic of kustomize into an error: hostile input finds those.
func safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize panicked: %v", r)
		}
	}()
	return f()
}

// objects takes the provenance off the built objects.
func (g *guard) objects(m resmap.ResMap, r Request, wanted []string) ([]Object, error) {
	out := make([]Object, m.Size())
	if r.Origins {
		for i, res := range m.Resources() {
			out[i].Origin = g.origin(res, r.Path)
		}
	}
	if !slices.Contains(wanted, types.OriginAnnotations) {
		if err := m.RemoveOriginAnnotations(); err != nil {
			return nil, err
		}
	}
	if !slices.Contains(wanted, types.TransformerAnnotations) {
		if err := m.RemoveTransformerAnnotations(); err != nil {
			return nil, err
		}
	}
	for i, res := range m.Resources() {
		data, err := objectJSON(res)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", res.CurId(), err)
		}
		out[i].JSON = data
	}
	return out, nil
}

// relative is a path of the build's file system relative to the root, and
// whether it lies in it.
func (g *guard) relative(p string) (string, bool) {
	p = filepath.Clean(p)
	if p == g.root {
		return ".", true
	}
	rest, ok := strings.CutPrefix(p, g.root+string(filepath.Separator))
	return filepath.ToSlash(rest), ok
}
