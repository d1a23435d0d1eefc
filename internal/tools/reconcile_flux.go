package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/reconcile"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type reconcileIn struct {
	Kustomization string `json:"kustomization,omitempty" jsonschema_description:"namespace/name; left out: what a change affects"`
	Base          string `json:"base,omitempty" jsonschema_description:"as in compute_impact"`
	InRepo
	Cluster string `json:"cluster,omitempty" jsonschema_description:"needed when there are several"`
	InWait
}

type reconcileOut struct {
	wrote
	Waves    [][]string `json:"waves" jsonschema_description:"namespace/name in the order of dependencies"`
	Declined []declined `json:"declined" jsonschema_description:"left out: {namespace, name, code, detail}"`
	Results  []outcome  `json:"results" jsonschema_description:"{namespace, name, success, code, message, revision, seconds}"`
}

// declined is what is not reconciled, and why.
type declined struct {
	Namespace string           `json:"namespace" jsonschema_description:"namespace"`
	Name      string           `json:"name" jsonschema_description:"name"`
	Code      reconcile.Reason `json:"code" jsonschema_description:"why not"`
	Detail    string           `json:"detail" jsonschema_description:"specifics"`
}

// outcome is what came of one Kustomization.
type outcome struct {
	Namespace string         `json:"namespace" jsonschema_description:"namespace"`
	Name      string         `json:"name" jsonschema_description:"name"`
	Success   bool           `json:"success" jsonschema_description:"ready"`
	Code      reconcile.Code `json:"code" jsonschema_description:"what came of it"`
	Message   string         `json:"message" jsonschema_description:"specifics"`
	Revision  string         `json:"revision,omitempty" jsonschema_description:"applied"`
	Seconds   float64        `json:"seconds" jsonschema_description:"how long"`
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

// reconcileCodes and declineReasons are the codes of internal/gitops/reconcile with
// their meanings.
var (
	reconcileCodes = []ops.Meaning[reconcile.Code]{
		{Code: reconcile.Ready, Meaning: "the controller handled the request, and the Kustomization is ready at its source's current revision"},
		{Code: reconcile.NotReady, Meaning: "the controller handled the request, and the Kustomization is stalled, being deleted, or did not become ready in time"},
		{Code: reconcile.SourceFailed, Meaning: "its source could not be reconciled; nothing was asked of the Kustomization"},
		{Code: reconcile.Timeout, Meaning: "the controller did not handle the request in time"},
		{Code: reconcile.DependencyFailed, Meaning: "a Kustomization that it waits for did not become ready"},
		{Code: reconcile.Forbidden, Meaning: "the identity may not get or patch it"},
		{Code: reconcile.NotFound, Meaning: "it is not in the cluster (any more)"},
		{Code: reconcile.Suspended, Meaning: "it is suspended in the cluster"},
		{Code: reconcile.Cancelled, Meaning: "the run ended first"},
	}
	declineReasons = []ops.Meaning[reconcile.Reason]{
		{Code: reconcile.NotInGraph, Meaning: "the repository has no such Kustomization"},
		{Code: reconcile.InCycle, Meaning: "it waits for itself"},
		{Code: reconcile.ValidationFailed, Meaning: "its validation failed, or it could not be rendered"},
		{Code: reconcile.NotValidated, Meaning: "it was not validated, since its manifests could not be looked into"},
		{Code: reconcile.SuspendedInGraph, Meaning: "it is suspended"},
		{Code: reconcile.DependencyDeclined, Meaning: "what it waits for is declined"},
		{Code: reconcile.NotInCluster, Meaning: "the cluster does not have it"},
		{Code: reconcile.SourceMissing, Meaning: "its source is not in the cluster"},
	}
)

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
	Description: "Asks Flux to reconcile now, once a person has confirmed, and waits: one Kustomization with its source, or the reconcile set of a change in waves. " +
		"What is not sound, not validated or suspended is declined, and what waits for it.",
}, func(ctx context.Context, env *Env, in reconcileIn) (reconcileOut, error) {
	wait, err := in.duration()
	if err != nil {
		return reconcileOut{}, err
	}
	if wait == 0 {
		wait = defaultReconcile
	}
	key, err := in.check()
	if err != nil {
		return reconcileOut{}, err
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
		plan: func(ctx context.Context) (reconcilePlan, error) { return env.planReconcile(ctx, c, in, key) },
		act: func(ctx context.Context, p reconcilePlan, _ ops.Actor) (*reconcile.Outcome, error) {
			now, err := env.planReconcile(ctx, c, in, key)
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
				progress.say(strings.TrimSpace(fmt.Sprintf("%s %s %s %s", ev.Key, ev.Stage, ev.Code, ops.CleanCause(ev.Message, 120))))
			}}
			// An item that failed is in the outcome, and so is what was cut short.
			out, _ := e.Execute(run, p.Plan)
			return &out, nil
		},
	}.run(ctx, env)
	if err != nil {
		return reconcileOut{}, err
	}
	out := reconcileOut{wrote: done.wrote(env.scope(ctx, ops.AllNamespaces)), Waves: [][]string{}, Declined: []declined{}, Results: []outcome{}}
	for _, wave := range done.Plan.Plan.Waves {
		var names []string
		for _, item := range wave {
			names = append(names, item.Key.String())
		}
		out.Waves = append(out.Waves, names)
	}
	for _, d := range append(append([]reconcile.Declined{}, done.Plan.Plan.Declined...), done.Plan.Problems...) {
		out.Declined = append(out.Declined, declined{d.Namespace, d.Name, d.Code, ops.Clean(d.Detail, 300)})
	}
	ready := 0
	for _, r := range done.Result.Results {
		if r.Success {
			ready++
		}
		out.Results = append(out.Results, outcome{Namespace: r.Namespace, Name: r.Name, Success: r.Success, Code: r.Code, Message: ops.CleanCause(r.Message, 400), Revision: r.Revision, Seconds: r.Duration.Seconds()})
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
		t.Row(r.Namespace+"/"+r.Name, string(r.Code), r.Revision, ops.CleanCause(r.Message, 100))
	}
	t.Flush()
	for _, d := range out.Declined {
		w.Item("%s/%s declined: %s  %s", d.Namespace, d.Name, w.Code(string(d.Code)), d.Detail)
	}
	w.wrote(out.wrote)
})

// check refuses arguments that can't be right before anything is read. It gives
// the key of the one Kustomization that is named, nil for the set of a change.
func (in reconcileIn) check() (*reconcile.Key, error) {
	if err := errors.Join(short("kustomization", in.Kustomization), short("base", in.Base), short("repo", in.Repo), short("ref", in.Ref), short("cluster", in.Cluster)); err != nil {
		return nil, err
	}
	if strings.HasPrefix(in.Base, "-") || strings.ContainsAny(in.Base, "\x00\n") {
		return nil, invalid("base: %s is no branch, tag or commit", quote(in.Base))
	}
	if in.Kustomization == "" {
		return nil, nil
	}
	if in.Base != "" || in.Ref != "" || in.Repo != "" || in.Cluster != "" {
		return nil, invalid("kustomization stands alone: base, repo, ref and cluster are for the reconcile set of a change")
	}
	ns, name, ok := strings.Cut(in.Kustomization, "/")
	if !ok || len(validation.IsDNS1123Label(ns)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return nil, invalid("kustomization: write %s as namespace/name", quote(in.Kustomization))
	}
	return &reconcile.Key{Namespace: ns, Name: name}, nil
}

// planReconcile plans one Kustomization, or the reconcile set of a change, and
// pins it in the cluster.
func (e *Env) planReconcile(ctx context.Context, c client.Client, in reconcileIn, key *reconcile.Key) (reconcilePlan, error) {
	if key != nil {
		p, err := reconcile.PinPlan(ctx, c, reconcile.One(*key), e.Source.Cluster, "")
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
