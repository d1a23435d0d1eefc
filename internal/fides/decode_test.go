package fides

import (
	"encoding/json"
	"testing"
)

// FuzzDecode holds that nothing but whole JSON of the right shape is decoded,
// and that judging what was decoded never panics nor approves by accident.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", "[{}]", "<html></html>", `{"recommendation":"approve","appro`, `{"valid":true,"count":0,"broken_at":-1}`,
		`{"trail_id":"t","recommendation":"approve","approved":true,"risk_score":0,"passed":null,"failed":null,"missing_evidence":null,"waived":[{}],` +
			`"attestations":{"total":0,"non_compliant":0},"approvals":{"count":1,"human_approvers":1,"approvers":null,"deployers":null},"segregation_of_duties":{}}`,
		`[{"sha256":"a","name":"n","trail_id":null}]`, `{"id":"i","type_name":"servicenow-change","is_compliant":true,"payload":{"found":true}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		whole := json.Valid(body)
		must := func(what string, err error) bool {
			if err == nil && !whole {
				t.Fatalf("%s was read from what is not JSON: %q", what, body)
			}
			return err == nil
		}
		var change ChangeVerdict
		if must("a change verdict", decode(body, changeShape, &change)) {
			change.normalize()
			if change.Concerns(); change.Approves() != (len(change.Holds()) == 0) {
				t.Fatalf("approves and holds disagree: %q", body)
			}
			if change.Recommendation != RecommendApprove && change.Approves() {
				t.Fatalf("%q reads as approve", change.Recommendation)
			}
		}
		var chain ChainVerdict
		if must("a chain verdict", decode(body, object("valid", "count", "broken_at"), &chain)) {
			if chain.State() == ChainValid && !chain.Valid {
				t.Fatalf("a broken chain reads as valid: %q", body)
			}
		}
		var hits []ArtifactHit
		must("artifacts", decode(body, arrayOf("sha256", "name"), &hits))
		var attestation Attestation
		if must("an attestation", decode(body, object("id", "type_name", "is_compliant").orNull("payload"), &attestation)) {
			attestation.Change()
		}
	})
}
