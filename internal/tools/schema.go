package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

// schemaOf derives the JSON schema of a struct: an object with properties and
// without $ref, as the strictest clients need it.
func schemaOf(v any) *jsonschema.Schema {
	r := jsonschema.Reflector{Anonymous: true, ExpandedStruct: true, DoNotReference: true, Mapper: mapped}
	s := r.Reflect(v)
	s.Version = ""
	return s
}

// outputSchema is the schema of an answer as it is published under schemas/.
func outputSchema(v any) *jsonschema.Schema {
	s := schemaOf(v)
	if r, ok := v.(interface{ Required() []string }); ok {
		s.Required = r.Required()
	}
	return s
}

// lean shrinks a published output schema to what the list of tools carries:
// clients load that list whole, beside the conversation. The root stays as it
// is; below it, properties that carry a code keep their enum and the rest is
// named in the object's description. What fits the published schema fits the
// lean one. A type can say in a line (Said) what another property of the list
// spells out already.
func lean(s *jsonschema.Schema, out any) *jsonschema.Schema {
	if b, ok := out.(interface{ Said() map[string]string }); ok {
		for path, text := range b.Said() {
			say(s, path, text)
		}
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		fold(p.Value)
	}
	return s
}

// say replaces what stands at a path of properties by a line.
func say(s *jsonschema.Schema, path, text string) {
	for name := range strings.SplitSeq(path, ".") {
		if s.Items != nil {
			s = s.Items
		}
		next, ok := s.Properties.Get(name)
		if !ok {
			panic("schema: no property " + path)
		}
		s = next
	}
	said := jsonschema.Schema{Type: s.Type, Description: text}
	if s.Type == "array" {
		said.Items = &jsonschema.Schema{Type: s.Items.Type}
	}
	*s = said
}

func fold(s *jsonschema.Schema) {
	if s.Items != nil {
		fold(s.Items)
	}
	if s.Properties == nil || s.Properties.Len() == 0 {
		return
	}
	s.AdditionalProperties, s.Required = nil, nil
	var named []string
	for p := s.Properties.Oldest(); p != nil; {
		next := p.Next()
		if hasEnum(p.Value) {
			fold(p.Value)
		} else {
			named = append(named, p.Key)
			s.Properties.Delete(p.Key)
		}
		p = next
	}
	if len(named) > 0 {
		s.Description = strings.TrimPrefix(s.Description+"; "+strings.Join(named, ", "), "; ")
	}
}

func hasEnum(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	if len(s.Enum) > 0 || hasEnum(s.Items) {
		return true
	}
	if s.Properties != nil {
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			if hasEnum(p.Value) {
				return true
			}
		}
	}
	return false
}

func marshalSchema(s *jsonschema.Schema) json.RawMessage {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("schema: %v", err))
	}
	return raw
}

// mapped gives the types whose schema is not their Go structure: enums of
// codes, times, and references that every tool repeats (described in a line
// rather than spelled out each time: clients load the list of tools whole).
func mapped(t reflect.Type) *jsonschema.Schema {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if values, ok := enums[t]; ok {
		return &jsonschema.Schema{Type: "string", Enum: values}
	}
	switch t {
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	}
	if s, ok := brief[t]; ok {
		return &jsonschema.Schema{Type: "object", Description: s}
	}
	return nil
}

// brief describes the reference types in a line.
var brief = map[reflect.Type]string{
	reflect.TypeFor[ops.Object]():              "{apiVersion, kind, namespace, name}",
	reflect.TypeFor[ops.NextStep]():            "",
	reflect.TypeFor[ops.HumanStep]():           "",
	reflect.TypeFor[Scope]():                   "{cluster, mode, namespace, identity, asOf}",
	reflect.TypeFor[v1alpha1.Health]():         "{status, issues, observedAt, since}",
	reflect.TypeFor[v1alpha1.EvidenceRef]():    "{trail, verdict, risk, blockers}",
	reflect.TypeFor[fides.ChangeVerdict]():     "{trail_id, recommendation, approved, summary, risk_score, risk_level, passed, failed, missing_evidence, waived, attestations, approvals, segregation_of_duties}",
	reflect.TypeFor[ops.EvidenceView]():        "",
	reflect.TypeFor[v1alpha1.BundleApproval](): "",
	reflect.TypeFor[sourceWarning]():           "",
	reflect.TypeFor[unread]():                  "",
	reflect.TypeFor[writeWarning]():            "",
	reflect.TypeFor[writeStep]():               "",
	reflect.TypeFor[map[string]int]():          "{list: count}",
	reflect.TypeFor[gitops.Object]():           "{apiVersion, kind, namespace, name}",
	reflect.TypeFor[gitops.KustomizationKey](): "{cluster, namespace, name}",
	reflect.TypeFor[gitops.ClusterInfo]():      "",
	reflect.TypeFor[gitops.ValidationMeta]():   "",
	reflect.TypeFor[gitops.Waiting]():          "",
	reflect.TypeFor[gitops.ChangedFile]():      "",
	reflect.TypeFor[ops.FluxUse]():             "",
	reflect.TypeFor[RepoScope]():               "",
}

// enums are the codes, each from the one table that lists it. It is a variable
// with a value rather than filled in init: the tools are package variables too,
// and the language orders those by what they refer to.
var enums = func() map[reflect.Type][]any {
	m := map[reflect.Type][]any{}
	enum(m, ops.States)
	enum(m, ops.BlockerKinds)
	enum(m, ops.WarningKinds)
	enum(m, ops.HoldKinds)
	enum(m, ops.ChainKinds)
	enum(m, ops.AuditKinds)
	enum(m, ops.SourceCodes)
	enum(m, ops.RefusalReasons)
	enum(m, ops.PreviewVerdicts)
	enum(m, ops.Roles)
	enum(m, ops.ExclusionReasons)
	enum(m, ops.ArtifactStatuses)
	enum(m, ops.Conclusions)
	enum(m, ops.CheckNames)
	enum(m, ops.CheckResults)
	enum(m, ops.HashChainStatuses)
	enum(m, ops.ConcernKinds)
	enum(m, reconcileCodes)
	enum(m, declineReasons)
	enum(m, meanings(gitops.States))
	enum(m, meanings(gitops.Severities))
	enum(m, meanings(gitops.FindingCodes))
	enum(m, meanings(gitops.Sources))
	enum(m, meanings(gitops.Effects))
	enum(m, meanings(gitops.UnmappedReasons))
	return m
}()

func enum[C ~string](m map[reflect.Type][]any, table []ops.Meaning[C]) {
	var values []any
	for _, row := range table {
		values = append(values, string(row.Code))
	}
	m[reflect.TypeFor[C]()] = values
}
