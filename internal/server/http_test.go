package server

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// TestLibraryClient talks to the server as a client of the library does, in each era.
func TestLibraryClient(t *testing.T) {
	for _, version := range []string{mcp.ProtocolVersion20260728, "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			r := serve(t, HTTPOptions{})
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			c, err := client.NewStreamableHttpClient(r.URL())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if !mcp.IsModernProtocol(version) {
				//lint:ignore SA1019 the legacy era is what is tested here
				client.WithLegacyProtocolOnly()(c)
			}
			if err := c.Start(ctx); err != nil {
				t.Fatal(err)
			}
			init, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
				ProtocolVersion: version, ClientInfo: mcp.Implementation{Name: "test", Version: "1"}}})
			if err != nil {
				t.Fatal(err)
			}
			if init.ProtocolVersion != version {
				t.Errorf("negotiated %q", init.ProtocolVersion)
			}
			tools, err := c.ListTools(ctx, mcp.ListToolsRequest{})
			if err != nil || len(tools.Tools) != 3 {
				t.Errorf("tools: %v, %v", tools, err)
			}
			result, err := c.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}}})
			if err != nil {
				t.Fatal(err)
			}
			if text, ok := result.Content[0].(mcp.TextContent); !ok || text.Text != "hi" {
				t.Errorf("got %v", result.Content)
			}
		})
	}
}

// TestPingsKeepAListeningClientAlive has a client do nothing but listen for longer than the idle time: it
// answers the pings, so its session lasts.
func TestPingsKeepAListeningClientAlive(t *testing.T) {
	r := serve(t, HTTPOptions{SessionTTL: time.Second})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	//lint:ignore SA1019 the legacy era is what is tested here
	c, err := client.NewStreamableHttpClient(r.URL(), transport.WithContinuousListening())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	//lint:ignore SA1019 the legacy era is what is tested here
	client.WithLegacyProtocolOnly()(c)
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ProtocolVersion: "2025-11-25", ClientInfo: mcp.Implementation{Name: "test", Version: "1"}}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2500 * time.Millisecond)
	if _, err := c.ListTools(ctx, mcp.ListToolsRequest{}); err != nil {
		t.Errorf("after idling: %v\n%s", err, r.log)
	}
}

func TestAddress(t *testing.T) {
	for _, listen := range []string{"127.0.0.1:0", "localhost:0", ""} {
		r := serve(t, HTTPOptions{Listen: listen})
		if strings.HasSuffix(r.Addr(), ":0") {
			t.Errorf("%q: bound to %s", listen, r.Addr())
		}
		deadline := time.Now().Add(5 * time.Second)
		for !strings.Contains(r.log.String(), "listening url="+r.URL()) {
			if time.Now().After(deadline) {
				t.Fatalf("%q: the log does not name the address:\n%s", listen, r.log)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// openStream opens a stream and returns a channel that is closed when it ends.
func (r *running) openStream(t *testing.T, edit ...func(*http.Request)) <-chan struct{} {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, r.URL(), nil)
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
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("no stream: %d %v", res.StatusCode, res.Header)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer res.Body.Close()
		for s := bufio.NewScanner(res.Body); s.Scan(); {
		}
	}()
	return ended
}

func TestShutdownEndsStreamsAndFinishesCalls(t *testing.T) {
	r := serve(t, HTTPOptions{})
	id := r.begin(t)
	legacy := r.openStream(t, withSession(id), method("GET"))
	listen := r.openStream(t, modern(1, "subscriptions/listen", "", map[string]any{"notifications": map[string]any{"toolsListChanged": true}}))
	answered := r.background(t, withSession(id), body(call("1", "wait", "{}")))
	got(t, r.waiting, "call")

	r.cancel()
	got(t, legacy, "end of the legacy stream")
	got(t, listen, "end of the modern stream")
	select {
	case err := <-r.done:
		t.Fatalf("did not wait for a call: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(r.release)
	if a := <-answered; !strings.Contains(a.body, "released") {
		t.Errorf("a call in flight got %d %s", a.status, a.body)
	}
	if err := <-r.done; err != nil {
		t.Errorf("not a clean exit: %v", err)
	}
}

func TestShutdownHasADeadline(t *testing.T) {
	r := serve(t, HTTPOptions{StopTimeout: 50 * time.Millisecond})
	conn := r.dial(t)
	text := call("1", "wait", "{}")
	id := r.begin(t)
	req, err := http.NewRequest("POST", r.URL(), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Mcp-Session-Id", id)
	if err := req.Write(conn); err != nil {
		t.Fatal(err)
	}
	got(t, r.waiting, "call")
	r.cancel()
	got(t, r.cancelled, "the call's cancellation")
	if err := <-r.done; err != nil {
		t.Errorf("not a clean exit: %v", err)
	}
}
