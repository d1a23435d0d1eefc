package cluster

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"sort"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// entry is one object of a store.
type entry struct {
	namespace, name string
	object          *unstructured.Unstructured
	typed           client.Object // nil for kinds that Scheme does not know
	file            string        // where it was read
}

func (e *entry) compare(namespace, name string) int {
	return cmp.Or(cmp.Compare(e.namespace, namespace), cmp.Compare(e.name, name))
}

// store holds the objects of a snapshot by group and kind, each kind sorted by
// namespace and name. Once it is loaded it changes in a World only, which guards
// it; an entry never changes.
//
// The version is no part of the index: an API server serves an object in every
// version of its kind, and a dump holds the one that kubectl preferred.
type store struct {
	// keepSecrets is for the demo, whose made-up token its own evidence server
	// asks for. A snapshot is of somebody's cluster and keeps none.
	keepSecrets bool
	kinds       map[schema.GroupKind][]*entry
	// listed are kinds without objects of which the dump still says that they
	// are installed: a CRD, or an empty list of that kind.
	listed map[schema.GroupKind]bool
	groups map[string]bool // API groups of the objects

	unknownFields int
	firstUnknown  string // an example for the warning
}

func newStore() *store {
	return &store{
		kinds:  map[schema.GroupKind][]*entry{},
		listed: map[schema.GroupKind]bool{},
		groups: map[string]bool{},
	}
}

// add stores one decoded object. The error says what is wrong with the object,
// without its place.
func (s *store) add(content map[string]any, file string) error {
	u := &unstructured.Unstructured{Object: content}
	gvk := u.GroupVersionKind()
	if err := checkIdentity(u, gvk); err != nil {
		return err
	}
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	if gvk.GroupKind() == (schema.GroupKind{Kind: "Secret"}) && !s.keepSecrets {
		dropSecretValues(u)
	}
	placeInNamespace(u, gvk)
	e := &entry{namespace: u.GetNamespace(), name: u.GetName(), object: u, file: file}
	if err := s.decodeTyped(e, gvk); err != nil {
		return fmt.Errorf("%s: %w", describe(u), err)
	}
	gk := gvk.GroupKind()
	s.kinds[gk] = append(s.kinds[gk], e)
	s.groups[gk.Group] = true
	if gk == (schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}) {
		group, _, _ := unstructured.NestedString(content, "spec", "group")
		kind, _, _ := unstructured.NestedString(content, "spec", "names", "kind")
		s.listed[schema.GroupKind{Group: group, Kind: kind}] = true
	}
	return nil
}

// finish sorts the store and refuses an object that stands in it twice with
// different content: neither can be trusted to be the newer one.
func (s *store) finish() error {
	for _, gk := range s.sortedKinds() {
		entries := s.kinds[gk]
		slices.SortStableFunc(entries, func(a, b *entry) int { return a.compare(b.namespace, b.name) })
		unique := entries[:0]
		for _, e := range entries {
			if len(unique) == 0 || unique[len(unique)-1].compare(e.namespace, e.name) != 0 {
				unique = append(unique, e)
				continue
			}
			first := unique[len(unique)-1]
			if !reflect.DeepEqual(first.object.Object, e.object.Object) {
				return &SnapshotError{File: e.file, Code: CodeInvalidArgument, Err: fmt.Errorf(
					"%s stands in %s too, with other content; keep one of the two", describe(e.object), first.file)}
			}
		}
		s.kinds[gk] = unique
	}
	return nil
}

func (s *store) sortedKinds() []schema.GroupKind {
	kinds := make([]schema.GroupKind, 0, len(s.kinds))
	for gk := range s.kinds {
		kinds = append(kinds, gk)
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind))
	})
	return kinds
}

// installed reports whether the cluster that the store shows serves a kind. A
// dump does not say so; what it holds does: an object or an empty list of the
// kind, its CRD, or, as CRDs of one group are installed together, an object of
// the group for the kinds that this package knows. Built-in kinds always are.
func (s *store) installed(gk schema.GroupKind) bool {
	if len(s.kinds[gk]) > 0 || s.listed[gk] {
		return true
	}
	k, ok := lookup(gk)
	return ok && (k.builtin || s.groups[gk.Group])
}

// get returns the entry of a name, nil when there is none.
func (s *store) get(gk schema.GroupKind, namespace, name string) *entry {
	entries := s.kinds[gk]
	i, found := sort.Find(len(entries), func(i int) int { return -entries[i].compare(namespace, name) })
	if !found {
		return nil
	}
	return entries[i]
}

// list returns the entries of a namespace, or of all when it is empty.
func (s *store) list(gk schema.GroupKind, namespace string) []*entry {
	entries := s.kinds[gk]
	if namespace == "" {
		return entries
	}
	from := sort.Search(len(entries), func(i int) bool { return entries[i].namespace >= namespace })
	to := sort.Search(len(entries), func(i int) bool { return entries[i].namespace > namespace })
	return entries[from:to]
}

// hecateNamespaces are the namespaces that hold objects of the four kinds,
// sorted.
func (s *store) hecateNamespaces() []string {
	seen := map[string]bool{}
	for gk, entries := range s.kinds {
		if gk.Group != v1alpha1.GroupVersion.Group {
			continue
		}
		for _, e := range entries {
			seen[e.namespace] = true
		}
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// decodeTyped makes the typed object of the kinds that Scheme knows. Unknown
// fields of the four kinds are counted, not refused: a dump of a newer release
// must stay readable, and whoever reads the answer must know.
func (s *store) decodeTyped(e *entry, gvk schema.GroupVersionKind) error {
	ours := gvk.Group == v1alpha1.GroupVersion.Group
	if _, ok := lookup(gvk.GroupKind()); ours && ok && gvk.Version != v1alpha1.GroupVersion.Version {
		return fmt.Errorf("apiVersion %s is not supported; valid: %s", gvk.GroupVersion(), v1alpha1.GroupVersion)
	}
	if !Scheme().Recognizes(gvk) {
		var m metav1.ObjectMeta
		metadata, _ := e.object.Object["metadata"].(map[string]any)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(metadata, &m); err != nil {
			return fmt.Errorf("metadata: %w", err)
		}
		return nil
	}
	obj, err := Scheme().New(gvk)
	if err != nil {
		return err
	}
	typed, ok := obj.(client.Object)
	if !ok {
		return fmt.Errorf("%s is not an object that can be stored", gvk.Kind)
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(e.object.Object, typed, ours)
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		if s.unknownFields == 0 {
			s.firstUnknown = fmt.Sprintf("%s: %s", describe(e.object), strict.Errors()[0])
		}
		s.unknownFields += len(strict.Errors())
	} else if err != nil {
		return err
	}
	e.typed = typed
	return nil
}

// checkIdentity refuses what is no Kubernetes object.
func checkIdentity(u *unstructured.Unstructured, gvk schema.GroupVersionKind) error {
	for _, field := range []string{"apiVersion", "kind"} {
		if v, ok := u.Object[field].(string); !ok || v == "" {
			return fmt.Errorf("not a Kubernetes object: %s is missing or not a string", field)
		}
	}
	if gvk.Empty() || gvk.Version == "" {
		return fmt.Errorf("apiVersion %q is malformed; valid: group/version or v1", u.Object["apiVersion"])
	}
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return fmt.Errorf("%s without metadata", gvk.Kind)
	}
	if name, ok := metadata["name"].(string); !ok || name == "" {
		return fmt.Errorf("%s without metadata.name", gvk.Kind)
	}
	if ns, present := metadata["namespace"]; present {
		if _, ok := ns.(string); !ok {
			return fmt.Errorf("%s %q: metadata.namespace is not a string", gvk.Kind, metadata["name"])
		}
	}
	return nil
}

// placeInNamespace puts an object of a known namespaced kind that names no
// namespace where kubectl would: in "default".
func placeInNamespace(u *unstructured.Unstructured, gvk schema.GroupVersionKind) {
	k, ok := lookup(gvk.GroupKind())
	if ok && k.scope == meta.RESTScopeNamespace && u.GetNamespace() == "" {
		u.SetNamespace(metav1.NamespaceDefault)
	}
}

// dropSecretValues empties the values of a Secret and keeps its keys: that a
// key is there is worth knowing, its value must never leave. kubectl's copy of
// the last applied manifest holds the values once more.
func dropSecretValues(u *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		values, ok := u.Object[field].(map[string]any)
		if !ok {
			delete(u.Object, field)
			continue
		}
		for key := range values {
			values[key] = ""
		}
	}
	unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration")
}

// describe names an object for an error.
func describe(u *unstructured.Unstructured) string {
	name := u.GetName()
	if ns := u.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return u.GetKind() + " " + name
}
