package ops

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// check refuses what must not stand as somebody's name: the controllers take a
// Passage without an actor, or with this one, for their own.
func (a Actor) check() error {
	switch a.Name {
	case "", actorController:
		return &InvalidError{fmt.Sprintf("the actor %q can't ask for anything: it stands for the controller; valid is a user's name, such as mcp:ann, or a plain e-mail address", a.Name)}
	}
	return nil
}

// actorController is the actor of crossings that an automatic Gate starts.
const actorController = "controller"

// called is the Actor with a CallID: a call without one still has to recognise
// what it did before an answer was lost.
func (a Actor) called() Actor {
	if a.CallID == "" {
		a.CallID = rand.Text()
	}
	return a
}

// plainCallID is a CallID that can stand in an annotation as it is.
var plainCallID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// callMark is what stands for the CallID on an object: two CallIDs never have the
// same.
func (a Actor) callMark() string {
	if a.CallID == "" || plainCallID.MatchString(a.CallID) {
		return a.CallID
	}
	return digestOf(a.CallID)
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
	out := map[string]string{AnnotationRequestedBy: clean(a.RequestedBy, 200), AnnotationConfirmedVia: clean(a.ConfirmedVia, 200),
		AnnotationClient: clean(a.Client, 200), AnnotationCallID: a.callMark()}
	maps.DeleteFunc(out, func(_, v string) bool { return v == "" })
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

// differences compares two pins field by field, by their JSON names. Of lists only
// what one has and the other has not is told.
func differences(planned, now any) []Difference {
	a, b := fieldsOf(planned), fieldsOf(now)
	var out []Difference
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if bytes.Equal(a[k], b[k]) {
			continue
		}
		before, after := words(a[k]), words(b[k])
		say := func(these, others []string) string {
			these = slices.DeleteFunc(slices.Clone(these), func(s string) bool { return slices.Contains(others, s) })
			return orNone(clean(strings.Join(these, ", "), 500))
		}
		out = append(out, Difference{k, say(before, after), say(after, before)})
	}
	return out
}

// words are a field's value, or each entry of its list, as text.
func words(raw json.RawMessage) []string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic("ops: a pin is JSON: " + err.Error()) // it was just marshalled
	}
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	var out []string
	for _, x := range list {
		if w := word(x); w != "" {
			out = append(out, w)
		}
	}
	return out
}

func word(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, word(x))
		}
		return strings.Join(parts, "+")
	case map[string]any:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if w := word(v[k]); w != "" {
				parts = append(parts, k+"="+w)
			}
		}
		return strings.Join(parts, " ")
	default:
		return fmt.Sprint(v)
	}
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
// evidence server asks for it. The error is an *InvalidError.
func PlainEmail(s string) error {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 200 || strings.ContainsAny(s, " \"\\") {
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

// maxLines bounds each list that a person is shown.
const maxLines = 30

// listed is a list as lines, the rest of a long one counted.
func listed[T any](items []T, line func(T) string) []string {
	var out []string
	for i, x := range items {
		if i == maxLines {
			return append(out, fmt.Sprintf("… and %d more of these", len(items)-i))
		}
		out = append(out, line(x))
	}
	return out
}

func warningLines(ws []Warning) []string {
	return listed(ws, func(w Warning) string { return fmt.Sprintf("WARNING %s: %s", w.Kind, clean(w.Detail, 300)) })
}

func refusalLines(rs []Refusal) []string {
	return listed(rs, func(r Refusal) string { return fmt.Sprintf("REFUSED %s: %s", r.Reason, clean(r.Detail, 300)) })
}

func evidenceLines(cs []EvidenceCheck) []string {
	return listed(cs, func(c EvidenceCheck) string {
		return clean(fmt.Sprintf("evidence: %s %s %s", c.Check, c.Result, c.Detail), 300)
	})
}

// surePreview is preview for a write: what could not be read leaves a Preview open,
// but a write must not take it for absent. It is then the reading's error.
func (o *Ops) surePreview(ctx context.Context, q PreviewQuery) (*Preview, *previewed, error) {
	p, from, err := o.preview(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	// An API server that is away has no Secret's word either: what the evidence server
	// would say has not changed by that.
	for _, i := range p.Incomplete {
		if i.Object.Kind == kindSecret && (i.Code == SourceUnavailable || i.Code == SourceTimeout) {
			return nil, nil, apierrors.NewServiceUnavailable(fmt.Sprintf("Secret %s/%s could not be read: %s", i.Object.Namespace, i.Object.Name, i.Detail))
		}
	}
	again, err := from.view.sure(v1alpha1.KindPassage, v1alpha1.KindBundle)
	if again {
		q.Namespace, q.Gate = p.Namespace, p.Gate
		return o.surePreview(ctx, q)
	}
	return p, from, err
}

const kindSecret = "Secret"

// sure is the error of kinds that could not be read. again says that they were
// read in another namespace only, where all were asked for: asking in the Gate's
// own tells.
func (v *view) sure(kinds ...string) (again bool, err error) {
	for _, kind := range kinds {
		if err := v.e.kindsUnread[kind]; err != nil {
			return false, fmt.Errorf("the %ss of namespace %s could not be read, and what is allowed depends on them: %w", kind, v.g.Namespace, err)
		}
		again = again || v.e.unread(kind, v.g.Namespace)
	}
	return again, nil
}
