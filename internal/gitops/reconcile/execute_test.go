package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var resource = schema.GroupResource{Group: kustomizationKind.Group, Resource: "kustomizations"}

func executor(c *fluxCluster) *Executor {
	return &Executor{Client: c.client, Timeout: 10 * time.Second, Poll: 2 * time.Millisecond}
}

// codes shows results as "a Ready, b NotReady".
func codes(o Outcome) string {
	var s []string
	for _, r := range o.Results {
		s = append(s, r.Name+" "+string(r.Code))
	}
	return strings.Join(s, ", ")
}

// TestExecute works plans off in clusters of all sorts.
func TestExecute(t *testing.T) {
	const short = 500 * time.Millisecond
	forbidden := apierrors.NewForbidden(resource, "x", errors.New("token hunter2"))
	refuse := func(name string, err error) func(string) error {
		return func(o string) error {
			if o == name {
				return err
			}
			return nil
		}
	}
	oci := obj(sourceGroup.WithKind("OCIRepository"), "oci", nil)
	tests := []struct {
		name    string
		graph   string
		objects []*unstructured.Unstructured
		set     func(c *fluxCluster, e *Executor, p *Plan)
		want    string
		// messages are what the message of each result must hold, by name.
		messages map[string]string
		patches  string // in any order; "" is not looked at
	}{
		{name: "chain", graph: "a:\nb: a\nc: b", objects: []*unstructured.Unstructured{ks("a"), ks("b"), ks("c"), repo("repo")},
			want: "a Ready, b Ready, c Ready", patches: "GitRepository repo, Kustomization a, Kustomization b, Kustomization c"},
		{name: "nothing", want: ""},
		{name: "a failing sibling stops nobody but its dependants", graph: "a:\nb:\nc: b\nd: a\ne: c",
			objects: []*unstructured.Unstructured{ks("a"), ks("b"), ks("c"), ks("d"), ks("e"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.answer["Kustomization b"] = notReady("BuildFailed", "line one\nline two")
			},
			want:     "a Ready, b NotReady, c DependencyFailed, d Ready, e DependencyFailed",
			messages: map[string]string{"b": "Ready is False (BuildFailed): line one line two", "c": "ns/b", "e": "ns/c"},
			patches:  "GitRepository repo, Kustomization a, Kustomization b, Kustomization d"},
		{name: "stalled ends the waiting", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, _ *Executor, _ *Plan) {
				c.answer["Kustomization a"] = func(u *unstructured.Unstructured) map[string]any {
					return map[string]any{"conditions": []any{condition("Stalled", "True", "AccessDenied", "no"), condition("Ready", "False", "AccessDenied", "no")}}
				}
			},
			want: "a NotReady", messages: map[string]string{"a": "is stalled"}},
		{name: "what can't be built ends the waiting", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, _ *Executor, _ *Plan) {
				c.answer["Kustomization a"] = attempted("main@sha1:new", notReady("BuildFailed", "no such file"))
			},
			want: "a NotReady", messages: map[string]string{"a": "can't be built at main@sha1:new; Ready is False (BuildFailed): no such file"}},
		{name: "what could not be built before may be now", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.answer["Kustomization a"] = attempted("main@sha1:old", notReady("BuildFailed", "no such file"))
			},
			want: "a NotReady", messages: map[string]string{"a": "did not become ready within 500ms; Ready is False (BuildFailed): no such file"}},
		{name: "what failed otherwise is tried again", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.answer["Kustomization a"] = attempted("main@sha1:new", notReady("HealthCheckFailed", "a Pod waits"))
			},
			want: "a NotReady", messages: map[string]string{"a": "did not become ready within 500ms"}},
		{name: "no answer", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.answer["Kustomization a"] = never
			},
			want: "a Timeout", messages: map[string]string{"a": "did not handle the request"}},
		{name: "handled without any condition", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.answer["Kustomization a"] = func(*unstructured.Unstructured) map[string]any { return map[string]any{} }
			},
			want: "a NotReady", messages: map[string]string{"a": "no Ready condition"}},
		{name: "ready for an older generation", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.answer["Kustomization a"] = func(u *unstructured.Unstructured) map[string]any {
					s := ready(u, "main@sha1:new")
					s["observedGeneration"] = u.GetGeneration() - 1
					return s
				}
			},
			want: "a NotReady"},
		{name: "condition of an older generation", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.answer["Kustomization a"] = func(u *unstructured.Unstructured) map[string]any {
					s := ready(u, "main@sha1:new")
					s["conditions"].([]any)[0].(map[string]any)["observedGeneration"] = u.GetGeneration() - 1
					return s
				}
			},
			want: "a NotReady"},
		{name: "ready for an older revision", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.answer["Kustomization a"] = func(u *unstructured.Unstructured) map[string]any { return ready(u, "main@sha1:old") }
			},
			want: "a NotReady"},
		{name: "the source moved on in between", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, _ *Executor, _ *Plan) {
				c.answer["Kustomization a"] = func(u *unstructured.Unstructured) map[string]any {
					c.setStatus(context.Background(), repo("repo"), ready(repo("repo"), "main@sha1:newer"))
					return ready(u, "main@sha1:newer")
				}
			},
			want: "a Ready"},
		{name: "source not ready", graph: "a:\nb: a", objects: []*unstructured.Unstructured{ks("a"), ks("b"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.answer["GitRepository repo"] = notReady("GitOperationFailed", "no route")
			},
			want: "a SourceFailed, b DependencyFailed", messages: map[string]string{"a": "no route"}, patches: "GitRepository repo"},
		{name: "source absent", graph: "a:", objects: []*unstructured.Unstructured{ks("a")}, want: "a SourceFailed",
			messages: map[string]string{"a": "GitRepository ns/repo is not in the cluster"}},
		{name: "source suspended", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), suspended(repo("repo"))}, want: "a SourceFailed",
			messages: map[string]string{"a": "suspended"}},
		{name: "source forbidden", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set:  func(c *fluxCluster, _ *Executor, _ *Plan) { c.failPut = refuse("GitRepository repo", forbidden) },
			want: "a SourceFailed", messages: map[string]string{"a": "refuses"}},
		{name: "external artifact has nothing to ask", graph: "a:", objects: []*unstructured.Unstructured{ks("a")},
			set:  func(_ *fluxCluster, _ *Executor, p *Plan) { p.Waves[0][0].Source.Kind = "ExternalArtifact" },
			want: "a Ready", patches: "Kustomization a"},
		{name: "unknown kind of source", graph: "a:", objects: []*unstructured.Unstructured{ks("a")},
			set:  func(_ *fluxCluster, _ *Executor, p *Plan) { p.Waves[0][0].Source.Kind = "HelmRepository" },
			want: "a SourceFailed", messages: map[string]string{"a": "valid kinds"}},
		{name: "source as the cluster has it", graph: "a:",
			objects: []*unstructured.Unstructured{obj(kustomizationKind, "a", map[string]any{"sourceRef": map[string]any{"kind": "OCIRepository", "name": "oci"}}), oci},
			set:     func(_ *fluxCluster, _ *Executor, p *Plan) { p.Waves[0][0].Source = SourceRef{} },
			want:    "a Ready", patches: "Kustomization a, OCIRepository oci"},
		{name: "no source anywhere", graph: "a:", objects: []*unstructured.Unstructured{ks("a")},
			set:  func(_ *fluxCluster, _ *Executor, p *Plan) { p.Waves[0][0].Source = SourceRef{} },
			want: "a SourceFailed"},
		{name: "suspended in the cluster", graph: "a:\nb: a", objects: []*unstructured.Unstructured{suspended(ks("a")), ks("b"), repo("repo")},
			want: "a Suspended, b DependencyFailed"},
		{name: "not in the cluster", graph: "a:", objects: []*unstructured.Unstructured{repo("repo")}, want: "a NotFound"},
		{name: "Flux is not installed", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, _ *Executor, _ *Plan) {
				c.failGet = refuse("Kustomization a", &apimeta.NoKindMatchError{GroupKind: kustomizationKind.GroupKind()})
			},
			want: "a NotFound", messages: map[string]string{"a": "is Flux installed"}},
		{name: "reading forbidden", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set:  func(c *fluxCluster, _ *Executor, _ *Plan) { c.failGet = refuse("Kustomization a", forbidden) },
			want: "a Forbidden"},
		{name: "requesting forbidden", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set:  func(c *fluxCluster, _ *Executor, _ *Plan) { c.failPut = refuse("Kustomization a", forbidden) },
			want: "a Forbidden"},
		{name: "suspended while waited for", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, _ *Executor, _ *Plan) {
				c.answer["Kustomization a"] = never
				c.onPatch = func(o string) {
					if o == "Kustomization a" {
						patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":true}}`))
						if err := c.server.Patch(context.Background(), ks("a"), patch); err != nil {
							c.t.Error(err)
						}
					}
				}
			},
			want: "a Suspended"},
		{name: "deleted while waited for", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, _ *Executor, _ *Plan) {
				c.answer["Kustomization a"] = never
				c.onPatch = func(o string) {
					if o == "Kustomization a" {
						if err := c.server.Delete(context.Background(), ks("a")); err != nil {
							c.t.Error(err)
						}
					}
				}
			},
			want: "a NotFound"},
		{name: "somebody asks again", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, _ *Executor, _ *Plan) {
				// The later request is there before the controller sees this one.
				c.onPatch = func(o string) {
					if o == "Kustomization a" {
						patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+requestedAt+`":"later"}}}`))
						if err := c.server.Patch(context.Background(), ks("a"), patch); err != nil {
							c.t.Error(err)
						}
					}
				}
			},
			want: "a Ready"},
		{name: "an API server that stays away", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.failGet = refuse("Kustomization a", apierrors.NewServiceUnavailable("hunter2"))
			},
			want: "a Timeout", messages: map[string]string{"a": "ServiceUnavailable"}},
		{name: "an API server that goes away", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				var gone atomic.Bool
				c.onPatch = func(o string) { gone.Store(gone.Load() || o == "Kustomization a") }
				c.failGet = func(string) error {
					if gone.Load() {
						return apierrors.NewServiceUnavailable("hunter2")
					}
					return nil
				}
			},
			want: "a Timeout", messages: map[string]string{"a": "did not answer the last time: ServiceUnavailable"}},
		{name: "a connection that stays away", graph: "a:", objects: []*unstructured.Unstructured{ks("a"), repo("repo")},
			set: func(c *fluxCluster, e *Executor, _ *Plan) {
				e.Timeout = short
				c.failPut = refuse("Kustomization a", errors.New("dial hunter2"))
			},
			want: "a Timeout", messages: map[string]string{"a": "no connection"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var objects []*unstructured.Unstructured
			for _, o := range tt.objects {
				objects = append(objects, o.DeepCopy())
			}
			c := newFlux(t, objects...)
			nodes := graph(tt.graph)
			var want []Key
			for _, n := range nodes {
				want = append(want, n.Key)
			}
			plan := Build(nodes, want)
			e := executor(c)
			if tt.set != nil {
				c.mu.Lock() // the controllers read the answers
				tt.set(c, e, &plan)
				c.mu.Unlock()
			}
			start := time.Now()
			out, err := e.Execute(t.Context(), plan)
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 8*time.Second {
				t.Errorf("took %v: it waited although the end was known", took)
			}
			slices.SortFunc(out.Results, func(a, b Result) int { return a.Compare(b.Key) })
			if got := codes(out); got != tt.want {
				t.Errorf("results\n got %s\nwant %s\n%+v", got, tt.want, out.Results)
			}
			for _, r := range out.Results {
				if r.Success != (r.Code == Ready) || r.Success && (!r.Ready || !r.Attempted) || r.Message == "" || r.Duration < 0 {
					t.Errorf("a result at odds with itself: %+v", r)
				}
				if !strings.Contains(r.Message, tt.messages[r.Name]) || strings.Contains(r.Message, "hunter2") {
					t.Errorf("message of %s: %q; want %q", r.Name, r.Message, tt.messages[r.Name])
				}
				if asked := slices.Contains(c.patches, "Kustomization "+r.Name); asked != r.Attempted {
					t.Errorf("%s: asked %v, attempted %v", r.Name, asked, r.Attempted)
				}
			}
			if out.Success() != !strings.ContainsAny(strings.ReplaceAll(tt.want, "Ready", ""), "NSTDF") {
				t.Errorf("success %v of %s", out.Success(), tt.want)
			}
			slices.Sort(c.patches)
			if got := strings.Join(c.patches, ", "); tt.patches != "" && got != tt.patches {
				t.Errorf("patches\n got %s\nwant %s", got, tt.patches)
			}
		})
	}
}

// A wave keeps to its limit, asks a shared source once, and begins after the one
// before it.
func TestExecuteWide(t *testing.T) {
	for _, tt := range []struct{ parallel, limit int }{{0, 4}, {1, 1}, {3, 3}} {
		t.Run(fmt.Sprint(tt.parallel), func(t *testing.T) {
			objects := []*unstructured.Unstructured{repo("repo")}
			text := "base:\n"
			objects = append(objects, ks("base"))
			for i := range 12 {
				text += fmt.Sprintf("leaf%02d: base\n", i)
				objects = append(objects, ks(fmt.Sprintf("leaf%02d", i)))
			}
			c := newFlux(t, objects...)
			c.slowness = 3 * time.Millisecond
			nodes := graph(text)
			var want []Key
			for _, n := range nodes {
				want = append(want, n.Key)
			}
			e := executor(c)
			e.Parallel = tt.parallel
			var inside atomic.Int32
			var stages []string
			e.Progress = func(ev Event) {
				if inside.Add(1) != 1 {
					t.Error("Progress is called twice at once")
				}
				stages = append(stages, ev.Name+" "+string(ev.Stage))
				inside.Add(-1)
			}
			out, err := e.Execute(t.Context(), Build(nodes, want))
			if err != nil || !out.Success() {
				t.Fatalf("%v, %s", err, codes(out))
			}
			if c.mostUp > tt.limit || tt.limit > 1 && c.mostUp < 2 {
				t.Errorf("%d patches at once, the limit is %d", c.mostUp, tt.limit)
			}
			if len(c.patches) != 14 || c.patches[0] != "GitRepository repo" || c.patches[1] != "Kustomization base" {
				t.Errorf("patches %v", c.patches)
			}
			if len(stages) != 3*13 || strings.Join(stages[:3], ",") != "base Source,base Requested,base Done" {
				t.Errorf("stages %v", stages)
			}
			for i, r := range out.Results {
				if r.Key != append([]Key{key("base")}, want[1:]...)[i] || r.Revision != "main@sha1:new" {
					t.Errorf("result %d is %+v", i, r)
				}
			}
		})
	}
}

// The first of many steps of a busy API server are tried again.
func TestExecuteTransient(t *testing.T) {
	c := newFlux(t, ks("a"), repo("repo"))
	var left atomic.Int32
	left.Store(6)
	flaky := func(string) error {
		switch n := left.Add(-1); {
		case n < 0:
			return nil
		case n%2 == 0:
			return apierrors.NewTooManyRequests("busy", 1)
		default:
			return errors.New("connection reset")
		}
	}
	c.failGet, c.failPut = flaky, flaky
	out, err := executor(c).Execute(t.Context(), Build(graph("a:"), keys("a")))
	if err != nil || codes(out) != "a Ready" {
		t.Errorf("%v, %+v", err, out)
	}
}

// A second run asks anew, also at the same time of the clock.
func TestExecuteTwice(t *testing.T) {
	c := newFlux(t, ks("a"), repo("repo"))
	e := executor(c)
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	e.Now = func() time.Time { return at }
	seen := map[string]bool{}
	for range 3 {
		out, err := e.Execute(t.Context(), Build(graph("a:"), keys("a")))
		if err != nil || !out.Success() {
			t.Fatalf("%v, %+v", err, out)
		}
		u := kustomization(key("a")).empty()
		if err := c.server.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
			t.Fatal(err)
		}
		seen[u.GetAnnotations()[requestedAt]] = true
	}
	// It flips between two values; each differs from the one before it.
	if len(seen) != 2 || !seen["2026-01-02T03:04:05.000000006Z"] || len(c.patches) != 6 {
		t.Errorf("values %v, patches %v", seen, c.patches)
	}
}

func TestExecuteCancelled(t *testing.T) {
	c := newFlux(t, ks("a"), ks("b"), ks("c"), repo("repo"))
	c.mu.Lock() // the controllers read the answers
	c.answer["Kustomization b"] = never
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := executor(c)
	e.Progress = func(ev Event) {
		if ev.Name == "b" && ev.Stage == StageRequested {
			cancel()
		}
	}
	out, err := e.Execute(ctx, Build(graph("a:\nb: a\nc: b"), keys("a b c")))
	if !errors.Is(err, context.Canceled) || codes(out) != "a Ready, b Cancelled, c Cancelled" {
		t.Errorf("%v, %s", err, codes(out))
	}
	if !out.Results[1].Attempted || out.Results[2].Attempted {
		t.Errorf("b was asked, c was not: %+v", out.Results)
	}

	if _, err := (&Executor{}).Execute(t.Context(), Plan{}); err == nil {
		t.Error("an Executor without a Client")
	}
	out, err = executor(c).Execute(t.Context(), Plan{})
	if err != nil || out.Results == nil || !out.Success() {
		t.Errorf("an empty plan: %v, %+v", err, out)
	}
}

// Old conditions do not answer a new request: a stalled one that was mended, and a
// deletion that is under way.
func TestExecuteOldState(t *testing.T) {
	mended := ks("mended")
	mended.Object["status"] = map[string]any{"conditions": []any{condition("Stalled", "True", "AccessDenied", "old")}}
	deleting := ks("deleting")
	deleting.SetFinalizers([]string{"finalizers.fluxcd.io"})
	deleting.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	c := newFlux(t, mended, deleting, repo("repo"))
	out, err := executor(c).Execute(t.Context(), Build(graph("deleting:\nmended:"), keys("deleting mended")))
	if err != nil || codes(out) != "deleting NotReady, mended Ready" || out.Results[0].Attempted {
		t.Errorf("%v, %+v", err, out)
	}
}

// Statuses of any shape are read without a panic.
func TestStatusOfAnything(t *testing.T) {
	for _, o := range []map[string]any{
		{},
		{"spec": "x", "status": []any{}},
		{"spec": map[string]any{"suspend": "true", "sourceRef": "x"}, "status": map[string]any{"conditions": "x", "observedGeneration": "1", "artifact": "x"}},
		{"status": map[string]any{"conditions": []any{"x", nil, map[string]any{"type": true, "status": map[string]any{}}}}},
		{"metadata": map[string]any{"annotations": "x", "generation": "x"}},
	} {
		u := &unstructured.Unstructured{Object: o}
		if s := statusOf(u); s.suspended || s.handled != "" || isTrue(s.ready) {
			t.Errorf("%v reads as %+v", o, s)
		}
		if ref := liveSource(u); ref != (SourceRef{}) {
			t.Errorf("%v has source %v", o, ref)
		}
	}
}

// attempted is an answer that speaks of a revision.
func attempted(revision string, answer func(*unstructured.Unstructured) map[string]any) func(*unstructured.Unstructured) map[string]any {
	return func(u *unstructured.Unstructured) map[string]any {
		s := answer(u)
		s["lastAttemptedRevision"] = revision
		return s
	}
}
