package gate

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// MaxLabelLength is how many characters a Kubernetes label value has at most. A
// Passage carries the names of its Gate and its Bundle as labels, and the Gate
// finds its Passages by that label only; names themselves may have 253.
const MaxLabelLength = 63

// BuildCode says why no Passage can be built. Values double as refusal reasons.
type BuildCode string

// Build codes.
const (
	NoPassageTemplate BuildCode = "NoPassageTemplate"
	NameTooLong       BuildCode = "NameTooLong"
)

// BuildError is the error of BuildPassage. Kind, Namespace and Name are those of
// the object that has to change.
type BuildError struct {
	Code                  BuildCode
	Kind, Namespace, Name string
}

func (e *BuildError) Error() string {
	object := fmt.Sprintf("%s %s/%s", e.Kind, e.Namespace, e.Name)
	if e.Code == NameTooLong {
		return fmt.Sprintf("%s: the name has %d characters, a Passage can carry at most %d as a label", object, len(e.Name), MaxLabelLength)
	}
	return object + ": spec.passage has no steps, a crossing needs at least one"
}

// BuildPassage is the Passage that asks for b to cross g, as upstream's promote
// creates it (hecate-facts, section 3): the API server completes the name, steps
// and vars are deep copies of the Gate's as they stand. It does not ask whether
// the crossing is allowed. The error is a *BuildError.
func BuildPassage(g *v1alpha1.Gate, b *v1alpha1.Bundle, actor string) (*v1alpha1.Passage, error) {
	if g.Spec.Passage == nil || len(g.Spec.Passage.Steps) == 0 {
		return nil, &BuildError{NoPassageTemplate, v1alpha1.KindGate, g.Namespace, g.Name}
	}
	if len(g.Name) > MaxLabelLength {
		return nil, &BuildError{NameTooLong, v1alpha1.KindGate, g.Namespace, g.Name}
	}
	if len(b.Name) > MaxLabelLength {
		return nil, &BuildError{NameTooLong, v1alpha1.KindBundle, b.Namespace, b.Name}
	}
	spec := v1alpha1.PassageSpec{Gate: g.Name, Bundle: b.Name, Actor: actor, Steps: g.Spec.Passage.Steps, Vars: g.Spec.Vars}
	return &v1alpha1.Passage{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindPassage},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: g.Name + "-",
			Namespace:    g.Namespace,
			Labels:       map[string]string{v1alpha1.LabelGate: g.Name, v1alpha1.LabelBundle: b.Name},
		},
		Spec: *spec.DeepCopy(),
	}, nil
}
