package confirm

import (
	"slices"
	"time"
)

// Bounds of what is remembered.
const (
	maxPending = 64
	maxSpent   = 1024
)

// entry is a plan that waits for a person, or for the call after a person
// answered on a terminal.
type entry struct {
	id     string
	bound  bound
	plan   Plan
	digest hash
	shown  shown
	client string
	asked  time.Time
	// expires ends the waiting, and anew the time in which an accepted plan
	// has to be taken.
	expires time.Time
	// nonce is of the state that a modern client holds; zero without.
	nonce  nonce
	answer answer
}

// answer is a person's, given on a terminal.
type answer int

const (
	none answer = iota
	accepted
	declined
)

// pending holds the entries, oldest first, and the nonces that are used up.
// The Desk's lock guards it.
type pending struct {
	entries []*entry
	spent   []spent
}

// spent is a nonce that opens nothing any more, and why.
type spent struct {
	nonce   nonce
	why     Reason
	expires time.Time
}

// sweep forgets what is over.
func (p *pending) sweep(now time.Time) {
	p.entries = slices.DeleteFunc(p.entries, func(e *entry) bool { return !now.Before(e.expires) })
	p.spent = slices.DeleteFunc(p.spent, func(s spent) bool { return !now.Before(s.expires) })
}

// add takes an entry in; the oldest goes when there are too many.
func (p *pending) add(e *entry) {
	if len(p.entries) >= maxPending {
		p.entries = slices.Delete(p.entries, 0, 1)
	}
	p.entries = append(p.entries, e)
}

// drop takes an entry out; its state, if any, opens nothing from now on.
func (p *pending) drop(e *entry, why Reason) {
	p.entries = slices.DeleteFunc(p.entries, func(x *entry) bool { return x == e })
	p.spend(e, why)
}

// spend uses the entry's state up.
func (p *pending) spend(e *entry, why Reason) {
	if e.nonce == (nonce{}) {
		return
	}
	if len(p.spent) >= maxSpent {
		p.spent = slices.Delete(p.spent, 0, 1)
	}
	p.spent = append(p.spent, spent{e.nonce, why, e.expires})
	e.nonce = nonce{}
}

func (p *pending) find(match func(*entry) bool) *entry {
	if i := slices.IndexFunc(p.entries, match); i >= 0 {
		return p.entries[i]
	}
	return nil
}

func (p *pending) byCall(b bound) *entry {
	return p.find(func(e *entry) bool { return e.bound.same(b) })
}

func (p *pending) byNonce(n nonce) *entry {
	return p.find(func(e *entry) bool { return e.nonce == n && n != nonce{} })
}

func (p *pending) byID(id string) *entry { return p.find(func(e *entry) bool { return e.id == id }) }

// whySpent tells why a nonce is not there.
func (p *pending) whySpent(n nonce) Reason {
	for _, s := range p.spent {
		if s.nonce == n {
			return s.why
		}
	}
	return Unknown
}
