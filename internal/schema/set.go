package schema

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Options say which schemas to open.
type Options struct {
	// KubernetesVersion is a minor or a patch of it: "1.35", "v1.35.2"; "" is the
	// newest embedded one.
	KubernetesVersion string
	// Dirs are folders of JSON schemas, named {group}/{kind}_{version}.json or
	// {kind}-{group}-{version}.json, the kind in lower case.
	Dirs []string
}

// revision counts the changes of the code that decide results: callers keep
// results by Set.ID.
const revision = "2"

// Set is the schemas of one Kubernetes minor. It is safe for concurrent use.
type Set struct {
	version   string
	id        string
	source    string
	kinds     map[gvk]*builtin
	groups    map[string]bool // that the API server itself serves
	meta      *node           // of metadata
	calendar  calendar
	flux      *CRDs
	catalogue []*catalogue
	compiled  *compilations
}

// builtin is a kind with an embedded schema.
type builtin struct {
	node       *node
	namespaced bool
	schemaID   string
	warning    *Violation // a deprecation
	rules      []rule
}

// Open reads the embedded schemas of a minor and checks the folders. Its errors
// are *Error where the options are wrong.
func Open(o Options) (*Set, error) {
	minor, err := minorOf(o.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	sum.Write([]byte(revision + minor))
	var a archive
	packed, err := unpack(minor, &a)
	if err != nil {
		return nil, err
	}
	sum.Write(packed)
	nodes, err := tree(a.Definitions)
	if err != nil {
		return nil, fmt.Errorf("embedded schemas %s: %w", minor, err)
	}
	n, err := strconv.Atoi(strings.TrimPrefix(minor, "1."))
	if err != nil {
		return nil, fmt.Errorf("embedded schemas %s: %w", minor, err)
	}
	s := &Set{version: minor, source: a.Source, kinds: make(map[gvk]*builtin, len(a.Kinds)), groups: map[string]bool{},
		meta: nodes[objectMetaName], calendar: newCalendar(n, a.Lifecycle), compiled: newCompilations()}
	if s.meta == nil {
		return nil, fmt.Errorf("embedded schemas %s: no schema of metadata", minor)
	}
	for _, k := range a.Kinds {
		id := gvk{k.Group, k.Version, k.Kind}
		b := &builtin{node: nodes[k.Definition], namespaced: k.Namespaced, schemaID: a.Source + " " + id.String(), rules: rulesOf(id)}
		if b.node == nil {
			return nil, fmt.Errorf("embedded schemas %s: %s has no schema", minor, id)
		}
		if v := s.calendar.served(id); v != nil {
			v.Authority, v.SchemaID = AuthorityCore, b.schemaID
			b.warning = v
		}
		s.kinds[id] = b
		s.groups[k.Group] = true
	}
	for id := range s.calendar.by {
		s.groups[id.group] = true
	}
	var f fluxArchive
	if packed, err = unpack("flux", &f); err != nil {
		return nil, err
	}
	sum.Write(packed)
	if s.flux, err = s.embedded(f); err != nil {
		return nil, err
	}
	for _, dir := range o.Dirs {
		c, err := openCatalogue(dir)
		if err != nil {
			return nil, err
		}
		sum.Write(c.digest)
		s.catalogue = append(s.catalogue, c)
	}
	s.id = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

// Version is the Kubernetes minor, like "1.36".
func (s *Set) Version() string { return s.version }

// ID is a digest of all in the Set that decides results.
func (s *Set) ID() string { return s.id }

func lower(c byte) bool { return 'a' <= c && c <= 'z' }
func digit(c byte) bool { return '0' <= c && c <= '9' }

// isKind is ^[A-Za-z][A-Za-z0-9]{0,62}$, by hand since every object is asked.
func isKind(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; !lower(c) && (i == 0 || !digit(s[i])) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// isAPIVersion is a version, ^[a-z][a-z0-9]{0,62}$, after a group and a slash or
// alone. A group has up to 253 of [a-z0-9.-] and ends in neither dot nor dash.
func isAPIVersion(s string) bool {
	if group, version, ok := strings.Cut(s, "/"); ok {
		for i := range len(group) {
			if c := group[i]; !lower(c) && !digit(c) && (c != '.' && c != '-' || i == 0 || i == len(group)-1) {
				return false
			}
		}
		if group == "" || len(group) > 253 {
			return false
		}
		s = version
	}
	for i := range len(s) {
		if !lower(s[i]) && (i == 0 || !digit(s[i])) {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// Validate judges one object; crds may be nil. The object is not changed. A list
// is to be judged item by item.
func (s *Set) Validate(ctx context.Context, obj map[string]any, crds *CRDs) Result {
	apiVersion, kind, wrong := identify(obj)
	if len(wrong) > 0 {
		return Result{Violations: wrong}
	}
	obj = applied(obj, kind)
	group, version := splitVersion(apiVersion)
	id := gvk{group, version, kind}
	b := s.kinds[id]
	if b == nil && strings.HasSuffix(kind, "List") && s.listOf(id) {
		return Result{}
	}
	if b == nil && !s.groups[group] {
		for _, c := range []*CRDs{crds, s.flux} {
			if d := c.definition(group, kind); d != nil {
				return s.custom(ctx, id, obj, d)
			}
		}
		for _, c := range s.catalogue {
			if r, ok := c.validate(id, obj); ok {
				return r
			}
		}
		return Result{}
	}
	if b == nil {
		// Extensions may live in a group that the API server also serves.
		if d := crds.definition(group, kind); d != nil {
			return s.custom(ctx, id, obj, d)
		}
		v := s.calendar.absent(id, s.kinds)
		v.Authority, v.SchemaID = AuthorityCore, s.source
		return Result{Authority: AuthorityCore, Covered: true, SchemaID: s.source, Violations: []Violation{v}}
	}
	w := walker{secret: kind == "Secret", path: make([]step, 0, 16)}
	w.value(b.node, obj)
	c := checker{walker: &w, namespaced: b.namespaced, id: id}
	c.metadata(obj)
	for _, r := range b.rules {
		r(&c, obj)
	}
	out := w.out
	if len(out) > 0 {
		out = tidy(out)
	}
	for i := range out {
		out[i].Authority, out[i].SchemaID = AuthorityCore, b.schemaID
	}
	if b.warning != nil {
		out = append(out, *b.warning)
	}
	return Result{Authority: AuthorityCore, Covered: true, SchemaID: b.schemaID, Namespaced: b.namespaced, Violations: out}
}

// applied is the object without its status: Flux takes it away, but from a CRD,
// before it applies anything.
func applied(obj map[string]any, kind string) map[string]any {
	if _, ok := obj["status"]; !ok || kind == "CustomResourceDefinition" {
		return obj
	}
	out := make(map[string]any, len(obj))
	for k, v := range obj {
		if k != "status" {
			out[k] = v
		}
	}
	return out
}

// listOf tells whether a kind is the list of a built-in one.
func (s *Set) listOf(id gvk) bool {
	id.kind = strings.TrimSuffix(id.kind, "List")
	return s.kinds[id] != nil || id.kind == "" && id.group == ""
}

// tidy sorts by place, since maps are walked in any order, and keeps one
// violation where a schema and a rule said the same.
func tidy(in []Violation) []Violation {
	sort.SliceStable(in, func(i, j int) bool {
		if in[i].Field != in[j].Field {
			return in[i].Field < in[j].Field
		}
		return in[i].Code < in[j].Code
	})
	out := in[:0]
	for i, v := range in {
		if i > 0 {
			if last := &out[len(out)-1]; v.Field == last.Field && v.Code == last.Code {
				if v.Severity == Fail {
					*last = v // the worse of two
				}
				continue
			}
		}
		out = append(out, v)
	}
	return out
}

// identify reads what an object says it is.
func identify(obj map[string]any) (apiVersion, kind string, wrong []Violation) {
	read := func(name string, valid func(string) bool, like string) string {
		v := Violation{Field: "/" + name, Severity: Fail, Rule: "type"}
		value, ok := obj[name].(string)
		switch {
		case obj[name] == nil:
			v.Code, v.Rule, v.Message = MissingField, "required", name+" is required"
		case !ok:
			v.Code, v.Message = WrongType, fmt.Sprintf("%s is %s where a string is wanted", name, typeOf(obj[name]))
		case value == "":
			v.Code, v.Rule, v.Message = MissingField, "required", name+" is empty"
		case !valid(value):
			v.Code, v.Rule, v.Message = InvalidValue, "pattern", fmt.Sprintf("%s is no %s: one like %s is wanted", short(value), name, like)
		default:
			return value
		}
		wrong = append(wrong, v)
		return ""
	}
	apiVersion = read("apiVersion", isAPIVersion, "apps/v1 or v1")
	kind = read("kind", isKind, "Deployment")
	return apiVersion, kind, wrong
}
