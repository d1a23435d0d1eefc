package confirm

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// maxConnections of terminals are served at once.
const maxConnections = 8

// maxSocketPath is what the system takes as the path of a socket, in bytes.
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// terminal is the server's end of the socket, made when it is first needed.
type terminal struct {
	mu       sync.Mutex
	closed   bool
	listener *net.UnixListener
}

func (t *terminal) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.listener != nil {
		t.listener.Close() // unlinks the socket too
	}
}

// listen makes the folder and the socket unless they are there. The error is a
// *FolderError.
func (d *Desk) listen() error {
	t := &d.terminal
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listener != nil || t.closed {
		return nil
	}
	dir := d.options.Folder
	if err := makeFolder(dir); err != nil {
		return err
	}
	var random [4]byte
	rand.Read(random[:])
	path := filepath.Join(dir, fmt.Sprintf("%d-%s.sock", os.Getpid(), hex.EncodeToString(random[:])))
	if max := maxSocketPath(); len(path) > max {
		return &FolderError{Folder: dir, Problem: fmt.Sprintf("has too long a path: the socket's has %d bytes, and %d are allowed; set XDG_RUNTIME_DIR to a shorter one", len(path), max)}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return &FolderError{Folder: dir, Problem: "takes no socket", Err: err}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return &FolderError{Folder: dir, Problem: "takes no socket", Err: err}
	}
	t.listener = l
	go d.accept(l)
	return nil
}

func (d *Desk) accept(l *net.UnixListener) {
	places := make(chan struct{}, maxConnections)
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// No more files, say: what waits can still be confirmed later.
			d.options.Log.Warn("a terminal could not connect", "error", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		places <- struct{}{}
		go func() {
			defer func() { <-places }()
			defer c.Close()
			if err := d.serve(c); err != nil {
				d.options.Log.Warn("a terminal was not served", "error", err)
			}
		}()
	}
}

// serve answers one request.
func (d *Desk) serve(c *net.UnixConn) error {
	if err := sameUser(c); err != nil {
		return err
	}
	if err := c.SetDeadline(time.Now().Add(exchange)); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(c, maxRequest)).ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	a := d.respond(line)
	a.Version = protocolVersion
	return json.NewEncoder(c).Encode(a)
}

// respond does what a terminal asks for. A request that it does not understand
// changes nothing.
func (d *Desk) respond(line []byte) response {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return refuse(WireBadRequest, "the request is not JSON: %v", err)
	}
	if r.Version != protocolVersion {
		return refuse(WireVersion, "the server speaks version %d of the protocol, not %d: both ends have to be the same hecate-mcp", protocolVersion, r.Version)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.options.Now()
	d.pending.sweep(now)
	if r.Op == opList {
		a := response{}
		for _, e := range d.pending.entries {
			if e.answer == none {
				a.Waiting = append(a.Waiting, e.waiting())
			}
		}
		return a
	}
	e := d.pending.byID(r.ID)
	if e == nil || e.answer != none {
		return refuse(WireNotWaiting, "this plan does not wait any more: it was answered, has expired, or a newer plan took its place")
	}
	switch r.Op {
	case opShow:
		return response{Shown: &Shown{Waiting: e.waiting(), Lines: e.shown.lines, Hidden: e.shown.hidden, Type: e.shown.name}}
	case opAccept:
		if e.plan.Confirm() == "" || r.Typed != e.plan.Confirm() {
			return refuse(WireWrongName, "the typed name is not %q: nothing was confirmed, and the plan still waits", e.shown.name)
		}
		e.answer, e.expires = accepted, now.Add(d.options.TTL)
	case opDecline:
		e.answer = declined
	default:
		return refuse(WireBadRequest, "unknown op %q: valid are %s, %s, %s, %s", plain(r.Op, 40), opList, opShow, opAccept, opDecline)
	}
	// A form that still stands open must not bring the plan back.
	d.pending.spend(e, Used)
	d.options.Log.Info("answered on a terminal", "op", r.Op, "id", e.id, "tool", e.bound.tool)
	return response{}
}

func refuse(code, format string, args ...any) response {
	return response{Error: &WireError{code, fmt.Sprintf(format, args...)}}
}

func (e *entry) waiting() Waiting {
	return Waiting{ID: e.id, Tool: e.bound.tool, Title: e.shown.title, Principal: plain(e.bound.principal, maxName), Client: e.client,
		Asked: e.asked.UTC().Truncate(time.Second), Expires: e.expires.UTC().Truncate(time.Second), PID: os.Getpid()}
}
