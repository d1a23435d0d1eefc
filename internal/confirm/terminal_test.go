package confirm

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

// waitingWriter is a writer with a terminal way and a client without forms,
// whose first call waits.
func waitingWriter(t *testing.T) (w *writer, cl *client.Client, now *clock, folder string) {
	t.Helper()
	folder = privateFolder(t)
	now = &clock{now: time.Unix(1_800_000_000, 0)}
	w = newWriter(t, Options{Folder: folder, Now: now.Now})
	cl = connections[0].connect(t, w, nil)
	answers(t, cl, "ConfirmationRequired NoForm")
	return w, cl, now, folder
}

// TestTerminal holds the way over the terminal for a client without forms, in
// both eras: once, for the same call of the same principal.
func TestTerminal(t *testing.T) {
	ctx := context.Background()
	for _, via := range connections {
		t.Run(via.String(), func(t *testing.T) {
			folder := privateFolder(t)
			w := newWriter(t, Options{Folder: folder})
			cl := via.connect(t, w, nil)
			answers(t, cl, "ConfirmationRequired NoForm")
			answers(t, cl, "ConfirmationRequired Waiting")
			waiting := one(t, folder)
			if waiting.Tool != tool || waiting.Title != "Promote 1.0 to production" || waiting.Principal != "alice" || waiting.Client != "test-client 7" ||
				waiting.PID != os.Getpid() || waiting.Expires.Sub(waiting.Asked) != defaultTTL {
				t.Errorf("waiting: %+v", waiting)
			}
			plan, err := waiting.Show(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Lines) != 1 || plan.Lines[0] != "Gate production" || plan.Type != "production" {
				t.Errorf("shown: %+v", plan)
			}
			for _, typed := range []string{"", "Production", "production ", "prod", "yes"} {
				if got := wireCode(waiting.Accept(ctx, typed)); got != WireWrongName {
					t.Errorf("typed %q: %s", typed, got)
				}
			}
			answers(t, cl, "ConfirmationRequired Waiting")
			if err := waiting.Accept(ctx, "production"); err != nil {
				t.Fatal(err)
			}
			if got := wireCode(waiting.Accept(ctx, "production")); got != WireNotWaiting {
				t.Errorf("accepted twice: %s", got)
			}
			if got := wireCode(waiting.Decline(ctx)); got != WireNotWaiting {
				t.Errorf("declined after that: %s", got)
			}
			nothing(t, folder)
			w.wrote(t)

			answers(t, cl, "ConfirmationRequired NoForm", func(r *mcp.CallToolRequest) { r.Params.Name = otherTool })
			answers(t, cl, "ConfirmationRequired NoForm", func(r *mcp.CallToolRequest) { r.Params.Arguments = map[string]any{"gate": "x"} })
			w.becomes("mallory")
			answers(t, cl, "ConfirmationRequired NoForm")
			w.becomes("alice")
			w.wrote(t)

			w.drift("2.0") // the confirmed plan is the shown one
			answers(t, cl, "done")
			w.wrote(t, "production@1.0")
			if by := w.by[0]; by != (Confirmation{ViaTerminal, "test-client 7", waiting.ID}) {
				t.Errorf("confirmed by %+v", by)
			}
			answers(t, cl, "ConfirmationRequired NoForm")
			w.wrote(t, "production@1.0")
		})
	}
}

// TestNoKeyInTheAnswer holds that the model is told nothing that confirms.
func TestNoKeyInTheAnswer(t *testing.T) {
	w, _, _, folder := waitingWriter(t)
	waiting := one(t, folder)
	r := &Required{}
	_, err := w.desk.Ask(context.Background(), mcp.CallToolRequest{}, Call{Tool: tool, Arguments: []byte(`{"gate":"production","bundle":"app-1"}`), Principal: "alice"},
		promotion{gate: "production", version: "1.0"})
	if !errors.As(err, &r) || r.Reason != StillWaiting {
		t.Fatal(err)
	}
	said := fmt.Sprintf("%v %+v", err, *r)
	if strings.Contains(said, waiting.ID) || strings.Contains(said, folder) {
		t.Errorf("%s", said)
	}
	for _, want := range []string{Command, "2027-01-15T08:05:00Z", "the same call again"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// TestTerminalDecline holds that a plan that was declined on the terminal is
// gone, and that the call learns it once.
func TestTerminalDecline(t *testing.T) {
	w, cl, _, folder := waitingWriter(t)
	if err := one(t, folder).Decline(context.Background()); err != nil {
		t.Fatal(err)
	}
	nothing(t, folder)
	answers(t, cl, "ConfirmationDeclined Declined")
	answers(t, cl, "ConfirmationRequired NoForm")
	w.wrote(t)
}

// TestTerminalExpiry holds both times: to answer, and then to make the call.
func TestTerminalExpiry(t *testing.T) {
	ctx := context.Background()
	w, cl, now, folder := waitingWriter(t)
	waiting := one(t, folder)
	now.move(defaultTTL - time.Second)
	if err := waiting.Accept(ctx, "production"); err != nil {
		t.Fatal(err)
	}
	now.move(defaultTTL)
	answers(t, cl, "ConfirmationRequired NoForm")
	waiting = one(t, folder)
	now.move(defaultTTL)
	if got := wireCode(waiting.Accept(ctx, "production")); got != WireNotWaiting {
		t.Errorf("accepted too late: %s", got)
	}
	answers(t, cl, "ConfirmationRequired NoForm")
	now.move(defaultTTL - time.Second)
	if err := one(t, folder).Accept(ctx, "production"); err != nil {
		t.Fatal(err)
	}
	now.move(defaultTTL - time.Second)
	answers(t, cl, "done")
	w.wrote(t, "production@1.0")
}

// TestAskedAgain holds that the same plan goes on waiting as it was, and that
// another one takes its place: what was read before can't be accepted then.
func TestAskedAgain(t *testing.T) {
	ctx := context.Background()
	w, cl, now, folder := waitingWriter(t)
	first := one(t, folder)
	now.move(time.Minute)
	answers(t, cl, "ConfirmationRequired Waiting")
	if again := one(t, folder); again != first {
		t.Errorf("%+v, was %+v", again, first)
	}
	w.drift("2.0")
	answers(t, cl, "ConfirmationRequired NoForm replaced")
	second := one(t, folder)
	if second.ID == first.ID || second.Title != "Promote 2.0 to production" || !second.Expires.After(first.Expires) {
		t.Errorf("%+v, was %+v", second, first)
	}
	if got := wireCode(first.Accept(ctx, "production")); got != WireNotWaiting {
		t.Errorf("the old plan was accepted: %s", got)
	}
	w.wrote(t)
	if err := second.Accept(ctx, "production"); err != nil {
		t.Fatal(err)
	}
	answers(t, cl, "done")
	w.wrote(t, "production@2.0")
}

// TestAnsweredElsewhere holds that a form which was answered ends the waiting of
// an older plan of the same call, whatever the answer.
func TestAnsweredElsewhere(t *testing.T) {
	for _, c := range []struct {
		handler *handler
		want    string
	}{{says("accept", yes), "done"}, {says("decline", nil), "ConfirmationDeclined Declined"}} {
		w, _, _, folder := waitingWriter(t)
		waiting := one(t, folder)
		w.drift("2.0")
		answers(t, connections[0].connect(t, w, c.handler), c.want)
		nothing(t, folder)
		if got := wireCode(waiting.Accept(context.Background(), "production")); got != WireNotWaiting {
			t.Errorf("%s: the old plan was accepted: %s", c.want, got)
		}
	}
}

// TestModernBoth holds that a modern question can be answered on the terminal
// too, that a client which lets it lie is not asked in a form again, and that
// one plan is confirmed once by either way.
func TestModernBoth(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		answer func(t *testing.T, w *writer, state, folder string)
		want   []string
	}{
		{"terminal, then form", func(t *testing.T, w *writer, state, folder string) {
			if err := one(t, folder).Accept(ctx, "production"); err != nil {
				t.Fatal(err)
			}
			if got := text(w.raw(t, rawCall{State: state, Responses: accepts})); got != "ConfirmationExpired Used" {
				t.Errorf("the form: %q", got)
			}
		}, []string{"done", ""}},
		{"form, then terminal", func(t *testing.T, w *writer, state, folder string) {
			waiting := one(t, folder)
			if got := text(w.raw(t, rawCall{State: state, Responses: accepts})); got != "done" {
				t.Errorf("the form: %q", got)
			}
			if got := wireCode(waiting.Accept(ctx, "production")); got != WireNotWaiting {
				t.Errorf("the terminal: %s", got)
			}
		}, []string{""}},
		{"declined on the terminal", func(t *testing.T, w *writer, state, folder string) {
			if err := one(t, folder).Decline(ctx); err != nil {
				t.Fatal(err)
			}
			if got := text(w.raw(t, rawCall{State: state, Responses: accepts})); got != "ConfirmationExpired Used" {
				t.Errorf("the form: %q", got)
			}
		}, []string{"ConfirmationDeclined Declined", ""}},
		{"asked again", func(t *testing.T, w *writer, state, folder string) {
			if got := text(w.raw(t, rawCall{})); got != "ConfirmationRequired Waiting" {
				t.Errorf("again: %q", got)
			}
			if got := text(w.raw(t, rawCall{State: state, Responses: accepts})); got != "done" {
				t.Errorf("the form, later: %q", got)
			}
		}, []string{""}},
		{"another plan", func(t *testing.T, w *writer, state, folder string) {
			w.drift("2.0")
			if r := w.raw(t, rawCall{}); !r.NeedsInput() {
				t.Errorf("not asked: %q", text(r))
			}
			if got := text(w.raw(t, rawCall{State: state, Responses: accepts})); got != "ConfirmationExpired Replaced" {
				t.Errorf("the old form: %q", got)
			}
			w.drift("1.0")
			if err := one(t, folder).Accept(ctx, "production"); err != nil {
				t.Fatal(err)
			}
		}, []string{"done", ""}},
		{"no answer", func(t *testing.T, w *writer, state, folder string) {
			if got := text(w.raw(t, rawCall{State: state})); got != "ConfirmationExpired Silent" {
				t.Errorf("silent: %q", got)
			}
			if err := one(t, folder).Accept(ctx, "production"); err != nil {
				t.Fatal(err)
			}
		}, []string{"done", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := privateFolder(t)
			w := newWriter(t, Options{Folder: folder})
			c.answer(t, w, w.state(t), folder)
			for _, want := range c.want {
				r := w.raw(t, rawCall{})
				if got := text(r); got != want || r.NeedsInput() != (want == "") {
					t.Errorf("the same call answers %q (asks: %v), want %q", got, r.NeedsInput(), want)
				}
			}
			if len(w.written) != 1 && c.name != "declined on the terminal" {
				t.Errorf("written: %v", w.written)
			}
		})
	}
}

// TestBusyTerminal holds that only so many plans wait, the oldest out.
func TestBusyTerminal(t *testing.T) {
	_, cl, now, folder := waitingWriter(t)
	first := one(t, folder)
	for n := range maxPending {
		now.move(time.Second)
		answers(t, cl, "ConfirmationRequired NoForm", func(r *mcp.CallToolRequest) { r.Params.Arguments = map[string]any{"n": n} })
	}
	waiting, problems := Look(context.Background(), folder)
	if len(waiting) != maxPending || len(problems) > 0 || waiting[0].ID == first.ID {
		t.Errorf("%d wait, problems: %v", len(waiting), problems)
	}
	if got := wireCode(first.Accept(context.Background(), "production")); got != WireNotWaiting {
		t.Errorf("the oldest: %s", got)
	}
}

// TestTwoServers holds that plans of several servers are found, and that each
// confirms its own.
func TestTwoServers(t *testing.T) {
	ctx := context.Background()
	folder := privateFolder(t)
	var ws [2]*writer
	var cls [2]*client.Client
	for i := range ws {
		ws[i] = newWriter(t, Options{Folder: folder})
		ws[i].drift(fmt.Sprint(i))
		cls[i] = connections[0].connect(t, ws[i], nil)
		answers(t, cls[i], "ConfirmationRequired NoForm")
	}
	waiting, problems := Look(ctx, folder, folder+"-absent")
	if len(waiting) != 2 || len(problems) > 0 {
		t.Fatalf("waiting: %v, problems: %v", waiting, problems)
	}
	for _, p := range waiting {
		if p.Title == "Promote 1 to production" {
			if err := p.Accept(ctx, "production"); err != nil {
				t.Fatal(err)
			}
		}
	}
	answers(t, cls[0], "ConfirmationRequired Waiting")
	answers(t, cls[1], "done")
	ws[0].wrote(t)
	ws[1].wrote(t, "production@1")
	ws[0].desk.Close()
	nothing(t, folder)
	if left, err := os.ReadDir(folder); err != nil || len(left) != 1 {
		t.Errorf("left: %v %v", left, err)
	}
}

// TestNothingAtStart holds that a server which waits with nothing leaves no
// trace, and that the socket is private and goes with the server.
func TestNothingAtStart(t *testing.T) {
	folder := privateFolder(t)
	w := newWriter(t, Options{Folder: folder})
	cl := connections[0].connect(t, w, says("accept", yes))
	answers(t, cl, "done")
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
	answers(t, connections[0].connect(t, w, nil), "ConfirmationRequired NoForm")
	info, err := os.Lstat(folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("folder: %v %v", info, err)
	}
	sockets, err := os.ReadDir(folder)
	if err != nil || len(sockets) != 1 {
		t.Fatalf("sockets: %v %v", sockets, err)
	}
	if info, err := sockets[0].Info(); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("socket: %v %v", info.Mode(), err)
	}
	w.desk.Close()
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
	answers(t, cl, "ConfirmationExpired Unknown")
	answers(t, connections[0].connect(t, w, nil), "ConfirmationRequired NoForm nowhere")
}

// TestUnsafeFolder holds that a folder which others could use is refused, at
// the start, when the first plan waits, and by who looks.
func TestUnsafeFolder(t *testing.T) {
	for _, c := range []struct {
		name, says string
		spoil      func(dir string) error
	}{
		{"open to others", "mode 0755", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o755)) }},
		{"open to the group", "mode 0710", func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o710)) }},
		{"a link", "symbolic link", func(dir string) error {
			return errors.Join(os.Mkdir(dir+"-real", 0o700), os.Symlink(dir+"-real", dir))
		}},
		{"a dangling link", "symbolic link", func(dir string) error { return os.Symlink(dir+"-absent", dir) }},
		{"a file", "not a folder", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }},
		{"somebody else's", "another user", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 12345, -1))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := privateFolder(t)
			late := newWriter(t, Options{Folder: folder})
			if err := c.spoil(folder); errors.Is(err, fs.ErrPermission) {
				t.Skip("only root gives folders away")
			} else if err != nil {
				t.Fatal(err)
			}
			_, err := New(Options{Folder: folder})
			refused := &FolderError{}
			if !errors.As(err, &refused) || refused.Code() != CodeRefused || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), folder) {
				t.Errorf("New: %v", err)
			}
			answers(t, connections[0].connect(t, late, nil), "Refused folder")
			if r := late.raw(t, rawCall{}); !r.NeedsInput() {
				t.Errorf("a client with forms is not asked: %q", text(r))
			}
			late.wrote(t)
			waiting, problems := Look(context.Background(), folder)
			if len(waiting) > 0 || len(problems) != 1 || !errors.As(problems[0], &refused) {
				t.Errorf("Look: %v %v", waiting, problems)
			}
		})
	}
}

// TestLongPath holds that a path that no socket can have is named.
func TestLongPath(t *testing.T) {
	folder := filepath.Join(privateFolder(t), strings.Repeat("x", 100))
	w := newWriter(t, Options{Folder: folder})
	_, err := w.desk.Ask(context.Background(), mcp.CallToolRequest{}, Call{Tool: tool}, promotion{})
	if err == nil || !strings.Contains(err.Error(), "too long") || !strings.Contains(err.Error(), "XDG_RUNTIME_DIR") {
		t.Errorf("%v", err)
	}
}

// TestStaleSocket holds that what a killed server left is removed, and what is
// none of ours or may come alive is not.
func TestStaleSocket(t *testing.T) {
	_, _, _, folder := waitingWriter(t)
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	leave := func(name string) string {
		path := filepath.Join(folder, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
		return path
	}
	stale := leave(fmt.Sprintf("%d-00000000.sock", gone.Process.Pid))
	alive := leave(fmt.Sprintf("%d-00000000.sock", os.Getpid()))
	waiting, problems := Look(context.Background(), folder)
	if len(waiting) != 1 || len(problems) != 1 || !strings.Contains(problems[0].Error(), alive) {
		t.Errorf("waiting: %v, problems: %v", waiting, problems)
	}
	if _, err := os.Lstat(stale); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the stale socket is there: %v", err)
	}
	if _, err := os.Lstat(alive); err != nil {
		t.Errorf("the socket of a living process is gone: %v", err)
	}
}

// TestProtocol holds what a server says to requests that it does not know, and
// that it survives them.
func TestProtocol(t *testing.T) {
	_, _, _, folder := waitingWriter(t)
	waiting := one(t, folder)
	send := func(line string) string {
		c, err := net.Dial("unix", waiting.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := fmt.Fprintln(c, line); err != nil {
			return err.Error()
		}
		answer, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			return err.Error()
		}
		return answer
	}
	for line, want := range map[string]string{
		`{"v":1,"op":"list"}`:                waiting.ID,
		`{"v":2,"op":"list"}`:                `"Version"`,
		`{"op":"list"}`:                      `"Version"`,
		`list`:                               `"BadRequest"`,
		`{"v":1,"op":"show","id":"nothing"}`: `"NotWaiting"`,
		`{"v":1,"op":"accept"}`:              `"NotWaiting"`,
		`{"v":1,"op":"approve","id":"` + waiting.ID + `"}`:                  `valid are list, show, accept, decline`,
		`{"v":1,"op":"` + strings.Repeat("x", 2*maxRequest) + `"}`:          "",
		`{"v":1,"op":"accept","id":"` + waiting.ID + `"}`:                   `"WrongName"`,
		`{"v":1,"op":"accept","id":"` + waiting.ID + `","typed":"\u0000a"}`: `"WrongName"`,
	} {
		if got := send(line); !strings.Contains(got, want) {
			t.Errorf("%.80s: %q, want %q", line, got, want)
		}
	}
	if again := one(t, folder); again != waiting {
		t.Errorf("%+v, was %+v", again, waiting)
	}
}

// TestNoName holds that a plan that names nothing to type can't be accepted.
func TestNoName(t *testing.T) {
	folder := privateFolder(t)
	w := newWriter(t, Options{Folder: folder})
	if _, err := w.desk.Ask(context.Background(), mcp.CallToolRequest{}, Call{Tool: tool}, promotion{}); outcome(err) != "ConfirmationRequired NoForm" {
		t.Fatal(err)
	}
	if got := wireCode(one(t, folder).Accept(context.Background(), "")); got != WireWrongName {
		t.Errorf("%s", got)
	}
}

// TestFolders holds where sockets go and that a terminal with another
// environment than the server's finds them.
func TestFolders(t *testing.T) {
	for _, name := range []string{"XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME", "TMPDIR"} {
		t.Setenv(name, "")
	}
	runtimeDir, home := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	bare := Folders()
	t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	full := Folders()
	if Folder() != filepath.Join(runtimeDir, "hecate-mcp") {
		t.Errorf("with a runtime folder: %s", Folder())
	}
	if len(full) != len(bare)+1 {
		t.Errorf("%v and %v", full, bare)
	}
	for _, dir := range bare {
		if !strings.Contains(strings.Join(full, "\n"), dir) {
			t.Errorf("%s is not among %v", dir, full)
		}
	}
	t.Setenv("XDG_RUNTIME_DIR", "relative")
	if Folder() != bare[0] {
		t.Errorf("a relative runtime folder is used: %s", Folder())
	}
}
