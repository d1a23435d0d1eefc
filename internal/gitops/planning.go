package gitops

import (
	"context"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/reconcile"
)

// PlanReconcile says what would be reconciled in one cluster for a change: its
// reconcile set in waves, with what is declined and why. It fails closed: what did
// not validate, or could not be looked into, is not planned. It asks no cluster;
// reconcile.Executor works the plan off.
//
// Errors are those of ComputeImpact and ValidateManifests, and InvalidArgument for
// a cluster that the repository does not have.
func (e *Engine) PlanReconcile(ctx context.Context, repo Repo, base, cluster string, o ValidateOptions) (reconcile.Plan, error) {
	impact, err := e.ComputeImpact(ctx, repo, base)
	if err != nil {
		return reconcile.Plan{}, err
	}
	if !impact.HasCluster(cluster) {
		var names []string
		for _, c := range impact.Graph.Clusters {
			names = append(names, c.Name)
		}
		return reconcile.Plan{}, &Error{Code: ErrInvalidArgument, Message: "the repository has no such cluster", Valid: names}
	}
	v, err := e.ValidateManifests(ctx, repo, o)
	if err != nil {
		return reconcile.Plan{}, err
	}
	return planOf(v, cluster, impact.ReconcileSet), nil
}

// planOf joins the graph and the verdicts of one cluster.
func planOf(v *Validation, cluster string, set []KustomizationKey) reconcile.Plan {
	local := func(k KustomizationKey) reconcile.Key { return reconcile.Key{Namespace: k.Namespace, Name: k.Name} }
	var nodes []reconcile.Node
	for _, verdict := range v.Verdicts {
		if verdict.Cluster != cluster {
			continue
		}
		n := v.Graph.Kustomizations[verdict.KustomizationKey]
		node := reconcile.Node{Key: local(n.Key), Source: reconcile.SourceRef{Kind: n.SourceRef.Kind, Namespace: n.SourceRef.Namespace, Name: n.SourceRef.Name},
			Suspended: n.Suspended, State: string(n.State), Verdict: string(verdict.Status), External: n.State == StateExternal}
		// What was never built was not validated, even if nothing speaks against it.
		if n.node.build == nil || n.node.failure != nil {
			node.Verdict = ""
		}
		for _, d := range n.DependsOn {
			node.DependsOn = append(node.DependsOn, local(d))
		}
		nodes = append(nodes, node)
	}
	var want []reconcile.Key
	for _, k := range set {
		if k.Cluster == cluster {
			want = append(want, local(k))
		}
	}
	return reconcile.Build(nodes, want)
}
