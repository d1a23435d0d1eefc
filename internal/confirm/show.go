package confirm

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is shown, in characters and lines. A form is a small dialog;
// a terminal scrolls.
const (
	maxTitle         = 200
	maxLine          = 300
	maxFormLines     = 40
	maxFormText      = 4000
	maxTerminalLines = 400
	maxName          = 253
	maxClient        = 80
)

// escapes matches terminal escape sequences.
var escapes = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)?|[@-Z\\\\-_])|\u009b[0-?]*[ -/]*[@-~]")

// plain makes a line safe to show: no escape sequences, no control or
// invisible format characters, at most max characters. Spaces stay, since
// they indent.
func plain(s string, max int) string {
	if limit := 8*max + 1024; len(s) > limit {
		s = s[:limit]
	}
	s = escapes.ReplaceAllString(strings.ToValidUTF8(s, "\uFFFD"), "")
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			return -1
		}
		return r
	}, s)
	s = strings.TrimRight(s, " ")
	if utf8.RuneCountInString(s) > max {
		s = string([]rune(s)[:max-1]) + "…"
	}
	return s
}

// shown is a plan as people see it.
type shown struct {
	title string
	lines []string
	// hidden counts the lines that did not fit.
	hidden int
	name   string
}

func show(p Plan) shown {
	s := shown{title: plain(p.Title(), maxTitle), name: plain(p.Confirm(), maxName)}
	lines := p.Lines()
	if len(lines) > maxTerminalLines {
		s.hidden = len(lines) - maxTerminalLines
		lines = lines[:maxTerminalLines]
	}
	for _, l := range lines {
		s.lines = append(s.lines, plain(l, maxLine))
	}
	return s
}

// form is the message of an elicitation: the plan's words and this server's,
// never the model's.
func (s shown) form() string {
	var b strings.Builder
	b.WriteString(s.title + "\n\n")
	for i, l := range s.lines {
		if i == maxFormLines || utf8.RuneCountInString(b.String())+utf8.RuneCountInString(l) > maxFormText {
			fmt.Fprintf(&b, "… %d more lines do not fit here: decline unless you know them\n", len(s.lines)-i+s.hidden)
			break
		}
		b.WriteString(l + "\n")
	}
	b.WriteString("\nNothing has been done yet. To have exactly this done, once, set \"confirm\" and accept.")
	return b.String()
}
