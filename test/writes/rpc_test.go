package writes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

// server is one process of the binary, spoken to in bare JSON-RPC over its pipes:
// a client of the library would not send what an attacker sends.
type server struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	folder string // of its socket
	log    string // of writes
	// elicit answers a question of the legacy era; nil never answers.
	elicit func(params json.RawMessage) any

	mu      sync.Mutex
	n       int
	waiting map[string]chan message
	asked   []json.RawMessage
	stderr  bytes.Buffer
	done    chan struct{}
}

type message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// home is a folder for a server's socket and log. Its path is short: that of a
// socket may have about a hundred bytes.
func home(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "w-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Mkdir(dir+"/run", 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serve starts a server that may write, as a user.
func (w *world) serve(t testing.TB, user string, flags ...string) *server {
	t.Helper()
	return w.serveIn(t, home(t), user, flags...)
}

// serveIn is serve with the folder of an earlier server, or one prepared.
func (w *world) serveIn(t testing.TB, dir, user string, flags ...string) *server {
	t.Helper()
	return w.start(t, dir, append([]string{"serve", "--allow-writes", "--write-log", dir + "/writes.jsonl", "--kubeconfig", w.Kubeconfig(t, user, w.ns), "--log-level", "warn"}, flags...)...)
}

// start runs the binary as a server on pipes.
func (w *world) start(t testing.TB, dir string, args ...string) *server {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{waiting: map[string]chan message{}, done: make(chan struct{}), folder: dir + "/run/hecate-mcp", log: dir + "/writes.jsonl"}
	s.cmd = exec.Command(path, args...)
	s.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir+"/run", "XDG_STATE_HOME="+dir, "KUBECONFIG=")
	s.cmd.Stderr = &s.stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read(out)
	t.Cleanup(func() {
		s.in.Close()
		select {
		case <-s.done:
		case <-time.After(30 * time.Second):
			_ = s.cmd.Process.Kill()
		}
		_ = s.cmd.Wait()
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.stderr.String())
		}
	})
	return s
}

func (s *server) read(out io.Reader) {
	defer close(s.done)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		var m message
		if json.Unmarshal(lines.Bytes(), &m) != nil {
			continue
		}
		if m.Method == "elicitation/create" {
			s.mu.Lock()
			s.asked = append(s.asked, m.Params)
			answer := s.elicit
			s.mu.Unlock()
			if answer == nil {
				continue
			}
			go func() {
				if a := answer(m.Params); a != nil {
					s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": a})
				} else {
					s.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": map[string]any{"code": -32601, "message": "no"}})
				}
			}()
			continue
		}
		s.mu.Lock()
		c := s.waiting[string(m.ID)]
		delete(s.waiting, string(m.ID))
		s.mu.Unlock()
		if c != nil {
			c <- m
		}
	}
}

func (s *server) send(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// A server that is gone shows as a call without an answer.
	_, _ = s.in.Write(append(raw, '\n'))
}

// begin sends a request; its answer, if there ever is one, comes in the channel.
func (s *server) begin(method string, params any) <-chan message {
	s.mu.Lock()
	s.n++
	n := s.n
	c := make(chan message, 1)
	s.waiting[fmt.Sprint(n)] = c
	s.mu.Unlock()
	s.send(map[string]any{"jsonrpc": "2.0", "id": n, "method": method, "params": params})
	return c
}

// ask sends a request and waits for its answer.
func (s *server) ask(t testing.TB, method string, params any) message {
	t.Helper()
	select {
	case m := <-s.begin(method, params):
		return m
	case <-s.done:
	case <-time.After(2 * time.Minute):
	}
	t.Errorf("no answer to %s %v", method, params)
	return message{}
}

// initialize begins the legacy era with or without elicitation.
func (s *server) initialize(t testing.TB, elicitation bool) {
	t.Helper()
	capabilities := map[string]any{}
	if elicitation {
		capabilities["elicitation"] = map[string]any{}
	}
	if m := s.ask(t, "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": map[string]any{"name": "pipes", "version": "1"}}); m.Error != nil {
		t.Fatal(m.Error.Message)
	}
	s.send(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// modern adds to parameters what every request of the modern era carries.
func modern(params map[string]any) map[string]any {
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "pipes", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{"form": map[string]any{}}},
	}
	return params
}

// yes answers the question of the modern era.
var yes = answered(map[string]any{"action": "accept", "content": map[string]any{"confirm": true}})

// answered is the inputResponses of an answer to the one question.
func answered(answer any) any { return map[string]any{"confirm": answer} }

// first calls a tool in the modern era, without answers.
func (s *server) first(t testing.TB, tool string, a args) answer {
	t.Helper()
	return s.second(t, tool, a, "", nil)
}

// second calls a tool in the modern era with a state and answers; "" and nil are
// left out.
func (s *server) second(t testing.TB, tool string, a args, state string, responses any) answer {
	t.Helper()
	params := modern(map[string]any{"name": tool, "arguments": a})
	if state != "" {
		params["requestState"] = state
	}
	if responses != nil {
		params["inputResponses"] = responses
	}
	return parse(t, s.ask(t, "tools/call", params))
}

// question is a first call that a person is asked about.
func (s *server) question(t testing.TB, tool string, a args) answer {
	t.Helper()
	q := s.first(t, tool, a)
	if q.err != nil || q.state == "" || q.key != "confirm" || q.message == "" {
		t.Fatalf("no question: %s", q)
	}
	return q
}

// person decides who answers questions of the legacy era from now on.
func (s *server) person(p func(json.RawMessage) any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.elicit = p
}

// questions are those of the legacy era so far.
func (s *server) questions() []json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// stop ends the process as a client does, by closing its input.
func (s *server) stop() {
	s.in.Close()
	<-s.done
}

// answer is what a call of a tool gave.
type answer struct {
	err   *tools.Error // nil for a result
	out   map[string]any
	state string // of an input_required result
	key   string // of its question
	// message is what the question shows.
	message string
	raw     string
}

func (a answer) String() string { return a.raw }

func parse(t testing.TB, m message) answer {
	t.Helper()
	if m.Error != nil {
		return answer{raw: m.Error.Message, err: &tools.Error{Code: "Protocol", Message: m.Error.Message}}
	}
	var r struct {
		IsError           bool
		Content           []struct{ Text string }
		StructuredContent map[string]any
		RequestState      string
		InputRequests     map[string]struct{ Params struct{ Message string } }
	}
	if err := json.Unmarshal(m.Result, &r); err != nil {
		t.Fatalf("%v: %s", err, m.Result)
	}
	a := answer{raw: string(m.Result), out: r.StructuredContent, state: r.RequestState}
	for k, q := range r.InputRequests {
		a.key, a.message = k, q.Params.Message
	}
	if r.IsError {
		a.err = &tools.Error{}
		if err := json.Unmarshal([]byte(r.Content[0].Text), a.err); err != nil {
			t.Fatalf("%v: %s", err, r.Content[0].Text)
		}
	}
	return a
}

type args = map[string]any

// call calls a tool in the legacy era.
func (s *server) call(t testing.TB, tool string, a args) answer {
	t.Helper()
	return parse(t, s.ask(t, "tools/call", map[string]any{"name": tool, "arguments": a}))
}

// accepts and declines are people of the legacy era.
func accepts(json.RawMessage) any {
	return map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}
}

func declines(json.RawMessage) any { return map[string]any{"action": "decline"} }

// events are what the log of writes holds, in order.
func (s *server) events(t testing.TB) []string {
	t.Helper()
	raw, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var e struct{ Event, Code, Reason string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		out = append(out, strings.TrimSpace(e.Event+" "+e.Code+" "+e.Reason))
	}
	return out
}
