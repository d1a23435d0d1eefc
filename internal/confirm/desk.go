package confirm

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

const (
	defaultTTL     = 5 * time.Minute
	defaultTimeout = 2 * time.Minute
	// maxAsking questions wait for legacy clients at once. Each holds a worker
	// of the transport, and reads must find one: stdio has 32.
	maxAsking = 16
)

// Command is what a person runs on a terminal.
const Command = "hecate-mcp confirm"

// Options of a Desk; the zero value has no terminal way.
type Options struct {
	// TTL is how long a plan waits for a person, and how long an accepted plan
	// waits for its call. Default: 5 minutes.
	TTL time.Duration
	// Timeout of a question to a legacy client. Default: 2 minutes.
	Timeout time.Duration
	// Folder is where the socket goes; "" means no terminal way. See Folder.
	Folder string
	// Now is the clock; default time.Now.
	Now func() time.Time
	// Log gets a line for each question and answer; default none.
	Log *slog.Logger
}

// Desk holds every confirmation of one server process. It is safe for
// concurrent use.
type Desk struct {
	options Options
	sealer  sealer
	// asking has a place for each question that waits for a legacy client.
	asking chan struct{}

	mu      sync.Mutex
	closed  bool
	pending pending

	terminal terminal
}

// New makes a Desk. It writes nothing: the folder and the socket come with
// the first plan that waits. A *FolderError says that the folder is there and
// not private to the user.
func New(o Options) (*Desk, error) {
	if o.TTL <= 0 {
		o.TTL = defaultTTL
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Folder != "" {
		if err := checkFolder(o.Folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	d := &Desk{options: o, asking: make(chan struct{}, maxAsking)}
	// crypto/rand never fails: it ends the process instead.
	rand.Read(d.sealer.key[:])
	rand.Read(d.sealer.id[:])
	return d, nil
}

// Close forgets everything and removes the socket. No confirmation counts
// after it.
func (d *Desk) Close() {
	d.mu.Lock()
	d.closed = true
	d.pending = pending{}
	d.mu.Unlock()
	d.terminal.close()
}

// Taken gives back the plan that a person has confirmed for exactly this call,
// once: by the second round of a modern client or on a terminal. It is nil
// when nobody was asked or nobody has answered yet: compute the plan and Ask.
// Errors are *Declined, and *Expired for an answer that does not count. A
// legacy client's inputResponses and requestState are ignored.
func (d *Desk) Taken(ctx context.Context, req mcp.CallToolRequest, c Call) (*Taken, error) {
	b, err := bind(c)
	if err != nil {
		return nil, err
	}
	t, err := d.take(ctx, req, b)
	switch {
	case err != nil:
		d.options.Log.InfoContext(ctx, "no confirmation", "tool", b.tool, "reason", err.Error())
	case t != nil:
		d.options.Log.InfoContext(ctx, "confirmed", "tool", b.tool, "via", t.Via, "id", t.ID)
	}
	return t, err
}

func (d *Desk) take(ctx context.Context, req mcp.CallToolRequest, b bound) (*Taken, error) {
	client, _ := peer(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.options.Now()
	if server.IsModernRequest(ctx) && (req.Params.RequestState != "" || len(req.Params.InputResponses) > 0) {
		e, err := d.answered(req.Params.RequestState, req.Params.InputResponses, b, now)
		if err != nil {
			return nil, err
		}
		return &Taken{e.plan, Confirmation{ViaElicitation, client, e.id}}, nil
	}
	d.pending.sweep(now)
	e := d.pending.byCall(b)
	if e == nil || e.answer == none {
		return nil, nil
	}
	d.pending.drop(e, Used)
	if e.answer == declined {
		return nil, &Declined{Reason: Said, Via: ViaTerminal, Plan: e.plan}
	}
	return &Taken{e.plan, Confirmation{ViaTerminal, client, e.id}}, nil
}

// answered checks the second round of a modern call. A state that is this
// call's is used up by it, whatever the answer.
func (d *Desk) answered(state string, responses mcp.InputResponses, b bound, now time.Time) (*entry, error) {
	if state == "" {
		return nil, &Expired{Unasked}
	}
	s, err := d.sealer.open(state)
	switch {
	case err != nil:
		return nil, err
	case s.who != b.who:
		return nil, &Expired{OtherPrincipal}
	case s.call != b.call:
		return nil, &Expired{OtherCall}
	case !now.Before(s.expires):
		return nil, &Expired{TooLate}
	}
	d.pending.sweep(now)
	e := d.pending.byNonce(s.nonce)
	if e == nil || e.digest != s.plan {
		return nil, &Expired{d.pending.whySpent(s.nonce)}
	}
	if _, ok := server.InputResponse(responses, question); !ok {
		// The client has nobody to ask; the plan still waits for the terminal.
		d.pending.spend(e, Used)
		return nil, &Expired{Silent}
	}
	d.pending.drop(e, Used)
	if no := judge(server.ElicitationResponse(responses, question)); no != nil {
		no.Plan = e.plan
		return nil, no
	}
	return e, nil
}

// Ask puts a plan before a person. A legacy client that shows forms is asked
// while Ask waits, and Ask returns how it was confirmed. All else are errors:
// *InputRequired carries the result that asks a modern client, *Required says
// that the plan waits for a terminal, *Declined that a person said no (the
// plan is gone), *FolderError that there is no safe place to wait.
//
// A plan whose same call is made again while it waits unanswered is not asked
// about in a form again: the client evidently shows none.
func (d *Desk) Ask(ctx context.Context, _ mcp.CallToolRequest, c Call, p Plan) (Confirmation, error) {
	b, err := bind(c)
	if err != nil {
		return Confirmation{}, err
	}
	client, forms := peer(ctx)
	e := d.entry(b, p, client)
	log := d.options.Log.With("tool", b.tool, "plan", p.Digest(), "id", e.id)

	var reason Reason
	switch {
	case d.waits(b, e.digest):
		reason = StillWaiting
	case !forms:
		reason = NoForm
	case server.IsModernRequest(ctx):
		log.InfoContext(ctx, "asking through the client's form")
		return Confirmation{}, d.question(e, log)
	default:
		select {
		case d.asking <- struct{}{}:
			log.InfoContext(ctx, "asking through the client's form")
			wait, cancel := context.WithTimeout(ctx, d.options.Timeout)
			answer, err := elicit(wait, e.shown.params())
			cancel()
			<-d.asking
			if err == nil {
				return d.settle(e, answer)
			}
			log.InfoContext(ctx, "the client gave no answer", "error", err)
			reason = NoAnswer
		default:
			reason = Busy
		}
	}
	required, err := d.park(e, reason)
	if err != nil {
		return Confirmation{}, err
	}
	log.InfoContext(ctx, "waiting for the terminal", "reason", required.Reason, "expires", required.ExpiresAt)
	return Confirmation{}, required
}

func (d *Desk) entry(b bound, p Plan, client string) *entry {
	var id [6]byte
	rand.Read(id[:])
	return &entry{id: hex.EncodeToString(id[:]), bound: b, plan: p, digest: hashOf(p.Digest()), shown: show(p), client: client}
}

// keep lets an entry wait from now on. Under the lock.
func (d *Desk) keep(e *entry) {
	e.asked = d.options.Now()
	e.expires = e.asked.Add(d.options.TTL)
	d.pending.add(e)
}

// waits reports whether the same plan of the same call waits for the terminal.
func (d *Desk) waits(b bound, digest hash) bool {
	if d.options.Folder == "" {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending.sweep(d.options.Now())
	e := d.pending.byCall(b)
	return e != nil && e.digest == digest
}

// settle ends a question to a legacy client. What waited for the same call is
// gone with it, whatever the answer: a person has just given one.
func (d *Desk) settle(e *entry, a *mcp.ElicitationResult) (Confirmation, error) {
	no := judge(a)
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.pending.byCall(e.bound); old != nil {
		d.pending.drop(old, Used)
	}
	if d.closed {
		return Confirmation{}, &Expired{Unknown}
	}
	if no != nil {
		no.Plan = e.plan
		return Confirmation{}, no
	}
	return Confirmation{ViaElicitation, e.client, e.id}, nil
}

// question keeps the plan under a new state and makes the result that asks.
// The terminal can answer meanwhile, when there is one: not every client that
// says so shows forms.
func (d *Desk) question(e *entry, log *slog.Logger) error {
	if d.options.Folder != "" {
		if err := d.listen(); err != nil {
			log.Warn("this plan can't be confirmed on a terminal", "error", err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return &Required{Reason: NoAnswer, Title: e.shown.title}
	}
	d.pending.sweep(d.options.Now())
	if old := d.pending.byCall(e.bound); old != nil {
		d.pending.drop(old, Replaced)
	}
	rand.Read(e.nonce[:])
	d.keep(e)
	state := d.sealer.seal(sealed{nonce: e.nonce, call: e.bound.call, who: e.bound.who, plan: e.digest, expires: e.expires})
	return &InputRequired{Title: e.shown.title, Result: server.NewInputRequestBuilder(state).Elicit(question, e.shown.params()).ToolResult()}
}

// park lets the plan wait for the terminal. The same plan of the same call
// that waits already goes on waiting as it was.
func (d *Desk) park(e *entry, reason Reason) (*Required, error) {
	r := &Required{Reason: reason, Title: e.shown.title}
	if d.options.Folder == "" {
		return r, nil
	}
	if err := d.listen(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return r, nil
	}
	d.pending.sweep(d.options.Now())
	old := d.pending.byCall(e.bound)
	switch {
	case old == nil:
		d.keep(e)
	case old.digest == e.digest:
		e = old
	default:
		d.pending.drop(old, Replaced)
		d.keep(e)
		r.Replaced = true
	}
	r.Command, r.ExpiresAt = Command, e.expires
	return r, nil
}
