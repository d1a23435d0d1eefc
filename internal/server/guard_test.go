package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestRefusals(t *testing.T) {
	r := serve(t, HTTPOptions{})
	id := r.begin(t)
	ok := withSession(id)
	big := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		name   string
		edit   []func(*http.Request)
		status int
		says   string
	}{
		{"a session's request", edits(ok), 200, `"result":{}`},
		{"foreign origin", edits(ok, header("Origin", "http://evil.example")), 403, "Origin"},
		{"opaque origin", edits(ok, header("Origin", "null")), 403, "Origin"},
		{"two origins", edits(ok, func(r *http.Request) { r.Header["Origin"] = []string{"http://localhost", "http://evil.example"} }), 403, "Origin"},
		{"foreign origin on GET", edits(ok, method("GET"), header("Origin", "http://evil.example")), 403, "Origin"},
		{"foreign origin on the health page", edits(method("GET"), path("/healthz"), header("Origin", "http://evil.example")), 403, "Origin"},
		{"own origin", edits(ok, header("Origin", "http://localhost:6274")), 200, ""},
		{"page of another site", edits(ok, header("Sec-Fetch-Site", "cross-site")), 403, "other sites"},
		{"foreign host", edits(ok, host("evil.example")), 403, "localhost"},
		{"foreign host with our port", edits(ok, host("evil.example:"+strings.Split(r.Addr(), ":")[1])), 403, "Host"},
		{"foreign host on the health page", edits(method("GET"), path("/healthz"), host("evil.example")), 403, "Host"},
		{"own host by name", edits(ok, host("localhost:9999")), 200, ""},
		{"health", edits(method("GET"), path("/healthz")), 200, "ok"},
		{"another path", edits(ok, path("/")), 404, ""},
		{"path below", edits(ok, path("/mcp/x")), 404, ""},
		{"method PUT", edits(ok, method("PUT")), 405, "valid: POST, GET, DELETE"},
		{"method HEAD", edits(ok, method("HEAD")), 405, ""},
		{"preflight", edits(method("OPTIONS"), header("Origin", "http://localhost:1"), header("Access-Control-Request-Method", "POST")), 405, ""},
		{"no content type", edits(ok, header("Content-Type", "")), 415, "application/json"},
		{"a form", edits(ok, header("Content-Type", "text/plain")), 415, "application/json"},
		{"content type with charset", edits(ok, header("Content-Type", "application/json; charset=utf-8")), 200, ""},
		{"accepts no stream", edits(ok, header("Accept", "application/json")), 406, "text/event-stream"},
		{"accepts all", edits(ok, header("Accept", "*/*")), 200, ""},
		{"GET accepts no stream", edits(ok, method("GET"), header("Accept", "application/json")), 406, "text/event-stream"},
		{"too large", edits(ok, body(big+"x")), 413, "1048576 bytes"},
		{"too large, chunked", edits(ok, chunked(strings.NewReader(big+"x"))), 413, "1048576 bytes"},
		{"not JSON", edits(ok, body("{")), 400, "-32700"},
		{"a batch", edits(ok, body("[]")), 400, "-32700"},
		{"no session", nil, 400, "initialize"},
		{"made-up session", edits(withSession("mcp-session-0b4d3b6c-91a8-4b52-a7ab-0f2b3c9d8e11")), 404, "initialize"},
		{"GET without session", edits(method("GET")), 400, "initialize"},
		{"GET with made-up session", edits(method("GET"), withSession("made-up")), 404, "initialize"},
		{"DELETE without session", edits(method("DELETE")), 400, "initialize"},
		{"DELETE with made-up session", edits(method("DELETE"), withSession("made-up")), 404, "initialize"},
		{"an answer without session", edits(body(`{"jsonrpc":"2.0","id":1,"result":{}}`)), 400, "initialize"},
		{"modern GET", edits(method("GET"), header("Mcp-Protocol-Version", "2026-07-28")), 405, ""},
		{"modern DELETE", edits(ok, method("DELETE"), header("Mcp-Protocol-Version", "2026-07-28")), 405, ""},
		{"modern list", edits(modern(1, "tools/list", "", nil)), 200, `"name":"echo"`},
		{"modern in the header only", edits(withSession("x"), header("Mcp-Protocol-Version", "2026-07-28")), 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := r.send(t, c.edit...)
			if a.status != c.status || !strings.Contains(a.body, c.says) {
				t.Errorf("got %d %s, want %d %s", a.status, a.body, c.status, c.says)
			}
			for name := range a.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("a CORS header: %s", name)
				}
			}
			if a.status == 405 && a.header.Get("Allow") == "" {
				t.Error("no Allow header")
			}
			if a.status >= 400 && a.header.Get("Content-Type") == "application/json" && c.name != "method HEAD" && !json.Valid([]byte(a.body)) {
				t.Errorf("not JSON: %s", a.body)
			}
		})
	}
	if log := r.log.String(); strings.Contains(log, id) || !strings.Contains(log, "status=403") {
		t.Errorf("the log names a session, or no refusal:\n%s", log)
	}
}

func edits(e ...func(*http.Request)) []func(*http.Request) { return e }

// endless is a body without end; it counts what was taken from it.
type endless struct{ taken atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.taken.Load() > 64<<20 {
		return 0, io.EOF
	}
	n := copy(p, bytes.Repeat([]byte(" "), len(p)))
	e.taken.Add(int64(n))
	return n, nil
}

func TestBodyOverLimitIsNotReadWhole(t *testing.T) {
	r := serve(t, HTTPOptions{MaxBody: 1000})
	conn := r.dial(t)
	// A length alone is enough: no byte of the body is sent.
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 60000000\r\n\r\n")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "413") {
		t.Errorf("got %q, %v", line, err)
	}

	e := &endless{}
	req, err := http.NewRequest("POST", r.URL(), e)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	// The server may have closed the connection while the client was still sending.
	if err == nil {
		res.Body.Close()
		if res.StatusCode != 413 {
			t.Errorf("got %d", res.StatusCode)
		}
	}
	if taken := e.taken.Load(); taken > 32<<20 {
		t.Errorf("%d bytes were taken of an endless body", taken)
	}
}

func TestBodyThatNeverComes(t *testing.T) {
	r := serve(t, HTTPOptions{BodyTimeout: 50 * time.Millisecond})
	conn := r.dial(t)
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{")
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || !strings.Contains(line, "408") {
		t.Errorf("got %q, %v", line, err)
	}
}

func TestBodyTimeoutDoesNotEndCalls(t *testing.T) {
	r := serve(t, HTTPOptions{BodyTimeout: 50 * time.Millisecond})
	id := r.begin(t)
	time.AfterFunc(200*time.Millisecond, func() { close(r.release) })
	if a := r.send(t, withSession(id), body(call("1", "wait", "{}"))); !strings.Contains(a.body, "released") {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestSessionExpires(t *testing.T) {
	r := serve(t, HTTPOptions{SessionTTL: 100 * time.Millisecond})
	id := r.begin(t)
	if a := r.send(t, withSession(id)); a.status != 200 {
		t.Fatalf("fresh: %d", a.status)
	}
	time.Sleep(150 * time.Millisecond)
	if a := r.send(t, withSession(id)); a.status != 404 {
		t.Errorf("idle: %d %s", a.status, a.body)
	}
}

func TestSessionEnds(t *testing.T) {
	r := serve(t, HTTPOptions{})
	id := r.begin(t)
	if a := r.send(t, withSession(id), method("DELETE")); a.status != 200 {
		t.Fatalf("DELETE: %d %s", a.status, a.body)
	}
	for _, m := range []string{"POST", "GET", "DELETE"} {
		if a := r.send(t, withSession(id), method(m)); a.status != 404 {
			t.Errorf("%s after DELETE: %d %s", m, a.status, a.body)
		}
	}
}

// background sends a request and hands over its answer's status and text.
func (r *running) background(t *testing.T, edit ...func(*http.Request)) <-chan answer {
	c := make(chan answer, 1)
	go func() { c <- r.send(t, edit...) }()
	return c
}

func TestCancellation(t *testing.T) {
	wait := map[string]any{"name": "wait", "arguments": map[string]any{}}
	r := serve(t, HTTPOptions{})
	r.background(t, modern(7, "tools/call", "wait", wait))
	got(t, r.waiting, "modern call")

	// Nobody can cancel another's modern call: not a modern client, not with half of what makes it one,
	// not a legacy client with a session of its own.
	cancel := map[string]any{"requestId": 7}
	legacyCancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	mine := r.begin(t)
	for name, c := range map[string]struct {
		status int
		edit   []func(*http.Request)
	}{
		"modern":            {202, edits(modern(nil, "notifications/cancelled", "", cancel))},
		"header only":       {202, edits(header("Mcp-Protocol-Version", "2026-07-28"), body(legacyCancel))},
		"meta only":         {202, edits(body(modernMessage(nil, "notifications/cancelled", cancel)))},
		"legacy no session": {400, edits(body(legacyCancel))},
		"legacy session":    {202, edits(withSession(mine), body(legacyCancel))},
		"differing case":    {202, edits(header("Mcp-Protocol-Version", "2026-07-28"), body(strings.Replace(legacyCancel, `"method"`, `"METHOD"`, 1)))},
	} {
		if a := r.send(t, c.edit...); a.status != c.status {
			t.Errorf("%s: got %d %s, want %d", name, a.status, a.body, c.status)
		}
	}
	select {
	case <-r.cancelled:
		t.Error("a call was cancelled by somebody else")
	case <-time.After(50 * time.Millisecond):
	}

	// A legacy client cancels its own.
	r.background(t, withSession(mine), body(call("7", "wait", "{}")))
	got(t, r.waiting, "legacy call")
	r.send(t, withSession(mine), body(legacyCancel))
	got(t, r.cancelled, "legacy cancellation")
	close(r.release)
}

func TestModernDisconnectCancels(t *testing.T) {
	r := serve(t, HTTPOptions{})
	conn := r.dial(t)
	text := modernMessage(7, "tools/call", map[string]any{"name": "wait", "arguments": map[string]any{}})
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2026-07-28\r\n"+
		"Mcp-Method: tools/call\r\nMcp-Name: wait\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
	got(t, r.waiting, "call")
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	got(t, r.cancelled, "cancellation by closing the connection")
}

func TestConcurrencyIsBounded(t *testing.T) {
	r := serve(t, HTTPOptions{MaxConcurrent: 2})
	id := r.begin(t)
	first := r.background(t, withSession(id), body(call("1", "wait", "{}")))
	second := r.background(t, withSession(id), body(call("2", "wait", "{}")))
	got(t, r.waiting, "first call")
	got(t, r.waiting, "second call")
	if a := r.send(t, withSession(id)); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("third request: %d %s", a.status, a.body)
	}
	if a := r.send(t, withSession(id), body(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); a.status != 202 {
		t.Errorf("a notification found no place: %d %s", a.status, a.body)
	}
	close(r.release)
	for _, c := range []<-chan answer{first, second} {
		if a := <-c; !strings.Contains(a.body, "released") {
			t.Errorf("got %d %s", a.status, a.body)
		}
	}
	if a := r.send(t, withSession(id)); a.status != 200 {
		t.Errorf("after the rush: %d %s", a.status, a.body)
	}
}

func TestSessionsAreBounded(t *testing.T) {
	r := serve(t, HTTPOptions{})
	for range maxSessions - 1 {
		r.sessions.of(localPrincipal).Generate()
	}
	id := r.begin(t)
	if a := r.send(t, body(initialize)); a.status != 503 {
		t.Errorf("one session too many: %d %s", a.status, a.body)
	}
	r.send(t, withSession(id), method("DELETE"))
	r.begin(t)
}

func TestPanicLeavesTheServerRunning(t *testing.T) {
	r := serve(t, HTTPOptions{})
	id := r.begin(t)
	req, err := http.NewRequest("POST", r.URL(), strings.NewReader(call("1", "panic", "{}")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Mcp-Session-Id", id)
	res, err := http.DefaultClient.Do(req)
	if err == nil {
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if strings.Contains(string(text), "on purpose") {
			t.Errorf("the panic's text reached the client: %s", text)
		}
	}
	if a := r.send(t, withSession(id)); a.status != 200 {
		t.Errorf("after a panic: %d %s", a.status, a.body)
	}
	if !strings.Contains(r.log.String(), "panic while serving") {
		t.Errorf("the panic is not in the log:\n%s", r.log)
	}
}
