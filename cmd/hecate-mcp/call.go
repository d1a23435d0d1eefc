package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

func (a *app) callCommand() *cobra.Command {
	var pairs []string
	var raw, output string
	cmd := &cobra.Command{
		Use:   "call TOOL",
		Short: "Run a tool in the shell, through the same registry as the server",
		Example: `  hecate-mcp call explain_gate --demo --arg gate=production
  hecate-mcp call list_gates -A -o json
  hecate-mcp call validate_manifests --repo . -o json
  hecate-mcp call get_audit_trail --args '{"gate":"production","limit":5}'`,
		Args: takes(1),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, t := range tools.All() {
				names = append(names, t.Name+"\t"+t.Title)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("-o %q: valid are text, json", output)
			}
			// A mistake in the call is answered like one over the protocol: with
			// the coded error, in the form that was asked for.
			answer := func() tools.Answer {
				tool, err := tools.Find(args[0])
				if err != nil {
					return tools.Failed(err)
				}
				if tool.Writes {
					return tools.Failed(onTerminal(tool.Name))
				}
				arguments, err := toolArguments(tool, raw, pairs)
				if err != nil {
					return tools.Failed(err)
				}
				open := a.environment
				if tool.Toolset == tools.GitOps {
					open = a.files
				}
				env, err := open(cmd.Context())
				if err != nil {
					return tools.Failed(err)
				}
				closing, err := a.repos.open(env, a.flags.demo)
				defer closing()
				if err != nil {
					return tools.Failed(err)
				}
				if tool.Toolset == tools.GitOps {
					env.Timeout = repositoryTimeout
				}
				return tool.Call(cmd.Context(), env, arguments)
			}()
			if err := a.print(args[0], answer, output); err != nil {
				return runtimeError{err}
			}
			if answer.Err != nil {
				return exitCode(answer.Err.ExitCode())
			}
			if v, ok := answer.Out.(interface{ Failed() bool }); ok && v.Failed() {
				return exitCode(exitVerdict)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&pairs, "arg", nil, "an argument as key=value; repeatable")
	f.StringVar(&raw, "args", "", "all arguments as a JSON object; --arg adds to it")
	f.StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

// onTerminal refuses a tool that writes: call asks nobody. It names the command
// that does.
func onTerminal(tool string) error {
	e := &tools.Error{Code: tools.Refused, Reason: "WritesDisabled", Message: tool + " writes, which call never does: it has nobody to ask"}
	if command := map[string]string{"promote_bundle": "promote GATE", "abort_passage": "abort PASSAGE", "poll_beacon": "poll BEACON"}[tool]; command != "" {
		e.HumanSteps = []ops.HumanStep{{Command: "hecate-mcp " + command, Why: "shows the plan and asks"}}
	}
	return e
}

func (a *app) print(name string, answer tools.Answer, output string) error {
	if output == "json" {
		_, err := fmt.Fprintf(a.out, "%s\n", answer.JSON)
		return err
	}
	f, ok := a.out.(*os.File)
	color := ok && isTerminal(f) && os.Getenv("NO_COLOR") == ""
	w := tools.NewWriter(a.out, color)
	w.Source = a.flags.source()
	tool, err := tools.Find(name)
	if err != nil {
		w.Error(answer.Err)
		return nil
	}
	return tool.Text(w, answer)
}

// toolArguments joins --args and --arg. A value of --arg is a number or a
// boolean where the tool's schema says so, else a string.
func toolArguments(tool tools.Tool, raw string, pairs []string) (json.RawMessage, error) {
	all := map[string]any{}
	if raw != "" {
		if err := json.Unmarshal([]byte(raw), &all); err != nil || all == nil {
			return nil, tools.Invalid("--args has to be a JSON object, such as '{\"gate\":\"production\"}'")
		}
	}
	var schema struct {
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
		return nil, err
	}
	for _, p := range pairs {
		key, value, ok := strings.Cut(p, "=")
		if !ok || key == "" {
			return nil, tools.Invalid("--arg %q: write it as key=value", p)
		}
		if _, twice := all[key]; twice {
			return nil, tools.Invalid("argument %q is given twice", key)
		}
		all[key] = value
		switch schema.Properties[key].Type {
		case "integer":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				all[key] = n
			}
		case "boolean":
			if b, err := strconv.ParseBool(value); err == nil {
				all[key] = b
			}
		}
	}
	return json.Marshal(all)
}
