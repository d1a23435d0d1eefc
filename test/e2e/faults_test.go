package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	hecate "github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
	"github.com/hecate-mcp/hecate-mcp/internal/tools"
	"github.com/hecate-mcp/hecate-mcp/test/cluster"
	"github.com/hecate-mcp/hecate-mcp/test/estate"
)

// paged has more Bundles than fit on one page of the API server's list.
var paged = estate.Size{Gates: estate.Stages, Bundles: hecate.PageSize + 30, Passages: 8}

// everyBundle walks the cursor of list_bundles.
func everyBundle(t *testing.T, s *session) []string {
	t.Helper()
	var names []string
	a := args{"limit": 200}
	for {
		page := s.call(t, "list_bundles", a)
		names = append(names, column(rows(t, page, "bundles"), "bundle")...)
		next, more := page["nextCursor"].(string)
		if !more {
			break
		}
		a = args{"limit": 200, "cursor": next}
	}
	slices.Sort(names)
	return names
}

// TestExpiredContinueToken: a list that is older than the API server's memory
// (410) is read anew, and nothing is twice or missing.
func TestExpiredContinueToken(t *testing.T) {
	c := start(t)
	ns := c.Namespace(t)
	c.Create(t, "", estate.Objects(paged, []string{ns}, time.Now())...)
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, ns))
	want := everyBundle(t, s)
	if len(want) != paged.Bundles || len(slices.Compact(slices.Clone(want))) != paged.Bundles {
		t.Fatalf("%d Bundles, want %d", len(want), paged.Bundles)
	}
	for _, times := range []int{1, 2, 0} { // 0: no token ever works
		c.Inject(t, cluster.Fault{Resource: "bundles", Continued: true, Status: http.StatusGone, Times: times})
		if got := everyBundle(t, s); !slices.Equal(got, want) {
			t.Errorf("with %d expired tokens: %d Bundles, want the same %d", times, len(got), len(want))
		}
	}
}

// TestCompactionWhileListing has the real API server forget between two pages.
func TestCompactionWhileListing(t *testing.T) {
	c := start(t)
	ns := c.Namespace(t)
	objects := estate.Objects(paged, []string{ns}, time.Now())
	late := objects[len(objects)-1] // a Passage, to have the API server move on
	c.Create(t, "", objects[:len(objects)-1]...)
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, ns))
	c.Requests().Reset()
	c.Inject(t, cluster.Fault{Resource: "bundles", Continued: true, Delay: 2 * time.Second, Times: 1})
	answered := make(chan map[string]any, 1)
	go func() { answered <- s.call(t, "list_bundles", nil) }()
	for deadline := time.Now().Add(20 * time.Second); c.Requests().Count("list", "bundles") < 2; {
		if time.Now().After(deadline) {
			t.Fatalf("no second page was asked for:\n%s", c.Requests())
		}
		time.Sleep(5 * time.Millisecond)
	}
	c.Create(t, "", late)
	c.Compact(t)
	if a := <-answered; a["total"] != float64(paged.Bundles) {
		t.Errorf("total %v, want %d", a["total"], paged.Bundles)
	}
	if n := c.Requests().Lists("bundles"); n != 2 {
		t.Errorf("%d LISTs of Bundles, want a second after the compaction:\n%s", n, c.Requests())
	}
}

// env is the tools' environment in this process, for limits that have no flag.
func env(t testing.TB, o hecate.Options) *tools.Env {
	t.Helper()
	src, err := hecate.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	op := ops.New(src.Client)
	op.DefaultNamespace = src.Namespace
	return &tools.Env{Ops: op, Source: src}
}

func inProcess(t testing.TB, e *tools.Env, tool string, a args) tools.Answer {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	found, err := tools.Find(tool)
	if err != nil {
		t.Fatal(err)
	}
	return found.Call(t.Context(), e, raw)
}

// TestTimeout: an API server that is too slow for the call or for one request.
func TestTimeout(t *testing.T) {
	c := start(t)
	config := c.Kubeconfig(t, cluster.Viewer, c.Namespace(t))
	c.Inject(t, cluster.Fault{Resource: "gates", Delay: time.Minute})
	for what, e := range map[string]*tools.Env{
		"call":    env(t, hecate.Options{Kubeconfig: config}),
		"request": env(t, hecate.Options{Kubeconfig: config, Timeout: 300 * time.Millisecond}),
	} {
		if what == "call" {
			e.Timeout = 300 * time.Millisecond
		}
		for tool, a := range map[string]args{"list_gates": {"namespace": "*"}, "explain_gate": {"gate": "x"}} {
			began := time.Now()
			got := inProcess(t, e, tool, a)
			if got.Err == nil || got.Err.Code != tools.Timeout || !got.Err.Retryable {
				t.Errorf("%s, %s: %s, want a retryable Timeout", what, tool, got.JSON)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s, %s: took %s", what, tool, took)
			}
		}
	}
}

// TestSlowKindIsSaid: what cannot be read besides the Gates is part of the
// answer, and does not prevent it.
func TestSlowKindIsSaid(t *testing.T) {
	c := start(t)
	ns := c.Namespace(t)
	c.Create(t, "", estate.Objects(small, []string{ns}, time.Now())...)
	for _, tc := range []struct {
		fault cluster.Fault
		want  string
	}{
		{cluster.Fault{Resource: "passages", Delay: time.Minute}, "Timeout Passage"},
		{cluster.Fault{Resource: "beacons", Status: http.StatusInternalServerError}, "Unavailable Beacon"},
		{cluster.Fault{Resource: "bundles", Status: http.StatusServiceUnavailable}, "Unavailable Bundle"},
		{cluster.Fault{Resource: "bundles", Status: http.StatusForbidden}, "Forbidden Bundle"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			c.Inject(t, tc.fault)
			e := env(t, hecate.Options{Kubeconfig: c.Kubeconfig(t, cluster.Viewer, ns), Timeout: time.Second})
			got := inProcess(t, e, "list_gates", nil)
			if got.Err != nil {
				t.Fatal(got.Err)
			}
			var answer map[string]any
			if err := json.Unmarshal(got.JSON, &answer); err != nil {
				t.Fatal(err)
			}
			if missing := unread(t, answer); !slices.Equal(missing, []string{tc.want}) || answer["total"] != float64(small.Gates) {
				t.Errorf("incomplete %v, total %v; want %s and %d Gates", missing, answer["total"], tc.want, small.Gates)
			}
		})
	}
}

// TestCancelled: a client that gives up gets nothing, and the server goes on.
func TestCancelled(t *testing.T) {
	c := start(t)
	config := c.Kubeconfig(t, cluster.Viewer, c.Namespace(t))
	for name, open := range map[string]func(testing.TB, ...string) *session{"stdio": stdio, "http": overHTTP} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "--kubeconfig", config)
			c.Inject(t, cluster.Fault{Resource: "gates", Delay: 2 * time.Second, Times: 1})
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_, err := s.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: "list_gates"}})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the cancelled call gave %v", err)
			}
			if a := s.call(t, "list_gates", nil); a["total"] != float64(0) {
				t.Errorf("afterwards: %v", a)
			}
		})
	}
}

// TestRestart: connections that the API server closed are made anew.
func TestRestart(t *testing.T) {
	c := start(t)
	s := stdio(t, "--kubeconfig", c.Kubeconfig(t, cluster.Viewer, c.Namespace(t)))
	s.call(t, "list_gates", nil)
	c.Restart(t)
	s.call(t, "list_gates", nil)
}
