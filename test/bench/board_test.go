package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	hecate "github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
	"github.com/hecate-mcp/hecate-mcp/test/estate"
)

// largeEnv adds the large estate, which takes minutes to create.
const largeEnv = "HECATE_MCP_BENCH_LARGE"

// BenchmarkBoard times list_gates over all namespaces against the three LISTs
// that a script would make of the same objects: Gates, Bundles and Passages,
// with the same client, types and page size, one after the other. The board
// reads the Beacons besides, and all four at once; raw-parallel shows the three
// LISTs at once. Both sides take turns within each iteration.
func BenchmarkBoard(b *testing.B) {
	sizes := []estate.Size{{Gates: 50, Bundles: 400, Passages: 1000}}
	if os.Getenv(largeEnv) == "1" {
		sizes = append(sizes, estate.Size{Gates: 500, Bundles: 4000, Passages: 10000})
	}
	c := cluster.Start(b)
	table := "gates/bundles/passages  board ms  raw ms  raw-parallel ms  ratio  requests  wire bytes  answer bytes  board allocs  raw allocs\n"
	for _, size := range sizes {
		b.Run(fmt.Sprintf("%d-%d-%d", size.Gates, size.Bundles, size.Passages), func(b *testing.B) {
			m := measureBoard(b, c, size)
			ratio := float64(m.board) / float64(m.raw)
			b.ReportMetric(milliseconds(m.board), "board-ms")
			b.ReportMetric(milliseconds(m.raw), "raw-ms")
			b.ReportMetric(milliseconds(m.parallel), "raw-parallel-ms")
			b.ReportMetric(ratio, "ratio")
			b.ReportMetric(float64(m.requests), "requests")
			b.ReportMetric(float64(m.wire), "wire-bytes")
			b.ReportMetric(float64(m.answer), "answer-bytes")
			b.ReportMetric(float64(m.allocs), "board-allocs")
			b.ReportMetric(0, "ns/op") // of both sides together: says nothing
			table += fmt.Sprintf("%-22s  %8.1f  %6.1f  %15.1f  %5.2f  %8d  %10d  %12d  %12d  %10d\n", fmt.Sprintf("%d/%d/%d", size.Gates, size.Bundles, size.Passages),
				milliseconds(m.board), milliseconds(m.raw), milliseconds(m.parallel), ratio, m.requests, m.wire, m.answer, m.allocs, m.rawAllocs)
			b.Log("\n" + table) // with the sizes before it, so that growth is visible
		})
	}
}

// measured are medians of time, and the cost of one answer.
type measured struct {
	board, raw, parallel time.Duration
	requests             int
	wire                 int64
	answer               int
	allocs, rawAllocs    uint64
}

func measureBoard(b *testing.B, c *cluster.Cluster, size estate.Size) measured {
	b.Helper()
	var namespaces []string
	for range 5 {
		namespaces = append(namespaces, c.Namespace(b))
	}
	began := time.Now()
	c.Create(b, "", estate.Objects(size, namespaces, time.Now())...)
	b.Logf("%+v created in %s", size, time.Since(began).Round(time.Second))

	src, err := hecate.Open(b.Context(), hecate.Options{Kubeconfig: c.Kubeconfig(b, cluster.Viewer, "default")})
	if err != nil {
		b.Fatal(err)
	}
	env := &tools.Env{Ops: ops.New(src.Client), Source: src}
	board, err := tools.Find("list_gates")
	if err != nil {
		b.Fatal(err)
	}
	call := func() json.RawMessage {
		a := board.Call(b.Context(), env, json.RawMessage(`{"namespace":"*"}`))
		if a.Err != nil {
			b.Fatal(a.Err)
		}
		return a.JSON
	}
	lists := func() []client.ObjectList {
		return []client.ObjectList{&v1alpha1.GateList{}, &v1alpha1.BundleList{}, &v1alpha1.PassageList{}}
	}
	raw := func() {
		for _, l := range lists() {
			if err := listPages(b.Context(), src.Client, l); err != nil {
				b.Fatal(err)
			}
		}
	}
	parallel := func() {
		var eg errgroup.Group
		for _, l := range lists() {
			eg.Go(func() error { return listPages(b.Context(), src.Client, l) })
		}
		if err := eg.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	// Connections, and the question who is asking, are the first call's.
	call()
	raw()

	var m measured
	c.Requests().Reset()
	m.allocs = allocations(func() { m.answer = len(call()) })
	m.requests, m.wire = c.Requests().Count("", ""), c.Requests().Bytes()
	m.rawAllocs = allocations(raw)
	var boards, raws, parallels []time.Duration
	for b.Loop() {
		boards = append(boards, timed(func() { call() }))
		raws = append(raws, timed(raw))
		parallels = append(parallels, timed(parallel))
	}
	m.board, m.raw, m.parallel = median(boards), median(raws), median(parallels)
	return m
}

// listPages reads all pages as scripts do, and throws each away.
func listPages(ctx context.Context, c client.Reader, l client.ObjectList) error {
	for token := ""; ; {
		if err := c.List(ctx, l, client.Limit(hecate.PageSize), client.Continue(token)); err != nil {
			return err
		}
		if token = l.GetContinue(); token == "" {
			return nil
		}
	}
}

// timed runs f on a clean heap, so that one side does not pay for the other's garbage.
func timed(f func()) time.Duration {
	runtime.GC()
	began := time.Now()
	f()
	return time.Since(began)
}

// allocations is how many objects f allocates, the harness's proxy included:
// it is in this process.
func allocations(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}
