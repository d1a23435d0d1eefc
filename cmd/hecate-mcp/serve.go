package main

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/server"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve MCP on stdio (the default) or on loopback HTTP",
		Args:  cobra.NoArgs,
	}
	transport := cmd.Flags().String("transport", "stdio", "stdio or http")
	listen := cmd.Flags().String("listen", "127.0.0.1:8137", "loopback address for --transport http")
	var w writeFlags
	cmd.Flags().BoolVar(&w.allow, "allow-writes", false, "add the tools that write; each write needs a person's confirmation")
	w.add(cmd.Flags())
	cmd.Flags().DurationVar(&w.ttl, "confirm-ttl", 5*time.Minute, "how long a plan waits for a person")
	cmd.Flags().DurationVar(&w.timeout, "confirm-timeout", 2*time.Minute, "how long a question to the client may stay unanswered before it waits for a terminal")
	toolsets := cmd.Flags().StringSlice("toolsets", nil, "toolsets to offer (default: all)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		log, err := a.logger()
		if err != nil {
			return err
		}
		selected, err := tools.Select(*toolsets, w.allow)
		if err != nil {
			return err
		}
		if *transport != "stdio" && *transport != "http" {
			return fmt.Errorf("--transport %q: valid are stdio, http", *transport)
		}
		if slices.Contains(*toolsets, tools.GitOps) && len(a.repos.repos) == 0 && !a.flags.demo {
			return fmt.Errorf("--toolsets %s needs a repository: --repo PATH", tools.GitOps)
		}
		// client-go logs through klog, past everything else.
		klog.SetSlogLogger(log)
		env, err := a.environment(cmd.Context())
		if err != nil {
			return err
		}
		closing, err := a.repos.open(env, a.flags.demo)
		defer closing()
		if err != nil {
			return err
		}
		if len(env.Repositories) == 0 {
			// Without a repository its tools would only cost the model's attention.
			selected = slices.DeleteFunc(selected, func(t tools.Tool) bool { return t.Toolset == tools.GitOps && !t.Writes })
		}
		if env.NoSource != nil {
			log.Warn("no cluster: the tools of promotions answer with this", "error", env.NoSource.Error())
		} else {
			env.JoinGates = true
			for _, w := range env.Source.Warnings {
				log.Warn(w)
			}
		}
		if err := w.check(); err != nil {
			return err
		}
		if w.allow {
			if env.Source != nil && env.Source.Mode == cluster.ModeSnapshot {
				return &cluster.UsageError{Message: "--allow-writes: a snapshot can't be written to"}
			}
			writes, err := w.open(log, a.flags.demo)
			if err != nil {
				return err
			}
			defer writes.Desk.Close()
			defer writes.Log.Close()
			env.Writes = writes
		}
		s := tools.NewServer(env, selected, version(), log)
		if *transport == "stdio" {
			if f, ok := a.in.(*os.File); ok && isTerminal(f) {
				fmt.Fprintln(a.err, "hecate-mcp: speaking MCP on stdin and stdout; for the shell: hecate-mcp call explain_gate --arg gate=NAME (hecate-mcp --help)")
			}
			if err := server.ServeStdio(cmd.Context(), s, a.in, a.out, log); err != nil {
				return runtimeError{err}
			}
			return nil
		}
		h, err := server.NewHTTP(s, server.HTTPOptions{Listen: *listen}, log)
		if err != nil {
			return err
		}
		if err := h.ListenAndServe(cmd.Context()); err != nil {
			return runtimeError{err}
		}
		return nil
	}
	return cmd
}

// addServeFlags gives the root command the flags of serve, which it runs.
func addServeFlags(root, serve *cobra.Command) { root.Flags().AddFlagSet(serve.Flags()) }

// isTerminal reports whether f is a character device: enough to decide on
// colour and on a hint.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
