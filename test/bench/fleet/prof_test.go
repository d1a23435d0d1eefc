package fleet

import (
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

func BenchmarkRenderOnly(b *testing.B) {
	r := newRun(b, repository(b))
	l := render.NewLocal()
	b.ResetTimer()
	for b.Loop() {
		for _, in := range r.nodes {
			l.Build(b.Context(), render.Request{Root: in.Root, Path: in.Path, Kustomization: in.Object})
		}
	}
}
