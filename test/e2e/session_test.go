package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

// session is one client of the binary.
type session struct {
	*client.Client
	schemas map[string]*jsonschema.Schema // output schemas, as tools/list gave them
}

// stdio starts the binary with the flags and connects to its pipes.
func stdio(t testing.TB, flags ...string) *session {
	t.Helper()
	c, err := client.NewStdioMCPClient(binary(t), nil, append([]string{"serve", "--log-level", "error"}, flags...)...)
	if err != nil {
		t.Fatal(err)
	}
	return connect(t, c)
}

// overHTTP starts the binary with the flags on a free loopback port.
func overHTTP(t testing.TB, flags ...string) *session {
	t.Helper()
	cmd := exec.Command(binary(t), append([]string{"serve", "--transport", "http", "--listen", "127.0.0.1:0"}, flags...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("cannot stop the server: %v", err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server did not stop cleanly: %v", err)
		}
	})
	url := make(chan string, 1)
	go func() {
		// The log goes on: whoever does not read it stops the server.
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if _, after, ok := strings.Cut(lines.Text(), "url="); ok {
				url <- strings.Fields(after)[0]
				break
			}
		}
		_, _ = io.Copy(io.Discard, stderr)
	}()
	select {
	case u := <-url:
		c, err := client.NewStreamableHttpClient(u)
		if err != nil {
			t.Fatal(err)
		}
		return connect(t, c)
	case <-time.After(20 * time.Second):
		t.Fatal("the server did not say where it listens")
		return nil
	}
}

func connect(t testing.TB, c *client.Client) *session {
	t.Helper()
	t.Cleanup(func() {
		// A stdio server ends by itself when its input does.
		if err := c.Close(); err != nil && !errors.Is(err, io.EOF) {
			t.Logf("closing the session: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{ClientInfo: mcp.Implementation{Name: "e2e", Version: "1"}}}); err != nil {
		t.Fatal(err)
	}
	list, err := c.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Client: c, schemas: map[string]*jsonschema.Schema{}}
	for _, tool := range list.Tools {
		s.schemas[tool.Name] = outputSchema(t, tool)
	}
	// Without a repository, the tools of the repository side are not listed.
	promotion, err := tools.Select([]string{tools.Promotion}, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.schemas) != len(promotion) {
		t.Fatalf("%d tools are listed, %d are for promotions", len(s.schemas), len(promotion))
	}
	return s
}

func outputSchema(t testing.TB, tool mcp.Tool) *jsonschema.Schema {
	t.Helper()
	raw, err := json.Marshal(tool)
	if err != nil {
		t.Fatal(err)
	}
	var wire struct {
		OutputSchema json.RawMessage `json:"outputSchema"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(wire.OutputSchema))
	if err != nil {
		t.Fatalf("%s: output schema: %v", tool.Name, err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("mem:///"+tool.Name, doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("mem:///" + tool.Name)
	if err != nil {
		t.Fatalf("%s: output schema: %v", tool.Name, err)
	}
	return schema
}

// args are a call's arguments.
type args map[string]any

// call returns an answer after holding it against the contract of results: the
// text is the structured content's JSON, which fits the output schema.
func (s *session) call(t testing.TB, tool string, a args) map[string]any {
	t.Helper()
	result := s.raw(t, t.Context(), tool, a)
	text := textOf(t, result)
	if result.IsError {
		t.Fatalf("%s %v: %s", tool, a, text)
	}
	var fromText map[string]any
	if err := json.Unmarshal([]byte(text), &fromText); err != nil {
		t.Fatalf("%s %v: the text is no JSON object: %v", tool, a, err)
	}
	if diff := cmp.Diff(fromText, result.StructuredContent); diff != "" {
		t.Errorf("%s %v: text and structuredContent differ:\n%s", tool, a, diff)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.schemas[tool].Validate(value); err != nil {
		t.Errorf("%s %v: the answer does not fit the output schema: %v", tool, a, err)
	}
	return fromText
}

// fail returns the coded error of a call after holding it against the contract
// of errors: it stands in the text alone.
func (s *session) fail(t testing.TB, tool string, a args) tools.Error {
	t.Helper()
	result := s.raw(t, t.Context(), tool, a)
	text := textOf(t, result)
	if !result.IsError || result.StructuredContent != nil {
		t.Fatalf("%s %v: not an error without structuredContent: %s", tool, a, text)
	}
	return decodeError(t, []byte(text))
}

func decodeError(t testing.TB, raw []byte) tools.Error {
	t.Helper()
	var e tools.Error
	if err := json.Unmarshal(raw, &e); err != nil || e.Code == "" || e.Message == "" {
		t.Fatalf("no coded error: %v: %s", err, raw)
	}
	return e
}

func (s *session) raw(t testing.TB, ctx context.Context, tool string, a args) *mcp.CallToolResult {
	t.Helper()
	result, err := s.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: map[string]any(a)}})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, a, err)
	}
	return result
}

func textOf(t testing.TB, result *mcp.CallToolResult) string {
	t.Helper()
	if len(result.Content) != 1 {
		t.Fatalf("%d contents, want one", len(result.Content))
	}
	text, ok := result.Content[0].(mcp.TextContent)
	if !ok {
		t.Fatalf("the content is a %T, want text", result.Content[0])
	}
	return text.Text
}

// shell runs a tool with `hecate-mcp call … -o json` and returns what it
// printed and its exit code.
func shell(t testing.TB, tool string, a args, flags ...string) (stdout []byte, exit int) {
	t.Helper()
	if a == nil {
		a = args{}
	}
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary(t), append([]string{"call", tool, "--args", string(raw), "-o", "json"}, flags...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err = cmd.Output()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	if stderr.Len() > 0 {
		t.Logf("stderr: %s", stderr.String())
	}
	return stdout, cmd.ProcessState.ExitCode()
}

// rows are the objects of a list in an answer.
func rows(t testing.TB, answer map[string]any, list string) []map[string]any {
	t.Helper()
	items, ok := answer[list].([]any)
	if !ok {
		t.Fatalf("the answer has no list %q: %v", list, answer)
	}
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		out = append(out, item.(map[string]any))
	}
	return out
}

// column is one field of each row.
func column(rows []map[string]any, field string) []string {
	out := []string{}
	for _, r := range rows {
		s, _ := r[field].(string)
		out = append(out, s)
	}
	return out
}
