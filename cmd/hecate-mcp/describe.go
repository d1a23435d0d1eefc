package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

func (a *app) toolsCommand() *cobra.Command {
	output := "table"
	var writes bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the tools, as people or as clients see them",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := tools.Select(nil, writes)
			if err != nil {
				return err
			}
			switch output {
			case "json":
				raw, err := tools.Definitions(all)
				if err != nil {
					return runtimeError{err}
				}
				_, err = fmt.Fprintf(a.out, "%s\n", raw)
				return err
			case "table":
				t := tools.NewWriter(a.out, false).Table("TOOL", "TOOLSET", "READ-ONLY", "ARGUMENTS", "WHAT")
				for _, tool := range all {
					t.Row(tool.Name, tool.Toolset, fmt.Sprint(tool.Hints.ReadOnly), strings.Join(tool.Arguments(), " "), tool.Title)
				}
				t.Flush()
				return nil
			}
			return fmt.Errorf("-o %q: valid are table, json", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "table or json")
	cmd.Flags().BoolVar(&writes, "allow-writes", false, "with the tools that a server with --allow-writes has")
	return cmd
}

func (a *app) schemaCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON schemas of every tool, one file a tool and direction",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return runtimeError{err}
			}
			for name, content := range tools.SchemaFiles() {
				if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
					return runtimeError{err}
				}
			}
			if err := addToLedger(filepath.Join(dir, tools.LedgerFile)); err != nil {
				return runtimeError{err}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "schemas", "folder to write to")
	return cmd
}

// addToLedger adds what is new to the file and removes nothing: what was once
// published stays there, so that a test can tell when it is gone.
func addToLedger(file string) error {
	lines := tools.Ledger()
	old, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for line := range strings.Lines(string(old)) {
		lines = append(lines, strings.TrimSpace(line))
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	return os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644)
}

func (a *app) versionCommand() *cobra.Command {
	output := "text"
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			switch output {
			case "json":
				var b bytes.Buffer
				if err := json.NewEncoder(&b).Encode(v); err != nil {
					return runtimeError{err}
				}
				_, err := a.out.Write(b.Bytes())
				return err
			case "text":
				_, err := fmt.Fprintf(a.out, "hecate-mcp %s (%s, %s)\n", v["version"], v["go"], v["platform"])
				return err
			}
			return fmt.Errorf("-o %q: valid are text, json", output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "text or json")
	return cmd
}

// buildVersion is set by the linker for releases.
var buildVersion string

// version is the release, else what the Go toolchain recorded of the module.
func version() string {
	if buildVersion != "" {
		return buildVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
