package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// guard stands in front of the library's HTTP handler and lets through only what may be served. Every
// refusal is a JSON-RPC error without an id, with the HTTP status that says what kind it is.
type guard struct {
	next     http.Handler
	sessions *sessions
	options  HTTPOptions
	streams  context.Context // done when the server stops
	log      *slog.Logger
	calls    chan struct{} // one element per request being served
	open     chan struct{} // one element per open stream
}

func newGuard(next http.Handler, s *sessions, o HTTPOptions, streams context.Context, log *slog.Logger) http.Handler {
	g := &guard{
		next: next, sessions: s, options: o, streams: streams, log: log,
		calls: make(chan struct{}, o.MaxConcurrent),
		open:  make(chan struct{}, o.MaxConcurrent),
	}
	mux := http.NewServeMux()
	mux.HandleFunc(endpoint, g.serveMCP)
	mux.HandleFunc("GET "+health, func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "ok\n"); err != nil {
			log.Debug("health answer not written", "error", err)
		}
	})
	return g.sameMachine(mux)
}

// refusal is why a request is not served.
type refusal struct {
	status int
	reason string
}

func refused(status int, format string, args ...any) *refusal {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

func (g *guard) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	g.log.Warn("request refused", "method", r.Method, "path", clip(r.URL.Path), "status", why.status, "reason", why.reason)
	body, err := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": nil,
		"error": map[string]any{"code": mcp.INVALID_REQUEST, "message": why.reason},
	})
	if err != nil {
		g.log.Error("refusal not encoded", "error", err)
	}
	w.Header().Set("Content-Type", "application/json")
	if why.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(why.status)
	if _, err := w.Write(body); err != nil {
		g.log.Debug("refusal not written", "error", err)
	}
}

// sameMachine refuses what a web page could send: a page of a foreign origin, and a page whose name was
// rebound to 127.0.0.1 so that it looks like ours. It is stricter than net/http's CrossOriginProtection,
// which lets GET pass and compares Origin with a Host that the attacker chooses.
func (g *guard) sameMachine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer g.recovered(r)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		origins := r.Header.Values("Origin")
		switch {
		case !isLoopbackHost(r.Host):
			g.refuse(w, r, refused(http.StatusForbidden, "Host %q is not served; valid: localhost, 127.0.0.1, [::1]", clip(r.Host)))
		case len(origins) > 1 || len(origins) == 1 && !isLoopbackOrigin(origins[0]):
			g.refuse(w, r, refused(http.StatusForbidden, "Origin %q is not served; valid: none, or a page of this machine", clip(strings.Join(origins, ", "))))
		case r.Header.Get("Sec-Fetch-Site") == "cross-site":
			g.refuse(w, r, refused(http.StatusForbidden, "requests from pages of other sites are not served"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// recovered logs a panic and drops the connection: the answer may be half written. Tools recover by
// themselves, so this is for what is left.
func (g *guard) recovered(r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
		g.log.Error("panic while serving a request", "method", r.Method, "path", clip(r.URL.Path), "panic", p, "stack", string(debug.Stack()))
	}
	panic(http.ErrAbortHandler) // net/http then closes the connection without a second log entry
}

func (g *guard) serveMCP(w http.ResponseWriter, r *http.Request) {
	var why *refusal
	switch r.Method {
	case http.MethodPost:
		why = g.post(w, r)
	case http.MethodGet, http.MethodDelete:
		why = g.session(w, r)
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		why = refused(http.StatusMethodNotAllowed, "method %s is not allowed; valid: POST, GET, DELETE", clip(r.Method))
	}
	if why != nil {
		g.refuse(w, r, why)
	}
}

// session serves GET (the stream of a legacy session) and DELETE (its end). The library would open a
// stream for any id, and report the end of a session that never was.
func (g *guard) session(w http.ResponseWriter, r *http.Request) *refusal {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		g.next.ServeHTTP(w, r) // the library answers 405: the modern era has neither
		return nil
	}
	if why := g.checkSession(r); why != nil {
		return why
	}
	if r.Method == http.MethodDelete {
		g.next.ServeHTTP(w, r)
		return nil
	}
	if !accepts(r, "text/event-stream") {
		return refused(http.StatusNotAcceptable, "Accept must allow text/event-stream")
	}
	return g.stream(w, r)
}

// stream serves a request that lasts until the client leaves or the server stops.
func (g *guard) stream(w http.ResponseWriter, r *http.Request) *refusal {
	return limited(g.open, "streams", func() {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(g.streams, cancel)()
		first := &firstWrite{ResponseWriter: w, written: make(chan struct{})}
		g.next.ServeHTTP(first, r.WithContext(context.WithValue(ctx, firstWriteKey{}, first)))
	})
}

// post serves one JSON-RPC message.
func (g *guard) post(w http.ResponseWriter, r *http.Request) *refusal {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return refused(http.StatusUnsupportedMediaType, "Content-Type %q is not served; valid: application/json", clip(r.Header.Get("Content-Type")))
	}
	if !accepts(r, "application/json") || !accepts(r, "text/event-stream") {
		return refused(http.StatusNotAcceptable, "Accept must allow application/json and text/event-stream")
	}
	body, why := g.body(w, r)
	if why != nil {
		return why
	}
	r.Body = io.NopCloser(bytes.NewReader(body))

	m, err := readMessage(body)
	if err != nil {
		g.next.ServeHTTP(w, r) // the library answers with a JSON-RPC parse error
		return nil
	}
	if m.modern(r.Header) {
		if m.Method == mcp.MethodNotificationCancelled {
			// Modern requests share one empty session id in the library, so this would cancel whichever
			// call has that number, whoever sent it. A modern client cancels by closing its response.
			w.WriteHeader(http.StatusAccepted)
			return nil
		}
	} else if m.Method == mcp.MethodInitialize {
		if g.sessions.full() {
			return refused(http.StatusServiceUnavailable, "%d sessions are open, no further one can begin", g.sessions.max)
		}
	} else if why := g.checkSession(r); why != nil {
		return why
	}

	switch {
	case m.Method == mcp.MethodSubscriptionsListen:
		return g.stream(w, r)
	case m.Method != "" && len(m.ID) > 0:
		return limited(g.calls, "requests", func() { g.next.ServeHTTP(w, r) })
	default:
		// Notifications and answers take no place among the calls: a full house of calls that wait for an
		// answer must still be able to receive it.
		g.next.ServeHTTP(w, r)
		return nil
	}
}

// body reads the request's body, at most MaxBody bytes and BodyTimeout long, so that neither memory nor
// a connection can be held by a body that never ends.
func (g *guard) body(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	tooLarge := refused(http.StatusRequestEntityTooLarge, "the body is over the limit of %d bytes", g.options.MaxBody)
	if r.ContentLength > g.options.MaxBody {
		w.Header().Set("Connection", "close") // what is left of the body is not worth reading
		return nil, tooLarge
	}
	// net/http lifts the deadline when the body has been read, so it does not cut the call short.
	deadline := time.Now().Add(g.options.BodyTimeout)
	if err := http.NewResponseController(w).SetReadDeadline(deadline); err != nil {
		g.log.Error("no read deadline", "error", err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, g.options.MaxBody))
	if err != nil {
		var over *http.MaxBytesError
		switch {
		case errors.As(err, &over):
			return nil, tooLarge
		case errors.Is(err, os.ErrDeadlineExceeded):
			w.Header().Set("Connection", "close")
			return nil, refused(http.StatusRequestTimeout, "the body did not arrive within %s", g.options.BodyTimeout)
		}
		return nil, refused(http.StatusBadRequest, "the body could not be read")
	}
	return body, nil
}

func (g *guard) checkSession(r *http.Request) *refusal {
	id := r.Header.Get(mcpserver.HeaderKeySessionID)
	if id == "" {
		return refused(http.StatusBadRequest, "%s is missing: send initialize first", mcpserver.HeaderKeySessionID)
	}
	if _, err := g.sessions.of(principalOf(r)).Validate(id); err != nil {
		return refused(http.StatusNotFound, "%s", err)
	}
	return nil
}

// message is what the guard has to know of a JSON-RPC message. It is decoded in the two steps in which the
// library decodes it, so that the two cannot disagree about what a message is.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method mcp.MCPMethod   `json:"method"`

	version string // the protocol version that _meta names, "" when there is none
}

func readMessage(body []byte) (message, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return m, err
	}
	var wrapper struct {
		Params struct {
			Meta *mcp.Meta `json:"_meta"`
		} `json:"params"`
	}
	// Params of another shape name no version; what is wrong with them is for the library to say.
	if json.Unmarshal(body, &wrapper) == nil {
		m.version = wrapper.Params.Meta.ProtocolVersion()
	}
	return m, nil
}

// modern reports whether the library will take the message for one of the modern era: when either the
// header or the message's _meta names a modern protocol version.
func (m message) modern(h http.Header) bool {
	return mcp.IsModernProtocol(h.Get(mcp.HeaderProtocolVersion)) || mcp.IsModernProtocol(m.version)
}

// limited runs f in one of the given places, or refuses when all are taken.
func limited(places chan struct{}, what string, f func()) *refusal {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
		f()
		return nil
	default:
		return refused(http.StatusServiceUnavailable, "%d %s are being served, try again", cap(places), what)
	}
}

// accepts reports whether the Accept header allows a media type; no header allows all. A weight of zero,
// which excludes a type, is not looked for: no client says "everything but".
func accepts(r *http.Request, kind string) bool {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(kind, "/")
	for _, one := range strings.Split(strings.Join(values, ","), ",") {
		media, _, err := mime.ParseMediaType(one)
		if err == nil && (media == kind || media == family+"/*" || media == "*/*") {
			return true
		}
	}
	return false
}

// clip bounds what a client sent before it is repeated in a log or an answer.
func clip(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
