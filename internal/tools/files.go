package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// SchemaFiles are the published schemas: TOOL.input.json and TOOL.output.json,
// indented; outputs in full.
func SchemaFiles() map[string][]byte {
	out := map[string][]byte{}
	for _, t := range All() {
		for direction, schema := range map[string]json.RawMessage{"input": t.InputSchema, "output": t.Published} {
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
