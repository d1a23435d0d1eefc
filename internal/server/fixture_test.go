package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// fixture is a server with a tool that answers, one that waits until it is cancelled, and one that panics.
type fixture struct {
	core      *mcpserver.MCPServer
	waiting   chan struct{} // one element per "wait" that has begun
	cancelled chan struct{} // one element per "wait" that was cancelled
	release   chan struct{} // closed to let every "wait" answer
}

func newFixture() *fixture {
	f := &fixture{
		core:      mcpserver.NewMCPServer("fixture", "1", mcpserver.WithToolCapabilities(true)),
		waiting:   make(chan struct{}, 100),
		cancelled: make(chan struct{}, 100),
		release:   make(chan struct{}),
	}
	f.core.AddTool(mcp.NewTool("echo", mcp.WithString("text", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(r.GetString("text", "")), nil
		})
	f.core.AddTool(mcp.NewTool("wait"),
		func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			f.waiting <- struct{}{}
			select {
			case <-ctx.Done():
				f.cancelled <- struct{}{}
				return nil, ctx.Err()
			case <-f.release:
				return mcp.NewToolResultText("released"), nil
			}
		})
	f.core.AddTool(mcp.NewTool("panic"),
		func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("on purpose") })
	return f
}

// running is an HTTP server under test, with its log.
type running struct {
	*fixture
	*HTTP
	log    *buffer
	cancel context.CancelFunc
	done   chan error // what ListenAndServe returned
}

func serve(t *testing.T, o HTTPOptions) *running {
	t.Helper()
	r := &running{fixture: newFixture(), log: &buffer{}, done: make(chan error, 1)}
	h, err := NewHTTP(r.core, o, slog.New(slog.NewTextHandler(r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.HTTP = h
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.done <- h.ListenAndServe(ctx); close(r.done) }()
	t.Cleanup(func() { cancel(); <-r.done })
	return r
}

// answer is an HTTP answer, read whole.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request to the server, by default a legacy ping without a session.
func (r *running) send(t *testing.T, edit ...func(*http.Request)) answer {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.URL(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for _, e := range edit {
		e(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

// begin opens a legacy session and returns its id.
func (r *running) begin(t *testing.T) string {
	t.Helper()
	a := r.send(t, body(initialize))
	if a.status != http.StatusOK || a.header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize: %d %s %v", a.status, a.body, a.header)
	}
	return a.header.Get("Mcp-Session-Id")
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// modernMessage is a message of the modern era; extra are further params.
func modernMessage(id any, method string, extra map[string]any) string {
	params := map[string]any{"_meta": map[string]any{
		mcp.MetaKeyProtocolVersion:    mcp.ProtocolVersion20260728,
		mcp.MetaKeyClientCapabilities: map[string]any{},
	}}
	for k, v := range extra {
		params[k] = v
	}
	m := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if id != nil {
		m["id"] = id
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func header(k, v string) func(*http.Request) {
	return func(r *http.Request) {
		if v == "" {
			r.Header.Del(k)
			return
		}
		r.Header.Set(k, v)
	}
}
func host(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
func method(m string) func(*http.Request) {
	return func(r *http.Request) {
		r.Method = m
		if m != http.MethodPost {
			r.Body, r.ContentLength, r.GetBody = nil, 0, nil
		}
	}
}
func path(p string) func(*http.Request)         { return func(r *http.Request) { r.URL.Path = p } }
func withSession(id string) func(*http.Request) { return header("Mcp-Session-Id", id) }
func body(s string) func(*http.Request) {
	return func(r *http.Request) {
		r.Body, r.ContentLength, r.GetBody = io.NopCloser(strings.NewReader(s)), int64(len(s)), nil
	}
}
func chunked(b io.Reader) func(*http.Request) {
	return func(r *http.Request) { r.Body, r.ContentLength, r.GetBody = io.NopCloser(b), -1, nil }
}

// modern makes the request one of the modern era, as its headers have to say too.
func modern(id any, method, name string, extra map[string]any) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set(mcp.HeaderProtocolVersion, mcp.ProtocolVersion20260728)
		r.Header.Set("Mcp-Method", method)
		if name != "" {
			r.Header.Set("Mcp-Name", name)
		}
		body(modernMessage(id, method, extra))(r)
	}
}

func call(id, tool, arguments string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}

// got waits for a sign of a tool.
func got(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(5 * time.Second):
		t.Fatalf("%s: nothing after 5 s", what)
	}
}

// buffer is a log that may be written and read at once.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// dial opens a raw connection to the server.
func (r *running) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", r.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}
