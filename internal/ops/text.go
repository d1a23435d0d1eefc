package ops

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ansi matches terminal escape sequences: CSI, OSC and the two-character ones.
var ansi = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)?|[@-Z\\\\-_])|\u009b[0-?]*[ -/]*[@-~]")

// clean makes free text that somebody else wrote safe to show: secrets are
// masked, ANSI, control, bidirectional and other invisible format characters
// are dropped, white space is folded into single spaces, and what is longer
// than max characters ends in an ellipsis.
func clean(s string, max int) string {
	// Nothing far beyond the bound can be shown, and a mask must see the start.
	if limit := 8*max + 1024; len(s) > limit {
		s = s[:limit]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = ansi.ReplaceAllString(s, "")
	var b strings.Builder
	space := false
	for _, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Co, r):
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	out := maskText(b.String())
	if utf8.RuneCountInString(out) <= max {
		return out
	}
	runes := []rune(out)
	return strings.TrimRight(string(runes[:max-1]), " ") + "…"
}
