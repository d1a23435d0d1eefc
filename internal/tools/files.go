package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/invopop/jsonschema"
)

// SchemaFiles are the published schemas: TOOL.input.json and TOOL.output.json,
// indented; outputs in full.
func SchemaFiles() map[string][]byte {
	out := map[string][]byte{}
	for _, t := range All() {
		for direction, schema := range t.schemas() {
			var b bytes.Buffer
			if err := json.Indent(&b, schema, "", "  "); err != nil {
				panic(fmt.Sprintf("schema of %s: %v", t.Name, err)) // it was made by json.Marshal
			}
			b.WriteByte('\n')
			out[t.Name+"."+direction+".json"] = b.Bytes()
		}
	}
	return out
}

func (t Tool) schemas() map[string]json.RawMessage {
	return map[string]json.RawMessage{"input": t.InputSchema, "output": t.Published}
}

// LedgerFile keeps every property and enum value that was ever published: the
// schema files follow the code, so they cannot tell that something is gone.
const LedgerFile = "published.txt"

// Ledger lists what the schemas publish, a line each, sorted:
// "explain_gate.output blockers[].kind = Suspended".
func Ledger() []string {
	var out []string
	for _, t := range All() {
		for direction, raw := range t.schemas() {
			var s jsonschema.Schema
			if err := json.Unmarshal(raw, &s); err != nil {
				panic(fmt.Sprintf("schema of %s: %v", t.Name, err))
			}
			walk(&s, "", func(path string, p *jsonschema.Schema) {
				line := t.Name + "." + direction + " " + path
				out = append(out, line)
				for _, v := range p.Enum {
					out = append(out, fmt.Sprintf("%s = %v", line, v))
				}
			})
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// walk visits every property below a schema; items are "[]".
func walk(s *jsonschema.Schema, path string, visit func(path string, s *jsonschema.Schema)) {
	if path != "" {
		visit(path, s)
	}
	if s.Items != nil {
		walk(s.Items, path+"[]", visit)
	}
	if s.Properties == nil {
		return
	}
	for p := s.Properties.Oldest(); p != nil; p = p.Next() {
		sub := p.Key
		if path != "" {
			sub = path + "." + p.Key
		}
		walk(p.Value, sub, visit)
	}
}
