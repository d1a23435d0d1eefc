package tools

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/live"
)

// crdsFor is how long the cluster's CRDs are remembered: they are megabytes, and
// change with releases.
const crdsFor = 5 * time.Minute

// liveCluster is what validation asks a cluster, where the user wants it to.
type liveCluster struct {
	mu     sync.Mutex
	client client.Client
	crds   []map[string]any
	read   time.Time
}

// options are those of a validation, with the cluster's part.
func (l *liveCluster) options(ctx context.Context, env *Env) (gitops.ValidateOptions, error) {
	var o gitops.ValidateOptions
	if !env.LiveCRDs && !env.DryRun {
		return o, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == nil {
		c, err := env.Source.AnyKind()
		if err != nil {
			return o, err
		}
		l.client = c
	}
	if env.DryRun {
		o.DryRun = live.DryRun(l.client)
	}
	if !env.LiveCRDs {
		return o, nil
	}
	if l.crds == nil || time.Since(l.read) > crdsFor {
		crds, err := live.CRDs(ctx, l.client)
		if err != nil {
			return o, err
		}
		l.crds, l.read = crds, time.Now()
	}
	o.CRDs = l.crds
	return o, nil
}
