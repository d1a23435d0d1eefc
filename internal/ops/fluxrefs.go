package ops

import (
	"context"
	"slices"
)

// FluxUse is a Gate that looks at a Flux object, and through what: its watch, or
// one of its steps.
type FluxUse struct {
	Gate      string `json:"gate"`
	Namespace string `json:"namespace"`
	Through   string `json:"through"`
	Object    Object `json:"object"`
}

// FluxUses lists, over all namespaces, which Gates look at which Flux objects of
// their own cluster, by Gate. One LIST of Gates.
func (o *Ops) FluxUses(ctx context.Context) ([]FluxUse, error) {
	gates, err := o.listGates(ctx, AllNamespaces)
	if err != nil {
		return nil, err
	}
	var out []FluxUse
	for i := range gates {
		g := &gates[i]
		add := func(through string, raw []byte) {
			objects, remote := fluxObjects(g.Namespace, raw)
			if remote {
				return
			}
			for _, obj := range objects {
				u := FluxUse{Gate: g.Name, Namespace: g.Namespace, Through: through, Object: obj}
				if !slices.Contains(out, u) {
					out = append(out, u)
				}
			}
		}
		for _, c := range g.Spec.Watch {
			if c.With != nil {
				add("watch", c.With.Raw)
			}
		}
		if g.Spec.Passage == nil {
			continue
		}
		for _, s := range g.Spec.Passage.Steps {
			if s.With != nil {
				add("step "+s.Uses, s.With.Raw)
			}
		}
	}
	return out, nil
}
