package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
)

// etcd is the API server's database. The harness speaks to it in JSON, through
// the gateway that etcd serves beside its own protocol.
type etcd struct {
	process *process
	url     string
	client  *http.Client
}

// startEtcd returns when the server answers.
func startEtcd(path, dir string) (*etcd, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	e := &etcd{
		url:    fmt.Sprintf("http://127.0.0.1:%d", ports[0]),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: loaders}},
	}
	peer := fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	e.process, err = run(dir, path,
		"--name=test",
		"--data-dir="+filepath.Join(dir, "etcd"),
		"--listen-client-urls="+e.url,
		"--advertise-client-urls="+e.url,
		"--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer,
		"--initial-cluster=test="+peer,
		"--unsafe-no-fsync", // the data is thrown away anyway
		"--log-level=warn",
	)
	if err != nil {
		return nil, err
	}
	if err := e.process.waitReady(e.ready); err != nil {
		return nil, fmt.Errorf("%w (stop: %v)", err, e.process.kill())
	}
	return e, nil
}

func (e *etcd) ready() error {
	resp, err := e.client.Get(e.url + "/health")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("its health is %s", resp.Status)
	}
	return nil
}

// Bytes and 64-bit numbers travel as base64 and as strings, as protobuf's JSON mapping has it.
type (
	etcdKey struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value,omitempty"`
	}
	etcdAnswer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
		KVs []etcdKey `json:"kvs"`
	}
)

// get returns the value of a key, nil if there is none, and the store's revision.
func (e *etcd) get(key string) (value []byte, revision int64, err error) {
	var a etcdAnswer
	if err := e.post("kv/range", etcdKey{Key: []byte(key)}, &a); err != nil {
		return nil, 0, fmt.Errorf("cannot read %s: %w", key, err)
	}
	if revision, err = strconv.ParseInt(a.Header.Revision, 10, 64); err != nil {
		return nil, 0, fmt.Errorf("cannot read %s: etcd's revision: %w", key, err)
	}
	if len(a.KVs) == 0 {
		return nil, revision, nil
	}
	return a.KVs[0].Value, revision, nil
}

func (e *etcd) put(key string, value []byte) error {
	if err := e.post("kv/put", etcdKey{Key: []byte(key), Value: value}, nil); err != nil {
		return fmt.Errorf("cannot write %s: %w", key, err)
	}
	return nil
}

func (e *etcd) post(path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	resp, err := e.client.Post(e.url+"/v3/"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answered %s to %s: %s", resp.Status, path, bytes.TrimSpace(answer))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(answer, out)
}

// Compact throws away every older revision of the store, as etcd's operator or
// the API server's own compaction does every few minutes: a continue token
// handed out before is answered with 410 afterwards.
func (c *Cluster) Compact(t testing.TB) {
	t.Helper()
	_, revision, err := c.etcd.get("compact")
	if err == nil {
		err = c.etcd.post("kv/compaction", map[string]any{"revision": strconv.FormatInt(revision, 10), "physical": true}, nil)
	}
	if err != nil {
		t.Fatalf("cannot compact the store: %v", err)
	}
}
