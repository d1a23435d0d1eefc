package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// assetsEnv names a folder with both binaries, as other projects' test tools read it.
const assetsEnv = "KUBEBUILDER_ASSETS"

// cacheDir is where test/controlplane/build.sh puts them, from the module's root.
const cacheDir = "test/.cache"

// binaries are the paths of what a cluster is made of.
type binaries struct{ etcd, apiServer string }

// findBinaries looks in the folder that assetsEnv names, else in the cache.
func findBinaries(root string) (binaries, error) {
	dir, from := os.Getenv(assetsEnv), assetsEnv
	if dir == "" {
		dir, from = filepath.Join(root, cacheDir), "the cache"
	}
	b := binaries{etcd: filepath.Join(dir, "etcd"), apiServer: filepath.Join(dir, "kube-apiserver")}
	for _, path := range []string{b.etcd, b.apiServer} {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			return binaries{}, fmt.Errorf("no real API server to test against: %s (%s) is not an executable file; run `make control-plane`, or set %s to a folder with etcd and kube-apiserver",
				path, from, assetsEnv)
		}
	}
	return b, nil
}

// moduleRoot is the nearest folder above the test's own that has a go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the module's root: %w", err)
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("cannot find the module's root: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("cannot find the module's root: no go.mod above the working directory; run the test with `go test`")
		}
		dir = parent
	}
}
