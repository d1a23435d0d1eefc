package render_test

import (
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// FuzzBuild gives the builder a kustomization file and a resource: whatever they
// hold, it answers with objects or with a coded error, and fetches nothing.
func FuzzBuild(f *testing.F) {
	for _, s := range shapes {
		f.Add(s.files["kustomization.yaml"], s.files["a.yaml"])
	}
	for _, p := range positions {
		f.Add(strings.ReplaceAll(p["kustomization.yaml"], "%s", "http://127.0.0.1:1"), deployment)
	}
	f.Fuzz(func(t *testing.T, entry, resource string) {
		dir := files(t, map[string]string{"kustomization.yaml": entry, "a.yaml": resource})
		r := render.NewLocal().Build(t.Context(), render.Request{Root: dir, Path: ".", Kustomization: kustomization(nil)})
		if r.Err != nil && (r.Err.Code == "" || len(r.Objects) > 0) {
			t.Errorf("%+v with %d objects", r.Err, len(r.Objects))
		}
		if r.Err != nil && strings.Contains(r.Err.Message, dir) {
			t.Errorf("this machine's folder is in %q", r.Err.Message)
		}
	})
}
