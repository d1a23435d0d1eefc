package tools

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestCursorPastTheEnd holds that a page behind everything is an empty page:
// retention may drop what came after a cursor while somebody walks.
func TestCursorPastTheEnd(t *testing.T) {
	env := demoEnv(t)
	for _, c := range []struct{ tool, list string }{
		{"list_gates", "gates"}, {"list_bundles", "bundles"}, {"list_beacons", "beacons"}, {"list_passages", "passages"}, {"get_audit_trail", "entries"},
	} {
		tool, err := Find(c.tool)
		if err != nil {
			t.Fatal(err)
		}
		// The last cursor that the list gives, moved behind its last entry.
		page := tool.Call(context.Background(), env, json.RawMessage(`{"limit":1}`))
		var got struct{ NextCursor string }
		if err := json.Unmarshal(page.JSON, &got); err != nil || got.NextCursor == "" {
			t.Fatalf("%s gives no cursor: %s", c.tool, page.JSON)
		}
		raw, err := base64.RawURLEncoding.DecodeString(got.NextCursor)
		if err != nil {
			t.Fatal(err)
		}
		var position map[string]string
		if err := json.Unmarshal(raw, &position); err != nil {
			t.Fatal(err)
		}
		position["a"] = "~" // sorts behind every key
		if raw, err = json.Marshal(position); err != nil {
			t.Fatal(err)
		}
		end := base64.RawURLEncoding.EncodeToString(raw)
		a := tool.Call(context.Background(), env, json.RawMessage(fmt.Sprintf(`{"limit":1,"cursor":%q}`, end)))
		if a.Err != nil || !strings.Contains(string(a.JSON), `"`+c.list+`":[]`) || !strings.Contains(string(a.JSON), `"truncated":false`) {
			t.Errorf("%s: %s", c.tool, a.JSON)
		}
	}
}

// TestEvidenceOfManyImages holds that dozens of images keep their conclusions
// and stay within what a client shows.
func TestEvidenceOfManyImages(t *testing.T) {
	a := getEvidence.Call(context.Background(), demoEnv(t), json.RawMessage(`{"bundle":"storefront-de4370fba351","namespace":"shop","format":"detailed"}`))
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	out := a.Out.(getEvidenceOut)
	if len(out.Artifacts) == 0 || len(out.Artifacts[0].Attestations) == 0 || out.Artifacts[0].Verdict == nil {
		t.Fatalf("%s", a.JSON)
	}
	image, shown := out.Artifacts[0], len(out.Artifacts[0].Attestations)
	conciseEvidence(&out.Evidence, 0)
	got := out.Artifacts[0]
	if got.Conclusion != image.Conclusion || len(got.Checks) != len(image.Checks) || len(got.Attestations) != 0 || got.MoreAttestations != image.MoreAttestations+shown || got.Verdict != nil {
		t.Errorf("%+v", got)
	}
	if raw, err := encode(got); err != nil || len(raw) > 1200 {
		t.Errorf("one image still has %d bytes (%v)", len(raw), err)
	}
}
