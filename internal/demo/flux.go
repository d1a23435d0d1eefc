package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

const (
	// defaultFailAfter is for how long a Kustomization may be not ready.
	defaultFailAfter = 10 * time.Minute
	// applyTakes is for how long Flux applies a revision.
	applyTakes = 2 * time.Second
)

var (
	kustomizations  = schema.GroupVersionKind{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"}
	gitRepositories = schema.GroupVersionKind{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"}
)

func (r resource) key() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// all lists the objects of a kind, none when it is not installed.
func (b *beat) all(gvk schema.GroupVersionKind, namespace string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := b.world.List(context.Background(), list, client.InNamespace(namespace))
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	return list.Items, err
}

// flux ends the applying that has gone on for long enough, and begins it where
// a source holds what its Kustomization has not applied, such as one that was
// suspended.
func (b *beat) flux() error {
	items, err := b.all(kustomizations, "")
	if err != nil {
		return err
	}
	for i := range items {
		k := &items[i]
		ready := readyOf(k)
		if ready == nil || suspended(k) {
			continue
		}
		held := b.held(k)
		switch {
		case ready.Status == metav1.ConditionUnknown && b.since(&ready.LastTransitionTime) >= applyTakes:
			err = b.applied(k, text(k, "status", "lastAttemptedRevision"))
		case ready.Status == metav1.ConditionTrue && held != "" && held != text(k, "status", "lastAppliedRevision"):
			err = b.applying(k, held)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func suspended(k *unstructured.Unstructured) bool {
	s, _, _ := unstructured.NestedBool(k.Object, "spec", "suspend")
	return s
}

// applying stores that a Kustomization is about to apply a revision.
func (b *beat) applying(k *unstructured.Unstructured, revision string) error {
	set(k, revision, "status", "lastAttemptedRevision")
	b.setReady(k, metav1.ConditionUnknown, "Progressing", "Reconciliation in progress")
	return b.world.Put(k)
}

// applied stores that a Kustomization is ready at a revision.
func (b *beat) applied(k *unstructured.Unstructured, revision string) error {
	set(k, revision, "status", "lastAppliedRevision")
	set(k, revision, "status", "lastAttemptedRevision")
	b.setReady(k, metav1.ConditionTrue, "ReconciliationSucceeded", "Applied revision: "+revision)
	return b.world.Put(k)
}

// pushed has Flux take up a commit: the sources of the repository hold it at
// once; a Kustomization whose files the Passage changed begins to apply it, the
// others have nothing to apply. A suspended one stays as it is, and one that
// fails its health check goes on failing: the cause is not in Git.
func (b *beat) pushed(p *v1alpha1.Passage, push int, revision string) error {
	var url string
	var changed []string
	for _, s := range p.Spec.Steps[:push] {
		switch o := with(s); s.Uses {
		case "git-clone":
			url = o.URL
		case "set-image", "edit-yaml":
			changed = append(changed, strings.TrimPrefix(o.Path, "./"))
		}
	}
	sources, err := b.all(gitRepositories, "")
	if err != nil {
		return err
	}
	for i := range sources {
		source := &sources[i]
		if url == "" || text(source, "spec", "url") != url {
			continue
		}
		set(source, revision, "status", "artifact", "revision")
		set(source, b.now.UTC().Format(time.RFC3339), "status", "artifact", "lastUpdateTime")
		b.setReady(source, metav1.ConditionTrue, "Succeeded", fmt.Sprintf("stored artifact for revision '%s'", revision))
		if err := b.world.Put(source); err != nil {
			return err
		}
		if err := b.follow(source, revision, changed); err != nil {
			return err
		}
	}
	return nil
}

func (b *beat) follow(source *unstructured.Unstructured, revision string, changed []string) error {
	items, err := b.all(kustomizations, source.GetNamespace())
	if err != nil {
		return err
	}
	for i := range items {
		k := &items[i]
		if suspended(k) || text(k, "spec", "sourceRef", "kind") != gitRepositories.Kind || text(k, "spec", "sourceRef", "name") != source.GetName() {
			continue
		}
		ready := readyOf(k)
		switch {
		case ready == nil || ready.Status == metav1.ConditionFalse:
			set(k, revision, "status", "lastAttemptedRevision")
			err = b.world.Put(k)
		case touches(text(k, "spec", "path"), changed):
			err = b.applying(k, revision)
		case ready.Status == metav1.ConditionTrue:
			err = b.applied(k, revision)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func touches(folder string, files []string) bool {
	folder = strings.Trim(strings.TrimPrefix(folder, "./"), "/") + "/"
	for _, f := range files {
		if strings.HasPrefix(f, folder) {
			return true
		}
	}
	return false
}

// reading is what the controller makes of one Flux object.
type reading struct {
	status   v1alpha1.HealthStatus
	issue    string
	revision string
}

// read judges one Flux object (hecate-facts, section 6). With promoted it also
// has to have applied what its source holds.
func (b *beat) read(r resource, promoted bool, failAfter time.Duration) (reading, error) {
	name := fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name)
	if r.Kind != kustomizations.Kind {
		return reading{status: v1alpha1.HealthUnknown, issue: name + " is of a kind that the demo does not look at"}, nil
	}
	k := &unstructured.Unstructured{}
	k.SetGroupVersionKind(kustomizations)
	err := b.world.Get(context.Background(), client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, k)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return reading{status: v1alpha1.HealthUnknown, issue: name + " does not exist"}, nil
	}
	if err != nil {
		return reading{}, err
	}
	h := reading{status: v1alpha1.HealthHealthy, revision: text(k, "status", "lastAppliedRevision")}
	ready := readyOf(k)
	switch {
	case suspended(k):
		h.status, h.issue = v1alpha1.HealthUnknown, name+" is suspended; Flux will not reconcile it"
		if promoted {
			h.revision = ""
		}
	case ready == nil:
		h.status, h.issue = v1alpha1.HealthProgressing, name+" has no Ready condition yet"
	case ready.Status == metav1.ConditionUnknown:
		h.status, h.issue = v1alpha1.HealthProgressing, fmt.Sprintf("%s readiness is unknown: %s", name, ready.Message)
	case ready.Status == metav1.ConditionFalse:
		h.status = v1alpha1.HealthProgressing
		age := b.since(&ready.LastTransitionTime)
		if age > failAfter {
			h.status = v1alpha1.HealthDegraded
		}
		h.issue = fmt.Sprintf("%s is not ready: %s: %s (not ready for %s)", name, ready.Reason, ready.Message, age.Round(time.Minute))
	case promoted && h.revision != b.held(k):
		h.status, h.issue = v1alpha1.HealthProgressing, fmt.Sprintf("%s is ready at another revision: %s", name, h.revision)
	}
	return h, nil
}

// held is the revision that a Kustomization's source holds.
func (b *beat) held(k *unstructured.Unstructured) string {
	source := &unstructured.Unstructured{}
	source.SetGroupVersionKind(gitRepositories)
	key := client.ObjectKey{Namespace: k.GetNamespace(), Name: text(k, "spec", "sourceRef", "name")}
	if err := b.world.Get(context.Background(), key, source); err != nil {
		return "" // no source: nothing can be applied from it
	}
	return text(source, "status", "artifact", "revision")
}

func text(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

func set(u *unstructured.Unstructured, value string, path ...string) {
	// It fails where a parent is no map, which the kind's schema rules out.
	_ = unstructured.SetNestedField(u.Object, value, path...)
}

// conditions of an object, none when they are malformed.
func conditions(u *unstructured.Unstructured) []metav1.Condition {
	var s struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	if runtime.DefaultUnstructuredConverter.FromUnstructured(status, &s) != nil {
		return nil
	}
	return s.Conditions
}

func readyOf(u *unstructured.Unstructured) *metav1.Condition {
	return meta.FindStatusCondition(conditions(u), "Ready")
}

func (b *beat) setReady(u *unstructured.Unstructured, status metav1.ConditionStatus, reason, message string) {
	all := conditions(u)
	meta.SetStatusCondition(&all, metav1.Condition{
		Type: "Ready", Status: status, Reason: reason, Message: message,
		ObservedGeneration: u.GetGeneration(), LastTransitionTime: b.now,
	})
	list := make([]any, 0, len(all))
	for i := range all {
		c, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&all[i])
		if err != nil {
			continue // a condition always converts
		}
		list = append(list, c)
	}
	_ = unstructured.SetNestedSlice(u.Object, list, "status", "conditions")
}

func jsonOf(raw []byte) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: raw} }
