package confirm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// promotion is a plan of the tests.
type promotion struct {
	gate, version string
	lines         []string
}

func (p promotion) Digest() string  { return p.gate + "@" + p.version }
func (p promotion) Title() string   { return "Promote " + p.version + " to " + p.gate }
func (p promotion) Lines() []string { return p.lines }
func (p promotion) Confirm() string { return p.gate }

// writer is a server with one tool that writes only what was confirmed, as a
// real tool does it.
type writer struct {
	desk *Desk
	mcp  *server.MCPServer

	mu sync.Mutex
	// version is what a plan is about: a change makes it another plan.
	version   string
	principal string
	written   []string
	by        []Confirmation
}

const tool, otherTool = "promote", "abort"

// clock is a clock that stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newWriter(t testing.TB, o Options) *writer {
	t.Helper()
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	w := &writer{desk: d, version: "1.0", principal: "alice", mcp: server.NewMCPServer("writer", "1", server.WithToolCapabilities(false))}
	for _, name := range []string{tool, otherTool} {
		w.mcp.AddTool(mcp.NewTool(name), func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return w.write(ctx, req, name), nil
		})
	}
	w.mcp.AddTool(mcp.NewTool("read"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("read"), nil
	})
	return w
}

func (w *writer) write(ctx context.Context, req mcp.CallToolRequest, name string) *mcp.CallToolResult {
	args := req.Params.RawArguments
	if len(args) == 0 {
		args, _ = json.Marshal(req.Params.Arguments)
	}
	w.mu.Lock()
	c := Call{Tool: name, Arguments: args, Principal: w.principal}
	plan := Plan(promotion{gate: "production", version: w.version, lines: []string{"Gate production"}})
	w.mu.Unlock()

	taken, err := w.desk.Taken(ctx, req, c)
	var by Confirmation
	switch {
	case err != nil:
	case taken != nil:
		plan, by = taken.Plan, taken.Confirmation
	default:
		by, err = w.desk.Ask(ctx, req, c, plan)
	}
	var input *InputRequired
	switch {
	case errors.As(err, &input):
		return input.Result
	case err != nil:
		return mcp.NewToolResultError(outcome(err))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written = append(w.written, plan.Digest())
	w.by = append(w.by, by)
	return mcp.NewToolResultText("done")
}

// outcome is an error as code and reason.
func outcome(err error) string {
	if e, ok := errors.AsType[*Required](err); ok {
		out := e.Code() + " " + string(e.Reason)
		if e.Command == "" {
			out += " nowhere"
		}
		if e.Replaced {
			out += " replaced"
		}
		return out
	}
	if e, ok := errors.AsType[*Declined](err); ok {
		return e.Code() + " " + string(e.Reason)
	}
	if e, ok := errors.AsType[*Expired](err); ok {
		return e.Code() + " " + string(e.Reason)
	}
	if e, ok := errors.AsType[*FolderError](err); ok {
		return e.Code() + " folder"
	}
	return "other: " + err.Error()
}

// wrote checks what was written so far.
func (w *writer) wrote(t testing.TB, want ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.written, want) {
		t.Errorf("written: %v, want %v", w.written, want)
	}
}

// drift makes the next plan another one.
func (w *writer) drift(version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version = version
}

func (w *writer) becomes(principal string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.principal = principal
}

// handler answers elicitations; it counts them and keeps the last one.
type handler struct {
	mu     sync.Mutex
	asked  int
	last   mcp.ElicitationParams
	answer func(context.Context) (*mcp.ElicitationResult, error)
}

func (h *handler) Elicit(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	h.mu.Lock()
	h.asked++
	h.last = r.Params
	answer := h.answer
	h.mu.Unlock()
	return answer(ctx)
}

// becomes makes h answer like o from now on.
func (h *handler) becomes(o *handler) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = o.answer
}

func (h *handler) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked
}

// says makes a handler that always gives this answer.
func says(action mcp.ElicitationResponseAction, content any) *handler {
	return &handler{answer: func(context.Context) (*mcp.ElicitationResult, error) {
		return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: action, Content: content}}, nil
	}}
}

// silent never answers.
func silent() *handler {
	return &handler{answer: func(ctx context.Context) (*mcp.ElicitationResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
}

var yes = map[string]any{"confirm": true}

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// connection is a way for a real client to reach the server.
type connection struct{ era, transport string }

var connections = []connection{{legacy, "in process"}, {legacy, "http"}, {modern, "in process"}, {modern, "http"}}

func (c connection) String() string { return c.era + " " + c.transport }

// connect makes a client of the library; h may be nil: no elicitation then.
func (c connection) connect(t testing.TB, w *writer, h *handler) *client.Client {
	t.Helper()
	options := []client.ClientOption{client.WithProtocolVersion(c.era)}
	if h != nil {
		options = append(options, client.WithElicitationHandler(h))
	}
	var cl *client.Client
	var err error
	if c.transport == "http" {
		web := httptest.NewServer(server.NewStreamableHTTPServer(w.mcp, server.WithStateful(true)))
		t.Cleanup(web.Close)
		cl, err = client.NewStreamableHttpClient(web.URL+"/mcp", nil)
		if err == nil {
			cl = client.NewClient(cl.GetTransport(), options...)
		}
	} else {
		cl, err = client.NewInProcessClientWithOptions(w.mcp, options...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := cl.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	var init mcp.InitializeRequest
	init.Params.ProtocolVersion = c.era
	init.Params.ClientInfo = mcp.Implementation{Name: "test-client", Version: "7"}
	if _, err := cl.Initialize(ctx, init); err != nil {
		t.Fatal(err)
	}
	if got := cl.ProtocolVersion(); got != c.era {
		t.Fatalf("the client speaks %s, not %s", got, c.era)
	}
	return cl
}

var arguments = map[string]any{"gate": "production", "bundle": "app-1"}

// call calls the tool and returns its text, "" for an answer without one.
func call(ctx context.Context, cl *client.Client, edit ...func(*mcp.CallToolRequest)) (string, error) {
	var req mcp.CallToolRequest
	req.Params.Name = tool
	req.Params.Arguments = arguments
	for _, e := range edit {
		e(&req)
	}
	r, err := cl.CallTool(ctx, req)
	if err != nil {
		return "", err
	}
	return text(r), nil
}

func text(r *mcp.CallToolResult) string {
	var out []string
	for _, c := range r.Content {
		if tc, ok := c.(mcp.TextContent); ok {
			out = append(out, tc.Text)
		}
	}
	return strings.Join(out, "\n")
}

// answers calls the tool and checks what comes back.
func answers(t testing.TB, cl *client.Client, want string, edit ...func(*mcp.CallToolRequest)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	got, err := call(ctx, cl, edit...)
	if err != nil {
		got = "client error: " + err.Error()
	}
	if got != want {
		t.Errorf("the call answers %q, want %q", got, want)
	}
}

// rawCall is what one may send in a tools/call.
type rawCall struct {
	Tool      string
	Arguments any
	State     string
	// Responses is the JSON of inputResponses, "" for none.
	Responses string
	// Elicitation is the JSON of the declared capability, "" for none.
	Elicitation string
}

// forms is the capability of a client that shows forms.
const forms = `{}`

// raw sends a modern call as bytes, which no client of a library would, from a
// client that shows forms.
func (w *writer) raw(t testing.TB, c rawCall) *mcp.CallToolResult {
	t.Helper()
	c.Elicitation = forms
	return w.rawModern(t, c)
}

// rawModern sends a modern call of a client that declares what the call says.
func (w *writer) rawModern(t testing.TB, c rawCall) *mcp.CallToolResult {
	t.Helper()
	capabilities := map[string]any{}
	if c.Elicitation != "" {
		capabilities["elicitation"] = json.RawMessage(c.Elicitation)
	}
	return w.send(t, context.Background(), c, map[string]any{"_meta": map[string]any{
		mcp.MetaKeyProtocolVersion:    modern,
		mcp.MetaKeyClientInfo:         map[string]any{"name": "raw", "version": "0"},
		mcp.MetaKeyClientCapabilities: capabilities,
	}})
}

// rawLegacy sends a call in a legacy session, whose client answers a question
// with h.
func (w *writer) rawLegacy(t testing.TB, c rawCall, h *handler) *mcp.CallToolResult {
	t.Helper()
	s := server.NewInProcessSessionWithHandlers("raw", nil, h, nil)
	s.Initialize()
	if c.Elicitation != "" {
		var can mcp.ElicitationCapability
		if err := json.Unmarshal([]byte(c.Elicitation), &can); err != nil {
			t.Fatal(err)
		}
		s.SetClientCapabilities(mcp.ClientCapabilities{Elicitation: &can})
	}
	return w.send(t, w.mcp.WithContext(context.Background(), s), c, map[string]any{})
}

func (w *writer) send(t testing.TB, ctx context.Context, c rawCall, params map[string]any) *mcp.CallToolResult {
	t.Helper()
	if c.Tool == "" {
		c.Tool = tool
	}
	if c.Arguments == nil {
		c.Arguments = arguments
	}
	params["name"], params["arguments"] = c.Tool, c.Arguments
	if c.State != "" {
		params["requestState"] = c.State
	}
	if c.Responses != "" {
		params["inputResponses"] = json.RawMessage(c.Responses)
	}
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := json.Marshal(w.mcp.HandleMessage(ctx, message))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Result *mcp.CallToolResult
		Error  json.RawMessage
	}
	if err := json.Unmarshal(answer, &got); err != nil || got.Result == nil {
		t.Fatalf("no result: %v\n%s", err, answer)
	}
	return got.Result
}

// state asks and returns the state of the question.
func (w *writer) state(t testing.TB) string {
	t.Helper()
	r := w.raw(t, rawCall{})
	if !r.NeedsInput() || r.RequestState == "" {
		t.Fatalf("not asked: %q", text(r))
	}
	return r.RequestState
}

const accepts = `{"confirm":{"action":"accept","content":{"confirm":true}}}`

// privateFolder returns the path of a folder for sockets that is not there
// yet. It is short: t.TempDir has the name of the test in it.
func privateFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "run")
}

// one returns the only plan that waits in the folder.
func one(t testing.TB, folder string) Waiting {
	t.Helper()
	waiting, problems := Look(context.Background(), folder)
	if len(waiting) != 1 || len(problems) > 0 {
		t.Fatalf("waiting: %v, problems: %v", waiting, problems)
	}
	return waiting[0]
}

func nothing(t testing.TB, folder string) {
	t.Helper()
	if waiting, problems := Look(context.Background(), folder); len(waiting) > 0 || len(problems) > 0 {
		t.Errorf("waiting: %v, problems: %v", waiting, problems)
	}
}

func wireCode(err error) string {
	if e, ok := errors.AsType[*WireError](err); ok {
		return e.Code
	}
	return fmt.Sprint(err)
}
