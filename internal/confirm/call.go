package confirm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Plan is what a person accepts or not.
type Plan interface {
	// Digest is of everything that the plan pins: equal digests are one plan.
	Digest() string
	// Title says in one line what would be done.
	Title() string
	// Lines are what a person has to see before saying yes, warnings included.
	Lines() []string
	// Confirm is the name that a person types on a terminal to say yes.
	Confirm() string
}

// Call is what asks for the plan. A confirmation counts for the same call only.
type Call struct {
	Tool string
	// Arguments is a JSON object; none is the same as {}.
	Arguments json.RawMessage
	// Principal is who the call acts for.
	Principal string
}

// Ways in which a person confirmed.
const (
	ViaElicitation = "elicitation"
	ViaTerminal    = "terminal"
)

// Confirmation is how a person said yes, for the record.
type Confirmation struct {
	// Via is ViaElicitation or ViaTerminal.
	Via string
	// Client is the name and version that the MCP client gives itself, "" when
	// it does not say.
	Client string
	// ID tells confirmations apart in a log. It opens nothing.
	ID string
}

// Taken is a plan that a person has confirmed; it is given out once.
type Taken struct {
	Plan Plan
	Confirmation
}

// hash is a SHA-256.
type hash [sha256.Size]byte

// hashOf hashes fields with their lengths, so that no two lists of fields
// collide by where one ends.
func hashOf(fields ...string) (h hash) {
	s := sha256.New()
	for _, f := range fields {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(f)))
		s.Write(n[:])
		io.WriteString(s, f)
	}
	s.Sum(h[:0])
	return h
}

// bound is a call as confirmations are bound to it.
type bound struct {
	tool, principal string
	call, who       hash
}

func bind(c Call) (bound, error) {
	canonical, err := canonicalJSON(c.Arguments)
	if err != nil {
		return bound{}, err
	}
	return bound{tool: c.Tool, principal: c.Principal, call: hashOf(c.Tool, canonical), who: hashOf(c.Principal)}, nil
}

// same reports whether both are one call of one principal.
func (b bound) same(o bound) bool { return b.call == o.call && b.who == o.who }

// canonicalJSON writes an object with sorted keys and without white space;
// numbers stay as they are written.
func canonicalJSON(raw json.RawMessage) (string, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return "{}", nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", fmt.Errorf("arguments: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return "", errors.New("arguments: more than one JSON document")
	}
	switch v := v.(type) {
	case nil:
		return "{}", nil
	case map[string]any:
		out, err := json.Marshal(v)
		return string(out), err
	default:
		return "", errors.New("arguments: not a JSON object")
	}
}
