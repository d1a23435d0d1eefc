package gitops

import (
	"context"
	"sync"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// provenance tells where the objects of one build come from. Kustomize tells only
// at nearly twice the cost, and most objects are never asked for: the first who
// asks builds again.
type provenance struct {
	object map[string]any
	path   string
	count  int

	mu      sync.Mutex
	told    bool
	origins []render.Origin
}

// origin is that of one object, empty when it can't be told. The artifact is one
// in which the build is the same.
func (e *Engine) origin(a *artifactView, p *provenance, index int) render.Origin {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.told && !a.hasUntold(p) {
		// Not the caller's context: what it cancels would be missing for others.
		r := e.builder.Build(context.Background(), render.Request{Root: a.art.Dir, Path: p.path, Origins: true, Kustomization: p.object})
		// What ran out of time, or was not built at all, may be told another day.
		if p.told = len(r.Reads) > 0 && (r.Err == nil || r.Err.Code != render.Timeout); !p.told {
			a.setUntold(p)
		}
		if r.Err == nil && len(r.Objects) == p.count {
			for _, o := range r.Objects {
				p.origins = append(p.origins, o.Origin)
			}
		}
	}
	if index >= len(p.origins) {
		return render.Origin{}
	}
	return p.origins[index]
}

func (a *artifactView) hasUntold(p *provenance) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.untold[p]
}

func (a *artifactView) setUntold(p *provenance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.untold == nil {
		a.untold = map[*provenance]bool{}
	}
	a.untold[p] = true
}

// originOf is where a manifest comes from.
func (e *Engine) originOf(a *artifactView, m *manifest) render.Origin {
	o := e.origin(a, m.made, m.index)
	if m.item.Kind != "" {
		o.Kind, o.Namespace, o.Name = m.item.Kind, m.item.Namespace, m.item.Name
	}
	return o
}
