package gate

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

func with(raw string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(raw)} }

func TestBuildPassage(t *testing.T) {
	g := prod(admit("web", false))
	g.Spec.Vars = []v1alpha1.Var{{Name: "a", Value: "1"}}
	g.Spec.Passage = &v1alpha1.PassageTemplate{Steps: []v1alpha1.Step{{Uses: "http", With: with(`{"url":"x"}`)}}}
	b := bundle("web-1")
	got, err := BuildPassage(g, b, "mcp:ann")
	if err != nil {
		t.Fatal(err)
	}
	want := &v1alpha1.Passage{
		TypeMeta: metav1.TypeMeta{APIVersion: "hecate.dev/v1alpha1", Kind: "Passage"},
		ObjectMeta: metav1.ObjectMeta{GenerateName: "prod-", Namespace: "shop",
			Labels: map[string]string{"hecate.dev/gate": "prod", "hecate.dev/bundle": "web-1"}},
		Spec: v1alpha1.PassageSpec{Gate: "prod", Bundle: "web-1", Actor: "mcp:ann", Steps: g.Spec.Passage.Steps, Vars: g.Spec.Vars},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("BuildPassage (-want +got):\n%s", d)
	}
	got.Spec.Steps[0].With.Raw[2], got.Spec.Vars[0].Value = 'X', "2"
	if string(g.Spec.Passage.Steps[0].With.Raw) != `{"url":"x"}` || g.Spec.Vars[0].Value != "1" {
		t.Error("a change of the Passage reached the Gate it was built from")
	}
}

func TestBuildPassageRefuses(t *testing.T) {
	named := func(n int) *v1alpha1.Gate {
		g := prod()
		g.Name = strings.Repeat("g", n)
		g.Spec.Passage = &v1alpha1.PassageTemplate{Steps: []v1alpha1.Step{{Uses: "http"}}}
		return g
	}
	empty := prod()
	empty.Spec.Passage = &v1alpha1.PassageTemplate{}
	long := strings.Repeat("b", 64)
	tests := []struct {
		name   string
		gate   *v1alpha1.Gate
		bundle string
		want   *BuildError
	}{
		{"no template", prod(), "b", &BuildError{NoPassageTemplate, "Gate", "shop", "prod"}},
		{"no steps", empty, "b", &BuildError{NoPassageTemplate, "Gate", "shop", "prod"}},
		{"names that just fit", named(63), long[:63], nil},
		{"Gate's name", named(64), "b", &BuildError{NameTooLong, "Gate", "shop", strings.Repeat("g", 64)}},
		{"Bundle's name", named(1), long, &BuildError{NameTooLong, "Bundle", "shop", long}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := BuildPassage(tt.gate, bundle(tt.bundle), "ann")
			var got *BuildError
			errors.As(err, &got)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
			if (err == nil) != (p != nil) {
				t.Errorf("Passage %v beside error %v", p, err)
			}
			if err != nil && (!strings.Contains(err.Error(), got.Kind+" shop/"+got.Name) || strings.Contains(err.Error(), "63") != (got.Code == NameTooLong)) {
				t.Errorf("error %q does not say what is wrong with which object", err)
			}
		})
	}
}
