package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
)

const (
	endpoint = "/mcp"     // the one MCP endpoint, both protocol eras
	health   = "/healthz" // answers "ok" while the process serves

	maxSessions    = 1024
	maxHeaderBytes = 64 << 10
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
)

// HTTPOptions say where and within which limits to serve. A zero value means the default.
type HTTPOptions struct {
	Listen        string        // loopback host:port; default 127.0.0.1:0
	SessionTTL    time.Duration // idle time after which a legacy session ends; default 30 min
	MaxBody       int64         // bytes of one request body; default 1 MiB
	MaxConcurrent int           // requests served at once, and as many streams; default 64
	BodyTimeout   time.Duration // time to send one body; default 30 s
	StopTimeout   time.Duration // time for requests in flight when stopping; default 5 s
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	setDefault(&o.Listen, "127.0.0.1:0")
	setDefault(&o.SessionTTL, 30*time.Minute)
	setDefault(&o.MaxBody, 1<<20)
	setDefault(&o.MaxConcurrent, 64)
	setDefault(&o.BodyTimeout, 30*time.Second)
	setDefault(&o.StopTimeout, stopTimeout)
	return o
}

func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// HTTP is a streamable HTTP server on loopback.
type HTTP struct {
	options  HTTPOptions
	log      *slog.Logger
	listener net.Listener
	server   *http.Server
	sessions *sessions
	mcp      *mcpserver.StreamableHTTPServer
	stop     context.CancelFunc // ends the streams, which would never end by themselves
}

// NewHTTP binds the address, so that Addr is known and a port in use is an error here, and serves
// nothing yet. The error says why an address is refused and which ones are valid.
func NewHTTP(s *mcpserver.MCPServer, o HTTPOptions, log *slog.Logger) (*HTTP, error) {
	o = o.withDefaults()
	if err := checkListen(o.Listen); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", o.Listen, err)
	}
	// "localhost" is whatever the hosts file says.
	if addr, ok := listener.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		err := fmt.Errorf("listen address %q is refused: it resolves to %s, which is not loopback; %s", o.Listen, listener.Addr(), validListen)
		return nil, errors.Join(err, listener.Close())
	}

	streams, stop := context.WithCancel(context.Background())
	sessions := newSessions(o.SessionTTL, maxSessions)
	server := &http.Server{
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// No WriteTimeout: a stream, and a call that waits for a person, last as long as they last.
	}
	acknowledge(s)
	mcp := mcpserver.NewStreamableHTTPServer(s,
		mcpserver.WithSessionIdManagerResolver(sessions),
		mcpserver.WithSessionIdleTTL(o.SessionTTL),
		// A ping down an open stream keeps the session of a client that only listens alive.
		mcpserver.WithHeartbeatInterval(o.SessionTTL/4),
		mcpserver.WithStreamableHTTPLogger(log),
		mcpserver.WithStreamableHTTPServer(server),
	)
	server.Handler = newGuard(mcp, sessions, o, streams, log)
	return &HTTP{options: o, log: log, listener: listener, server: server, sessions: sessions, mcp: mcp, stop: stop}, nil
}

// Addr is the bound address, "127.0.0.1:41234".
func (h *HTTP) Addr() string { return h.listener.Addr().String() }

// URL is where clients connect to, "http://127.0.0.1:41234/mcp".
func (h *HTTP) URL() string { return "http://" + h.Addr() + endpoint }

// ListenAndServe serves until ctx ends or the process gets SIGTERM or SIGINT, then stops: streams at once,
// requests in flight within StopTimeout, after which their connections are closed. That is a clean exit (nil).
// Once per HTTP.
func (h *HTTP) ListenAndServe(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	defer h.stop()

	h.log.Info("listening", "url", h.URL())
	failed := make(chan error, 1)
	go func() { failed <- h.server.Serve(h.listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve HTTP on %s: %w", h.Addr(), err)
	case <-ctx.Done():
	}

	h.stop()
	deadline, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.options.StopTimeout)
	defer cancel()
	// Ends the sessions, then calls the Shutdown of our http.Server, and ends those that began meanwhile.
	err := h.mcp.Shutdown(deadline)
	if errors.Is(err, context.DeadlineExceeded) {
		h.log.Warn("requests were still running, closing their connections", "timeout", h.options.StopTimeout)
		err = h.server.Close()
	}
	if err != nil {
		return fmt.Errorf("stop HTTP on %s: %w", h.Addr(), err)
	}
	return nil
}
