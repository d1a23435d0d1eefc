package tools

import (
	"context"
	"fmt"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type explainIn struct {
	Gate string `json:"gate,omitempty" jsonschema_description:"exact name or a unique part; leave out to explain every Gate that is not at rest"`
	InNamespace
	InPage
	InFormat
}

// explainOut is one Explanation at the root, or gates[] without a gate.
type explainOut struct {
	*ops.Explanation
	Summary    string           `json:"summary" jsonschema_description:"one line that stands alone"`
	Scope      Scope            `json:"scope" jsonschema_description:"cluster, mode, namespace, identity, asOf"`
	Gates      []gateBrief      `json:"gates,omitempty" jsonschema_description:"without a gate: every Gate not at rest"`
	AtRest     *int             `json:"atRest,omitempty" jsonschema_description:"without a gate: Gates at rest"`
	Total      *int             `json:"total,omitempty" jsonschema_description:"how many gates there are"`
	Truncated  bool             `json:"truncated,omitempty" jsonschema_description:"more than is shown"`
	NextCursor string           `json:"nextCursor,omitempty" jsonschema_description:"pass as cursor for the rest"`
	Warnings   []ops.Warning    `json:"warnings,omitempty" jsonschema_description:"worth knowing, blocks nothing"`
	Incomplete []ops.Incomplete `json:"incomplete,omitempty" jsonschema_description:"what could not be read"`
	NextSteps  []ops.NextStep   `json:"nextSteps,omitempty" jsonschema_description:"{tool, arguments, why}"`
}

// Required names what both shapes have.
func (explainOut) Required() []string { return []string{"summary", "scope"} }

// Said names what the schema spells out elsewhere.
func (explainOut) Said() map[string]string {
	return map[string]string{
		"warnings":   "{kind, detail, object}; kinds: WarningKind of the catalogue",
		"rootCauses": "ends of the chain: links, as in chain",
		"gates":      "without a gate: {gate, namespace, state, summary, kinds, rootCauses} of every Gate not at rest",
	}
}

// gateBrief is one Gate of an explanation over many: the codes and the roots;
// explain_gate with its name gives the rest.
type gateBrief struct {
	Gate       string            `json:"gate" jsonschema_description:"Gate"`
	Namespace  string            `json:"namespace" jsonschema_description:"namespace"`
	State      ops.State         `json:"state" jsonschema_description:"what the Gate is doing"`
	Summary    string            `json:"summary" jsonschema_description:"one line"`
	Kinds      []ops.BlockerKind `json:"kinds" jsonschema_description:"blockers' codes in the order to act"`
	RootCauses []rootBrief       `json:"rootCauses" jsonschema_description:"ends of the chain"`
}

type rootBrief struct {
	Kind   string     `json:"kind" jsonschema_description:"code of the link"`
	Object ops.Object `json:"object" jsonschema_description:"object of the link"`
}

var explainGate = New(About{
	Name:    "explain_gate",
	Title:   "Explain why a Gate is not crossing",
	Toolset: Promotion,
	Hints:   reads,
	Description: "Why is an environment (Gate) stuck, and what is the root cause? Use first for any question such as \"why is prod stuck\". " +
		"Gives one state, every blocker in the order to act with a stable kind, the causal chain through upstream Gates to rootCauses, eligible and waiting Bundles, and what a tool or only a person can do next. " +
		"Without gate: every Gate that is not at rest, briefly. Not for history (get_audit_trail) or for one Bundle's readiness (preview_promotion).",
}, func(ctx context.Context, env *Env, in explainIn) (explainOut, error) {
	ns := env.namespace(in.Namespace)
	if in.Gate != "" {
		if in.Cursor != "" || in.Limit != 0 {
			return explainOut{}, invalid("limit and cursor page the answer without a gate; leave them out with one")
		}
		x, err := env.Ops.Explain(ctx, ns, in.Gate)
		if err != nil {
			return explainOut{}, err
		}
		if !in.detailed() {
			conciseExplanation(x)
		}
		return explainOut{Explanation: x, Summary: x.Summary, Scope: env.scope(ctx, x.Namespace), Warnings: env.withWarnings(x.Warnings),
			Incomplete: x.Incomplete, NextSteps: x.NextSteps}, nil
	}
	all, resting, incomplete, err := env.Ops.ExplainAll(ctx, ns)
	if err != nil {
		return explainOut{}, err
	}
	counts := map[ops.State]int{}
	briefs := make([]gateBrief, 0, len(all))
	for _, x := range all {
		counts[x.State]++
		briefs = append(briefs, briefly(x))
	}
	page, err := ops.Paginate(briefs, func(b gateBrief) string { return b.Namespace + "/" + b.Gate }, in.Limit, in.Cursor, "explain_gate", ns)
	if err != nil {
		return explainOut{}, err
	}
	out := explainOut{Scope: env.scope(ctx, ns), AtRest: &resting, Total: &page.Total, Truncated: page.Truncated, NextCursor: page.NextCursor,
		Gates: page.Items, Incomplete: incomplete, Warnings: env.withWarnings(nil)}
	out.Summary = stateCounts(counts, page.Total, resting)
	if page.Total+resting == 0 {
		out.Summary = nothing("Gate", "", ns)
		out.NextSteps = elsewhere(ns)
	}
	if x := mostUrgent(page.Items); x != nil {
		out.NextSteps = []ops.NextStep{{Tool: "explain_gate", Arguments: map[string]string{"gate": x.Gate, "namespace": x.Namespace}, Why: "one Gate in full"}}
	}
	return out, nil
}, textExplain)

// briefly is an Explanation in an answer over many Gates.
func briefly(x *ops.Explanation) gateBrief {
	b := gateBrief{Gate: x.Gate, Namespace: x.Namespace, State: x.State, Summary: ops.Clean(x.Summary, 300), Kinds: []ops.BlockerKind{}, RootCauses: []rootBrief{}}
	for _, bl := range x.Blockers {
		b.Kinds = append(b.Kinds, bl.Kind)
	}
	for _, r := range x.RootCauses {
		b.RootCauses = append(b.RootCauses, rootBrief{string(r.Kind), r.Object})
	}
	return b
}

// mostUrgent is the Gate to look at first: what failed, then what is blocked.
func mostUrgent(bs []gateBrief) *gateBrief {
	for _, state := range []ops.State{ops.StateFailed, ops.StateBlocked, ops.StateCrossing, ops.StateReady} {
		for i := range bs {
			if bs[i].State == state {
				return &bs[i]
			}
		}
	}
	return nil
}

func stateCounts(counts map[ops.State]int, troubled, resting int) string {
	var say []string
	for _, s := range ops.States {
		if n := counts[s.Code]; n > 0 {
			say = append(say, fmt.Sprintf("%d %s", n, s.Code))
		}
	}
	if troubled == 0 {
		return fmt.Sprintf("every Gate is at rest (%d)", resting)
	}
	return fmt.Sprintf("%d of %d Gates are not at rest: %s", troubled, troubled+resting, strings.Join(say, ", "))
}

// conciseExplanation keeps what decides: an answer has to fit beside a
// conversation. What is left out is counted.
func conciseExplanation(x *ops.Explanation) {
	omit := func(list string, n int) {
		if n <= 0 {
			return
		}
		if x.Omitted == nil {
			x.Omitted = map[string]int{}
		}
		x.Omitted[list] += n
	}
	const few = 3
	if n := len(x.Waiting) - few; n > 0 {
		omit("waiting", n)
		x.Waiting = x.Waiting[:few]
	}
	if n := len(x.Rollback) - few; n > 0 {
		omit("rollback", n)
		x.Rollback = x.Rollback[:few]
	}
	if n := len(x.Eligible) - few; n > 0 {
		omit("eligible", n)
		x.Eligible = x.Eligible[:few]
	}
	if x.Health != nil && x.Health.Status == v1alpha1.HealthNotApplicable {
		x.Health = nil
	}
	if n := len(x.Chain) - 12; n > 0 {
		omit("chain", n)
		x.Chain = x.Chain[:12]
	}
	if n := len(x.RootCauses) - 6; n > 0 {
		omit("rootCauses", n)
		x.RootCauses = x.RootCauses[:6]
	}
	for i := range x.Blockers {
		b := &x.Blockers[i]
		b.Detail = ops.Clean(b.Detail, 260)
		if n := len(b.Objects) - 4; n > 0 {
			b.Objects = b.Objects[:4]
		}
	}
	for i := range x.Chain {
		x.Chain[i].Detail = ops.Clean(x.Chain[i].Detail, 200)
	}
	for i := range x.RootCauses {
		x.RootCauses[i].Detail = ops.Clean(x.RootCauses[i].Detail, 200)
	}
}

func textExplain(w *Writer, out explainOut) {
	w.Summary(out.Summary)
	if out.Explanation == nil {
		for _, g := range out.Gates {
			w.Row("%s  %s", w.State(g.State), g.Summary)
		}
		w.more(out.Truncated, out.NextCursor)
		w.tail(out.Warnings, out.Incomplete, out.NextSteps, nil)
		return
	}
	x := out.Explanation
	w.Fact("state", w.State(x.State))
	w.Fact("current", x.Current)
	if c := x.Crossing; c != nil {
		w.Fact("crossing", c.Bundle+" in "+c.Passage)
	}
	w.Fact("eligible", strings.Join(x.Eligible, ", "))
	if len(x.Blockers) > 0 {
		w.Head("blockers")
		for _, b := range x.Blockers {
			w.Item("%s  %s", w.Code(string(b.Kind)), b.Detail)
			for _, h := range b.Hold {
				w.Sub("%s  %s", w.Code(string(h.Kind)), h.Detail)
			}
			if b.Fix != "" {
				w.Sub("fix: %s", b.Fix)
			}
		}
	}
	if len(x.Chain) > 1 {
		w.Head("because")
		for _, l := range x.Chain {
			w.Line("%s%s  %s %s: %s", strings.Repeat("  ", l.Depth+1), w.Code(string(l.Kind)), l.Object.Kind, l.Object.Name, l.Detail)
		}
	}
	for _, r := range x.Rollback {
		w.Fact("rollback", r.Bundle+" ("+r.Reason+")")
	}
	human := x.HumanSteps
	var next []ops.NextStep
	for _, b := range x.Blockers {
		human = append(human, b.HumanSteps...)
		next = append(next, b.NextSteps...)
	}
	w.tail(out.Warnings, out.Incomplete, append(next, out.NextSteps...), human)
}
