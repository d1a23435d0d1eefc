package fleet

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fluxkustomize "github.com/fluxcd/pkg/kustomize"
	securefs "github.com/fluxcd/pkg/kustomize/filesys"
	"github.com/klauspost/compress/zstd"
	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/schema"
)

// fluxBuild renders as kustomize-controller does: fluxcd/pkg's generator edits
// the entry and its Build builds, here with the edited entry laid over the
// folder instead of written into it.
func fluxBuild(in gitops.Inspection) ([][]byte, error) {
	entry := filepath.Join(in.Root, filepath.FromSlash(in.Path))
	manifest, file, _, err := fluxkustomize.NewGenerator(in.Root, unstructured.Unstructured{Object: in.Object}).GenerateManifest(entry)
	if err != nil {
		return nil, err
	}
	disk, err := securefs.MakeFsOnDiskSecureBuild(in.Root)
	if err != nil {
		return nil, err
	}
	m, err := fluxkustomize.Build(overlay{disk, filepath.Clean(file), manifest}, entry)
	if err != nil {
		return nil, err
	}
	out := make([][]byte, 0, m.Size())
	for _, r := range m.Resources() {
		data, err := r.MarshalJSON()
		if err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}

// overlay shows one file over a folder.
type overlay struct {
	filesys.FileSystem
	path string
	data []byte
}

// Exists tells whether a path is there.
func (o overlay) Exists(p string) bool {
	return filepath.Clean(p) == o.path || o.FileSystem.Exists(p)
}

// ReadFile reads a file.
func (o overlay) ReadFile(p string) ([]byte, error) {
	if filepath.Clean(p) == o.path {
		return o.data, nil
	}
	return o.FileSystem.ReadFile(p)
}

// CleanedAbs splits a path into folder and file.
func (o overlay) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	if filepath.Clean(p) == o.path {
		return filesys.ConfirmedDir(filepath.Dir(o.path)), filepath.Base(o.path), nil
	}
	return o.FileSystem.CleanedAbs(p)
}

// conform is kubeconform with the very schemas of a Set and those of CRDs.
type conform struct {
	validator.Validator
	// custom are the group/kind that have their schema from a CRD.
	custom map[string]bool
}

// newConform writes the embedded schemas, those of the embedded Flux CRDs and
// those of the repository's CRDs into a folder, and opens them.
func newConform(tb testing.TB, crds []map[string]any) conform {
	tb.Helper()
	dir := tb.TempDir()
	var a struct {
		Kinds []struct {
			Group, Version, Kind, Definition string
		}
		Definitions map[string]json.RawMessage
	}
	unpack(tb, schema.Versions()[0], &a)
	for _, k := range a.Kinds {
		definitions := map[string]json.RawMessage{}
		reach(a.Definitions, k.Definition, definitions)
		writeSchema(tb, dir, k.Group, k.Version, k.Kind, map[string]any{"$ref": "#/definitions/" + k.Definition, "definitions": definitions})
	}
	var flux struct{ CRDs []map[string]any }
	unpack(tb, "flux", &flux)
	c := conform{custom: map[string]bool{}}
	for _, crd := range append(flux.CRDs, crds...) {
		u := unstructured.Unstructured{Object: crd}
		group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
		for _, v := range versions {
			v := v.(map[string]any)
			s, _, _ := unstructured.NestedMap(v, "schema", "openAPIV3Schema")
			writeSchema(tb, dir, group, v["name"].(string), kind, s)
		}
		c.custom[group+"/"+kind] = true
	}
	var err error
	if c.Validator, err = validator.New([]string{dir + "/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"}, validator.Opts{IgnoreMissingSchemas: true}); err != nil {
		tb.Fatal(err)
	}
	return c
}

func writeSchema(tb testing.TB, dir, group, version, kind string, s map[string]any) {
	tb.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		tb.Fatal(err)
	}
	if group == "" {
		group = version // as kubeconform makes the group of v1
	}
	name := filepath.Join(dir, group, strings.ToLower(kind)+"_"+version+".json")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		tb.Fatal(err)
	}
}

// unpack reads an archive of internal/schema.
func unpack(tb testing.TB, name string, v any) {
	tb.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "internal", "schema", "archives", name+".json.zst"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	r, err := zstd.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	if err := json.NewDecoder(r).Decode(v); err != nil {
		tb.Fatal(err)
	}
}

// reach collects a definition and those that it refers to.
func reach(all map[string]json.RawMessage, name string, into map[string]json.RawMessage) {
	if into[name] != nil {
		return
	}
	into[name] = all[name]
	for _, part := range strings.Split(string(all[name]), `"#/definitions/`)[1:] {
		ref, _, _ := strings.Cut(part, `"`)
		reach(all, ref, into)
	}
}

// judge is kubeconform's verdict on one object.
func (c conform) judge(data []byte) validator.Status {
	return c.ValidateResource(resource.Resource{Bytes: data}).Status
}
