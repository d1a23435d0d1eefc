package confirm

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// TestAnswers holds what a client's answer to the form leads to, in both eras
// and over two transports: only accept with the boolean confirm: true writes.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler *handler
		want    string
		written bool
	}{
		{"accept", says("accept", yes), "done", true},
		{"accept with more", says("accept", map[string]any{"confirm": true, "note": "x"}), "done", true},
		{"decline", says("decline", nil), "ConfirmationDeclined Declined", false},
		{"decline with confirm", says("decline", yes), "ConfirmationDeclined Declined", false},
		{"cancel", says("cancel", nil), "ConfirmationDeclined Cancelled", false},
		{"accept without content", says("accept", nil), "ConfirmationDeclined NotConfirmed", false},
		{"accept without confirm", says("accept", map[string]any{}), "ConfirmationDeclined NotConfirmed", false},
		{"confirm is false", says("accept", map[string]any{"confirm": false}), "ConfirmationDeclined NotConfirmed", false},
		{"confirm is a string", says("accept", map[string]any{"confirm": "true"}), "ConfirmationDeclined NotConfirmed", false},
		{"confirm is a number", says("accept", map[string]any{"confirm": 1}), "ConfirmationDeclined NotConfirmed", false},
		{"confirm in another case", says("accept", map[string]any{"Confirm": true}), "ConfirmationDeclined NotConfirmed", false},
		{"content is a list", says("accept", []any{true}), "ConfirmationDeclined NotConfirmed", false},
		{"another action", says("Accept", yes), "ConfirmationDeclined Unreadable", false},
		{"no action", says("", yes), "ConfirmationDeclined Unreadable", false},
		{"no elicitation", nil, "ConfirmationRequired NoForm nowhere", false},
	} {
		for _, via := range connections {
			t.Run(c.name+"/"+via.String(), func(t *testing.T) {
				w := newWriter(t, Options{})
				cl := via.connect(t, w, c.handler)
				answers(t, cl, c.want)
				if !c.written {
					w.wrote(t)
					return
				}
				w.wrote(t, "production@1.0")
				by := w.by[0]
				if by.Via != ViaElicitation || by.Client != "test-client 7" || by.ID == "" {
					t.Errorf("confirmed by %+v", by)
				}
			})
		}
	}
}

// TestForm holds what a person is shown: the plan, and one boolean.
func TestForm(t *testing.T) {
	for _, via := range connections {
		t.Run(via.String(), func(t *testing.T) {
			w, h := newWriter(t, Options{}), says("accept", yes)
			answers(t, via.connect(t, w, h), "done")
			if h.count() != 1 {
				t.Errorf("asked %d times", h.count())
			}
			for _, want := range []string{"Promote 1.0 to production\n", "\nGate production\n", "Nothing has been done yet"} {
				if !strings.Contains(h.last.Message, want) {
					t.Errorf("the form does not say %q:\n%s", want, h.last.Message)
				}
			}
			schema, _ := h.last.RequestedSchema.(map[string]any)
			properties, _ := schema["properties"].(map[string]any)
			field, _ := properties["confirm"].(map[string]any)
			if len(properties) != 1 || field["type"] != "boolean" || field["title"] == "" || field["default"] == true || schema["required"] == nil {
				t.Errorf("schema: %v", h.last.RequestedSchema)
			}
		})
	}
}

// TestFormBounds holds that a hostile plan stays a bounded text that says what
// it leaves out.
func TestFormBounds(t *testing.T) {
	lines := []string{"\x1b[31mred\x1b[0m\u202e\ttail", "two\nlines\r"}
	for range 1000 {
		lines = append(lines, strings.Repeat("x", 10_000))
	}
	s := show(promotion{gate: "g", version: strings.Repeat("v", 10_000), lines: lines})
	form := s.form()
	if len(form) > maxFormText+1000 {
		t.Errorf("the form has %d bytes", len(form))
	}
	for _, want := range []string{"\nred tail\n", "\ntwo lines\n", " more lines do not fit here"} {
		if !strings.Contains(form, want) {
			t.Errorf("the form does not contain %q:\n%.600s", want, form)
		}
	}
	if len(s.lines) != maxTerminalLines || s.hidden != 1002-maxTerminalLines {
		t.Errorf("%d lines, %d hidden", len(s.lines), s.hidden)
	}
	short := show(promotion{gate: "g", lines: []string{"a", "  b"}}).form()
	if strings.Contains(short, "more lines") || !strings.Contains(short, "\n  b\n") {
		t.Errorf("a short plan is not shown whole:\n%s", short)
	}
}

// TestSilence holds that a legacy client that gives no answer, or an error,
// leads to the terminal, and that reads went on meanwhile.
func TestSilence(t *testing.T) {
	failing := &handler{answer: func(context.Context) (*mcp.ElicitationResult, error) { return nil, errors.New("no") }}
	for _, h := range []*handler{silent(), failing} {
		for _, via := range connections[:2] {
			t.Run(via.String(), func(t *testing.T) {
				folder := privateFolder(t)
				w := newWriter(t, Options{Timeout: 100 * time.Millisecond, Folder: folder})
				cl := via.connect(t, w, h)
				answers(t, cl, "ConfirmationRequired NoAnswer")
				before := h.count()
				answers(t, cl, "ConfirmationRequired Waiting")
				if h.count() != before {
					t.Error("a client that does not answer is asked again")
				}
				if err := one(t, folder).Accept(context.Background(), "production"); err != nil {
					t.Fatal(err)
				}
				answers(t, cl, "done")
				w.wrote(t, "production@1.0")
			})
		}
	}
}

// TestLateAnswer holds that an answer after the timeout writes nothing.
func TestLateAnswer(t *testing.T) {
	w := newWriter(t, Options{Timeout: 50 * time.Millisecond})
	release, answered := make(chan struct{}), make(chan struct{})
	h := &handler{answer: func(context.Context) (*mcp.ElicitationResult, error) {
		defer close(answered)
		<-release // deaf to the end of its context
		return &mcp.ElicitationResult{ElicitationResponse: mcp.ElicitationResponse{Action: "accept", Content: yes}}, nil
	}}
	cl := connections[0].connect(t, w, h)
	answers(t, cl, "ConfirmationRequired NoAnswer nowhere")
	close(release)
	<-answered
	w.wrote(t)
}

// TestCancelledCall holds that a question ends with the call that asked.
func TestCancelledCall(t *testing.T) {
	w := newWriter(t, Options{Timeout: time.Hour})
	h := silent()
	cl := connections[0].connect(t, w, h)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); call(ctx, cl) }()
	for h.count() == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-ended
	for len(w.desk.asking) > 0 {
		time.Sleep(time.Millisecond)
	}
	w.wrote(t)
}

// TestCap holds that only so many questions wait at once: one more goes to the
// terminal at once, and a place that becomes free is used again.
func TestCap(t *testing.T) {
	folder := privateFolder(t)
	w := newWriter(t, Options{Timeout: time.Hour, Folder: folder})
	h := silent()
	cl := connections[0].connect(t, w, h)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended := make(chan struct{}, maxAsking)
	numbered := func(n int) func(*mcp.CallToolRequest) {
		return func(r *mcp.CallToolRequest) { r.Params.Arguments = map[string]any{"n": n} }
	}
	for n := range maxAsking {
		go func() { call(ctx, cl, numbered(n)); ended <- struct{}{} }()
	}
	for h.count() < maxAsking {
		time.Sleep(time.Millisecond)
	}
	answers(t, cl, "ConfirmationRequired Busy", numbered(maxAsking))
	cancel()
	for range maxAsking {
		<-ended
	}
	h.becomes(says("accept", yes))
	answers(t, cl, "done", numbered(maxAsking+1))
}

// TestForgedFirstCall holds that answers to a question that nobody asked do
// not count. In the legacy era they are not even looked at: the person is asked,
// or the terminal is named. The library's client drops such answers, so the
// calls are sent as bytes.
func TestForgedFirstCall(t *testing.T) {
	w := newWriter(t, Options{})
	nonsense := strings.Repeat("A", stateEncoding.EncodedLen(stateSize))
	for _, state := range []string{"", "x", nonsense, w.state(t)} {
		h := says("decline", nil)
		if got := text(w.rawLegacy(t, rawCall{Responses: accepts, State: state, Elicitation: forms}, h)); got != "ConfirmationDeclined Declined" || h.count() != 1 {
			t.Errorf("legacy, state %q: %q, asked %d times", state, got, h.count())
		}
		if got := text(w.rawLegacy(t, rawCall{Responses: accepts, State: state}, h)); got != "ConfirmationRequired NoForm nowhere" || h.count() != 1 {
			t.Errorf("legacy without forms, state %q: %q, asked %d times", state, got, h.count())
		}
	}
	for _, c := range []struct {
		call rawCall
		want string
	}{
		{rawCall{Responses: accepts, Elicitation: forms}, "ConfirmationExpired Unasked"},
		{rawCall{Responses: accepts}, "ConfirmationExpired Unasked"},
		{rawCall{Responses: accepts, State: "x", Elicitation: forms}, "ConfirmationExpired Tampered"},
		{rawCall{Responses: accepts, State: nonsense, Elicitation: forms}, "ConfirmationExpired Tampered"},
	} {
		if got := text(w.rawModern(t, c.call)); got != c.want {
			t.Errorf("modern %+v: %q, want %q", c.call, got, c.want)
		}
	}
	w.wrote(t)
}

// TestCapability holds which declarations mean forms, in both eras.
func TestCapability(t *testing.T) {
	for declared, want := range map[string]bool{
		"":                     false,
		`{}`:                   true,
		`{"form":{}}`:          true,
		`{"form":{},"url":{}}`: true,
		`{"url":{}}`:           false,
	} {
		w, h := newWriter(t, Options{}), says("decline", nil)
		if r := w.rawModern(t, rawCall{Elicitation: declared}); r.NeedsInput() != want {
			t.Errorf("modern, %q: asked is %v", declared, r.NeedsInput())
		}
		if w.rawLegacy(t, rawCall{Elicitation: declared}, h); h.count() == 1 != want {
			t.Errorf("legacy, %q: asked %d times", declared, h.count())
		}
	}
}

// TestConfirmArgument holds that a confirm argument of the model's is no
// confirmation.
func TestConfirmArgument(t *testing.T) {
	for _, via := range connections {
		w := newWriter(t, Options{})
		answers(t, via.connect(t, w, nil), "ConfirmationRequired NoForm nowhere", func(r *mcp.CallToolRequest) {
			r.Params.Arguments = map[string]any{"gate": "production", "confirm": true}
		})
		w.wrote(t)
	}
}
