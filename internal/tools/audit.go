package tools

import (
	"context"
	"fmt"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type auditIn struct {
	Gate   string        `json:"gate,omitempty" jsonschema_description:"only of this Gate"`
	Bundle string        `json:"bundle,omitempty" jsonschema_description:"only of this Bundle"`
	Actor  string        `json:"actor,omitempty" jsonschema_description:"only by this actor"`
	Kind   ops.AuditKind `json:"kind,omitempty" jsonschema_description:"only of this kind"`
	Since  string        `json:"since,omitempty" jsonschema:"format=date-time" jsonschema_description:"not before, RFC 3339"`
	Until  string        `json:"until,omitempty" jsonschema:"format=date-time" jsonschema_description:"before, RFC 3339"`
	InNamespace
	InPage
	InFormat
}

type auditOut struct {
	Result
	Listed
	Entries       []ops.AuditEntry   `json:"entries" jsonschema_description:"newest first"`
	CompleteSince []ops.Completeness `json:"completeSince" jsonschema_description:"per source: what retention may have dropped"`
}

var getAuditTrail = New(About{
	Name:    "get_audit_trail",
	Title:   "What happened, newest first",
	Toolset: Promotion,
	Hints:   reads,
	Description: "What happened and who caused it: crossed, refused (failed), aborted, running, approved; newest first, filtered by gate, bundle, actor, kind, time. " +
		"Joins Gate history, Passages and Bundle records, so refusals survive the retention of Passages; completeSince says what may be missing. Not for why a Gate is stuck now (explain_gate).",
}, func(ctx context.Context, env *Env, in auditIn) (auditOut, error) {
	q := ops.AuditQuery{Namespace: env.namespace(in.Namespace), Gate: in.Gate, Bundle: in.Bundle, Actor: in.Actor, Kind: in.Kind, Limit: in.Limit, Cursor: in.Cursor}
	for _, b := range []struct {
		name, value string
		into        **time.Time
	}{{"since", in.Since, &q.Since}, {"until", in.Until, &q.Until}} {
		if b.value == "" {
			continue
		}
		t, err := time.Parse(time.RFC3339, b.value)
		if err != nil {
			return auditOut{}, invalid("%s: %s is not an RFC 3339 time, such as 2026-11-30T14:00:00Z", b.name, quote(b.value))
		}
		*b.into = &t
	}
	if q.Since != nil && q.Until != nil && !q.Since.Before(*q.Until) {
		return auditOut{}, invalid("since has to be before until")
	}
	page, err := env.Ops.Audit(ctx, q)
	if err != nil {
		return auditOut{}, err
	}
	out := auditOut{Result: Result{Scope: env.scope(ctx, q.Namespace), Warnings: env.warnings(), Incomplete: unreads(page.Incomplete)},
		Listed: Listed{Total: page.Total, Truncated: page.Truncated, NextCursor: page.NextCursor}, Entries: page.Entries, CompleteSince: page.CompleteSince}
	switch {
	case page.Total == 0 && len(page.Incomplete) > 0:
		out.Summary = "nothing is recorded for this question in what could be read; incomplete says what could not"
	case page.Total == 0:
		out.Summary = "nothing is recorded for this question"
		out.NextSteps = elsewhere(q.Namespace)
	case len(page.Entries) == 0: // what came after the cursor is gone since
		out.Summary = fmt.Sprintf("%d entries, none after the cursor", page.Total)
	default:
		e := page.Entries[0]
		out.Summary = fmt.Sprintf("%d entries; the newest shown: %s %s at %s", page.Total, e.Bundle, e.Kind, e.Gate)
	}
	if !in.detailed() {
		for i := range out.Entries {
			e := &out.Entries[i]
			e.Detail = ops.Clean(e.Detail, 160)
		}
	}
	return out, nil
}, func(w *Writer, out auditOut) {
	w.Summary(out.Summary)
	t := w.Table("AT", "KIND", "NAMESPACE", "GATE", "BUNDLE", "ACTOR", "PASSAGE", "DETAIL")
	for _, e := range out.Entries {
		t.Row(e.At.UTC().Format(time.RFC3339), string(e.Kind), e.Namespace, e.Gate, e.Bundle, e.Actor, e.Passage, ops.Clean(e.Detail, 60))
	}
	t.Flush()
	for _, c := range out.CompleteSince {
		since := "the beginning"
		if c.Since != nil {
			since = c.Since.UTC().Format(time.RFC3339)
		}
		w.Fact("complete since", fmt.Sprintf("%s: %s %s", c.Source, since, c.Why))
	}
	w.more(out.Truncated, out.NextCursor)
	w.result(out.Result)
})
