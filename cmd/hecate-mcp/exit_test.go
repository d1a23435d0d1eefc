package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

// kubeconfig has one context, "only", in namespace shop.
func kubeconfig(server string) string {
	return `apiVersion: v1
kind: Config
current-context: only
contexts:
- {name: only, context: {cluster: c, user: u, namespace: shop}}
clusters:
- {name: c, cluster: {server: "` + server + `"}}
users:
- {name: u, user: {token: secret-of-the-test}}
`
}

// TestExitCodes holds 0 answered, 1 usage, 2 could not tell, 3 not found or
// ambiguous, and that whoever reads learns what is valid.
func TestExitCodes(t *testing.T) {
	isolate(t)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	dead := writeFile(t, "config", kubeconfig(closed.URL))
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"answered", []string{"call", "list_gates", "--demo"}, 0, []string{"production"}},
		{"answered as JSON", []string{"call", "list_gates", "--demo", "-o", "json"}, 0, []string{`"total":6`}},
		{"help", []string{"--help"}, 0, []string{"explain_gate --demo"}},
		{"unknown command", []string{"explain"}, 1, []string{`"explain"`}},
		{"unknown flag", []string{"call", "list_gates", "--demo", "--gate", "x"}, 1, []string{"--gate"}},
		{"no tool", []string{"call", "--demo"}, 1, []string{"is missing", "hecate-mcp call TOOL"}},
		{"no Gate", []string{"promote", "--demo", "--yes"}, 1, []string{"is missing", "hecate-mcp promote GATE"}},
		{"two Passages", []string{"abort", "a", "b", "--demo", "--yes"}, 1, []string{`"b" is one argument too many`, "hecate-mcp abort [PASSAGE]"}},
		{"two tools", []string{"call", "list_gates", "list_bundles", "--demo"}, 1, []string{`"list_bundles" is one argument too many`}},
		{"unknown argument", []string{"call", "explain_gate", "--demo", "--arg", "name=production"}, 1, []string{"name", "valid are", "gate"}},
		{"argument without value", []string{"call", "explain_gate", "--demo", "--arg", "production"}, 1, []string{"key=value"}},
		{"argument twice", []string{"call", "explain_gate", "--demo", "--arg", "gate=a", "--arg", "gate=b"}, 1, []string{`"gate" is given twice`}},
		{"argument twice, once in JSON", []string{"call", "explain_gate", "--demo", "--args", `{"gate":"a"}`, "--arg", "gate=a"}, 1, []string{`"gate" is given twice`}},
		{"--args is an array", []string{"call", "explain_gate", "--demo", "--args", `["production"]`}, 1, []string{"JSON object"}},
		{"--args is null", []string{"call", "explain_gate", "--demo", "--args", `null`}, 1, []string{"JSON object"}},
		{"--args has more behind it", []string{"call", "explain_gate", "--demo", "--args", `{} {}`}, 1, []string{"JSON object"}},
		{"missing argument", []string{"call", "get_passage", "--demo"}, 1, []string{"passage", "required"}},
		{"two sources", []string{"call", "list_gates", "--demo", "--snapshot", "x"}, 1, []string{"--demo", "--snapshot", "exclude"}},
		{"demo and kubeconfig", []string{"call", "list_gates", "--demo", "--kubeconfig", dead}, 1, []string{"--demo", "--kubeconfig", "exclude"}},
		{"demo and evidence server", []string{"call", "list_gates", "--demo", "--fides-server", "http://127.0.0.1:1"}, 1, []string{"--fides-server", "--demo"}},
		{"bad now", []string{"call", "list_gates", "--demo", "--now", "yesterday"}, 1, []string{"yesterday", "RFC 3339"}},
		{"bad output", []string{"call", "list_gates", "--demo", "-o", "yaml"}, 1, []string{"yaml", "text, json"}},
		{"bad output of tools", []string{"tools", "-o", "yaml"}, 1, []string{"yaml", "table, json"}},
		{"bad output of version", []string{"version", "-o", "yaml"}, 1, []string{"yaml", "text, json"}},
		{"bad log level", []string{"call", "list_gates", "--demo", "--log-level", "loud"}, 1, []string{"loud", "debug, info, warn, error"}},
		{"no kubeconfig", []string{"call", "list_gates"}, 1, []string{"no kubeconfig", "--snapshot", "--demo"}},
		{"missing kubeconfig", []string{"call", "list_gates", "--kubeconfig", dead + "-absent"}, 1, []string{dead + "-absent"}},
		{"unknown context", []string{"call", "list_gates", "--kubeconfig", dead, "--context", "other"}, 1, []string{`"other"`, "valid: only"}},
		{"missing snapshot", []string{"call", "list_gates", "--snapshot", dead + "-absent"}, 1, []string{dead + "-absent"}},
		{"unknown transport", []string{"serve", "--demo", "--transport", "sse"}, 1, []string{"sse", "stdio, http"}},
		{"unknown toolset", []string{"serve", "--demo", "--toolsets", "promotion,writes"}, 1, []string{"writes", "all, promotion, gitops"}},
		{"toolset without a repository", []string{"serve", "--toolsets", "gitops"}, 1, []string{"gitops", "--repo PATH"}},
		{"no such repository", []string{"call", "get_flux_graph", "--repo", dead + "-absent"}, 1, []string{"no folder"}},
		{"two repositories of one name", []string{"call", "get_flux_graph", "--repo", "a=.", "--repo", "a=.."}, 1, []string{"two repositories", "NAME=PATH"}},
		{"no repository", []string{"call", "get_flux_graph"}, 3, []string{"no repository is configured", "--repo PATH"}},
		{"repository without a path", []string{"call", "get_flux_graph", "--repo", "a="}, 1, []string{"path is missing", "NAME=PATH"}},
		{"repository without a name", []string{"call", "get_flux_graph", "--repo", "=."}, 1, []string{"NAME=PATH"}},
		{"a variable's name", []string{"call", "get_flux_graph", "--repo", ".", "--vars", "1-x=secret-of-the-test"}, 1, []string{"1-x", "letters, digits and _"}},
		{"a Kustomization that is not there", []string{"call", "validate_manifests", "--demo", "--arg", "kustomization=storefornt"}, 3, []string{"storefornt", "storefront-dev"}},
		{"a bad variable", []string{"call", "get_flux_graph", "--repo", ".", "--vars", "secret-of-the-test"}, 1, []string{"NAME=VALUE"}},
		{"a repository that is not configured", []string{"call", "get_flux_graph", "--demo", "--arg", "repo=other"}, 1, []string{"other", "demo"}},
		{"unknown ref", []string{"call", "get_flux_graph", "--demo", "--arg", "ref=nowhere"}, 3, []string{"nowhere", "more-memory"}},
		{"unknown cluster", []string{"call", "get_flux_graph", "--demo", "--arg", "cluster=other"}, 1, []string{"other", "shop"}},
		{"unknown Kubernetes version", []string{"call", "validate_manifests", "--demo", "--kubernetes-version", "1.10"}, 1, []string{"1.10", "1.36"}},
		{"a verdict that fails", []string{"call", "validate_manifests", "--demo", "--arg", "ref=more-memory"}, 4, []string{"UnknownField", "apps/storefront/production/replicas.yaml:6"}},
		{"a verdict that passes", []string{"call", "validate_manifests", "--demo"}, 0, []string{"sound"}},
		{"address of the network", []string{"serve", "--demo", "--transport", "http", "--listen", "0.0.0.0:0"}, 1, []string{"0.0.0.0:0", "127.0.0.1:PORT"}},
		{"dead API server", []string{"call", "list_gates", "--kubeconfig", dead}, 2, []string{"Unavailable", "connection refused"}},
		{"folder that cannot be written", []string{"schema", "--dir", dead}, 2, []string{dead}},
		{"a tool that writes", []string{"call", "promote_bundle", "--demo", "--arg", "gate=staging"}, 5, []string{"WritesDisabled", "hecate-mcp promote"}},
		{"promoting without a terminal", []string{"promote", "staging", "--demo"}, 1, []string{"--yes"}},
		{"approving without a terminal", []string{"approve", "x", "--gate", "production", "--demo"}, 1, []string{"no flag"}},
		{"approving with --yes", []string{"approve", "x", "--gate", "production", "--demo", "--yes"}, 1, []string{"unknown flag: --yes"}},
		{"approving as somebody", []string{"approve", "x", "--gate", "production", "--demo", "--actor", "a@example.com"}, 1, []string{"unknown flag: --actor"}},
		{"promoting what the rules refuse", []string{"promote", "staging", "--demo", "--yes", "-n", "shop"}, 5, []string{"UpstreamNotCleared", "has not cleared dev"}},
		{"promoting into a snapshot", []string{"promote", "staging", "--snapshot", "../../examples/estate", "--yes"}, 5, []string{"ReadOnly", "snapshot"}},
		{"promoting a Bundle that is not there", []string{"promote", "staging", "--demo", "--yes", "-n", "shop", "--bundle", "nope"}, 3, []string{"nope"}},
		{"promoting as no address", []string{"promote", "staging", "--demo", "--yes", "--actor", "Ann <ann@example.com>"}, 1, []string{"plain e-mail"}},
		{"aborting nothing", []string{"abort", "--demo", "--yes"}, 1, []string{"--gate"}},
		{"aborting where nothing crosses", []string{"abort", "--gate", "sandbox", "--demo", "--yes"}, 5, []string{"NothingCrossing"}},
		{"polling what is not there", []string{"poll", "nope", "--demo", "--yes"}, 3, []string{"nope", "storefront"}},
		{"writes on a snapshot", []string{"serve", "--allow-writes", "--snapshot", "../../examples/estate"}, 1, []string{"snapshot"}},
		{"a server for no address", []string{"serve", "--demo", "--allow-writes", "--actor", "ann"}, 1, []string{"plain e-mail"}},
		{"unknown tool", []string{"call", "approve_bundle", "--demo"}, 3, []string{"promote_bundle", "list_gates"}},
		{"unknown Gate", []string{"call", "explain_gate", "--demo", "--arg", "gate=prodution"}, 3, []string{"NotFound", "production"}},
		{"ambiguous Gate", []string{"call", "explain_gate", "--demo", "--arg", "gate=a"}, 3, []string{"Ambiguous", "shop/staging", "payments/canary"}},
		{"unknown Passage", []string{"call", "get_passage", "--demo", "--arg", "passage=dev-00000"}, 3, []string{"NotFound", "dev-00000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := hecate(context.Background(), c.args...)
			if o.code != c.code {
				t.Errorf("exit code %d, not %d\n%s%s", o.code, c.code, o.out, o.err)
			}
			for _, s := range c.says {
				if !strings.Contains(o.out+o.err, s) {
					t.Errorf("does not say %q:\n%s%s", s, o.out, o.err)
				}
			}
			if strings.Contains(o.out+o.err, "secret-of-the-test") {
				t.Errorf("shows the token:\n%s%s", o.out, o.err)
			}
		})
	}
}

// TestHangingServer holds that a call ends when its time is up and says so.
func TestHangingServer(t *testing.T) {
	isolate(t)
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	o := hecate(ctx, "call", "list_gates", "--kubeconfig", writeFile(t, "config", kubeconfig(server.URL)), "-o", "json")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %s", took)
	}
	var e tools.Error
	o.oneJSON(t, &e)
	if o.code != 2 || e.Code != tools.Timeout || !e.Retryable {
		t.Errorf("exit code %d: %s", o.code, o.out)
	}
}

// TestJSONOutput holds that -o json is exactly what the tool gave, or the coded
// error, and nothing besides.
func TestJSONOutput(t *testing.T) {
	isolate(t)
	a := &app{flags: sourceFlags{demo: true}}
	for _, c := range []struct{ tool, args string }{
		{"explain_gate", `{"gate":"production"}`},
		{"explain_gate", `{}`},
		{"list_gates", `{"limit":2}`},
		{"get_audit_trail", `{"kind":"refused"}`},
		{"explain_gate", `{"gate":"a"}`},
		{"explain_gate", `{"gate":"prodution"}`},
		{"list_gates", `{"limit":0}`},
		{"get_passage", `{}`},
	} {
		tool, err := tools.Find(c.tool)
		if err != nil {
			t.Fatal(err)
		}
		env, err := a.environment(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		want := tool.Call(context.Background(), env, []byte(c.args))
		o := hecate(context.Background(), "call", c.tool, "--demo", "-o", "json", "--args", c.args)
		if o.out != string(want.JSON)+"\n" {
			t.Errorf("%s %s printed\n%s\nnot\n%s", c.tool, c.args, o.out, want.JSON)
		}
		if o.err != "" {
			t.Errorf("%s %s: stderr: %s", c.tool, c.args, o.err)
		}
		var any map[string]any
		o.oneJSON(t, &any)
		if want.Err != nil && o.code != want.Err.ExitCode() || want.Err == nil && o.code != 0 {
			t.Errorf("%s %s: exit code %d", c.tool, c.args, o.code)
		}
	}
	// What goes wrong before the tool runs is a coded error too.
	for _, c := range []struct {
		args []string
		code tools.Code
	}{
		{[]string{"call", "nothing", "--demo"}, tools.NotFound},
		{[]string{"call", "list_gates", "--demo", "--snapshot", "x"}, tools.InvalidArgument},
		{[]string{"call", "list_gates", "--demo", "--now", "x"}, tools.InvalidArgument},
		{[]string{"call", "list_gates"}, tools.InvalidArgument},
	} {
		o := hecate(context.Background(), append(slices.Clone(c.args), "-o", "json")...)
		var e tools.Error
		o.oneJSON(t, &e)
		if e.Code != c.code || e.Message == "" || o.err != "" {
			t.Errorf("%q: %s%s", c.args, o.out, o.err)
		}
	}
}

// TestTypedArguments holds that --arg takes the type that the schema says.
func TestTypedArguments(t *testing.T) {
	isolate(t)
	var board struct {
		Total int
		Gates []any
	}
	o := hecate(context.Background(), "call", "list_gates", "--demo", "-o", "json", "--arg", "limit=5")
	o.oneJSON(t, &board)
	if o.code != 0 || len(board.Gates) != 5 || board.Total != 6 {
		t.Errorf("limit=5: %d of %d Gates, exit code %d", len(board.Gates), board.Total, o.code)
	}
	o = hecate(context.Background(), "call", "list_gates", "--demo", "-o", "json", "--args", `{"namespace":"shop"}`, "--arg", "limit=1")
	o.oneJSON(t, &board)
	if o.code != 0 || len(board.Gates) != 1 || board.Total != 3 {
		t.Errorf("--args and --arg: %d of %d Gates: %s", len(board.Gates), board.Total, o.out)
	}
	// A boolean: the conclusion tells whether the change gate was asked.
	for value, want := range map[string]bool{"false": true, "true": false} {
		var ev struct{ Conclusion string }
		o := hecate(context.Background(), "call", "get_evidence", "--demo", "-o", "json", "--arg", "bundle=storefront-de4370fba351", "--arg", "consultChangeGate="+value)
		o.oneJSON(t, &ev)
		if o.code != 0 || (ev.Conclusion == "NotAsked") != want {
			t.Errorf("consultChangeGate=%s concludes %q, exit code %d", value, ev.Conclusion, o.code)
		}
	}
	for _, arg := range []string{"limit=five", "limit=1.5", "limit=", "limit=0x5"} {
		if o := hecate(context.Background(), "call", "list_gates", "--demo", "--arg", arg); o.code != 1 || !strings.Contains(o.out, "integer") {
			t.Errorf("%s: exit code %d: %s", arg, o.code, o.out)
		}
	}
	// A value may hold the sign that splits it from its key.
	if o := hecate(context.Background(), "call", "get_audit_trail", "--demo", "--arg", "actor=a=b"); o.code != 0 {
		t.Errorf("actor=a=b: exit code %d: %s", o.code, o.out)
	}
}
