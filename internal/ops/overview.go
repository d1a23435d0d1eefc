package ops

import (
	"context"
)

// GateRow is one Gate of the board.
type GateRow struct {
	Gate      string      `json:"gate" jsonschema_description:"Gate"`
	Namespace string      `json:"namespace" jsonschema_description:"namespace"`
	State     State       `json:"state" jsonschema_description:"what the Gate is doing"`
	Current   string      `json:"current,omitempty" jsonschema_description:"Bundle in the environment now"`
	Health    string      `json:"health,omitempty" jsonschema_description:"health of what the Gate watches"`
	Eligible  int         `json:"eligible" jsonschema_description:"newer Bundles that could cross"`
	Blocker   BlockerKind `json:"blocker,omitempty" jsonschema_description:"first blocker's kind"`
	Summary   string      `json:"summary" jsonschema_description:"one line"`
}

// Board is every Gate of a scope.
type Board struct {
	Rows       []GateRow
	Incomplete []Incomplete
}

// Overview is the board: every Gate of a namespace, all for "", by namespace
// and name. Four LISTs, whatever the number of Gates; one more of Canaries
// where a Gate is verifying.
func (o *Ops) Overview(ctx context.Context, namespace string) (*Board, error) {
	e, err := o.load(ctx, namespace, allPassages)
	if err != nil {
		return nil, err
	}
	if err := o.lookupCanaries(ctx, e, namespace); err != nil {
		return nil, err
	}
	b := &Board{Rows: make([]GateRow, 0, len(e.gates)), Incomplete: e.incomplete}
	for i := range e.gates {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		x := e.explain(&e.gates[i])
		row := GateRow{Gate: x.Gate, Namespace: x.Namespace, State: x.State, Current: x.Current, Eligible: len(x.Eligible) + x.Omitted["eligible"], Summary: clean(x.Summary, 160)}
		if x.Health != nil {
			row.Health = string(x.Health.Status)
		}
		if len(x.Blockers) > 0 {
			row.Blocker = x.Blockers[0].Kind
		}
		b.Rows = append(b.Rows, row)
	}
	return b, nil
}
