package ops

import (
	"regexp"
	"strings"
	"unicode"
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
	runes := []rune(plainText(s))
	if len(runes) <= max {
		return string(runes)
	}
	return strings.TrimRight(string(runes[:max-1]), " ") + "…"
}

// maxCause bounds what is looked through for the end of an error's text, in bytes.
const maxCause = 64 << 10

// cleanCause is clean for the text of an error: a long one loses its middle, since
// each that passes an error on writes before it, and the cause stands at the end.
func cleanCause(s string, max int) string {
	if len(s) > maxCause {
		return clean(s, max)
	}
	runes := []rune(plainText(s))
	if len(runes) <= max {
		return string(runes)
	}
	head := max / 3
	tail := max - head - 3
	return strings.TrimRight(string(runes[:head]), " ") + " … " + strings.TrimLeft(string(runes[len(runes)-tail:]), " ")
}

// plainText is s masked, on one line and without what is not to be shown.
func plainText(s string) string {
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
	return maskText(b.String())
}
