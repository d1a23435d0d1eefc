package gitops_test

import (
	"context"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// flaky answers in place of the builder while it is told to.
type flaky struct {
	render.Builder
	answer func(r render.Request) *render.Error
	asked  int
}

func (f *flaky) Build(ctx context.Context, r render.Request) render.Result {
	if err := f.answer(r); err != nil {
		f.asked++
		return render.Result{Err: err}
	}
	return f.Builder.Build(ctx, r)
}

// What says more about the moment than about the files is not remembered.
func TestCacheForgetsTheMoment(t *testing.T) {
	for _, tc := range []struct {
		name    string
		origins bool
		err     render.Error
	}{
		{"a build that times out", false, render.Error{Code: render.Timeout, Message: "late"}},
		{"a builder that fails", false, render.Error{Code: render.RenderFailed, Message: "crashed"}},
		{"a build out of memory", false, render.Error{Code: render.TooLarge, Message: "memory"}},
		{"provenance that times out", true, render.Error{Code: render.Timeout, Message: "late"}},
		{"provenance that is cancelled", true, render.Error{Code: render.Timeout, Message: "the build was cancelled"}},
		{"provenance of a builder that fails", true, render.Error{Code: render.RenderFailed, Message: "crashed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			failing := true
			builder := &flaky{Builder: render.NewLocal(), answer: func(r render.Request) *render.Error {
				if failing && r.Origins == tc.origins {
					return &tc.err
				}
				return nil
			}}
			e := newEngine(t, gitops.Options{Builder: builder, Workers: 1})
			dir := folder(t, app)
			ask := func() *gitops.FluxGraph {
				g, err := e.DiscoverFluxGraph(t.Context(), gitops.Repo{Path: dir})
				if err != nil {
					t.Fatal(err)
				}
				return g
			}
			ask()
			if builder.asked == 0 {
				t.Fatal("nothing failed")
			}
			if tc.origins && builder.asked > 2 {
				t.Errorf("what can't be told was asked for %d times in one question", builder.asked)
			}
			failing = false
			n := nodeOf(t, ask(), "app")
			if n.State != gitops.StateRendered || n.Place.File != "clusters/prod/app.yaml" {
				t.Errorf("%s (%s) at %s", n.State, n.Reason, n.Place.File)
			}
		})
	}
}
