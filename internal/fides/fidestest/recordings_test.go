package fidestest

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

// TestLikeTheRealServer gives the fake the states behind recorded verdicts and
// holds that it answers the same JSON, key for key.
func TestLikeTheRealServer(t *testing.T) {
	const dir = "../../../../shared/fides-recordings/change-gate"
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		t.Skip("the recordings are not there: they are not part of the repository")
	}
	const all = "sbom-cyclonedx+ unit-tests+ vuln-scan+"
	const approver, second, deployer = "approver@example.com session approver", "second-approver@example.com session approver", "deployer@example.com session deployer"
	for file, c := range map[string]struct {
		attestations string // type, then + or - for compliant or not
		approvals    []string
		committer    string
		waived, sod  bool
	}{
		"approve.json":                           {all, []string{approver}, "", false, false},
		"approve-four-eyes.json":                 {all + " segregation-of-duties+", []string{approver, second, deployer}, "", false, false},
		"approve-sod-satisfied.json":             {all + " segregation-of-duties+", []string{approver, second, deployer}, "", false, true},
		"approve-with-waiver.json":               {"sbom-cyclonedx+ unit-tests+ vuln-scan-", []string{approver}, "", true, false},
		"get-has-a-side-effect.json":             {all, []string{approver, deployer}, "", false, false},
		"get-has-a-side-effect-second-read.json": {all + " segregation-of-duties+", []string{approver, deployer}, "", false, false},
		"hold-awaiting-human.json":               {all, nil, "", false, false},
		"hold-empty-trail.json":                  {"", nil, "", false, false},
		"hold-failing-and-missing.json":          {"unit-tests- vuln-scan-", nil, "", false, false},
		"hold-failing-controls.json":             {"sbom-cyclonedx+ unit-tests+ vuln-scan-", nil, "", false, false},
		"hold-missing-evidence.json":             {"sbom-cyclonedx+", nil, "", false, false},
		"hold-service-approval-only.json":        {all, []string{"service-account service approver"}, "", false, false},
		"hold-sod-missing.json":                  {all, []string{approver}, "", false, true},
		"hold-sod-violation.json":                {all + " segregation-of-duties-", []string{approver}, "approver@example.com", false, true},
		"hold-waived-awaiting-human.json":        {"sbom-cyclonedx+ unit-tests+ vuln-scan-", nil, "", true, false},
		"hold-waiver-revoked.json":               {"sbom-cyclonedx+ unit-tests+ vuln-scan-", []string{approver}, "", false, false},
	} {
		t.Run(file, func(t *testing.T) {
			var rec struct {
				Response struct {
					JSON map[string]any `json:"json"`
				} `json:"response"`
			}
			data, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &rec); err != nil {
				t.Fatal(err)
			}
			id, _ := rec.Response.JSON["trail_id"].(string)
			trail := Trail{ID: id, Committer: "committer@example.com"}
			if c.committer != "" {
				trail.Committer = c.committer
			}
			for _, a := range strings.Fields(c.attestations) {
				kind := a[:len(a)-1]
				trail.Attestations = append(trail.Attestations, Attestation{Name: kind, Type: kind, Compliant: strings.HasSuffix(a, "+")})
			}
			for _, a := range c.approvals {
				f := strings.Fields(a)
				trail.Approvals = append(trail.Approvals, Approval{By: f[0], Kind: f[1], Role: f[2]})
			}
			state := State{Token: "x", Trails: []Trail{trail}, Controls: []Control{
				{"CC7.2", "Vulnerability scanning", []string{"vuln-scan"}},
				{"CC8.1", "Change evidence", []string{"sbom-cyclonedx", "unit-tests"}},
			}}
			if c.sod {
				state.Controls = append(state.Controls, Control{"SOD-1", "Four eyes", []string{fides.TypeSoD}})
			}
			if c.waived {
				state.Waivers = []Waiver{{"CC7.2", "vendor fix scheduled", "approver@example.com", time.Date(2027, 12, 31, 0, 0, 0, 0, time.UTC)}}
			}
			s := New(state)
			s.Now = func() time.Time { return time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC) }
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://fides.demo.invalid/api/v1/trails/"+id+"/change-gate", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer x")
			resp, err := s.HTTPClient().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			var got map[string]any
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			for key, want := range rec.Response.JSON {
				if !reflect.DeepEqual(got[key], want) {
					t.Errorf("%s: got %v, want %v", key, got[key], want)
				}
			}
			if len(got) != len(rec.Response.JSON) {
				t.Errorf("got %d keys, want %d", len(got), len(rec.Response.JSON))
			}
		})
	}
}
