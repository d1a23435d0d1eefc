package v1alpha1_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// kinds are the Go types of the four kinds.
var kinds = map[string]func() any{
	v1alpha1.KindBeacon:  func() any { return &v1alpha1.Beacon{} },
	v1alpha1.KindBundle:  func() any { return &v1alpha1.Bundle{} },
	v1alpha1.KindGate:    func() any { return &v1alpha1.Gate{} },
	v1alpha1.KindPassage: func() any { return &v1alpha1.Passage{} },
}

// TestWire holds that what a controller wrote decodes strictly and re-encodes
// without loss: the demo, the project's states and, where it is beside the
// project, what upstream's controller really wrote.
func TestWire(t *testing.T) {
	seen := map[string]int{}
	for _, pattern := range []string{"../../../examples/estate/*.yaml", "../../ops/testdata/states/*/objects.yaml", "../../../../shared/scenarios/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Logf("%s: nothing there", pattern)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range bytes.Split(raw, []byte("\n---")) {
				var content map[string]any
				if err := yaml.Unmarshal(doc, &content); err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				items, isList := content["items"].([]any)
				if !isList {
					items = []any{content}
				}
				for _, item := range items {
					object, ok := item.(map[string]any)
					if !ok || object["apiVersion"] != v1alpha1.GroupVersion.String() {
						continue
					}
					kind, _ := object["kind"].(string)
					seen[kind]++
					roundTrip(t, file, kind, object)
				}
			}
		}
	}
	for kind := range kinds {
		if seen[kind] == 0 {
			t.Errorf("no %s was read", kind)
		}
	}
	t.Log(seen)
}

func roundTrip(t *testing.T, file, kind string, object map[string]any) {
	t.Helper()
	fresh, ok := kinds[kind]
	if !ok {
		t.Errorf("%s: unknown kind %s", file, kind)
		return
	}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	typed := fresh()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(typed); err != nil {
		t.Errorf("%s: %s: %v", file, kind, err)
		return
	}
	out, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	dropExplicitFalse(want)
	// "5m" comes back as "5m0s", upstream too: the same duration.
	sameDuration := cmp.Comparer(func(a, b string) bool {
		if a == b {
			return true
		}
		x, errX := time.ParseDuration(a)
		y, errY := time.ParseDuration(b)
		return errX == nil && errY == nil && x == y
	})
	if diff := cmp.Diff(want, got, sameDuration); diff != "" {
		t.Errorf("%s: %s is not the same after a round trip (-was +is):\n%s", file, kind, diff)
	}
	// The copy that the client makes on every read has to hold all of it too.
	if copied := reflect.ValueOf(typed).MethodByName("DeepCopy").Call(nil)[0].Interface(); !reflect.DeepEqual(copied, typed) {
		t.Errorf("%s: %s: the deep copy differs", file, kind)
	}
}

// dropExplicitFalse removes what people write though it is the default: a field
// of ours that is false means what its absence means, upstream too. Free JSON
// (with, output, details) is left as it is.
func dropExplicitFalse(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			switch k {
			case "with", "output", "details":
			case "suspend", "auto", "abort", "continueOnError", "requireApproval", "deny", "insecure":
				if x == false {
					delete(v, k)
				}
			default:
				dropExplicitFalse(x)
			}
		}
	case []any:
		for _, x := range v {
			dropExplicitFalse(x)
		}
	}
}

// TestNewPassageHasNoStatus holds that "never picked up" stays distinguishable.
func TestNewPassageHasNoStatus(t *testing.T) {
	p := v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1alpha1.PassageSpec{Gate: "g", Bundle: "b", Steps: []v1alpha1.Step{{Uses: "http"}}}}
	out, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte(`"status"`)) {
		t.Errorf("%s", out)
	}
	if !p.Active() || p.Phase() != "" {
		t.Error("a Passage without a status is active and has no phase")
	}
}
