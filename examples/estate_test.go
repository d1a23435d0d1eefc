package examples_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// world is the estate, read from the files and not through the code that the
// estate is there to try.
type world struct {
	capturedAt time.Time
	beacons    map[string]v1alpha1.Beacon
	bundles    map[string]v1alpha1.Bundle
	gates      map[string]v1alpha1.Gate
	passages   map[string]v1alpha1.Passage
	others     map[string]map[string]any // Kind/namespace/name
	all        []map[string]any
}

func key(namespace, name string) string { return namespace + "/" + name }

func load(t *testing.T) *world {
	t.Helper()
	w := &world{
		beacons: map[string]v1alpha1.Beacon{}, bundles: map[string]v1alpha1.Bundle{},
		gates: map[string]v1alpha1.Gate{}, passages: map[string]v1alpha1.Passage{},
		others: map[string]map[string]any{},
	}
	var meta struct {
		CapturedAt time.Time `json:"capturedAt"`
	}
	strict(t, "estate/meta.json", read(t, "estate/meta.json"), &meta)
	w.capturedAt = meta.CapturedAt

	files, err := filepath.Glob("estate/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in estate: %v", err)
	}
	for _, file := range files {
		var list struct {
			APIVersion string            `json:"apiVersion"`
			Kind       string            `json:"kind"`
			Metadata   map[string]any    `json:"metadata"`
			Items      []json.RawMessage `json:"items"`
		}
		strict(t, file, read(t, file), &list)
		for _, raw := range list.Items {
			var object map[string]any
			strict(t, file, raw, &object)
			w.all = append(w.all, object)
			m := metadata(object)
			k := key(m["namespace"].(string), m["name"].(string))
			switch object["kind"] {
			case "Beacon":
				w.beacons[k] = decode[v1alpha1.Beacon](t, file, raw)
			case "Bundle":
				w.bundles[k] = decode[v1alpha1.Bundle](t, file, raw)
			case "Gate":
				w.gates[k] = decode[v1alpha1.Gate](t, file, raw)
			case "Passage":
				w.passages[k] = decode[v1alpha1.Passage](t, file, raw)
			default:
				w.others[object["kind"].(string)+"/"+k] = object
			}
		}
	}
	return w
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func strict(t *testing.T, file string, b []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(b, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func decode[T any](t *testing.T, file string, raw []byte) T {
	t.Helper()
	var v T
	strict(t, file, raw, &v)
	return v
}

func metadata(object map[string]any) map[string]any { return object["metadata"].(map[string]any) }

// digestOf is the Bundle digest, written a second time on purpose.
func digestOf(artifacts []v1alpha1.Artifact) string {
	var lines []string
	for _, a := range artifacts {
		switch {
		case a.Image != nil:
			version := a.Image.Digest
			if version == "" {
				version = a.Image.Tag
			}
			lines = append(lines, strings.Join([]string{"image", a.Image.Repo, version}, "\x00"))
		case a.Chart != nil:
			lines = append(lines, strings.Join([]string{"chart", a.Chart.Repo, a.Chart.Name, a.Chart.Version}, "\x00"))
		case a.Commit != nil:
			lines = append(lines, strings.Join([]string{"commit", a.Commit.Repo, a.Commit.SHA}, "\x00"))
		}
	}
	sort.Strings(lines)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))
}

func TestShape(t *testing.T) {
	w := load(t)
	perNamespace, production := map[string]int{}, 0
	for k, g := range w.gates {
		perNamespace[g.Namespace]++
		if strings.Contains(g.Name, "prod") {
			production++
			if k != "shop/production" {
				t.Errorf("%s: only shop/production may be found by a part of the word production", k)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"shop": 3, "payments": 3}, perNamespace); diff != "" {
		t.Errorf("Gates per namespace (-want +got):\n%s", diff)
	}
	if production != 1 {
		t.Errorf("%d Gates called production, want 1", production)
	}
}

func TestIdentities(t *testing.T) {
	w := load(t)
	uids, versions := map[any]bool{}, map[any]bool{}
	for _, o := range w.all {
		m := metadata(o)
		if uids[m["uid"]] || versions[m["resourceVersion"]] || m["uid"] == nil || m["resourceVersion"] == nil {
			t.Errorf("%v %v/%v: uid or resourceVersion missing or used twice", o["kind"], m["namespace"], m["name"])
		}
		uids[m["uid"]], versions[m["resourceVersion"]] = true, true
	}
}

func TestTimes(t *testing.T) {
	w := load(t)
	if w.capturedAt.IsZero() {
		t.Fatal("meta.json has no capturedAt")
	}
	for _, o := range w.all {
		m := metadata(o)
		where := fmt.Sprintf("%v %v/%v", o["kind"], m["namespace"], m["name"])
		created, err := time.Parse(time.RFC3339, m["creationTimestamp"].(string))
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		times(o, func(path string, at time.Time) {
			if at.After(w.capturedAt) {
				t.Errorf("%s: %s is %s, after the capture", where, path, at)
			}
			if at.Before(created) && !strings.Contains(path, "lastTransitionTime") {
				t.Errorf("%s: %s is %s, before the object existed", where, path, at)
			}
		})
	}
	for k, g := range w.gates {
		if age := w.capturedAt.Sub(g.Status.Health.ObservedAt.Time); age < 0 || age > time.Minute {
			t.Errorf("Gate %s: health is %s old; the controller looks every minute", k, age)
		}
	}
	for k, p := range w.passages {
		if p.Status.StartedAt.Before(&p.CreationTimestamp) {
			t.Errorf("Passage %s started before it was created", k)
		}
		if terminal := p.Phase().Terminal(); terminal != (p.Status.FinishedAt != nil) {
			t.Errorf("Passage %s: phase %s and finishedAt %v", k, p.Phase(), p.Status.FinishedAt)
		}
		if bundle := w.bundles[key(p.Namespace, p.Spec.Bundle)]; p.CreationTimestamp.Before(&bundle.CreationTimestamp) {
			t.Errorf("Passage %s is older than its Bundle", k)
		}
	}
}

// times calls found for every string of v that is a time.
func times(v any, found func(path string, at time.Time)) { walk("", v, found) }

func walk(path string, v any, found func(string, time.Time)) {
	switch v := v.(type) {
	case map[string]any:
		for name, child := range v {
			walk(path+"."+name, child, found)
		}
	case []any:
		for i, child := range v {
			walk(fmt.Sprintf("%s[%d]", path, i), child, found)
		}
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			found(path, at)
		}
	}
}

func TestBundles(t *testing.T) {
	w := load(t)
	for k, b := range w.bundles {
		digest := digestOf(b.Spec.Artifacts)
		if b.Spec.Digest != digest {
			t.Errorf("Bundle %s: digest %s, its artifacts give %s", k, b.Spec.Digest, digest)
		}
		if want := b.Spec.Beacon + "-" + digest[:12]; b.Name != want {
			t.Errorf("Bundle %s: its name should be %s", k, want)
		}
		if b.Labels["hecate.dev/beacon"] != b.Spec.Beacon {
			t.Errorf("Bundle %s: label hecate.dev/beacon is %q", k, b.Labels["hecate.dev/beacon"])
		}
		if _, ok := w.beacons[key(b.Namespace, b.Spec.Beacon)]; !ok {
			t.Errorf("Bundle %s: no Beacon %s", k, b.Spec.Beacon)
		}
		marks := map[string]v1alpha1.PassagePhase{}
		for _, m := range b.Status.Cleared {
			w.checkMark(t, b, m)
			marks[m.Passage] = v1alpha1.PassageSucceeded
		}
		for _, m := range b.Status.Blocked {
			w.checkMark(t, b, m)
			marks[m.Passage] = "blocked"
			if p := w.passages[key(b.Namespace, m.Passage)]; m.Reason != p.Status.Message {
				t.Errorf("Bundle %s: blocked reason %q, Passage says %q", k, m.Reason, p.Status.Message)
			}
		}
		for _, p := range w.passages {
			if p.Namespace != b.Namespace || p.Spec.Bundle != b.Name {
				continue
			}
			want := p.Phase()
			if want == v1alpha1.PassageFailed || want == v1alpha1.PassageAborted {
				want = "blocked"
			}
			if !p.Phase().Terminal() {
				want = ""
			}
			if marks[p.Name] != want {
				t.Errorf("Bundle %s: Passage %s is %s, recorded as %q", k, p.Name, p.Phase(), marks[p.Name])
			}
		}
	}
}

func (w *world) checkMark(t *testing.T, b v1alpha1.Bundle, m v1alpha1.BundleMark) {
	t.Helper()
	p, ok := w.passages[key(b.Namespace, m.Passage)]
	switch {
	case !ok:
		t.Errorf("Bundle %s: no Passage %s", b.Name, m.Passage)
	case p.Spec.Gate != m.Gate, p.Spec.Bundle != b.Name, p.Spec.Actor != m.Actor, !p.Status.FinishedAt.Equal(&m.At):
		t.Errorf("Bundle %s: mark %+v does not fit Passage %s", b.Name, m, p.Name)
	}
}

func TestPassages(t *testing.T) {
	w := load(t)
	for k, p := range w.passages {
		g, ok := w.gates[key(p.Namespace, p.Spec.Gate)]
		if !ok {
			t.Errorf("Passage %s: no Gate %s", k, p.Spec.Gate)
			continue
		}
		if _, ok := w.bundles[key(p.Namespace, p.Spec.Bundle)]; !ok {
			t.Errorf("Passage %s: no Bundle %s", k, p.Spec.Bundle)
		}
		want := map[string]string{"hecate.dev/gate": p.Spec.Gate, "hecate.dev/bundle": p.Spec.Bundle}
		if diff := cmp.Diff(want, p.Labels); diff != "" {
			t.Errorf("Passage %s: labels (-want +got):\n%s", k, diff)
		}
		if p.GenerateName != p.Spec.Gate+"-" || len(p.Name) != len(p.GenerateName)+5 || !strings.HasPrefix(p.Name, p.GenerateName) {
			t.Errorf("Passage %s: generateName is %q", k, p.GenerateName)
		}
		if diff := cmp.Diff(g.Spec.Passage.Steps, p.Spec.Steps); diff != "" {
			t.Errorf("Passage %s: steps differ from the Gate's:\n%s", k, diff)
		}
		if p.Status.ObservedGeneration != p.Generation || len(p.Status.Steps) != len(p.Spec.Steps) {
			t.Errorf("Passage %s: generation or number of steps in the status is off", k)
		}
		for i, s := range p.Status.Steps {
			if s.Uses != p.Spec.Steps[i].Uses || s.As != p.Spec.Steps[i].As {
				t.Errorf("Passage %s: status.steps[%d] is another step", k, i)
			}
			w.checkFlux(t, k, p.Namespace, p.Spec.Steps[i])
		}
		if active := g.Status.ActivePassage == p.Name; active == p.Phase().Terminal() {
			t.Errorf("Passage %s is %s; Gate says active: %t", k, p.Phase(), active)
		}
	}
}

// checkFlux holds that what a flux-wait step waits for can be looked at.
func (w *world) checkFlux(t *testing.T, passage, namespace string, s v1alpha1.Step) {
	t.Helper()
	if s.Uses != "flux-wait" {
		return
	}
	var with struct {
		Resources []struct{ Kind, Name string } `json:"resources"`
	}
	strict(t, passage, s.With.Raw, &with)
	for _, r := range with.Resources {
		if _, ok := w.others[r.Kind+"/"+key(namespace, r.Name)]; !ok {
			t.Errorf("Passage %s: no %s %s", passage, r.Kind, r.Name)
		}
	}
}

func TestGates(t *testing.T) {
	w := load(t)
	for k, g := range w.gates {
		if g.Status.ObservedGeneration != g.Generation || g.Status.Conditions[0].ObservedGeneration != g.Generation {
			t.Errorf("Gate %s: generation %d not observed", k, g.Generation)
		}
		for _, a := range g.Spec.Admits {
			if _, ok := w.beacons[key(g.Namespace, a.From.Beacon)]; !ok {
				t.Errorf("Gate %s: no Beacon %s", k, a.From.Beacon)
			}
			for _, before := range a.After {
				if _, ok := w.gates[key(g.Namespace, before)]; !ok {
					t.Errorf("Gate %s: no Gate %s", k, before)
				}
			}
		}
		if diff := cmp.Diff(*g.Status.Current, g.Status.History[0]); diff != "" {
			t.Errorf("Gate %s: current is not the newest of history:\n%s", k, diff)
		}
		for _, e := range g.Status.History {
			b, p := w.bundles[key(g.Namespace, e.Bundle)], w.passages[key(g.Namespace, e.Passage)]
			if b.Spec.Digest != e.Digest || p.Spec.Bundle != e.Bundle || p.Spec.Gate != g.Name || p.Spec.Actor != e.Actor ||
				p.Phase() != v1alpha1.PassageSucceeded || !p.Status.FinishedAt.Equal(&e.EnteredAt) {
				t.Errorf("Gate %s: history entry %+v does not fit its Bundle and Passage", k, e)
			}
		}
		if g.Status.ActivePassage != "" {
			if _, ok := w.passages[key(g.Namespace, g.Status.ActivePassage)]; !ok {
				t.Errorf("Gate %s: no Passage %s", k, g.Status.ActivePassage)
			}
		}
		if diff := cmp.Diff(w.eligible(g), g.Status.Eligible); diff != "" {
			t.Errorf("Gate %s: eligible (-by the rules +written):\n%s", k, diff)
		}
	}
}

// eligible applies the rules of eligibility, newest Bundle first.
func (w *world) eligible(g v1alpha1.Gate) []string {
	var out []v1alpha1.Bundle
	for _, b := range w.bundles {
		a := g.Spec.Admits[0]
		ok := b.Namespace == g.Namespace && b.Spec.Beacon == a.From.Beacon && b.Name != g.Status.Current.Bundle
		for _, before := range a.After {
			ok = ok && slices.ContainsFunc(b.Status.Cleared, func(m v1alpha1.BundleMark) bool { return m.Gate == before })
		}
		if a.RequireApproval {
			ok = ok && slices.ContainsFunc(b.Status.ApprovedFor, func(m v1alpha1.BundleApproval) bool { return m.Gate == g.Name })
		}
		if ok {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(x, y v1alpha1.Bundle) int { return y.CreationTimestamp.Compare(x.CreationTimestamp.Time) })
	var names []string
	for _, b := range out {
		names = append(names, b.Name)
	}
	return names
}
