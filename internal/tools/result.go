package tools

import "github.com/hecate-mcp/hecate-mcp/internal/ops"

// Result is what every answer carries; outputs embed it.
type Result struct {
	Summary    string          `json:"summary" jsonschema_description:"one line that stands alone"`
	Scope      Scope           `json:"scope" jsonschema_description:"cluster, mode, namespace, identity, asOf"`
	Warnings   []sourceWarning `json:"warnings,omitempty" jsonschema_description:"of the source: {kind, detail}"`
	Incomplete []unread        `json:"incomplete,omitempty" jsonschema_description:"not readable: {code, object, detail}"`
	NextSteps  []ops.NextStep  `json:"nextSteps,omitempty" jsonschema_description:"{tool, arguments, why}"`
	HumanSteps []ops.HumanStep `json:"humanSteps,omitempty" jsonschema_description:"by a person only: {command, why}"`
}

// sourceWarning and unread are ops.Warning and ops.Incomplete where the schema
// describes them in a line: the tools that explain spell their codes out.
type (
	sourceWarning ops.Warning
	unread        ops.Incomplete
)

func unreads(in []ops.Incomplete) []unread {
	var out []unread
	for _, i := range in {
		out = append(out, unread(i))
	}
	return out
}

// Listed is what every answer with a list carries besides.
type Listed struct {
	Total      int    `json:"total" jsonschema_description:"how many there are"`
	Truncated  bool   `json:"truncated" jsonschema_description:"more than is shown"`
	NextCursor string `json:"nextCursor,omitempty" jsonschema_description:"pass as cursor for the rest"`
}

func listed[T any](p ops.Page[T]) Listed {
	return Listed{Total: p.Total, Truncated: p.Truncated, NextCursor: p.NextCursor}
}

// Inputs that tools share, embedded by their In.
type (
	// InNamespace narrows to a namespace.
	InNamespace struct {
		Namespace string `json:"namespace,omitempty" jsonschema_description:"namespace; * for all"`
	}
	// InFormat picks how much of the answer is shown.
	InFormat struct {
		Format string `json:"format,omitempty" jsonschema:"enum=concise,enum=detailed" jsonschema_description:"default concise"`
	}
	// InPage pages a list.
	InPage struct {
		Limit  int    `json:"limit,omitempty" jsonschema:"minimum=1,maximum=200" jsonschema_description:"default 20"`
		Cursor string `json:"cursor,omitempty" jsonschema_description:"nextCursor of the page before"`
	}
)

func (f InFormat) detailed() bool { return f.Format == "detailed" }
