package writes

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

// refused checks that a call was refused so, and that nothing was written since
// Requests was reset.
func (w *world) refused(t testing.TB, a answer, code tools.Code, reason string) {
	t.Helper()
	if a.err == nil || a.err.Code != code || a.err.Reason != reason {
		t.Errorf("want %s %s, got %s", code, reason, a)
	}
	if n := w.writes(); n > 0 {
		t.Errorf("%d writes:\n%s", n, w.Requests())
	}
}

// content is the answer of a form that was accepted.
func content(v any) any {
	return answered(map[string]any{"action": "accept", "content": map[string]any{"confirm": v}})
}

// Codes of what nobody has confirmed.
const expired, declined, required = tools.ConfirmationExpired, tools.ConfirmationDeclined, tools.ConfirmationRequired

// TestModern answers as hostile clients of the modern era do: each is refused with
// its code, and the API server is asked to change nothing.
func TestModern(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	s, same, other := w.serve(t, cluster.Promoter), w.serve(t, cluster.Promoter), w.serve(t, cluster.Admin)
	hasty := w.serve(t, cluster.Promoter, "--confirm-ttl", "1s")
	const tool = "promote_bundle"
	// reply answers the question about a's call.
	reply := func(responses any) func(*testing.T, args) answer {
		return func(t *testing.T, a args) answer {
			return s.second(t, tool, a, s.question(t, tool, a).state, responses)
		}
	}
	again := func(responses any) func(*testing.T, args) answer {
		return func(t *testing.T, a args) answer {
			q := s.question(t, tool, a)
			if first := s.second(t, tool, a, q.state, responses); first.err == nil || first.err.Code != declined {
				t.Errorf("the first use: %s", first)
			}
			return s.second(t, tool, a, q.state, yes)
		}
	}
	for _, tc := range []struct {
		name   string
		call   func(t *testing.T, a args) answer
		code   tools.Code
		reason string
	}{
		{"an answer in the first call", func(t *testing.T, a args) answer { return s.second(t, tool, a, "", yes) }, expired, "Unasked"},
		{"an answer with a made-up state", func(t *testing.T, a args) answer { return s.second(t, tool, a, "confirmed", yes) }, expired, "Tampered"},
		{"a made-up state of the right length", func(t *testing.T, a args) answer {
			return s.second(t, tool, a, strings.Repeat("A", len(s.question(t, tool, a).state)), yes)
		}, expired, "Tampered"},
		{"a made-up state alone", func(t *testing.T, a args) answer { return s.second(t, tool, a, "confirmed", nil) }, expired, "Tampered"},
		{"a JSON object as state", func(t *testing.T, a args) answer {
			return s.second(t, tool, a, `{"confirmed":true}`, yes)
		}, expired, "Tampered"},
		{"forged with a key of one's own", func(t *testing.T, a args) answer {
			return s.second(t, tool, a, forge(t, s.question(t, tool, a).state, func([]byte) {}), yes)
		}, expired, "Tampered"},
		{"forged to live longer", func(t *testing.T, a args) answer {
			state := forge(t, s.question(t, tool, a).state, func(b []byte) {
				binary.BigEndian.PutUint64(b[len(b)-8:], uint64(time.Now().Add(time.Hour).UnixMilli()))
			})
			return s.second(t, tool, a, state, yes)
		}, expired, "Tampered"},
		{"expired", func(t *testing.T, a args) answer {
			q := hasty.question(t, tool, a)
			time.Sleep(1100 * time.Millisecond)
			return hasty.second(t, tool, a, q.state, yes)
		}, expired, "Expired"},
		{"the state of another call", func(t *testing.T, a args) answer {
			return s.second(t, tool, a, s.question(t, tool, args{"gate": w.lane(t, nil)}).state, yes)
		}, expired, "OtherCall"},
		{"more arguments", func(t *testing.T, a args) answer {
			return s.second(t, tool, args{"gate": a["gate"], "namespace": w.ns}, s.question(t, tool, a).state, yes)
		}, expired, "OtherCall"},
		{"another wait", func(t *testing.T, a args) answer {
			return s.second(t, tool, args{"gate": a["gate"], "wait": "1s"}, s.question(t, tool, a).state, yes)
		}, expired, "OtherCall"},
		{"another tool", func(t *testing.T, a args) answer {
			return s.second(t, "abort_passage", a, s.question(t, tool, a).state, yes)
		}, expired, "OtherCall"},
		{"another process of the same user", func(t *testing.T, a args) answer {
			return s.second(t, tool, a, same.question(t, tool, a).state, yes)
		}, expired, "Unknown"},
		{"the process of another user", func(t *testing.T, a args) answer {
			return s.second(t, tool, a, other.question(t, tool, a).state, yes)
		}, expired, "Unknown"},
		{"to the process of another user", func(t *testing.T, a args) answer {
			return other.second(t, tool, a, s.question(t, tool, a).state, yes)
		}, expired, "Unknown"},
		{"accepted without confirm", reply(answered(map[string]any{"action": "accept"})), declined, "NotConfirmed"},
		{"accepted with no content", reply(answered(map[string]any{"action": "accept", "content": map[string]any{}})), declined, "NotConfirmed"},
		{"accepted with content that is a list", reply(answered(map[string]any{"action": "accept", "content": []any{true}})), declined, "NotConfirmed"},
		{"confirm is a text", reply(content("true")), declined, "NotConfirmed"},
		{"confirm is a number", reply(content(1)), declined, "NotConfirmed"},
		{"confirm is a list", reply(content([]bool{true})), declined, "NotConfirmed"},
		{"confirm is null", reply(content(nil)), declined, "NotConfirmed"},
		{"confirm is false", reply(content(false)), declined, "NotConfirmed"},
		{"confirm in capitals", reply(answered(map[string]any{"action": "accept", "content": map[string]any{"CONFIRM": true}})), declined, "NotConfirmed"},
		{"confirm beside the content", reply(answered(map[string]any{"action": "accept", "confirm": true})), declined, "NotConfirmed"},
		{"declined", reply(answered(map[string]any{"action": "decline"})), declined, "Declined"},
		{"declined with confirm", reply(answered(map[string]any{"action": "decline", "content": map[string]any{"confirm": true}})), declined, "Declined"},
		{"cancelled", reply(answered(map[string]any{"action": "cancel"})), declined, "Cancelled"},
		{"an action in capitals", reply(answered(map[string]any{"action": "ACCEPT", "content": map[string]any{"confirm": true}})), declined, "Unreadable"},
		{"an unknown action", reply(answered(map[string]any{"action": "yes", "content": map[string]any{"confirm": true}})), declined, "Unreadable"},
		{"no action", reply(answered(map[string]any{"content": map[string]any{"confirm": true}})), declined, "Unreadable"},
		{"an error for an answer", reply(answered(map[string]any{"error": map[string]any{"code": -32603, "message": "no dialog"}})), declined, "Unreadable"},
		{"an answer under another key", reply(map[string]any{"Confirm": map[string]any{"action": "accept", "content": map[string]any{"confirm": true}}}), expired, "Silent"},
		{"no answers", reply(map[string]any{}), expired, "Silent"},
		{"silence", reply(nil), expired, "Silent"},
		{"again after a decline", again(answered(map[string]any{"action": "decline"})), expired, "Used"},
		{"again after a cancel", again(answered(map[string]any{"action": "cancel"})), expired, "Used"},
		{"again after accept without confirm", again(content("true")), expired, "Used"},
		{"again after an answer under no key", func(t *testing.T, a args) answer {
			q := s.question(t, tool, a)
			if first := s.second(t, tool, a, q.state, nil); first.err == nil || first.err.Reason != "Silent" {
				t.Errorf("the first use: %s", first)
			}
			return s.second(t, tool, a, q.state, yes)
		}, expired, "Used"},
		{"the state, an answer and a confirm argument", func(t *testing.T, a args) answer {
			return s.second(t, tool, args{"gate": a["gate"], "confirm": true}, s.question(t, tool, a).state, yes)
		}, tools.InvalidArgument, ""},
		{"a confirm argument", func(t *testing.T, a args) answer {
			return s.first(t, tool, args{"gate": a["gate"], "confirm": true})
		}, tools.InvalidArgument, ""},
		{"a yes argument", func(t *testing.T, a args) answer {
			return s.first(t, tool, args{"gate": a["gate"], "yes": true})
		}, tools.InvalidArgument, ""},
		{"a state as argument", func(t *testing.T, a args) answer {
			return s.first(t, tool, args{"gate": a["gate"], "requestState": s.question(t, tool, a).state, "inputResponses": yes})
		}, tools.InvalidArgument, ""},
		{"an actor argument", func(t *testing.T, a args) answer {
			return s.first(t, tool, args{"gate": a["gate"], "actor": "ann@example.com"})
		}, tools.InvalidArgument, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := args{"gate": w.lane(t, nil)}
			w.Requests().Reset()
			got := tc.call(t, a)
			// A case may have made a Gate of its own.
			if n := w.Requests().Count("create", "gates"); n > 0 && w.writes() == n {
				w.Requests().Reset()
			}
			w.refused(t, got, tc.code, tc.reason)
			if ps := w.passages(t, a["gate"].(string)); len(ps) > 0 {
				t.Errorf("there is Passage %s", ps[0].Name)
			}
		})
	}
	if ps := w.all(t); len(ps) > 0 {
		t.Errorf("%d Passages are there", len(ps))
	}
}

// forge changes a state and seals it with a key that the server does not have.
func forge(t testing.TB, state string, change func(body []byte)) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil || len(b) <= sha256.Size {
		t.Fatalf("state %q: %v", state, err)
	}
	body := b[:len(b)-sha256.Size]
	change(body)
	mac := hmac.New(sha256.New, make([]byte, 32))
	mac.Write(body)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(body))
}

// TestStateParts changes every byte of a state, one at a time, and its spelling:
// none of them counts, and the genuine one does still.
func TestStateParts(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	s := w.serve(t, cluster.Promoter)
	a := args{"gate": staging}
	q := s.question(t, "promote_bundle", a)
	genuine, err := base64.RawURLEncoding.DecodeString(q.state)
	if err != nil {
		t.Fatal(err)
	}
	w.Requests().Reset()
	for i := range genuine {
		b := append([]byte(nil), genuine...)
		b[i] ^= 1 << (i % 8)
		got := s.second(t, "promote_bundle", a, base64.RawURLEncoding.EncodeToString(b), yes)
		if got.err == nil || got.err.Code != expired || got.err.Reason != "Tampered" && got.err.Reason != "Unknown" {
			t.Fatalf("byte %d: %s", i, got)
		}
	}
	last := q.state[:len(q.state)-1]
	for _, state := range []string{q.state + "=", " " + q.state, q.state + "\n", last, last + "-", last + "_", base64.StdEncoding.EncodeToString(genuine),
		base64.RawURLEncoding.EncodeToString(append(genuine, 0)), q.state + q.state, strings.ToLower(q.state)} {
		if state == q.state {
			continue
		}
		w.refused(t, s.second(t, "promote_bundle", a, state, yes), expired, "Tampered")
	}
	if got := s.second(t, "promote_bundle", a, q.state, yes); got.err != nil {
		t.Fatalf("the genuine state: %s", got)
	}
	p := w.passages(t, staging)
	if len(p) != 1 || p[0].Annotations[ops.AnnotationConfirmedVia] != "elicitation" || p[0].Annotations[ops.AnnotationClient] != "pipes 1" ||
		p[0].Annotations[ops.AnnotationRequestedBy] != cluster.Promoter || p[0].Annotations[ops.AnnotationCallID] == "" || p[0].Spec.Actor != "mcp:"+cluster.Promoter {
		t.Errorf("Passages %+v", p)
	}

	// Used: neither now, nor once the Gate is free again.
	w.Requests().Reset()
	w.refused(t, s.second(t, "promote_bundle", a, q.state, yes), expired, "Used")
	w.finish(t, p[0].Name, v1alpha1.PassageFailed)
	w.Requests().Reset()
	w.refused(t, s.second(t, "promote_bundle", a, q.state, yes), expired, "Used")
	w.refused(t, s.second(t, "promote_bundle", a, "", yes), expired, "Unasked")
	if n := len(w.passages(t, staging)); n != 1 {
		t.Errorf("%d Passages", n)
	}
}

// TestUsedAtOnce answers one question eight times at the same moment: one counts.
func TestUsedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	s := w.serve(t, cluster.Promoter)
	for range 5 {
		a := args{"gate": w.lane(t, nil)}
		q := s.question(t, "promote_bundle", a)
		got := make([]answer, 8)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = s.second(t, "promote_bundle", a, q.state, yes) })
		}
		wg.Wait()
		counted := 0
		for _, x := range got {
			switch {
			case x.err == nil:
				counted++
			case x.err.Code != expired || x.err.Reason != "Used":
				t.Errorf("got %s", x)
			}
		}
		if n := len(w.passages(t, a["gate"].(string))); counted != 1 || n != 1 {
			t.Errorf("%d counted, %d Passages", counted, n)
		}
	}
}

// TestAnotherPlan edits the Gate between two questions of the same call: what a
// person said to the first does not count, to the second it does.
func TestAnotherPlan(t *testing.T) {
	w := newWorld(t)
	b := w.bundle(t)
	s := w.serve(t, cluster.Promoter)
	a := args{"gate": staging}
	old := s.question(t, "promote_bundle", a)
	w.gate(t, staging, func(g *v1alpha1.Gate) { g.Spec.Passage.Steps[0].Uses = "http" })
	now := s.question(t, "promote_bundle", a)
	if strings.Contains(old.message, "1. http") || !strings.Contains(now.message, "1. http") || old.state == now.state {
		t.Errorf("first %s\nthen %s", old.message, now.message)
	}
	w.Requests().Reset()
	w.refused(t, s.second(t, "promote_bundle", a, old.state, yes), expired, "Replaced")
	if got := s.second(t, "promote_bundle", a, now.state, yes); got.err != nil {
		t.Fatalf("the second: %s", got)
	}
	if p := w.passages(t, staging); len(p) != 1 || p[0].Spec.Steps[0].Uses != "http" {
		t.Errorf("Passages %+v", p)
	}

	// The newest Bundle is another one by now: the confirmed plan names the old
	// one, and the same call a new question.
	a = args{"gate": w.lane(t, nil)}
	old = s.question(t, "promote_bundle", a)
	time.Sleep(1100 * time.Millisecond) // times have seconds only, and newer is by them
	newer := w.bundle(t)
	now = s.question(t, "promote_bundle", a)
	if !strings.Contains(old.message, b.Name) || !strings.Contains(now.message, newer.Name) {
		t.Errorf("first %s\nthen %s", old.message, now.message)
	}
	w.Requests().Reset()
	w.refused(t, s.second(t, "promote_bundle", a, old.state, yes), expired, "Replaced")
}

// TestLegacy answers as hostile clients of the legacy era do.
func TestLegacy(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	s := w.serve(t, cluster.Promoter, "--confirm-timeout", "1s")
	s.initialize(t, true)
	blind := w.serve(t, cluster.Promoter)
	blind.initialize(t, false)
	const tool = "promote_bundle"
	says := func(v any) func(json.RawMessage) any { return func(json.RawMessage) any { return v } }
	accept := func(v any) func(json.RawMessage) any {
		return says(map[string]any{"action": "accept", "content": map[string]any{"confirm": v}})
	}
	smuggle := func(s *server, state string) func(*testing.T, args) answer {
		return func(t *testing.T, a args) answer {
			params := map[string]any{"name": tool, "arguments": a, "inputResponses": yes}
			if state != "" {
				params["requestState"] = state
			}
			return parse(t, s.ask(t, "tools/call", params))
		}
	}
	call := func(t *testing.T, a args) answer { return s.call(t, tool, a) }
	for _, tc := range []struct {
		name   string
		person func(json.RawMessage) any // nil is silence
		call   func(t *testing.T, a args) answer
		asked  int
		code   tools.Code
		reason string
	}{
		{"declined", declines, call, 1, declined, "Declined"},
		{"cancelled", says(map[string]any{"action": "cancel"}), call, 1, declined, "Cancelled"},
		{"accepted without confirm", says(map[string]any{"action": "accept"}), call, 1, declined, "NotConfirmed"},
		{"confirm is a text", accept("true"), call, 1, declined, "NotConfirmed"},
		{"confirm is a number", accept(1), call, 1, declined, "NotConfirmed"},
		{"confirm is false", accept(false), call, 1, declined, "NotConfirmed"},
		{"content is a text", says(map[string]any{"action": "accept", "content": "confirm"}), call, 1, declined, "NotConfirmed"},
		{"an unknown action", says(map[string]any{"action": "Accept", "content": map[string]any{"confirm": true}}), call, 1, declined, "Unreadable"},
		{"an error", says(nil), call, 1, required, "NoAnswer"},
		{"silence", nil, call, 1, required, "NoAnswer"},
		{"an answer in the first call", nil, smuggle(s, ""), 1, required, "NoAnswer"},
		{"an answer with a made-up state", nil, smuggle(s, "confirmed"), 1, required, "NoAnswer"},
		{"an answer in the first call of a client that says no", declines, smuggle(s, "confirmed"), 1, declined, "Declined"},
		{"an answer in the first call without elicitation", nil, smuggle(blind, ""), 0, required, "NoForm"},
		{"an answer and a state without elicitation", nil, smuggle(blind, "confirmed"), 0, required, "NoForm"},
		{"a question of the modern era, answered in the legacy one", nil, func(t *testing.T, a args) answer {
			return smuggle(s, s.question(t, tool, a).state)(t, a)
		}, 0, required, "Waiting"},
		{"a confirm argument", accepts, func(t *testing.T, a args) answer {
			return s.call(t, tool, args{"gate": a["gate"], "confirm": true})
		}, 0, tools.InvalidArgument, ""},
		{"answers before the question", nil, func(t *testing.T, a args) answer {
			for id := range 200 {
				for _, id := range []any{id, "elicit-" + string(rune('0'+id%10))} {
					s.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": accepts(nil)})
				}
			}
			return s.call(t, tool, a)
		}, 1, required, "NoAnswer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := args{"gate": w.lane(t, nil)}
			s.person(tc.person)
			before := len(s.questions()) + len(blind.questions())
			w.Requests().Reset()
			w.refused(t, tc.call(t, a), tc.code, tc.reason)
			if n := len(s.questions()) + len(blind.questions()) - before; n != tc.asked {
				t.Errorf("%d questions, want %d", n, tc.asked)
			}
			if n := len(w.passages(t, a["gate"].(string))); n > 0 {
				t.Errorf("%d Passages", n)
			}
		})
	}

	t.Run("a late answer", func(t *testing.T) {
		a := args{"gate": w.lane(t, nil)}
		late := make(chan struct{})
		s.person(func(p json.RawMessage) any {
			<-late
			return accepts(p)
		})
		w.Requests().Reset()
		w.refused(t, s.call(t, tool, a), required, "NoAnswer")
		close(late)
		for range 3 {
			w.refused(t, s.call(t, tool, a), required, "Waiting")
		}
	})

	t.Run("the answer to another question", func(t *testing.T) {
		mine, other := args{"gate": w.lane(t, nil)}, args{"gate": w.lane(t, nil)}
		s.person(func(p json.RawMessage) any {
			if strings.Contains(string(p), "through "+other["gate"].(string)+" ") {
				return accepts(p)
			}
			return declines(p)
		})
		var got, accepted answer
		var wg sync.WaitGroup
		wg.Go(func() { got = s.call(t, tool, mine) })
		wg.Go(func() { accepted = s.call(t, tool, other) })
		wg.Wait()
		if accepted.err != nil || got.err == nil || got.err.Code != declined || len(w.passages(t, mine["gate"].(string))) != 0 || len(w.passages(t, other["gate"].(string))) != 1 {
			t.Errorf("accepted %s\ndeclined %s", accepted, got)
		}
	})

	t.Run("two answers, two calls", func(t *testing.T) {
		// The same id twice: what is left over is no confirmation of the next call.
		a := args{"gate": w.lane(t, nil)}
		s.person(accepts)
		if got := s.call(t, tool, a); got.err != nil {
			t.Fatal(got)
		}
		for id := range 200 {
			s.send(map[string]any{"jsonrpc": "2.0", "id": id, "result": accepts(nil)})
		}
		w.finish(t, w.passages(t, a["gate"].(string))[0].Name, v1alpha1.PassageFailed)
		s.person(declines)
		before := len(s.questions())
		w.Requests().Reset()
		w.refused(t, s.call(t, tool, a), declined, "Declined")
		if n := len(s.questions()) - before; n != 1 {
			t.Errorf("%d questions", n)
		}
	})
}

// TestUnanswered leaves one more question open than there are workers: a read is
// answered all the same.
func TestUnanswered(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	const workers = 32 // of the stdio transport
	s := w.serve(t, cluster.Promoter)
	s.initialize(t, true)
	w.Requests().Reset()
	answers := make(chan message, workers+1)
	for i := range workers + 1 {
		c := s.begin("tools/call", map[string]any{"name": "promote_bundle", "arguments": args{"gate": staging, "wait": time.Duration(time.Duration(i+1) * time.Second).String()}})
		go func() {
			select {
			case m := <-c:
				answers <- m
			case <-s.done:
			}
		}()
	}
	// Those that find no place to be asked are told so; all others are asked.
	for busy, deadline := 0, time.Now().Add(time.Minute); busy+len(s.questions()) < workers+1; {
		select {
		case m := <-answers:
			if a := parse(t, m); a.err == nil || a.err.Code != required || a.err.Reason != "Busy" || len(a.err.HumanSteps) == 0 {
				t.Fatalf("without a place: %s", a)
			}
			busy++
		case <-time.After(50 * time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatalf("%d asked, %d busy", len(s.questions()), busy)
			}
		}
	}
	if n := len(s.questions()); n == 0 {
		t.Error("nobody was asked")
	}
	got := s.call(t, "list_gates", args{})
	if got.err != nil || !strings.Contains(got.raw, production) {
		t.Errorf("the read: %s", got)
	}
	if n := w.writes(); n > 0 {
		t.Errorf("%d writes", n)
	}
}

// TestDrift changes what a plan rests on while a person reads it: the answer does
// not count for what is there now.
func TestDrift(t *testing.T) {
	w := newWorld(t)
	b := w.bundle(t)
	s := w.serve(t, cluster.Promoter)
	evidence := newEvidence(t, w, b)
	w.allow(t, cluster.Promoter, secretReader)
	approved := func(g *v1alpha1.GateSpec) { g.Admits[0].RequireApproval = true }
	for _, tc := range []struct {
		name   string
		spec   func(*v1alpha1.GateSpec)
		change func(t *testing.T, gate string)
		field  string // "" for a change that must not matter
		code   tools.Code
		reason string
	}{
		{"the Gate is edited", nil, func(t *testing.T, gate string) {
			w.gate(t, gate, func(g *v1alpha1.Gate) { g.Spec.Passage.Steps[1].Uses = "http" })
		}, "steps", tools.Drifted, ""},
		{"a variable of the Gate is edited", nil, func(t *testing.T, gate string) {
			w.gate(t, gate, func(g *v1alpha1.Gate) { g.Spec.Vars = []v1alpha1.Var{{Name: "branch", Value: "evil"}} })
		}, "steps", tools.Drifted, ""},
		{"the Gate is suspended", nil, func(t *testing.T, gate string) {
			w.gate(t, gate, func(g *v1alpha1.Gate) { g.Spec.Suspend = true })
		}, "suspended", tools.Drifted, ""},
		{"the window closes", nil, func(t *testing.T, gate string) {
			w.gate(t, gate, func(g *v1alpha1.Gate) { g.Spec.Windows = []v1alpha1.Window{closed} })
		}, "window", tools.Drifted, ""},
		{"the approval is withdrawn", approved, func(t *testing.T, gate string) {
			w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) { b.Status.ApprovedFor = nil })
		}, "approval", tools.Drifted, ""},
		{"somebody else's approval", approved, func(t *testing.T, gate string) {
			w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) { b.Status.ApprovedFor[0].Actor = "bob" })
		}, "approval", tools.Drifted, ""},
		{"an approval is asked for now", nil, func(t *testing.T, gate string) {
			w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) { b.Status.ApprovedFor = nil })
			w.gate(t, gate, func(g *v1alpha1.Gate) { g.Spec.Admits[0].RequireApproval = true })
		}, "notEligible", tools.Drifted, ""},
		{"the Gate is another one", nil, func(t *testing.T, gate string) {
			var g v1alpha1.Gate
			w.get(t, &g, gate)
			if err := w.admin.Delete(t.Context(), &g); err != nil {
				t.Fatal(err)
			}
			w.create(t, &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: gate}, Spec: g.Spec})
		}, "gateUID", tools.Drifted, ""},
		{"the Gate is gone", nil, func(t *testing.T, gate string) {
			if err := w.admin.Delete(t.Context(), &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: gate, Namespace: w.ns}}); err != nil {
				t.Fatal(err)
			}
		}, "", tools.NotFound, ""},
		{"the Gate holds another Bundle", nil, func(t *testing.T, gate string) {
			w.gateStatus(t, gate, func(g *v1alpha1.Gate) {
				g.Status.Current = &v1alpha1.GateEntry{Bundle: "shop-older", EnteredAt: metav1.Now()}
			})
		}, "current", tools.Drifted, ""},
		{"the evidence changes", evidence.on, func(t *testing.T, _ string) { evidence.set(t, false) }, "checks", tools.Drifted, ""},
		{"the evidence is as it was", evidence.on, func(t *testing.T, _ string) { evidence.set(t, true) }, "", "", ""},
		{"another Passage comes first", nil, func(t *testing.T, gate string) {
			w.create(t, &v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{Name: gate + "-first", Labels: map[string]string{v1alpha1.LabelGate: gate}},
				Spec: v1alpha1.PassageSpec{Gate: gate, Bundle: b.Name, Steps: []v1alpha1.Step{{Uses: "http"}}}})
		}, "", tools.Refused, "CrossingInProgress"},
		{"the controller rewrites the status", nil, func(t *testing.T, gate string) {
			for i := range 3 {
				w.gateStatus(t, gate, func(g *v1alpha1.Gate) { idle(g, time.Duration(i)*time.Second) })
			}
			w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) {
				b.Status.Cleared = append(b.Status.Cleared, v1alpha1.BundleMark{Gate: "elsewhere", At: metav1.Now()})
			})
		}, "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			gate := w.lane(t, tc.spec)
			evidence.set(t, true)
			w.gateStatus(t, gate, func(g *v1alpha1.Gate) { idle(g, 0) })
			w.bundleStatus(t, b.Name, func(b *v1alpha1.Bundle) {
				b.Status.ApprovedFor = []v1alpha1.BundleApproval{{Gate: gate, Actor: "ann", At: metav1.Now()}}
			})
			a := args{"gate": gate}
			q := s.question(t, "promote_bundle", a)
			tc.change(t, gate)
			before := len(w.all(t))
			w.Requests().Reset()
			got := s.second(t, "promote_bundle", a, q.state, yes)
			if tc.code == "" {
				if got.err != nil || len(w.passages(t, gate)) != 1 {
					t.Errorf("refused: %s", got)
				}
				return
			}
			w.refused(t, got, tc.code, tc.reason)
			if n := len(w.all(t)); n != before {
				t.Errorf("%d Passages, were %d", n, before)
			}
			if tc.code == tools.Drifted && got.err != nil {
				found := false
				for _, d := range got.err.Differences {
					found = found || d.Field == tc.field && d.Planned != d.Now
				}
				if !found {
					t.Errorf("differences %+v, want one of %s", got.err.Differences, tc.field)
				}
			}
			// It was used, though nothing came of it.
			w.refused(t, s.second(t, "promote_bundle", a, q.state, yes), expired, "Used")
		})
	}
}

// TestDriftLegacy edits the Gate while the form of a legacy client stands open.
func TestDriftLegacy(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	s := w.serve(t, cluster.Promoter)
	s.initialize(t, true)
	s.person(func(p json.RawMessage) any {
		w.gate(t, staging, func(g *v1alpha1.Gate) { g.Spec.Passage.Steps[0].Uses = "http" })
		w.Requests().Reset()
		return accepts(p)
	})
	got := s.call(t, "promote_bundle", args{"gate": staging})
	w.refused(t, got, tools.Drifted, "")
	if got.err != nil && (len(got.err.Differences) == 0 || got.err.Object == nil || got.err.Object.Name != staging) {
		t.Errorf("got %s", got)
	}
	if want, got := "asked, confirmed, refused Drifted", strings.Join(s.events(t), ", "); got != want {
		t.Errorf("the log has %s", got)
	}
}
