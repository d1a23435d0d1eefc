package examples_test

import (
	"encoding/base64"
	"io/fs"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

func TestEstateIsEmbedded(t *testing.T) {
	for _, name := range []string{"meta.json", "gates.yaml", "secrets.yaml"} {
		embedded, err := fs.ReadFile(examples.Estate(), name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(read(t, "estate/"+name)), string(embedded)); diff != "" {
			t.Errorf("%s differs:\n%s", name, diff)
		}
	}
}

// client asks the demo's evidence server with the token of a Gate's Secret.
func (w *world) client(t *testing.T, gate string) *fides.Client {
	t.Helper()
	g, ok := w.gates[gate]
	if !ok || g.Spec.Evidence == nil {
		t.Fatalf("Gate %s: missing, or without evidence", gate)
	}
	if g.Spec.Evidence.ServerURL != examples.FidesURL {
		t.Errorf("Gate %s: serverURL is %s, want %s", gate, g.Spec.Evidence.ServerURL, examples.FidesURL)
	}
	secret, ok := w.others["Secret/"+key(g.Namespace, g.Spec.Evidence.CredentialsRef.Name)]
	if !ok {
		t.Fatalf("Gate %s: its Secret is not in the estate", gate)
	}
	token, err := base64.StdEncoding.DecodeString(secret["data"].(map[string]any)["token"].(string))
	if err != nil {
		t.Fatalf("Secret of Gate %s: %v", gate, err)
	}
	server := httptest.NewServer(examples.Fides())
	t.Cleanup(server.Close)
	c, err := fides.New(fides.Config{BaseURL: server.URL, Token: string(token)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEvidence holds what README.md says about each image of the estate.
func TestEvidence(t *testing.T) {
	type found struct {
		Known, Trail                    bool
		Recommendation                  string
		Risk                            int
		Failed, Missing, Human, SignOff int
	}
	want := map[string]found{
		"v1.7.2 storefront":        {Known: true, Trail: true, Recommendation: "approve", Human: 2, SignOff: 2},
		"v1.7.2 storefront-worker": {Known: true, Trail: true, Recommendation: "approve", Human: 2, SignOff: 2},
		"v1.8.0 storefront":        {Known: true, Trail: true, Recommendation: "approve", Human: 2, SignOff: 2},
		"v1.8.0 storefront-worker": {Known: true, Trail: true, Recommendation: "approve", Human: 2, SignOff: 2},
		"v1.8.1 storefront":        {Known: true, Trail: true, Recommendation: "hold", Risk: 20},
		"v1.8.1 storefront-worker": {Known: true, Trail: true, Recommendation: "hold", Risk: 35, Missing: 1},
		"v1.9.0 storefront":        {Known: true},
		"v1.9.0 storefront-worker": {},
		"4.1.0 ledger":             {Known: true, Trail: true, Recommendation: "approve", Human: 1, SignOff: 1},
		"4.2.0 ledger":             {Known: true, Trail: true, Recommendation: "hold", Risk: 55, Failed: 1},
		"4.2.1 ledger":             {Known: true, Trail: true, Recommendation: "hold", Risk: 20, SignOff: 1},
	}
	w, got := load(t), map[string]found{}
	clients := map[string]*fides.Client{"shop": w.client(t, "shop/production"), "payments": w.client(t, "payments/live")}
	for _, b := range w.bundles {
		c := clients[b.Namespace]
		for _, a := range b.Spec.Artifacts {
			if a.Image == nil {
				continue
			}
			artifact, known := searchOne(t, c, a.Image.Digest)
			f := found{Known: known, Trail: known && artifact.TrailID != nil && *artifact.TrailID != ""}
			if f.Trail {
				v, err := c.ChangeGate(t.Context(), *artifact.TrailID)
				if err != nil {
					t.Fatal(err)
				}
				f.Recommendation, f.Risk = v.Recommendation, v.RiskScore
				f.Failed, f.Missing = len(v.Failed), len(v.MissingEvidence)
				f.Human, f.SignOff = v.Approvals.HumanApprovers, v.Approvals.Count
			}
			got[b.Spec.Alias+" "+a.Image.Repo[len("registry.example.com/"+b.Namespace+"/"):]] = f
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func searchOne(t *testing.T, c *fides.Client, digest string) (fides.ArtifactHit, bool) {
	t.Helper()
	hits, err := c.SearchArtifacts(t.Context(), fides.ArtifactFilter{SHA: digest[len("sha256:"):]})
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) > 1 {
		t.Fatalf("%s stands %d times", digest, len(hits))
	}
	if len(hits) == 0 {
		return fides.ArtifactHit{}, false
	}
	return hits[0], true
}

// TestEvidenceFitsTheEstate holds that what the controller recorded and what
// the server says now are one story.
func TestEvidenceFitsTheEstate(t *testing.T) {
	w := load(t)
	clients := map[string]*fides.Client{"shop": w.client(t, "shop/production"), "payments": w.client(t, "payments/live")}
	recorded := 0
	for k, p := range w.passages {
		ref := p.Status.Evidence
		if ref == nil {
			continue
		}
		recorded++
		b := w.bundles[key(p.Namespace, p.Spec.Bundle)]
		hit, _ := searchOne(t, clients[p.Namespace], b.Spec.Artifacts[0].Image.Digest)
		if hit.TrailID == nil || *hit.TrailID != ref.Trail {
			t.Errorf("Passage %s: its trail is not that of the Bundle's first image", k)
			continue
		}
		v, err := clients[p.Namespace].ChangeGate(t.Context(), ref.Trail)
		if err != nil {
			t.Fatal(err)
		}
		if v.Recommendation != ref.Verdict || v.RiskScore != int(*ref.Risk) {
			t.Errorf("Passage %s recorded %s (risk %d), the server says %s (risk %d)", k, ref.Verdict, *ref.Risk, v.Recommendation, v.RiskScore)
		}
		attested, err := clients[p.Namespace].SearchAttestations(t.Context(), fides.AttestationFilter{Trail: ref.Trail, Type: "promotion"})
		if err != nil {
			t.Fatal(err)
		}
		if done := p.Phase() == v1alpha1.PassageSucceeded; done != (len(attested) == 1) {
			t.Errorf("Passage %s is %s and attested %d times", k, p.Phase(), len(attested))
		}
	}
	if recorded != 4 {
		t.Errorf("%d Passages carry evidence, want 4", recorded)
	}
	var state any
	if err := yaml.Unmarshal(read(t, "evidence.yaml"), &state); err != nil {
		t.Fatal(err)
	}
	times(state, func(path string, at time.Time) {
		if at.After(w.capturedAt) {
			t.Errorf("evidence.yaml: %s is %s, after the capture", path, at)
		}
	})
}
