package ops

import (
	"context"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// watchAway is how long an API server that gives no answer is waited for.
const watchAway = 2 * time.Minute

// Watch follows a Passage until it is finished or ctx ends, and reports every
// state that it sees. It asks again and again, at least every tenth of a second,
// rather than open a watch, which upstream's roles for people need not have. The
// Passage is the last one seen, also beside an error: ctx's, *NotFoundError for one
// that is gone, or the API server's once it gave no answer for two minutes.
func (o *Ops) Watch(ctx context.Context, namespace, passage string, every time.Duration, report func(*v1alpha1.Passage)) (*v1alpha1.Passage, error) {
	every = max(every, 100*time.Millisecond)
	var last *v1alpha1.Passage
	answered := time.Now()
	for {
		p, err := o.Passage(ctx, namespace, passage)
		switch {
		case err == nil && last != nil && p.UID != last.UID:
			return last, &NotFoundError{Object: hecate(v1alpha1.KindPassage, namespace, passage)} // another one of that name
		case err == nil:
			last, answered = p, time.Now()
			if report != nil {
				report(p)
			}
			if !p.Active() {
				return p, nil
			}
		case ctx.Err() != nil:
			return last, ctx.Err()
		case !unanswered(err) || time.Since(answered) > watchAway:
			return last, err
		}
		if !sleep(ctx, every) {
			return last, ctx.Err()
		}
	}
}
