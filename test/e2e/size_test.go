package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/test/cluster"
	"github.com/hecate-mcp/hecate-mcp/test/estate"
)

// A board of this size has to fit beside a conversation: 4 bytes a token.
const (
	maxTokens     = 8000
	bytesPerToken = 4
)

// TestBoardSize lists 50 Gates among 400 Bundles and 1,000 Passages: a page is
// bounded and leads to the next, and the pages together have every Gate once.
func TestBoardSize(t *testing.T) {
	c := start(t)
	var namespaces []string
	for range 5 {
		namespaces = append(namespaces, c.Namespace(t))
	}
	size := estate.Size{Gates: 50, Bundles: 400, Passages: 1000}
	c.Create(t, "", estate.Objects(size, namespaces, time.Now())...)
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, "default"))

	for _, format := range []string{"concise", "detailed"} {
		var names []string
		states := map[string]int{}
		a := args{"namespace": "*", "format": format}
		for page := 1; ; page++ {
			answer := s.call(t, "list_gates", a)
			raw, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			if tokens := len(raw) / bytesPerToken; tokens >= maxTokens {
				t.Errorf("%s, page %d: %d tokens, under %d are allowed", format, page, tokens, maxTokens)
			}
			gates := rows(t, answer, "gates")
			t.Logf("%s, page %d: %d Gates, %d bytes", format, page, len(gates), len(raw))
			for _, g := range gates {
				names = append(names, fmt.Sprint(g["namespace"], "/", g["gate"]))
				states[fmt.Sprint(g["state"])]++
			}
			next, more := answer["nextCursor"].(string)
			if answer["truncated"] != more || answer["total"] != float64(size.Gates) {
				t.Errorf("%s, page %d: truncated %v, total %v, cursor %q", format, page, answer["truncated"], answer["total"], next)
			}
			if !more {
				if page == 1 {
					t.Errorf("%s: the first page has no cursor", format)
				}
				break
			}
			a = args{"namespace": "*", "format": format, "cursor": next}
		}
		if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != size.Gates || len(names) != size.Gates {
			t.Errorf("%s: %d Gates on all pages, want %d, each once and in order", format, len(names), size.Gates)
		}
		if len(states) < 4 {
			t.Errorf("the states are not mixed: %v", states)
		}
		t.Logf("%s: states %v", format, states)
	}

	// Without a Gate, explain_gate tells about all of them within the same bound.
	raw, err := json.Marshal(s.call(t, "explain_gate", args{"namespace": "*"}))
	if err != nil {
		t.Fatal(err)
	}
	if tokens := len(raw) / bytesPerToken; tokens >= maxTokens {
		t.Errorf("explain_gate: %d tokens, under %d are allowed", tokens, maxTokens)
	}
	t.Logf("explain_gate: %d bytes", len(raw))
}
