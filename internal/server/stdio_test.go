package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// TestMain turns the test binary into a stdio server when asked to: the library keeps the stdio session in a
// package variable, so that each test needs a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("SERVE_FIXTURE") == "" {
		os.Exit(m.Run())
	}
	f := newFixture()
	f.core.AddTool(mcp.NewTool("deaf"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		time.Sleep(time.Hour)
		return nil, nil
	})
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := ServeStdio(context.Background(), f.core, os.Stdin, os.Stdout, log); err != nil {
		log.Error("failed", "error", err)
		os.Exit(1)
	}
}

// process is a stdio server as a client sees it.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
	log buffer
}

func start(t *testing.T) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), "SERVE_FIXTURE=1")
	p.Stderr = &p.log
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.in, p.out = in, bufio.NewScanner(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(30*time.Second, func() { p.Process.Kill() })
	t.Cleanup(func() { hung.Stop(); p.Process.Kill() })
	return p
}

func (p *process) send(t *testing.T, message string) {
	t.Helper()
	if _, err := fmt.Fprintln(p.in, message); err != nil {
		t.Fatal(err)
	}
}

// receive returns the next line of stdout, which must be a JSON-RPC message.
func (p *process) receive(t *testing.T) string {
	t.Helper()
	if !p.out.Scan() {
		t.Fatalf("no answer: %v\n%s", p.out.Err(), p.log.String())
	}
	var m struct{ JSONRPC string }
	if err := json.Unmarshal(p.out.Bytes(), &m); err != nil || m.JSONRPC != "2.0" {
		t.Fatalf("not a message: %s", p.out.Text())
	}
	return p.out.Text()
}

// exits waits for the process and checks that it ended cleanly and left nothing else on stdout.
func (p *process) exits(t *testing.T) {
	t.Helper()
	for p.out.Scan() {
		if !json.Valid(p.out.Bytes()) {
			t.Errorf("on stdout: %s", p.out.Text())
		}
	}
	if err := p.Wait(); err != nil {
		t.Errorf("not a clean exit: %v\n%s", err, p.log.String())
	}
}

func TestStdioBothEras(t *testing.T) {
	p := start(t)
	p.send(t, initialize)
	if a := p.receive(t); !strings.Contains(a, `"protocolVersion":"2025-11-25"`) {
		t.Errorf("initialize: %s", a)
	}
	p.send(t, call("1", "echo", `{"text":"hi"}`))
	if a := p.receive(t); !strings.Contains(a, `"text":"hi"`) {
		t.Errorf("legacy call: %s", a)
	}
	p.send(t, modernMessage(2, "tools/call", map[string]any{"name": "echo", "arguments": map[string]any{"text": "ho"}}))
	if a := p.receive(t); !strings.Contains(a, `"text":"ho"`) {
		t.Errorf("modern call: %s", a)
	}
	if err := p.in.Close(); err != nil {
		t.Fatal(err)
	}
	p.exits(t)
}

func TestStdioBadInput(t *testing.T) {
	p := start(t)
	for _, bad := range []string{"{", "[]", `"x"`, `{"jsonrpc":"2.0","id":1,"method":5}`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, strings.Repeat("[", 100000)} {
		p.send(t, bad)
		if a := p.receive(t); !strings.Contains(a, `"error"`) {
			t.Errorf("%.30s: %s", bad, a)
		}
	}
	p.send(t, `{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	if a := p.receive(t); !strings.Contains(a, `"id":9`) {
		t.Errorf("after bad input: %s", a)
	}
	p.in.Close()
	p.exits(t)
}

func TestStdioPanic(t *testing.T) {
	p := start(t)
	p.send(t, call("1", "panic", "{}"))
	if a := p.receive(t); !strings.Contains(a, `"error"`) {
		t.Errorf("panic: %s", a)
	}
	p.send(t, call("2", "echo", `{"text":"alive"}`))
	if a := p.receive(t); !strings.Contains(a, "alive") {
		t.Errorf("after a panic: %s", a)
	}
	p.in.Close()
	p.exits(t)
	if !strings.Contains(p.log.String(), "on purpose") {
		t.Errorf("the panic is not in the log:\n%s", p.log.String())
	}
}

// TestStdioWaitingCallsDoNotBlock has 31 calls wait for something and expects the 32nd worker to answer.
func TestStdioWaitingCallsDoNotBlock(t *testing.T) {
	p := start(t)
	for i := range stdioWorkers - 1 {
		p.send(t, call(fmt.Sprint(100+i), "wait", "{}"))
	}
	p.send(t, call("1", "echo", `{"text":"through"}`))
	if a := p.receive(t); !strings.Contains(a, "through") {
		t.Errorf("got %s", a)
	}
	p.in.Close()
	p.exits(t)
}

func TestStdioSignals(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := start(t)
		p.send(t, initialize)
		p.receive(t)
		p.send(t, call("1", "wait", "{}"))
		if err := p.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		p.exits(t)
	}
}

// TestStdioDeafHandler has a handler that ignores its cancellation: the process ends nevertheless.
func TestStdioDeafHandler(t *testing.T) {
	p := start(t)
	p.send(t, call("1", "deaf", "{}"))
	p.send(t, call("2", "echo", `{"text":"there"}`))
	p.receive(t)
	p.in.Close()
	begin := time.Now()
	p.exits(t)
	if took := time.Since(begin); took > stopTimeout+5*time.Second {
		t.Errorf("took %s", took)
	}
}
