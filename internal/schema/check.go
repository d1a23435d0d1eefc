package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// rule is what the API server checks beyond the schema. Rules are conservative:
// they pass over what they don't understand, the schema has told it already.
type rule func(c *checker, obj map[string]any)

// checker runs rules and notes what they find.
type checker struct {
	*walker
	id         gvk
	namespaced bool
}

// place is where a rule looks: a chain on the stack, so that a path costs
// nothing while nothing is wrong.
type place struct {
	up  *place
	key string
	i   int // of an item, when there is no key
}

func (p *place) in(key string) place { return place{up: p, key: key} }
func (p *place) at(i int) place      { return place{up: p, i: i} }

// pointer is the JSON pointer of the place and a field below it.
func (p *place) pointer(fields ...string) string {
	var steps []string
	for q := p; q != nil; q = q.up {
		if q.key != "" {
			steps = append(steps, escape(q.key))
		} else {
			steps = append(steps, strconv.Itoa(q.i))
		}
	}
	slices.Reverse(steps)
	for _, f := range fields {
		steps = append(steps, escape(f))
	}
	if len(steps) == 0 {
		return ""
	}
	return "/" + strings.Join(steps, "/")
}

func (c *checker) missing(p *place, key, rule, why string) {
	c.noteAt(MissingField, Fail, p.pointer(key), rule, key+" is required"+why)
}

func (c *checker) invalid(p *place, key, rule, message string) {
	if key == "" {
		c.noteAt(InvalidValue, Fail, p.pointer(), rule, message)
		return
	}
	c.noteAt(InvalidValue, Fail, p.pointer(key), rule, message)
}

// enum notes a text that is none of the allowed ones. An empty text is one
// that is not set.
func (c *checker) enum(p *place, m map[string]any, key string, allowed ...string) {
	s, ok := m[key].(string)
	if !ok || s == "" || slices.Contains(allowed, s) {
		return
	}
	msg := c.quoted("is", s, "none of the possible values")
	if n := nearest(s, allowed); n != "" && !c.secret {
		msg += fmt.Sprintf("; did you mean %s?", n)
	}
	c.invalid(p, key, "enum", msg+" Valid: "+strings.Join(allowed, ", "))
}

// between notes an integer out of a range.
func (c *checker) between(p *place, m map[string]any, key string, low, high int64) {
	if i, ok := integer(m[key]); ok && (i < low || i > high) {
		c.invalid(p, key, "range", c.quoted("is", m[key], fmt.Sprintf("%d to %d are possible", low, high)))
	}
}

// natural notes negative integers.
func (c *checker) natural(p *place, m map[string]any, keys ...string) {
	for _, key := range keys {
		if i, ok := integer(m[key]); ok && i < 0 {
			c.invalid(p, key, "minimum", c.quoted("is", m[key], "0 or more is wanted"))
		}
	}
}

// percent notes a text that is neither a number nor a percentage, and what is
// below zero. It returns the number when it is one and known.
func (c *checker) percent(p *place, m map[string]any, key string) (value int64, known bool) {
	if s, ok := m[key].(string); ok {
		digits, isPercent := strings.CutSuffix(s, "%")
		if !isPercent || digits == "" || strings.Trim(digits, "0123456789") != "" {
			c.invalid(p, key, "percent", c.quoted("is", s, "a number without quotes or a percentage like 25% is wanted"))
			return 0, false
		}
		n, err := strconv.ParseInt(digits, 10, 32)
		return n, err == nil
	}
	c.natural(p, m, key)
	return integer(m[key])
}

// share is percent where more than all is not possible.
func (c *checker) share(p *place, m map[string]any, key string) (value int64, known bool) {
	value, known = c.percent(p, m, key)
	if _, isText := m[key].(string); isText && known && value > 100 {
		c.invalid(p, key, "percent", fmt.Sprintf("is %d%%: 100%% is the most", value))
	}
	return value, known
}

// only notes members of a union when there are more than one. It returns how
// many there are.
func (c *checker) only(p *place, m map[string]any, keys ...string) int {
	var have []string
	for _, k := range keys {
		if m[k] != nil {
			have = append(have, k)
		}
	}
	if len(have) > 1 {
		c.invalid(p, have[1], "oneOf", fmt.Sprintf("only one of %s is possible", strings.Join(have, ", ")))
	}
	return len(have)
}

// sub is the object at a path, nil when there is none.
func sub(m map[string]any, keys ...string) map[string]any {
	for _, k := range keys {
		m, _ = m[k].(map[string]any)
	}
	return m
}

// objects calls for every object of a list.
func objects(p *place, m map[string]any, key string, do func(p *place, item map[string]any)) {
	l, _ := m[key].([]any)
	if len(l) == 0 {
		return
	}
	in := p.in(key)
	for i, v := range l {
		if item, ok := v.(map[string]any); ok {
			at := in.at(i)
			do(&at, item)
		}
	}
}

// within calls for an object where there is one.
func within(p *place, m map[string]any, key string, do func(p *place, m map[string]any)) {
	if x, ok := m[key].(map[string]any); ok {
		in := p.in(key)
		do(&in, x)
	}
}

// demand is within for an object that must be there.
func (c *checker) demand(p *place, m map[string]any, key string, do func(p *place, m map[string]any)) {
	if m[key] == nil {
		c.missing(p, key, "required", "")
	}
	within(p, m, key, do)
}

func str(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}
