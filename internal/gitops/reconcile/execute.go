package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Executor reconciles plans in one cluster.
type Executor struct {
	// Client needs get and patch on Kustomizations and their sources.
	Client client.Client
	// Parallel is how many items of a wave are worked on at once; 0 means 4.
	Parallel int
	// Timeout is the time of one item, and of one source; 0 means 5 minutes.
	Timeout time.Duration
	// Poll is the time between two looks at an object; 0 means 2 seconds.
	Poll time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Progress is told each step, one at a time; nil means nobody.
	Progress func(Event)
}

func (e *Executor) parallel() int {
	if e.Parallel > 0 {
		return e.Parallel
	}
	return 4
}

func (e *Executor) timeout() time.Duration {
	if e.Timeout > 0 {
		return e.Timeout
	}
	return 5 * time.Minute
}

func (e *Executor) poll() time.Duration {
	if e.Poll > 0 {
		return e.Poll
	}
	return 2 * time.Second
}

func (e *Executor) now() time.Time {
	if e.Now != nil {
		return e.Now()
	}
	return time.Now()
}

// Execute works a plan off, wave by wave. An item that fails does not stop its
// wave; what waits for it is skipped. A failed item is a result, not an error:
// the error is that of a missing Client or of the context, and comes with what
// was done until then. Running a plan again converges to the same state.
func (e *Executor) Execute(ctx context.Context, plan Plan) (Outcome, error) {
	out := Outcome{Results: []Result{}}
	if e.Client == nil {
		return out, errors.New("reconcile: the Executor has no Client")
	}
	r := &run{e: e, ctx: ctx, sources: map[SourceRef]func() (string, *failure){}, done: map[Key]Result{}}
	for _, wave := range plan.Waves {
		// Results of a wave are read by the next one only.
		results := make([]Result, len(wave))
		var g errgroup.Group
		g.SetLimit(e.parallel())
		for i, item := range wave {
			g.Go(func() error {
				results[i] = r.item(item)
				return nil
			})
		}
		_ = g.Wait() // an item's failure is its result
		for _, res := range results {
			r.done[res.Key] = res
		}
		out.Results = append(out.Results, results...)
	}
	if err := ctx.Err(); err != nil && !out.Success() {
		return out, fmt.Errorf("reconcile: cancelled before all items were done: %w", context.Cause(ctx))
	}
	return out, nil
}
