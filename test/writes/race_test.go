package writes

import (
	"sync"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

// TestRace promotes through four server processes, two calls each at once, each
// confirmed by its person: one Passage a round, seven refused, all named rightly.
func TestRace(t *testing.T) {
	w := newWorld(t)
	var servers []*server
	for range 4 {
		s := w.serve(t, cluster.Promoter)
		s.elicit = accepts
		s.initialize(t, true)
		servers = append(servers, s)
	}
	for round := range rounds(t, 200) {
		b := w.bundle(t)
		answers := make([]answer, 8)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				// Distinct calls: the same one twice would share its confirmation.
				a := args{"gate": staging, "bundle": b.Name}
				if i >= 4 {
					a["namespace"] = w.ns
				}
				answers[i] = servers[i%4].call(t, "promote_bundle", a)
			})
		}
		wg.Wait()
		open := active(w.passages(t, staging))
		if len(open) != 1 {
			t.Fatalf("round %d: %d Passages are open: %v", round, len(open), answers)
		}
		won := 0
		for i, a := range answers {
			switch {
			case a.err == nil && a.out != nil && a.out["passage"].(map[string]any)["name"] == open[0].Name:
				won++
			case a.err != nil && a.err.Code == tools.Refused && a.err.Reason == "CrossingInProgress" && a.err.Object != nil && a.err.Object.Name == open[0].Name:
			default:
				t.Fatalf("round %d: caller %d got %s; open is %s", round, i, a, open[0].Name)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d callers won", round, won)
		}
		if open[0].Spec.Actor != "mcp:"+cluster.Promoter {
			t.Fatalf("the actor is %q", open[0].Spec.Actor)
		}
		w.finish(t, open[0].Name, v1alpha1.PassageFailed)
	}
}

// TestRaceRestart kills the API server in the middle: never two Passages, and every
// caller knows after one retry.
func TestRaceRestart(t *testing.T) {
	w := newWorld(t)
	var servers []*server
	for range 4 {
		s := w.serve(t, cluster.Promoter)
		s.elicit = accepts
		s.initialize(t, true)
		servers = append(servers, s)
	}
	retried := 0
	for round := range rounds(t, 50) {
		b := w.bundle(t)
		answers := make([]answer, 8)
		call := func(i int) answer {
			a := args{"gate": staging, "bundle": b.Name}
			if i >= 4 {
				a["namespace"] = w.ns
			}
			return servers[i%4].call(t, "promote_bundle", a)
		}
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = call(i) })
		}
		// At another moment of the calls each round: reading, asking, creating, done.
		time.Sleep(time.Duration(round%10) * 25 * time.Millisecond)
		w.Restart(t)
		wg.Wait()
		known := func(a answer) bool {
			return a.err == nil || a.err.Code == tools.Refused && a.err.Reason == "CrossingInProgress"
		}
		for i, a := range answers {
			if !known(a) {
				retried++
				if a.err.Code != tools.Unavailable && a.err.Code != tools.Timeout && a.err.Code != tools.Unauthenticated && a.err.Code != tools.Forbidden {
					t.Fatalf("round %d: caller %d got %s", round, i, a)
				}
				if answers[i] = call(i); !known(answers[i]) {
					t.Fatalf("round %d: caller %d does not know after one retry: %s", round, i, answers[i])
				}
			}
		}
		ps := w.passages(t, staging)
		open := active(ps)
		if len(open) != 1 || len(ps) != round+1 {
			t.Fatalf("round %d: %d Passages are open of %d", round, len(open), len(ps))
		}
		for i, a := range answers {
			name := ""
			if a.err == nil {
				name = a.out["passage"].(map[string]any)["name"].(string)
			} else if a.err.Object != nil {
				name = a.err.Object.Name
			}
			if name != open[0].Name {
				t.Fatalf("round %d: caller %d was told of %q, open is %s", round, i, name, open[0].Name)
			}
		}
		w.finish(t, open[0].Name, v1alpha1.PassageFailed)
	}
	t.Logf("%d calls had to be made again", retried)
}
