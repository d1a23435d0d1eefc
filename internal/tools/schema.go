package tools

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

// schemaOf derives the JSON schema of a struct: an object with properties and
// without $ref, as the strictest clients need it. required, when given,
// replaces the derived list.
func schemaOf(v any, required []string) json.RawMessage {
	r := jsonschema.Reflector{Anonymous: true, ExpandedStruct: true, DoNotReference: true, Mapper: mapped}
	s := r.Reflect(v)
	s.Version = ""
	if required != nil {
		s.Required = required
	}
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("schema of %T: %v", v, err))
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
	reflect.TypeFor[ops.NextStep]():            "{tool, arguments, why}",
	reflect.TypeFor[ops.HumanStep]():           "{command, why}",
	reflect.TypeFor[Scope]():                   "{cluster, mode, namespace, identity, asOf}",
	reflect.TypeFor[v1alpha1.Health]():         "{status, issues, observedAt, since}",
	reflect.TypeFor[v1alpha1.EvidenceRef]():    "{trail, verdict, risk, blockers}",
	reflect.TypeFor[fides.ChangeVerdict]():     "{trail_id, recommendation, approved, summary, risk_score, risk_level, passed, failed, missing_evidence, waived, attestations, approvals, segregation_of_duties}",
	reflect.TypeFor[ops.EvidenceView]():        "{gates, server, environment, status, conclusion, detail, artifacts}",
	reflect.TypeFor[v1alpha1.BundleApproval](): "{gate, actor, at}",
	reflect.TypeFor[map[string]int]():          "{list: count}",
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
	return m
}()

func enum[C ~string](m map[reflect.Type][]any, table []ops.Meaning[C]) {
	var values []any
	for _, row := range table {
		values = append(values, string(row.Code))
	}
	m[reflect.TypeFor[C]()] = values
}
