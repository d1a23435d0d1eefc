package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

// binaryEnv names a binary to test instead of one built here.
const binaryEnv = "HECATE_MCP_BINARY"

// buildDir is where the binary of this run is.
var buildDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hecate-mcp-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	buildDir = dir
	cluster.Main(cleaned{m})
}

// cleaned removes the binary after the tests: cluster.Main does not return.
type cleaned struct{ m *testing.M }

// Run runs the tests.
func (c cleaned) Run() int {
	code := c.m.Run()
	if err := os.RemoveAll(buildDir); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 1)
	}
	return code
}

var build = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryEnv); path != "" {
		return filepath.Abs(path)
	}
	path := filepath.Join(buildDir, "hecate-mcp")
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/hecate-mcp").CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("cannot build the binary: %s", out), err)
	}
	return path, nil
})

// binary is the path of the tested binary, built once a run.
func binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// crdDirs are Hecate's CRDs and small ones of the Flux and Flagger kinds that
// Hecate looks at.
var crdDirs = []string{"../../internal/api/crds", "testdata/crds"}

func start(t testing.TB) *cluster.Cluster {
	t.Helper()
	return cluster.Start(t, crdDirs...)
}
