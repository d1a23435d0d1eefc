package tools

import (
	"context"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

// Env is what the tools work with: one source of data and its operations.
type Env struct {
	Ops    *ops.Ops
	Source *cluster.Source
	// Repositories are what the tools of the repository side may read; GitOps
	// answers about them, nil without any.
	Repositories []Repository
	GitOps       *gitops.Engine
	// RepoConfig lies over each repository's own configuration.
	RepoConfig gitops.Config
	// KubernetesVersion picks the schemas unless a call does; "" is the newest.
	KubernetesVersion string
	// LiveCRDs validates against the cluster's CRDs too, DryRun asks its API
	// server about each object.
	LiveCRDs, DryRun bool
	live             liveCluster
	// JoinGates lets an answer about files name the Gates of the cluster.
	JoinGates bool
	// NoSource says why there is no cluster to read, nil when there is one: tools
	// that need one answer with it.
	NoSource error
	// Writes is set on a server that may write.
	Writes *Writes
	// AllNamespaces makes every tool look in all namespaces unless told.
	AllNamespaces bool
	// Timeout bounds one call; 0 means DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout bounds a call: clients give up after about a minute.
const DefaultTimeout = 45 * time.Second

// allNamespaces is how an argument asks for every namespace.
const allNamespaces = "*"

// namespace resolves the argument: given, else the server's default, all
// namespaces for "*". ops takes "" for all.
func (e *Env) namespace(arg string) string {
	switch {
	case arg == allNamespaces:
		return ops.AllNamespaces
	case arg != "":
		return arg
	case e.AllNamespaces:
		return ops.AllNamespaces
	default:
		return e.Source.Namespace
	}
}

// Scope says whose answer this is and as of when.
type Scope struct {
	Cluster   string `json:"cluster"`
	Mode      string `json:"mode"`
	Namespace string `json:"namespace"`
	Identity  string `json:"identity,omitempty"`
	AsOf      string `json:"asOf"`
}

func (e *Env) scope(ctx context.Context, namespace string) Scope {
	if namespace == ops.AllNamespaces {
		namespace = allNamespaces
	}
	s := Scope{Cluster: e.Source.Cluster, Mode: string(e.Source.Mode), Namespace: namespace, AsOf: e.Source.Now().UTC().Format(time.RFC3339)}
	// Who is asking is a help for the reader; an API server that does not say
	// (an old one, or one that forbids it) does not make the answer wrong.
	if id, err := e.Source.Identity(ctx); err == nil {
		s.Identity = id
	}
	return s
}

// warnings are the source's own, such as a capture time that nobody knows.
func (e *Env) warnings() []sourceWarning {
	var out []sourceWarning
	for _, w := range e.Source.Warnings {
		out = append(out, sourceWarning{Kind: ops.WarnSource, Detail: w})
	}
	return out
}

// withWarnings appends the source's warnings to those of an answer.
func (e *Env) withWarnings(ws []ops.Warning) []ops.Warning {
	for _, w := range e.warnings() {
		ws = append(ws, ops.Warning(w))
	}
	return ws
}
