package ops

import (
	"context"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Watch follows a Passage until it is finished or ctx ends, and reports every
// state that it sees. It asks again and again rather than open a watch, which
// upstream's roles for people need not have. An API server that does not answer
// for a while is waited for. The Passage is the last one seen, also beside an
// error: ctx's, or *NotFoundError for one that is gone.
func (o *Ops) Watch(ctx context.Context, namespace, passage string, every time.Duration, report func(*v1alpha1.Passage)) (*v1alpha1.Passage, error) {
	var last *v1alpha1.Passage
	for {
		p, err := o.Passage(ctx, namespace, passage)
		switch {
		case err == nil:
			last = p
			if report != nil {
				report(p)
			}
			if !p.Active() {
				return p, nil
			}
		case ctx.Err() == nil && !unanswered(err):
			return last, err
		}
		if !sleep(ctx, every) {
			return last, ctx.Err()
		}
	}
}
