package flux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

const namespace = "flux-system"

// ends is what comes of each Kustomization of testdata/repository: the codes of
// what is found wrong with it, and Flux's reason.
var ends = map[string]struct{ codes, reason string }{
	"flux-system": {"", ready},
	"base":        {"", ready},
	"plain":       {"", ready},
	"shaped":      {"", ready},
	"variables":   {"", ready},
	"custom":      {"", ready},
	// A field that there is not fails here, for nobody wants that; Flux and the API
	// server drop it without a word.
	"dropped":       {"UnknownField", ready},
	"unknown":       {"UnknownField", "ReconciliationFailed"},
	"unknown-meta":  {"UnknownField", "ReconciliationFailed"},
	"unset":         {"UnresolvedVariable", "BuildFailed"},
	"no-resource":   {"RenderFailed", "BuildFailed"},
	"no-kind":       {"RenderFailed", "BuildFailed"},
	"generate-name": {"RenderFailed", "BuildFailed"},
	"null-custom":   {"WrongType", "ReconciliationFailed"},
	"bad-name":      {"InvalidValue", "ReconciliationFailed"},
	"bad-label":     {"InvalidValue", "ReconciliationFailed"},
	"selector":      {"InvalidValue", "ReconciliationFailed"},
	"same-port":     {"InvalidValue", "ReconciliationFailed"},
	"same-env":      {"InvalidValue", "ReconciliationFailed"},
	"no-namespace":  {"MissingField", "ReconciliationFailed"},
	"words":         {"", ready},
	"null-value":    {"", ready},
	"entry-key":     {"UnknownField", ready},
	"no-path":       {"PathNotFound", "ArtifactFailed"},
	"wrong-type":    {"WrongType", "ReconciliationFailed"},
	"quoted":        {"WrongType", "ReconciliationFailed"},
	"missing-field": {"MissingField", "ReconciliationFailed"},
	"rule":          {"CELRuleFailed", "ReconciliationFailed"},
	"removed":       {"RemovedAPI", "ReconciliationFailed"},
	"twice":         {"DuplicateKey", "BuildFailed"},
	"cycle-a":       {"DependsOnCycle", "DependencyNotReady"},
	"cycle-b":       {"DependsOnCycle", "DependencyNotReady"},
	"waits":         {"", "DependencyNotReady"},
	// What can't be looked into may create what is missing: warnings.
	"dangling":  {"Unverifiable", "DependencyNotReady"},
	"no-source": {"SourceNotFound", "ArtifactFailed"},
}

// ready is the reason of a Kustomization that was applied.
const ready = "ReconciliationSucceeded"

// TestApplied compares verdicts, objects and fields.
func TestApplied(t *testing.T) {
	c := cluster.StartFlux(t)
	cl, err := client.New(c.Config(cluster.Admin), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	repository := t.TempDir()
	url := cluster.GitServer(t, repository)
	clone(t, repository, url)

	e, err := gitops.New(gitops.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	said, err := e.ValidateManifests(t.Context(), gitops.Repo{Path: repository}, gitops.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	if err := cl.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	sync, err := os.ReadFile(filepath.Join(repository, "clusters/prod/flux-system/gotk-sync.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range bytes.Split(sync, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &u.Object); err != nil {
			t.Fatal(err)
		}
		if err := cl.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}

	if len(said.Graph.Kustomizations) != len(ends) {
		t.Errorf("%d Kustomizations were found, want %d", len(said.Graph.Kustomizations), len(ends))
	}
	for key, n := range said.Graph.Kustomizations {
		want, ok := ends[key.Name]
		if !ok {
			t.Errorf("%s is not in the table", key)
			continue
		}
		var codes []string
		for _, f := range said.Findings {
			concerned := slices.Contains(f.Kustomizations, key)
			if concerned && f.Severity != gitops.SeverityPass && !slices.Contains(codes, string(f.Code)) {
				codes = append(codes, string(f.Code))
			}
		}
		if got := strings.Join(codes, " "); got != want.codes {
			t.Errorf("%s: %q is found, want %q", key, got, want.codes)
		}
		u := settled(t, cl, key.Name, want.reason)
		if want.reason != ready {
			continue
		}
		inventory, rendered := inventoryOf(t, u), []string{}
		dropped := map[string][]string{}
		for _, f := range said.Findings {
			if f.Code == gitops.UnknownField && f.Object != nil && slices.Contains(f.Kustomizations, key) {
				id := f.Object.Namespace + "_" + f.Object.Name + "_" + f.Object.Kind
				dropped[id] = append(dropped[id], f.Field)
			}
		}
		for _, data := range n.Inspect().Rendered {
			o := &unstructured.Unstructured{}
			if err := json.Unmarshal(data, &o.Object); err != nil {
				t.Fatal(err)
			}
			rendered = append(rendered, idOf(o))
			live := &unstructured.Unstructured{}
			live.SetGroupVersionKind(o.GroupVersionKind())
			if err := cl.Get(t.Context(), client.ObjectKeyFromObject(o), live); err != nil {
				t.Errorf("%s: %v", key, err)
				continue
			}
			missing := difference("", o.Object, live.Object)
			if want := dropped[o.GetNamespace()+"_"+o.GetName()+"_"+o.GetKind()]; !slices.Equal(missing, slices.Sorted(slices.Values(want))) {
				t.Errorf("%s: %s differs from the cluster's at %q, want %q: rendered %s, applied %v", key, idOf(o), missing, want, data, live.Object)
			}
		}
		slices.Sort(rendered)
		if !slices.Equal(rendered, inventory) {
			t.Errorf("%s: rendered %q, Flux applied %q", key, rendered, inventory)
		}
	}
	if !t.Failed() {
		t.Run("a change", func(t *testing.T) { changed(t, e, cl, repository) })
	}
}

// changed commits a change and compares what is said of it with what becomes of the
// objects in the cluster.
func changed(t *testing.T, e *gitops.Engine, cl client.Client, repository string) {
	before := states(t, cl)
	edit := func(file, from, to string) {
		t.Helper()
		path := filepath.Join(repository, file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(data, []byte(from)) {
			t.Fatalf("%s has no %q", file, from)
		}
		if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit("shaped/base/objects.yaml", "key: value", "key: other")
	edit("shaped/overlay/notes.txt", "some text", "other text")
	edit("base/settings.yaml", "REGION: north", "REGION: south")
	edit("base/ignored.txt", "no", "still no")
	edit("plain/never.yaml", "value", "other")
	edit("plain/a.yaml", "name: plain", "name: plainer")
	for _, file := range []string{"clusters/prod/custom.yaml", "plain/deeper/b.yml"} {
		if err := os.Remove(filepath.Join(repository, file)); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, repository, "a change")
	head := strings.TrimSpace(git(t, repository, "rev-parse", "HEAD"))
	said, err := e.ComputeImpact(t.Context(), gitops.Repo{Path: repository, Ref: "HEAD"}, "HEAD~1")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, a := range said.DirectlyAffected {
		if ends[a.Name].reason != ready {
			continue // Flux applies nothing of it, before and after
		}
		for _, o := range a.Objects {
			want = append(want, fmt.Sprintf("%s %s %s/%s", o.Change, o.Kind, o.Namespace, hash.ReplaceAllString(o.Name, "")))
		}
	}
	slices.Sort(want)

	// While Kustomizations wait for each other, a new revision of their source wakes
	// none of those that use it: each has to be asked.
	request(t, cl, "GitRepository", "flux-system")
	revision := "main@sha1:" + head
	for deadline := time.Now().Add(time.Minute); artifactOf(t, cl) != revision; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the source is at %s, want %s", artifactOf(t, cl), revision)
		}
	}
	for name := range ends {
		request(t, cl, "Kustomization", name)
	}
	// All that were ready are so at the new commit, but for the one that is gone.
	var got []string
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		late := behind(t, cl, revision)
		got = differences(before, states(t, cl))
		if len(late) == 0 && slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("said %q, in the cluster %q; not at the commit yet: %q", want, got, late)
			return
		}
	}
}

// object is an empty object of Flux in its namespace.
func object(kind, name string) *unstructured.Unstructured {
	group := "kustomize.toolkit.fluxcd.io"
	if kind == "GitRepository" {
		group = "source.toolkit.fluxcd.io"
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// request asks Flux to look at an object now.
func request(t *testing.T, cl client.Client, kind, name string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339Nano))
	if err := cl.Patch(t.Context(), object(kind, name), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

// artifactOf is the revision that the source has fetched.
func artifactOf(t *testing.T, cl client.Client) string {
	t.Helper()
	u := object("GitRepository", "flux-system")
	if err := cl.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		t.Fatal(err)
	}
	revision, _, _ := unstructured.NestedString(u.Object, "status", "artifact", "revision")
	return revision
}

// behind are the Kustomizations that are to be ready and are not at a revision, or
// are to be gone and are there.
func behind(t *testing.T, cl client.Client, revision string) (out []string) {
	t.Helper()
	for name, end := range ends {
		u := object("Kustomization", name)
		err := cl.Get(t.Context(), client.ObjectKeyFromObject(u), u)
		at, _, _ := unstructured.NestedString(u.Object, "status", "lastAppliedRevision")
		switch {
		case name == "custom":
			if !apierrors.IsNotFound(err) {
				out = append(out, name)
			}
		case end.reason == ready && (err != nil || at != revision):
			out = append(out, name+" at "+at)
		}
	}
	return out
}

// states are all objects of the inventories with what changes when they do.
func states(t *testing.T, cl client.Client) map[string]string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "KustomizationList"})
	if err := cl.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for i := range list.Items {
		entries, _, err := unstructured.NestedSlice(list.Items[i].Object, "status", "inventory", "entries")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			m, ok := e.(map[string]any)
			if !ok {
				t.Fatalf("an inventory has %v", e)
			}
			id := strings.SplitN(fmt.Sprint(m["id"]), "_", 4)
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(schema.GroupVersionKind{Group: id[2], Version: fmt.Sprint(m["v"]), Kind: id[3]})
			if err := cl.Get(t.Context(), client.ObjectKey{Namespace: id[0], Name: id[1]}, o); apierrors.IsNotFound(err) {
				continue // it is being pruned
			} else if err != nil {
				t.Fatal(err)
			}
			state := o.GetResourceVersion()
			if strings.HasSuffix(id[2], ".toolkit.fluxcd.io") {
				state = fmt.Sprint(o.GetGeneration()) // controllers write the status
			}
			out[fmt.Sprintf("%s %s/%s", id[3], id[0], id[1])] = state
		}
	}
	return out
}

// hash ends the name of what a generator makes: an impact says that such an object
// changed, where the cluster gets a new one for the old one.
var hash = regexp.MustCompile(`-[a-z0-9]{10}$`)

// differences tells two states apart as an impact does.
func differences(before, after map[string]string) []string {
	var out []string
	one := func(m map[string]string) map[string]string {
		same := map[string]string{}
		for o, state := range m {
			same[hash.ReplaceAllString(o, "")] += state
		}
		return same
	}
	before, after = one(before), one(after)
	for o, was := range before {
		switch now, there := after[o]; {
		case !there:
			out = append(out, "pruned "+o)
		case now != was:
			out = append(out, "changed "+o)
		}
	}
	for o := range after {
		if _, there := before[o]; !there {
			out = append(out, "added "+o)
		}
	}
	slices.Sort(out)
	return out
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return string(out)
}

func commit(t *testing.T, dir, message string) {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", message)
}

// clone makes a Git repository of testdata/repository whose source is url.
func clone(t *testing.T, dir, url string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS("testdata/repository")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "clusters/prod/flux-system/gotk-sync.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.ReplaceAll(data, []byte("GIT_SERVER"), []byte(url)), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "remote", "add", "origin", url)
	commit(t, dir, "all")
}

// settled waits for a Kustomization to be ready, or not, for a reason.
func settled(t *testing.T, cl client.Client, name, reason string) *unstructured.Unstructured {
	t.Helper()
	u := object("Kustomization", name)
	said := "nothing"
	for deadline := time.Now().Add(90 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err := cl.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, u); err != nil {
			said = err.Error()
			continue
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if m, ok := c.(map[string]any); ok && m["type"] == "Ready" {
				said = fmt.Sprint(m["status"], " ", m["reason"], ": ", m["message"])
				// The inventory is written a moment after.
				if m["reason"] == reason && (m["status"] == "True") == (reason == ready) && (reason != ready || len(inventoryOf(t, u)) > 0) {
					t.Logf("%s is %s", name, said)
					return u
				}
			}
		}
	}
	t.Errorf("%s is %s, want %s", name, said, reason)
	return u
}

// inventoryOf are the identities of what Flux applied: namespace_name_group_kind.
func inventoryOf(t *testing.T, u *unstructured.Unstructured) []string {
	t.Helper()
	var out []string
	entries, _, err := unstructured.NestedSlice(u.Object, "status", "inventory", "entries")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if m, ok := e.(map[string]any); ok {
			out = append(out, fmt.Sprint(m["id"]))
		}
	}
	slices.Sort(out)
	return out
}

func idOf(o *unstructured.Unstructured) string {
	gvk := o.GroupVersionKind()
	return o.GetNamespace() + "_" + o.GetName() + "_" + gvk.Group + "_" + gvk.Kind
}

// difference gives the pointers at which live lacks what was applied, sorted. The
// server adds fields, and entries to no list of these; null asks for a default.
func difference(at string, applied, live any) []string {
	var out []string
	switch a := applied.(type) {
	case nil:
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return []string{at}
		}
		for k, v := range a {
			below := at + "/" + strings.ReplaceAll(k, "/", "~1")
			if have, ok := l[k]; ok || v == nil {
				out = append(out, difference(below, v, have)...)
			} else {
				out = append(out, below)
			}
		}
	case []any:
		l, ok := live.([]any)
		if !ok || len(l) != len(a) {
			return []string{at}
		}
		for i := range a {
			out = append(out, difference(fmt.Sprint(at, "/", i), a[i], l[i])...)
		}
	default:
		if fmt.Sprint(applied) != fmt.Sprint(live) {
			return []string{at}
		}
	}
	slices.Sort(out)
	return out
}
