package ops

import (
	"context"
	"fmt"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

// askHolds asks the evidence server who signed off on the trail of a held
// crossing: the controller's record says "awaiting a human approval" also when
// a service identity has approved, which does not count. The list of approvals
// is asked and never the change gate, since reading that can write.
// A server that cannot be asked is a kind of hold of its own.
func (o *Ops) askHolds(ctx context.Context, e *estate, gates []*v1alpha1.Gate) error {
	for _, g := range gates {
		if g.Spec.Evidence == nil || o.DialFides == nil {
			continue
		}
		for _, p := range e.passages[key{Namespace: g.Namespace, Name: g.Name}] {
			i, st := waitingStep(p)
			if i < 0 || st.Uses != stepEvidence || p.Status.Evidence == nil || p.Status.Evidence.Verdict != verdictHold || p.Status.Evidence.Trail == "" {
				continue
			}
			hold, err := o.askHold(ctx, e, g, p.Status.Evidence)
			if err != nil {
				return err
			}
			if hold != nil {
				e.holds[p.Namespace+"/"+p.Name] = *hold
			}
		}
	}
	e.sortIncomplete()
	return nil
}

func (o *Ops) askHold(ctx context.Context, e *estate, g *v1alpha1.Gate, ev *v1alpha1.EvidenceRef) (*Hold, error) {
	server := g.Spec.Evidence.ServerURL
	if server == "" {
		server = o.FidesServer
	}
	if server == "" {
		return &Hold{HoldUnavailable, "no evidence server is known: the Gate names none, and neither does --fides-server"}, nil
	}
	token, _, missing := o.credentials(ctx, []*v1alpha1.Gate{g})
	if token == "" {
		e.incomplete = append(e.incomplete, missing...)
		return &Hold{HoldUnavailable, credentialDetail(g, missing)}, ctx.Err()
	}
	client, err := o.DialFides(fides.Config{BaseURL: server, Token: token})
	if err != nil {
		return &Hold{HoldUnavailable, mask(err.Error(), token)}, nil
	}
	signed, err := client.Approvals(ctx, ev.Trail)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		return &Hold{HoldUnavailable, mask(err.Error(), token)}, nil
	}
	services := 0
	for _, a := range signed {
		if a.Kind == fides.KindSession {
			return nil, nil
		}
		services++
	}
	if services == 0 {
		return nil, nil
	}
	return &Hold{HoldServiceOnly, fmt.Sprintf("%s on the trail, none by a person: a service identity does not count", plural(services, "sign-off"))}, nil
}
