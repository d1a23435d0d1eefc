package confirm

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// TestStates holds what a second round with a good or a bad state leads to.
func TestStates(t *testing.T) {
	declines := `{"confirm":{"action":"decline"}}`
	for _, c := range []struct {
		name string
		// spoil changes the second round, the server or the clock.
		spoil func(t *testing.T, w *writer, c *clock, second *rawCall)
		want  string
	}{
		{"untouched", func(*testing.T, *writer, *clock, *rawCall) {}, "done"},
		{"arguments in another order", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) {
			s.Arguments = struct {
				Gate   string `json:"gate"`
				Bundle string `json:"bundle"`
			}{"production", "app-1"}
		}, "done"},
		{"just in time", func(_ *testing.T, _ *writer, c *clock, _ *rawCall) { c.move(defaultTTL - time.Second) }, "done"},
		{"expired", func(_ *testing.T, _ *writer, c *clock, _ *rawCall) { c.move(defaultTTL) }, "ConfirmationExpired Expired"},
		{"other arguments", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) {
			s.Arguments = map[string]any{"gate": "production", "bundle": "app-2"}
		}, "ConfirmationExpired OtherCall"},
		{"further arguments", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) {
			s.Arguments = map[string]any{"gate": "production", "bundle": "app-1", "namespace": "x"}
		}, "ConfirmationExpired OtherCall"},
		{"other tool", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) { s.Tool = otherTool }, "ConfirmationExpired OtherCall"},
		{"other principal", func(_ *testing.T, w *writer, _ *clock, _ *rawCall) { w.becomes("mallory") }, "ConfirmationExpired OtherPrincipal"},
		{"of another question", func(t *testing.T, w *writer, _ *clock, s *rawCall) {
			s.State = w.raw(t, rawCall{Tool: otherTool}).RequestState
		}, "ConfirmationExpired OtherCall"},
		{"of another server", func(t *testing.T, _ *writer, _ *clock, s *rawCall) {
			s.State = newWriter(t, Options{}).state(t)
		}, "ConfirmationExpired Unknown"},
		{"cut", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) { s.State = s.State[:len(s.State)-1] }, "ConfirmationExpired Tampered"},
		{"longer", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) { s.State += "A" }, "ConfirmationExpired Tampered"},
		{"missing", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) { s.State = "" }, "ConfirmationExpired Unasked"},
		{"without an answer", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) { s.Responses = "" }, "ConfirmationExpired Silent"},
		{"with another answer", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) {
			s.Responses = strings.ReplaceAll(accepts, `{"confirm":{"a`, `{"other":{"a`)
		}, "ConfirmationExpired Silent"},
		{"with null", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) { s.Responses = `{"confirm":null}` }, "ConfirmationDeclined Unreadable"},
		{"with a string", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) { s.Responses = `{"confirm":"accept"}` }, "ConfirmationDeclined Unreadable"},
		{"with the answer's content alone", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) { s.Responses = `{"confirm":{"confirm":true}}` }, "ConfirmationDeclined Unreadable"},
		{"with confirm as a string", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) {
			s.Responses = `{"confirm":{"action":"accept","content":{"confirm":"true"}}}`
		}, "ConfirmationDeclined NotConfirmed"},
		{"with content as a string", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) {
			s.Responses = `{"confirm":{"action":"accept","content":"{\"confirm\":true}"}}`
		}, "ConfirmationDeclined NotConfirmed"},
		{"declined", func(_ *testing.T, _ *writer, _ *clock, s *rawCall) { s.Responses = declines }, "ConfirmationDeclined Declined"},
		{"declined, then accepted", func(t *testing.T, w *writer, _ *clock, s *rawCall) {
			first := *s
			first.Responses = declines
			w.raw(t, first)
		}, "ConfirmationExpired Used"},
		{"unanswered, then accepted", func(t *testing.T, w *writer, _ *clock, s *rawCall) {
			first := *s
			first.Responses = ""
			w.raw(t, first)
		}, "ConfirmationExpired Used"},
		{"asked anew meanwhile", func(t *testing.T, w *writer, _ *clock, _ *rawCall) { w.state(t) }, "ConfirmationExpired Replaced"},
		{"crowded out", func(t *testing.T, w *writer, _ *clock, _ *rawCall) {
			for n := range maxPending {
				w.raw(t, rawCall{Arguments: map[string]any{"n": n}})
			}
		}, "ConfirmationExpired Unknown"},
		{"not crowded out yet", func(t *testing.T, w *writer, _ *clock, _ *rawCall) {
			for n := range maxPending - 1 {
				w.raw(t, rawCall{Arguments: map[string]any{"n": n}})
			}
		}, "done"},
		{"after the end", func(_ *testing.T, w *writer, _ *clock, _ *rawCall) { w.desk.Close() }, "ConfirmationExpired Unknown"},
		{"a wrong try before", func(t *testing.T, w *writer, _ *clock, s *rawCall) {
			first := *s
			first.Tool = otherTool
			w.raw(t, first)
		}, "done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := &clock{now: time.Unix(1_800_000_000, 0)}
			w := newWriter(t, Options{Now: now.Now})
			second := rawCall{State: w.state(t), Responses: accepts}
			c.spoil(t, w, now, &second)
			if got := text(w.raw(t, second)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if c.want != "done" {
				w.wrote(t)
				return
			}
			w.wrote(t, "production@1.0")
			if got := text(w.raw(t, second)); got != "ConfirmationExpired Used" {
				t.Errorf("a second use: %q", got)
			}
			w.wrote(t, "production@1.0")
		})
	}
}

// TestEveryBit holds that no bit of a state can be changed.
func TestEveryBit(t *testing.T) {
	w := newWriter(t, Options{})
	state := w.state(t)
	raw, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(raw) * 8 {
		bad := slices.Clone(raw)
		bad[i/8] ^= 1 << (i % 8)
		got := text(w.raw(t, rawCall{State: base64.RawURLEncoding.EncodeToString(bad), Responses: accepts}))
		if got != "ConfirmationExpired Tampered" && got != "ConfirmationExpired Unknown" {
			t.Fatalf("bit %d: %q", i, got)
		}
	}
	// Another spelling of the same bytes is another state. The last character
	// has two bits to spare; the next in the alphabet sets one.
	spare := string(state[len(state)-1] + 1)
	if lax, err := base64.RawURLEncoding.DecodeString(state[:len(state)-1] + spare); err != nil || !slices.Equal(lax, raw) {
		t.Fatalf("%q is no other spelling: %v", spare, err)
	}
	for _, spelling := range []string{state[:len(state)-1] + spare, state + "=", state[:10] + "\n" + state[10:]} {
		if got := text(w.raw(t, rawCall{State: spelling, Responses: accepts})); got != "ConfirmationExpired Tampered" {
			t.Errorf("%q: %q", spelling, got)
		}
	}
	w.wrote(t)
	if got := text(w.raw(t, rawCall{State: state, Responses: accepts})); got != "done" {
		t.Errorf("the state itself: %q", got)
	}
}

// TestTheShownPlan holds that what is done is the plan that was shown, not the
// one that would be computed by then.
func TestTheShownPlan(t *testing.T) {
	w := newWriter(t, Options{})
	state := w.state(t)
	w.drift("2.0")
	if got := text(w.raw(t, rawCall{State: state, Responses: accepts})); got != "done" {
		t.Errorf("%q", got)
	}
	w.wrote(t, "production@1.0")
}

// TestOneOfMany holds that of many uses of a confirmation at once one counts.
func TestOneOfMany(t *testing.T) {
	w := newWriter(t, Options{})
	second := rawCall{State: w.state(t), Responses: accepts}
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() { w.raw(t, second) })
	}
	group.Wait()
	w.wrote(t, "production@1.0")
}

// TestStateTellsNothing holds that what goes to the client names neither the
// principal nor the plan.
func TestStateTellsNothing(t *testing.T) {
	w := newWriter(t, Options{})
	raw, err := base64.RawURLEncoding.DecodeString(w.state(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"alice", "production", tool} {
		if strings.Contains(string(raw), secret) {
			t.Errorf("the state contains %q", secret)
		}
	}
}

// TestCanonical holds which arguments are one call.
func TestCanonical(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{``, `{}`, true},
		{`null`, `{}`, true},
		{`{"a":1,"b":[1,2]}`, ` { "b" : [1, 2], "a" : 1 } `, true},
		{`{"a":"\u0041"}`, `{"a":"A"}`, true},
		{`{"a":1}`, `{"a":"1"}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":null}`, `{}`, false},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
	} {
		a, err := bind(Call{Tool: "t", Arguments: []byte(c.a)})
		if err != nil {
			t.Fatal(err)
		}
		b, err := bind(Call{Tool: "t", Arguments: []byte(c.b)})
		if err != nil {
			t.Fatal(err)
		}
		if a.same(b) != c.same {
			t.Errorf("%s and %s: same is %v", c.a, c.b, a.same(b))
		}
	}
	for _, bad := range []string{`[]`, `1`, `{`, `{} {}`, `"x"`} {
		if _, err := bind(Call{Arguments: []byte(bad)}); err == nil {
			t.Errorf("%s is taken as arguments", bad)
		}
		d := newWriter(t, Options{}).desk
		if _, err := d.Taken(context.Background(), mcp.CallToolRequest{}, Call{Arguments: []byte(bad)}); err == nil {
			t.Errorf("Taken accepts %s", bad)
		}
	}
	if hashOf("ab", "c") == hashOf("a", "bc") {
		t.Error("fields run into each other")
	}
}

// FuzzState holds that nothing but what was sealed opens, and that it opens as
// it was sealed.
func FuzzState(f *testing.F) {
	var s sealer
	s.key[0], s.id[0] = 1, 2
	x := sealed{nonce: nonce{3}, call: hash{4}, who: hash{5}, plan: hash{6}, expires: time.UnixMilli(1_800_000_000_123)}
	good := s.seal(x)
	f.Add(good)
	f.Add("")
	f.Add(good[:len(good)-1])
	f.Add(strings.Repeat("A", len(good)))
	f.Add(strings.Repeat("é", len(good)/2))
	f.Fuzz(func(t *testing.T, state string) {
		got, err := s.open(state)
		if (err == nil) != (state == good) {
			t.Fatalf("%q: %v", state, err)
		}
		if err == nil && got != x {
			t.Fatalf("%+v, want %+v", got, x)
		}
	})
}
