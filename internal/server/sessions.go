package server

import (
	"crypto/rand"
	"errors"
	"net/http"
	"sync"
	"time"

	mcpserver "github.com/mark3labs/mcp-go/server"
)

// errNoSession is the one answer for an id that was never handed out, expired, was ended, or belongs to
// another principal: a caller learns nothing about sessions that are not its own.
var errNoSession = errors.New("unknown or expired session: send initialize again")

// localPrincipal stands for everybody who can reach the port.
const localPrincipal = "local"

// principalOf says on whose behalf a request comes. Without authentication there is exactly one
// principal per process: whoever can connect to loopback, which on a shared machine means every user of
// that machine; a client that must not share uses stdio. Bearer authentication will answer here, and
// the sessions below are bound to that answer already.
func principalOf(*http.Request) string { return localPrincipal }

// sessions are the legacy-era sessions that this process handed out. It replaces the library's managers:
// those accept made-up ids or never forget an ended one, and know neither principals nor expiry.
type sessions struct {
	ttl time.Duration // idle time after which a session ends
	max int           // live sessions at most
	now func() time.Time

	mu   sync.Mutex
	live map[string]*session
}

type session struct {
	principal string
	lastSeen  time.Time
}

func newSessions(ttl time.Duration, max int) *sessions {
	return &sessions{ttl: ttl, max: max, now: time.Now, live: map[string]*session{}}
}

// ResolveSessionIdManager gives the library the sessions of the request's principal. The library passes
// nil when it cleans up by itself: then every session may be ended.
func (s *sessions) ResolveSessionIdManager(r *http.Request) mcpserver.SessionIdManager {
	if r == nil {
		return sessionsOf{all: s, anyone: true}
	}
	return s.of(principalOf(r))
}

func (s *sessions) of(principal string) sessionsOf { return sessionsOf{all: s, principal: principal} }

// full reports whether no further session may begin. Expired ones do not count.
func (s *sessions) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) < s.max {
		return false
	}
	for id, one := range s.live {
		if s.expired(one) {
			delete(s.live, id)
		}
	}
	return len(s.live) >= s.max
}

func (s *sessions) expired(one *session) bool { return s.now().Sub(one.lastSeen) >= s.ttl }

// sessionsOf are the sessions of one principal: mcp-go's SessionIdManager.
type sessionsOf struct {
	all       *sessions
	principal string
	anyone    bool
}

// Generate begins a session and returns its id: 130 bits of randomness in visible ASCII.
func (o sessionsOf) Generate() string {
	id := rand.Text()
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	o.all.live[id] = &session{principal: o.principal, lastSeen: o.all.now()}
	return id
}

// Validate returns errNoSession unless id is a live session of this principal; it then counts as seen.
// The first result, "was terminated", is always false: an ended session is simply unknown.
func (o sessionsOf) Validate(id string) (bool, error) {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	one, ok := o.all.live[id]
	if !ok || !o.owns(one) {
		return false, errNoSession
	}
	if o.all.expired(one) {
		delete(o.all.live, id)
		return false, errNoSession
	}
	one.lastSeen = o.all.now()
	return false, nil
}

// Terminate ends a session of this principal; an unknown id is no error, as the library expects.
func (o sessionsOf) Terminate(id string) (bool, error) {
	o.all.mu.Lock()
	defer o.all.mu.Unlock()
	if one, ok := o.all.live[id]; ok && o.owns(one) {
		delete(o.all.live, id)
	}
	return false, nil
}

func (o sessionsOf) owns(one *session) bool { return o.anyone || one.principal == o.principal }
