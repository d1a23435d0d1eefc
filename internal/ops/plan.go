package ops

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Plan is a write before it is made: what would be done, and what that rests on.
// Making one only reads; the write itself reads again, compares, and acts.
type Plan interface {
	// Digest is of what the plan pins, in hex: equal pins have equal digests.
	Digest() string
	// Title says in one line what would be done.
	Title() string
	// Lines are what a person has to see before saying yes.
	Lines() []string
	// Confirm is the name that a person types to say yes.
	Confirm() string
	// Refused is the rules' first refusal with all others behind it, nil when they
	// allow the write.
	Refused() *RefusedError
}

// Actor is who a write is made for and how it came about.
type Actor struct {
	// Name is recorded where the object has a field for it.
	Name string
	// RequestedBy is who the API server says the user is.
	RequestedBy string
	// ConfirmedVia is how a person confirmed.
	ConfirmedVia string
	// Client is what asked: a program's name and version.
	Client string
	// CallID tells writes apart: a write that is made again with the same one
	// recognises what it did before.
	CallID string
}

// Annotations that a write leaves on a Passage.
const (
	AnnotationRequestedBy  = "hecate-mcp.dev/requested-by"
	AnnotationConfirmedVia = "hecate-mcp.dev/confirmed-via"
	AnnotationClient       = "hecate-mcp.dev/client"
	AnnotationCallID       = "hecate-mcp.dev/call-id"
	// AnnotationAbortedBy is who asked for an abort, beside who asked for the
	// Passage.
	AnnotationAbortedBy = "hecate-mcp.dev/aborted-by"
)

// annotations are those of an Actor, without what is empty.
func (a Actor) annotations() map[string]string {
	out := map[string]string{AnnotationRequestedBy: a.RequestedBy, AnnotationConfirmedVia: a.ConfirmedVia, AnnotationClient: a.Client, AnnotationCallID: a.CallID}
	for k, v := range out {
		if out[k] = clean(v, 200); v == "" {
			delete(out, k)
		}
	}
	return out
}

// Difference is one thing that is not what a plan pinned.
type Difference struct {
	Field   string `json:"field"`
	Planned string `json:"planned"`
	Now     string `json:"now"`
}

// DriftedError is a plan that no longer holds. Nothing was written.
type DriftedError struct {
	Object      *Object
	Differences []Difference
}

func (e *DriftedError) Error() string {
	var fields []string
	for _, d := range e.Differences {
		fields = append(fields, d.Field)
	}
	return "what the plan rests on has changed: " + strings.Join(fields, ", ")
}

// InvalidError is an argument of a write that can't be used; Message names what
// is valid.
type InvalidError struct{ Message string }

func (e *InvalidError) Error() string { return e.Message }

// refusedBy is the error of a list of refusals, nil for none.
func refusedBy(refusals []Refusal) *RefusedError {
	if len(refusals) == 0 {
		return nil
	}
	r := refusals[0]
	detail := r.Detail
	if n := len(refusals) - 1; n > 0 {
		detail += fmt.Sprintf(" (and %s more)", plural(n, "obstacle"))
	}
	return &RefusedError{Reason: string(r.Reason), Detail: detail, Object: r.Object, Refusals: refusals}
}

// digestOf hashes a pin.
func digestOf(pin any) string {
	raw, err := json.Marshal(pin)
	if err != nil {
		panic("ops: a pin holds strings, numbers and bools only: " + err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// differences compares two pins field by field, by their JSON names.
func differences(planned, now any) []Difference {
	a, b := fieldsOf(planned), fieldsOf(now)
	var out []Difference
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if !bytes.Equal(a[k], b[k]) {
			out = append(out, Difference{k, clean(strings.Trim(string(a[k]), `"`), 300), clean(strings.Trim(string(b[k]), `"`), 300)})
		}
	}
	return out
}

func fieldsOf(pin any) map[string]json.RawMessage {
	raw, err := json.Marshal(pin)
	var out map[string]json.RawMessage
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		panic("ops: a pin is a struct of plain fields: " + err.Error())
	}
	return out
}

// PlainEmail checks that an actor is an e-mail address and nothing else, as the
// evidence server asks for it.
func PlainEmail(s string) error {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || a.Name != "" || len(s) > 200 {
		return &InvalidError{fmt.Sprintf("the actor %q is not a plain e-mail address, such as ann@example.com", clean(s, 80))}
	}
	return nil
}

// artifactLines name what is in a Bundle, a line each.
func artifactLines(b *v1alpha1.Bundle) []string {
	var out []string
	for i, a := range b.Spec.Artifacts {
		if i == MaxNames {
			return append(out, fmt.Sprintf("… and %d more artifacts", len(b.Spec.Artifacts)-i))
		}
		out = append(out, "  "+pinnedName(a))
	}
	return out
}

func warningLines(ws []Warning) []string {
	var out []string
	for _, w := range ws {
		out = append(out, fmt.Sprintf("WARNING %s: %s", w.Kind, clean(w.Detail, 300)))
	}
	return out
}
