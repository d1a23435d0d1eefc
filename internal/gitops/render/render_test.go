package render_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	fluxkustomize "github.com/fluxcd/pkg/kustomize"
	securefs "github.com/fluxcd/pkg/kustomize/filesys"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// TestMain lets the test binary be its own worker, as hecate-mcp is.
func TestMain(m *testing.M) {
	if len(os.Args) >= 2 && os.Args[1] == "render-worker" {
		if len(os.Args) == 3 { // a folder that counts the workers
			if _, err := os.MkdirTemp(os.Args[2], ""); err != nil {
				os.Exit(1)
			}
		}
		if err := render.Worker(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func pool(t testing.TB, timeout time.Duration) *render.Pool {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := render.NewPool([]string{self, "render-worker"}, 2, timeout)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// files writes a folder of files.
func files(t testing.TB, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func kustomization(spec map[string]any) map[string]any {
	return map[string]any{"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
		"metadata": map[string]any{"name": "apps", "namespace": "flux-system"}, "spec": spec}
}

// object is a small object; more lines go below metadata's.
func object(kind, name string, more ...string) string {
	version := map[string]string{"Deployment": "apps/v1", "ConfigMap": "v1", "Secret": "v1", "Service": "v1", "Namespace": "v1"}[kind]
	return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n" + strings.Join(more, "\n") + "\n"
}

const deployment = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: example/web:1.0
          args: ["--price=$$5", "${GREETING}"]
          envFrom:
            - configMapRef: {name: settings}
`

// shapes are folders, what is built of them, and how.
var shapes = map[string]struct {
	files map[string]string
	path  string
	spec  map[string]any
}{
	"no kustomization file":    {map[string]string{"a.yaml": deployment, "sub/b.yaml": object("ConfigMap", "b"), "sub/deep/c.yml": object("ConfigMap", "c"), "notes.txt": "no manifest"}, ".", nil},
	"sub-folder with its own":  {map[string]string{"a.yaml": deployment, "sub/kustomization.yaml": "namePrefix: p-\nresources: [b.yaml]\n", "sub/b.yaml": object("ConfigMap", "b"), "sub/unlisted.yaml": object("ConfigMap", "no")}, ".", nil},
	"empty folder":             {map[string]string{"x/notes.txt": "nothing"}, "x", nil},
	"resources empty":          {map[string]string{"kustomization.yaml": "resources: []\n", "sub/a.yaml": deployment}, ".", nil},
	"no resources, generator":  {map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: settings\n  literals: [a=b]\n"}, ".", nil},
	"Kustomization as name":    {map[string]string{"Kustomization": "resources: [a.yaml]\n", "a.yaml": deployment}, ".", nil},
	"odd folder names":         {map[string]string{"a+b/c d/kustomization.yaml": "resources: [../e@f/a.yaml]\n", "a+b/e@f/a.yaml": deployment}, "a+b/c d", nil},
	"base and overlay":         {map[string]string{"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": deployment, "prod/kustomization.yaml": "resources: [../base]\nnamespace: prod\nnameSuffix: -x\npatches:\n- path: p.yaml\nreplicas:\n- {name: web, count: 5}\n", "prod/p.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {priorityClassName: high}}}\n"}, "prod", nil},
	"components":               {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ncomponents: [c]\n", "a.yaml": deployment, "c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [cm.yaml]\nlabels:\n- pairs: {team: x}\n  includeSelectors: true\n", "c/cm.yaml": object("ConfigMap", "cm")}, ".", nil},
	"components of the spec":   {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\n", "app/a.yaml": deployment, "c/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {x: z}\n"}, "app", map[string]any{"components": []any{"../c", "../gone"}, "ignoreMissingComponents": true}},
	"patches, images, ns":      {map[string]string{"kustomization.yaml": "resources: [a.yaml]\nimages:\n- name: example/web\n  newTag: '2.0'\npatches:\n- patch: |\n    - op: replace\n      path: /spec/replicas\n      value: 7\n  target: {kind: Deployment}\n", "a.yaml": deployment}, ".", map[string]any{"targetNamespace": "prod", "namePrefix": "x-", "nameSuffix": "-y", "images": []any{map[string]any{"name": "example/web", "newName": "other/web", "digest": "sha256:abc"}}, "patches": []any{map[string]any{"patch": "- op: add\n  path: /metadata/labels/patched\n  value: \"yes\"\n", "target": map[string]any{"labelSelector": "app=web"}}}}},
	"generators with hashes":   {map[string]string{"kustomization.yaml": "resources: [a.yaml]\nconfigMapGenerator:\n- name: settings\n  files: [f.txt, other=f.txt]\n  envs: [e.env]\nsecretGenerator:\n- name: s\n  literals: [a=b]\n", "a.yaml": deployment, "f.txt": "text\n", "e.env": "A=1\n"}, ".", nil},
	"build metadata asked for": {map[string]string{"kustomization.yaml": "resources: [a.yaml]\nbuildMetadata: [originAnnotations, managedByLabel]\n", "a.yaml": deployment}, ".", nil},
	"sort options":             {map[string]string{"kustomization.yaml": "sortOptions: {order: fifo}\nresources: [b.yaml, a.yaml]\n", "a.yaml": object("Namespace", "a"), "b.yaml": deployment}, ".", nil},
	"lists":                    {map[string]string{"kustomization.yaml": "resources: [l.yaml]\n", "l.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"}, ".", nil},
	"replacements and vars":    {map[string]string{"kustomization.yaml": "resources: [a.yaml, cm.yaml]\nreplacements:\n- path: r.yaml\n", "r.yaml": "source: {kind: ConfigMap, name: cm, fieldPath: data.n}\ntargets:\n- select: {kind: Deployment}\n  fieldPaths: [metadata.annotations.n]\n  options: {create: true}\n", "a.yaml": deployment, "cm.yaml": object("ConfigMap", "cm", "data: {n: value}")}, ".", nil},
	"numbers and nulls":        {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "apiVersion: example.com/v1\nkind: Odd\nmetadata: {name: odd, annotations: {}}\nspec:\n  big: 12345678901234567\n  f: 1.0\n  e: 1e6\n  n: null\n  oct: 0644\n  s: \"0644\"\n  t: 2024-01-01\n  empty: {}\n  list: []\n  price: $5\n  text: |\n    a\n\n    b\n"}, ".", nil},
	"anchors":                  {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, labels: &l {x: y}, annotations: *l}\ndata: {<<: *l, z: w}\n"}, ".", nil},
	"openapi field":            {map[string]string{"kustomization.yaml": "resources: [a.yaml]\nopenapi: {path: s.json}\npatches:\n- patch: |\n    apiVersion: example.com/v1\n    kind: Odd\n    metadata: {name: odd}\n    spec: {list: [{name: b, v: 2}]}\n", "a.yaml": "apiVersion: example.com/v1\nkind: Odd\nmetadata: {name: odd}\nspec: {list: [{name: a, v: 1}]}\n", "s.json": `{"definitions":{"x.Odd":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Odd"}],"properties":{"spec":{"type":"object","properties":{"list":{"type":"array","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge","items":{"type":"object"}}}}}}}}`}, ".", nil},
}

// reference is what fluxcd/pkg builds, as YAML a document, after its generator
// wrote into a copy of the folder.
func reference(t testing.TB, dir, path string, spec map[string]any) []string {
	t.Helper()
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	entry := filepath.Join(copied, path)
	if _, err := fluxkustomize.NewGenerator(copied, unstructured.Unstructured{Object: kustomization(spec)}).WriteFile(entry); err != nil {
		t.Fatalf("the reference's generator: %v", err)
	}
	fs, err := securefs.MakeFsOnDiskSecureBuild(copied)
	if err != nil {
		t.Fatal(err)
	}
	m, err := fluxkustomize.Build(fs, entry)
	if err != nil {
		t.Fatalf("the reference's build: %v", err)
	}
	var out []string
	for _, r := range m.Resources() {
		b, err := r.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func asYAML(t testing.TB, objects []render.Object) []string {
	t.Helper()
	var out []string
	for _, o := range objects {
		b, err := render.YAML(o)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(b))
	}
	return out
}

func TestBuildIsFluxBuild(t *testing.T) {
	workers := pool(t, time.Minute)
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			dir := files(t, s.files)
			want := reference(t, dir, s.path, s.spec)
			before := tree(t, dir)
			for kind, b := range map[string]render.Builder{"here": render.NewLocal(), "in a worker": workers} {
				for _, origins := range []bool{false, true} {
					r := b.Build(t.Context(), render.Request{Root: dir, Path: s.path, Kustomization: kustomization(s.spec), Origins: origins})
					if r.Err != nil {
						t.Fatalf("%s: %v", kind, r.Err)
					}
					if d := cmp.Diff(want, asYAML(t, r.Objects)); d != "" {
						t.Errorf("%s, origins %v: not what fluxcd/pkg builds (-want +got):\n%s", kind, origins, d)
					}
				}
			}
			if d := cmp.Diff(before, tree(t, dir)); d != "" {
				t.Errorf("the folder was changed:\n%s", d)
			}
		})
	}
}

// tree is every file with its content.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(dir, func(p string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		out[p] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAnOpenAPIFieldDoesNotLeak(t *testing.T) {
	s := shapes["openapi field"]
	odd := files(t, s.files)
	plain := map[string]string{}
	for k, v := range s.files {
		plain[k] = strings.Replace(v, "openapi: {path: s.json}\n", "", 1)
	}
	dir := files(t, plain)
	want := reference(t, dir, ".", nil)
	b := render.NewLocal()
	for range 3 {
		if r := b.Build(t.Context(), render.Request{Root: odd, Path: ".", Kustomization: kustomization(nil)}); r.Err != nil {
			t.Fatal(r.Err)
		}
		r := b.Build(t.Context(), render.Request{Root: dir, Path: ".", Kustomization: kustomization(nil)})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if d := cmp.Diff(want, asYAML(t, r.Objects)); d != "" {
			t.Fatalf("the schema of another build was used:\n%s", d)
		}
	}
}

func TestOriginsAndReads(t *testing.T) {
	s := shapes["base and overlay"]
	dir := files(t, s.files)
	r := render.NewLocal().Build(t.Context(), render.Request{Root: dir, Path: "prod", Kustomization: kustomization(nil), Origins: true})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	o := r.Objects[0].Origin
	if o.File != "base/web.yaml" || o.Kind != "Deployment" || o.Name != "web" {
		t.Errorf("origin %+v", o)
	}
	var by []string
	for _, x := range o.Transformers {
		by = append(by, x.File+" "+x.Kind)
	}
	for _, want := range []string{"prod/kustomization.yaml PatchTransformer", "prod/kustomization.yaml NamespaceTransformer", "prod/kustomization.yaml ReplicaCountTransformer"} {
		if !slices.Contains(by, want) {
			t.Errorf("no %q among %q", want, by)
		}
	}
	for _, want := range []render.Read{{Path: "base/web.yaml", Kind: render.File}, {Path: "base/kustomization.yaml", Kind: render.File}, {Path: "prod/p.yaml", Kind: render.File},
		{Path: "base/kustomization.yml", Kind: render.Missing}, {Path: "base", Kind: render.Folder}} {
		if !slices.Contains(r.Reads, want) {
			t.Errorf("no read %v in %v", want, r.Reads)
		}
	}
	if got := r.Edges["base/web.yaml"]; !slices.Equal(got, []string{"base/kustomization.yaml"}) {
		t.Errorf("edges of base/web.yaml: %v", got)
	}
	if got := r.Edges["base"]; !slices.Equal(got, []string{"prod/kustomization.yaml"}) {
		t.Errorf("edges of base: %v", got)
	}
	walked := files(t, shapes["no kustomization file"].files)
	r = render.NewLocal().Build(t.Context(), render.Request{Root: walked, Path: ".", Kustomization: kustomization(nil), Origins: true})
	for _, want := range []string{".", "sub", "sub/deep"} {
		if !slices.Contains(r.Reads, render.Read{Path: want, Kind: render.Dir}) {
			t.Errorf("folder %s was not noted as listed: %v", want, r.Reads)
		}
	}
}

func TestGeneratedObjectsNameTheirGenerator(t *testing.T) {
	dir := files(t, shapes["generators with hashes"].files)
	r := render.NewLocal().Build(t.Context(), render.Request{Root: dir, Path: ".", Kustomization: kustomization(nil), Origins: true})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	n := 0
	for _, o := range r.Objects {
		if o.Origin.Generator == "kustomization.yaml" && o.Origin.File == "" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d objects name their generator, want 2", n)
	}
}

// TestErrors holds code, file and line of builds that fail.
func TestErrors(t *testing.T) {
	big := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata:\n  a: " + strings.Repeat("x", 33<<20) + "\n"
	bomb := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\na: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for i, prev := 1, "a"; i < 9; i++ {
		next := string(rune('a' + i))
		bomb += next + ": &" + next + " [" + strings.TrimSuffix(strings.Repeat("*"+prev+",", 10), ",") + "]\n"
		prev = next
	}
	for name, c := range map[string]struct {
		files map[string]string
		path  string
		spec  map[string]any
		code  render.Code
		file  string
		line  int
		says  string
	}{
		"path is not there":          {map[string]string{"a.yaml": deployment}, "gone", nil, render.PathNotFound, "", 0, "gone"},
		"path is a file":             {map[string]string{"a.yaml": deployment}, "a.yaml", nil, render.PathNotFound, "", 0, "a.yaml"},
		"resource is not there":      {map[string]string{"kustomization.yaml": "resources:\n- a.yaml\n- gone.yaml\n", "a.yaml": deployment}, ".", nil, render.RenderFailed, "kustomization.yaml", 3, "gone.yaml"},
		"resource of a base is gone": {map[string]string{"o/kustomization.yaml": "resources:\n- ../b\n", "b/kustomization.yaml": "resources:\n- x.yaml\n"}, "o", nil, render.RenderFailed, "b/kustomization.yaml", 2, "x.yaml"},
		"base without kustomization": {map[string]string{"o/kustomization.yaml": "resources:\n- ../b\n", "b/x.yaml": deployment}, "o", nil, render.RenderFailed, "o/kustomization.yaml", 2, "no kustomization file"},
		"patch file is not there":    {map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches:\n- path: p.yaml\n", "a.yaml": deployment}, ".", nil, render.RenderFailed, "kustomization.yaml", 3, "p.yaml"},
		"generator file is gone":     {map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: x\n  files:\n  - f.txt\n"}, ".", nil, render.RenderFailed, "kustomization.yaml", 4, "f.txt"},
		"component is gone":          {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ncomponents:\n- ../c\n", "a.yaml": deployment}, ".", nil, render.RenderFailed, "kustomization.yaml", 3, "outside"},
		"malformed resource":         {map[string]string{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": deployment, "b.yaml": "kind: ConfigMap\nmetadata:\n  name: b\n bad: x\n"}, ".", nil, render.InvalidYAML, "b.yaml", 4, ""},
		"malformed, generated":       {map[string]string{"a.yaml": deployment, "b.yaml": "kind: [\n"}, ".", nil, render.InvalidYAML, "b.yaml", 0, ""},
		"not an object, generated":   {map[string]string{"a.yaml": deployment, "values.yaml": "just: values\n"}, ".", nil, render.RenderFailed, "values.yaml", 1, "values.yaml"},
		"key twice":                  {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n"}, ".", nil, render.DuplicateKey, "a.yaml", 5, "name"},
		"malformed kustomization":    {map[string]string{"kustomization.yaml": "resources:\n- a.yaml\n  b: [\n", "a.yaml": deployment}, ".", nil, render.InvalidYAML, "kustomization.yaml", 0, ""},
		"unknown field":              {map[string]string{"o/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resource:\n- a.yaml\n"}, "o", nil, render.RenderFailed, "b/kustomization.yaml", 1, "resource"},
		"patch hits nothing":         {map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches:\n- patch: |\n    apiVersion: v1\n    kind: Service\n    metadata:\n      name: nothing\n", "a.yaml": deployment}, ".", nil, render.RenderFailed, "kustomization.yaml", 7, "nothing"},
		"same object twice":          {map[string]string{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": deployment, "b.yaml": deployment}, ".", nil, render.RenderFailed, "b.yaml", 4, "already registered"},
		"bases in a circle":          {map[string]string{"a/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [../a]\n"}, "a", nil, render.RenderFailed, "b/kustomization.yaml", 0, "cycle"},
		"generator reads outside":    {map[string]string{"app/kustomization.yaml": "secretGenerator:\n- name: x\n  files:\n  - ../../../../../../../etc/passwd\n"}, "app", nil, render.RenderFailed, "app/kustomization.yaml", 4, "outside"},
		"resource outside":           {map[string]string{"kustomization.yaml": "resources:\n- ../x.yaml\n"}, ".", nil, render.RenderFailed, "kustomization.yaml", 2, "outside"},
		"component of spec outside":  {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": deployment}, ".", map[string]any{"components": []any{"../../x"}}, render.RenderFailed, "kustomization.yaml", 0, "outside"},
		"absolute file":              {map[string]string{"kustomization.yaml": "configMapGenerator:\n- name: x\n  files: [/etc/passwd]\n"}, ".", nil, render.RenderFailed, "", 0, "outside"},
		"alias bomb":                 {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": bomb}, ".", nil, render.InvalidYAML, "a.yaml", 1, "aliases"},
		"alias of itself":            {map[string]string{"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: &d\n  x: *d\n"}, ".", nil, render.InvalidYAML, "a.yaml", 1, "aliases"},
		"deep nesting":               {map[string]string{"a.yaml": "a: " + strings.Repeat("[", 100_000) + "\n"}, ".", nil, render.InvalidYAML, "a.yaml", 1, "deeper"},
		"deep nesting by dashes":     {map[string]string{"a.yaml": "a:\n" + strings.Repeat("- ", 100_000) + "x\n"}, ".", nil, render.InvalidYAML, "a.yaml", 1, "deeper"},
		"large file":                 {map[string]string{"a.yaml": big}, ".", nil, render.TooLarge, "a.yaml", 0, "larger"},
		"not UTF-8":                  {map[string]string{"a.yaml": "a: b\nc: \xff\xfe\n"}, ".", nil, render.InvalidYAML, "a.yaml", 2, "UTF-8"},
		"helm chart":                 {map[string]string{"kustomization.yaml": "helmCharts:\n- name: x\n  repo: https://charts.invalid\n  version: 1.0.0\n"}, ".", nil, render.RenderFailed, "kustomization.yaml", 1, "helm"},
		"exec plugin":                {map[string]string{"kustomization.yaml": "generators: [g.yaml]\n", "g.yaml": "apiVersion: x/v1\nkind: Evil\nmetadata:\n  name: g\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: /bin/true}\n"}, ".", nil, render.RenderFailed, "", -1, ""},
		"bad patch in the spec":      {map[string]string{"a.yaml": deployment}, ".", map[string]any{"patches": []any{"text"}}, render.RenderFailed, "", 0, "patch"},
	} {
		t.Run(name, func(t *testing.T) {
			r := render.NewLocal().Build(t.Context(), render.Request{Root: files(t, c.files), Path: c.path, Kustomization: kustomization(c.spec)})
			if r.Err == nil {
				t.Fatalf("it built %d objects", len(r.Objects))
			}
			if r.Err.Code != c.code || c.line >= 0 && r.Err.File != c.file || c.line > 0 && r.Err.Line != c.line || !strings.Contains(r.Err.Message, c.says) {
				t.Errorf("got %s at %s:%d: %s\nwant %s at %s:%d with %q", r.Err.Code, r.Err.File, r.Err.Line, r.Err.Message, c.code, c.file, c.line, c.says)
			}
			if len(r.Objects) > 0 || strings.Contains(r.Err.Message, os.TempDir()) {
				t.Errorf("a failed build has objects or names this machine's folders: %s", r.Err.Message)
			}
		})
	}
}

// positions are kustomizations with a remote reference, %s, at every place that
// kustomize loads from.
var positions = map[string]map[string]string{
	"resources":              {"kustomization.yaml": "resources: [a.yaml, '%s/x.yaml']\n"},
	"RESOURCES by case":      {"kustomization.yaml": "Resources: [a.yaml, '%s/x.yaml']\n"},
	"bases":                  {"kustomization.yaml": "bases: ['%s/x?ref=main']\nresources: [a.yaml]\n"},
	"git":                    {"kustomization.yaml": "resources: [a.yaml, 'git::%s/repo.git//x?ref=main']\n"},
	"components":             {"kustomization.yaml": "resources: [a.yaml]\ncomponents: ['%s/x.git']\n"},
	"crds":                   {"kustomization.yaml": "resources: [a.yaml]\ncrds: ['%s/crd.json']\n"},
	"configurations":         {"kustomization.yaml": "resources: [a.yaml]\nconfigurations: ['%s/c.yaml']\n"},
	"openapi":                {"kustomization.yaml": "resources: [a.yaml]\nopenapi: {path: '%s/o.json'}\n"},
	"patches":                {"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: '%s/p.yaml'}]\n"},
	"patchesStrategicMerge":  {"kustomization.yaml": "resources: [a.yaml]\npatchesStrategicMerge: ['%s/p.yaml']\n"},
	"patchesJson6902":        {"kustomization.yaml": "resources: [a.yaml]\npatchesJson6902: [{path: '%s/p.yaml', target: {version: v1, kind: ConfigMap, name: a}}]\n"},
	"replacements":           {"kustomization.yaml": "resources: [a.yaml]\nreplacements: [{path: '%s/r.yaml'}]\n"},
	"configMapGenerator":     {"kustomization.yaml": "resources: [a.yaml]\nconfigMapGenerator: [{name: x, files: ['%s/f.txt']}]\n"},
	"configMapGenerator key": {"kustomization.yaml": "resources: [a.yaml]\nconfigMapGenerator: [{name: x, files: ['k=%s/f.txt']}]\n"},
	"configMapGenerator env": {"kustomization.yaml": "resources: [a.yaml]\nconfigMapGenerator: [{name: x, env: '%s/f.env'}]\n"},
	"secretGenerator":        {"kustomization.yaml": "resources: [a.yaml]\nsecretGenerator: [{name: x, envs: ['%s/f.env']}]\n"},
	"generators":             {"kustomization.yaml": "resources: [a.yaml]\ngenerators: ['%s/g.yaml']\n"},
	"transformers":           {"kustomization.yaml": "resources: [a.yaml]\ntransformers: ['%s/t.yaml']\n"},
	"validators":             {"kustomization.yaml": "resources: [a.yaml]\nvalidators: ['%s/v.yaml']\n"},
	"of a base":              {"kustomization.yaml": "resources: [a.yaml, b]\n", "b/kustomization.yaml": "resources: ['%s/x.yaml']\n"},
	"generator inline":       {"kustomization.yaml": "resources: [a.yaml]\ngenerators:\n- |\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: g}\n  files: ['%s/f.txt']\n"},
	"generator in a file":    {"kustomization.yaml": "resources: [a.yaml]\ngenerators: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: ['k=%s/f.txt']\n"},
	"transformer in a file":  {"kustomization.yaml": "resources: [a.yaml]\ntransformers: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: g}\npath: '%s/f.yaml'\ntarget: {kind: ConfigMap}\n"},
	"replacement in a file":  {"kustomization.yaml": "resources: [a.yaml]\ntransformers: [g.yaml]\n", "g.yaml": "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: g}\nreplacements:\n- path: '%s/f.yaml'\n"},
	"generator by patch":     {"kustomization.yaml": "resources: [a.yaml]\ngenerators: [g]\n", "g/kustomization.yaml": "resources: [g.yaml]\npatches:\n- patch: |\n    - {op: replace, path: /apiVersion, value: builtin}\n    - {op: add, path: /files, value: ['k=%s/f.txt']}\n  target: {kind: ConfigMapGenerator}\n", "g/g.yaml": "apiVersion: builtin2\nkind: ConfigMapGenerator\nmetadata: {name: g}\n"},
}

func TestNothingIsFetched(t *testing.T) {
	var hits atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		_, _ = w.Write([]byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fetched}\n"))
	}))
	defer server.Close()
	workers := pool(t, time.Minute)
	for name, content := range positions {
		t.Run(name, func(t *testing.T) {
			dir := map[string]string{"a.yaml": object("ConfigMap", "a")}
			for f, text := range content {
				dir[f] = strings.ReplaceAll(text, "%s", server.URL)
			}
			r := workers.Build(t.Context(), render.Request{Root: files(t, dir), Path: ".", Kustomization: kustomization(nil)})
			if n := hits.Swap(0); n != 0 {
				t.Errorf("%d requests reached the server", n)
			}
			switch {
			case name == "generator by patch":
				if r.Err == nil {
					t.Error("a generator that only a patch makes built")
				}
			case strings.HasSuffix(name, "in a file"):
				if r.Err == nil || r.Err.Code != render.RemoteReference || r.Err.File != "g.yaml" || r.Err.Line == 0 {
					t.Errorf("want RemoteReference in g.yaml, got %+v", r.Err)
				}
			default:
				if r.Err != nil {
					t.Fatalf("one remote entry hides the rest: %v", r.Err)
				}
				if len(r.Stubs) != 1 || r.Stubs[0].Line == 0 || !strings.Contains(r.Stubs[0].Value, "127.0.0.1") {
					t.Errorf("stubs %+v", r.Stubs)
				}
				if !slices.ContainsFunc(r.Objects, func(o render.Object) bool { return bytes.Contains(o.JSON, []byte(`"name":"a"`)) }) {
					t.Errorf("the local object is missing: %v", asYAML(t, r.Objects))
				}
			}
		})
	}
}

func TestPatchesOfRemoteObjectsAreLeftOut(t *testing.T) {
	const patch = "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: remote}\nspec: {template: {spec: {priorityClassName: high}}}\n"
	for name, c := range map[string]struct {
		files map[string]string
		fails bool
	}{
		"patch in a file":  {map[string]string{"o/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: ['https://example.com/x.yaml', a.yaml]\npatches:\n- path: p.yaml\n", "b/p.yaml": patch, "b/a.yaml": deployment}, false},
		"inline, old form": {map[string]string{"o/kustomization.yaml": "resources: [../b]\npatchesStrategicMerge:\n- |\n  " + strings.ReplaceAll(patch, "\n", "\n  ") + "\n", "b/kustomization.yaml": "resources: ['https://example.com/x.yaml', a.yaml]\n", "b/a.yaml": deployment}, false},
		"two of them":      {map[string]string{"o/kustomization.yaml": "resources: [../b]\npatches:\n- path: ../b/q.yaml\n", "b/kustomization.yaml": "resources: ['https://example.com/x.yaml', a.yaml]\npatches:\n- path: p.yaml\n", "b/p.yaml": patch, "b/q.yaml": strings.Replace(patch, "remote", "other", 1), "b/a.yaml": deployment}, false},
		"nothing remote":   {map[string]string{"o/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: [a.yaml]\npatches:\n- path: p.yaml\n", "b/p.yaml": patch, "b/a.yaml": deployment}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := render.NewLocal().Build(t.Context(), render.Request{Root: files(t, c.files), Path: "o", Kustomization: kustomization(nil)})
			if c.fails {
				if r.Err == nil {
					t.Fatal("a patch of nothing built")
				}
				return
			}
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			dependent := 0
			for _, s := range r.Stubs {
				if s.Dependent && s.Line > 0 {
					dependent++
				}
			}
			if len(r.Objects) != 1 || dependent != len(r.Stubs)-1 {
				t.Errorf("%d objects, stubs %+v", len(r.Objects), r.Stubs)
			}
		})
	}
}

func TestABuildThatDoesNotEndIsStopped(t *testing.T) {
	// Each level doubles the one below under other names.
	dir := map[string]string{"l0/kustomization.yaml": "resources: [a.yaml]\n", "l0/a.yaml": deployment}
	for i := 1; i < 25; i++ {
		l, below := "l"+string(rune('a'+i)), "l"+string(rune('a'+i-1))
		if i == 1 {
			below = "l0"
		}
		dir[l+"/kustomization.yaml"] = "resources: [p, q]\n"
		for _, s := range []string{"p", "q"} {
			dir[l+"/"+s+"/kustomization.yaml"] = "namePrefix: " + s + "-\nresources: [../../" + below + "]\n"
		}
	}
	// Enough for a new worker to start on a busy machine, under the race detector too.
	p := pool(t, 10*time.Second)
	root := files(t, dir)
	start := time.Now()
	r := p.Build(t.Context(), render.Request{Root: root, Path: "l" + string(rune('a'+24)), Kustomization: kustomization(nil)})
	if r.Err == nil || r.Err.Code != render.Timeout && r.Err.Code != render.TooLarge {
		t.Fatalf("got %v with %d objects", r.Err, len(r.Objects))
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s", took)
	}
	// The pool goes on with a new worker.
	if r := p.Build(t.Context(), render.Request{Root: root, Path: "l0", Kustomization: kustomization(nil)}); r.Err != nil {
		t.Errorf("after the stop: %v", r.Err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := p.Build(ctx, render.Request{Root: root, Path: "l0", Kustomization: kustomization(nil)}); r.Err == nil {
		t.Error("a cancelled build answered")
	}
}

func TestSecretsAreMaskedInErrors(t *testing.T) {
	const canary = "canary-7f3a9c"
	for name, content := range map[string]map[string]string{
		"broken secret":        {"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  password: " + canary + "\n  x: [" + canary + "\n"},
		"patch on a secret":    {"kustomization.yaml": "resources: [s.yaml]\npatches:\n- target: {kind: Secret}\n  patch: |\n    - op: test\n      path: /stringData/password\n      value: wrong\n", "s.yaml": object("Secret", "s", "stringData: {password: "+canary+"}")},
		"secret patch invalid": {"kustomization.yaml": "resources: [s.yaml]\npatches:\n- path: p.yaml\n", "s.yaml": object("Secret", "s"), "p.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\nstringData: {password: " + canary + "}\n"},
		"literal":              {"kustomization.yaml": "secretGenerator:\n- name: s\n  literals: ['" + canary + "']\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := render.NewLocal().Build(t.Context(), render.Request{Root: files(t, content), Path: ".", Kustomization: kustomization(nil)})
			if r.Err == nil {
				t.Fatal("it built")
			}
			if b, _ := json.Marshal(r.Err); strings.Contains(string(b), canary) {
				t.Errorf("the secret is in the error: %s", b)
			}
		})
	}
}

// TestWarm starts each worker once, before the first build and again after a crash.
func TestWarm(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	started := t.TempDir()
	p, err := render.NewPool([]string{self, "render-worker", started}, 2, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	count := func(want int) {
		t.Helper()
		n := -1
		for deadline := time.Now().Add(20 * time.Second); n != want && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			entries, err := os.ReadDir(started)
			if err != nil {
				t.Fatal(err)
			}
			n = len(entries)
		}
		if n != want {
			t.Errorf("%d workers were started, want %d", n, want)
		}
	}
	p.Warm()
	count(2)
	p.Warm()
	dir := files(t, map[string]string{"a.yaml": object("ConfigMap", "a")})
	for range 3 {
		if r := p.Build(t.Context(), render.Request{Root: dir, Path: ".", Kustomization: kustomization(nil)}); r.Err != nil || len(r.Objects) != 1 {
			t.Errorf("%+v", r)
		}
	}
	count(2)
	many := map[string]string{}
	for i := range 5000 {
		many[fmt.Sprintf("%d.yaml", i)] = object("ConfigMap", fmt.Sprint("a", i))
	}
	root := files(t, many)
	cancelled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if r := p.Build(cancelled, render.Request{Root: root, Path: ".", Kustomization: kustomization(nil)}); r.Err == nil || r.Err.Code != render.Timeout {
		t.Errorf("%+v", r.Err)
	}
	p.Warm()
	count(3)
	p.Close()
	p.Warm()
	count(3)
}
