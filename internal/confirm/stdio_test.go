package confirm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	stdio "github.com/hecate-mcp/hecate-mcp/internal/server"
)

// serveFolder makes the test binary a stdio server with this folder.
const serveFolder = "HECATE_MCP_TEST_SERVE_FOLDER"

// TestMain: the library keeps the stdio session in a package variable, so that
// a stdio server needs a process of its own.
func TestMain(m *testing.M) {
	folder, ok := os.LookupEnv(serveFolder)
	if !ok {
		os.Exit(m.Run())
	}
	t := &testing.T{} // its clean-up never runs, as in a process that is killed
	w := newWriter(t, Options{Folder: folder, Timeout: time.Hour})
	defer w.desk.Close()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := stdio.ServeStdio(context.Background(), w.mcp, os.Stdin, os.Stdout, log); err != nil {
		log.Error("failed", "error", err)
	}
}

// TestStdio holds over real pipes that more questions than there are workers
// block no read, that answers find their question, and that the end of the
// client ends the waiting and leaves nothing behind.
func TestStdio(t *testing.T) {
	folder := privateFolder(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), serveFolder+"="+folder)
	var log strings.Builder
	cmd.Stderr = &log
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	type message struct {
		ID     json.RawMessage
		Method string
		Result json.RawMessage
	}
	receive := func() message {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("no message: %v\n%s", lines.Err(), log.String())
		}
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	send := func(format string, args ...any) {
		t.Helper()
		if _, err := fmt.Fprintf(in, format+"\n", args...); err != nil {
			t.Fatal(err)
		}
	}
	send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"pipes","version":"1"}}}`)
	receive()
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)

	const calls = 40 // the transport has 32 workers
	for n := range calls {
		send(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"promote","arguments":{"n":%d}}}`, n, n)
	}
	var questions []json.RawMessage
	busy := 0
	for range calls {
		switch m := receive(); {
		case m.Method == "elicitation/create":
			questions = append(questions, m.ID)
		case strings.Contains(string(m.Result), "ConfirmationRequired Busy"):
			busy++
		default:
			t.Errorf("unexpected: %+v", m)
		}
	}
	if len(questions) != maxAsking || busy != calls-maxAsking {
		t.Errorf("%d questions, %d busy", len(questions), busy)
	}
	send(`{"jsonrpc":"2.0","id":"read","method":"tools/call","params":{"name":"read"}}`)
	if m := receive(); string(m.ID) != `"read"` || !strings.Contains(string(m.Result), `"read"`) {
		t.Errorf("the read: %+v", m)
	}
	if waiting, problems := Look(ctx, folder); len(waiting) != calls-maxAsking || len(problems) > 0 {
		t.Errorf("%d wait for the terminal, problems: %v", len(waiting), problems)
	}
	send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"confirm":true}}}`, questions[3])
	if m := receive(); !strings.Contains(string(m.Result), `"done"`) {
		t.Errorf("after an accept: %+v", m)
	}
	send(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, questions[4])
	if m := receive(); !strings.Contains(string(m.Result), "ConfirmationRequired NoAnswer") {
		t.Errorf("after an error: %+v", m)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		if strings.Contains(lines.Text(), `"done"`) {
			t.Errorf("written without an answer: %s", lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
