package tools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"k8s.io/apimachinery/pkg/util/validation"
)

// maxArguments bounds the arguments of one call, in bytes.
const maxArguments = 64 << 10

// maxCursor bounds a cursor: those that are given out are far shorter.
const maxCursor = 2048

// maxActor bounds the name of an actor, in characters.
const maxActor = 320

// compile makes the validator of a schema and lists its properties in order.
func compile(name string, schema json.RawMessage) (*jsonschema.Schema, []string) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	url := "mem:///" + name
	if err := c.AddResource(url, doc); err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	compiled, err := c.Compile(url)
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	var arguments []string
	for p := range compiled.Properties {
		arguments = append(arguments, p)
	}
	slices.SortFunc(arguments, func(a, b string) int { return cmp.Compare(a, b) })
	return compiled, arguments
}

var english = message.NewPrinter(language.English)

// validate refuses arguments that are not of the schema's form, saying what is
// valid. Values of arguments are not repeated beyond their first characters.
func (t Tool) validate(args json.RawMessage) *Error {
	if len(args) > maxArguments {
		return &Error{Code: TooLarge, Message: fmt.Sprintf("the arguments have %d bytes; at most %d are allowed", len(args), maxArguments)}
	}
	if !utf8.Valid(args) {
		return invalid("the arguments are not UTF-8")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return invalid("the arguments are not JSON: %v", err)
	}
	if twice := duplicateKey(args); twice != "" {
		return invalid("argument %s is given twice", quote(twice))
	}
	object, ok := doc.(map[string]any)
	if !ok {
		e := invalid("the arguments have to be a JSON object")
		e.ValidValues = t.arguments
		return e
	}
	if err := t.input.Validate(doc); err != nil {
		var ve *jsonschema.ValidationError
		if !asValidation(err, &ve) {
			return invalid("%v", err)
		}
		return t.explainInvalid(ve)
	}
	for _, name := range sorted(object) {
		if s, ok := object[name].(string); ok {
			if e := checkString(name, s); e != nil {
				return e
			}
		}
	}
	return nil
}

// duplicateKey is the first key that stands twice at the top of a JSON object:
// a decoder would take the last one in silence.
func duplicateKey(args json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(args))
	seen := map[string]bool{}
	for depth := 0; ; {
		t, err := d.Token()
		if err != nil {
			return ""
		}
		switch t := t.(type) {
		case json.Delim:
			if t == '{' || t == '[' {
				depth++
			} else {
				depth--
			}
		case string:
			if depth != 1 {
				continue
			}
			if seen[t] {
				return t
			}
			seen[t] = true
			// The value belongs to the key.
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				return ""
			}
		}
	}
}

func sorted(m map[string]any) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func asValidation(err error, target **jsonschema.ValidationError) bool {
	ve, ok := err.(*jsonschema.ValidationError)
	*target = ve
	return ok
}

// explainInvalid turns the first cause into a message that names what is valid.
func (t Tool) explainInvalid(ve *jsonschema.ValidationError) *Error {
	for len(ve.Causes) > 0 {
		ve = ve.Causes[0]
	}
	where := strings.Join(ve.InstanceLocation, ".")
	switch k := ve.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		names := slices.Clone(k.Properties)
		slices.Sort(names)
		for i, n := range names {
			names[i] = quote(n)
		}
		e := invalid("%s: unknown argument %s; valid are: %s", t.Name, strings.Join(names, ", "), strings.Join(t.arguments, ", "))
		e.ValidValues = t.arguments
		return e
	case *kind.Required:
		e := invalid("%s: argument %s is required", t.Name, strings.Join(k.Missing, ", "))
		e.ValidValues = t.arguments
		return e
	case *kind.Enum:
		e := invalid("%s: %s is not valid", where, quote(fmt.Sprint(k.Got)))
		for _, w := range k.Want {
			e.ValidValues = append(e.ValidValues, fmt.Sprint(w))
		}
		e.Message += "; valid are: " + strings.Join(e.ValidValues, ", ")
		return e
	case *kind.Type:
		e := invalid("%s: got %s, want %s", where, k.Got, strings.Join(k.Want, " or "))
		e.ValidValues = k.Want
		return e
	case *kind.Format:
		return invalid("%s: %s is not an RFC 3339 time, such as 2026-11-30T14:00:00Z", where, quote(fmt.Sprint(k.Got)))
	default:
		return invalid("%s: %s", where, ve.ErrorKind.LocalizedString(english))
	}
}

// quote shows a value that somebody sent: bounded, and without what a terminal
// or a model could trip over.
func quote(s string) string {
	if len(s) > 40 {
		s = strings.ToValidUTF8(s[:40], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}

// checkString checks a string by the argument's name: names of objects have to
// be names that Kubernetes allows, so that nothing else reaches a request.
func checkString(name, s string) *Error {
	if s == "" {
		return invalid("%s is empty: leave it out, or give a value", name)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		return invalid("%s: %s is not a valid name: control characters are not allowed", name, quote(s))
	}
	var problems []string
	switch name {
	case "actor":
		if utf8.RuneCountInString(s) > maxActor {
			problems = []string{fmt.Sprintf("at most %d characters", maxActor)}
		}
	case "gate", "bundle", "passage", "beacon":
		problems = validation.IsDNS1123Subdomain(s)
		// Part of a name may end where a whole one may not.
		if name == "gate" && len(problems) > 0 && len(s) <= validation.DNS1123SubdomainMaxLength {
			problems = validation.IsDNS1123Subdomain(strings.Trim(s, "-."))
		}
	case "namespace":
		if s != allNamespaces {
			problems = validation.IsDNS1123Label(s)
		}
	case "cursor":
		if len(s) > maxCursor {
			problems = []string{fmt.Sprintf("at most %d characters", maxCursor)}
		}
	}
	if len(problems) == 0 {
		return nil
	}
	e := invalid("%s: %s is not a valid name", name, quote(s))
	if ns, rest, ok := strings.Cut(s, "/"); ok && name != "cursor" && len(validation.IsDNS1123Label(ns)) == 0 && len(validation.IsDNS1123Subdomain(rest)) == 0 {
		e = invalid("%s: %s is not a valid name: the namespace is an argument of its own", name, quote(s))
	}
	if name == "cursor" {
		e = invalid("cursor: too long")
	}
	e.Detail = strings.Join(problems, "; ")
	return e
}
