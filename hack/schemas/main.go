package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", filepath.Join("..", "..", "internal", "schema", "archives"), "folder of the archives")
	flag.Parse()
	if err := run(*out); err != nil {
		log.Fatal(err)
	}
}

func run(out string) error {
	lifecycle, err := lifecycles()
	if err != nil {
		return err
	}
	for _, r := range releases {
		c, err := core(r)
		if err != nil {
			return fmt.Errorf("kubernetes %s: %w", r.kubernetes, err)
		}
		c.Lifecycle = lifecycle
		if err := write(filepath.Join(out, r.minor+".json.zst"), c); err != nil {
			return err
		}
	}
	crds, err := flux()
	if err != nil {
		return err
	}
	return write(filepath.Join(out, "flux.json.zst"), crds)
}

// write stores a value as compressed JSON: maps are sorted by encoding/json and
// one encoder thread keeps the bytes the same.
func write(name string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<22))
	if err != nil {
		return err
	}
	packed := enc.EncodeAll(raw, nil)
	if err := enc.Close(); err != nil {
		return err
	}
	log.Printf("%s: %d bytes, %d compressed", filepath.Base(name), len(raw), len(packed))
	return os.WriteFile(name, packed, 0o644)
}

// module is the folder of a module, downloaded when it is not in the cache.
func module(at string) (string, error) {
	out, err := command("go", "mod", "download", "-json", at)
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	if err := json.Unmarshal(out, &m); err != nil {
		return "", fmt.Errorf("go mod download %s: %w", at, err)
	}
	if m.Dir == "" {
		return "", fmt.Errorf("go mod download %s: no folder in the answer", at)
	}
	return m.Dir, nil
}

// command is the standard output of a program.
func command(name string, args ...string) ([]byte, error) {
	var stderr bytes.Buffer
	c := exec.Command(name, args...)
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w: %s%s", name, args, err, stderr.Bytes(), out)
	}
	return out, nil
}
