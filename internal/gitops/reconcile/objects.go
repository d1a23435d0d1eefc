package reconcile

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// requestedAt is the annotation whose change asks a Flux controller to reconcile.
const requestedAt = "reconcile.fluxcd.io/requestedAt"

var (
	kustomizationKind = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	sourceGroup       = schema.GroupVersion{Group: "source.toolkit.fluxcd.io", Version: "v1"}
)

// requestable are the kinds of sources that a controller fetches on request.
var requestable = map[string]bool{"GitRepository": true, "OCIRepository": true, "Bucket": true}

// externalArtifact is written by whoever produces it; there is nothing to ask.
const externalArtifact = "ExternalArtifact"

// object names one object of the cluster.
type object struct {
	gvk schema.GroupVersionKind
	Key
}

func (o object) String() string { return o.gvk.Kind + " " + o.Key.String() }

func (o object) empty() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(o.gvk)
	u.SetNamespace(o.Namespace)
	u.SetName(o.Name)
	return u
}

func kustomization(k Key) object { return object{kustomizationKind, k} }

func source(s SourceRef) object {
	return object{sourceGroup.WithKind(s.Kind), Key{s.Namespace, s.Name}}
}

// status is what is read of an object that a Flux controller reconciles.
type status struct {
	suspended, deleting bool
	annotation, handled string
	ready, stalled      *metav1.Condition
	// current says that the status speaks of the object's generation.
	current bool
	// applied and attempted are a Kustomization's revisions, artifact a source's.
	applied, attempted, artifact string
}

// statusOf reads leniently: what is absent or of another type is not so.
func statusOf(u *unstructured.Unstructured) status {
	str := func(path ...string) string {
		v, _, _ := unstructured.NestedString(u.Object, path...) // another type is no value
		return v
	}
	s := status{
		deleting:   u.GetDeletionTimestamp() != nil,
		annotation: u.GetAnnotations()[requestedAt],
		handled:    str("status", "lastHandledReconcileAt"),
		applied:    str("status", "lastAppliedRevision"),
		attempted:  str("status", "lastAttemptedRevision"),
		artifact:   str("status", "artifact", "revision"),
	}
	s.suspended, _, _ = unstructured.NestedBool(u.Object, "spec", "suspend")
	observed, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	s.current = observed == u.GetGeneration()
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	var conditions []metav1.Condition
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		c := metav1.Condition{}
		for path, field := range map[string]*string{"type": &c.Type, "status": (*string)(&c.Status), "reason": &c.Reason, "message": &c.Message} {
			*field, _, _ = unstructured.NestedString(m, path)
		}
		c.ObservedGeneration, _, _ = unstructured.NestedInt64(m, "observedGeneration")
		conditions = append(conditions, c)
	}
	s.ready = apimeta.FindStatusCondition(conditions, "Ready")
	s.stalled = apimeta.FindStatusCondition(conditions, "Stalled")
	if s.ready != nil && s.ready.ObservedGeneration != 0 && s.ready.ObservedGeneration != u.GetGeneration() {
		s.current = false
	}
	return s
}

// healthy says that the object is ready as it is now.
func (s status) healthy() bool { return isTrue(s.ready) && s.current }

// unbuildable says that a revision can't be built, which no further try changes.
func (s status) unbuildable(revision string) bool {
	return s.ready != nil && s.ready.Status == metav1.ConditionFalse && s.ready.Reason == "BuildFailed" && s.current &&
		revision != "" && s.attempted == revision
}

func isTrue(c *metav1.Condition) bool { return c != nil && c.Status == metav1.ConditionTrue }

// say tells a condition on one line of bounded length.
func say(c *metav1.Condition) string {
	if c == nil {
		return "it has no Ready condition"
	}
	// Whoever shows it masks it, for which the text must not lose its middle.
	const most = 4000
	text := strings.Join(strings.Fields(c.Message), " ")
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + " … (shortened)"
	}
	return fmt.Sprintf("%s is %s (%s): %s", c.Type, c.Status, c.Reason, text)
}

// liveSource is the source that a Kustomization of the cluster names.
func liveSource(u *unstructured.Unstructured) SourceRef {
	str := func(field string) string {
		v, _, _ := unstructured.NestedString(u.Object, "spec", "sourceRef", field) // another type is no value
		return v
	}
	return SourceRef{str("kind"), str("namespace"), str("name")}
}
