package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RequireEnv is the environment variable that turns the skip of a test without
// the binaries into a failure. Continuous integration sets it to 1.
const RequireEnv = "HECATE_MCP_REQUIRE_CLUSTER"

// crdDir is where the project's own CRDs are, from the module's root.
const crdDir = "internal/api/crds"

// A Cluster is one etcd, one API server and the proxy in front of it.
type Cluster struct {
	// Startup is how long it took until the API server was ready.
	Startup time.Duration

	dir    string // temporary: keys, logs, etcd's data
	bin    binaries
	certs  *certificates
	etcd   *etcd
	api    *apiServer
	proxy  *proxy
	client client.Client // as Admin, past the proxy

	mu        sync.Mutex
	installed map[string]bool // directories of CRDs
	kinds     []crd
}

var shared struct {
	sync.Mutex
	started bool
	cluster *Cluster
	err     error
}

// Main runs the tests of a package that calls Start, and stops the API server
// after them. It does not return: func TestMain(m *testing.M) { cluster.Main(m) }.
// m is a *testing.M, or what wraps one to clean up after it.
func Main(m interface{ Run() int }) {
	code := m.Run()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil {
		if err := shared.cluster.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "cluster: cannot stop cleanly:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// Start returns the test binary's API server, started by the first call, with
// the CRDs of every YAML file in crdDirs established: by default the project's
// own. Without the binaries the test is skipped, or fails if RequireEnv is 1.
func Start(t testing.TB, crdDirs ...string) *Cluster {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := findBinaries(root)
	if err != nil {
		if os.Getenv(RequireEnv) == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	shared.Lock()
	defer shared.Unlock()
	if !shared.started {
		shared.started = true
		shared.cluster, shared.err = start(bin)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	if len(crdDirs) == 0 {
		crdDirs = []string{filepath.Join(root, crdDir)}
	}
	for _, dir := range crdDirs {
		if err := shared.cluster.installCRDs(dir); err != nil {
			t.Fatal(err)
		}
	}
	return shared.cluster
}

// Restart kills the API server, with every watch and request in flight, and
// starts it again on the same port with the same data.
func (c *Cluster) Restart(t testing.TB) {
	t.Helper()
	if err := errors.Join(c.api.kill(), c.api.run()); err != nil {
		t.Fatalf("cannot restart the API server: %v", err)
	}
}

func start(bin binaries) (*Cluster, error) {
	began := time.Now()
	dir, err := os.MkdirTemp("", "hecate-mcp-cluster-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for the test cluster: %w", err)
	}
	c := &Cluster{dir: dir, bin: bin, installed: map[string]bool{}}
	for _, step := range []func() error{c.startServers, c.makeClient, c.bootstrap} {
		if err := step(); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot start the test cluster: %w", err), c.stop())
		}
	}
	c.Startup = time.Since(began)
	return c, nil
}

func (c *Cluster) startServers() (err error) {
	if c.certs, err = writeCertificates(c.dir); err != nil {
		return err
	}
	if err = writeTokens(c.tokenFile()); err != nil {
		return err
	}
	if c.etcd, err = startEtcd(c.bin.etcd, c.dir); err != nil {
		return err
	}
	if c.api, err = newAPIServer(c); err != nil {
		return err
	}
	if err = c.api.run(); err != nil {
		return err
	}
	c.proxy, err = startProxy(c.api.url, c.certs)
	return err
}

func (c *Cluster) makeClient() (err error) {
	cfg := c.config(c.api.url, Admin)
	cfg.Timeout = 30 * time.Second // a test that hangs says nothing for ten minutes
	c.client, err = client.New(cfg, client.Options{})
	return err
}

// config is how to reach the API server at url as user.
func (c *Cluster) config(url, user string) *rest.Config {
	return &rest.Config{
		Host:            url,
		BearerToken:     token(user),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.certs.caPEM},
		// A test server has nobody to be fair to.
		QPS:            -1,
		WarningHandler: rest.NoWarnings{},
	}
}

// stop ends what was started, as far as it got, and removes the folder.
func (c *Cluster) stop() error {
	var errs []error
	if c.proxy != nil {
		errs = append(errs, c.proxy.stop())
	}
	if c.api != nil {
		errs = append(errs, c.api.kill())
	}
	if c.etcd != nil {
		errs = append(errs, c.etcd.process.kill())
	}
	return errors.Join(append(errs, os.RemoveAll(c.dir))...)
}
