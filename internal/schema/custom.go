package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// crdVersion is one version of a CRD, compiled when an object first needs it.
type crdVersion struct {
	spec *apiextensions.CustomResourceDefinitionVersion

	once      sync.Once
	err       error
	schema    *structural.Structural
	validator validation.SchemaValidator
	certain   *certain
	cel       *cel.Validator
	// embeds and lists tell whether there is anything to do for the walks that look
	// for embedded resources and for lists that are sets or maps.
	embeds, lists bool
}

func (v *crdVersion) compile(d *crd) error {
	v.once.Do(func() {
		defer func() {
			if r := recover(); r != nil {
				v.err = fmt.Errorf("the schema can't be compiled: %v", r)
			}
		}()
		s, err := apiextensions.GetSchemaForVersion(d.internal, v.spec.Name)
		if err != nil {
			v.err = err
			return
		}
		if s == nil || s.OpenAPIV3Schema == nil {
			v.err = errors.New("the version has no schema")
			return
		}
		if v.schema, v.err = structural.NewStructural(s.OpenAPIV3Schema); v.err != nil {
			return
		}
		v.schema = v.schema.DeepCopy() // it shares its defaults with the CRD
		if v.err = defaulting.PruneDefaults(v.schema); v.err != nil {
			return
		}
		var openAPI *spec.Schema
		if v.validator, openAPI, v.err = validation.NewSchemaValidator(s.OpenAPIV3Schema); v.err != nil {
			return
		}
		v.certain = newCertain(openAPI, 0)
		v.embeds = anywhere(v.schema, func(s *structural.Structural) bool { return s.XEmbeddedResource })
		v.lists = anywhere(v.schema, func(s *structural.Structural) bool {
			return s.XListType != nil && *s.XListType != "atomic"
		})
		v.cel = cel.NewValidator(v.schema, true, celconfig.PerCallLimit)
	})
	return v.err
}

// custom judges an object by its CRD, in the order of an API server that applies
// it: unknown fields, defaults, then all validation on a copy.
func (s *Set) custom(ctx context.Context, id gvk, obj map[string]any, d *crd) (r Result) {
	r = Result{Authority: AuthorityCRD, Covered: true, SchemaID: d.schemaID(id.version)}
	defer func() {
		if p := recover(); p != nil {
			r.Violations = append(r.Violations, Violation{Code: InvalidValue, Rule: "validation", Severity: Warn, Message: fmt.Sprintf("can't be judged: %v", p)})
		}
		if d.embedded {
			soften(r.Violations)
		}
		for i := range r.Violations {
			r.Violations[i].Authority, r.Violations[i].SchemaID = AuthorityCRD, r.SchemaID
		}
	}()
	if d.read() != nil {
		return Result{} // the CRD's own problem is reported by NewCRDs
	}
	v := d.versions[id.version]
	if v == nil || !v.spec.Served {
		why := "has no version"
		if v != nil {
			why = "does not serve version"
		}
		r.Violations = []Violation{{Code: UnknownKind, Field: "/apiVersion", Rule: "spec.versions", Severity: Fail,
			Message: fmt.Sprintf("the CRD %s %s %s: use %s", d.name, why, short(id.version), names(d.served))}}
		if d.embedded && former.MatchString(id.version) {
			r.Violations[0].Code, r.Violations[0].Severity = RemovedAPI, Warn
			r.Violations[0].Message = fmt.Sprintf("the newest Flux does not serve %s: use %s", id, names(d.served))
		}
		return r
	}
	if v.compile(d) != nil {
		return Result{}
	}
	w := walker{custom: true, secret: id.kind == "Secret", path: make([]step, 0, 16)}
	if v.spec.Deprecated {
		msg := fmt.Sprintf("%s is deprecated", id)
		if v.spec.DeprecationWarning != nil && *v.spec.DeprecationWarning != "" {
			msg = *v.spec.DeprecationWarning
		}
		w.noteAt(DeprecatedAPI, Warn, "/apiVersion", "spec.versions.deprecated", msg)
	}
	if m := obj["metadata"]; m != nil {
		w.path = append(w.path, step{key: "metadata"})
		w.value(s.meta, m)
		w.path = w.path[:0]
	}
	r.Namespaced = d.internal.Spec.Scope == apiextensions.NamespaceScoped
	c := checker{walker: &w, namespaced: r.Namespaced, id: id}
	c.metadata(obj)

	copied, err := deepCopy(obj, 0)
	if err != nil {
		w.noteAt(InvalidValue, Fail, "", "depth", err.Error())
		r.Violations = tidy(w.out)
		return r
	}
	in := copied.(map[string]any)
	for _, path := range pruning.PruneWithOptions(in, v.schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}) {
		p := pointerOf(obj, path)
		w.noteAt(UnknownField, Fail, p, "properties", unknownField(lastKey(p), true, fieldsAt(v.schema, parent(p))))
	}
	// A create or an update would drop nulls here; server-side apply, which is what
	// Flux does, keeps those that no default replaces, and then refuses them.
	defaulting.Default(in, v.schema)

	var errs field.ErrorList
	if !v.certain.valid(in) {
		errs = validation.ValidateCustomResource(nil, in, v.validator)
	}
	if v.embeds {
		errs = append(errs, objectmeta.Validate(nil, in, v.schema, false)...)
	}
	if v.lists {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, v.schema, in)...)
	}
	for _, e := range errs {
		p := pointerOf(in, e.Field)
		if !isNull(in, p) {
			w.field(in, e, code(e.Type), "")
		} else if e.Type == field.ErrorTypeTypeInvalid {
			w.noteAt(WrongType, Fail, p, "type", "is null, which server-side apply refuses for a custom kind: leave the field out")
		}
	}
	if v.cel != nil && !blocking(errs) {
		failed, _ := v.cel.Validate(ctx, nil, v.schema, in, nil, celconfig.RuntimeCELCostBudget)
		for _, e := range failed {
			// A rule that does not compile is the CRD's problem, told by NewCRDs;
			// a caller that gave up has no use for a verdict.
			if strings.HasPrefix(e.Detail, "rule compile") || ctx.Err() != nil {
				continue
			}
			w.field(in, e, CELRuleFailed, expression(v.schema, pointerOf(in, e.Field), e.Detail))
		}
	}
	r.Violations = tidy(w.out)
	return r
}

// anywhere tells whether a condition holds somewhere in a schema.
func anywhere(s *structural.Structural, holds func(*structural.Structural) bool) bool {
	if s == nil {
		return false
	}
	if holds(s) || anywhere(s.Items, holds) || s.AdditionalProperties != nil && anywhere(s.AdditionalProperties.Structural, holds) {
		return true
	}
	for _, p := range s.Properties {
		if anywhere(&p, holds) {
			return true
		}
	}
	return false
}

// isNull tells whether a field is there and null.
func isNull(obj map[string]any, pointer string) bool {
	m, _ := Lookup(obj, parent(pointer)).(map[string]any)
	v, ok := m[lastKey(pointer)]
	return ok && v == nil
}

// field notes an error of the API machinery.
func (w *walker) field(obj map[string]any, e *field.Error, code, rule string) {
	p := pointerOf(obj, e.Field)
	msg := detail(e)
	if code == MissingField {
		msg = lastKey(p) + " is required"
		if e.Detail != "" {
			msg += ": " + e.Detail
		}
	}
	if rule == "" {
		rule = map[field.ErrorType]string{field.ErrorTypeRequired: "required", field.ErrorTypeTypeInvalid: "type", field.ErrorTypeNotSupported: "enum",
			field.ErrorTypeDuplicate: "x-kubernetes-list-type", field.ErrorTypeTooLong: "maxLength", field.ErrorTypeTooMany: "maxItems"}[e.Type]
	}
	if rule == "" {
		rule = "schema"
	}
	if value, ok := e.BadValue.(string); ok && e.Type == field.ErrorTypeNotSupported && !w.secret {
		var valid []string
		for i, part := range strings.Split(e.Detail, `"`) {
			if i%2 == 1 {
				valid = append(valid, part)
			}
		}
		if n := nearest(value, valid); n != "" {
			msg += "; " + meant + n + "?"
		}
	}
	v := Violation{Code: code, Field: p, Rule: rule, Message: msg, Severity: Fail}
	if !w.secret {
		v.Raw = bounded(e.Error())
	}
	if !w.full() {
		w.out = append(w.out, v)
	}
}

// former is an API version that a former Flux served.
var former = regexp.MustCompile(`^v[12](alpha|beta)[0-9]$`)

// soften takes back what the embedded CRDs can't know: a cluster's Flux may be
// older and still serve a version, or newer and know more fields and values. What
// looks like a slip of the pen stays a failure. A CRD of the repository or of the
// cluster is never softened.
func soften(vs []Violation) {
	for i := range vs {
		v := &vs[i]
		if (v.Code == UnknownField || v.Code == InvalidValue && v.Rule == "enum") && !strings.Contains(v.Message, meant) {
			v.Severity = Warn
			v.Message += " (says the Flux embedded here; a newer one may know it)"
		}
	}
}

// bounded cuts a text that holds values of any size.
func bounded(s string) string {
	const most = 512
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// detail is what an error says without the value and without its own path.
func detail(e *field.Error) string {
	msg := e.Detail
	if i := strings.Index(msg, " in body "); i >= 0 && !strings.Contains(msg[:i], " ") {
		msg = msg[i+len(" in body "):]
	}
	switch {
	case e.Type == field.ErrorTypeDuplicate && msg == "":
		msg = "is there twice: each item needs its own"
	case e.Type == field.ErrorTypeRequired && msg == "":
		msg = "is required"
	case e.Type == field.ErrorTypeNotSupported:
		msg = "is none of the " + msg
	case msg == "":
		msg = strings.ToLower(string(e.Type.String()))
	}
	return bounded(msg)
}

func code(t field.ErrorType) string {
	switch t {
	case field.ErrorTypeRequired:
		return MissingField
	case field.ErrorTypeTypeInvalid:
		return WrongType
	default:
		return InvalidValue
	}
}

// blocking tells whether the API server would skip the rules.
func blocking(errs field.ErrorList) bool {
	for _, e := range errs {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

// maxDepth bounds the nesting of an object.
const maxDepth = 256

// deepCopy copies a JSON value with numbers as an API server decodes them.
func deepCopy(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("is nested deeper than %d levels", maxDepth)
	}
	switch x := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(x))
		for k, c := range x {
			copied, err := deepCopy(c, depth+1)
			if err != nil {
				return nil, err
			}
			out[k] = copied
		}
		return out, nil
	case []any:
		out := make([]any, len(x))
		for i, c := range x {
			copied, err := deepCopy(c, depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = copied
		}
		return out, nil
	case nil, string, bool:
		return x, nil
	}
	if i, ok := integer(v); ok {
		return i, nil
	}
	if f, ok := number(v); ok {
		return f, nil
	}
	// Types that JSON has none for, such as a time, are texts.
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("holds a value that JSON can't: %T", v)
	}
	var out any
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("holds a value that JSON can't: %T", v)
	}
	return out, nil
}

// parent is the pointer of what holds a field.
func parent(pointer string) string {
	return pointer[:max(strings.LastIndexByte(pointer, '/'), 0)]
}

// lastKey is the name of the field at a pointer.
func lastKey(pointer string) string {
	key := pointer[strings.LastIndexByte(pointer, '/')+1:]
	return strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
}

// schemasAt are the schemas along a pointer, the root first.
func schemasAt(s *structural.Structural, pointer string) []*structural.Structural {
	out := []*structural.Structural{s}
	if pointer == "" {
		return out
	}
	for _, part := range strings.Split(pointer, "/")[1:] {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		if p, ok := s.Properties[part]; ok {
			s = &p
		} else if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			s = s.AdditionalProperties.Structural
		} else if s.Items != nil {
			s = s.Items
		} else {
			break
		}
		out = append(out, s)
	}
	return out
}

// fieldsAt are the names of the fields that a schema has at a pointer.
func fieldsAt(s *structural.Structural, pointer string) []string {
	depth := strings.Count(pointer, "/")
	at := schemasAt(s, pointer)
	if len(at) != depth+1 {
		return nil
	}
	var out []string
	for k := range at[depth].Properties {
		out = append(out, k)
	}
	if pointer == "" {
		for _, k := range []string{"apiVersion", "kind", "metadata"} {
			if _, ok := at[0].Properties[k]; !ok {
				out = append(out, k)
			}
		}
	}
	return out
}

// expression finds the rule that an error tells of: its error has only the
// message. The nearest schema wins; a message that is computed is told by none.
func expression(s *structural.Structural, pointer, message string) string {
	at := schemasAt(s, pointer)
	for i := len(at) - 1; i >= 0; i-- {
		for _, r := range at[i].XValidations {
			if m := strings.TrimSpace(r.Message); m != "" && strings.Contains(message, m) || strings.Contains(message, strings.TrimSpace(r.Rule)) {
				return r.Rule
			}
		}
	}
	for i := len(at) - 1; i >= 0; i-- {
		if rules := at[i].XValidations; len(rules) == 1 {
			return rules[0].Rule
		}
	}
	return "x-kubernetes-validations"
}
