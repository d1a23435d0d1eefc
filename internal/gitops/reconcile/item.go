package reconcile

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// run is one execution of a plan.
type run struct {
	e   *Executor
	ctx context.Context
	// done are the results of earlier waves.
	done map[Key]Result

	sourcesMu sync.Mutex
	sources   map[SourceRef]func() (revision string, f *failure)

	progressMu sync.Mutex
}

func (r *run) tell(ev Event) {
	if r.e.Progress == nil {
		return
	}
	r.progressMu.Lock()
	defer r.progressMu.Unlock()
	r.e.Progress(ev)
}

// item works one item off.
func (r *run) item(item Item) Result {
	start := r.e.now()
	res := Result{Key: item.Key, Code: Ready, Message: kustomization(item.Key).String() + " is ready"}
	if f := r.reconcile(item, &res); f != nil {
		res.Code, res.Message = f.code, f.message
	}
	res.Success = res.Code == Ready
	res.Duration = r.e.now().Sub(start)
	r.tell(Event{Key: item.Key, Stage: StageDone, Code: res.Code, Message: res.Message})
	return res
}

func (r *run) reconcile(item Item, res *Result) *failure {
	e, o := r.e, kustomization(item.Key)
	if r.ctx.Err() != nil {
		return fail(Cancelled, "the run was cancelled before %s was begun", o)
	}
	for _, d := range item.DependsOn {
		if dep, ok := r.done[d]; ok && !dep.Success {
			return fail(DependencyFailed, "%s was skipped: it waits for %s, which did not become ready (%s)", o, d, dep.Code)
		}
	}
	u, err := r.get(o)
	if err != nil {
		return failureOf(err)
	}
	before := statusOf(u)
	res.note(before)
	switch {
	case before.deleting:
		return fail(NotReady, "%s is being deleted", o)
	case before.suspended:
		return fail(Suspended, "%s is suspended in the cluster (spec.suspend); Flux ignores requests to it", o)
	}

	ref := item.Source
	if ref.Name == "" {
		ref = liveSource(u)
	}
	if ref.Namespace == "" {
		ref.Namespace = item.Namespace
	}
	r.tell(Event{Key: item.Key, Stage: StageSource, Message: ref.String()})
	revision, f := r.source(ref)
	if f != nil {
		return f
	}

	ctx, cancel := context.WithTimeoutCause(r.ctx, e.timeout(), errItemTimeout)
	defer cancel()
	value, err := e.request(ctx, o, before)
	if err != nil {
		return failureOf(err)
	}
	res.Attempted = true
	r.tell(Event{Key: item.Key, Stage: StageRequested})
	last, err := e.await(ctx, o, value, before, func(s status) (bool, error) {
		if s.unbuildable(revision) {
			return false, fail(NotReady, "%s can't be built at %s; %s", o, revision, say(s.ready))
		}
		if !s.healthy() {
			return false, nil
		}
		// Ready may still speak of the revision before the source's request.
		if revision == "" || s.applied == revision {
			return true, nil
		}
		// The source may have moved on since, and the Kustomization with it.
		now := source(ref).empty()
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(now), now); err != nil {
			if f := refusal(source(ref), err); f != nil {
				return false, f
			}
			return false, nil // the next poll asks again
		}
		return s.applied == statusOf(now).artifact, nil
	})
	res.note(last)
	return failureOf(err)
}

// get reads an object within the time of an item.
func (r *run) get(o object) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeoutCause(r.ctx, r.e.timeout(), errItemTimeout)
	defer cancel()
	return r.e.get(ctx, o)
}

// source reconciles a source once in a run and gives its revision, "" when it has
// none that could be waited for. Who asks later waits for the first.
func (r *run) source(ref SourceRef) (revision string, f *failure) {
	r.sourcesMu.Lock()
	once, ok := r.sources[ref]
	if !ok {
		once = sync.OnceValues(func() (string, *failure) { return r.reconcileSource(ref) })
		r.sources[ref] = once
	}
	r.sourcesMu.Unlock()
	return once()
}

func (r *run) reconcileSource(ref SourceRef) (revision string, f *failure) {
	if ref.Kind == externalArtifact {
		return "", nil
	}
	if !requestable[ref.Kind] || ref.Name == "" {
		return "", fail(SourceFailed, "the source %s can't be reconciled; valid kinds: Bucket, ExternalArtifact, GitRepository, OCIRepository", ref)
	}
	e, o := r.e, source(ref)
	ctx, cancel := context.WithTimeoutCause(r.ctx, e.timeout(), errItemTimeout)
	defer cancel()
	last, err := func() (status, error) {
		u, err := e.get(ctx, o)
		if err != nil {
			return status{}, err
		}
		before := statusOf(u)
		if before.suspended {
			return before, fail(SourceFailed, "%s is suspended (spec.suspend); nothing new comes from it", o)
		}
		value, err := e.request(ctx, o, before)
		if err != nil {
			return before, err
		}
		return e.await(ctx, o, value, before, func(s status) (bool, error) { return s.healthy(), nil })
	}()
	if f := failureOf(err); f != nil {
		if f.code != Cancelled {
			f.code = SourceFailed
		}
		return "", f
	}
	return last.artifact, nil
}

// note keeps what was last seen of a Kustomization.
func (r *Result) note(s status) {
	r.Ready = isTrue(s.ready) && s.current
	r.Revision = s.applied
}

// failureOf is the failure in an error; nil for none.
func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	return fail(NotReady, "%s", err)
}
