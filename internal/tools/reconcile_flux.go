package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/reconcile"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type reconcileIn struct {
	Kustomization string `json:"kustomization,omitempty" jsonschema_description:"namespace/name: this one with its source; left out: what a change affects"`
	Base          string `json:"base,omitempty" jsonschema_description:"of the change, as in compute_impact"`
	InRepo
	Cluster string `json:"cluster,omitempty" jsonschema_description:"of the repository; needed when it has several"`
	InWait
}

type reconcileOut struct {
	Result
	Waves    [][]string `json:"waves" jsonschema_description:"namespace/name in the order of dependencies"`
	Declined []declined `json:"declined" jsonschema_description:"left out: {namespace, name, code, detail}"`
	Results  []outcome  `json:"results" jsonschema_description:"{namespace, name, success, code, message, revision, seconds}"`
	confirmed
}

type declined reconcile.Declined

// outcome is what came of one Kustomization.
type outcome struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Success   bool           `json:"success"`
	Code      reconcile.Code `json:"code"`
	Message   string         `json:"message"`
	Revision  string         `json:"revision,omitempty"`
	Seconds   float64        `json:"seconds"`
}

// Failed tells whether something did not become ready: an exit code of its own.
func (o reconcileOut) Failed() bool {
	for _, r := range o.Results {
		if !r.Success {
			return true
		}
	}
	return false
}

// defaultReconcile is how long one object may take unless wait says otherwise.
const defaultReconcile = 2 * time.Minute

// reconcilePlan is a pinned plan with what the rules say of it.
type reconcilePlan struct{ *reconcile.Pinned }

// Refused is set when nothing would be reconciled.
func (p reconcilePlan) Refused() *ops.RefusedError {
	if p.Items() > 0 {
		return nil
	}
	why := append(append([]reconcile.Declined{}, p.Plan.Declined...), p.Problems...)
	if len(why) == 0 {
		return &ops.RefusedError{Reason: "NothingToReconcile", Detail: "the change affects no Kustomization of this cluster"}
	}
	d := why[0]
	detail := fmt.Sprintf("%s: %s", d.Key, d.Detail)
	if n := len(why) - 1; n > 0 {
		detail += fmt.Sprintf(" (and %d more)", n)
	}
	return &ops.RefusedError{Reason: string(d.Code), Detail: detail, Object: &ops.Object{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: d.Namespace, Name: d.Name}}
}

var reconcileFlux = New(About{
	Name:    "reconcile_flux",
	Title:   "Reconcile now, in dependency order",
	Toolset: GitOps,
	Writes:  true,
	Hints:   Hints{Destructive: true, Idempotent: true},
	Description: "Asks Flux to reconcile now, after a person confirmed it, and waits: one Kustomization with its source, or the reconcile set of a change in waves. " +
		"What failed validation, was not validated or is suspended is declined with its reason, and so is what waits for it.",
}, func(ctx context.Context, env *Env, in reconcileIn) (reconcileOut, error) {
	wait, err := in.duration()
	if err != nil {
		return reconcileOut{}, err
	}
	if wait == 0 {
		wait = defaultReconcile
	}
	if env.Source.AnyKind == nil {
		return reconcileOut{}, toError(&cluster.ReadOnlyError{Mode: env.Source.Mode, Verb: "reconcile", Kind: "Kustomization", Name: in.Kustomization})
	}
	c, err := env.Source.AnyKind()
	if err != nil {
		return reconcileOut{}, err
	}
	progress := newProgress(ctx)
	done, err := write[reconcilePlan, *reconcile.Outcome]{
		tool: "reconcile_flux",
		object: func(p reconcilePlan) ops.Object {
			return ops.Object{Kind: "Kustomization", Name: p.Confirm()}
		},
		plan: func(ctx context.Context) (reconcilePlan, error) { return env.planReconcile(ctx, c, in) },
		act: func(ctx context.Context, p reconcilePlan, _ ops.Actor) (*reconcile.Outcome, error) {
			now, err := env.planReconcile(ctx, c, in)
			if err != nil {
				return nil, err
			}
			if changes := p.Changed(now.Pinned); len(changes) > 0 {
				drifted := &ops.DriftedError{}
				for _, x := range changes {
					drifted.Differences = append(drifted.Differences, ops.Difference{Field: x.Field, Planned: x.Planned, Now: x.Now})
				}
				return nil, drifted
			}
			run, cancel := context.WithTimeout(context.WithoutCancel(ctx), maxWait)
			defer cancel()
			e := reconcile.Executor{Client: c, Timeout: wait, Progress: func(ev reconcile.Event) {
				progress.say(strings.TrimSpace(fmt.Sprintf("%s %s %s %s", ev.Key, ev.Stage, ev.Code, ops.Clean(ev.Message, 120))))
			}}
			// An item that failed is in the outcome, and so is what was cut short.
			out, _ := e.Execute(run, p.Plan)
			return &out, nil
		},
	}.run(ctx, env)
	if err != nil {
		return reconcileOut{}, err
	}
	out := reconcileOut{Result: Result{Scope: env.scope(ctx, ops.AllNamespaces)}, Waves: [][]string{}, Declined: []declined{}, Results: []outcome{}, confirmed: done.confirmed()}
	for _, wave := range done.Plan.Plan.Waves {
		var names []string
		for _, item := range wave {
			names = append(names, item.Key.String())
		}
		out.Waves = append(out.Waves, names)
	}
	for _, d := range append(append([]reconcile.Declined{}, done.Plan.Plan.Declined...), done.Plan.Problems...) {
		d.Detail = ops.Clean(d.Detail, 300)
		out.Declined = append(out.Declined, declined(d))
	}
	ready := 0
	for _, r := range done.Result.Results {
		if r.Success {
			ready++
		}
		out.Results = append(out.Results, outcome{Namespace: r.Namespace, Name: r.Name, Success: r.Success, Code: r.Code, Message: ops.Clean(r.Message, 300), Revision: r.Revision, Seconds: r.Duration.Seconds()})
	}
	out.Summary = fmt.Sprintf("%d of %d Kustomizations are ready", ready, len(out.Results))
	if n := len(out.Declined); n > 0 {
		out.Summary += fmt.Sprintf(", %d declined", n)
	}
	return out, nil
}, func(w *Writer, out reconcileOut) {
	w.Summary(out.Summary)
	t := w.Table("KUSTOMIZATION", "CODE", "REVISION", "MESSAGE")
	for _, r := range out.Results {
		t.Row(r.Namespace+"/"+r.Name, string(r.Code), r.Revision, ops.Clean(r.Message, 100))
	}
	t.Flush()
	for _, d := range out.Declined {
		w.Item("%s/%s declined: %s  %s", d.Namespace, d.Name, w.Code(string(d.Code)), d.Detail)
	}
	w.result(out.Result)
})

// planReconcile plans one Kustomization, or the reconcile set of a change, and
// pins it in the cluster.
func (e *Env) planReconcile(ctx context.Context, c client.Client, in reconcileIn) (reconcilePlan, error) {
	if in.Kustomization != "" {
		if in.Base != "" || in.Ref != "" || in.Repo != "" || in.Cluster != "" {
			return reconcilePlan{}, invalid("kustomization stands alone: base, repo, ref and cluster are for the reconcile set of a change")
		}
		ns, name, ok := strings.Cut(in.Kustomization, "/")
		if !ok || ns == "" || name == "" || strings.Contains(name, "/") {
			return reconcilePlan{}, invalid("kustomization: write %s as namespace/name", quote(in.Kustomization))
		}
		p, err := reconcile.PinPlan(ctx, c, reconcile.One(reconcile.Key{Namespace: ns, Name: name}), e.Source.Cluster, "")
		return reconcilePlan{p}, err
	}
	repo, _, err := e.repository(in.InRepo)
	if err != nil {
		return reconcilePlan{}, err
	}
	o, err := e.live.options(ctx, e)
	if err != nil {
		return reconcilePlan{}, err
	}
	o.KubernetesVersion = e.KubernetesVersion
	plan, commit, err := e.GitOps.PlanReconcile(ctx, repo, in.Base, in.Cluster, o)
	if err != nil {
		return reconcilePlan{}, fromGitops(err)
	}
	p, err := reconcile.PinPlan(ctx, c, plan, e.Source.Cluster, commit)
	return reconcilePlan{p}, err
}
