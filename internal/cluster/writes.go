package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// The writes that the demo's world takes, with the answers of a kube-apiserver
// that has the four CRDs. All others are refused as a snapshot refuses them.

// takes is what a ReadOnlyError of the demo names as valid.
const takes = "create a Passage; patch (merge) a Passage's spec.abort and annotations; update a Beacon's annotations; update the status.approvedFor of a Bundle"

// writes reports whether obj is of a kind and the world takes writes at all.
func (m *memory) writes(obj runtime.Object, kind string) bool {
	if m.world == nil {
		return false
	}
	gvk, err := m.GroupVersionKindFor(obj)
	return err == nil && gvk == v1alpha1.GroupVersion.WithKind(kind)
}

// write runs do with the world brought to the present.
func (m *memory) write(ctx context.Context, do func(*World) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	leave, err := m.world.enter()
	defer leave()
	if err != nil {
		return err
	}
	return do(m.world)
}

// write stores obj as the outcome of a person's write (or leaves that, on a dry
// run) and copies what is stored into into.
func (w *World) write(obj client.Object, dry bool, into client.Object) error {
	if !dry {
		w.clock.start()
		if err := w.Put(obj); err != nil {
			return err
		}
		return w.memory.get(context.Background(), client.ObjectKeyFromObject(obj), into)
	}
	return copyObject(obj, into)
}

// copyObject makes into an own copy of obj, which may be of another Go type.
func copyObject(obj, into client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return err
	}
	if u, ok := into.(*unstructured.Unstructured); ok {
		gvk := u.GroupVersionKind()
		u.Object = runtime.DeepCopyJSON(content)
		u.SetGroupVersionKind(gvk)
		return nil
	}
	reflect.ValueOf(into).Elem().SetZero()
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, into)
}

// typed reads obj, typed or unstructured, into out: what the schema does not
// know is pruned.
func typed(obj, out client.Object) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, out)
	}
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as what a client reads
	return nil
}

var passageKind = v1alpha1.GroupVersion.WithKind(v1alpha1.KindPassage)

// create checks a new Passage as the API server does and stores it.
func (w *World) create(obj client.Object, now time.Time, dry bool) error {
	p := &v1alpha1.Passage{}
	if err := typed(obj, p); err != nil {
		return err
	}
	resource := resourceOf(passageKind)
	switch {
	case p.Namespace == "":
		return apierrors.NewBadRequest("an empty namespace may not be set during creation")
	case p.ResourceVersion != "":
		return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	case !w.has(p.Namespace):
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, p.Namespace)
	}
	taken := func() bool {
		return w.memory.store.get(passageKind.GroupKind(), p.Namespace, p.Name) != nil
	}
	for tries := 0; p.Name == "" && p.GenerateName != "" && tries < 8; tries++ {
		p.Name = p.GenerateName[:min(len(p.GenerateName), 248)] + rand.String(5)
		if taken() {
			p.Name = ""
		}
	}
	if errs := checkPassage(p); len(errs) > 0 {
		return apierrors.NewInvalid(passageKind.GroupKind(), p.Name, errs)
	}
	if taken() {
		return apierrors.NewAlreadyExists(resource, p.Name)
	}
	p.UID = uuid.NewUUID()
	p.CreationTimestamp = metav1.NewTime(now.UTC().Truncate(time.Second))
	p.Generation = 1
	p.DeletionTimestamp, p.ManagedFields = nil, nil
	p.Status = nil // the status is a subresource
	return w.write(p, dry, obj)
}

func checkPassage(p *v1alpha1.Passage) field.ErrorList {
	meta, spec := field.NewPath("metadata"), field.NewPath("spec")
	errs := apivalidation.ValidateObjectMeta(&p.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, meta)
	for name, value := range map[string]string{"gate": p.Spec.Gate, "bundle": p.Spec.Bundle} {
		if value == "" {
			errs = append(errs, field.Required(spec.Child(name), ""))
		}
	}
	if len(p.Spec.Steps) == 0 {
		errs = append(errs, field.Invalid(spec.Child("steps"), 0, "spec.steps in body should have at least 1 items"))
	}
	for i, s := range p.Spec.Steps {
		if s.Uses == "" {
			errs = append(errs, field.Required(spec.Child("steps").Index(i).Child("uses"), ""))
		}
	}
	return errs
}

// patch is a merge patch of a Passage's spec.abort and annotations; more is
// refused. metadata.uid and metadata.resourceVersion in it are preconditions.
func (m *memory) patch(w *World, obj client.Object, patch client.Patch, dry bool) error {
	if patch.Type() != types.MergePatchType {
		return m.refuse("patch", obj)
	}
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	var changes map[string]any
	if err := json.Unmarshal(data, &changes); err != nil {
		return apierrors.NewBadRequest("error decoding patch: " + err.Error())
	}
	old := &v1alpha1.Passage{}
	if err := w.memory.get(context.Background(), client.ObjectKeyFromObject(obj), old); err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return err
	}
	given := metav1.ObjectMeta{}
	if meta, ok := changes["metadata"].(map[string]any); ok {
		uid, _ := meta["uid"].(string)
		version, _ := meta["resourceVersion"].(string)
		given.UID, given.ResourceVersion = types.UID(uid), version
	}
	if err := precondition(passageKind, &old.ObjectMeta, &given); err != nil {
		return err
	}
	next := &v1alpha1.Passage{}
	if err := typed(&unstructured.Unstructured{Object: mergePatch(content, changes)}, next); err != nil {
		return err
	}
	allowed := old.DeepCopy()
	allowed.Annotations, allowed.Spec.Abort = next.Annotations, next.Spec.Abort
	if !apiequality.Semantic.DeepEqual(next, allowed) {
		return m.refuse("patch", obj)
	}
	return w.replace(old, next, old.Spec.Abort != next.Spec.Abort, dry, obj)
}

// replace stores next in place of old, unless nothing changed: an API server
// gives no new resourceVersion then.
func (w *World) replace(old, next client.Object, newGeneration, dry bool, into client.Object) error {
	if errs := apivalidation.ValidateAnnotations(next.GetAnnotations(), field.NewPath("metadata", "annotations")); len(errs) > 0 {
		gvk, _ := w.memory.GroupVersionKindFor(next) // the caller knew it
		return apierrors.NewInvalid(gvk.GroupKind(), next.GetName(), errs)
	}
	next.SetResourceVersion(old.GetResourceVersion())
	if apiequality.Semantic.DeepEqual(old, next) {
		return copyObject(old, into)
	}
	if newGeneration {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	return w.write(next, dry, into)
}

// updateBeacon takes other annotations; a status that is sent along is left as
// it is (a subresource), anything else is refused.
func (m *memory) updateBeacon(w *World, obj client.Object, dry bool) error {
	next := &v1alpha1.Beacon{}
	if err := typed(obj, next); err != nil {
		return err
	}
	old := &v1alpha1.Beacon{}
	if err := m.current(obj, v1alpha1.KindBeacon, old); err != nil {
		return err
	}
	if !apiequality.Semantic.DeepEqual(old.Spec, next.Spec) || !apiequality.Semantic.DeepEqual(old.Labels, next.Labels) {
		return m.refuse("update", obj)
	}
	stored := old.DeepCopy()
	stored.Annotations = next.Annotations
	return w.replace(old, stored, false, dry, obj)
}

// updateApprovals takes another status.approvedFor; what is sent along beside
// the status is left as it is, anything else in the status is refused.
func (m *memory) updateApprovals(w *World, obj client.Object, dry bool) error {
	next := &v1alpha1.Bundle{}
	if err := typed(obj, next); err != nil {
		return err
	}
	old := &v1alpha1.Bundle{}
	if err := m.current(obj, v1alpha1.KindBundle, old); err != nil {
		return err
	}
	stored := old.DeepCopy()
	stored.Status.ApprovedFor = next.Status.ApprovedFor
	if !apiequality.Semantic.DeepEqual(stored.Status, next.Status) {
		return m.refuse("update status of", obj)
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, a := range stored.Status.ApprovedFor {
		at := field.NewPath("status", "approvedFor").Index(i)
		if seen[a.Gate] {
			errs = append(errs, field.Duplicate(at, a.Gate))
		}
		seen[a.Gate] = true
		for name, value := range map[string]string{"gate": a.Gate, "actor": a.Actor} {
			if value == "" {
				errs = append(errs, field.Required(at.Child(name), ""))
			}
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(v1alpha1.GroupVersion.WithKind(v1alpha1.KindBundle).GroupKind(), old.Name, errs)
	}
	return w.replace(old, stored, false, dry, obj)
}

// current reads what an update of obj would replace, and holds its
// preconditions. A custom resource cannot be updated without a version.
func (m *memory) current(obj client.Object, kind string, old client.Object) error {
	gvk := v1alpha1.GroupVersion.WithKind(kind)
	if err := m.get(context.Background(), client.ObjectKeyFromObject(obj), old); err != nil {
		return err
	}
	if obj.GetResourceVersion() == "" {
		return apierrors.NewInvalid(gvk.GroupKind(), obj.GetName(), field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	return precondition(gvk, old, obj)
}

func precondition(gvk schema.GroupVersionKind, old, given metav1.Object) error {
	if uid := given.GetUID(); uid != "" && uid != old.GetUID() {
		return apierrors.NewConflict(resourceOf(gvk), old.GetName(),
			//lint:ignore ST1005 The API server's own words.
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, old.GetUID()))
	}
	if v := given.GetResourceVersion(); v != "" && v != old.GetResourceVersion() {
		return apierrors.NewConflict(resourceOf(gvk), old.GetName(),
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// mergePatch applies a merge patch (RFC 7386) to an object.
func mergePatch(target, patch map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range target {
		out[k] = v
	}
	for k, v := range patch {
		switch change := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			inner, _ := out[k].(map[string]any)
			out[k] = mergePatch(inner, change)
		default:
			out[k] = v
		}
	}
	return out
}

func dryRun(values []string) bool {
	return len(values) > 0 && strings.EqualFold(values[0], metav1.DryRunAll)
}
