// Package live asks an API server what a repository alone can't tell: the CRDs
// that a cluster has, and whether it would take an object (server-side dry run,
// as kustomize-controller does before it applies).
//
// Both are asked only where the user said so. A dry run changes nothing, but it
// needs the right to patch, passes the cluster's admission, and sends the object
// there. What the server can't judge is an unknown, never a refusal.
package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

// pageSize is how many CRDs one request asks for: some are a megabyte.
const pageSize = 50

// CRDs are the CustomResourceDefinitions of a cluster. Errors are those of the
// client.
func CRDs(ctx context.Context, c client.Reader) ([]map[string]any, error) {
	var out []map[string]any
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	for {
		if err := c.List(ctx, list, client.Limit(pageSize), client.Continue(list.GetContinue())); err != nil {
			return nil, fmt.Errorf("listing the cluster's CRDs: %w", err)
		}
		for i := range list.Items {
			out = append(out, list.Items[i].Object)
		}
		if list.GetContinue() == "" {
			return out, nil
		}
	}
}

// fieldManager is the one of kustomize-controller: the server then judges the
// object as it would be applied.
const fieldManager = "kustomize-controller"

// DryRun returns a function for gitops.ValidateOptions that applies an object with
// dryRun=All. Its error is the server's refusal, or gitops.ErrCannotSay: the kind
// or namespace is not there, the right is missing, the server does not answer.
func DryRun(c client.Client) func(ctx context.Context, obj map[string]any) error {
	return func(ctx context.Context, obj map[string]any) error {
		u := &unstructured.Unstructured{Object: obj}
		u = u.DeepCopy()
		namespaced, err := c.IsObjectNamespaced(u)
		if err != nil {
			return gitops.ErrCannotSay
		}
		if namespaced && u.GetNamespace() == "" {
			u.SetNamespace(metav1.NamespaceDefault)
		}
		err = c.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.DryRunAll, client.ForceOwnership, client.FieldOwner(fieldManager))
		if err == nil {
			return nil
		}
		if !refused(err) {
			return gitops.ErrCannotSay
		}
		return errors.New(message(u.GetKind(), err))
	}
}

// refused tells a verdict on the object from everything else that can go wrong.
func refused(err error) bool {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return true
	case strings.Contains(err.Error(), "field not declared in schema"), strings.Contains(err.Error(), "failed to create typed"):
		return true
	}
	return strings.Contains(err.Error(), "admission webhook") && strings.Contains(err.Error(), "denied the request")
}

// message is the server's word, of a Secret only which fields are meant: the text
// quotes values.
func message(kind string, err error) string {
	var status apierrors.APIStatus
	if kind != "Secret" || !errors.As(err, &status) {
		return err.Error()
	}
	var fields []string
	if d := status.Status().Details; d != nil {
		for _, c := range d.Causes {
			fields = append(fields, fmt.Sprintf("%s (%s)", c.Field, c.Type))
		}
	}
	return fmt.Sprintf("%s: %s", status.Status().Reason, strings.Join(fields, ", "))
}
