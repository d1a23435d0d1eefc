package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/hecate-mcp/hecate-mcp/internal/confirm"
)

// gatePlan is a plan of the tests.
type gatePlan string

func (p gatePlan) Digest() string { return string(p) }
func (p gatePlan) Title() string  { return "Promote app-1 to " + string(p) }
func (p gatePlan) Lines() []string {
	return []string{"Gate " + string(p), "  \x1b[31mwarning: window\x1b[0m"}
}
func (p gatePlan) Confirm() string { return string(p) }

// waitingDesk is a server in whose folder these plans wait.
func waitingDesk(t *testing.T, folder string, plans ...gatePlan) *confirm.Desk {
	t.Helper()
	d, err := confirm.New(confirm.Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	for _, p := range plans {
		_, err := d.Ask(context.Background(), mcp.CallToolRequest{}, gateCall(p), p)
		if r, ok := errors.AsType[*confirm.Required](err); !ok || r.Command != confirm.Command {
			t.Fatal(err)
		}
	}
	return d
}

func gateCall(p gatePlan) confirm.Call {
	return confirm.Call{Tool: "promote_bundle", Arguments: []byte(`{"gate":"` + string(p) + `"}`), Principal: "alice@example.com"}
}

// confirmed tells which of the plans were confirmed.
func confirmed(t *testing.T, d *confirm.Desk, plans ...gatePlan) string {
	t.Helper()
	var out []string
	for _, p := range plans {
		taken, err := d.Taken(context.Background(), mcp.CallToolRequest{}, gateCall(p))
		switch {
		case err != nil:
			out = append(out, err.Error())
		case taken != nil:
			out = append(out, taken.Plan.Title())
		}
	}
	return strings.Join(out, "; ")
}

// socketFolder is short enough for a socket, and not there yet.
func socketFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "run")
}

// runConfirm runs the command alone.
func runConfirm(in *os.File, args ...string) outcome {
	var out, errOut bytes.Buffer
	a := &app{out: &out, err: &errOut}
	if in != nil {
		a.in = in
	} else {
		a.in = strings.NewReader("production\n")
	}
	cmd := a.confirmCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&errOut)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(context.Background())
	code, ok := errors.AsType[exitCode](err)
	switch {
	case ok:
	case errors.As(err, new(runtimeError)):
		code = exitError
	case err != nil:
		code = exitUsage
		errOut.WriteString(err.Error())
	}
	return outcome{out.String(), errOut.String(), int(code)}
}

// TestConfirmWithoutTerminal holds what needs no terminal, and that a pipe can
// confirm nothing.
func TestConfirmWithoutTerminal(t *testing.T) {
	empty, busy, open := socketFolder(t), socketFolder(t), socketFolder(t)
	d := waitingDesk(t, busy, "production", "staging")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o755)); err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, c := range []struct {
		name string
		in   *os.File
		args []string
		code int
		says []string
	}{
		{"a reader", nil, []string{"--folder", busy}, 1, []string{"stdin is not a terminal", "--list"}},
		{"a device that is no terminal", null, []string{"--folder", busy}, 1, []string{"stdin is not a terminal"}},
		{"to decline", nil, []string{"--folder", busy, "--decline"}, 1, []string{"stdin is not a terminal"}},
		{"list", nil, []string{"--folder", busy, "--list"}, 0, []string{"promote_bundle", "Promote app-1 to production", "Promote app-1 to staging", "alice@example.com", "EXPIRES"}},
		{"list of nothing", nil, []string{"--folder", empty, "--list"}, 3, []string{"Nothing waits"}},
		{"list of nothing as JSON", nil, []string{"--folder", empty, "--list", "-o", "json"}, 3, []string{`{"waiting":[]}`}},
		{"list of an open folder", nil, []string{"--folder", open, "--list"}, 5, []string{"mode 0755", "0700"}},
		{"JSON to confirm", nil, []string{"--folder", busy, "-o", "json"}, 1, []string{"--list"}},
		{"bad output", nil, []string{"--folder", busy, "--list", "-o", "yaml"}, 1, []string{"yaml", "text, json"}},
		{"list and decline", nil, []string{"--list", "--decline"}, 1, []string{"exclude"}},
		{"an argument", nil, []string{"production"}, 1, []string{"production"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := runConfirm(c.in, c.args...)
			if got.code != c.code {
				t.Errorf("exit code %d, want %d", got.code, c.code)
			}
			for _, s := range c.says {
				if !strings.Contains(got.out+got.err, s) {
					t.Errorf("does not say %q:\n%s%s", s, got.out, got.err)
				}
			}
		})
	}
	var list struct {
		Waiting []struct {
			ID, Tool, Title, Principal, Client string
			Asked, Expires                     time.Time
			PID                                int
		}
	}
	runConfirm(nil, "--folder", busy, "--list", "-o", "json").oneJSON(t, &list)
	if len(list.Waiting) != 2 || list.Waiting[0].Title != "Promote app-1 to production" || list.Waiting[0].PID != os.Getpid() ||
		list.Waiting[0].Expires.Sub(list.Waiting[0].Asked) != 5*time.Minute {
		t.Errorf("list: %+v", list)
	}
	if got := confirmed(t, d, "production", "staging"); got != "" {
		t.Errorf("confirmed: %s", got)
	}
}
