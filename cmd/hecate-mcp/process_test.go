package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

// process prepares the command as a process of its own, with nothing of the
// developer's environment.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = []string{asCommand + "=1", "HOME=" + t.TempDir()}
	return cmd
}

// TestProcess holds that the exit code reaches the shell and the streams are
// kept apart.
func TestProcess(t *testing.T) {
	for _, c := range []struct {
		args     []string
		code     int
		out, err bool
	}{
		{[]string{"call", "explain_gate", "--demo", "--arg", "gate=production"}, 0, true, false},
		{[]string{"call", "list_gates", "--wrong"}, 1, false, true},
		{[]string{"call", "list_gates"}, 1, true, false},
		{[]string{"call", "explain_gate", "--demo", "--arg", "gate=nowhere", "-o", "json"}, 3, true, false},
	} {
		cmd := process(t, c.args...)
		var out, errOut bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errOut
		err := cmd.Run()
		if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != c.code || (out.Len() > 0) != c.out || (errOut.Len() > 0) != c.err {
			t.Errorf("%q: exit code %d\nstdout: %s\nstderr: %s", c.args, code, &out, &errOut)
		}
	}
}

// TestToolsAsListed holds that `tools -o json` is the list that a client gets,
// that stdout of the server carries the protocol alone, and that the end of
// its input ends the server without complaint.
func TestToolsAsListed(t *testing.T) {
	var printed []any
	hecate(context.Background(), "tools", "-o", "json").oneJSON(t, &printed)

	promotion := slices.DeleteFunc(slices.Clone(printed), func(tool any) bool {
		name, _ := tool.(map[string]any)["name"].(string)
		found, err := tools.Find(name)
		return err != nil || found.Toolset != tools.Promotion
	})
	for _, c := range []struct {
		args []string
		want []any
	}{{[]string{"--demo"}, printed}, {[]string{"serve", "--demo", "--toolsets", "promotion"}, promotion}, {[]string{"--snapshot", "../../examples/estate"}, promotion}} {
		args := c.args
		cmd := process(t, args...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		ask := func(request string, into any) {
			t.Helper()
			if _, err := io.WriteString(in, request+"\n"); err != nil {
				t.Fatal(err)
			}
			line, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(line, into); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
		}
		var hello struct {
			Result struct {
				ServerInfo struct{ Name, Version string }
			}
		}
		ask(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, &hello)
		if hello.Result.ServerInfo.Name != "hecate-mcp" || hello.Result.ServerInfo.Version == "" {
			t.Errorf("says that it is %+v", hello.Result.ServerInfo)
		}
		if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
			t.Fatal(err)
		}
		var list struct{ Result struct{ Tools []any } }
		ask(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, &list)
		if diff := cmp.Diff(c.want, list.Result.Tools); diff != "" {
			t.Errorf("%q: printed and listed differ (-printed +listed):\n%s", args, diff)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("more on stdout: %s (%v)", rest, err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q ends with %v", args, err)
		}
	}
}
