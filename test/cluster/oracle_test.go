package cluster

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"gopkg.in/yaml.v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/schema"
)

// tables are the manifests with known faults, and the sound ones, of package gitops.
const tables = "../../internal/gitops/testdata"

// known are the objects that are refused and don't fail on purpose, and why.
var known = map[string]string{
	"broken/removed-flux-version.yaml HelmRepository charts": "a warning: an older Flux serves it",
	"sound/uncovered-kind.yaml Mystery what":                 "no CRD, so it is counted as uncovered",
}

// excused are changes that a dry run takes and that fail here on purpose, and why.
var excused = map[string]string{
	"Service /spec/ports/0/nodePort = -1": "a dry run allocates no port; a real request is refused",
}

// verdict is what both sides say of one object.
type verdict struct {
	file, object string
	refusal      error // of the API server, with strict validation
	lenient      bool  // it takes the object without strict validation
	fails        []schema.Violation
}

// TestOracle asks the API server about every object of the tables, as
// kustomize-controller does, and compares with the verdict of package schema: what
// fails there has to be refused here. What is refused and passes is listed: each
// is a rule that could be added.
func TestOracle(t *testing.T) {
	c, set := oracle(t)
	var all []verdict
	for _, dir := range []string{"broken", "sound"} {
		files, err := filepath.Glob(filepath.Join(tables, dir, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no manifests in %s: %v", dir, err)
		}
		for _, file := range files {
			all = append(all, c.judge(t, set, file)...)
		}
	}
	report(t, all)
	for _, v := range all {
		if v.refusal == nil && len(v.fails) > 0 {
			t.Errorf("%s: the API server takes it, and it fails: %+v", v.id(), v.fails)
		}
	}
}

func (v verdict) id() string { return v.file + " " + v.object }

// oracle starts the API server with Flux's CRDs and the namespaces of the tables,
// and opens the schemas of its version.
func oracle(t *testing.T) (*Cluster, *schema.Set) {
	t.Helper()
	c := Start(t)
	set, err := schema.Open(schema.Options{KubernetesVersion: c.version(t)})
	if err != nil {
		t.Fatal(err)
	}
	flux, err := schema.FluxCRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range flux {
		if err := c.installCRD(t, crd); err != nil {
			t.Fatal(err)
		}
	}
	for _, ns := range []string{"shop", "other", "flux-system"} {
		if err := c.ensureNamespace(t, ns); err != nil {
			t.Fatal(err)
		}
	}
	return c, set
}

func (c *Cluster) version(t *testing.T) string {
	t.Helper()
	version := mustAsk(t, c, Viewer, "GET", "/version", "")
	s, _ := version["gitVersion"].(string)
	return s
}

// installCRD creates a CRD, unless there is one, and waits for it. A CRD that the
// API server refuses is one of the objects to judge.
func (c *Cluster) installCRD(t *testing.T, obj map[string]any) error {
	t.Helper()
	o := &unstructured.Unstructured{Object: obj}
	k, err := kindOf(o)
	if err != nil {
		return err
	}
	switch err := c.client.Create(t.Context(), o.DeepCopy()); {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return err
	}
	return c.waitServed(k)
}

// textual are the codes of files that hold no objects.
var textual = regexp.MustCompile(`(?m)^# want: \S+ (InvalidYAML|DuplicateKey|RenderFailed) `)

// judge gives the verdicts on the objects of a file.
func (c *Cluster) judge(t *testing.T, set *schema.Set, file string) []verdict {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if textual.Match(data) {
		return nil
	}
	objects := plainObjects(t, file, data)
	crds, problems := set.NewCRDs(objects)
	var out []verdict
	for _, obj := range objects {
		if obj["kind"] == "CustomResourceDefinition" {
			// A refusal is judged below, like that of any object.
			if err := c.installCRD(t, obj); err != nil && !apierrors.IsInvalid(err) && !meta.IsNoMatchError(err) {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
	for _, obj := range objects {
		if obj["sops"] != nil {
			continue // what is applied is not known here
		}
		o := &unstructured.Unstructured{Object: obj}
		v := verdict{file: strings.TrimPrefix(file, tables+"/"), object: fmt.Sprint(obj["kind"], " ", o.GetName())}
		for _, x := range set.Validate(t.Context(), obj, crds).Violations {
			if x.Severity == schema.Fail {
				v.fails = append(v.fails, x)
			}
		}
		for _, p := range problems {
			if obj["kind"] == "CustomResourceDefinition" && p.Name == o.GetName() {
				v.fails = append(v.fails, schema.Violation{Code: p.Code, Field: p.Field, Rule: "CRD", Message: p.Message, Severity: schema.Fail})
			}
		}
		v.refusal = c.dryRun(t, obj, client.FieldValidation("Strict"))
		v.lenient = v.refusal != nil && c.dryRun(t, obj) == nil
		out = append(out, v)
	}
	return out
}

// plainObjects decodes as kustomize does, and takes lists apart.
func plainObjects(t *testing.T, file string, data []byte) []map[string]any {
	t.Helper()
	var out []map[string]any
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc map[string]any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(raw); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if !o.IsList() {
			out = append(out, o.Object)
			continue
		}
		err = o.EachListItem(func(item runtime.Object) error {
			out = append(out, item.(*unstructured.Unstructured).Object)
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

// dryRun applies an object as kustomize-controller does, without storing it. The
// controller takes the status away.
func (c *Cluster) dryRun(t *testing.T, obj map[string]any, more ...client.PatchOption) error {
	t.Helper()
	o := (&unstructured.Unstructured{Object: obj}).DeepCopy()
	if o.GetKind() != "CustomResourceDefinition" {
		delete(o.Object, "status")
	}
	raw, err := json.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	if mapping, err := c.client.RESTMapper().RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version); err != nil {
		return err
	} else if mapping.Scope.Name() == meta.RESTScopeNameNamespace && o.GetNamespace() == "" {
		o.SetNamespace("default")
	}
	options := append([]client.PatchOption{client.DryRunAll, client.ForceOwnership, client.FieldOwner("kustomize-controller")}, more...)
	err = c.client.Patch(t.Context(), o, client.RawPatch(types.ApplyPatchType, raw), options...)
	// Items that apply can't tell apart and values of a wrong type are refused with
	// an internal error.
	refused := err != nil && (strings.Contains(err.Error(), "failed to create typed patch object") || strings.Contains(err.Error(), "failed to convert new object"))
	if !refused && (apierrors.IsInternalError(err) || apierrors.IsTimeout(err)) {
		t.Fatalf("%s %s: no verdict: %v", o.GetKind(), o.GetName(), err)
	}
	return err
}

// report prints both verdicts by kind of rule, and what is not agreed on.
func report(t *testing.T, all []verdict) {
	t.Helper()
	type row struct{ objects, both, lenient, passed, failed int }
	rows := map[string]*row{}
	count := func(kind string, v verdict) {
		r := rows[kind]
		if r == nil {
			r = &row{}
			rows[kind] = r
		}
		r.objects++
		switch {
		case v.refusal != nil && len(v.fails) > 0:
			r.both++
		case v.refusal != nil:
			r.passed++
		case len(v.fails) > 0:
			r.failed++
		}
		if v.lenient {
			r.lenient++
		}
	}
	var lists []string
	for _, v := range all {
		kinds := map[string]bool{}
		for _, x := range v.fails {
			kinds[x.Code+" ("+x.Rule+")"] = true
		}
		switch {
		case v.refusal != nil && len(v.fails) == 0:
			kinds["no failure"] = true
			lists = append(lists, fmt.Sprintf("refused, passes here (%s): %s: %v", cmp.Or(known[v.id()], "a rule is missing"), v.id(), v.refusal))
		case len(v.fails) == 0:
			kinds["no failure"] = true
		}
		for kind := range kinds {
			count(kind, v)
		}
		count("total", v)
		for _, x := range unconfirmed(v) {
			lists = append(lists, fmt.Sprintf("refused, but not for %s %s: %s: %v", x.Code, x.Field, v.id(), v.refusal))
		}
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kind of rule\tobjects\trefused and failed\t(only by strict validation)\trefused, passed\taccepted, failed")
	names := make([]string, 0, len(rows))
	for name := range rows {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(strings.Index(a, "total"), strings.Index(b, "total")), cmp.Compare(a, b))
	})
	for _, name := range names {
		r := rows[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\n", name, r.objects, r.both, r.lenient, r.passed, r.failed)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(lists)
	t.Logf("%d objects\n%s\n%s", len(all), b.String(), strings.Join(lists, "\n"))
}

// unconfirmed are failures of an object with several whose field the refusal does
// not name. A value that can't be decoded hides the others.
func unconfirmed(v verdict) []schema.Violation {
	if v.refusal == nil || len(v.fails) < 2 {
		return nil
	}
	var out []schema.Violation
	for _, x := range v.fails {
		steps := strings.Split(x.Field, "/")
		name := steps[len(steps)-1]
		if strings.Trim(name, "0123456789") == "" && len(steps) > 1 {
			name = steps[len(steps)-2]
		}
		if !strings.Contains(v.refusal.Error(), strings.NewReplacer("~1", "/", "~0", "~").Replace(name)) {
			out = append(out, x)
		}
	}
	return out
}

// TestOracleMutations changes the sound objects in every field: gone, renamed, of
// another type. Whatever of it the API server takes must not fail.
func TestOracleMutations(t *testing.T) {
	c, set := oracle(t)
	files, err := filepath.Glob(filepath.Join(tables, "sound", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	asked, refused, passed := 0, 0, map[string]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		objects := plainObjects(t, file, data)
		crds, _ := set.NewCRDs(objects)
		for _, obj := range objects {
			if obj["kind"] == "CustomResourceDefinition" {
				if err := c.installCRD(t, obj); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if obj["sops"] != nil {
				continue
			}
			mutations(obj, func(what string) {
				asked++
				refusal := c.dryRun(t, obj, client.FieldValidation("Strict"))
				if refusal != nil {
					refused++
				}
				var fails []schema.Violation
				for _, x := range set.Validate(t.Context(), obj, crds).Violations {
					if x.Severity == schema.Fail {
						fails = append(fails, x)
					}
				}
				switch {
				case refusal == nil && len(fails) > 0 && excused[fmt.Sprintf("%v %s", obj["kind"], what)] == "":
					t.Errorf("%s %v %s: the API server takes it, and it fails: %+v", file, obj["kind"], what, fails)
				case refusal != nil && len(fails) == 0:
					passed[fmt.Sprintf("%v %s: %.300v", obj["kind"], what, refusal)]++
				}
			})
		}
	}
	lists := slices.Sorted(maps.Keys(passed))
	t.Logf("%d asked, %d refused, %d of them pass here\n%s", asked, refused, len(lists), strings.Join(lists, "\n"))
}

// mutations changes an object in one place at a time, calls, and takes the change
// back. What says which object it is stays.
func mutations(obj map[string]any, do func(what string)) {
	var walk func(at string, v any)
	walk = func(at string, v any) {
		switch x := v.(type) {
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(x)) {
				p, old := at+"/"+k, x[k]
				if p == "/apiVersion" || p == "/kind" || p == "/metadata" || p == "/metadata/name" || p == "/metadata/namespace" {
					if p == "/metadata" {
						walk(p, old)
					}
					continue
				}
				walk(p, old)
				delete(x, k)
				do(p + " gone")
				x[k+"x"] = old
				do(p + " renamed")
				delete(x, k+"x")
				for _, other := range []any{"", "Some Text", int64(-1), int64(7), 1.5, true, nil, []any{}, map[string]any{}, []any{"a"}, map[string]any{"a": "b"}} {
					x[k] = other
					do(fmt.Sprintf("%s = %#v", p, other))
				}
				x[k] = old
			}
		case []any:
			for i := range x {
				walk(fmt.Sprintf("%s/%d", at, i), x[i])
			}
		}
	}
	walk("", obj)
}
