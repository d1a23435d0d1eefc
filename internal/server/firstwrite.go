package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// firstWrite tells when the first byte of an answer was written.
type firstWrite struct {
	http.ResponseWriter
	once    sync.Once
	written chan struct{}
}

type firstWriteKey struct{}

func (w *firstWrite) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.once.Do(func() { close(w.written) })
	return n, err
}

// Flush is asked for by the library before it streams.
func (w *firstWrite) Flush() {
	if f, ok := w.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (w *firstWrite) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// acknowledge holds the end of a subscription until its acknowledgement is out. The
// library queues that for another goroutine and drops it when the request ends
// first; with nothing to subscribe to, the request ends at once.
func acknowledge(s *mcpserver.MCPServer) {
	hooks := s.GetHooks()
	if hooks == nil {
		hooks = &mcpserver.Hooks{}
		mcpserver.WithHooks(hooks)(s)
	}
	hooks.AddAfterSubscriptionsListen(func(ctx context.Context, _ any, _ *mcp.SubscriptionsListenRequest, _ *mcp.SubscriptionsListenResult) {
		w, ok := ctx.Value(firstWriteKey{}).(*firstWrite)
		if !ok {
			return
		}
		select {
		case <-w.written:
		case <-ctx.Done():
		case <-time.After(5 * time.Second): // a client that reads nothing
		}
	})
}
