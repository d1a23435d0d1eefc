package writes

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
)

// readers and writers are every tool that there may be. A new one belongs here
// after somebody has asked whether a model may have it: none of them approves.
var (
	readers = []string{"compute_impact", "explain_gate", "get_audit_trail", "get_evidence", "get_flux_graph", "get_passage", "list_beacons", "list_bundles",
		"list_gates", "list_passages", "preview_promotion", "validate_manifests"}
	writers = map[string]args{
		"promote_bundle": {"gate": staging}, "abort_passage": {"gate": staging}, "poll_beacon": {"beacon": beacon}, "reconcile_flux": {"kustomization": "shop/web"},
	}
)

// approves matches what a tool that approves would say of itself: the verb, at the
// head of a sentence or as a command. That something waits for an approval, or who
// may approve, is no such thing.
var approves = regexp.MustCompile(`(?i)(^|[.:;] )(approves?|signs? off|grants?)\b|records? (an|the) approval|gives? (an|the) approval`)

// forbidden are arguments by which a model would confirm for a person.
var forbidden = []string{"confirm", "confirmed", "yes", "force", "approve", "approved", "confirmation", "token", "requestState", "inputResponses"}

// speaker lists and calls tools over one transport.
type speaker interface {
	list(t testing.TB) []mcp.Tool
	call(t testing.TB, tool string, a args) answer
}

func (s *server) list(t testing.TB) []mcp.Tool {
	t.Helper()
	var r mcp.ListToolsResult
	m := s.ask(t, "tools/list", map[string]any{})
	if err := json.Unmarshal(m.Result, &r); err != nil {
		t.Fatalf("%v: %s", err, m.Result)
	}
	return r.Tools
}

// overHTTP is a client of a server on a free loopback port.
type overHTTP struct{ *client.Client }

func (o overHTTP) list(t testing.TB) []mcp.Tool {
	t.Helper()
	r, err := o.ListTools(timeout(t), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Tools
}

func (o overHTTP) call(t testing.TB, tool string, a args) answer {
	t.Helper()
	r, err := o.CallTool(timeout(t), mcp.CallToolRequest{Params: mcp.CallToolParams{Name: tool, Arguments: a}})
	if err != nil {
		return answer{raw: err.Error(), err: &tools.Error{Code: "Protocol", Message: err.Error()}}
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, message{Result: raw})
}

func (w *world) http(t testing.TB, dir string, args ...string) overHTTP {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append(args, "--transport", "http", "--listen", "127.0.0.1:0", "--log-level", "info")...)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir+"/run", "KUBECONFIG=")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	url := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if _, after, ok := strings.Cut(lines.Text(), "url="); ok {
				url <- strings.Fields(after)[0]
				break
			}
		}
		_, _ = io.Copy(io.Discard, stderr) // who does not read the log stops the server
	}()
	select {
	case u := <-url:
		c, err := client.NewStreamableHttpClient(u)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if err := c.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{ProtocolVersion: "2025-11-25", ClientInfo: mcp.Implementation{Name: "tools", Version: "1"}}}); err != nil {
			t.Fatal(err)
		}
		return overHTTP{c}
	case <-time.After(30 * time.Second):
		t.Fatal("the server did not say where it listens")
		return overHTTP{}
	}
}

// TestTools enumerates the tools of every configuration: none approves, and those
// that write are there only where they were allowed.
func TestTools(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	repository := t.TempDir()
	if err := examples.Repository(repository); err != nil {
		t.Fatal(err)
	}
	kubeconfig := w.Kubeconfig(t, cluster.Admin, w.ns)
	seen := map[string]bool{}
	for _, transport := range []string{"stdio", "http"} {
		for _, writes := range []bool{false, true} {
			for _, toolsets := range []string{"", "all", "promotion", "gitops"} {
				for _, repo := range []bool{false, true} {
					flags := []string{"--kubeconfig", kubeconfig, "--log-level", "warn"}
					name := []string{transport}
					add := func(on bool, more ...string) {
						if on {
							flags, name = append(flags, more...), append(name, more[0])
						}
					}
					dir := home(t)
					add(writes, "--allow-writes", "--write-log", dir+"/writes.jsonl")
					add(toolsets != "", "--toolsets="+toolsets)
					add(repo, "--repo", repository)
					t.Run(strings.Join(name, " "), func(t *testing.T) {
						if toolsets == "gitops" && !repo {
							// Not even a server: its tools would have nothing to read.
							s := w.start(t, dir, append([]string{"serve"}, flags...)...)
							<-s.done
							if err := s.cmd.Wait(); err == nil || !strings.Contains(s.stderr.String(), "--repo") {
								t.Errorf("it ran: %v: %s", err, s.stderr.String())
							}
							return
						}
						var s speaker
						if transport == "http" {
							s = w.http(t, dir, append([]string{"serve"}, flags...)...)
						} else {
							p := w.start(t, dir, append([]string{"serve"}, flags...)...)
							p.initialize(t, false)
							s = p
						}
						names := checkTools(t, s.list(t), writes)
						for _, n := range names {
							seen[n] = true
						}
						w.Requests().Reset()
						for tool, a := range writers {
							got := s.call(t, tool, a)
							switch {
							case !writes:
								w.refused(t, got, tools.Refused, "WritesDisabled")
							case got.err == nil:
								t.Errorf("%s: %s", tool, got)
							case !slices.Contains(names, tool) && got.err.Code != "Protocol":
								t.Errorf("%s of a toolset that was not asked for: %s", tool, got)
							case tool == "promote_bundle" && slices.Contains(names, tool):
								w.refused(t, got, required, "NoForm")
							}
						}
						for _, tool := range []string{"approve", "approve_bundle", "confirm", "approve_promotion"} {
							if got := s.call(t, tool, args{"gate": production, "bundle": "shop-000000000001"}); got.err == nil || got.err.Code != "Protocol" {
								t.Errorf("%s: %s", tool, got)
							}
						}
						if n := w.writes(); n > 0 {
							t.Errorf("%d writes:\n%s", n, w.Requests())
						}
					})
				}
			}
		}
	}
	if len(seen) != len(readers)+len(writers) {
		t.Errorf("seen were %v", seen)
	}
}

// checkTools checks the tools of one configuration and returns their names.
func checkTools(t *testing.T, list []mcp.Tool, writes bool) (names []string) {
	t.Helper()
	for _, tool := range list {
		names = append(names, tool.Name)
		_, isWriter := writers[tool.Name]
		switch {
		case isWriter && !writes:
			t.Errorf("%s writes and is listed without --allow-writes", tool.Name)
		case !isWriter && !slices.Contains(readers, tool.Name):
			t.Errorf("%s is new: may a model have it?", tool.Name)
		}
		if strings.Contains(tool.Name, "approv") || strings.Contains(tool.Name, "sign") || approves.MatchString(tool.Description) || approves.MatchString(tool.Title) {
			t.Errorf("%s approves: %s", tool.Name, tool.Description)
		}
		raw, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			InputSchema struct {
				Properties           map[string]any
				AdditionalProperties *bool
			}
		}
		if err := json.Unmarshal(raw, &schema); err != nil {
			t.Fatal(err)
		}
		if p := schema.InputSchema.AdditionalProperties; p == nil || *p {
			t.Errorf("%s takes arguments that it does not name", tool.Name)
		}
		for _, name := range forbidden {
			if schema.InputSchema.Properties[name] != nil {
				t.Errorf("%s has the argument %s", tool.Name, name)
			}
		}
		if isWriter && schema.InputSchema.Properties["actor"] != nil {
			t.Errorf("%s lets a model say who asks", tool.Name)
		}
		if hint := tool.Annotations.ReadOnlyHint; hint == nil || *hint && isWriter {
			t.Errorf("%s is said to read only", tool.Name)
		}
	}
	if len(names) == 0 {
		t.Error("there are no tools")
	}
	return names
}

// TestCall runs the tools that write, and made-up ones that approve, by
// hecate-mcp call: it asks nobody, and so does nothing.
func TestCall(t *testing.T) {
	w := newWorld(t)
	w.bundle(t)
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	run := func(t *testing.T, arguments ...string) (exit int, out string) {
		t.Helper()
		raw, err := exec.Command(path, append(arguments, "--kubeconfig", w.Kubeconfig(t, cluster.Admin, w.ns))...).CombinedOutput()
		if x, ok := err.(*exec.ExitError); ok {
			exit = x.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		return exit, string(raw)
	}
	w.Requests().Reset()
	commands := map[string]string{"promote_bundle": "hecate-mcp promote", "abort_passage": "hecate-mcp abort", "poll_beacon": "hecate-mcp poll"}
	for tool, a := range writers {
		raw, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		for _, output := range []string{"text", "json"} {
			exit, out := run(t, "call", tool, "--args", string(raw), "-o", output)
			if exit != 5 || !strings.Contains(out, "WritesDisabled") || !strings.Contains(out, commands[tool]) {
				t.Errorf("%s: exit %d: %s", tool, exit, out)
			}
		}
		if exit, out := run(t, "call", tool, "--allow-writes"); exit != 1 {
			t.Errorf("%s --allow-writes: exit %d: %s", tool, exit, out)
		}
	}
	for _, tool := range []string{"approve", "approve_bundle", "confirm"} {
		if exit, out := run(t, "call", tool); exit != 3 {
			t.Errorf("%s: exit %d: %s", tool, exit, out)
		}
	}
	// The commands that are a person's want a terminal, whatever the flags.
	for _, line := range []string{"approve shop-000000000001 --gate production", "approve shop-000000000001 --gate production --yes", "approve shop-000000000001 --gate production --actor ann@example.com",
		"confirm", "promote staging", "abort --gate staging", "poll shop"} {
		if exit, out := run(t, strings.Fields(line)...); exit != 1 {
			t.Errorf("%s: exit %d: %s", line, exit, out)
		}
	}
	if n := w.writes(); n > 0 {
		t.Errorf("%d writes:\n%s", n, w.Requests())
	}
}
