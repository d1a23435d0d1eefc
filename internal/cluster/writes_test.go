package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// counter is a controller that notes its beats, and writes the number of them
// onto a Gate.
type counter struct {
	beats []time.Time
	err   error
}

func (c *counter) Beat(w *World, now time.Time) error {
	c.beats = append(c.beats, now)
	g := &v1alpha1.Gate{}
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "shop", Name: "dev"}, g); err != nil {
		return err
	}
	g.Status.ActivePassage = fmt.Sprint(len(c.beats))
	if err := w.Put(g); err != nil {
		return err
	}
	return c.err
}

type wall struct {
	mu sync.Mutex
	at time.Time
}

func (w *wall) now() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.at }

func (w *wall) pass(d time.Duration) { w.mu.Lock(); defer w.mu.Unlock(); w.at = w.at.Add(d) }

// writable is a demo with a controller that counts.
func writable(t testing.TB) (*Source, *counter, *wall) {
	t.Helper()
	fsys := fstest.MapFS{"meta.json": {Data: []byte(`{"capturedAt": "2026-11-05T10:00:00Z"}`)}, "all.yaml": {Data: []byte(`
{apiVersion: hecate.dev/v1alpha1, kind: Gate, metadata: {namespace: shop, name: dev, uid: g1, resourceVersion: "41"}, spec: {admits: [{from: {beacon: b}}]}}
---
{apiVersion: hecate.dev/v1alpha1, kind: Beacon, metadata: {namespace: shop, name: b, uid: b1, resourceVersion: "42"}, spec: {watch: [{provider: {name: p}}]}, status: {latestBundle: x}}
---
{apiVersion: hecate.dev/v1alpha1, kind: Bundle, metadata: {namespace: shop, name: x, uid: x1, resourceVersion: "43"}, spec: {beacon: b, artifacts: [{commit: {repo: r, sha: s}}]}, status: {cleared: [{gate: dev, at: "2026-11-05T09:00:00Z"}]}}
---
{apiVersion: hecate.dev/v1alpha1, kind: Passage, metadata: {namespace: shop, name: taken, uid: p1, resourceVersion: "44", generation: 1}, spec: {gate: dev, bundle: x, steps: [{uses: http}]}}
`)}}
	c, w := &counter{}, &wall{at: time.Unix(1000, 0)}
	s, err := OpenDemo(fsys, http.NotFoundHandler(), Options{DemoController: c, DemoWall: w.now})
	if err != nil {
		t.Fatal(err)
	}
	return s, c, w
}

func newPassage(edit func(*v1alpha1.Passage)) *v1alpha1.Passage {
	p := &v1alpha1.Passage{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "new"},
		Spec:       v1alpha1.PassageSpec{Gate: "dev", Bundle: "x", Steps: []v1alpha1.Step{{Uses: "http"}}},
	}
	if edit != nil {
		edit(p)
	}
	return p
}

func TestDemoCreatesPassages(t *testing.T) {
	s, c, w := writable(t)
	p := newPassage(func(p *v1alpha1.Passage) {
		p.Annotations = map[string]string{"a": "b"}
		p.Status = &v1alpha1.PassageStatus{Phase: v1alpha1.PassageSucceeded}
	})
	if err := s.Client.Create(t.Context(), p, client.DryRunAll); err != nil || p.UID == "" {
		t.Fatalf("dry run: %v, %+v", err, p)
	}
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); !apierrors.IsNotFound(err) {
		t.Errorf("a dry run left %v", err)
	}
	w.pass(time.Hour)
	if at := time.Date(2026, 11, 5, 10, 0, 0, 0, time.UTC); !s.Now().Equal(at) || len(c.beats) != 0 {
		t.Errorf("nothing was written yet, and it is %v, %d beats", s.Now(), len(c.beats))
	}
	p = newPassage(nil)
	p.Status = &v1alpha1.PassageStatus{Phase: v1alpha1.PassageSucceeded}
	if err := s.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if p.UID == "" || p.ResourceVersion != "45" || p.Generation != 1 || !p.CreationTimestamp.Time.Equal(s.Now()) || p.Status != nil || p.Kind != "" {
		t.Errorf("created %+v", p)
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": hecate, "kind": "Passage", "metadata": map[string]any{"generateName": "dev-", "namespace": "shop"},
		"spec": map[string]any{"gate": "dev", "bundle": "x", "unknown": "pruned", "steps": []any{map[string]any{"uses": "http", "with": map[string]any{"any": int64(1)}}}},
	}}
	if err := s.Client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	if _, pruned, _ := unstructured.NestedString(u.Object, "spec", "unknown"); pruned || len(u.GetName()) != 9 || u.GetKind() != "Passage" || u.GetUID() == p.UID {
		t.Errorf("created %v", u.Object)
	}
	expect(t, "passages", names(t, s.Client, hecate, "Passage"), "shop/"+u.GetName()+" shop/new shop/taken")
	// The same error as an API server's, and nothing of the object changes.
	for name, tc := range map[string]struct {
		edit func(*v1alpha1.Passage)
		code Code
		text string
	}{
		"taken":        {func(p *v1alpha1.Passage) { p.Name = "taken" }, CodeConflict, `passages.hecate.dev "taken" already exists`},
		"no namespace": {func(p *v1alpha1.Passage) { p.Namespace = "" }, CodeInvalidArgument, "an empty namespace"},
		"nowhere":      {func(p *v1alpha1.Passage) { p.Namespace = "nope" }, CodeNotFound, `namespaces "nope" not found`},
		"version":      {func(p *v1alpha1.Passage) { p.ResourceVersion = "1" }, CodeInvalidArgument, "resourceVersion should not be set"},
		"no name":      {func(p *v1alpha1.Passage) { p.Name = "" }, CodeInvalidArgument, "name or generateName is required"},
		"bad name":     {func(p *v1alpha1.Passage) { p.Name = "No" }, CodeInvalidArgument, "metadata.name"},
		"no steps":     {func(p *v1alpha1.Passage) { p.Spec.Steps = nil }, CodeInvalidArgument, "spec.steps: Invalid value: 0: spec.steps in body should have at least 1 items"},
		"no gate":      {func(p *v1alpha1.Passage) { p.Spec.Gate = "" }, CodeInvalidArgument, "spec.gate: Required"},
		"long label":   {func(p *v1alpha1.Passage) { p.Labels = map[string]string{"a": strings.Repeat("x", 64)} }, CodeInvalidArgument, "metadata.labels"},
	} {
		p := newPassage(func(p *v1alpha1.Passage) { p.Name = "other" })
		tc.edit(p)
		if err := s.Client.Create(t.Context(), p); Classify(err) != tc.code || !strings.Contains(err.Error(), tc.text) || p.UID != "" {
			t.Errorf("%s: %v (%s), UID %q", name, err, Classify(err), p.UID)
		}
	}
	if err := s.Client.Create(t.Context(), newPassage(nil)); !apierrors.IsAlreadyExists(err) {
		t.Errorf("again: %v", err)
	}
}

func TestDemoPatchesPassages(t *testing.T) {
	s, _, _ := writable(t)
	taken := func() *v1alpha1.Passage { return newPassage(func(p *v1alpha1.Passage) { p.Name = "taken" }) }
	for name, tc := range map[string]struct {
		name, patch string
		code        Code
	}{
		"another UID":      {"taken", `{"metadata":{"uid":"p2"},"spec":{"abort":true}}`, CodeConflict},
		"another version":  {"taken", `{"metadata":{"resourceVersion":"1"},"spec":{"abort":true}}`, CodeConflict},
		"nobody":           {"nobody", `{"spec":{"abort":true}}`, CodeNotFound},
		"no JSON":          {"taken", `{`, CodeInvalidArgument},
		"another field":    {"taken", `{"spec":{"abort":true,"bundle":"y"}}`, CodeRefused},
		"a label":          {"taken", `{"metadata":{"labels":{"a":"b"}}}`, CodeRefused},
		"a status":         {"taken", `{"status":{"phase":"Succeeded"}}`, CodeRefused},
		"a bad annotation": {"taken", `{"metadata":{"annotations":{"not a key":"b"}}}`, CodeInvalidArgument},
	} {
		p := taken()
		p.Name = tc.name
		if err := s.Client.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(tc.patch))); Classify(err) != tc.code {
			t.Errorf("%s: %v (%s), want %s", name, err, Classify(err), tc.code)
		}
	}
	if err := s.Client.Patch(t.Context(), taken(), client.RawPatch(types.JSONPatchType, []byte(`[]`))); Classify(err) != CodeRefused {
		t.Errorf("a JSON patch: %v", err)
	}
	p := taken()
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.ResourceVersion != "44" || p.Spec.Abort {
		t.Fatalf("refused patches left %+v, %v", p, err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"uid":"p1","annotations":{"k":"v"}},"spec":{"abort":true}}`))
	for range 2 { // the second changes nothing, and so keeps the version
		if err := s.Client.Patch(t.Context(), p, patch); err != nil || !p.Spec.Abort || p.Generation != 2 || p.ResourceVersion != "45" || p.Annotations["k"] != "v" || p.UID != "p1" {
			t.Errorf("patched %+v, %v", p, err)
		}
	}
	expect(t, "passages", names(t, s.Client, hecate, "Passage"), "shop/taken")
}

func TestDemoUpdates(t *testing.T) {
	s, _, _ := writable(t)
	ctx := t.Context()
	key := client.ObjectKey{Namespace: "shop", Name: "b"}
	beacon := &v1alpha1.Beacon{}
	if err := s.Client.Get(ctx, key, beacon); err != nil {
		t.Fatal(err)
	}
	stale := beacon.DeepCopy()
	beacon.Annotations = map[string]string{v1alpha1.AnnotationReconcile: "1"}
	beacon.Status.LatestBundle = "a status does not count here"
	if err := s.Client.Update(ctx, beacon); err != nil || beacon.ResourceVersion != "45" || beacon.Status.LatestBundle != "x" || beacon.Annotations[v1alpha1.AnnotationReconcile] != "1" {
		t.Errorf("updated %+v, %v", beacon, err)
	}
	if err := s.Client.Update(ctx, stale); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "the object has been modified") {
		t.Errorf("stale: %v", err)
	}
	stale.ResourceVersion = ""
	if err := s.Client.Update(ctx, stale); !apierrors.IsInvalid(err) {
		t.Errorf("without a version: %v", err)
	}
	beacon.Spec.Suspend = true
	if err := s.Client.Update(ctx, beacon); Classify(err) != CodeRefused {
		t.Errorf("a spec: %v", err)
	}

	bundle := &v1alpha1.Bundle{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "x"}, bundle); err != nil {
		t.Fatal(err)
	}
	old := bundle.DeepCopy()
	bundle.Status.ApprovedFor = []v1alpha1.BundleApproval{{Gate: "dev", Actor: "a@example.com", At: metav1.Unix(1, 0)}}
	bundle.Spec.Alias = "a spec does not count here"
	if err := s.Client.Status().Update(ctx, bundle); err != nil || len(bundle.Status.ApprovedFor) != 1 || bundle.Spec.Alias != "" || len(bundle.Status.Cleared) != 1 {
		t.Errorf("approved %+v, %v", bundle, err)
	}
	old.Status.ApprovedFor = bundle.Status.ApprovedFor
	if err := s.Client.Status().Update(ctx, old); !apierrors.IsConflict(err) {
		t.Errorf("stale: %v", err)
	}
	twice := bundle.DeepCopy()
	twice.Status.ApprovedFor = append(twice.Status.ApprovedFor, twice.Status.ApprovedFor[0])
	if err := s.Client.Status().Update(ctx, twice); !apierrors.IsInvalid(err) {
		t.Errorf("two approvals of a Gate: %v", err)
	}
	bundle.Status.Cleared = nil
	if err := s.Client.Status().Update(ctx, bundle); Classify(err) != CodeRefused {
		t.Errorf("another status: %v", err)
	}
	gone := bundle.DeepCopy()
	gone.Name = "gone"
	if err := s.Client.Status().Update(ctx, gone); !apierrors.IsNotFound(err) {
		t.Errorf("gone: %v", err)
	}
}

// TestDemoRefusesTheRest holds that a refusal names what is valid.
func TestDemoRefusesTheRest(t *testing.T) {
	s, _, _ := writable(t)
	ctx, p := t.Context(), newPassage(func(p *v1alpha1.Passage) { p.Name = "taken" })
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "dev"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{}`))
	for what, err := range map[string]error{
		"create a Gate":     s.Client.Create(ctx, g),
		"update a Gate":     s.Client.Update(ctx, g),
		"update a Passage":  s.Client.Update(ctx, p),
		"patch a Gate":      s.Client.Patch(ctx, g, patch),
		"delete":            s.Client.Delete(ctx, p),
		"delete all":        s.Client.DeleteAllOf(ctx, p),
		"status of a Gate":  s.Client.Status().Update(ctx, g),
		"patch of a status": s.Client.Status().Patch(ctx, &v1alpha1.Bundle{}, patch),
	} {
		var ro *ReadOnlyError
		if !errors.As(err, &ro) || !strings.Contains(err.Error(), "valid: create a Passage") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s.Now() != time.Date(2026, 11, 5, 10, 0, 0, 0, time.UTC) {
		t.Error("a refused write started the clock")
	}
}

func TestDemoBeats(t *testing.T) {
	s, c, w := writable(t)
	ctx := t.Context()
	key := client.ObjectKey{Namespace: "shop", Name: "dev"}
	if err := s.Client.Create(ctx, newPassage(nil)); err != nil {
		t.Fatal(err)
	}
	start := s.Now()
	g := &v1alpha1.Gate{}
	for _, step := range []struct {
		pass time.Duration
		want string
	}{{0, ""}, {900 * time.Millisecond, ""}, {200 * time.Millisecond, "1"}, {3 * time.Second, "4"}, {0, "4"}} {
		w.pass(step.pass)
		if err := s.Client.Get(ctx, key, g); err != nil || g.Status.ActivePassage != step.want {
			t.Errorf("after %v more: %q beats, %v; want %q", step.pass, g.Status.ActivePassage, err, step.want)
		}
	}
	if c.beats[3] != start.Add(4*time.Second) {
		t.Errorf("beats %v", c.beats)
	}
	w.pass(100 * time.Hour)
	if err := s.Client.Get(ctx, key, g); err != nil || len(c.beats) != 4+maxBeats+1 || s.Now().Sub(c.beats[len(c.beats)-1]) >= time.Second {
		t.Errorf("%d beats after a pause, the last at %v, %v", len(c.beats), c.beats[len(c.beats)-1], err)
	}
	c.err = errors.New("oops")
	w.pass(time.Second)
	if err := s.Client.List(ctx, &v1alpha1.GateList{}); Classify(err) != CodeInternal {
		t.Errorf("a controller that fails: %v", err)
	}
	c.err = nil
	if err := s.Client.List(ctx, &v1alpha1.GateList{}); err != nil {
		t.Errorf("and goes on: %v", err)
	}
}

// TestDemoConcurrently is for the race detector, and holds that one name is
// given once and that every write is seen.
func TestDemoConcurrently(t *testing.T) {
	s, _, w := writable(t)
	ctx := t.Context()
	var group sync.WaitGroup
	won := make(chan string, 8)
	for i := range 8 {
		group.Go(func() {
			err := s.Client.Create(ctx, newPassage(nil))
			if err == nil {
				won <- "new"
			} else if !apierrors.IsAlreadyExists(err) {
				t.Errorf("%d: %v", i, err)
			}
			own := newPassage(func(p *v1alpha1.Passage) { p.Name = ""; p.GenerateName = "dev-" })
			if err := s.Client.Create(ctx, own); err != nil {
				t.Errorf("%d: %v", i, err)
			}
			w.pass(time.Second)
			if err := s.Client.Get(ctx, client.ObjectKeyFromObject(own), own); err != nil {
				t.Errorf("%d: %v", i, err)
			}
			if err := ListAll(ctx, s.Client, &v1alpha1.PassageList{}); err != nil {
				t.Errorf("%d: %v", i, err)
			}
			_ = s.Now()
		})
	}
	group.Wait()
	close(won)
	if len(won) != 1 {
		t.Errorf("%d won the name", len(won))
	}
	var all v1alpha1.PassageList
	if err := s.Client.List(ctx, &all); err != nil || len(all.Items) != 10 {
		t.Errorf("%d Passages, %v", len(all.Items), err)
	}
	seen := map[string]bool{}
	for _, p := range all.Items {
		seen[p.ResourceVersion] = true
	}
	if len(seen) != len(all.Items) {
		t.Errorf("%d versions for %d objects", len(seen), len(all.Items))
	}
}
