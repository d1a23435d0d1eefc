package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sjs "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/confirm"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

// demoEnv is the embedded estate with its evidence server.
func demoEnv(t testing.TB) *Env {
	t.Helper()
	src, err := cluster.OpenDemo(examples.Estate(), examples.Fides(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := ops.New(src.Client)
	o.Now = func() metav1.Time { return metav1.NewTime(src.Now()) }
	o.DialFides = func(c fides.Config) (*fides.Client, error) {
		c.HTTPClient = src.HTTPClient
		return fides.New(c)
	}
	env := &Env{Ops: o, Source: src, AllNamespaces: true, JoinGates: true}
	addRepository(t, env)
	return env
}

// addRepository gives an environment the demo's repository.
func addRepository(t testing.TB, env *Env) {
	t.Helper()
	dir := t.TempDir()
	if err := examples.Repository(dir); err != nil {
		t.Fatal(err)
	}
	engine, err := gitops.New(gitops.Options{Builder: render.NewLocal()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	env.GitOps, env.Repositories = engine, []Repository{{Name: "demo", Path: dir}}
}

// snapshotEnv opens a folder of objects; nobody else is asked.
func snapshotEnv(t testing.TB, dir string) *Env {
	t.Helper()
	copied := filepath.Join(t.TempDir(), filepath.Base(dir))
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(copied, "want.yaml")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	src, err := cluster.Open(context.Background(), cluster.Options{Snapshot: copied})
	if err != nil {
		t.Fatal(err)
	}
	o := ops.New(src.Client)
	o.DialFides = nil
	o.Now = func() metav1.Time { return metav1.NewTime(src.Now()) }
	return &Env{Ops: o, Source: src, AllNamespaces: true}
}

// estates are every set of objects that there is: the demo, the project's own
// states and, where it is beside the project, what a real controller wrote.
func estates(t testing.TB) map[string]*Env {
	t.Helper()
	out := map[string]*Env{"demo": demoEnv(t)}
	for _, pattern := range []string{"../ops/testdata/states/*/objects.yaml", "../../../shared/scenarios/*/gates.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			out[filepath.Base(filepath.Dir(f))] = snapshotEnv(t, filepath.Dir(f))
		}
	}
	return out
}

func compileSchema(t testing.TB, raw json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:///schema", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:///schema")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemas holds what the strictest clients need of a schema.
func TestSchemas(t *testing.T) {
	for _, tool := range All() {
		for direction, raw := range map[string]json.RawMessage{"input": tool.InputSchema, "output": tool.OutputSchema, "published": tool.Published} {
			t.Run(tool.Name+"/"+direction, func(t *testing.T) {
				compileSchema(t, raw)
				if bytes.Contains(raw, []byte(`"$ref"`)) || bytes.Contains(raw, []byte(`"$defs"`)) || bytes.Contains(raw, []byte(`"$schema"`)) {
					t.Error("has $ref, $defs or $schema")
				}
				var root struct {
					Type                 string         `json:"type"`
					AdditionalProperties any            `json:"additionalProperties"`
					Properties           map[string]any `json:"properties"`
				}
				if err := json.Unmarshal(raw, &root); err != nil {
					t.Fatal(err)
				}
				if root.Type != "object" || root.AdditionalProperties != false || len(root.Properties) == 0 {
					t.Errorf("the root is no closed object with properties: %s %v", root.Type, root.AdditionalProperties)
				}
				var s sjs.Schema
				if err := json.Unmarshal(raw, &s); err != nil {
					t.Fatal(err)
				}
				walk(&s, "", func(path string, p *sjs.Schema) {
					if strings.HasSuffix(path, "[]") {
						return
					}
					// Below the root, the lean schema keeps only properties with a code.
					if p.Description == "" && len(p.Enum) == 0 {
						t.Errorf("%s has no description", path)
					}
					if p.Type == "" {
						t.Errorf("%s has no type", path)
					}
					// A code without its enum is prose to whoever reads the schema.
					name := path[strings.LastIndexByte(path, '.')+1:]
					if direction == "published" && (name == "state" || name == "conclusion") && p.Type == "string" && len(p.Enum) == 0 && !strings.Contains(path, "change.") {
						t.Errorf("%s is a code without an enum", path)
					}
				})
			})
		}
	}
}

// TestAbout holds what a client and a model read of a tool.
func TestAbout(t *testing.T) {
	for _, tool := range All() {
		if n := len(tool.Description); n == 0 || n > 700 {
			t.Errorf("%s: the description has %d characters, 1 to 700 are allowed", tool.Name, n)
		}
		if tool.Title == "" || tool.Toolset == "" {
			t.Errorf("%s: no title or toolset", tool.Name)
		}
		d := tool.definition().Annotations
		if d.ReadOnlyHint == nil || d.DestructiveHint == nil || d.IdempotentHint == nil || d.OpenWorldHint == nil {
			t.Errorf("%s: not all four hints are set", tool.Name)
		}
		if *d.DestructiveHint && !tool.Writes {
			t.Errorf("%s: a read is said to destroy", tool.Name)
		}
		// Asking the change gate can write to the trail (answers 38).
		asks := tool.Name == "get_evidence" || tool.Name == "preview_promotion" || tool.Writes
		if *d.ReadOnlyHint == asks {
			t.Errorf("%s: readOnlyHint is %v", tool.Name, *d.ReadOnlyHint)
		}
	}
	for _, text := range []string{Instructions, writeInstructions} {
		if n := len(text); n > 2048 {
			t.Errorf("the instructions have %d characters; clients cut them at 2,048", n)
		}
	}
	if strings.Contains(writeInstructions, "none promotes") || !strings.Contains(writeInstructions, "never try to confirm yourself") || strings.Contains(writeInstructions, "never the way forward.") == strings.Contains(writeInstructions, "it stands in rollback") {
		t.Error("the instructions of a server that writes are those of one that reads")
	}
	for _, tool := range All() {
		for _, a := range tool.arguments {
			if !slices.Contains([]string{"gate", "bundle", "passage", "beacon", "namespace", "limit", "cursor", "format", "kind", "actor", "since", "until", "consultChangeGate",
				"repo", "ref", "base", "cluster", "kustomization", "state", "severity", "kubernetesVersion", "wait"}, a) {
				t.Errorf("%s: argument %s is named like no other tool's", tool.Name, a)
			}
		}
	}
}

// TestBudget holds the size of each toolset's part of the list of tools, in bytes
// of compact JSON: every client loads it whole.
func TestBudget(t *testing.T) {
	writing := slices.DeleteFunc(All(), func(t Tool) bool { return !t.Writes })
	for toolset, most := range map[string]struct{ inputs, all int }{Promotion: {10_000, 28_000}, GitOps: {3_000, 10_000}, "writes": {3_000, 8_000}} {
		selected := writing
		if toolset != "writes" {
			var err error
			if selected, err = Select([]string{toolset}, false); err != nil {
				t.Fatal(err)
			}
		}
		inputs, outputs := 0, 0
		for _, tool := range selected {
			raw, err := encode(map[string]any{"name": tool.Name, "description": tool.Description, "inputSchema": tool.InputSchema})
			if err != nil {
				t.Fatal(err)
			}
			inputs += len(raw)
			outputs += len(tool.OutputSchema)
		}
		raw, err := Definitions(selected)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: names, descriptions, inputs %d; output schemas %d; its part of the list %d bytes", toolset, inputs, outputs, len(raw))
		if inputs >= most.inputs {
			t.Errorf("%s: names, descriptions and inputs have %d bytes; under %d are allowed", toolset, inputs, most.inputs)
		}
		if len(raw) >= most.all {
			t.Errorf("%s: its part of the list has %d bytes; under %d are allowed", toolset, len(raw), most.all)
		}
	}
}

// arguments are calls of each tool that an estate can answer.
func arguments(t testing.TB, env *Env) map[string][]string {
	t.Helper()
	ctx := context.Background()
	out := map[string][]string{
		"explain_gate": {`{}`, `{"namespace":"*","limit":1}`}, "list_gates": {`{}`, `{"format":"detailed","limit":2}`},
		"list_bundles": {`{}`, `{"format":"detailed"}`}, "list_beacons": {`{}`}, "list_passages": {`{}`, `{"format":"detailed"}`},
		"get_audit_trail": {`{}`, `{"kind":"refused","format":"detailed"}`},
	}
	if len(env.Repositories) > 0 {
		for name, more := range map[string][]string{"get_flux_graph": {`"state":"rendered"`}, "validate_manifests": {`"severity":"pass"`, `"kubernetesVersion":"1.35"`}, "compute_impact": {`"base":"main"`}} {
			ref := fmt.Sprintf(`"ref":%q`, examples.Branch)
			out[name] = []string{`{}`, `{"format":"detailed"}`, `{` + ref + `}`, `{` + ref + `,"format":"detailed"}`, `{` + ref + `,"limit":1,"cluster":"shop"}`}
			for _, m := range more {
				out[name] = append(out[name], `{`+ref+`,`+m+`}`)
			}
		}
	}
	gates, err := env.Ops.Gates(ctx, ops.AllNamespaces)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range gates {
		a := fmt.Sprintf(`{"gate":%q,"namespace":%q`, g.Name, g.Namespace)
		out["explain_gate"] = append(out["explain_gate"], a+`}`, a+`,"format":"detailed"}`)
		out["preview_promotion"] = append(out["preview_promotion"], a+`}`, a+`,"consultChangeGate":true}`)
	}
	bundles, err := env.Ops.Bundles(ctx, ops.AllNamespaces)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bundles[:min(len(bundles), 6)] {
		out["get_evidence"] = append(out["get_evidence"], fmt.Sprintf(`{"bundle":%q,"namespace":%q}`, b.Name, b.Namespace))
	}
	passages, err := env.Ops.Passages(ctx, ops.AllNamespaces, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range passages[:min(len(passages), 8)] {
		a := fmt.Sprintf(`{"passage":%q,"namespace":%q`, p.Name, p.Namespace)
		out["get_passage"] = append(out["get_passage"], a+`}`, a+`,"format":"detailed"}`)
	}
	return out
}

// TestAnswers runs every tool over every estate: each answer fits its schemas,
// stands within the size that is allowed, and comes the same twice.
func TestAnswers(t *testing.T) {
	schemas := map[string][2]*jsonschema.Schema{}
	for _, tool := range All() {
		schemas[tool.Name] = [2]*jsonschema.Schema{compileSchema(t, tool.OutputSchema), compileSchema(t, tool.Published)}
	}
	called := map[string]int{}
	for name, env := range estates(t) {
		for _, tool := range All() {
			for _, args := range arguments(t, env)[tool.Name] {
				a := tool.Call(context.Background(), env, json.RawMessage(args))
				if a.Err != nil {
					// A long Gate name is refused by nobody's rule but the label's.
					t.Errorf("%s: %s %s: %v", name, tool.Name, args, a.Err)
					continue
				}
				called[tool.Name]++
				doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.JSON))
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range schemas[tool.Name] {
					if err := s.Validate(doc); err != nil {
						t.Errorf("%s: %s %s does not fit its schema (%d): %v", name, tool.Name, args, i, err)
					}
				}
				if !strings.Contains(args, "detailed") && len(a.JSON) > 32_000 {
					t.Errorf("%s: %s %s has %d bytes; 8,000 tokens are allowed", name, tool.Name, args, len(a.JSON))
				}
				again := tool.Call(context.Background(), env, json.RawMessage(args))
				if !bytes.Equal(a.JSON, again.JSON) && !strings.Contains(args, "consult") && tool.Name != "get_evidence" {
					t.Errorf("%s: %s %s answers differently the second time", name, tool.Name, args)
				}
				var out struct {
					Summary string `json:"summary"`
					Scope   Scope  `json:"scope"`
				}
				if err := json.Unmarshal(a.JSON, &out); err != nil || out.Summary == "" || out.Scope.AsOf == "" && tool.Toolset != GitOps {
					t.Errorf("%s: %s %s has no summary or scope (%v)", name, tool.Name, args, err)
				}
				var text bytes.Buffer
				if err := tool.Text(NewWriter(&text, false), a); err != nil || !strings.HasPrefix(text.String(), out.Summary) {
					t.Errorf("%s: %s %s: the text does not begin with the summary (%v)", name, tool.Name, args, err)
				}
				if strings.Contains(text.String(), "\x1b") {
					t.Errorf("%s: %s: colour without a terminal", name, tool.Name)
				}
			}
		}
	}
	for _, tool := range All() {
		if called[tool.Name] == 0 && !tool.Writes { // those have tests of their own
			t.Errorf("%s was never called", tool.Name)
		}
	}
}

// TestExplainSize holds how much of a conversation an explanation takes.
func TestExplainSize(t *testing.T) {
	var sizes []int
	for name, env := range estates(t) {
		for _, args := range arguments(t, env)["explain_gate"] {
			if strings.Contains(args, "detailed") || !strings.Contains(args, "gate") {
				continue
			}
			a := explainGate.Call(context.Background(), env, json.RawMessage(args))
			if len(a.JSON) >= 8000 {
				t.Errorf("%s %s: %d bytes", name, args, len(a.JSON))
			}
			sizes = append(sizes, len(a.JSON))
		}
	}
	slices.Sort(sizes)
	median := sizes[len(sizes)/2]
	t.Logf("%d explanations: median %d, largest %d bytes", len(sizes), median, sizes[len(sizes)-1])
	if median >= 2800 {
		t.Errorf("the median explanation has %d bytes; under 2,800 are allowed", median)
	}
}

// TestBadArguments calls every tool with what no caller should send: a coded
// error that names what is valid, never a panic, never a default in silence.
func TestBadArguments(t *testing.T) {
	env := demoEnv(t)
	desk, err := confirm.New(confirm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(desk.Close)
	env.Writes = &Writes{Desk: desk}
	long := strings.Repeat("a", 300)
	for _, tool := range All() {
		valid := map[string]any{}
		var schema struct {
			Required   []string                  `json:"required"`
			Properties map[string]map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		for _, r := range schema.Required {
			valid[r] = "x"
		}
		with := func(k string, v any) string {
			m := map[string]any{}
			for key, value := range valid {
				m[key] = value
			}
			m[k] = v
			raw, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}
		cases := []struct{ name, args, says string }{
			{"not JSON", `{"`, "JSON"},
			{"an array", `[]`, "object"},
			{"a string", `"gate"`, "object"},
			{"unknown argument", with("gaet", "production"), "unknown argument"},
			{"invalid UTF-8", "{\"namespace\":\"\xff\"}", "UTF-8"},
			{"a large object", with("namespace", strings.Repeat("x", maxArguments)), "bytes"},
			{"two values", `{} {}`, "JSON"},
			{"a key twice", `{"namespace":"a","namespace":"b"}`, "twice"},
		}
		for name, p := range schema.Properties {
			switch p["type"] {
			case "string":
				cases = append(cases, []struct{ name, args, says string }{
					{name + " as a number", with(name, 7), "want string"},
					{name + " as null", with(name, nil), "want string"},
					{name + " as an object", with(name, map[string]any{"a": 1}), "want string"},
					{name + " empty", with(name, ""), ""},
					{name + " with control characters", with(name, "a\x1b[31m\u202eb\x00"), ""},
				}...)
				if !slices.Contains([]string{"actor", "cursor"}, name) {
					cases = append(cases, struct{ name, args, says string }{name + " over-long", with(name, long), ""})
				}
				if slices.Contains([]string{"gate", "bundle", "passage", "beacon", "namespace"}, name) {
					cases = append(cases, []struct{ name, args, says string }{
						{name + " as a path", with(name, "../../secrets"), "not a valid name"},
						{name + " as a selector", with(name, "a,b=c"), "not a valid name"},
						{name + " in capitals", with(name, "Production"), "not a valid name"},
					}...)
				}
			case "integer":
				for _, v := range []any{0, -1, 201, 1.5, "20", true, 1e30} {
					cases = append(cases, struct{ name, args, says string }{fmt.Sprintf("%s as %v", name, v), with(name, v), name})
				}
			case "boolean":
				cases = append(cases, struct{ name, args, says string }{name + " as a string", with(name, "yes"), "want boolean"})
			default:
				t.Errorf("%s: argument %s has type %v", tool.Name, name, p["type"])
			}
		}
		if len(schema.Required) > 0 {
			cases = append(cases, struct{ name, args, says string }{"nothing", `{}`, "required"})
		}
		for _, c := range cases {
			t.Run(tool.Name+"/"+c.name, func(t *testing.T) {
				a := tool.Call(context.Background(), env, json.RawMessage(c.args))
				if a.Err == nil {
					t.Fatalf("answered %.200s", a.JSON)
				}
				if a.Err.Code != InvalidArgument && a.Err.Code != TooLarge {
					t.Errorf("code %s: %s", a.Err.Code, a.Err.Message)
				}
				if !strings.Contains(a.Err.Message, c.says) {
					t.Errorf("says %q, not %q", a.Err.Message, c.says)
				}
				if len(a.JSON) > 2000 || strings.ContainsAny(a.Err.Message, "\x1b\u202e\x00") {
					t.Errorf("repeats what was sent: %.200q", a.JSON)
				}
			})
		}
	}
}

// TestUnknownNames holds that a name that is not there is answered with what is.
func TestUnknownNames(t *testing.T) {
	env := demoEnv(t)
	for _, c := range []struct {
		tool, args string
		code       Code
		candidate  string
	}{
		{"explain_gate", `{"gate":"prodution"}`, NotFound, "production"},
		{"explain_gate", `{"gate":"sta","namespace":"payments"}`, NotFound, ""},
		{"explain_gate", `{"gate":"a"}`, Ambiguous, "staging"},
		{"preview_promotion", `{"gate":"nowhere"}`, NotFound, ""},
		{"preview_promotion", `{"gate":"production","bundle":"storefront-000000000000"}`, NotFound, "storefront-de4370fba351"},
		{"get_passage", `{"passage":"dev-00000","namespace":"shop"}`, NotFound, ""},
		{"get_passage", `{"passage":"dev-00000"}`, NotFound, ""},
		{"get_evidence", `{"bundle":"storefront-0","namespace":"shop"}`, NotFound, "storefront-de4370fba351"},
		{"list_bundles", `{"gate":"nowhere"}`, NotFound, ""},
		{"get_audit_trail", `{"gate":"nowhere"}`, NotFound, ""},
	} {
		tool, err := Find(c.tool)
		if err != nil {
			t.Fatal(err)
		}
		a := tool.Call(context.Background(), env, json.RawMessage(c.args))
		if a.Err == nil || a.Err.Code != c.code {
			t.Errorf("%s %s: %.300s", c.tool, c.args, a.JSON)
			continue
		}
		if c.candidate != "" && !slices.ContainsFunc(a.Err.Candidates, func(o ops.Object) bool { return o.Name == c.candidate }) {
			t.Errorf("%s %s: candidates %v lack %s", c.tool, c.args, a.Err.Candidates, c.candidate)
		}
		if a.Err.ExitCode() != 3 {
			t.Errorf("%s: exit code %d", c.tool, a.Err.ExitCode())
		}
	}
}

// TestPanicStaysInside holds that a fault of a tool is a coded error that says
// nothing of the fault.
func TestPanicStaysInside(t *testing.T) {
	broken := New(About{Name: "broken"}, func(context.Context, *Env, InFormat) (Result, error) { panic("secret-value") }, func(*Writer, Result) {})
	a := broken.Call(context.Background(), demoEnv(t), nil)
	if a.Err == nil || a.Err.Code != Internal || bytes.Contains(a.JSON, []byte("secret-value")) {
		t.Errorf("%s", a.JSON)
	}
}

// TestNothingSecret holds that the demo's token leaves by no tool.
func TestNothingSecret(t *testing.T) {
	env := demoEnv(t)
	for _, tool := range All() {
		for _, args := range arguments(t, env)[tool.Name] {
			a := tool.Call(context.Background(), env, json.RawMessage(args))
			if bytes.Contains(a.JSON, []byte("fides_")) {
				t.Errorf("%s %s shows a token", tool.Name, args)
			}
		}
	}
}

// TestPublished holds the schema files to the code, and the code to everything
// that was ever published.
func TestPublished(t *testing.T) {
	const dir = "../../schemas"
	files := SchemaFiles()
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the code says (%v): run make generate", name, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()] == nil && e.Name() != LedgerFile {
			t.Errorf("%s belongs to no tool", e.Name())
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, LedgerFile))
	if err != nil {
		t.Fatal(err)
	}
	now := Ledger()
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimSpace(line); !slices.Contains(now, line) {
			t.Errorf("published once and gone: %s", line)
		}
	}
	for _, line := range now {
		if !strings.Contains("\n"+string(raw), "\n"+line+"\n") {
			t.Errorf("not in %s yet: %s: run make generate", LedgerFile, line)
		}
	}
}

// TestCatalogue holds that every enum value of a schema is explained.
func TestCatalogue(t *testing.T) {
	known := map[string]bool{}
	for _, g := range Catalogue() {
		for _, c := range g.Codes {
			if c.Meaning == "" {
				t.Errorf("%s has no meaning", c.Code)
			}
			known[c.Code] = true
		}
	}
	for _, line := range Ledger() {
		if _, value, ok := strings.Cut(line, " = "); ok && !known[value] && value != "concise" && value != "detailed" {
			t.Errorf("%s is not in the catalogue", line)
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, `{"gate":"production"}`, `{"limit":3,"cursor":"x"}`, `{"since":"2026-01-01T00:00:00Z"}`, `null`, `[1]`} {
		f.Add(s)
	}
	env := demoEnv(f)
	f.Fuzz(func(t *testing.T, args string) {
		for _, tool := range All() {
			if a := tool.Call(context.Background(), env, json.RawMessage(args)); !json.Valid(a.JSON) {
				t.Errorf("%s: %q", tool.Name, a.JSON)
			} else if a.Err != nil && a.Err.Code == Internal {
				t.Errorf("%s: %s", tool.Name, a.JSON)
			}
		}
	})
}
