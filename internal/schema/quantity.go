package schema

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

var suffixes = map[string]bool{"": true, "n": true, "u": true, "m": true, "k": true, "M": true, "G": true, "T": true, "P": true, "E": true,
	"Ki": true, "Mi": true, "Gi": true, "Ti": true, "Pi": true, "Ei": true}

// isQuantity tells whether a text is a quantity, by its grammar: the parser of
// the API machinery computes powers of ten that a hostile text may choose. As
// there, no digits at all mean zero.
func isQuantity(s string) bool {
	i := 0
	if s == "" {
		return false
	}
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	for dot := false; i < len(s); i++ {
		if s[i] == '.' && !dot {
			dot = true
		} else if s[i] < '0' || s[i] > '9' {
			break
		}
	}
	rest := s[i:]
	if suffixes[rest] {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent := strings.TrimLeft(rest[1:], "+-")
	if exponent == "" || len(rest)-len(exponent) > 2 || len(exponent) > 9 {
		return false
	}
	return strings.Trim(exponent, "0123456789") == ""
}

// parsed is the amount of a quantity that is short enough to compute with.
func parsed(v any) (resource.Quantity, bool) {
	s, ok := v.(string)
	if !ok {
		if _, isNumber := number(v); !isNumber {
			return resource.Quantity{}, false
		}
		s = scalar(v)
	}
	s = strings.TrimSpace(s)
	if i := strings.LastIndexAny(s, "eE"); len(s) > 32 || i >= 0 && len(s)-i > 4 || !isQuantity(s) {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(s)
	return q, err == nil
}
