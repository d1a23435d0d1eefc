package cluster

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// StartFlux returns the API server with Flux's CRDs and its own source-controller
// and kustomize-controller at work until the test ends. Without the binaries the
// test is skipped, or fails if RequireEnv is 1. One test binary is to have one
// test at a time that calls it.
func StartFlux(t testing.TB) *Cluster {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(root, cacheDir)
	for _, name := range []string{"source-controller", "kustomize-controller", "flux-crds"} {
		if _, err := os.Stat(filepath.Join(cache, name)); err != nil {
			if os.Getenv(RequireEnv) == "1" {
				t.Fatal(err)
			}
			t.Skipf("no Flux to test against: %v; run `make control-plane`", err)
		}
	}
	c := Start(t, filepath.Join(cache, "flux-crds"))
	ports, err := freePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	artifacts := fmt.Sprintf("127.0.0.1:%d", ports[0])
	// The storage adds its own to the path of each artifact, and makes no folder.
	storage := t.TempDir()
	env := []string{"KUBECONFIG=" + c.Kubeconfig(t, Admin, "default"), "RUNTIME_NAMESPACE=flux-system", "TMPDIR=" + t.TempDir()}
	common := []string{"--metrics-addr=0", "--enable-leader-election=false", "--log-level=debug", "--requeue-dependency=1s", "--interval-jitter-percentage=0"}
	for name, args := range map[string][]string{
		"source-controller":    {"--storage-path=" + storage, "--storage-addr=" + artifacts, "--storage-adv-addr=" + artifacts, fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[1])},
		"kustomize-controller": {fmt.Sprintf("--health-addr=127.0.0.1:%d", ports[2])},
	} {
		p, err := runWith(env, c.dir, filepath.Join(cache, name), append(common, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		health := "http://" + args[len(args)-1][len("--health-addr="):] + "/readyz"
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the last words of %s:\n%s", p.name, p.tail())
			}
			if err := p.kill(); err != nil {
				t.Error(err)
			}
		})
		if err := p.waitReady(func() error { return ready(health) }); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func ready(url string) error {
	res, err := http.Get(url)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, res.Status)
	}
	return nil
}

// GitServer serves a repository for reading over HTTP, as a Git host does, and
// returns its URL.
func GitServer(t testing.TB, dir string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		args := []string{"upload-pack", "--stateless-rpc"}
		switch r.URL.Path {
		case "/repository.git/info/refs":
			if r.URL.Query().Get("service") != "git-upload-pack" {
				http.Error(w, "only reading", http.StatusForbidden)
				return
			}
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			fmt.Fprint(w, "001e# service=git-upload-pack\n0000")
			args = append(args, "--http-backend-info-refs")
		case "/repository.git/git-upload-pack":
			w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		default:
			http.NotFound(w, r)
			return
		}
		var stderr bytes.Buffer
		cmd := exec.CommandContext(r.Context(), "git", append(args, dir)...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = r.Body, w, &stderr
		if err := cmd.Run(); err != nil {
			t.Logf("git upload-pack: %v: %s", err, stderr.String()) // the client sees a broken answer
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/repository.git"
}
