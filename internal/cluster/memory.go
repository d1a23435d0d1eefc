package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// memory is a client.Client over a store, read-only but in a demo that has a
// controller. It answers as a kube-apiserver does: same selectors, pages, and
// errors.
type memory struct {
	mode  Mode
	store *store
	world *World // nil: nothing ever changes
}

var _ client.Client = (*memory)(nil)

// Get copies the object of a name into obj, typed or unstructured. Errors: 404
// (apierrors.IsNotFound), a meta.NoKindMatchError, or the context's.
func (m *memory) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	if m.world != nil {
		leave, err := m.world.enter()
		defer leave()
		if err != nil {
			return err
		}
	}
	return m.get(ctx, key, obj)
}

func (m *memory) get(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	gvk, err := m.kind(obj)
	if err != nil {
		return err
	}
	e := m.store.get(gvk.GroupKind(), key.Namespace, key.Name)
	if e == nil {
		return apierrors.NewNotFound(resourceOf(gvk), key.Name)
	}
	return e.copyInto(obj, false)
}

// List fills list with the objects that match, sorted by namespace and name,
// a page at a time when there is a limit. Errors: 400 (a selector or continue
// token that is not valid), a meta.NoKindMatchError, or the context's.
func (m *memory) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if m.world != nil {
		leave, err := m.world.enter()
		defer leave()
		if err != nil {
			return err
		}
	}
	return m.list(ctx, list, opts...)
}

func (m *memory) list(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	gvk, err := m.kind(list)
	if err != nil {
		return err
	}
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.FieldSelector != nil {
		for _, r := range o.FieldSelector.Requirements() {
			if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
				return apierrors.NewBadRequest("field label not supported: " + r.Field)
			}
		}
	}
	after, err := parseToken(o.Continue)
	if err != nil {
		return err
	}
	items, err := itemsOf(list)
	if err != nil {
		return err
	}
	page := reflect.MakeSlice(items.Type(), 0, 0)
	// Items of a custom resource's list say their kind, those of built-in ones
	// do not.
	k, _ := lookup(gvk.GroupKind())
	keepKind := !k.builtin
	var last *entry
	rest := int64(0)
	for _, e := range m.store.list(gvk.GroupKind(), o.Namespace) {
		if after != nil && e.compare(after.Namespace, after.Name) <= 0 || !e.matches(o.LabelSelector, o.FieldSelector) {
			continue
		}
		if o.Limit > 0 && int64(page.Len()) == o.Limit {
			rest++
			continue
		}
		item := reflect.New(items.Type().Elem())
		obj, ok := item.Interface().(client.Object)
		if !ok {
			return fmt.Errorf("the items of %T are no objects", list)
		}
		if err := e.copyInto(obj, keepKind); err != nil {
			return err
		}
		page = reflect.Append(page, item.Elem())
		last = e
	}
	items.Set(page)
	list.SetResourceVersion("1") // one state for ever: any constant says so
	if m.world != nil {
		list.SetResourceVersion(strconv.FormatInt(m.world.version, 10))
	}
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	if rest > 0 {
		list.SetContinue(formatToken(last))
		if selectsAll(o.LabelSelector, o.FieldSelector) { // as the API server: unknown with a selector
			list.SetRemainingItemCount(&rest)
		}
	}
	return nil
}

// kind returns the kind of an object or of a list's items, or an error when
// the cluster does not serve it.
func (m *memory) kind(obj runtime.Object) (schema.GroupVersionKind, error) {
	gvk, err := apiutil.GVKForObject(obj, Scheme())
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	if meta.IsListType(obj) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	if !m.store.installed(gvk.GroupKind()) {
		return schema.GroupVersionKind{}, fmt.Errorf("the %s holds no object of that kind or its group, no list and no CRD of it: %w", m.mode,
			&meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}})
	}
	return gvk, nil
}

// resourceOf is the plural of a kind, for error messages.
func resourceOf(gvk schema.GroupVersionKind) schema.GroupResource {
	if k, ok := lookup(gvk.GroupKind()); ok {
		return schema.GroupResource{Group: k.group, Resource: k.plural}
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return plural.GroupResource()
}

// copyInto makes obj an own copy of the entry. Without keepKind a typed object
// loses apiVersion and kind, as in a live client's decoder: nobody is to learn
// from a snapshot to rely on them.
func (e *entry) copyInto(obj client.Object, keepKind bool) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		u.Object = e.object.DeepCopy().Object
		return nil
	}
	if e.typed != nil && reflect.TypeOf(obj) == reflect.TypeOf(e.typed) {
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(e.typed.DeepCopyObject()).Elem())
		if !keepKind {
			obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		}
		return nil
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(e.object.DeepCopy().Object, obj)
}

func (e *entry) matches(l labels.Selector, f fields.Selector) bool {
	if l != nil && !l.Matches(labels.Set(e.object.GetLabels())) {
		return false
	}
	return f == nil || f.Matches(fields.Set{"metadata.name": e.name, "metadata.namespace": e.namespace})
}

func selectsAll(l labels.Selector, f fields.Selector) bool {
	return (l == nil || l.Empty()) && (f == nil || f.Empty())
}

// formatToken makes the continue token of the page that ends with e.
func formatToken(e *entry) string {
	data, _ := json.Marshal([2]string{e.namespace, e.name}) // strings always marshal
	return base64.RawURLEncoding.EncodeToString(data)
}

// parseToken returns the key after which to go on, nil at the beginning.
func parseToken(token string) (*client.ObjectKey, error) {
	if token == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(token)
	var key [2]string
	if err == nil {
		err = json.Unmarshal(data, &key)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest("invalid continue token: " + err.Error())
	}
	return &client.ObjectKey{Namespace: key[0], Name: key[1]}, nil
}

// Scheme returns the types that this client reads typed.
func (m *memory) Scheme() *runtime.Scheme { return Scheme() }

// RESTMapper maps the kinds that a live client can address.
func (m *memory) RESTMapper() meta.RESTMapper { return mapper() }

// GroupVersionKindFor returns the kind of an object.
func (m *memory) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, Scheme())
}

// IsObjectNamespaced reports the scope of a known kind.
func (m *memory) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, Scheme(), mapper())
}
