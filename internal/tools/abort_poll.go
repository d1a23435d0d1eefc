package tools

import (
	"context"
	"fmt"

	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type abortIn struct {
	Passage string `json:"passage,omitempty" jsonschema_description:"exact name"`
	Gate    string `json:"gate,omitempty" jsonschema_description:"or what is crossing this Gate"`
	InNamespace
}

type abortOut struct {
	wrote
	Passage   ops.Object     `json:"passage" jsonschema_description:"the attempt that stops"`
	Phase     string         `json:"phase" jsonschema_description:"as last seen"`
	Restarted *ops.Object    `json:"restarted,omitempty" jsonschema_description:"opened by an automatic Gate since"`
	Warnings  []writeWarning `json:"warnings,omitempty" jsonschema_description:"{kind, detail, object}"`
}

var abortPassage = New(About{
	Name:    "abort_passage",
	Title:   "Stop a crossing",
	Toolset: Promotion,
	Writes:  true,
	Hints:   Hints{Destructive: true, Idempotent: true},
	Description: "Stops a crossing (Passage) once a person has confirmed: what it did stays. " +
		"An automatic Gate may start the same Bundle again; the answer says whether it did.",
}, func(ctx context.Context, env *Env, in abortIn) (abortOut, error) {
	if in.Passage == "" && in.Gate == "" {
		return abortOut{}, invalid("passage or gate is needed")
	}
	done, err := write[*ops.AbortPlan, *ops.Aborted]{
		tool:   "abort_passage",
		object: func(p *ops.AbortPlan) ops.Object { return p.Object() },
		plan: func(ctx context.Context) (*ops.AbortPlan, error) {
			return env.Ops.PlanAbort(ctx, ops.AbortQuery{Namespace: env.namespace(in.Namespace), Passage: in.Passage, Gate: in.Gate})
		},
		act: env.Ops.Abort,
	}.run(ctx, env)
	if err != nil {
		return abortOut{}, err
	}
	r := done.Result
	out := abortOut{wrote: done.wrote(env.scope(ctx, r.Passage.Namespace)), Passage: r.Passage, Phase: r.Phase, Restarted: r.Restarted,
		Warnings: writeWarnings(r.Warnings)}
	out.Summary = fmt.Sprintf("Passage %s was asked to stop: %s", r.Passage.Name, r.Phase)
	if r.Restarted != nil {
		out.Summary += "; the Gate has opened " + r.Restarted.Name + " since"
	}
	out.NextSteps = []ops.NextStep{{Tool: "get_passage", Arguments: map[string]string{"passage": r.Passage.Name, "namespace": r.Passage.Namespace}, Why: "where it stopped"}}
	return out, nil
}, func(w *Writer, out abortOut) {
	w.Summary(out.Summary)
	for _, x := range out.Warnings {
		w.Item("%s  %s", w.Code(string(x.Kind)), x.Detail)
	}
	w.wrote(out.wrote)
})

type pollIn struct {
	Beacon string `json:"beacon" jsonschema_description:"exact name or a unique part"`
	InNamespace
}

type pollOut struct {
	wrote
	Beacon      ops.Object `json:"beacon" jsonschema_description:"the Beacon that looks now"`
	RequestedAt string     `json:"requestedAt" jsonschema_description:"echoed in status.lastHandledReconcileAt"`
}

var pollBeacon = New(About{
	Name:        "poll_beacon",
	Title:       "Let a Beacon look now",
	Toolset:     Promotion,
	Writes:      true,
	Hints:       Hints{Idempotent: true, OpenWorld: true},
	Description: "Lets a Beacon look at its sources now, once a person has confirmed. A new Bundle shows in list_bundles a moment later.",
}, func(ctx context.Context, env *Env, in pollIn) (pollOut, error) {
	done, err := write[*ops.PollPlan, *ops.Polled]{
		tool:   "poll_beacon",
		object: func(p *ops.PollPlan) ops.Object { return p.Object() },
		plan: func(ctx context.Context) (*ops.PollPlan, error) {
			return env.Ops.PlanPoll(ctx, ops.PollQuery{Namespace: env.namespace(in.Namespace), Beacon: in.Beacon})
		},
		act: env.Ops.Poll,
	}.run(ctx, env)
	if err != nil {
		return pollOut{}, err
	}
	r := done.Result
	out := pollOut{wrote: done.wrote(env.scope(ctx, r.Beacon.Namespace)), Beacon: r.Beacon, RequestedAt: r.RequestedAt}
	out.Summary = fmt.Sprintf("Beacon %s was asked to look now", r.Beacon.Name)
	out.NextSteps = []ops.NextStep{{Tool: "list_bundles", Arguments: map[string]string{"beacon": r.Beacon.Name, "namespace": r.Beacon.Namespace}, Why: "whether a new Bundle came of it"}}
	return out, nil
}, func(w *Writer, out pollOut) {
	w.Summary(out.Summary)
	w.wrote(out.wrote)
})
