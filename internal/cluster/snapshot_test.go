package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// write makes a folder of files and returns its path.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// object is a small object as YAML in one line.
func object(apiVersion, kind, namespace, name string) string {
	return fmt.Sprintf("{apiVersion: %q, kind: %q, metadata: {namespace: %q, name: %q}}\n", apiVersion, kind, namespace, name)
}

const hecate = "hecate.dev/v1alpha1"

func listOf(apiVersion, kind string) *unstructured.UnstructuredList {
	l := &unstructured.UnstructuredList{}
	l.SetAPIVersion(apiVersion)
	l.SetKind(kind + "List")
	return l
}

// names lists the namespace/name of all objects of a kind.
func names(t *testing.T, c client.Reader, apiVersion, kind string, opts ...client.ListOption) []string {
	t.Helper()
	l := listOf(apiVersion, kind)
	if err := c.List(t.Context(), l, opts...); err != nil {
		t.Fatalf("listing %s: %v", kind, err)
	}
	var got []string
	for _, o := range l.Items {
		got = append(got, o.GetNamespace()+"/"+o.GetName())
	}
	return got
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestSnapshotReadsEveryForm(t *testing.T) {
	dir := write(t, map[string]string{
		"a.yaml": "# a comment\n---\n" + object(hecate, "Gate", "one", "dev") + "---\n\n--- # another\n" + object(hecate, "Gate", "one", "prod") + "...\n",
		"sub/list.yml": "apiVersion: v1\nkind: List\nitems:\n- " + object(hecate, "Bundle", "one", "web-2") + "- " + object(hecate, "Bundle", "one", "web-1") +
			"- {apiVersion: v1, kind: List, items: [" + strings.TrimSpace(object(hecate, "Bundle", "one", "web-3")) + "]}\n",
		"typed.json":     `{"apiVersion":"hecate.dev/v1alpha1","kind":"BeaconList","metadata":{},"items":[{"metadata":{"name":"web","namespace":"one"}}]}`,
		"stream.json":    `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"one"}}` + "\n" + `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"v"}}`,
		"null.yaml":      "apiVersion: flagger.app/v1beta1\nkind: CanaryList\nitems:\n",
		"README.md":      "not: [an object",
		"meta.json":      `{"capturedAt": "2026-12-01T01:19:50.524947+01:00", "by": "hand"}`,
		"sub/meta.json":  `{"capturedAt": "2020-01-01T00:00:00Z"}`,
		".git/x.yaml":    "not: an object",
		".hidden.yaml":   "not: an object",
		"copy/same.yaml": object(hecate, "Gate", "one", "dev"),
		"nons.yaml":      "{apiVersion: hecate.dev/v1alpha1, kind: Passage, metadata: {name: p}}",
		"onlist.yaml":    "{apiVersion: example.com/v1, kind: AllowList, metadata: {name: a}, items: [x]}",
	})
	s := open(t, Options{Snapshot: dir})
	expect(t, "gates", names(t, s.Client, hecate, "Gate"), "one/dev", "one/prod")
	expect(t, "bundles", names(t, s.Client, hecate, "Bundle"), "one/web-1", "one/web-2", "one/web-3")
	expect(t, "beacons", names(t, s.Client, hecate, "Beacon"), "one/web")
	expect(t, "widgets", names(t, s.Client, "example.com/v1", "Widget"), "/v", "one/w")
	expect(t, "canaries", names(t, s.Client, "flagger.app/v1beta1", "Canary"))
	expect(t, "passages", names(t, s.Client, hecate, "Passage"), "default/p")
	expect(t, "allow lists", names(t, s.Client, "example.com/v1", "AllowList"), "/a")
	want := time.Date(2026, 12, 1, 0, 19, 50, 524947000, time.UTC)
	if got := s.Now(); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("clock %v, want %v", got, want)
	}
	if s.Cluster != filepath.Base(dir) || s.Mode != ModeSnapshot || !s.Offline || s.HTTPClient != nil || s.Namespace != "default" || len(s.Warnings) != 0 {
		t.Errorf("source %+v", s)
	}
	if who, err := s.Identity(t.Context()); who != "snapshot" || err != nil {
		t.Errorf("identity %q, %v", who, err)
	}

	file := open(t, Options{Snapshot: filepath.Join(dir, "sub", "list.yml")})
	expect(t, "bundles of the file", names(t, file.Client, hecate, "Bundle"), "one/web-1", "one/web-2", "one/web-3")
	if file.Cluster != "list.yml" || file.Namespace != "one" {
		t.Errorf("source %+v", file)
	}
	if len(file.Warnings) != 1 || !strings.Contains(file.Warnings[0], "--now") || time.Since(file.Now()) > time.Minute {
		t.Errorf("clock %v, warnings %q", file.Now(), file.Warnings)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	set := open(t, Options{Snapshot: dir, Now: &at, Namespace: "two"})
	if !set.Now().Equal(at) || set.Namespace != "two" || len(set.Warnings) != 0 {
		t.Errorf("source %+v at %v", set, set.Now())
	}
}

func TestSnapshotErrors(t *testing.T) {
	gate := object(hecate, "Gate", "one", "dev")
	for name, tc := range map[string]struct {
		files map[string]string
		file  string
		doc   int
		line  int
		says  string
	}{
		"bad YAML":          {map[string]string{"a.yaml": gate + "---\n" + gate + "---\n# x\nb:\n  - c\n d\n"}, "a.yaml", 3, 7, "yaml"},
		"bad JSON":          {map[string]string{"a.json": "{\n\"kind\": }"}, "a.json", 1, 2, "invalid character"},
		"cut JSON":          {map[string]string{"a.json": "{\n\"kind\": 1"}, "a.json", 1, 2, "unexpected EOF"},
		"second JSON":       {map[string]string{"a.json": "\n{\"apiVersion\":\"v1\",\n\"kind\":\"Secret\",\"metadata\":{\"name\":\"x\"}}\n\n{\n  \"kind\": }"}, "a.json", 2, 6, "invalid character"},
		"JSON array":        {map[string]string{"a.json": "\n[{}]"}, "a.json", 1, 2, "an array"},
		"scalar":            {map[string]string{"a.yaml": "hello"}, "a.yaml", 1, 1, "a string"},
		"no kind":           {map[string]string{"a.yaml": "apiVersion: v1\nmetadata: {name: x}"}, "a.yaml", 1, 1, "kind is missing"},
		"no name":           {map[string]string{"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {}"}, "a.yaml", 1, 1, "metadata.name"},
		"no metadata":       {map[string]string{"a.yaml": "apiVersion: v1\nkind: Secret"}, "a.yaml", 1, 1, "without metadata"},
		"bad apiVersion":    {map[string]string{"a.yaml": object("a/b/c", "X", "", "x")}, "a.yaml", 1, 1, "apiVersion"},
		"other version":     {map[string]string{"a.yaml": object("hecate.dev/v1", "Gate", "one", "dev")}, "a.yaml", 1, 1, "valid: hecate.dev/v1alpha1"},
		"wrong type":        {map[string]string{"a.yaml": gate + "---\napiVersion: hecate.dev/v1alpha1\nkind: Gate\nmetadata: {name: x}\nspec: {auto: often}"}, "a.yaml", 2, 2, "Gate default/x"},
		"bad labels":        {map[string]string{"a.yaml": "apiVersion: e.com/v1\nkind: W\nmetadata: {name: x, labels: [a]}"}, "a.yaml", 1, 1, "metadata"},
		"bad item":          {map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: x}}, 3]"}, "a.yaml", 1, 1, "item 2"},
		"key twice":         {map[string]string{"a.yaml": "apiVersion: v1\nkind: Secret\nkind: Gate"}, "a.yaml", 1, 3, "already"},
		"object twice":      {map[string]string{"a.yaml": gate, "b.yaml": strings.Replace(gate, "}}", "}, spec: {auto: true}}", 1)}, "b.yaml", 0, 0, "stands in a.yaml too"},
		"meta is no JSON":   {map[string]string{"meta.json": "{"}, "meta.json", 0, 0, "capturedAt"},
		"meta without time": {map[string]string{"meta.json": `{"capturedAt": "yesterday"}`}, "meta.json", 0, 0, "yesterday"},
	} {
		_, err := Open(t.Context(), Options{Snapshot: write(t, tc.files)})
		var got *SnapshotError
		if !errors.As(err, &got) {
			t.Errorf("%s: got %v, want a *SnapshotError", name, err)
			continue
		}
		if got.File != tc.file || got.Document != tc.doc || got.Line != tc.line || !strings.Contains(err.Error(), tc.says) || Classify(err) != CodeInvalidArgument {
			t.Errorf("%s: %q (%s, document %d, line %d, %s), want %s, %d, %d, saying %q", name, err, got.File, got.Document, got.Line, Classify(err), tc.file, tc.doc, tc.line, tc.says)
		}
	}
}

func TestSnapshotLimits(t *testing.T) {
	gate := object(hecate, "Gate", "one", "dev")
	fsys := fstest.MapFS{"a.yaml": {Data: []byte(gate)}, "b.yaml": {Data: []byte(gate)}}
	size := int64(len(gate))
	for name, tc := range map[string]struct {
		file, total int64
		failing     string
	}{
		"fits":        {size, 2 * size, ""},
		"one file":    {size - 1, 2 * size, "a.yaml"},
		"all of them": {size, 2*size - 1, "b.yaml"},
	} {
		l := loader{fsys: fsys, store: newStore(), maxFile: tc.file, maxTotal: tc.total}
		err := l.folder(t.Context())
		var got *SnapshotError
		switch {
		case tc.failing == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case tc.failing != "" && (!errors.As(err, &got) || got.File != tc.failing || Classify(err) != CodeTooLarge):
			t.Errorf("%s: %v, want TooLarge at %s", name, err, tc.failing)
		}
	}
}

func TestSnapshotSymlinks(t *testing.T) {
	outside := write(t, map[string]string{"gate.yaml": object(hecate, "Gate", "one", "outside"), "dir/x.yaml": object(hecate, "Gate", "one", "x")})
	inside := write(t, map[string]string{"..data/gate.yaml": object(hecate, "Gate", "one", "inside"), "real/b.yaml": object(hecate, "Gate", "one", "b")})
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(inside, name)); err != nil {
			t.Skip("no symlinks here")
		}
	}
	link("..data/gate.yaml", "gate.yaml") // a mounted ConfigMap
	link("real", "linked")
	s := open(t, Options{Snapshot: inside})
	expect(t, "gates", names(t, s.Client, hecate, "Gate"), "one/b", "one/inside")
	if len(s.Warnings) != 2 || !strings.Contains(s.Warnings[0], "linked") {
		t.Errorf("warnings %q", s.Warnings)
	}
	expect(t, "a named link", names(t, open(t, Options{Snapshot: filepath.Join(inside, "gate.yaml")}).Client, hecate, "Gate"), "one/inside")

	link(filepath.Join(outside, "gate.yaml"), "z.yaml")
	_, err := Open(t.Context(), Options{Snapshot: inside})
	var got *SnapshotError
	if !errors.As(err, &got) || got.File != "z.yaml" {
		t.Errorf("a link out of the folder: %v", err)
	}
}

func TestSnapshotCountsUnknownFields(t *testing.T) {
	gate := "apiVersion: hecate.dev/v1alpha1\nkind: Gate\nmetadata: {name: dev, namespace: one, managedFields: [{manager: x}]}\n" +
		"spec: {colour: red, admits: [{from: {beacon: web, far: 1}}]}\nstatus: {health: {status: Healthy, details: {any: {thing: 1}}}}\n"
	at := time.Now()
	s := open(t, Options{Snapshot: write(t, map[string]string{"a.yaml": gate}), Now: &at})
	if len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], "2 field(s)") || !strings.Contains(s.Warnings[0], "Gate one/dev") {
		t.Errorf("warnings %q", s.Warnings)
	}
	var g v1alpha1.Gate
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "dev"}, &g); err != nil {
		t.Fatal(err)
	}
	if g.Spec.Admits[0].From.Beacon != "web" || g.ManagedFields != nil {
		t.Errorf("gate %+v", g)
	}
}

func TestSnapshotDropsSecretValues(t *testing.T) {
	text := "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: one, annotations: {kubectl.kubernetes.io/last-applied-configuration: hunter2, keep: this}}\n" +
		"data: {token: aHVudGVyMg==}\nstringData: {password: hunter2}\ntype: Opaque\n"
	s := open(t, Options{Snapshot: write(t, map[string]string{"a.yaml": text})})
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	var typed corev1.Secret
	key := client.ObjectKey{Namespace: "one", Name: "s"}
	for _, o := range []client.Object{u, &typed} {
		if err := s.Client.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
		all := fmt.Sprintf("%+v", o)
		if strings.Contains(all, "hunter2") || strings.Contains(all, "aHVudGVyMg") {
			t.Errorf("a value is left: %s", all)
		}
	}
	if v, ok := typed.Data["token"]; !ok || len(v) != 0 || typed.Annotations["keep"] != "this" || typed.Type != corev1.SecretTypeOpaque {
		t.Errorf("secret %+v", typed)
	}
}

// Absence has three meanings, in a snapshot too.
func TestSnapshotKindNotInstalled(t *testing.T) {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\nspec: {group: example.com, names: {kind: Widget}}\n"
	for name, tc := range map[string]struct {
		text             string
		apiVersion, kind string
		want             Code
	}{
		"only gates, passages asked":  {object(hecate, "Gate", "a", "b"), hecate, "Passage", ""},
		"nothing of Hecate":           {object("v1", "ConfigMap", "a", "b"), hecate, "Gate", CodeKindNotInstalled},
		"an unknown kind of Hecate":   {object(hecate, "Gate", "a", "b"), hecate, "Portal", CodeKindNotInstalled},
		"an empty typed list":         {"{apiVersion: hecate.dev/v1alpha1, kind: GateList, items: []}", hecate, "Gate", ""},
		"an empty List says nothing":  {"{apiVersion: v1, kind: List, items: []}", hecate, "Gate", CodeKindNotInstalled},
		"no Flux":                     {object(hecate, "Gate", "a", "b"), "kustomize.toolkit.fluxcd.io/v1", "Kustomization", CodeKindNotInstalled},
		"a neighbour of the group":    {object("source.toolkit.fluxcd.io/v1", "Bucket", "a", "b"), "source.toolkit.fluxcd.io/v1", "GitRepository", ""},
		"another version of the kind": {object("source.toolkit.fluxcd.io/v1beta2", "OCIRepository", "a", "b"), "source.toolkit.fluxcd.io/v1", "OCIRepository", ""},
		"its CRD":                     {crd, "example.com/v1", "Widget", ""},
		"built in":                    {object(hecate, "Gate", "a", "b"), "v1", "Secret", ""},
	} {
		s := open(t, Options{Snapshot: write(t, map[string]string{"a.yaml": tc.text})})
		if err := s.Client.List(t.Context(), listOf(tc.apiVersion, tc.kind)); Classify(err) != tc.want {
			t.Errorf("%s: LIST got %q, want %q (%v)", name, Classify(err), tc.want, err)
		}
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(schema.FromAPIVersionAndKind(tc.apiVersion, tc.kind))
		want := tc.want
		if want == "" {
			want = CodeNotFound
		}
		if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "nope"}, u); Classify(err) != want {
			t.Errorf("%s: GET got %q, want %q (%v)", name, Classify(err), want, err)
		}
	}
}

// A snapshot opens no connection, whatever the machine's configuration offers.
func TestSnapshotOpensNoConnection(t *testing.T) {
	guard := http.DefaultTransport
	defer func() { http.DefaultTransport = guard }()
	refuse := roundTripper(func(r *http.Request) (*http.Response, error) {
		t.Errorf("a connection to %s", r.URL)
		return nil, errors.New("refused")
	})
	http.DefaultTransport = refuse
	t.Setenv("KUBECONFIG", kubeconfig(t, "trap", "http://127.0.0.1:1", "", "trap"))
	s := open(t, Options{
		Snapshot: write(t, map[string]string{"a.yaml": object(hecate, "Gate", "one", "dev")}),
		Wrap:     func(http.RoundTripper) http.RoundTripper { return refuse },
	})
	expect(t, "gates", names(t, s.Client, hecate, "Gate"), "one/dev")
	if _, err := s.Identity(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Client.Create(t.Context(), &v1alpha1.Passage{}); Classify(err) != CodeRefused {
		t.Errorf("create: %v", err)
	}
}

func TestOpenRespectsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, Options{Snapshot: write(t, map[string]string{"a.yaml": ""})})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Every folder that a real controller filled loads, and holds what its files
// hold.
func TestScenariosLoad(t *testing.T) {
	folders, err := filepath.Glob("../../../shared/scenarios/*/meta.json")
	if err != nil || len(folders) == 0 {
		t.Skip("no scenarios beside the repository")
	}
	for _, meta := range folders {
		dir := filepath.Dir(meta)
		s := open(t, Options{Snapshot: dir})
		if len(s.Warnings) != 0 {
			t.Errorf("%s: warnings %q", s.Cluster, s.Warnings)
		}
		if s.Namespace != s.Cluster {
			t.Errorf("%s: namespace %q", s.Cluster, s.Namespace)
		}
		if y := s.Now().Year(); y != 2026 {
			t.Errorf("%s: clock %v", s.Cluster, s.Now())
		}
		for kind, file := range map[string]string{"Beacon": "beacons", "Bundle": "bundles", "Gate": "gates", "Passage": "passages"} {
			data, err := os.ReadFile(filepath.Join(dir, file+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Count(string(data), "\n- apiVersion: ")
			if got := len(names(t, s.Client, hecate, kind)); got != want {
				t.Errorf("%s: %d of kind %s, want %d", s.Cluster, got, kind, want)
			}
		}
	}
	whole := open(t, Options{Snapshot: "../../../shared/scenarios"})
	if got := len(names(t, whole.Client, hecate, "Gate")); got < len(folders) {
		t.Errorf("all folders at once: %d gates", got)
	}
}
