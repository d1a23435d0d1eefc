package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// median of what was measured; zero of nothing.
func median[T ~int64](of []T) T {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Clone(of)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
