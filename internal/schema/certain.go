package schema

import (
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// certain is a schema compiled once for one question: is a value valid beyond
// doubt? The API machinery's validator builds itself anew for each field of each
// object; nearly all objects are valid and need none of what it can say. Where
// this says no, that one decides. It is a table of the common rules only: what it
// does not know is in doubt.
type certain struct {
	// doubt: the schema holds a rule that is not known here.
	doubt bool
	// types that are allowed; none means any.
	types []string

	properties map[string]*certain
	additional *certain // schema of the other properties, nil for any
	required   []string
	items      *certain
	all, any   []*certain

	enum    []string
	pattern *regexp.Regexp
	format  string
	min     map[string]int64 // by what is counted: length, items, properties
	max     map[string]int64
	low     *float64
	high    *float64
}

// What min and max count.
const (
	length     = "length"
	items      = "items"
	properties = "properties"
)

// exact bounds the integers that a float64 holds exactly.
const exact = 1 << 53

func newCertain(s *spec.Schema, depth int) *certain {
	c := &certain{types: s.Type, required: s.Required, format: s.Format, min: map[string]int64{}, max: map[string]int64{}, low: s.Minimum, high: s.Maximum}
	if depth > maxDepth || s.Not != nil || len(s.OneOf) > 0 || s.UniqueItems || s.MultipleOf != nil || len(s.PatternProperties) > 0 || len(s.Dependencies) > 0 ||
		s.AdditionalItems != nil || s.ExclusiveMinimum || s.ExclusiveMaximum || s.Ref.String() != "" {
		return &certain{doubt: true}
	}
	for _, b := range []struct {
		into  map[string]int64
		what  string
		bound *int64
	}{{c.min, length, s.MinLength}, {c.max, length, s.MaxLength}, {c.min, items, s.MinItems}, {c.max, items, s.MaxItems}, {c.min, properties, s.MinProperties}, {c.max, properties, s.MaxProperties}} {
		if b.bound != nil {
			b.into[b.what] = *b.bound
		}
	}
	for _, e := range s.Enum {
		text, ok := e.(string)
		if !ok {
			return &certain{doubt: true}
		}
		c.enum = append(c.enum, text)
	}
	if s.Pattern != "" {
		var err error
		if c.pattern, err = regexp.Compile(s.Pattern); err != nil {
			return &certain{doubt: true}
		}
	}
	if s.Items != nil {
		if s.Items.Schema == nil {
			return &certain{doubt: true}
		}
		c.items = newCertain(s.Items.Schema, depth+1)
	}
	if a := s.AdditionalProperties; a != nil {
		if !a.Allows && a.Schema == nil {
			return &certain{doubt: true}
		}
		if a.Schema != nil {
			c.additional = newCertain(a.Schema, depth+1)
		}
	}
	if len(s.Properties) > 0 {
		c.properties = make(map[string]*certain, len(s.Properties))
		for name, p := range s.Properties {
			c.properties[name] = newCertain(&p, depth+1)
		}
	}
	for i := range s.AllOf {
		c.all = append(c.all, newCertain(&s.AllOf[i], depth+1))
	}
	for i := range s.AnyOf {
		c.any = append(c.any, newCertain(&s.AnyOf[i], depth+1))
	}
	return c
}

// valid tells whether a value, as deepCopy makes it, is valid beyond doubt.
func (c *certain) valid(v any) bool {
	if c.doubt || !c.own(v) {
		return false
	}
	for _, s := range c.all {
		if !s.valid(v) {
			return false
		}
	}
	return len(c.any) == 0 || slices.ContainsFunc(c.any, func(s *certain) bool { return s.valid(v) })
}

func (c *certain) own(v any) bool {
	switch x := v.(type) {
	case map[string]any:
		if !c.takes("object") || c.enum != nil || !c.within(properties, len(x)) {
			return false
		}
		for _, name := range c.required {
			if _, ok := x[name]; !ok {
				return false
			}
		}
		for name, f := range x {
			s := c.properties[name]
			if s == nil {
				s = c.additional
			}
			if s != nil && !s.valid(f) {
				return false
			}
		}
		return true
	case []any:
		if !c.takes("array") || c.enum != nil || !c.within(items, len(x)) {
			return false
		}
		if c.items != nil {
			for _, f := range x {
				if !c.items.valid(f) {
					return false
				}
			}
		}
		return true
	case string:
		return c.takes("string") && c.within(length, utf8.RuneCountInString(x)) && (c.enum == nil || slices.Contains(c.enum, x)) &&
			(c.pattern == nil || c.pattern.MatchString(x)) && (!strfmt.Default.ContainsName(c.format) || strfmt.Default.Validates(c.format, x))
	case bool:
		return c.takes("boolean") && c.enum == nil && c.format == ""
	case int64:
		if -exact >= x || x >= exact || c.format == "int32" && int64(int32(x)) != x {
			return false
		}
		return (c.takes("integer") || c.takes("number")) && c.enum == nil && c.between(float64(x))
	case float64:
		return c.takes("number") && c.enum == nil && (c.format == "" || c.format == "double") && c.between(x)
	}
	return false // null, among others
}

func (c *certain) takes(t string) bool { return len(c.types) == 0 || slices.Contains(c.types, t) }

func (c *certain) within(what string, n int) bool {
	low, limited := c.min[what]
	if limited && int64(n) < low {
		return false
	}
	high, limited := c.max[what]
	return !limited || int64(n) <= high
}

func (c *certain) between(x float64) bool {
	return (c.low == nil || x >= *c.low) && (c.high == nil || x <= *c.high)
}
