package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hecate-mcp/hecate-mcp/internal/confirm"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

// Exit codes of confirm beyond the common ones.
const (
	exitNothing = 3
	exitRefused = 5
)

// maxShown bounds what is printed of one text of a server's, in characters.
const maxShown = 400

func (a *app) confirmCommand() *cobra.Command {
	var list, decline bool
	var output, folder string
	cmd := &cobra.Command{
		Use:   "confirm",
		Short: "Show the writes that wait for a person, and confirm one",
		Long: `confirm shows what the servers of this user want to write and wait with, the
plan of the one that is chosen, and asks for a name to be typed. The write is
done when the client makes the same call again.

It needs a terminal. It exits with 0 when a plan was confirmed, 3 when nothing
waits, 5 when it was declined or not confirmed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case output != "text" && output != "json":
				return fmt.Errorf("-o %q: valid are text, json", output)
			case output == "json" && !list:
				return errors.New("-o json is for --list: a plan is confirmed on a terminal only")
			case list && decline:
				return errors.New("--list and --decline exclude each other")
			}
			if f, ok := a.in.(*os.File); !list && (!ok || !term.IsTerminal(int(f.Fd()))) {
				return errors.New("stdin is not a terminal: a person has to read the plan and type a name; --list shows what waits")
			}
			folders := confirm.Folders()
			if folder != "" {
				folders = []string{folder}
			}
			d := confirmDialog{app: a, in: bufio.NewReader(a.in), decline: decline}
			if list {
				return d.list(cmd.Context(), folders, output)
			}
			return d.run(cmd.Context(), folders)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&list, "list", false, "only list what waits")
	f.BoolVar(&decline, "decline", false, "decline instead of confirm")
	f.StringVarP(&output, "output", "o", "text", "text or json (json with --list)")
	f.StringVar(&folder, "folder", "", "look in this folder only")
	// For tests, and for a server that was told to use another folder.
	if err := f.MarkHidden("folder"); err != nil {
		panic(err)
	}
	return cmd
}

// confirmDialog is one run of confirm.
type confirmDialog struct {
	*app
	in      *bufio.Reader
	decline bool
}

// look returns what waits, and the exit code when nothing does: what could not
// be looked at may hide something.
func (d confirmDialog) look(ctx context.Context, folders []string) ([]confirm.Waiting, exitCode) {
	waiting, problems := confirm.Look(ctx, folders...)
	code := exitCode(exitNothing)
	for _, p := range problems {
		fmt.Fprintln(d.err, "hecate-mcp:", ops.Clean(p.Error(), maxShown))
		if errors.As(p, new(*confirm.FolderError)) {
			code = exitRefused
		} else if code == exitNothing {
			code = exitError
		}
	}
	return waiting, code
}

func (d confirmDialog) list(ctx context.Context, folders []string, output string) error {
	waiting, code := d.look(ctx, folders)
	if output == "json" {
		if waiting == nil {
			waiting = []confirm.Waiting{}
		}
		raw, err := json.Marshal(struct {
			Waiting []confirm.Waiting `json:"waiting"`
		}{waiting})
		if err != nil {
			return runtimeError{err}
		}
		if _, err := fmt.Fprintf(d.out, "%s\n", raw); err != nil {
			return runtimeError{err}
		}
	} else if len(waiting) > 0 {
		d.table(waiting)
	} else {
		fmt.Fprintln(d.out, "Nothing waits for a confirmation.")
	}
	if len(waiting) == 0 {
		return code
	}
	return nil
}

func (d confirmDialog) table(waiting []confirm.Waiting) {
	now := time.Now()
	t := tools.NewWriter(d.out, false).Table("#", "TOOL", "WHAT", "FOR", "CLIENT", "SERVER", "ASKED", "EXPIRES")
	for i, w := range waiting {
		t.Row(strconv.Itoa(i+1), ops.Clean(w.Tool, 60), ops.Clean(w.Title, 100), ops.Clean(w.Principal, 60), ops.Clean(w.Client, 40),
			strconv.Itoa(w.PID), now.Sub(w.Asked).Round(time.Second).String()+" ago", "in "+w.Expires.Sub(now).Round(time.Second).String())
	}
	t.Flush()
}

func (d confirmDialog) run(ctx context.Context, folders []string) error {
	waiting, code := d.look(ctx, folders)
	if len(waiting) == 0 {
		fmt.Fprintln(d.err, "hecate-mcp: nothing waits for a confirmation")
		return code
	}
	chosen := waiting[0]
	if len(waiting) > 1 {
		d.table(waiting)
		answer, err := d.ask(ctx, fmt.Sprintf("\nWhich one? [1-%d] ", len(waiting)))
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(answer)
		if err != nil || n < 1 || n > len(waiting) {
			return fmt.Errorf("%q is none of 1 to %d: nothing was confirmed", ops.Clean(answer, 40), len(waiting))
		}
		chosen = waiting[n-1]
		fmt.Fprintln(d.out)
	}
	plan, err := chosen.Show(ctx)
	if err != nil {
		return d.failed(err)
	}
	d.show(plan)
	if d.decline {
		answer, err := d.ask(ctx, "\nDecline it? [y/N] ")
		if err != nil {
			return err
		}
		if answer != "y" && answer != "yes" {
			fmt.Fprintln(d.err, "hecate-mcp: not declined, it still waits")
			return exitCode(exitRefused)
		}
		if err := chosen.Decline(ctx); err != nil {
			return d.failed(err)
		}
		fmt.Fprintln(d.out, "Declined. Nothing will be done.")
		return exitCode(exitRefused)
	}
	typed, err := d.ask(ctx, fmt.Sprintf("\nTo have exactly this done, once, type %s: ", ops.Clean(plan.Type, maxShown)))
	if err != nil {
		return err
	}
	if err := chosen.Accept(ctx, typed); err != nil {
		return d.failed(err)
	}
	fmt.Fprintln(d.out, "Confirmed. It is done when the client makes the same call again.")
	return nil
}

func (d confirmDialog) show(p *confirm.Shown) {
	fmt.Fprintf(d.out, "%s\n\n", ops.Clean(p.Title, maxShown))
	for _, line := range p.Lines {
		// The server has cleaned them; what is left in front are spaces that indent.
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		fmt.Fprintln(d.out, indent+ops.Clean(line, maxShown))
	}
	if p.Hidden > 0 {
		fmt.Fprintf(d.out, "… %d more lines are too many to show\n", p.Hidden)
	}
	client := "a client that does not say its name"
	if p.Client != "" {
		client = ops.Clean(p.Client, maxShown)
	}
	fmt.Fprintf(d.out, "\nAsked by %s for %s through %s (server process %d), until %s.\n",
		client, ops.Clean(p.Principal, maxShown), ops.Clean(p.Tool, maxShown), p.PID, p.Expires.Local().Format(time.TimeOnly))
}

// ask prints a question and reads a line. The end of the input, and Ctrl-C, are
// no answer.
func (d confirmDialog) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(d.out, question)
	type answer struct {
		line string
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		line, err := d.in.ReadString('\n')
		answered <- answer{line, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		// The reading is left behind: the process is about to exit.
		a.err = io.EOF
	}
	if errors.Is(a.err, io.EOF) {
		fmt.Fprintln(d.err, "\nhecate-mcp: no answer, nothing was confirmed")
		return "", exitCode(exitRefused)
	}
	if a.err != nil {
		return "", runtimeError{a.err}
	}
	return strings.TrimSpace(a.line), nil
}

// failed reports what a server said no to, or why it could not be asked.
func (d confirmDialog) failed(err error) error {
	fmt.Fprintln(d.err, "hecate-mcp:", ops.Clean(err.Error(), maxShown))
	no := new(confirm.WireError)
	switch {
	case !errors.As(err, &no):
		return exitCode(exitError)
	case no.Code == confirm.WireNotWaiting:
		return exitCode(exitNothing)
	case no.Code == confirm.WireWrongName:
		return exitCode(exitRefused)
	default:
		return exitCode(exitError)
	}
}
