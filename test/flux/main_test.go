// Package flux holds gitops against Flux itself: its controllers apply a
// repository to a real API server, and what they make of it is compared with what
// was said of it before.
package flux

import (
	"testing"

	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

func TestMain(m *testing.M) { cluster.Main(m) }
