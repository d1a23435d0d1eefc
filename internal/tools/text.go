package tools

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

// Writer prints an answer for people: no colour unless told, since the reader
// may be a file.
type Writer struct {
	out   io.Writer
	color bool
	err   error
	// Source are the flags that say where the data comes from: a command that
	// is offered has to ask the same source.
	Source string
}

// NewWriter returns a Writer; color is for terminals only.
func NewWriter(out io.Writer, color bool) *Writer { return &Writer{out: out, color: color} }

// Text prints the answer of a call.
func (t Tool) Text(w *Writer, a Answer) error {
	if a.Err != nil {
		w.Error(a.Err)
		return w.err
	}
	t.text(w, a.Out)
	return w.err
}

const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	grey   = "90"
)

func (w *Writer) paint(code, s string) string {
	if !w.color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Line prints one line without what is blank at its end: a value may be empty.
func (w *Writer) Line(format string, args ...any) {
	w.print(strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// print keeps the first failing write, which ends the printing.
func (w *Writer) print(line string) {
	if w.err == nil {
		_, w.err = fmt.Fprintln(w.out, line)
	}
}

// Summary prints the line that stands alone, as the JSON has it.
func (w *Writer) Summary(s string) { w.print(w.paint(bold, s)) }

// Head starts a section.
func (w *Writer) Head(s string) { w.Line("\n%s", w.paint(bold, s)) }

// Fact prints a named value, nothing when it is empty.
func (w *Writer) Fact(name, value string) {
	if strings.TrimSpace(value) != "" {
		w.Line("  %s %s", w.paint(grey, name+":"), value)
	}
}

// Item prints an entry of a section.
func (w *Writer) Item(format string, args ...any) { w.Line("  - "+format, args...) }

// Sub prints a line below an entry.
func (w *Writer) Sub(format string, args ...any) { w.Line("      "+format, args...) }

// Row prints a line of a list.
func (w *Writer) Row(format string, args ...any) { w.Line("  "+format, args...) }

// Code paints a code.
func (w *Writer) Code(s string) string { return w.paint(cyan, s) }

// State paints a State by how much it asks for attention.
func (w *Writer) State(s ops.State) string {
	switch s {
	case ops.StateFailed:
		return w.paint(red, string(s))
	case ops.StateBlocked, ops.StateReady:
		return w.paint(yellow, string(s))
	case ops.StateIdle:
		return w.paint(green, string(s))
	default:
		return w.paint(cyan, string(s))
	}
}

// Error prints a coded error.
func (w *Writer) Error(e *Error) {
	head := string(e.Code)
	if e.Reason != "" {
		head += " (" + e.Reason + ")"
	}
	w.Line("%s: %s", w.paint(red, head), e.Message)
	if e.Detail != "" {
		w.Line("  %s", e.Detail)
	}
	for _, c := range e.Candidates {
		w.Item("%s %s", c.Kind, strings.TrimPrefix(c.Namespace+"/"+c.Name, "/"))
	}
	w.tail(nil, nil, e.NextSteps, e.HumanSteps)
}

func (w *Writer) more(truncated bool, cursor string) {
	if truncated {
		w.Line("  more: the same call with --arg cursor=%s", cursor)
	}
}

// result prints the common part of an answer.
func (w *Writer) result(r Result, human ...ops.HumanStep) {
	var warnings []ops.Warning
	for _, x := range r.Warnings {
		warnings = append(warnings, ops.Warning(x))
	}
	var incomplete []ops.Incomplete
	for _, x := range r.Incomplete {
		incomplete = append(incomplete, ops.Incomplete(x))
	}
	w.tail(warnings, incomplete, r.NextSteps, human)
}

// tail prints what every answer ends with.
func (w *Writer) tail(warnings []ops.Warning, incomplete []ops.Incomplete, next []ops.NextStep, human []ops.HumanStep) {
	for _, x := range warnings {
		w.Line("%s %s: %s", w.paint(yellow, "warning"), x.Kind, x.Detail)
	}
	for _, x := range incomplete {
		w.Line("%s %s %s: %s", w.paint(yellow, "could not read"), x.Object.Kind, strings.Trim(x.Object.Namespace+"/"+x.Object.Name, "/"), x.Detail)
	}
	seen := map[string]bool{}
	once := func(s string) bool {
		first := !seen[s]
		seen[s] = true
		return first
	}
	heading := false
	head := func() {
		if !heading {
			heading = true
			w.Head("what to do next")
		}
	}
	for _, h := range human {
		if once(h.Command) {
			head()
			command := h.Command
			if strings.HasPrefix(command, "hecate-mcp ") {
				command += w.Source
			}
			w.Item("%s", command)
			w.Sub("%s", w.paint(grey, h.Why))
		}
	}
	for _, n := range next {
		call := "hecate-mcp call " + n.Tool + w.Source
		for _, k := range sortedKeys(n.Arguments) {
			call += " --arg " + k + "=" + n.Arguments[k]
		}
		if once(call) {
			head()
			w.Item("%s", call)
			w.Sub("%s", w.paint(grey, n.Why))
		}
	}
}

func sortedKeys(m map[string]string) []string {
	any := make(map[string]any, len(m))
	for k := range m {
		any[k] = nil
	}
	return sorted(any)
}

// Table prints aligned columns; a column that is empty in every row is left out.
type Table struct {
	w    *Writer
	head []string
	rows [][]string
}

// Table starts a table.
func (w *Writer) Table(head ...string) *Table { return &Table{w: w, head: head} }

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Flush prints the table, nothing when it has no row.
func (t *Table) Flush() {
	if len(t.rows) == 0 || t.w.err != nil {
		return
	}
	var used []int
	for i := range t.head {
		for _, r := range t.rows {
			if r[i] != "" {
				used = append(used, i)
				break
			}
		}
	}
	var b strings.Builder
	tw := tabwriter.NewWriter(&b, 2, 4, 2, ' ', 0)
	for _, r := range append([][]string{t.head}, t.rows...) {
		for n, i := range used {
			sep := "\t"
			if n == len(used)-1 {
				sep = "\n"
			}
			if _, err := fmt.Fprint(tw, r[i]+sep); err != nil {
				t.w.err = err
				return
			}
		}
	}
	if t.w.err = tw.Flush(); t.w.err != nil {
		return
	}
	for line := range strings.Lines(b.String()) {
		t.w.Line("%s", strings.TrimSuffix(line, "\n"))
	}
}
