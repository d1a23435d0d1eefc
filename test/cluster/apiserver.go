package cluster

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"time"
)

// apiServer is a kube-apiserver that can be killed and run again.
type apiServer struct {
	url     string
	path    string
	dir     string
	args    []string
	probe   *http.Client
	process *process // nil while it does not run
}

func newAPIServer(c *Cluster) (*apiServer, error) {
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	return &apiServer{
		url:  fmt.Sprintf("https://127.0.0.1:%d", ports[0]),
		path: c.bin.apiServer,
		dir:  c.dir,
		probe: &http.Client{
			Timeout: 2 * time.Second,
			// The process is killed and comes back on the same port: no connection is worth keeping.
			Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: c.certs.pool}},
		},
		args: []string{
			"--etcd-servers=" + c.etcd.url,
			"--etcd-compaction-interval=0", // tests say when (Compact)
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1", // or it looks for a default route
			fmt.Sprintf("--secure-port=%d", ports[0]),
			"--tls-cert-file=" + c.certs.certFile,
			"--tls-private-key-file=" + c.certs.keyFile,
			"--token-auth-file=" + c.tokenFile(),
			"--authorization-mode=RBAC",
			// A key is demanded although nobody here makes service accounts.
			"--service-account-issuer=https://127.0.0.1",
			"--service-account-key-file=" + c.certs.accountKeyFile,
			"--service-account-signing-key-file=" + c.certs.accountKeyFile,
			"--service-cluster-ip-range=10.0.0.0/24",
			"--disable-admission-plugins=ServiceAccount",
			// With it, pages come from snapshots that outlive a compaction by up to 15 s;
			// without it Compact works at once, as on servers before 1.34.
			"--feature-gates=ListFromCacheSnapshot=false",
			// What costs time at the start and serves a bigger cluster.
			"--endpoint-reconciler-type=none",
			"--enable-priority-and-fairness=false",
			"--max-requests-inflight=0",
			"--max-mutating-requests-inflight=0",
			"--profiling=false",
		},
	}, nil
}

// run starts the process and returns when it is ready for requests.
func (a *apiServer) run() error {
	p, err := run(a.dir, a.path, a.args...)
	if err != nil {
		return err
	}
	a.process = p
	return p.waitReady(a.ready)
}

// ready says whether the roles that Kubernetes starts with are there, too.
func (a *apiServer) ready() error {
	resp, err := a.probe.Get(a.url + "/readyz")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("/readyz answered %s", resp.Status)
	}
	return nil
}

// kill does nothing to a server that does not run.
func (a *apiServer) kill() error {
	if a.process == nil {
		return nil
	}
	p := a.process
	a.process = nil
	return p.kill()
}
