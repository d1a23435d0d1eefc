package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// The writing half of memory. Every method is refused, except for what writes.go
// takes in a demo that has a controller.

func (m *memory) refuse(verb string, obj runtime.Object) error {
	e := &ReadOnlyError{Mode: m.mode, Verb: verb, Kind: obj.GetObjectKind().GroupVersionKind().Kind}
	if m.world != nil {
		e.Takes = takes
	}
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
	if m.world != nil {
		e.Takes = takes
	}
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

// Create takes a Passage in the demo, else it returns a *ReadOnlyError.
func (m *memory) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if m.writes(obj, v1alpha1.KindPassage) {
		var o client.CreateOptions
		o.ApplyOptions(opts)
		return m.write(ctx, func(w *World) error { return w.create(obj, w.clock.now(), dryRun(o.DryRun)) })
	}
	return m.refuse("create", obj)
}

// Update takes a Beacon's annotations in the demo, else it returns a
// *ReadOnlyError.
func (m *memory) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if m.writes(obj, v1alpha1.KindBeacon) {
		var o client.UpdateOptions
		o.ApplyOptions(opts)
		return m.write(ctx, func(w *World) error { return m.updateBeacon(w, obj, dryRun(o.DryRun)) })
	}
	return m.refuse("update", obj)
}

// Patch takes a Passage's abort and annotations in the demo, else it returns a
// *ReadOnlyError.
func (m *memory) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if m.writes(obj, v1alpha1.KindPassage) {
		var o client.PatchOptions
		o.ApplyOptions(opts)
		return m.write(ctx, func(w *World) error { return m.patch(w, obj, patch, dryRun(o.DryRun)) })
	}
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

// Status returns a writer that takes a Bundle's approvals in the demo, and else
// returns a *ReadOnlyError.
func (m *memory) Status() client.SubResourceWriter { return subresource{m, "status"} }

// SubResource returns a client that reads nothing, and writes as Status does.
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

func (s subresource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	if m := s.memory; s.name == "status" && m.writes(obj, v1alpha1.KindBundle) {
		var o client.SubResourceUpdateOptions
		o.ApplyOptions(opts)
		if o.SubResourceBody == nil {
			return m.write(ctx, func(w *World) error { return m.updateApprovals(w, obj, dryRun(o.DryRun)) })
		}
	}
	return s.memory.refuse("update "+s.name+" of", obj)
}

func (s subresource) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.memory.refuse("patch "+s.name+" of", obj)
}

func (s subresource) Apply(_ context.Context, obj runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	return s.memory.refuseApply(obj)
}
