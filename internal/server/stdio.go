package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
)

const (
	// stdioWorkers run tool calls side by side. A call that waits for a person holds its worker, and
	// five unanswered questions would block the library's default pool.
	stdioWorkers = 32
	// stopTimeout is how long handlers may take to notice that the client is gone.
	stopTimeout = 5 * time.Second
)

// ServeStdio serves s on in and out, one JSON-RPC message a line, until in ends, ctx ends, or the
// process gets SIGTERM or SIGINT: all four are a clean exit (nil). Handlers are cancelled then; one that
// does not return within 5 s is left behind, since the caller is about to exit. An error means that in could
// not be read. Once per process: the library keeps the stdio session in a package variable.
func ServeStdio(ctx context.Context, s *mcpserver.MCPServer, in io.Reader, out io.Writer, log *slog.Logger) error {
	ctx, stop := untilSignal(ctx)
	defer stop()

	std := mcpserver.NewStdioServer(s)
	// The library's logger writes to stderr in a format of its own otherwise.
	mcpserver.WithErrorLogger(slog.NewLogLogger(log.Handler(), slog.LevelWarn))(std)
	mcpserver.WithWorkerPoolSize(stdioWorkers)(std)

	input := &endingReader{Reader: in, ended: make(chan struct{})}
	done := make(chan error, 1)
	go func() { done <- listenStdio(ctx, std, input, out, log) }()

	select {
	case err := <-done:
		return stdioError(ctx, err)
	case <-ctx.Done():
	case <-input.ended:
	}
	select {
	case err := <-done:
		return stdioError(ctx, err)
	case <-time.After(stopTimeout):
		log.Warn("a handler did not stop in time, leaving it behind", "timeout", stopTimeout)
		return nil
	}
}

// listenStdio turns a panic in the library's read loop into an error. Handlers recover by themselves, and the
// library recovers what they let through.
func listenStdio(ctx context.Context, std *mcpserver.StdioServer, in io.Reader, out io.Writer, log *slog.Logger) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("panic while serving stdio", "panic", p)
			err = fmt.Errorf("stdio: panic: %v", p)
		}
	}()
	return std.Listen(ctx, in, out)
}

func stdioError(ctx context.Context, err error) error {
	if err == nil || (ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		return nil
	}
	return fmt.Errorf("stdio: %w", err)
}

// untilSignal ends the context on SIGTERM or SIGINT. A second signal then kills, as a person expects who
// presses Ctrl-C twice.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// endingReader tells when its reader has ended, which the library's Listen keeps to itself until every
// handler has returned.
type endingReader struct {
	io.Reader
	once  sync.Once
	ended chan struct{}
}

func (r *endingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil {
		r.once.Do(func() { close(r.ended) })
	}
	return n, err
}
