package schema

import (
	"encoding/json"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// maxNames bounds the lists in messages: a reader looks for one name.
const maxNames = 24

// meant begins a suggestion.
const meant = "did you mean "

// nearest is the candidate that a mistyped name most likely means, "" when none
// is near. Candidates are sorted first: the answer does not depend on a map.
func nearest(name string, candidates []string) string {
	if len(name) > 64 {
		return ""
	}
	best, at := "", len(name)/3+1
	for _, c := range candidates {
		d := distance(strings.ToLower(name), strings.ToLower(c))
		if d < at || d == at && best == "" {
			best, at = c, d
		}
	}
	return best
}

// distance is the number of edits between two names, a swap of neighbours
// counting as one.
func distance(a, b string) int {
	if len(b) > 64 {
		return len(b)
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}

// names joins a bounded list.
func names(list []string) string {
	if len(list) <= maxNames {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:maxNames], ", ") + fmt.Sprintf(" and %d more", len(list)-maxNames)
}

// unknownField says that a field does not exist, what becomes of it when Flux applies
// the object, and which do exist. The API server decodes a built-in kind into a type
// that has no place for the field; a custom kind it holds to its schema.
func unknownField(key string, custom bool, valid []string) string {
	fate := "it is dropped without a word"
	if custom {
		fate = "the API server refuses the object"
	}
	sort.Strings(valid)
	msg := fmt.Sprintf("there is no field %s here: %s", short(key), fate)
	if n := nearest(key, valid); n != "" {
		msg += "; " + meant + n + "?"
	}
	if len(valid) > 0 {
		return msg + " Valid: " + names(valid)
	}
	return msg
}

// short quotes a text that may be long or hold control characters.
func short(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strconv.Quote(s)
}

// scalar quotes a value for a message, "" when it is no short scalar.
func scalar(v any) string {
	switch x := v.(type) {
	case string:
		return short(x)
	case bool:
		return strconv.FormatBool(x)
	case int, int32, int64, uint64, json.Number:
		return fmt.Sprint(x)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	return ""
}

// typeOf names the JSON type of a value.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	if _, ok := integer(v); ok {
		return "an integer"
	}
	if _, ok := number(v); ok {
		return "a number"
	}
	return "no JSON value"
}

// integer is the value of a number without fraction, however it was decoded.
func integer(v any) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case int:
		return int64(x), true
	case int32:
		return int64(x), true
	case uint64:
		return int64(x), x < 1<<63
	case float64:
		if x == float64(int64(x)) && x > -(1<<62) && x < 1<<62 {
			return int64(x), true
		}
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i, true
		}
		if f, err := x.Float64(); err == nil {
			return integer(f)
		}
	}
	return 0, false
}

// number is the value of any number.
func number(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case float32:
		return float64(x), true
	case uint64:
		return float64(x), true
	case json.Number:
		f, err := x.Float64()
		return f, err == nil
	}
	i, ok := integer(v)
	return float64(i), ok
}
