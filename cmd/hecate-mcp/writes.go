package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/internal/writelog"
)

// exitCrossing is a crossing that failed or was aborted.
const exitCrossing = 6

// terminalWrite is a write that a person makes on a terminal: the plan is shown, a
// question asked, and the same operations as over MCP carry it out.
type terminalWrite struct {
	app   *app
	name  string
	flags writeFlags
	// yes answers the question beforehand; typed asks for the plan's name instead
	// and can't be answered beforehand.
	yes, typed bool
	output     string
	env        *tools.Env
	user       string
	log        *writelog.Log
}

func (w *terminalWrite) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&w.flags.log, "write-log", "", "append every write to this file as JSON lines (default: a file in the user's state folder)")
	f.StringVarP(&w.output, "output", "o", "text", "text or json: what was done; the plan and the question go to stderr then")
	if !w.typed {
		f.BoolVar(&w.yes, "yes", false, "do it without asking")
	}
}

// say prints for the person: beside the answer when that is JSON.
func (w *terminalWrite) say(format string, args ...any) {
	out := w.app.out
	if w.output == "json" {
		out = w.app.err
	}
	fmt.Fprintf(out, format+"\n", args...)
}

func (w *terminalWrite) stdin() (*os.File, bool) {
	f, ok := w.app.in.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

// open checks what can be checked before anything is read, and opens the source.
func (w *terminalWrite) open(ctx context.Context) error {
	if w.output != "text" && w.output != "json" {
		return fmt.Errorf("-o %q: valid are text, json", w.output)
	}
	if err := w.flags.check(); err != nil {
		return err
	}
	if _, tty := w.stdin(); !tty && !w.yes {
		if w.typed {
			return errors.New("stdin is not a terminal: an approval is a person's, who reads the plan and types the Gate's name; there is no flag for it")
		}
		return errors.New("stdin is not a terminal, so nobody can be asked: --yes does it without asking")
	}
	env, err := w.app.environment(ctx)
	if err != nil {
		return err
	}
	if env.Source.Mode == cluster.ModeSnapshot {
		return &tools.Error{Code: tools.Refused, Reason: "ReadOnly", Message: "a snapshot can't be written to"}
	}
	if w.user, err = env.Source.Identity(ctx); err != nil {
		return coded(fmt.Errorf("who you are is not known: %w", err))
	}
	w.env = env
	if w.log, err = w.flags.openLog(w.app.flags.demo); err != nil {
		return runtimeError{err}
	}
	return nil
}

// coded makes the error of an operation one with a code and an exit code.
func coded(err error) error {
	if err == nil {
		return nil
	}
	return tools.Failed(err).Err
}

// decide shows the plan and lets the person decide. The error says why nothing is
// to be done.
func (w *terminalWrite) decide(p ops.Plan, object ops.Object) (ops.Actor, error) {
	id := make([]byte, 6)
	rand.Read(id) // never fails: it ends the process instead
	actor := ops.Actor{Name: w.user, RequestedBy: w.user, Client: "hecate-mcp " + w.name, CallID: hex.EncodeToString(id)}
	if w.flags.actor != "" {
		actor.Name = w.flags.actor
	}
	w.say("%s", p.Title())
	for _, l := range p.Lines() {
		w.say("  %s", l)
	}
	if err := w.record(p, object, actor, writelog.Asked, nil); err != nil {
		return actor, err
	}
	if r := p.Refused(); r != nil {
		return actor, w.refused(p, object, actor, coded(r))
	}
	switch {
	case w.yes:
		actor.ConfirmedVia = "--yes"
	case w.typed:
		if answer := w.ask(fmt.Sprintf("Type %s to %s: ", p.Confirm(), w.name)); answer != p.Confirm() {
			return actor, w.refused(p, object, actor, &tools.Error{Code: tools.ConfirmationDeclined, Reason: "Declined", Message: "the name was not typed: nothing was done"})
		}
	default:
		switch strings.ToLower(w.ask("Do this? [y/N] ")) {
		case "y", "yes":
		default:
			return actor, w.refused(p, object, actor, &tools.Error{Code: tools.ConfirmationDeclined, Reason: "Declined", Message: "nothing was done"})
		}
	}
	if !w.yes {
		actor.ConfirmedVia = "terminal"
	}
	return actor, w.record(p, object, actor, writelog.Confirmed, nil)
}

func (w *terminalWrite) ask(question string) string {
	out := w.app.out
	if w.output == "json" {
		out = w.app.err
	}
	fmt.Fprint(out, question)
	line, err := bufio.NewReader(w.app.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	return strings.TrimSpace(line)
}

func (w *terminalWrite) refused(p ops.Plan, object ops.Object, a ops.Actor, why error) error {
	return errors.Join(why, w.record(p, object, a, writelog.Refused, why))
}

// record writes to the log. What can't be recorded is not done.
func (w *terminalWrite) record(p ops.Plan, object ops.Object, a ops.Actor, event writelog.Event, err error) error {
	e := writelog.Entry{Event: event, Tool: w.name, CallID: a.CallID, Principal: w.user, Actor: a.Name, Client: a.Client, ConfirmedVia: a.ConfirmedVia,
		Object: strings.TrimSuffix(object.Kind+"/"+object.Namespace+"/"+object.Name, "/"), Plan: p.Digest(), Title: p.Title()}
	var c *tools.Error
	if errors.As(err, &c) {
		e.Code, e.Reason, e.Message = string(c.Code), c.Reason, c.Message
	}
	if err := w.log.Write(e); err != nil {
		return runtimeError{fmt.Errorf("nothing is done unrecorded: %w", err)}
	}
	return nil
}

// did records the end and prints it. The error is that of the write.
func (w *terminalWrite) did(p ops.Plan, object ops.Object, a ops.Actor, err error, line string, result any) error {
	if err != nil {
		err = coded(err)
		return errors.Join(err, w.record(p, object, a, writelog.Failed, err))
	}
	if err := w.record(p, object, a, writelog.Done, nil); err != nil {
		// It is done: that the record of it failed must not make it look undone.
		fmt.Fprintln(w.app.err, "hecate-mcp: it is done, but", err)
	}
	if w.output == "json" {
		return json.NewEncoder(w.app.out).Encode(result)
	}
	fmt.Fprintln(w.app.out, line)
	return nil
}

func (w *terminalWrite) warn(ws []ops.Warning) {
	for _, x := range ws {
		w.say("warning: %s: %s", x.Kind, ops.Clean(x.Detail, 300))
	}
}

func (w *terminalWrite) namespace() string {
	if w.env.AllNamespaces {
		return ops.AllNamespaces
	}
	return w.env.Source.Namespace
}

func (a *app) promoteCommand() *cobra.Command {
	w := terminalWrite{app: a, name: "promote"}
	var bundle string
	var consult, watch bool
	cmd := &cobra.Command{
		Use:   "promote GATE",
		Short: "Take a Bundle through a Gate, after showing the plan",
		Long: `promote shows what would cross, how, and every warning, asks, and opens the
crossing (a Passage). With --watch it follows the steps to their end.

It exits with 0 when it is done, 5 when the rules or you refused, 6 when the
crossing failed.`,
		Example: `  hecate-mcp promote staging --demo --watch
  hecate-mcp promote production -n shop --bundle storefront-de4370fba351 --yes`,
		Args: takes(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := w.open(ctx); err != nil {
				return err
			}
			defer w.log.Close()
			o := w.env.Ops
			email := w.flags.actor
			if email == "" && ops.PlainEmail(w.user) == nil {
				email = w.user // recorded as it is, so the rule about deployers holds for it
			}
			p, err := o.PlanPromote(ctx, ops.PromoteQuery{ActorEmail: email,
				PreviewQuery: ops.PreviewQuery{Namespace: w.namespace(), Gate: args[0], Bundle: bundle, ConsultChangeGate: consult}})
			if err != nil {
				return coded(err)
			}
			object := ops.Object{Kind: v1alpha1.KindGate, Namespace: p.Namespace, Name: p.Gate}
			actor, err := w.decide(p, object)
			if err != nil {
				return err
			}
			r, err := o.Promote(ctx, p, actor)
			if err != nil {
				return w.did(p, object, actor, err, "", nil)
			}
			w.warn(r.Warnings)
			if !watch {
				return w.did(p, object, actor, nil, fmt.Sprintf("Passage %s is open. Follow it: hecate-mcp call get_passage --arg passage=%s -n %s%s", r.Passage.Name, r.Passage.Name, r.Passage.Namespace, a.flags.source()), r)
			}
			last, err := w.watch(ctx, r.Passage)
			if err != nil && last == nil {
				return w.did(p, object, actor, nil, fmt.Sprintf("Passage %s is open; it could not be followed: %v", r.Passage.Name, err), r)
			}
			d := o.DetailOf(last, false)
			line := fmt.Sprintf("%s: Passage %s takes %s through %s", d.Phase, d.Passage, d.Bundle, d.Gate)
			if d.Message != "" {
				line += ": " + ops.CleanCause(d.Message, 200)
			}
			if err := w.did(p, object, actor, nil, line, d); err != nil {
				return err
			}
			switch {
			case err != nil:
				return runtimeError{fmt.Errorf("it could not be followed to its end: %w", err)}
			case last.Phase() != v1alpha1.PassageSucceeded:
				return exitCode(exitCrossing)
			}
			return nil
		},
	}
	w.addFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&w.flags.actor, "actor", "", "record this plain e-mail address as the actor, for an evidence server that knows people by it")
	f.StringVar(&bundle, "bundle", "", "exact name (default: the newest one that is not in yet)")
	f.BoolVar(&consult, "consult-change-gate", false, "ask the evidence server's change gate too, which may write an attestation to the trail")
	f.BoolVar(&watch, "watch", false, "follow the steps to their end")
	return cmd
}

// watch prints each step as it comes, with a line that is rewritten on a terminal.
func (w *terminalWrite) watch(ctx context.Context, passage ops.Object) (*v1alpha1.Passage, error) {
	o := w.env.Ops
	out := w.app.out
	if w.output == "json" {
		out = w.app.err
	}
	f, ok := out.(*os.File)
	live := ok && term.IsTerminal(int(f.Fd()))
	told := map[int]string{}
	last := ""
	clear := func() {
		if live && last != "" {
			fmt.Fprint(out, "\r\x1b[2K")
		}
	}
	p, err := o.Watch(ctx, passage.Namespace, passage.Name, time.Second, func(p *v1alpha1.Passage) {
		d := o.DetailOf(p, false)
		for _, s := range d.Steps {
			switch s.Phase {
			case "Pending", "Running":
				continue
			}
			line := strings.TrimSpace(fmt.Sprintf("%d/%d %-16s %-9s %s %s", s.Index+1, len(d.Steps), s.Uses, s.Phase, s.Reason, ops.Clean(s.Message, 100)))
			if told[s.Index] != line {
				told[s.Index] = line
				clear()
				fmt.Fprintln(out, line)
				last = ""
			}
		}
		if now := d.Progress(); p.Active() && now != last {
			if live {
				clear()
				fmt.Fprint(out, now)
			} else {
				fmt.Fprintln(out, "… "+now)
			}
			last = now
		}
	})
	clear()
	return p, err
}

// carryOut shows a plan, asks, acts and tells what was done in a line.
func carryOut[P interface {
	ops.Plan
	Object() ops.Object
}, R any](ctx context.Context, w *terminalWrite, plan func() (P, error), act func(P, ops.Actor) (R, string, error)) error {
	if err := w.open(ctx); err != nil {
		return err
	}
	defer w.log.Close()
	p, err := plan()
	if err != nil {
		return coded(err)
	}
	actor, err := w.decide(p, p.Object())
	if err != nil {
		return err
	}
	result, line, err := act(p, actor)
	return w.did(p, p.Object(), actor, err, line, result)
}

func (a *app) abortCommand() *cobra.Command {
	w := terminalWrite{app: a, name: "abort"}
	var gate string
	cmd := &cobra.Command{
		Use:     "abort [PASSAGE]",
		Short:   "Stop a crossing, after showing how far it is",
		Example: "  hecate-mcp abort --gate staging --demo",
		Args:    takes(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if (len(args) == 0) == (gate == "") {
				return errors.New("name the Passage, or the Gate that is being crossed with --gate")
			}
			return carryOut(ctx, &w, func() (*ops.AbortPlan, error) {
				return w.env.Ops.PlanAbort(ctx, ops.AbortQuery{Namespace: w.namespace(), Passage: strings.Join(args, ""), Gate: gate})
			}, func(p *ops.AbortPlan, actor ops.Actor) (*ops.Aborted, string, error) {
				r, err := w.env.Ops.Abort(ctx, p, actor)
				if err != nil {
					return nil, "", err
				}
				line := fmt.Sprintf("Passage %s was asked to stop: %s", r.Passage.Name, r.Phase)
				if r.Restarted != nil {
					line += "; the Gate has opened " + r.Restarted.Name + " since"
				}
				return r, line, nil
			})
		},
	}
	w.addFlags(cmd)
	cmd.Flags().StringVar(&gate, "gate", "", "stop what is crossing this Gate")
	return cmd
}

func (a *app) pollCommand() *cobra.Command {
	w := terminalWrite{app: a, name: "poll"}
	cmd := &cobra.Command{
		Use:     "poll BEACON",
		Short:   "Let a Beacon look at its sources now",
		Example: "  hecate-mcp poll storefront -n shop",
		Args:    takes(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			return carryOut(ctx, &w, func() (*ops.PollPlan, error) {
				return w.env.Ops.PlanPoll(ctx, ops.PollQuery{Namespace: w.namespace(), Beacon: args[0]})
			}, func(p *ops.PollPlan, actor ops.Actor) (*ops.Polled, string, error) {
				r, err := w.env.Ops.Poll(ctx, p, actor)
				if err != nil {
					return nil, "", err
				}
				return r, "Beacon " + r.Beacon.Name + " was asked to look now", nil
			})
		},
	}
	w.addFlags(cmd)
	return cmd
}

func (a *app) approveCommand() *cobra.Command {
	w := terminalWrite{app: a, name: "approve", typed: true}
	var gate string
	var consult bool
	cmd := &cobra.Command{
		Use:   "approve BUNDLE",
		Short: "Approve a Bundle for a Gate: a person's, on a terminal only",
		Long: `approve shows what is in the Bundle, its evidence and who may not approve it, and
asks for the Gate's name to be typed. You are who the API server says you are;
no flag answers for you, and no tool of the MCP server approves.`,
		Example: "  hecate-mcp approve storefront-de4370fba351 --gate production -n shop",
		Args:    takes(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if gate == "" {
				return errors.New("--gate is needed: an approval is for one Gate")
			}
			if err := w.open(ctx); err != nil {
				return err
			}
			defer w.log.Close()
			p, err := w.env.Ops.PlanApprove(ctx, ops.ApproveQuery{Namespace: w.namespace(), Gate: gate, Bundle: args[0], ConsultChangeGate: consult})
			if err != nil {
				return coded(err)
			}
			object := ops.Object{Kind: v1alpha1.KindBundle, Namespace: p.Namespace(), Name: args[0]}
			if why := p.ExcludedBy(w.user); why != "" {
				w.say("warning: you (%s) are the %s of this change: your approval would be a segregation-of-duties violation", w.user, strings.ToLower(string(why)))
			}
			actor, err := w.decide(p, object)
			if err != nil {
				return err
			}
			r, err := w.env.Ops.Approve(ctx, p, actor)
			if err != nil {
				return w.did(p, object, actor, err, "", nil)
			}
			w.warn(r.Warnings)
			return w.did(p, object, actor, nil, fmt.Sprintf("%s is approved for %s by %s; the Gate notices within a minute", args[0], r.Gate, r.Actor), r)
		},
	}
	w.addFlags(cmd)
	cmd.Flags().StringVar(&gate, "gate", "", "the Gate that it is approved for")
	cmd.Flags().BoolVar(&consult, "consult-change-gate", false, "ask the evidence server's change gate too, which may write an attestation to the trail")
	return cmd
}
