package server

import (
	"testing"
	"time"
)

func TestSessions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newSessions(30*time.Minute, 2)
	s.now = func() time.Time { return now }
	alice, bob := s.of("alice"), s.of("bob")
	valid := func(o sessionsOf, id string) bool { _, err := o.Validate(id); return err == nil }

	id := alice.Generate()
	if !valid(alice, id) {
		t.Error("a session is not valid for its principal")
	}
	if valid(bob, id) {
		t.Error("a session is valid for somebody else")
	}
	if bob.Terminate(id); !valid(alice, id) {
		t.Error("somebody else ended a session")
	}
	if valid(alice, "mcp-session-00000000-0000-0000-0000-000000000000") || valid(alice, "") {
		t.Error("a made-up id is valid")
	}

	now = now.Add(29 * time.Minute)
	if !valid(alice, id) {
		t.Error("a session ended before its time")
	}
	now = now.Add(29 * time.Minute)
	if !valid(alice, id) {
		t.Error("a session that was used did not last longer")
	}
	now = now.Add(30 * time.Minute)
	if valid(alice, id) {
		t.Error("an idle session did not end")
	}

	first, second := alice.Generate(), bob.Generate()
	if !s.full() {
		t.Error("two of two sessions are not full")
	}
	if s.ResolveSessionIdManager(nil).Terminate(second); s.full() || valid(bob, second) {
		t.Error("the library could not end a session")
	}
	bob.Generate()
	now = now.Add(time.Hour)
	if s.full() {
		t.Error("expired sessions take a place")
	}
	if valid(alice, first) || len(s.live) != 0 {
		t.Error("expired sessions are kept")
	}
}
