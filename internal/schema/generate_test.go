package schema

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGenerate writes the archives again and compares: what is embedded is what
// the modules say.
func TestGenerate(t *testing.T) {
	if os.Getenv("HECATE_MCP_GENERATE") != "1" {
		t.Skip("HECATE_MCP_GENERATE is not 1: this reads modules that may have to be downloaded")
	}
	dir := t.TempDir()
	c := exec.Command("go", "run", ".", "-out", dir)
	c.Dir = filepath.Join("..", "..", "hack", "schemas")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	entries, err := archives.ReadDir("archives")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		have, err := archives.ReadFile("archives/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(have, fresh) {
			t.Errorf("%s is not what the generator writes: run go generate", e.Name())
		}
	}
}
