package tools

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// Toolsets that --toolsets picks from.
const (
	Promotion = "promotion"
	GitOps    = "gitops"
)

// Toolsets lists every toolset and what it is for.
var Toolsets = []struct{ Name, About string }{
	{Promotion, "why Gates are stuck, what happened, what would cross: reading only"},
	{GitOps, "the graph of a Flux repository, what a change touches, whether it is sound: reading files only"},
}

// All lists every tool by name.
func All() []Tool {
	all := []Tool{explainGate, listGates, listBundles, listBeacons, listPassages, getPassage, getEvidence, getAuditTrail, previewPromotion,
		getFluxGraph, computeImpact, validateManifests, promoteBundle, abortPassage, pollBeacon, reconcileFlux}
	slices.SortFunc(all, func(a, b Tool) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Select picks the tools of the named toolsets; none or "all" means every one.
// Those that write are among them only when that is allowed.
func Select(toolsets []string, allowWrites bool) ([]Tool, error) {
	known := map[string]bool{}
	var valid []string
	for _, t := range Toolsets {
		known[t.Name] = true
		valid = append(valid, t.Name)
	}
	want := map[string]bool{}
	for _, name := range toolsets {
		if name == "all" {
			want = map[string]bool{}
			break
		}
		if !known[name] {
			e := invalid("unknown toolset %s; valid are: all, %s", quote(name), joined(valid))
			e.ValidValues = append([]string{"all"}, valid...)
			return nil, e
		}
		want[name] = true
	}
	return slices.DeleteFunc(All(), func(t Tool) bool {
		return len(want) > 0 && !want[t.Toolset] || t.Writes && !allowWrites
	}), nil
}

func joined(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += ", "
		}
		out += n
	}
	return out
}

// Find looks a tool up by its exact name.
func Find(name string) (Tool, error) {
	var names []string
	for _, t := range All() {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	e := &Error{Code: NotFound, Message: fmt.Sprintf("no tool %s; there are: %s", quote(name), joined(names)), ValidValues: names}
	return Tool{}, e
}

func logPanic(ctx context.Context, tool string, value any, stack []byte) {
	slog.ErrorContext(ctx, "panic in a tool", "tool", tool, "panic", fmt.Sprint(value), "stack", string(stack))
}
