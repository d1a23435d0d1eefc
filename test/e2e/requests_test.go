package e2e

import (
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/hecate-mcp/hecate-mcp/test/cluster"
	"github.com/hecate-mcp/hecate-mcp/test/estate"
)

// kinds are Hecate's, as the API server calls them.
var kinds = []string{"gates", "bundles", "beacons", "passages"}

// whoAmI is the one request besides LISTs: once a process, the API server says
// who is asking.
const whoAmI = "selfsubjectreviews"

// TestListingIsSilent starts the server and asks what it offers: clients do so
// at each of their starts, and no API server need be there for it.
func TestListingIsSilent(t *testing.T) {
	c := start(t)
	c.Requests().Reset()
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, "default"))
	for what, list := range map[string]func() error{
		"tools":     func() error { _, err := s.ListTools(t.Context(), mcp.ListToolsRequest{}); return err },
		"prompts":   func() error { _, err := s.ListPrompts(t.Context(), mcp.ListPromptsRequest{}); return err },
		"resources": func() error { _, err := s.ListResources(t.Context(), mcp.ListResourcesRequest{}); return err },
		"templates": func() error {
			_, err := s.ListResourceTemplates(t.Context(), mcp.ListResourceTemplatesRequest{})
			return err
		},
	} {
		if err := list(); err != nil {
			t.Errorf("listing %s: %v", what, err)
		}
	}
	if n := c.Requests().Count("", ""); n != 0 {
		t.Errorf("%d requests:\n%s", n, c.Requests())
	}
}

// TestBoardRequests counts one LIST a kind for the board, however much there is.
func TestBoardRequests(t *testing.T) {
	c := start(t)
	namespaces := []string{c.Namespace(t), c.Namespace(t)}
	for _, size := range []estate.Size{{Gates: 5, Bundles: 10, Passages: 20}, {Gates: 30, Bundles: 700, Passages: 600}} {
		c.Create(t, "", estate.Objects(size, namespaces, time.Now())...)
		s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, "default"))
		c.Requests().Reset()
		board := s.call(t, "list_gates", args{"namespace": "*"})
		if board["total"] != float64(size.Gates) {
			t.Errorf("%+v: total %v", size, board["total"])
		}
		n := c.Requests()
		for _, kind := range kinds {
			if got := n.Lists(kind); got != 1 {
				t.Errorf("%+v: %d LISTs of %s, want 1", size, got, kind)
			}
		}
		if n.Count("get", "") != 0 || n.Lists("") != len(kinds) || n.Count("create", whoAmI) != 1 || n.Count("", "") != n.Count("list", "")+1 {
			t.Errorf("%+v: more than a LIST a kind and one %s:\n%s", size, whoAmI, n)
		}
		for _, ns := range namespaces {
			c.Clear(t, ns)
		}
	}
}

// TestExplainRequests counts one LIST each of Gates, Bundles, Beacons and
// unlabelled Passages, and one of Passages for each of the chain's four Gates.
func TestExplainRequests(t *testing.T) {
	c := start(t)
	ns := c.Namespace(t)
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, ns))
	objects := estate.Objects(estate.Size{Gates: estate.Stages, Bundles: 8, Passages: 20}, []string{ns}, time.Now())
	c.Create(t, "", objects...)
	a := args{"gate": estate.GateName(0, 3)} // the fourth of the pipeline
	s.call(t, "explain_gate", a)             // asks who is asking
	for _, when := range []string{"alone", "in a grown estate"} {
		c.Requests().Reset()
		x := s.call(t, "explain_gate", a)
		n := c.Requests()
		for kind, want := range map[string]int{"gates": 1, "bundles": 1, "beacons": 1, "passages": 1 + 4} {
			if got := n.Lists(kind); got != want {
				t.Errorf("%s: %d LISTs of %s, want %d", when, got, kind, want)
			}
		}
		if n.Count("", "") != n.Count("list", "") || n.Lists("") != 8 {
			t.Errorf("%s: more than the eight LISTs:\n%s", when, n)
		}
		if chain := rows(t, x, "chain"); len(chain) < 4 {
			t.Errorf("%s: the chain has %d links, want one a Gate: %v", when, len(chain), chain)
		}
		if when == "alone" {
			more := estate.Objects(estate.Size{Gates: 8 * estate.Stages, Bundles: 64, Passages: 160}, []string{ns}, time.Now())
			known := map[string]bool{}
			for _, o := range objects {
				known[o.GetObjectKind().GroupVersionKind().Kind+o.GetName()] = true
			}
			for _, o := range more {
				if !known[o.GetObjectKind().GroupVersionKind().Kind+o.GetName()] {
					c.Create(t, "", o)
				}
			}
		}
	}
}
