// Command empty is an MCP server without tools that links the libraries of
// hecate-mcp: what a start and its memory cost before there is anything of the
// project's own. See BenchmarkStart.
package main

import (
	"fmt"
	"os"

	_ "github.com/invopop/jsonschema"
	"github.com/mark3labs/mcp-go/server"
	_ "github.com/robfig/cron/v3"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/spf13/cobra"
	_ "golang.org/x/sync/errgroup"
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	_ "k8s.io/client-go/tools/clientcmd"
	_ "sigs.k8s.io/controller-runtime/pkg/client"
	_ "sigs.k8s.io/yaml"
)

func main() {
	if err := server.ServeStdio(server.NewMCPServer("empty", "0", server.WithToolCapabilities(false))); err != nil {
		fmt.Fprintln(os.Stderr, "empty:", err)
		os.Exit(1)
	}
}
