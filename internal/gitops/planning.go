package gitops

import (
	"context"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/reconcile"
)

// PlanReconcile says what would be reconciled in one cluster for a change: its
// reconcile set in waves, with what is declined and why, and the commit that it
// was computed from ("" for a working tree). It fails closed: what did not
// validate, or could not be looked into, is not planned. It asks no cluster;
// reconcile.Executor works the plan off. The cluster can be left out where the
// repository has one.
//
// Errors are those of ComputeImpact and ValidateManifests, and InvalidArgument for
// a cluster that the repository does not have.
func (e *Engine) PlanReconcile(ctx context.Context, repo Repo, base, cluster string, o ValidateOptions) (plan reconcile.Plan, commit string, err error) {
	set, err := e.schemaSet(o.KubernetesVersion)
	if err != nil {
		return plan, "", err
	}
	err = e.compared(ctx, repo, base, func(r *ImpactResult, head *discovery) error {
		var names []string
		for _, c := range r.Graph.Clusters {
			names = append(names, c.Name)
		}
		switch {
		case cluster == "" && len(names) == 1:
			cluster = names[0]
		case cluster == "":
			return &Error{Code: ErrInvalidArgument, Message: "the repository has several clusters: name one", Valid: names}
		case !r.HasCluster(cluster):
			return &Error{Code: ErrInvalidArgument, Message: "the repository has no such cluster", Valid: names}
		}
		v, err := e.validate(ctx, head, r.Graph, set, o)
		if err != nil {
			return err
		}
		plan, commit = planOf(v, cluster, r.ReconcileSet), r.Head
		return nil
	})
	return plan, commit, err
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
