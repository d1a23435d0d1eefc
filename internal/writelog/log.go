package writelog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Event is what happened to a write.
type Event string

// Events, in the order in which a write meets them.
const (
	// Asked: a tool or command was asked to write, and its plan computed.
	Asked Event = "asked"
	// Refused: the rules, or a person, said no. Code and Reason say which.
	Refused Event = "refused"
	// Confirmed: a person accepted the plan.
	Confirmed Event = "confirmed"
	// Done: the write was made.
	Done Event = "done"
	// Failed: it was not, or nobody knows.
	Failed Event = "failed"
)

// Entry is one line. Empty fields are left out.
type Entry struct {
	// Time is when it happened; the zero value means now. Written in UTC.
	Time  time.Time `json:"time"`
	Event Event     `json:"event"`
	// Tool is the tool's or the command's name.
	Tool string `json:"tool,omitempty"`
	// CallID joins the lines of a confirmed write, and the object's annotation. What
	// was asked for and not confirmed has none: Plan joins those lines.
	CallID string `json:"callId,omitempty"`
	// Principal is who the API server says the caller is, Actor what is recorded
	// in the object.
	Principal    string `json:"principal,omitempty"`
	Actor        string `json:"actor,omitempty"`
	Client       string `json:"client,omitempty"`
	ConfirmedVia string `json:"confirmedVia,omitempty"`
	// Object is Kind/namespace/name.
	Object string `json:"object,omitempty"`
	// Plan is the plan's digest, Title its one line.
	Plan  string `json:"plan,omitempty"`
	Title string `json:"title,omitempty"`
	// Code and Reason are the error's.
	Code    string `json:"code,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Bounds in characters.
const (
	maxField   = 300
	maxMessage = 500
)

// Log appends to one file. A nil *Log is valid and drops everything. It is
// safe for concurrent use.
type Log struct {
	path string
	mu   sync.Mutex
	file *os.File
	// torn: the last line was not written whole, so that the next one starts
	// with an end of line.
	torn bool
}

// Default returns where the log goes unless told otherwise:
// $XDG_STATE_HOME/hecate-mcp/writes.jsonl, else below ~/.local/state.
func Default() (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("no place for the log of writes: %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "hecate-mcp", "writes.jsonl"), nil
}

// Open opens the file to append, and makes it (0600) and its folder (0700)
// when they are not there. A symbolic link, or anything else that is not a
// regular file, is refused.
func Open(path string) (*Log, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("log of writes: %w", err)
	}
	// Looked at before it is opened, since opening makes a link's target and
	// waits on a pipe, and after, since it may have been swapped meanwhile.
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, notRegular(path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("log of writes: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log of writes: %w", err)
	}
	torn, err := inspect(path, file)
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Log{path: path, file: file, torn: torn}, nil
}

// inspect checks that file is what path names, and tells whether its last line
// lacks an end.
func inspect(path string, file *os.File) (torn bool, err error) {
	named, err := os.Lstat(path)
	if err != nil {
		return false, fmt.Errorf("log of writes: %w", err)
	}
	opened, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("log of writes: %w", err)
	}
	if !named.Mode().IsRegular() || !os.SameFile(named, opened) {
		return false, notRegular(path)
	}
	if opened.Size() == 0 {
		return false, nil
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], opened.Size()-1); err != nil {
		return false, fmt.Errorf("log of writes: %w", err)
	}
	return last[0] != '\n', nil
}

func notRegular(path string) error {
	return fmt.Errorf("log of writes: %s is a symbolic link or no regular file", path)
}

// Path returns the file's path, "" for a nil Log.
func (l *Log) Path() string {
	if l == nil {
		return ""
	}
	return l.path
}

// Write appends one line and makes sure that it reached the disk. After an
// error the line may be there in part or not at all: whoever must not act
// unrecorded has to stop.
func (l *Log) Write(e Entry) error {
	if l == nil {
		return nil
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	e.Time = e.Time.UTC().Truncate(time.Millisecond)
	for _, f := range []*string{&e.Tool, &e.CallID, &e.Principal, &e.Actor, &e.Client, &e.ConfirmedVia, &e.Object, &e.Plan, &e.Title, &e.Code, &e.Reason} {
		*f = plain(*f, maxField)
	}
	e.Message = plain(e.Message, maxMessage)
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("log of writes: %w", err)
	}
	line = append(line, '\n')

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	// One call, at the end of the file wherever that is by now: lines of several
	// processes never mix.
	n, err := l.file.Write(line)
	if err != nil {
		l.torn = l.torn || n > 0
		return fmt.Errorf("log of writes: %w", err)
	}
	l.torn = false
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("log of writes: %w", err)
	}
	return nil
}

// Close closes the file.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	return l.file.Close()
}

// plain keeps a field a bounded line of text that is harmless to print.
func plain(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if utf8.RuneCountInString(s) > max {
		s = string([]rune(s)[:max-1]) + "…"
	}
	return s
}
