package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asCommand makes the test binary be hecate-mcp itself, for the tests that need
// a process of their own.
const asCommand = "HECATE_MCP_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	// A worker is started with an empty environment.
	if os.Getenv(asCommand) != "" || len(os.Args) == 2 && os.Args[1] == workerCommand {
		main()
	}
	os.Exit(m.Run())
}

// outcome is what a run of the command left.
type outcome struct {
	out, err string
	code     int
}

// isolate keeps the developer's own kubeconfig, cluster and evidence server out.
func isolate(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("FIDES_SERVER_URL", "")
	t.Setenv("FIDES_URL", "")
}

// hecate runs the command in process.
func hecate(ctx context.Context, args ...string) outcome {
	var out, errOut bytes.Buffer
	code := run(ctx, args, strings.NewReader(""), &out, &errOut)
	return outcome{out.String(), errOut.String(), code}
}

// oneJSON decodes stdout, which has to be one JSON document and nothing else.
func (o outcome) oneJSON(t *testing.T, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(o.out))
	if err := d.Decode(into); err != nil {
		t.Fatalf("stdout is not JSON: %v\n%s", err, o.out)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("stdout has more than one document:\n%s", o.out)
	}
}

// writeFile puts a file into a fresh folder and returns its path.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
