package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type promoteIn struct {
	Gate   string `json:"gate" jsonschema_description:"exact name or a unique part"`
	Bundle string `json:"bundle,omitempty" jsonschema_description:"exact name; left out: the newest not yet in"`
	InNamespace
	Consult bool `json:"consultChangeGate,omitempty" jsonschema_description:"as in preview_promotion"`
	InWait
}

type promoteOut struct {
	wrote
	Gate      string         `json:"gate" jsonschema_description:"Gate"`
	Namespace string         `json:"namespace" jsonschema_description:"namespace"`
	Bundle    string         `json:"bundle" jsonschema_description:"Bundle that crosses"`
	Passage   ops.Object     `json:"passage" jsonschema_description:"for get_passage"`
	Phase     string         `json:"phase" jsonschema_description:"New, Pending, Running, Succeeded, Failed, Aborted"`
	Steps     []writeStep    `json:"steps,omitempty" jsonschema_description:"after a wait: {index, uses, phase, reason, message, attempts, sank}"`
	Warnings  []writeWarning `json:"warnings,omitempty" jsonschema_description:"{kind, detail, object}"`
}

// writeWarning is ops.Warning where the schema describes it in a line.
type writeWarning ops.Warning

// writeStep is ops.StepRow likewise.
type writeStep ops.StepRow

func writeWarnings(in []ops.Warning) []writeWarning {
	var out []writeWarning
	for _, w := range in {
		out = append(out, writeWarning(w))
	}
	return out
}

// watchEvery is the time between two looks at a Passage.
const watchEvery = 2 * time.Second

var promoteBundle = New(About{
	Name:    "promote_bundle",
	Title:   "Promote a Bundle",
	Toolset: Promotion,
	Writes:  true,
	Hints:   Hints{Destructive: true, OpenWorld: true},
	Description: "Takes a Bundle through a Gate (opens a Passage) once a person has confirmed exactly that plan: in the client's form, else by hecate-mcp confirm on a terminal and the same call again. " +
		"Refused with the rule's code; Drifted when something changed meanwhile. preview_promotion asks nobody.",
}, func(ctx context.Context, env *Env, in promoteIn) (promoteOut, error) {
	wait, err := in.duration()
	if err != nil {
		return promoteOut{}, err
	}
	done, err := write[*ops.PromotePlan, *ops.Promoted]{
		tool: "promote_bundle",
		object: func(p *ops.PromotePlan) ops.Object {
			return ops.Object{Kind: v1alpha1.KindGate, Namespace: p.Namespace, Name: p.Gate}
		},
		plan: func(ctx context.Context) (*ops.PromotePlan, error) {
			return env.Ops.PlanPromote(ctx, ops.PromoteQuery{ActorEmail: env.Writes.Email,
				PreviewQuery: ops.PreviewQuery{Namespace: env.namespace(in.Namespace), Gate: in.Gate, Bundle: in.Bundle, ConsultChangeGate: in.Consult}})
		},
		act: env.Ops.Promote,
	}.run(ctx, env)
	if err != nil {
		return promoteOut{}, err
	}
	p, r := done.Plan, done.Result
	out := promoteOut{wrote: done.wrote(env.scope(ctx, p.Namespace)), Gate: p.Gate, Namespace: p.Namespace, Bundle: p.Bundle, Passage: r.Passage, Phase: ops.PhaseNew,
		Warnings: writeWarnings(r.Warnings)}
	out.Summary = fmt.Sprintf("Passage %s takes %s through %s", r.Passage.Name, p.Bundle, p.Gate)
	out.NextSteps = []ops.NextStep{{Tool: "get_passage", Arguments: map[string]string{"passage": r.Passage.Name, "namespace": p.Namespace}, Why: "how it goes, step by step"}}
	if wait > 0 {
		out.follow(ctx, env, wait)
	}
	return out, nil
}, func(w *Writer, out promoteOut) {
	w.Summary(out.Summary)
	w.Fact("passage", out.Passage.Name)
	w.Fact("phase", out.Phase)
	for _, s := range out.Steps {
		w.Item("%s  %s  %s %s", s.Uses, s.Phase, s.Reason, ops.CleanCause(s.Message, 100))
	}
	for _, x := range out.Warnings {
		w.Item("%s  %s", w.Code(string(x.Kind)), x.Detail)
	}
	w.wrote(out.wrote)
})

// follow waits for the outcome. The Passage is open by now: whatever goes wrong
// here is told beside it, never instead of it.
func (out *promoteOut) follow(ctx context.Context, env *Env, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	progress := newProgress(ctx)
	last, err := env.Ops.Watch(ctx, out.Namespace, out.Passage.Name, watchEvery, func(p *v1alpha1.Passage) { progress.say(env.Ops.DetailOf(p, false).Progress()) })
	if last != nil {
		d := env.Ops.DetailOf(last, false)
		out.Phase, out.Steps = d.Phase, nil
		for _, s := range d.Steps {
			out.Steps = append(out.Steps, writeStep(s))
		}
		out.Summary = fmt.Sprintf("Passage %s takes %s through %s: %s", out.Passage.Name, out.Bundle, out.Gate, d.Outcome())
	}
	switch {
	case err == nil:
		out.NextSteps = []ops.NextStep{{Tool: "explain_gate", Arguments: map[string]string{"gate": out.Gate, "namespace": out.Namespace}, Why: "what this means for the Gate"}}
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		out.Summary += fmt.Sprintf(" (not finished after %s)", wait)
	default:
		out.Summary += " (it could not be followed to its end: " + ops.Clean(err.Error(), 200) + ")"
	}
}
