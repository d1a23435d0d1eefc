package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/demo"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Exit codes: 0 answered, 1 usage, 2 could not tell (cluster, timeout), 3 not
// found or ambiguous, 4 a verdict is fail, 5 refused, 6 a crossing failed.
const (
	exitOK      = 0
	exitUsage   = 1
	exitError   = 2
	exitVerdict = 4
)

// exitError carries an exit code out of a command whose output is printed.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// app is what the commands share.
type app struct {
	in       io.Reader
	out, err io.Writer
	flags    sourceFlags
	repos    repoFlags
	logLevel string
}

// sourceFlags say where the data comes from; they are the same on every command.
type sourceFlags struct {
	kubeconfig, context, namespace, snapshot, now string
	demo, allNamespaces                           bool
	fidesServer                                   string
}

// source repeats the flags that name the data's source, for commands that are
// offered as next steps, quoted for a POSIX shell.
func (f sourceFlags) source() string {
	out := ""
	for _, x := range []struct{ flag, value string }{{"--snapshot", f.snapshot}, {"--kubeconfig", f.kubeconfig}, {"--context", f.context}, {"--fides-server", f.fidesServer}, {"--now", f.now}} {
		if x.value == "" {
			continue
		}
		if strings.ContainsAny(x.value, " \t\n\"'$`\\;&|<>(){}*?!#~") {
			x.value = "'" + strings.ReplaceAll(x.value, "'", `'\''`) + "'"
		}
		out += " " + x.flag + " " + x.value
	}
	if f.demo {
		out += " --demo"
	}
	return out
}

// named tells whether the user named a source, rather than leave it to the
// surroundings.
func (f sourceFlags) named() bool {
	return f.kubeconfig != "" || f.context != "" || f.snapshot != "" || f.demo
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	a := &app{in: in, out: out, err: errOut}
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	}
	var usage *cluster.UsageError
	var coded *tools.Error
	fmt.Fprint(errOut, "hecate-mcp: ")
	if errors.As(err, &coded) {
		// With its reason, candidates and what to do next.
		w := tools.NewWriter(errOut, false)
		w.Source = a.flags.source()
		w.Error(coded)
	} else {
		fmt.Fprintln(errOut, err)
	}
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case coded != nil:
		return coded.ExitCode()
	case errors.As(err, new(runtimeError)):
		return exitError
	}
	return exitUsage
}

// runtimeError is a failure that is not the user's: whatever else a command
// returns is about its usage.
type runtimeError struct{ error }

func (e runtimeError) Unwrap() error { return e.error }

func (a *app) root() *cobra.Command {
	serve := a.serveCommand()
	root := &cobra.Command{
		Use:     "hecate-mcp",
		Version: version(),
		Short:   "Promotions with Hecate for Flux CD, over the Model Context Protocol",
		Long: `hecate-mcp answers why an environment is stuck, what happened and what would cross.

Without a subcommand it is an MCP server on stdin and stdout. The same tools run
in the shell: hecate-mcp call explain_gate --demo --arg gate=production`,
		Args: cobra.NoArgs,
		RunE: serve.RunE,
		// A wrong level is refused by every command, not only by the one that logs.
		PersistentPreRunE: func(*cobra.Command, []string) error {
			_, err := a.logger()
			return err
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	f := root.PersistentFlags()
	f.StringVar(&a.flags.kubeconfig, "kubeconfig", "", "kubeconfig file (default: KUBECONFIG, else ~/.kube/config, else in-cluster)")
	f.StringVar(&a.flags.context, "context", "", "kubeconfig context")
	f.StringVarP(&a.flags.namespace, "namespace", "n", "", "default namespace (default: the context's)")
	f.BoolVarP(&a.flags.allNamespaces, "all-namespaces", "A", false, "look in all namespaces by default")
	f.StringVar(&a.flags.snapshot, "snapshot", "", "read a file or folder of YAML or JSON instead of a cluster; opens no connection")
	f.BoolVar(&a.flags.demo, "demo", false, "use the embedded demo estate")
	f.StringVar(&a.flags.now, "now", "", "take this RFC 3339 time as now")
	f.StringVar(&a.flags.fidesServer, "fides-server", "", "evidence server of Gates that name none (default: FIDES_SERVER_URL)")
	f.StringVar(&a.logLevel, "log-level", "info", "debug, info, warn or error; logs go to stderr")
	a.repos.add(f)
	addServeFlags(root, serve)
	root.AddCommand(serve, a.callCommand(), a.toolsCommand(), a.schemaCommand(), a.versionCommand(), a.worker(), a.promoteCommand(), a.approveCommand(), a.abortCommand(), a.pollCommand(), a.confirmCommand())
	return root
}

// logger writes structured lines to stderr: stdout is the protocol's.
func (a *app) logger() (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return nil, fmt.Errorf("--log-level %q: valid are debug, info, warn, error", a.logLevel)
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level})), nil
}

// files is the environment of a question about files alone: no cluster is looked
// for unless the user named one.
func (a *app) files(ctx context.Context) (*tools.Env, error) {
	if a.flags.named() {
		return a.environment(ctx)
	}
	return &tools.Env{NoSource: &cluster.UsageError{Message: "no cluster was named: --kubeconfig, --context, --snapshot or --demo"}}, nil
}

// environment opens the source. It makes no request.
func (a *app) environment(ctx context.Context) (*tools.Env, error) {
	f := a.flags
	o := cluster.Options{Kubeconfig: f.kubeconfig, Context: f.context, Namespace: f.namespace, Snapshot: f.snapshot, UserAgent: "hecate-mcp/" + version()}
	if f.now != "" {
		t, err := time.Parse(time.RFC3339, f.now)
		if err != nil {
			return nil, &cluster.UsageError{Message: fmt.Sprintf("--now %q is not an RFC 3339 time, such as 2026-11-30T14:00:00Z", f.now)}
		}
		o.Now = &t
	}
	if f.fidesServer != "" && (f.demo || f.snapshot != "") {
		return nil, &cluster.UsageError{Message: "--fides-server is for a live cluster: --demo has its own and --snapshot asks nobody"}
	}
	if f.demo {
		o.Demo, o.DemoFS, o.DemoEvidence, o.DemoController = true, examples.Estate(), examples.Fides(), demo.Controller{}
	}
	all := f.allNamespaces
	switch {
	case f.namespace == "*":
		all, o.Namespace = true, ""
	case f.namespace != "" && len(validation.IsDNS1123Label(f.namespace)) > 0:
		return nil, tools.Invalid("-n %q is not a namespace: lower-case letters, digits and '-', at most 63 characters; * for all", f.namespace)
	}
	src, err := cluster.Open(ctx, o)
	if err != nil {
		if len(a.repos.repos) > 0 && !f.named() {
			// Files need no cluster; the tools that do need one say why it is missing.
			return &tools.Env{NoSource: err}, nil
		}
		return nil, err
	}
	op := ops.New(src.Client)
	op.Now = func() metav1.Time { return metav1.NewTime(src.Now()) }
	op.DefaultNamespace = src.Namespace
	op.Untimed = src.Untimed
	if f.fidesServer != "" {
		op.FidesServer = f.fidesServer
	}
	switch {
	case src.Offline:
		op.DialFides = nil
	case src.HTTPClient != nil:
		op.FidesServer = "" // the demo's Gates name theirs
		op.DialFides = func(c fides.Config) (*fides.Client, error) {
			c.HTTPClient = src.HTTPClient
			return fides.New(c)
		}
	}
	// What was dumped, or made up, has no context to take a namespace from: the
	// point is to see everything at once.
	all = all || (src.Mode != cluster.ModeLive && f.namespace == "")
	return &tools.Env{Ops: op, Source: src, AllNamespaces: all, JoinGates: f.named()}, nil
}

// takes is at most one argument and no less than least, with an error that shows how
// the command is written.
func takes(least int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return fmt.Errorf("%q is one argument too many; write: hecate-mcp %s, and --help shows its flags", args[1], cmd.Use)
		case len(args) < least:
			return fmt.Errorf("an argument is missing; write: hecate-mcp %s, and --help shows its flags", cmd.Use)
		}
		return nil
	}
}
