package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failure ends work on one object.
type failure struct {
	code    Code
	message string
}

func (f *failure) Error() string { return f.message }

func fail(code Code, format string, args ...any) *failure {
	return &failure{code, fmt.Sprintf(format, args...)}
}

// refusal is the failure of an error that trying again does not mend; nil else.
func refusal(o object, err error) *failure {
	switch {
	case apierrors.IsNotFound(err):
		return fail(NotFound, "%s is not in the cluster", o)
	case apimeta.IsNoMatchError(err):
		return fail(NotFound, "the cluster does not know the kind %s of %s; is Flux installed?", o.gvk.Kind, o.gvk.GroupVersion())
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err):
		return fail(Forbidden, "the API server refuses a request on %s (%s); get and patch are needed", o, apierrors.ReasonForError(err))
	}
	return nil
}

// attempt calls until it succeeds, is refused, or the context ends. Anything else
// (a restarting or busy API server) passes.
func (e *Executor) attempt(ctx context.Context, o object, call func() error) error {
	for {
		err := call()
		if err == nil {
			return nil
		}
		if f := refusal(o, err); f != nil {
			return f
		}
		if !e.pause(ctx) {
			return e.ended(ctx, "the API server did not answer for %s (%s)", o, reason(err))
		}
	}
}

// reason tells an error in a word or two; an address may be in its text.
func reason(err error) string {
	if r := apierrors.ReasonForError(err); r != "" {
		return string(r)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return "no connection"
}

// pause waits for the next poll; false when the context ended.
func (e *Executor) pause(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	timer := time.NewTimer(e.poll())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// errItemTimeout is the cause of a context that ended for the item's time alone.
var errItemTimeout = errors.New("the time of the item is over")

// ended tells an item that ran out of time from a run that was cancelled.
func (e *Executor) ended(ctx context.Context, format string, args ...any) *failure {
	what := fmt.Sprintf(format, args...)
	if errors.Is(context.Cause(ctx), errItemTimeout) {
		return fail(Timeout, "%s within %s", what, e.timeout())
	}
	return fail(Cancelled, "the run was cancelled before it ended: %s", what)
}

// get reads an object.
func (e *Executor) get(ctx context.Context, o object) (*unstructured.Unstructured, error) {
	u := o.empty()
	err := e.attempt(ctx, o, func() error { return e.Client.Get(ctx, client.ObjectKeyFromObject(u), u) })
	return u, err
}

// request asks the controller of an object, read before, to reconcile it.
func (e *Executor) request(ctx context.Context, o object, before status) (value string, err error) {
	at := e.now()
	if value = at.Format(time.RFC3339Nano); value == before.annotation {
		// The same value again is no change, so no request.
		value = at.Add(time.Nanosecond).Format(time.RFC3339Nano)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{requestedAt: value}}})
	if err != nil {
		return "", err
	}
	err = e.attempt(ctx, o, func() error {
		return e.Client.Patch(ctx, o.empty(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner("hecate-mcp"))
	})
	return value, err
}

// await polls an object until the request is handled and done says that this is
// the end, well or with an error. It gives the status last seen also with an error.
func (e *Executor) await(ctx context.Context, o object, value string, before status, done func(status) (bool, error)) (status, error) {
	last, handled, trouble := before, false, ""
	for e.pause(ctx) {
		u := o.empty()
		if err := e.Client.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
			if f := refusal(o, err); f != nil {
				return last, f
			}
			if ctx.Err() == nil {
				trouble = fmt.Sprintf(" (the API server did not answer the last time: %s)", reason(err))
			}
			continue
		}
		last, trouble = statusOf(u), ""
		// A request that somebody made after this one answers this one as well.
		handled = handled || last.handled == value ||
			last.annotation != value && last.handled == last.annotation && last.handled != before.handled && last.handled != ""
		switch {
		case last.deleting:
			return last, fail(NotReady, "%s is being deleted", o)
		case last.suspended:
			return last, fail(Suspended, "%s was suspended while it was waited for", o)
		case !handled:
		case isTrue(last.stalled):
			return last, fail(NotReady, "%s is stalled and will not become ready by itself; %s", o, say(last.stalled))
		default:
			if ok, err := done(last); ok || err != nil {
				return last, err
			}
		}
	}
	if !handled {
		return last, e.ended(ctx, "the controller did not handle the request to %s%s", o, trouble)
	}
	f := e.ended(ctx, "%s did not become ready%s", o, trouble)
	if f.code == Timeout {
		f = fail(NotReady, "%s; %s", f.message, say(last.ready))
	}
	return last, f
}
