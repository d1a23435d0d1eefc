package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The writing half of memory: every method is refused.

func (m *memory) refuse(verb string, obj runtime.Object) error {
	e := &ReadOnlyError{Mode: m.mode, Verb: verb, Kind: obj.GetObjectKind().GroupVersionKind().Kind}
	if gvk, err := m.GroupVersionKindFor(obj); err == nil {
		e.Kind = gvk.Kind
	}
	if o, ok := obj.(client.Object); ok {
		e.Name = o.GetName()
		if e.Name == "" {
			e.Name = o.GetGenerateName()
		}
	}
	return e
}

// applied is what a generated apply configuration says about its object.
type applied interface {
	GetKind() *string
	GetName() *string
}

func (m *memory) refuseApply(obj runtime.ApplyConfiguration) error {
	if o, ok := obj.(client.Object); ok {
		return m.refuse("apply", o)
	}
	e := &ReadOnlyError{Mode: m.mode, Verb: "apply", Kind: "object"}
	if a, ok := obj.(applied); ok {
		if k := a.GetKind(); k != nil {
			e.Kind = *k
		}
		if n := a.GetName(); n != nil {
			e.Name = *n
		}
	}
	return e
}

// Create returns a *ReadOnlyError.
func (m *memory) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	return m.refuse("create", obj)
}

// Update returns a *ReadOnlyError.
func (m *memory) Update(_ context.Context, obj client.Object, _ ...client.UpdateOption) error {
	return m.refuse("update", obj)
}

// Patch returns a *ReadOnlyError.
func (m *memory) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	return m.refuse("patch", obj)
}

// Delete returns a *ReadOnlyError.
func (m *memory) Delete(_ context.Context, obj client.Object, _ ...client.DeleteOption) error {
	return m.refuse("delete", obj)
}

// DeleteAllOf returns a *ReadOnlyError.
func (m *memory) DeleteAllOf(_ context.Context, obj client.Object, _ ...client.DeleteAllOfOption) error {
	return m.refuse("deletecollection", obj)
}

// Apply returns a *ReadOnlyError.
func (m *memory) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	return m.refuseApply(obj)
}

// Status returns a writer whose methods return a *ReadOnlyError.
func (m *memory) Status() client.SubResourceWriter { return subresource{m, "status"} }

// SubResource returns a client that reads nothing and refuses to write.
func (m *memory) SubResource(name string) client.SubResourceClient { return subresource{m, name} }

type subresource struct {
	memory *memory
	name   string
}

// Get answers as an API server does for a subresource that a kind has not.
func (s subresource) Get(_ context.Context, obj, _ client.Object, _ ...client.SubResourceGetOption) error {
	gvk, err := s.memory.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}
	resource := resourceOf(gvk)
	resource.Resource += "/" + s.name
	return apierrors.NewMethodNotSupported(resource, "get")
}

func (s subresource) Create(_ context.Context, obj, _ client.Object, _ ...client.SubResourceCreateOption) error {
	return s.memory.refuse("create "+s.name+" of", obj)
}

func (s subresource) Update(_ context.Context, obj client.Object, _ ...client.SubResourceUpdateOption) error {
	return s.memory.refuse("update "+s.name+" of", obj)
}

func (s subresource) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.memory.refuse("patch "+s.name+" of", obj)
}

func (s subresource) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	return s.memory.refuseApply(obj)
}
