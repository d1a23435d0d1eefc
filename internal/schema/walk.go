package schema

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxViolations bounds what is said of one object: a hostile one could hold
// millions of wrong fields.
const maxViolations = 64

// walker compares an object with a schema and notes every difference. The path
// is a stack: it costs nothing while nothing is wrong.
type walker struct {
	path   []step
	out    []Violation
	secret bool // no value may be repeated
	custom bool // the object is of a custom kind
}

// step is a field, or an item when the key is "" and item is set.
type step struct {
	key  string
	i    int
	item bool
}

func (w *walker) pointer() string {
	var b strings.Builder
	for _, s := range w.path {
		b.WriteByte('/')
		if s.item {
			b.WriteString(strconv.Itoa(s.i))
		} else {
			b.WriteString(escape(s.key))
		}
	}
	return b.String()
}

func (w *walker) full() bool { return len(w.out) >= maxViolations }

func (w *walker) note(code, rule, message string) {
	w.noteAt(code, Fail, w.pointer(), rule, message)
}

func (w *walker) noteAt(code, severity, pointer, rule, message string) {
	if !w.full() {
		w.out = append(w.out, Violation{Code: code, Field: pointer, Rule: rule, Message: message, Severity: severity})
	}
}

// wrong notes a value of another type than the wanted one.
func (w *walker) wrong(n *node, v any) {
	msg := fmt.Sprintf("is %s where %s is wanted", typeOf(v), formNames[n.form])
	if n.form == text {
		switch v.(type) {
		case map[string]any, []any:
		default:
			msg += ": put it in quotes"
		}
	}
	w.note(WrongType, "type", msg)
}

// value compares one value. A null field never comes here: the API server
// drops it.
func (w *walker) value(n *node, v any) {
	switch n.form {
	case anything:
	case object:
		m, ok := v.(map[string]any)
		if !ok {
			w.wrong(n, v)
			return
		}
		w.object(n, m)
	case array:
		l, ok := v.([]any)
		if !ok {
			w.wrong(n, v)
			return
		}
		w.list(n, l)
	case text:
		s, ok := v.(string)
		if !ok {
			w.wrong(n, v)
			return
		}
		if n.format != plain {
			w.text(n, s)
		}
	case whole:
		i, ok := integer(v)
		if !ok {
			if f, isNumber := number(v); !isNumber || f == math.Trunc(f) && math.Abs(f) < 1<<63 {
				w.wrong(n, v)
			} else {
				w.note(WrongType, "type", "is a number with a fraction, or too large, where an integer is wanted")
			}
			return
		}
		if n.format == int32s && (i > math.MaxInt32 || i < math.MinInt32) {
			w.note(InvalidValue, "format: int32", fmt.Sprintf("is out of range: %d to %d are possible", math.MinInt32, math.MaxInt32))
		}
	case decimal:
		if _, ok := number(v); !ok {
			w.wrong(n, v)
		}
	case boolean:
		if _, ok := v.(bool); !ok {
			w.wrong(n, v)
		}
	case intOrString:
		if _, ok := v.(string); ok {
			return
		}
		if _, ok := integer(v); !ok {
			w.wrong(n, v)
		}
	case quantity:
		if s, ok := v.(string); ok {
			if !isQuantity(strings.TrimSpace(s)) {
				w.note(InvalidValue, "quantity", w.quoted("is", v, "no quantity: a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei, like 500m, 1.5 or 2Gi"))
			}
			return
		}
		if _, ok := number(v); !ok {
			w.wrong(n, v)
		}
	}
}

// quoted puts a short value into a sentence, unless it could be secret.
func (w *walker) quoted(before string, v any, after string) string {
	if s := scalar(v); s != "" && !w.secret {
		return before + " " + s + ", " + after
	}
	return before + " " + after
}

func (w *walker) text(n *node, s string) {
	switch n.format {
	case base64s:
		// No value is quoted here: bytes are mostly secrets.
		if !isBase64(s) {
			w.note(InvalidValue, "format: byte", "is not base64: encode the value, or put it as plain text under stringData in a Secret")
		}
	case dateTime:
		if _, err := time.Parse(time.RFC3339, s); err != nil {
			w.note(InvalidValue, "format: date-time", w.quoted("is", s, "no time: one like 2006-01-02T15:04:05Z is wanted"))
		}
	}
}

func isBase64(s string) bool {
	_, err := base64.StdEncoding.DecodeString(s)
	return err == nil
}

func (w *walker) object(n *node, m map[string]any) {
	for _, r := range n.required {
		if m[r] == nil {
			w.noteAt(MissingField, Fail, child(w.pointer(), r), "required", fmt.Sprintf("%s is required", r))
		}
	}
	at := len(w.path)
	w.path = append(w.path, step{})
	for k, v := range m {
		if w.full() {
			break
		}
		w.path[at].key = k
		p := n.props[k]
		if p == nil {
			if n.strict {
				w.note(UnknownField, "additionalProperties", unknownField(k, w.custom, append([]string(nil), n.fields...)))
				continue
			}
			if p = n.extra; p == nil {
				continue
			}
		}
		if v != nil {
			w.value(p, v)
		}
	}
	w.path = w.path[:at]
}

func (w *walker) list(n *node, l []any) {
	if n.items != nil {
		at := len(w.path)
		w.path = append(w.path, step{item: true})
		for i, v := range l {
			if w.full() {
				break
			}
			w.path[at].i = i
			if v == nil {
				// Decoded as an empty item, which few mean.
				w.noteAt(WrongType, Warn, w.pointer(), "type", fmt.Sprintf("is null where %s is wanted", formNames[n.items.form]))
				continue
			}
			w.value(n.items, v)
		}
		w.path = w.path[:at]
	}
	if len(l) > 1 && (n.set || n.mapKeys != nil) {
		w.distinct(n, l)
	}
}

// distinct notes items that server-side apply can't tell apart: it refuses the
// object, repeated variables and ports too, which a create lets pass.
func (w *walker) distinct(n *node, l []any) {
	same := func(a, b any) bool { return a != nil && equal(a, b) }
	if n.mapKeys != nil {
		same = func(a, b any) bool {
			x, ok := a.(map[string]any)
			y, ok2 := b.(map[string]any)
			return ok && ok2 && sameItem(n.mapKeys, x, y)
		}
	}
	var seen map[string]int
	if len(l) > 8 {
		seen = make(map[string]int, len(l))
	}
	for i := 1; i < len(l); i++ {
		first := -1
		if seen == nil {
			for j := 0; j < i; j++ {
				if same(l[j], l[i]) {
					first = j
					break
				}
			}
		} else {
			// Long lists: by text, so that the time stays linear.
			if i == 1 {
				seen[identity(n.mapKeys, l[0])] = 0
			}
			id := identity(n.mapKeys, l[i])
			if j, ok := seen[id]; ok && same(l[j], l[i]) {
				first = j
			} else {
				seen[id] = i
			}
		}
		if first < 0 {
			continue
		}
		what := "the value"
		if n.mapKeys != nil {
			var keys []string
			for _, k := range n.mapKeys {
				keys = append(keys, k.name)
			}
			what = strings.Join(keys, " and ")
		}
		w.noteAt(InvalidValue, Fail, index(w.pointer(), i), "x-kubernetes-list-type",
			fmt.Sprintf("has the same %s as item %d of the list: each item needs its own", what, first))
	}
}

// sameItem compares the keys of two items; an item without any of them is no
// item that this can judge.
func sameItem(keys []key, a, b map[string]any) bool {
	some := false
	for _, k := range keys {
		x, y := a[k.name], b[k.name]
		some = some || x != nil
		if x == nil {
			x = k.standard
		}
		if y == nil {
			y = k.standard
		}
		if !equal(x, y) {
			return false
		}
	}
	return some
}

// identity is equal for equal items; the converse is checked by sameItem.
func identity(keys []key, v any) string {
	m, ok := v.(map[string]any)
	if !ok || keys == nil {
		return scalar(v)
	}
	var b strings.Builder
	for _, k := range keys {
		x := m[k.name]
		if x == nil {
			x = k.standard
		}
		b.WriteString(scalar(x))
		b.WriteByte(0)
	}
	return b.String()
}

// equal compares scalars; other values are never equal here.
func equal(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return ok && x == y
	case bool:
		y, ok := b.(bool)
		return ok && x == y
	}
	x, ok := number(a)
	y, ok2 := number(b)
	return ok && ok2 && x == y
}
