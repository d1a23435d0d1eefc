package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/hecate-mcp/hecate-mcp/internal/confirm"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/writelog"
)

// Writes is what the tools that write work with. Without it a server only reads.
type Writes struct {
	// Desk is where a person is asked.
	Desk *confirm.Desk
	// Log records every write; nil drops.
	Log *writelog.Log
	// Email is recorded as the actor instead of the API server's user, for an
	// evidence server that knows people by their address. "" for none.
	Email string
}

// Bounds of the parts of a write. The question has its own, see confirm.Options.
const (
	planTimeout = 45 * time.Second
	actTimeout  = time.Minute
	// writeTimeout bounds a whole call: the plan, a person, the act, the wait.
	writeTimeout = 20 * time.Minute
)

// disabled is the answer of a server that was not told to write.
func disabled(tool string) *Error {
	return &Error{Code: Refused, Reason: "WritesDisabled", Message: tool + " writes, and this server only reads: it was started without --allow-writes"}
}

// request is the call as the transport has it; the plan is bound to it.
type request struct {
	mcp  mcp.CallToolRequest
	args json.RawMessage
}

type requestKey struct{}

func withRequest(ctx context.Context, r request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

func requestOf(ctx context.Context) request {
	r, _ := ctx.Value(requestKey{}).(request)
	return r
}

// planned is a plan of ops or of reconcile: what a person accepts, or what the
// rules refuse.
type planned interface {
	confirm.Plan
	Refused() *ops.RefusedError
}

// write is one tool's write: how it is planned and how the plan is carried out.
type write[P planned, R any] struct {
	tool string
	// object names what is written to, for the log.
	object func(P) ops.Object
	plan   func(ctx context.Context) (P, error)
	act    func(ctx context.Context, p P, a ops.Actor) (R, error)
}

// written is a write that was done.
type written[P planned, R any] struct {
	Plan   P
	Result R
	Actor  ops.Actor
}

// run plans, lets a person decide, and acts on exactly that plan. What happened is
// on record before the next step: a write that can't be recorded is not made.
func (w write[P, R]) run(ctx context.Context, env *Env) (*written[P, R], error) {
	desk, req := env.Writes.Desk, requestOf(ctx)
	user, err := env.Source.Identity(ctx)
	if err != nil {
		return nil, fmt.Errorf("who is asking is not known: %w", err)
	}
	call := confirm.Call{Tool: w.tool, Arguments: req.args, Principal: user}
	record := writelog.Entry{Tool: w.tool, Principal: user}
	say := func(event writelog.Event, err error) error {
		e := record
		e.Event = event
		if err != nil {
			coded := toError(err)
			e.Code, e.Reason, e.Message = string(coded.Code), coded.Reason, coded.Message
		}
		if err := env.Writes.Log.Write(e); err != nil {
			return &Error{Code: Unavailable, Reason: "WriteLogFailed", Message: "the log of writes can't be written, and nothing is done unrecorded: " + ops.Clean(err.Error(), 300)}
		}
		return nil
	}

	var p P
	var yes confirm.Confirmation
	taken, err := desk.Taken(ctx, req.mcp, call)
	switch {
	case err != nil:
		var no *confirm.Declined
		if errors.As(err, &no) {
			if p, ok := no.Plan.(P); ok {
				record.Plan, record.Title, record.Object = p.Digest(), p.Title(), objectName(w.object(p))
			}
		}
		return nil, errors.Join(err, say(writelog.Refused, err))
	case taken != nil:
		var ok bool
		if p, ok = taken.Plan.(P); !ok {
			return nil, &Error{Code: Internal, Message: "the confirmed plan is of another tool"}
		}
		yes = taken.Confirmation
	default:
		planning, cancel := context.WithTimeout(ctx, planTimeout)
		p, err = w.plan(planning)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	record.Plan, record.Title, record.Object = p.Digest(), p.Title(), objectName(w.object(p))
	if taken == nil {
		if err := say(writelog.Asked, nil); err != nil {
			return nil, err
		}
		if r := p.Refused(); r != nil {
			return nil, errors.Join(r, say(writelog.Refused, r))
		}
		if yes, err = desk.Ask(ctx, req.mcp, call, p); err != nil {
			if errors.As(err, new(*confirm.Declined)) {
				return nil, errors.Join(err, say(writelog.Refused, err))
			}
			return nil, err
		}
	}
	actor := ops.Actor{Name: "mcp:" + user, RequestedBy: user, ConfirmedVia: yes.Via, Client: yes.Client, CallID: yes.ID}
	if env.Writes.Email != "" {
		actor.Name = env.Writes.Email
	}
	record.CallID, record.Actor, record.Client, record.ConfirmedVia = actor.CallID, actor.Name, actor.Client, actor.ConfirmedVia
	if err := say(writelog.Confirmed, nil); err != nil {
		return nil, err
	}
	// From here on a client that goes away changes nothing: a write that was
	// confirmed is made once, and on record.
	acting, cancel := context.WithTimeout(context.WithoutCancel(ctx), actTimeout)
	defer cancel()
	r, err := w.act(acting, p, actor)
	if err != nil {
		event := writelog.Failed
		if code := toError(err).Code; code == Refused || code == Drifted {
			event = writelog.Refused
		}
		return nil, errors.Join(err, say(event, err))
	}
	// It is done; that the record of it failed must not make it look undone.
	_ = say(writelog.Done, nil)
	return &written[P, R]{p, r, actor}, nil
}

// objectName is Kind/namespace/name.
func objectName(o ops.Object) string {
	return strings.TrimSuffix(o.Kind+"/"+o.Namespace+"/"+o.Name, "/")
}

// wrote is what every answer of a write carries.
type wrote struct {
	Summary   string         `json:"summary" jsonschema_description:"one line that stands alone"`
	Scope     Scope          `json:"scope" jsonschema_description:"as in other answers"`
	NextSteps []ops.NextStep `json:"nextSteps,omitempty" jsonschema_description:"{tool, arguments, why}"`
	// Plan is the digest of the plan that was confirmed.
	Plan         string `json:"plan" jsonschema_description:"digest of what was confirmed"`
	Actor        string `json:"actor" jsonschema_description:"recorded as asking"`
	ConfirmedVia string `json:"confirmedVia" jsonschema_description:"elicitation, terminal"`
}

func (w *written[P, R]) wrote(scope Scope) wrote {
	return wrote{Scope: scope, Plan: w.Plan.Digest(), Actor: w.Actor.Name, ConfirmedVia: w.Actor.ConfirmedVia}
}

func (w *Writer) wrote(out wrote) {
	w.tail(nil, nil, out.NextSteps, nil)
}

// progress tells a client that asked for it how far a call is. The last message
// before a result is often lost on the way, so nothing depends on one.
type progress struct {
	ctx   context.Context
	token any
	n     int
	last  string
}

func newProgress(ctx context.Context) *progress {
	p := &progress{ctx: ctx}
	if m := requestOf(ctx).mcp.Params.Meta; m != nil {
		p.token = m.ProgressToken
	}
	return p
}

func (p *progress) say(message string) {
	if p.token == nil || message == p.last {
		return
	}
	p.n, p.last = p.n+1, message
	if s := mcpserver.ServerFromContext(p.ctx); s != nil {
		_ = s.SendNotificationToClient(p.ctx, "notifications/progress", map[string]any{"progressToken": p.token, "progress": p.n, "message": message})
	}
}

// maxWait bounds how long a call may wait for an outcome.
const maxWait = 10 * time.Minute

// InWait waits for the outcome.
type InWait struct {
	Wait string `json:"wait,omitempty" jsonschema:"pattern=^[1-9][0-9]{0\\,2}[sm]$" jsonschema_description:"for the outcome, such as 5m; at most 10m"`
}

func (i InWait) duration() (time.Duration, error) {
	if i.Wait == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(i.Wait)
	if err != nil || d <= 0 || d > maxWait {
		return 0, invalid("wait: %s is not a time of up to 10m, such as 30s or 5m", quote(i.Wait))
	}
	return d, nil
}
