package flux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
			if f.Code == gitops.UnknownField && slices.Contains(f.Kustomizations, key) {
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
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"remote", "add", "origin", url}, {"add", "-A"},
		{"-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "commit", "-q", "-m", "all"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
}

// settled waits for a Kustomization to be ready, or not, for a reason.
func settled(t *testing.T, cl client.Client, name, reason string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"})
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
				if m["reason"] == reason && (m["status"] == "True") == (reason == ready) {
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
// server adds fields, and entries to no list of these.
func difference(at string, applied, live any) []string {
	var out []string
	switch a := applied.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok {
			return []string{at}
		}
		for k, v := range a {
			below := at + "/" + strings.ReplaceAll(k, "/", "~1")
			if have, ok := l[k]; ok {
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
