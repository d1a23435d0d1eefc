package schema

import (
	"strings"
)

// The authorities of a verdict.
const (
	AuthorityCore      = "core-schema" // embedded schemas of the built-in kinds
	AuthorityCRD       = "crd"         // a CRD, by the API server's own code
	AuthorityCatalogue = "crd-catalog" // a folder that the user named: advisory
)

// The severities of a violation.
const (
	Fail = "fail"
	Warn = "warn"
)

// The codes of violations.
const (
	UnknownField  = "UnknownField"
	MissingField  = "MissingField"
	WrongType     = "WrongType"
	InvalidValue  = "InvalidValue"
	UnknownKind   = "UnknownKind"
	RemovedAPI    = "RemovedAPI"
	DeprecatedAPI = "DeprecatedAPI"
	CELRuleFailed = "CELRuleFailed"
)

// Result is what is known of one object. Not Covered means that nothing here
// knows the kind: it says neither valid nor invalid.
type Result struct {
	Authority  string // who judged, "" when nobody did
	Covered    bool
	SchemaID   string // which schema judged
	Namespaced bool   // the kind lives in namespaces; false, too, where that is not known
	Violations []Violation
}

// Violation is one thing that is wrong.
type Violation struct {
	Code      string
	Field     string // JSON pointer into the object; of a missing field, its own
	Rule      string // the keyword of the schema, the rule or the CEL expression
	Message   string // what is wrong and what would be right
	Severity  string // Fail or Warn
	Authority string
	SchemaID  string
	Raw       string // the words of the validator that was asked, "" where it is our own
}

// Error is a refusal to open schemas.
type Error struct {
	Message string
	Valid   []string // what would be right, where that is a list
}

func (e *Error) Error() string {
	if len(e.Valid) == 0 {
		return e.Message
	}
	return e.Message + " (valid: " + strings.Join(e.Valid, ", ") + ")"
}
