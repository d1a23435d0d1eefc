package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// settle is how long a server has nothing to do before its memory is read.
const settle = 300 * time.Millisecond

// BenchmarkStart times a server from the start of the process to the answer of
// the first tools/list over stdio, and reads its resident memory when idle:
// hecate-mcp with a kubeconfig next to an empty server that links the same
// libraries. The two take turns.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	for name, pkg := range map[string]string{"hecate-mcp": "../../cmd/hecate-mcp", "empty": "./empty"} {
		if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, name), pkg).CombinedOutput(); err != nil {
			b.Fatalf("cannot build %s: %v\n%s", name, err, out)
		}
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	// Nobody listens there: a start that asked the cluster would fail.
	err := os.WriteFile(kubeconfig, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
		"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:9"}}],
		"users":[{"name":"u","user":{"token":"t"}}],
		"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}]}`), 0o600)
	if err != nil {
		b.Fatal(err)
	}
	var ours, empty []time.Duration
	var oursRSS, emptyRSS []int64
	for b.Loop() {
		took, rss := startOnce(b, filepath.Join(dir, "empty"))
		empty, emptyRSS = append(empty, took), append(emptyRSS, rss)
		took, rss = startOnce(b, filepath.Join(dir, "hecate-mcp"), "--kubeconfig", kubeconfig)
		ours, oursRSS = append(ours, took), append(oursRSS, rss)
	}
	const mebi = 1 << 20
	o, e := median(ours), median(empty)
	om, em := float64(median(oursRSS))/mebi, float64(median(emptyRSS))/mebi
	b.ReportMetric(0, "ns/op") // of both together, and the time to settle
	b.ReportMetric(milliseconds(o), "start-ms")
	b.ReportMetric(milliseconds(e), "empty-start-ms")
	b.ReportMetric(float64(o)/float64(e), "start-ratio")
	b.ReportMetric(om, "idle-MiB")
	b.ReportMetric(em, "empty-idle-MiB")
	b.Logf("\nserver      first tools/list ms  idle MiB\nhecate-mcp  %19.1f  %8.1f\nempty       %19.1f  %8.1f\nratio       %19.2f  %8.2f",
		milliseconds(o), om, milliseconds(e), em, float64(o)/float64(e), om/em)
}

// startOnce starts a server, lists its tools and ends it.
func startOnce(b *testing.B, path string, args ...string) (took time.Duration, rss int64) {
	b.Helper()
	cmd := exec.Command(path, args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	began := time.Now()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			b.Fatalf("%s ended before it listed its tools: %v", filepath.Base(path), err)
		}
		var answer struct {
			ID     int             `json:"id"`
			Result json.RawMessage `json:"result"`
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			b.Fatal(err)
		}
		if answer.ID == 2 {
			took = time.Since(began)
			if answer.Result == nil {
				b.Fatalf("%s: %s", filepath.Base(path), line)
			}
			break
		}
	}
	time.Sleep(settle)
	rss = residentBytes(b, cmd.Process.Pid)
	if err := in.Close(); err != nil {
		b.Fatal(err)
	}
	// A server ends when its input does; how is tested elsewhere.
	if err := cmd.Wait(); err != nil {
		b.Fatalf("%s did not end cleanly: %v", filepath.Base(path), err)
	}
	return took, rss
}

// residentBytes is VmRSS; where there is no /proc the benchmark is skipped.
func residentBytes(b *testing.B, pid int) int64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("resident memory is read from /proc: ", err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return kib << 10
		}
	}
	b.Fatal("no VmRSS")
	return 0
}
