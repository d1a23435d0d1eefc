package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

// Folders with states: the project's own, and those of a real controller that
// stand beside the project.
var stateFolders = []string{"../../internal/ops/testdata/states", "../../../shared/scenarios"}

// codes are what an Explanation decides, without its texts and times.
type codes struct {
	State      string
	Current    string
	Blockers   []string
	Eligible   []string
	Waiting    []string
	Rollback   []string
	Chain      []string
	RootCauses []string
	Warnings   []string
}

// TestStatesLive loads each state into the API server and asks for every Gate
// of it, at the time of the capture: the answer has the codes that the snapshot
// of the same files gives. (What the snapshot answers is held in internal/ops.)
func TestStatesLive(t *testing.T) {
	c := start(t)
	kubeconfig := c.Kubeconfig(t, cluster.Admin, "default")
	seen := 0
	for _, folder := range stateFolders {
		dirs, err := filepath.Glob(filepath.Join(folder, "*", "meta.json"))
		if err != nil {
			t.Fatal(err)
		}
		seen += len(dirs)
		for _, meta := range dirs {
			dir := filepath.Dir(meta)
			t.Run(filepath.Base(dir), func(t *testing.T) { compareState(t, c, kubeconfig, dir, capturedAt(t, meta)) })
		}
	}
	if seen == 0 {
		t.Fatal("no states")
	}
}

func compareState(t *testing.T, c *cluster.Cluster, kubeconfig, dir, now string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	// The expectations of internal/ops are no objects.
	files = slices.DeleteFunc(files, func(f string) bool { return filepath.Base(f) == "want.yaml" })
	c.Load(t, "", files...)
	snapshot := t.TempDir()
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(snapshot, filepath.Base(f)), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fromFiles := stdio(t, "--snapshot", snapshot, "--now", now)
	live := stdio(t, "--kubeconfig", kubeconfig, "--now", now)

	gates := rows(t, live.call(t, "list_gates", args{"namespace": "*", "limit": 200}), "gates")
	want := rows(t, fromFiles.call(t, "list_gates", args{"namespace": "*", "limit": 200}), "gates")
	if diff := cmp.Diff(want, gates); diff != "" {
		t.Errorf("the board (-snapshot +live):\n%s", diff)
	}
	if len(gates) == 0 {
		t.Fatal("the state has no Gate")
	}
	for _, g := range gates {
		a := args{"gate": g["gate"], "namespace": g["namespace"], "format": "detailed"}
		if diff := cmp.Diff(codesOf(t, fromFiles.call(t, "explain_gate", a)), codesOf(t, live.call(t, "explain_gate", a))); diff != "" {
			t.Errorf("%s (-snapshot +live):\n%s", g["gate"], diff)
		}
	}
}

func capturedAt(t *testing.T, meta string) string {
	raw, err := os.ReadFile(meta)
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		CapturedAt string `json:"capturedAt"`
	}
	if err := json.Unmarshal(raw, &m); err != nil || m.CapturedAt == "" {
		t.Fatalf("%s has no capturedAt: %v", meta, err)
	}
	return m.CapturedAt
}

func codesOf(t *testing.T, answer map[string]any) codes {
	t.Helper()
	list := func(name, field string, object bool) []string {
		if answer[name] == nil {
			return nil
		}
		var out []string
		for _, r := range rows(t, answer, name) {
			// The clock set by hand is a warning of the live source alone.
			if r["kind"] == string(ops.WarnSource) {
				continue
			}
			s, _ := r[field].(string)
			if o, ok := r["object"].(map[string]any); object && ok {
				kind, _ := o["kind"].(string)
				name, _ := o["name"].(string)
				s += " " + kind + "/" + name
			}
			out = append(out, s)
		}
		return out
	}
	c := codes{
		Blockers: list("blockers", "kind", true), Waiting: list("waiting", "bundle", false), Rollback: list("rollback", "bundle", false),
		Chain: list("chain", "kind", true), RootCauses: list("rootCauses", "kind", true), Warnings: list("warnings", "kind", true),
	}
	c.State, _ = answer["state"].(string)
	c.Current, _ = answer["current"].(string)
	eligible, _ := answer["eligible"].([]any)
	for _, e := range eligible {
		c.Eligible = append(c.Eligible, e.(string))
	}
	return c
}
