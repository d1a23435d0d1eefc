package render

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fluxcd/pkg/envsubst"
	"github.com/fluxcd/pkg/envsubst/parse"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/locate"
)

// Vars are the values that postBuild puts into the objects of a Kustomization.
type Vars struct {
	// Values are the known ones, without line breaks.
	Values map[string]string
	// Unknown tells whether a name that has no value here may have one in the
	// cluster; nil means that none has.
	Unknown func(name string) bool
	// Always substitutes even without a single value.
	Always bool
}

// Taint is a place in an object that depends on a variable without a value here.
type Taint struct {
	// Pointer is the JSON pointer of the value.
	Pointer string
	// Variable is the name.
	Variable string
	// Known says that nothing can set the variable: Flux puts an empty text
	// there, and that is what the object holds.
	Known bool
}

// substituteKey is the label or annotation that keeps an object as it is.
const substituteKey = "kustomize.toolkit.fluxcd.io/substitute"

// variableName is what the controller accepts as a name.
var variableName = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// ValidVariable tells whether the controller accepts a name.
func ValidVariable(name string) bool { return variableName.MatchString(name) }

// Substitute puts variables into one object as kustomize-controller does after
// the build. An unknown variable stays in the object as ${NAME}, with a taint for
// each value that depends on it: found by substituting twice, with two different
// stand-ins, so that no operator on the variable hides it.
//
// The error is what makes the controller fail: a name of a variable that is not
// allowed, an expression that can't be parsed, text that is no YAML afterwards.
func Substitute(ctx context.Context, o Object, vars Vars) (Object, []Taint, error) {
	if err := ctx.Err(); err != nil {
		return o, nil, err
	}
	if len(vars.Values) == 0 && vars.Unknown == nil && !vars.Always {
		return o, nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(vars.Values)) {
		if !variableName.MatchString(name) {
			return o, nil, fmt.Errorf("the variable name %q is not allowed: it must match %s", name, variableName)
		}
	}
	if kept(o.JSON) {
		return o, nil, nil
	}
	// Without a dollar there is nothing to do, nor to unescape.
	if !bytes.ContainsRune(o.JSON, '$') {
		data, err := decoded(o.JSON)
		return Object{JSON: data, Origin: o.Origin}, nil, err
	}
	text, err := yaml.JSONToYAML(o.JSON)
	if err != nil {
		return o, nil, fmt.Errorf("object as YAML: %w", err)
	}
	tree, err := parse.Parse(string(text))
	if err != nil {
		return o, nil, fmt.Errorf("a variable expression can't be parsed: %w; write $$ for a dollar that is meant, or set the annotation %s: disabled", err, substituteKey)
	}
	if size := grownText(tree.Root, vars.Values); size > maxObject {
		return o, nil, fmt.Errorf("with its variables the object grows to more than %d bytes", maxObject)
	}
	used := map[string]bool{} // name → needs a value
	names(tree.Root, used)
	var unknown []string
	var taints []Taint
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if _, ok := vars.Values[name]; ok {
			continue
		}
		switch {
		case vars.Unknown != nil && vars.Unknown(name):
			unknown = append(unknown, name)
		case used[name]:
			taints = append(taints, Taint{Variable: name, Known: true})
		}
	}
	if len(unknown) == 0 {
		out, err := evaluate(string(text), vars.Values, nil)
		if err != nil {
			return o, nil, err
		}
		return Object{JSON: out, Origin: o.Origin}, taints, nil
	}
	one, two := stand("hecatemcpunset", unknown), stand("Zunknownhere", unknown)
	a, err := evaluate(string(text), vars.Values, one)
	if err != nil {
		return o, nil, err
	}
	b, err := evaluate(string(text), vars.Values, two)
	if err != nil {
		return o, nil, err
	}
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		return o, nil, fmt.Errorf("object after substitution: %w", err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		return o, nil, fmt.Errorf("object after substitution: %w", err)
	}
	d := differ{stand: one, names: unknown}
	x = d.walk("", x, y)
	out, err := json.Marshal(x)
	if err != nil {
		return o, nil, fmt.Errorf("object after substitution: %w", err)
	}
	return Object{JSON: out, Origin: o.Origin}, append(taints, d.taints...), nil
}

// kept tells whether an object is marked to stay as it is.
func kept(data []byte) bool {
	if !bytes.Contains(data, []byte(substituteKey)) {
		return false
	}
	var o struct {
		Metadata struct {
			Labels, Annotations map[string]any
		}
	}
	// What has other types has no such mark.
	_ = json.Unmarshal(data, &o)
	return o.Metadata.Labels[substituteKey] == "disabled" || o.Metadata.Annotations[substituteKey] == "disabled"
}

// names gathers the variables of a template; true for those that are used where
// an operator gives no default.
func names(n parse.Node, into map[string]bool) {
	switch n := n.(type) {
	case *parse.ListNode:
		for _, c := range n.Nodes {
			names(c, into)
		}
	case *parse.FuncNode:
		into[n.Param] = into[n.Param] || !slices.Contains([]string{"-", "+", "=", "?", ":-", ":+", ":=", ":?"}, n.Name)
		for _, c := range n.Args {
			names(c, into)
		}
	}
}

// maxObject bounds an object after substitution, in bytes: the API server takes a
// tenth of it.
const maxObject = 16 << 20

// grownText is an upper bound of what a template comes to, up to a little more
// than maxObject.
func grownText(n parse.Node, values map[string]string) int {
	size := 0
	switch n := n.(type) {
	case *parse.TextNode:
		size = len(n.Value)
	case *parse.ListNode:
		for _, c := range n.Nodes {
			if size += grownText(c, values); size > maxObject {
				break
			}
		}
	case *parse.FuncNode:
		size = len(values[n.Param])
		args := 0
		for _, c := range n.Args {
			args = min(args+grownText(c, values), maxObject+1)
		}
		if strings.HasPrefix(n.Name, "/") {
			// Each letter may be replaced.
			size *= max(args, 1)
		} else {
			size += args
		}
	}
	return min(size, maxObject+1)
}

// evaluate substitutes and gives JSON.
func evaluate(text string, values, more map[string]string) ([]byte, error) {
	out, err := envsubst.Eval(text, func(name string) (string, bool) {
		if v, ok := more[name]; ok {
			return v, true
		}
		return values[name], true
	})
	if err != nil {
		return nil, fmt.Errorf("a variable expression can't be evaluated: %w", err)
	}
	data, err := yaml.YAMLToJSON([]byte(out))
	if err != nil {
		return nil, fmt.Errorf("after substitution the object is no YAML: %w", err)
	}
	return decoded(data)
}

// long is a number that a float64 can't hold exactly.
var long = regexp.MustCompile(`[0-9]{16}`)

// decoded is an object as kustomize reads it back after substitution: numbers
// have gone through a float64, as they have in the cluster.
func decoded(data []byte) ([]byte, error) {
	if !long.Match(data) {
		return data, nil
	}
	var n kyaml.RNode
	if err := n.UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("object after substitution: %w", err)
	}
	return n.MarshalJSON()
}

// stand gives each unknown variable a value that nothing else has; letters and
// digits only, so that it is plain text wherever it lands.
func stand(prefix string, unknown []string) map[string]string {
	out := make(map[string]string, len(unknown))
	for i, name := range unknown {
		out[name] = prefix + strconv.Itoa(i) + "x"
	}
	return out
}

// differ finds what differs between two substitutions.
type differ struct {
	stand  map[string]string
	names  []string
	taints []Taint
}

func (d *differ) walk(p string, a, b any) any {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok {
			break
		}
		out := make(map[string]any, len(x))
		for _, k := range slices.Sorted(maps.Keys(x)) {
			shown, found := d.restore(k)
			if other, ok := y[k]; ok {
				out[shown] = d.walk(p+"/"+locate.Escape(k), x[k], other)
				continue
			}
			// The key itself depends on a variable.
			d.taint(p+"/"+locate.Escape(shown), found)
			if v, inside := d.restoreAll(x[k]); len(inside) > 0 {
				out[shown] = v
			} else {
				out[shown] = x[k]
			}
		}
		return out
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			break
		}
		for i := range x {
			x[i] = d.walk(p+"/"+strconv.Itoa(i), x[i], y[i])
		}
		return x
	default:
		if a == b {
			return a
		}
	}
	shown, found := d.restoreAll(a)
	d.taint(p, found)
	return shown
}

// taint marks a place; a stand-in that an operator changed beyond recognition
// stands for all the unknown variables.
func (d *differ) taint(p string, found []string) {
	if len(found) == 0 {
		found = d.names
	}
	for _, name := range found {
		d.taints = append(d.taints, Taint{Pointer: p, Variable: name})
	}
}

// restore puts ${NAME} where a stand-in is.
func (d *differ) restore(s string) (string, []string) {
	var found []string
	for _, name := range d.names {
		if strings.Contains(s, d.stand[name]) {
			s = strings.ReplaceAll(s, d.stand[name], "${"+name+"}")
			found = append(found, name)
		}
	}
	return s, found
}

func (d *differ) restoreAll(v any) (any, []string) {
	data, err := json.Marshal(v)
	if err != nil {
		return v, nil
	}
	text, found := d.restore(string(data))
	if len(found) == 0 {
		return "${" + d.names[0] + "}", nil
	}
	var out any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return v, found
	}
	return out, found
}
