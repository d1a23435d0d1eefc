package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// row compares two sides: how many times as long the other takes.
type row struct {
	what, ours, theirs string
	// bar is the goal, 0 where there is none.
	bar float64
	// metric names the ratio in the benchmark's own line.
	metric string
}

var rows = []row{
	{"render, one goroutine, against fluxcd/pkg", "render x1", "flux x1", 7, "x-flux"},
	{"render, two goroutines, against fluxcd/pkg on two", "render x2", "flux x2", 7, "x-flux-2"},
	{"render in one fresh worker process, against fluxcd/pkg", "pool x1", "flux x1", 7, "x-flux-pool"},
	{"render in two fresh worker processes, against fluxcd/pkg on two", "pool x2", "flux x2", 7, "x-flux-pool-2"},
	{"render in one running worker, as a server has it, against fluxcd/pkg", "running pool x1", "flux x1", 7, "x-flux-running"},
	{"render in two running workers, against fluxcd/pkg on two", "running pool x2", "flux x2", 7, "x-flux-running-2"},
	{"render in one fresh worker process, against the kustomize CLI", "pool x1", "kustomize x1", 1.5, "x-kustomize"},
	{"render in two fresh worker processes, against two CLIs at once", "pool x2", "kustomize x2", 1.5, "x-kustomize-2"},
	{"validate built-in kinds, serial, against kubeconform", "schema built-in x1", "kubeconform built-in x1", 2, "x-kubeconform"},
	{"validate built-in kinds, two goroutines on both sides", "schema built-in x2", "kubeconform built-in x2", 2, "x-kubeconform-2"},
	{"validate all kinds (CRDs with pruning, CEL), serial", "schema all x1", "kubeconform all x1", 2, "x-kubeconform-all"},
	{"validate all kinds, two goroutines on both sides", "schema all x2", "kubeconform all x2", 2, "x-kubeconform-all-2"},
	{"validate_manifests, cold, against fluxcd/pkg + kubeconform", "cold", "flux+kubeconform", 0, "x-cold"},
	{"the same with fresh worker processes", "cold pool", "flux+kubeconform", 0, "x-cold-pool"},
	{"validate_manifests again after one changed file, against the first", "one file", "first", 20, "x-second"},
	{"validate_manifests again, nothing changed, against the first", "unchanged", "first", 0, "x-unchanged"},
	{"compute_impact again, against the first", "impact again", "impact", 0, "x-impact"},
}

// report prints the table and hands the ratios to the benchmark.
func (r *run) report() {
	var t strings.Builder
	leaf, _ := strings.CutPrefix(r.leaf, r.repo.Path+string(os.PathSeparator))
	fmt.Fprintf(&t, "%d Kustomizations, %d objects that both validators know, %d of them built-in; %d cores\n", len(r.nodes), len(r.objects), len(r.builtin), runtime.GOMAXPROCS(0))
	fmt.Fprintf(&t, "%-70s %10s %10s %7s %5s\n", "", "ours ms", "other ms", "ratio", "bar")
	for _, row := range rows {
		ours, theirs := median(r.times[row.ours]), median(r.times[row.theirs])
		if ours == 0 || theirs == 0 {
			continue
		}
		ratio, bar := float64(theirs)/float64(ours), ""
		if row.bar > 0 {
			bar = fmt.Sprint("≥", row.bar)
		}
		fmt.Fprintf(&t, "%-70s %10.1f %10.1f %7.2f %5s\n", row.what, milliseconds(ours), milliseconds(theirs), ratio, bar)
		r.b.ReportMetric(ratio, row.metric)
	}
	if r.kustomize == "" {
		t.WriteString("There is no kustomize on the PATH: the rows against the CLI are left out.\n")
	} else {
		fmt.Fprintf(&t, "The CLI builds the folder as it is, without spec of the Kustomization; it refuses %d of %d.\n", r.broken, len(r.nodes))
	}
	fmt.Fprintf(&t, "Rendered otherwise than by fluxcd/pkg: %d of %d. Requests over the network: none on our side, by construction.\n", r.differ, len(r.nodes))
	fmt.Fprintf(&t, "%-24s %12s %12s\n", "", "allocations", "MiB")
	for _, name := range []string{"render x1", "flux x1", "schema built-in x1", "kubeconform built-in x1", "cold", "flux+kubeconform", "unchanged", "one file", "impact", "impact again"} {
		fmt.Fprintf(&t, "%-24s %12d %12.1f\n", name, r.allocs[name], float64(r.heap[name])/mebi)
	}
	fmt.Fprintf(&t, "Edited: %s, which alters %d Kustomization.\n", leaf, r.affected)
	fmt.Fprintf(&t, "Peak memory of the first validation %.0f MiB; the cache keeps at most %d MiB.\n", float64(r.peak)/mebi, cacheBytes/mebi)
	r.b.ReportMetric(float64(r.peak)/mebi, "peak-MiB")
	r.b.ReportMetric(float64(r.differ), "differ")
	fmt.Print("\n", t.String()) // the log of a benchmark ends after ten lines
}

const mebi = 1 << 20

// peakBytes is VmHWM, and what Go took from the system where there is no /proc.
func peakBytes() int64 {
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				if kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64); err == nil {
					return kib << 10
				}
			}
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

// median of what was measured; zero of nothing.
func median(of []time.Duration) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func decode(tb testing.TB, data []byte) map[string]any {
	var obj map[string]any
	if err := json.Unmarshal(data, &obj); err != nil {
		tb.Error(err)
	}
	return obj
}

func name(obj map[string]any) any {
	meta, _ := obj["metadata"].(map[string]any)
	return meta["name"]
}
