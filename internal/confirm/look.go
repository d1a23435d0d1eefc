package confirm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Look asks every server that has a socket in one of the folders what waits,
// oldest first. Sockets of dead processes are removed. Problems are folders
// that are not private (*FolderError, not looked into) and servers that did
// not answer; what the others have waiting is returned all the same.
func Look(ctx context.Context, folders ...string) (waiting []Waiting, problems []error) {
	for _, dir := range folders {
		if err := checkFolder(dir); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			problems = append(problems, err)
			continue
		}
		sockets, err := filepath.Glob(filepath.Join(globEscape(dir), "*.sock"))
		if err != nil {
			problems = append(problems, err)
			continue
		}
		for _, socket := range sockets {
			a, err := ask(ctx, socket, request{Op: opList})
			if errors.Is(err, syscall.ECONNREFUSED) && dead(socket) {
				if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
					problems = append(problems, err)
				}
				continue
			}
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone meanwhile
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("the server at %s: %w", socket, err))
				continue
			}
			for _, w := range a.Waiting {
				w.socket = socket
				waiting = append(waiting, w)
			}
		}
	}
	slices.SortStableFunc(waiting, func(a, b Waiting) int { return a.Asked.Compare(b.Asked) })
	return waiting, problems
}

// globEscape keeps a folder's name from being a pattern.
func globEscape(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
}

// dead reports whether the process that named the socket is gone.
func dead(socket string) bool {
	pid, _, _ := strings.Cut(filepath.Base(socket), "-")
	n, err := strconv.Atoi(pid)
	return err == nil && n > 0 && !alive(n)
}

// Show returns the plan. A *WireError is the server's no.
func (w Waiting) Show(ctx context.Context) (*Shown, error) {
	a, err := ask(ctx, w.socket, request{Op: opShow, ID: w.ID})
	if err != nil {
		return nil, err
	}
	if a.Shown == nil {
		return nil, errors.New("the server's answer has no plan")
	}
	a.Shown.socket = w.socket
	return a.Shown, nil
}

// Accept says yes with the typed name, which the server checks.
func (w Waiting) Accept(ctx context.Context, typed string) error {
	_, err := ask(ctx, w.socket, request{Op: opAccept, ID: w.ID, Typed: typed})
	return err
}

// Decline says no.
func (w Waiting) Decline(ctx context.Context) error {
	_, err := ask(ctx, w.socket, request{Op: opDecline, ID: w.ID})
	return err
}

// ask sends one request and reads its answer.
func ask(ctx context.Context, socket string, r request) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, exchange)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return response{}, err
	}
	defer conn.Close()
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return response{}, fmt.Errorf("not a Unix socket: %T", conn)
	}
	if err := sameUser(unix); err != nil {
		return response{}, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return response{}, err
		}
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	r.Version = protocolVersion
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return response{}, err
	}
	line, err := bufio.NewReader(io.LimitReader(conn, maxAnswer)).ReadBytes('\n')
	if err != nil {
		return response{}, fmt.Errorf("reading the answer: %w", err)
	}
	var a response
	if err := json.Unmarshal(line, &a); err != nil {
		return response{}, fmt.Errorf("reading the answer: %w", err)
	}
	if a.Error != nil {
		return response{}, a.Error
	}
	if a.Version != protocolVersion {
		return response{}, fmt.Errorf("the server speaks version %d of the protocol, not %d", a.Version, protocolVersion)
	}
	return a, nil
}
