package writelog

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// appendTo makes the test binary append lines to this file.
const appendTo = "HECATE_MCP_TEST_APPEND_TO"

const lines = 200

func TestMain(m *testing.M) {
	path, ok := os.LookupEnv(appendTo)
	if !ok {
		os.Exit(m.Run())
	}
	l, err := Open(path)
	if err != nil {
		panic(err)
	}
	for n := range lines {
		if err := l.Write(Entry{Event: Done, CallID: fmt.Sprintf("%d-%d", os.Getpid(), n), Message: strings.Repeat("m", n)}); err != nil {
			panic(err)
		}
	}
}

// read decodes every line of the file.
func read(t *testing.T, path string) []map[string]any {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []map[string]any
	s := bufio.NewScanner(f)
	for s.Scan() {
		var m map[string]any
		if err := json.Unmarshal(s.Bytes(), &m); err != nil {
			t.Fatalf("%v: %s", err, s.Text())
		}
		out = append(out, m)
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return out
}

// TestLine holds the fields, the bounds and the modes.
func TestLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "hecate-mcp", "writes.jsonl")
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 30, 16, 0, 0, 0, time.FixedZone("", 2*3600))
	full := Entry{Time: at, Event: Refused, Tool: "promote_bundle", CallID: "c1", Principal: "alice", Actor: "mcp:alice", Client: "test 1", ConfirmedVia: "terminal",
		Object: "Gate/shop/production", Plan: "sha256:0", Title: "a\nb\u202e\x1b[31m\u009b", Code: "Refused", Reason: "WindowClosed", Message: strings.Repeat("é", 10_000)}
	for _, e := range []Entry{full, {Event: Asked}} {
		if err := l.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := read(t, path)
	if len(got) != 2 || len(got[0]) != 14 || len(got[1]) != 2 {
		t.Fatalf("%v", got)
	}
	if got[0]["time"] != "2026-11-30T14:00:00Z" || got[0]["event"] != "refused" || got[0]["object"] != "Gate/shop/production" || got[0]["title"] != "a b[31m" {
		t.Errorf("%v", got[0])
	}
	if m := got[0]["message"].(string); len([]rune(m)) != maxMessage || !strings.HasSuffix(m, "…") {
		t.Errorf("message: %s", m)
	}
	if now, err := time.Parse(time.RFC3339, got[1]["time"].(string)); err != nil || time.Since(now) > time.Hour || !strings.HasSuffix(got[1]["time"].(string), "Z") {
		t.Errorf("time: %v", got[1]["time"])
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file: %v %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v %v", info.Mode(), err)
	}
	if err := l.Write(Entry{Event: Done}); err == nil {
		t.Error("a write after Close is no error")
	}
}

// TestManyProcesses holds that lines of several processes, each with several
// goroutines, never mix.
func TestManyProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "writes.jsonl")
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), appendTo+"="+path)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	l, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for g := range 4 {
		group.Go(func() {
			for n := range lines / 4 {
				if err := l.Write(Entry{Event: Asked, CallID: fmt.Sprintf("own-%d-%d", g, n)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	seen := map[string]bool{}
	for _, line := range read(t, path) {
		seen[line["callId"].(string)] = true
	}
	if len(seen) != 4*lines {
		t.Errorf("%d different lines, want %d", len(seen), 4*lines)
	}
}

// TestRefusedTargets holds that nothing but a regular file is appended to.
func TestRefusedTargets(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": target, "dangling": filepath.Join(dir, "absent")} {
		path := filepath.Join(dir, name)
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "absent")); err == nil {
		t.Error("a dangling link's target was made")
	}
	for _, path := range []string{dir, os.DevNull, filepath.Join(target, "below")} {
		if _, err := Open(path); err == nil {
			t.Errorf("%s is taken", path)
		}
	}
}

// TestSwapped holds that a file which was swapped while it was opened is
// noticed.
func TestSwapped(t *testing.T) {
	dir := t.TempDir()
	opened, other, link := filepath.Join(dir, "opened"), filepath.Join(dir, "other"), filepath.Join(dir, "link")
	file, err := os.Create(opened)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(opened, link); err != nil {
		t.Fatal(err)
	}
	for path, good := range map[string]bool{opened: true, other: false, link: false, filepath.Join(dir, "absent"): false} {
		if _, err := inspect(path, file); (err == nil) != good {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestTornLine holds that a line that was cut off, say by a full disk, does not
// spoil the next one.
func TestTornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "writes.jsonl")
	if err := os.WriteFile(path, []byte(`{"event":"asked"`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		l, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.Write(Entry{Event: Done}); err != nil {
				t.Fatal(err)
			}
		}
		l.Close()
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	if len(got) != 5 {
		t.Fatalf("%q", got)
	}
	for _, line := range got[1:] {
		if !json.Valid([]byte(line)) {
			t.Errorf("%q", line)
		}
	}
}

// TestNil holds that no log is a log that drops.
func TestNil(t *testing.T) {
	var l *Log
	if err := l.Write(Entry{Event: Asked}); err != nil || l.Path() != "" || l.Close() != nil {
		t.Error("a nil log does something")
	}
}

// TestDefault holds where the log goes.
func TestDefault(t *testing.T) {
	t.Setenv("HOME", "/home/alice")
	for state, want := range map[string]string{
		"":         "/home/alice/.local/state/hecate-mcp/writes.jsonl",
		"relative": "/home/alice/.local/state/hecate-mcp/writes.jsonl",
		"/state":   "/state/hecate-mcp/writes.jsonl",
	} {
		t.Setenv("XDG_STATE_HOME", state)
		if got, err := Default(); err != nil || got != want {
			t.Errorf("%q: %s %v", state, got, err)
		}
	}
}
