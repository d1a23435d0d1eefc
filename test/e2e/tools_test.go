package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
	"github.com/hecate-mcp/hecate-mcp/test/estate"
)

// TestEveryTool calls each tool on each surface: stdio, HTTP and the shell give
// the same answer, which fits the schema (session.call holds that).
func TestEveryTool(t *testing.T) {
	c := start(t)
	ns := c.Namespace(t)
	objects := estate.Objects(estate.Size{Gates: 3 * estate.Stages, Bundles: 24, Passages: 60}, []string{ns}, time.Now())
	c.Create(t, "", objects...)
	calls := map[string][]args{
		"list_gates":      {nil, {"limit": 2, "format": "detailed"}, {"gate": "production"}, {"namespace": "*"}},
		"list_bundles":    {nil, {"gate": estate.GateName(0, 1), "format": "detailed"}},
		"list_beacons":    {nil},
		"list_passages":   {nil, {"gate": estate.GateName(1, 0), "limit": 1}},
		"get_audit_trail": {nil, {"kind": "crossed", "limit": 3}, {"gate": estate.GateName(1, 0), "format": "detailed"}},
		"explain_gate":    {nil, {"limit": 1}},
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.Gate:
			calls["explain_gate"] = append(calls["explain_gate"], args{"gate": o.Name, "format": "detailed"})
			calls["preview_promotion"] = append(calls["preview_promotion"], args{"gate": o.Name})
		case *v1alpha1.Bundle:
			calls["get_evidence"] = append(calls["get_evidence"], args{"bundle": o.Name})
		case *v1alpha1.Passage:
			calls["get_passage"] = append(calls["get_passage"], args{"passage": o.Name, "format": "detailed"})
		}
	}
	// The same instant for all: ages are part of the answers.
	flags := []string{"--kubeconfig", c.Kubeconfig(t, cluster.Viewer, ns), "--now", time.Now().UTC().Format(time.RFC3339)}
	overStdio, http := stdio(t, flags...), overHTTP(t, flags...)
	promotion, err := tools.Select([]string{tools.Promotion}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range promotion {
		t.Run(tool.Name, func(t *testing.T) {
			if len(calls[tool.Name]) == 0 {
				t.Fatal("nobody calls it")
			}
			for i, a := range calls[tool.Name] {
				want := overStdio.call(t, tool.Name, a)
				if diff := cmp.Diff(want, http.call(t, tool.Name, a)); diff != "" {
					t.Errorf("%v (-stdio +http):\n%s", a, diff)
				}
				if i > 1 {
					continue // a process for each is not worth its time
				}
				stdout, exit := shell(t, tool.Name, a, flags...)
				var printed map[string]any
				if err := json.Unmarshal(stdout, &printed); err != nil || exit != 0 {
					t.Fatalf("the shell: exit %d, %v: %s", exit, err, stdout)
				}
				if diff := cmp.Diff(want, printed); diff != "" {
					t.Errorf("%v (-stdio +shell):\n%s", a, diff)
				}
			}
		})
	}
}

// TestScopeSaysWho holds that an answer names the user, the cluster and the
// namespace that it is about.
func TestScopeSaysWho(t *testing.T) {
	c := start(t)
	ns := c.Namespace(t)
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, ns))
	scope := s.call(t, "list_gates", nil)["scope"].(map[string]any)
	for field, want := range map[string]string{"identity": cluster.Viewer, "mode": "live", "cluster": "test", "namespace": ns} {
		if scope[field] != want {
			t.Errorf("scope.%s is %v, want %s", field, scope[field], want)
		}
	}
}
