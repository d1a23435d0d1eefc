package tools

import (
	"context"
	"fmt"

	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type listPassagesIn struct {
	Gate   string `json:"gate,omitempty" jsonschema_description:"only of this Gate; a part of the name will do"`
	Bundle string `json:"bundle,omitempty" jsonschema_description:"only of this Bundle; a part of the name will do"`
	InNamespace
	InPage
	InFormat
}

type listPassagesOut struct {
	Result
	Listed
	Passages []ops.PassageRow `json:"passages" jsonschema_description:"newest first"`
}

var listPassages = New(About{
	Name:    "list_passages",
	Title:   "Attempts to cross",
	Toolset: Promotion,
	Hints:   reads,
	Description: "Attempts (Passages) to take a Bundle through a Gate, newest first: phase, who asked, how long, the step it is at or that sank it. " +
		"Old attempts are dropped by retention; get_audit_trail remembers longer.",
}, func(ctx context.Context, env *Env, in listPassagesIn) (listPassagesOut, error) {
	ns := env.namespace(in.Namespace)
	rows, incomplete, err := env.Ops.PassageRows(ctx, ns, in.Gate, in.Bundle)
	if err != nil {
		return listPassagesOut{}, err
	}
	page, err := ops.Paginate(rows, func(r ops.PassageRow) string { return sortKey(r.Created.Time, r.Namespace, r.Passage) }, in.Limit, in.Cursor, "list_passages", ns, in.Gate, in.Bundle)
	if err != nil {
		return listPassagesOut{}, err
	}
	out := listPassagesOut{Result: Result{Scope: env.scope(ctx, ns), Warnings: env.warnings(), Incomplete: unreads(incomplete)}, Listed: listed(page), Passages: page.Items}
	running := 0
	for _, r := range rows {
		switch r.Phase {
		case "Running", "Pending", ops.PhaseNew:
			running++
		}
	}
	out.Summary = fmt.Sprintf("%d Passages, %d not finished", page.Total, running)
	if page.Total == 0 {
		out.Summary = nothing("Passage", "", ns, "gate", in.Gate, "bundle", in.Bundle)
		out.NextSteps = elsewhere(ns)
	} else if len(page.Items) > 0 { // none: what came after the cursor is gone since
		r := page.Items[0]
		out.NextSteps = []ops.NextStep{{Tool: "get_passage", Arguments: map[string]string{"passage": r.Passage, "namespace": r.Namespace}, Why: "the newest shown, step by step"}}
	}
	if !in.detailed() {
		for i := range out.Passages {
			out.Passages[i].Message = ops.CleanCause(out.Passages[i].Message, 140)
		}
	}
	return out, nil
}, func(w *Writer, out listPassagesOut) {
	w.Summary(out.Summary)
	t := w.Table("NAMESPACE", "PASSAGE", "GATE", "BUNDLE", "PHASE", "ACTOR", "TOOK", "STEP", "MESSAGE")
	for _, r := range out.Passages {
		t.Row(r.Namespace, r.Passage, r.Gate, r.Bundle, r.Phase, r.Actor, r.Took, r.Step, ops.CleanCause(r.Message, 60))
	}
	t.Flush()
	w.more(out.Truncated, out.NextCursor)
	w.result(out.Result)
})

type getPassageIn struct {
	Passage string `json:"passage" jsonschema_description:"exact name"`
	InNamespace
	InFormat
}

type getPassageOut struct {
	Result
	ops.PassageDetail
}

var getPassage = New(About{
	Name:    "get_passage",
	Title:   "One attempt step by step",
	Toolset: Promotion,
	Hints:   reads,
	Description: "One attempt (Passage) step by step: phases, reason codes, messages, how often a step was tried, the step that sank it (sank) and failures that were tolerated. " +
		"format detailed adds each step's configuration and output, secrets masked.",
}, func(ctx context.Context, env *Env, in getPassageIn) (getPassageOut, error) {
	ns := env.namespace(in.Namespace)
	d, err := env.Ops.Detail(ctx, ns, in.Passage, in.detailed())
	if err != nil {
		return getPassageOut{}, err
	}
	out := getPassageOut{Result: Result{Scope: env.scope(ctx, d.Namespace), Warnings: env.warnings()}, PassageDetail: *d}
	out.Summary = fmt.Sprintf("Passage %s takes %s through %s/%s: %s", d.Passage, d.Bundle, d.Namespace, d.Gate, d.Outcome())
	out.NextSteps = []ops.NextStep{{Tool: "explain_gate", Arguments: map[string]string{"gate": d.Gate, "namespace": d.Namespace}, Why: "what this means for the Gate"}}
	return out, nil
}, func(w *Writer, out getPassageOut) {
	w.Summary(out.Summary)
	w.Fact("actor", out.Actor)
	w.Fact("took", out.Took)
	t := w.Table("#", "STEP", "PHASE", "REASON", "TRIES", "TOOK", "MESSAGE")
	for _, s := range out.Steps {
		phase := s.Phase
		switch {
		case s.Sank:
			phase += " (sank it)"
		case s.Tolerated:
			phase += " (tolerated)"
		}
		t.Row(fmt.Sprint(s.Index), s.Uses, phase, s.Reason, fmt.Sprint(s.Attempts), s.Took, ops.CleanCause(s.Message, 100))
	}
	t.Flush()
	for _, s := range out.Steps {
		if s.With+s.Output+s.If == "" {
			continue
		}
		w.Head(fmt.Sprintf("steps[%d] %s", s.Index, s.Uses))
		w.Fact("if", s.If)
		w.Fact("with", s.With)
		w.Fact("output", s.Output)
	}
	w.result(out.Result)
})
