package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

// sortKey is the lexical key of a newest-first list.
func sortKey(t time.Time, namespace, name string) string {
	return ops.NewestFirst(t, namespace, name)
}

type listGatesIn struct {
	Gate string `json:"gate,omitempty" jsonschema_description:"only names that contain this"`
	InNamespace
	InPage
	InFormat
}

type listGatesOut struct {
	Result
	Listed
	Gates []ops.GateRow `json:"gates" jsonschema_description:"by namespace and name"`
}

// Said names what explain_gate spells out.
func (listGatesOut) Said() map[string]string {
	return map[string]string{"gates.blocker": "first blocker's kind, as in explain_gate"}
}

var listGates = New(About{
	Name:    "list_gates",
	Title:   "The board of Gates",
	Toolset: Promotion,
	Hints:   reads,
	Description: "Where does every environment (Gate) stand? The board: state, current Bundle, health, how many newer Bundles are eligible, first blocker and a line of summary, for a namespace or for all (namespace *). " +
		"Use for an overview or to find a Gate's name; use explain_gate for the cause of one.",
}, func(ctx context.Context, env *Env, in listGatesIn) (listGatesOut, error) {
	ns := env.namespace(in.Namespace)
	board, err := env.Ops.Overview(ctx, ns)
	if err != nil {
		return listGatesOut{}, err
	}
	rows := board.Rows[:0:0]
	counts := map[ops.State]int{}
	for _, r := range board.Rows {
		if strings.Contains(r.Gate, in.Gate) {
			rows = append(rows, r)
			counts[r.State]++
		}
	}
	page, err := ops.Paginate(rows, func(r ops.GateRow) string { return r.Namespace + "/" + r.Gate }, in.Limit, in.Cursor, "list_gates", ns, in.Gate)
	if err != nil {
		return listGatesOut{}, err
	}
	idle := counts[ops.StateIdle]
	delete(counts, ops.StateIdle)
	out := listGatesOut{Result: Result{Scope: env.scope(ctx, ns), Summary: stateCounts(counts, page.Total-idle, idle), Warnings: env.warnings(), Incomplete: unreads(board.Incomplete)},
		Listed: listed(page), Gates: page.Items}
	if page.Total == 0 {
		out.Summary = nothing("Gate", in.Gate, ns)
		out.NextSteps = elsewhere(ns)
	}
	for _, r := range page.Items {
		if r.State == ops.StateBlocked || r.State == ops.StateFailed {
			out.NextSteps = []ops.NextStep{{Tool: "explain_gate", Arguments: map[string]string{"gate": r.Gate, "namespace": r.Namespace}, Why: "the cause"}}
			break
		}
	}
	if !in.detailed() {
		for i := range out.Gates {
			out.Gates[i].Summary = ops.Clean(out.Gates[i].Summary, 110)
		}
	}
	return out, nil
}, func(w *Writer, out listGatesOut) {
	w.Summary(out.Summary)
	t := w.Table("NAMESPACE", "GATE", "STATE", "CURRENT", "HEALTH", "ELIGIBLE", "BLOCKER")
	for _, r := range out.Gates {
		t.Row(r.Namespace, r.Gate, string(r.State), r.Current, r.Health, fmt.Sprint(r.Eligible), string(r.Blocker))
	}
	t.Flush()
	w.more(out.Truncated, out.NextCursor)
	w.result(out.Result)
})

// elsewhere leads out of an empty namespace, which may be a mistyped one.
func elsewhere(namespace string) []ops.NextStep {
	if namespace == ops.AllNamespaces {
		return nil
	}
	return []ops.NextStep{{Tool: "list_gates", Arguments: map[string]string{"namespace": allNamespaces}, Why: "where there is something: the namespace may be another one"}}
}

// nothing says that a list is empty and where it looked: empty, not installed
// and forbidden are three different answers.
func nothing(kind, part, namespace string, filters ...string) string {
	s := "no " + kind
	if part != "" {
		s += " whose name contains " + part
	}
	for i := 0; i+1 < len(filters); i += 2 {
		if filters[i+1] != "" {
			s += " of " + filters[i] + " " + filters[i+1]
		}
	}
	if namespace == ops.AllNamespaces {
		return s + " in any namespace"
	}
	return s + " in namespace " + namespace
}

type listBundlesIn struct {
	Beacon string `json:"beacon,omitempty" jsonschema_description:"only of this Beacon"`
	Gate   string `json:"gate,omitempty" jsonschema_description:"only what this Gate admits"`
	Bundle string `json:"bundle,omitempty" jsonschema_description:"only names, aliases or versions that contain this"`
	InNamespace
	InPage
	InFormat
}

type listBundlesOut struct {
	Result
	Listed
	Bundles []ops.BundleRow `json:"bundles" jsonschema_description:"newest first"`
}

var listBundles = New(About{
	Name:    "list_bundles",
	Title:   "Bundles and where they have been",
	Toolset: Promotion,
	Hints:   reads,
	Description: "Which versions (Bundles) exist, what is in them, which Gates hold them, which they have cleared, where they failed, and what keeps them out of the next Gate. Newest first. " +
		"Use to find a Bundle's name or to follow a version through the pipeline.",
}, func(ctx context.Context, env *Env, in listBundlesIn) (listBundlesOut, error) {
	ns := env.namespace(in.Namespace)
	rows, incomplete, err := env.Ops.BundleRows(ctx, ns, in.Beacon, in.Bundle, in.Gate)
	if err != nil {
		return listBundlesOut{}, err
	}
	page, err := ops.Paginate(rows, func(r ops.BundleRow) string { return sortKey(r.Created.Time, r.Namespace, r.Bundle) }, in.Limit, in.Cursor, "list_bundles", ns, in.Beacon, in.Bundle, in.Gate)
	if err != nil {
		return listBundlesOut{}, err
	}
	out := listBundlesOut{Result: Result{Scope: env.scope(ctx, ns), Warnings: env.warnings(), Incomplete: unreads(incomplete)}, Listed: listed(page), Bundles: page.Items}
	if page.Total == 0 {
		out.Summary = nothing("Bundle", in.Bundle, ns, "beacon", in.Beacon, "gate", in.Gate)
		out.NextSteps = elsewhere(ns)
	} else {
		out.Summary = fmt.Sprintf("%d Bundles; the newest is %s (%s old)", page.Total, rows[0].Bundle, rows[0].Age)
	}
	if !in.detailed() {
		for i := range out.Bundles {
			r := &out.Bundles[i]
			r.Digest = ""
			if len(r.Artifacts) > 3 {
				r.Artifacts = append(r.Artifacts[:3:3], fmt.Sprintf("and %d more", len(r.Artifacts)-3))
			}
		}
	}
	return out, nil
}, func(w *Writer, out listBundlesOut) {
	w.Summary(out.Summary)
	t := w.Table("NAMESPACE", "BUNDLE", "ALIAS", "AGE", "IN", "CLEARED", "HELD BY", "ARTIFACTS")
	for _, r := range out.Bundles {
		var held []string
		for _, h := range r.Held {
			held = append(held, h.Gate+" ("+h.Reason+")")
		}
		t.Row(r.Namespace, r.Bundle, r.Alias, r.Age, strings.Join(r.In, ","), strings.Join(r.Cleared, ","), strings.Join(held, "; "), strings.Join(r.Artifacts, " "))
	}
	t.Flush()
	w.more(out.Truncated, out.NextCursor)
	w.result(out.Result)
})

type listBeaconsIn struct {
	Beacon string `json:"beacon,omitempty" jsonschema_description:"only names that contain this"`
	InNamespace
	InPage
	InFormat
}

type listBeaconsOut struct {
	Result
	Listed
	Beacons []ops.BeaconRow `json:"beacons" jsonschema_description:"by namespace and name"`
}

var listBeacons = New(About{
	Name:    "list_beacons",
	Title:   "Beacons and whether they find anything",
	Toolset: Promotion,
	Hints:   reads,
	Description: "What is watched for new versions (Beacons), when it was polled last, whether it is suspended or failing and why, and the newest Bundle it emitted. " +
		"Use when explain_gate says NoBundles or a new version does not appear.",
}, func(ctx context.Context, env *Env, in listBeaconsIn) (listBeaconsOut, error) {
	ns := env.namespace(in.Namespace)
	rows, incomplete, err := env.Ops.BeaconRows(ctx, ns, in.Beacon)
	if err != nil {
		return listBeaconsOut{}, err
	}
	page, err := ops.Paginate(rows, func(r ops.BeaconRow) string { return r.Namespace + "/" + r.Beacon }, in.Limit, in.Cursor, "list_beacons", ns, in.Beacon)
	if err != nil {
		return listBeaconsOut{}, err
	}
	out := listBeaconsOut{Result: Result{Scope: env.scope(ctx, ns), Warnings: env.warnings(), Incomplete: unreads(incomplete)}, Listed: listed(page), Beacons: page.Items}
	bad := 0
	for _, r := range rows {
		if r.Cause != "" {
			bad++
		}
	}
	out.Summary = fmt.Sprintf("%d Beacons, %d of which need attention", page.Total, bad)
	if page.Total == 0 {
		out.Summary = nothing("Beacon", in.Beacon, ns)
		out.NextSteps = elsewhere(ns)
	}
	return out, nil
}, func(w *Writer, out listBeaconsOut) {
	w.Summary(out.Summary)
	t := w.Table("NAMESPACE", "BEACON", "READY", "REASON", "LATEST", "WATCHES", "MESSAGE")
	for _, r := range out.Beacons {
		t.Row(r.Namespace, r.Beacon, r.Ready, r.Reason, r.Latest, strings.Join(r.Watches, "; "), r.Message)
	}
	t.Flush()
	w.more(out.Truncated, out.NextCursor)
	w.result(out.Result)
})
