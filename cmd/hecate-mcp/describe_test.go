package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

func TestVersion(t *testing.T) {
	var v struct{ Version, Go, Platform string }
	o := hecate(context.Background(), "version", "-o", "json")
	o.oneJSON(t, &v)
	if o.code != 0 || v.Version == "" || v.Go != runtime.Version() || v.Platform != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("exit code %d: %s", o.code, o.out)
	}
	if o := hecate(context.Background(), "version"); o.code != 0 || !strings.HasPrefix(o.out, "hecate-mcp "+v.Version+" (") {
		t.Errorf("exit code %d: %s", o.code, o.out)
	}
}

func TestToolsTable(t *testing.T) {
	o := hecate(context.Background(), "tools", "--allow-writes")
	lines := strings.Split(strings.TrimSpace(o.out), "\n")
	if o.code != 0 || len(lines) != len(tools.All())+1 {
		t.Fatalf("exit code %d:\n%s", o.code, o.out)
	}
	for i, tool := range tools.All() {
		if !strings.HasPrefix(lines[i+1], tool.Name+" ") || !strings.Contains(lines[i+1], tool.Title) {
			t.Errorf("line %q is not about %s", lines[i+1], tool.Name)
		}
	}
}

// TestSchemaWritesWhatIsPublished holds the folder schemas/ to the command.
func TestSchemaWritesWhatIsPublished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	if o := hecate(context.Background(), "schema", "--dir", dir); o.code != 0 || o.out != "" {
		t.Fatalf("exit code %d: %s%s", o.code, o.out, o.err)
	}
	const published = "../../schemas"
	want, got := folder(t, published), folder(t, dir)
	for name := range want {
		if !bytes.Equal(want[name], got[name]) {
			t.Errorf("%s is not what the command writes: run make generate", name)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("%s is not published: run make generate", name)
		}
	}
	// What was once published stays in the ledger when the command runs again.
	ledger := filepath.Join(dir, tools.LedgerFile)
	if err := os.WriteFile(ledger, []byte("explain_gate.output gone\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if o := hecate(context.Background(), "schema", "--dir", dir); o.code != 0 {
		t.Fatalf("exit code %d: %s", o.code, o.err)
	}
	if raw := folder(t, dir)[tools.LedgerFile]; !bytes.Contains(raw, []byte("explain_gate.output gone\n")) || len(raw) <= len(want[tools.LedgerFile]) {
		t.Error("the ledger forgot a line")
	}
}

func folder(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = raw
	}
	return out
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if o := hecate(context.Background(), "completion", shell); o.code != 0 || !strings.Contains(o.out, "hecate-mcp") {
			t.Errorf("%s: exit code %d: %.200s", shell, o.code, o.out)
		}
	}
	o := hecate(context.Background(), "__complete", "call", "")
	for _, tool := range tools.All() {
		if !strings.Contains(o.out, tool.Name+"\t"+tool.Title+"\n") {
			t.Errorf("%s is not offered:\n%s", tool.Name, o.out)
		}
	}
	if o := hecate(context.Background(), "__complete", "call", "explain_gate", ""); strings.Contains(o.out, "list_gates") {
		t.Errorf("a second tool is offered:\n%s", o.out)
	}
}
