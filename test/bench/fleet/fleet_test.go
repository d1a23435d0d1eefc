package fleet

import (
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

// TestWrite holds that the repository is what the benchmark takes it for: every
// Kustomization renders, nothing in it is wrong, nothing is left unjudged.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	engine, err := gitops.New(gitops.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	v, err := engine.ValidateManifests(t.Context(), gitops.Repo{Path: dir}, gitops.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(v.Graph.Kustomizations); n != Kustomizations {
		t.Errorf("%d Kustomizations, not %d", n, Kustomizations)
	}
	for k, n := range v.Graph.Kustomizations {
		if n.State != gitops.StateRendered {
			t.Errorf("%s is %s: %s", k, n.State, n.Reason)
		}
	}
	for _, f := range v.Findings {
		if f.Severity == gitops.SeverityFail || f.Severity == gitops.SeverityWarn {
			t.Errorf("%s:%d: %s: %s", f.File, f.Line, f.Code, f.Message)
		}
	}
	if len(v.Meta.Uncovered) > 0 {
		t.Errorf("no schema judges %v", v.Meta.Uncovered)
	}
	if per := float64(v.Meta.Objects) / Kustomizations; per < 8 || per > 12 {
		t.Errorf("%.1f objects a Kustomization", per)
	}
}
