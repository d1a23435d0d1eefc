package fides

import (
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// TestHoldsOfRecordings reads the kinds from recorded verdicts, the project's
// own and, when they are there, the real server's.
func TestHoldsOfRecordings(t *testing.T) {
	type want struct {
		holds    []HoldKind
		concerns []ConcernKind
	}
	common := map[string]want{
		"approve.json":                           {nil, []ConcernKind{SoDViolation}},
		"approve-with-waiver.json":               {nil, []ConcernKind{Waived, SoDViolation}},
		"hold-awaiting-human.json":               {[]HoldKind{AwaitingHuman}, []ConcernKind{SoDViolation}},
		"hold-service-approval-only.json":        {[]HoldKind{ServiceApprovalOnly}, []ConcernKind{SoDViolation}},
		"hold-failing-and-missing.json":          {[]HoldKind{FailingControls}, []ConcernKind{SoDViolation}},
		"approve-deployer-only.json":             {nil, []ConcernKind{DeployerSignOffOnly, SoDViolation}},
		"approve-four-eyes.json":                 {nil, nil},
		"hold-failing-controls.json":             {[]HoldKind{FailingControls}, []ConcernKind{SoDViolation}},
		"hold-missing-evidence.json":             {[]HoldKind{MissingEvidence}, []ConcernKind{SoDViolation}},
		"hold-empty-trail.json":                  {[]HoldKind{MissingEvidence}, []ConcernKind{SoDViolation}},
		"hold-waived-awaiting-human.json":        {[]HoldKind{AwaitingHuman}, []ConcernKind{Waived, SoDViolation}},
		"hold-sod-missing.json":                  {[]HoldKind{MissingEvidence}, []ConcernKind{SoDViolation}},
		"hold-sod-violation.json":                {[]HoldKind{FailingControls}, []ConcernKind{SoDViolation}},
		"get-has-a-side-effect.json":             {nil, nil},
		"approve-on-a-broken-chain.json":         {nil, []ConcernKind{SoDViolation}},
		"hold-after-verdict-flipped.json":        {[]HoldKind{AwaitingHuman}, []ConcernKind{SoDViolation}},
		"hold-waiver-revoked.json":               {[]HoldKind{FailingControls}, []ConcernKind{SoDViolation}},
		"approve-sod-satisfied.json":             {nil, nil},
		"no-controls-org.json":                   {nil, []ConcernKind{SoDViolation}},
		"get-has-a-side-effect-second-read.json": {nil, nil},
	}
	// The project's own differ from the real server's where they say so.
	own := map[string]want{
		"hold-failing-and-missing.json":   {[]HoldKind{FailingControls, MissingEvidence}, nil},
		"approve-with-waiver.json":        {nil, []ConcernKind{Waived}},
		"hold-awaiting-human.json":        {[]HoldKind{AwaitingHuman}, nil},
		"hold-service-approval-only.json": {[]HoldKind{ServiceApprovalOnly}, nil},
	}
	for _, dir := range []string{ownRecordings, sharedRecordings} {
		t.Run(dir, func(t *testing.T) {
			for _, name := range recordingsIn(t, dir) {
				rec := load(t, dir, name)
				if _, isError := wantErrors[name]; isError || name[:len("change-gate")] != "change-gate" {
					continue
				}
				file := name[len("change-gate/"):]
				w, ok := common[file]
				if o, differs := own[file]; differs && dir == ownRecordings {
					w, ok = o, true
				}
				if !ok {
					t.Errorf("%s: no expectation", name)
				}
				v := verdictOf(t, rec.Response.RawBody)
				var holds []HoldKind
				for _, h := range v.Holds() {
					holds = append(holds, h.Kind)
				}
				var concerns []ConcernKind
				for _, c := range v.Concerns() {
					concerns = append(concerns, c.Kind)
				}
				if !slices.Equal(holds, w.holds) || !slices.Equal(concerns, w.concerns) {
					t.Errorf("%s: got %v, %v; want %v, %v", name, holds, concerns, w.holds, w.concerns)
				}
				if v.Approves() != v.Approved {
					t.Errorf("%s: Approves is %v, the server says %v", name, v.Approves(), v.Approved)
				}
			}
		})
	}
}

func verdictOf(t *testing.T, body string) ChangeVerdict {
	t.Helper()
	var v ChangeVerdict
	if err := decode([]byte(body), changeShape, &v); err != nil {
		t.Fatal(err)
	}
	v.normalize()
	return v
}

func TestApprovesTakesEverySign(t *testing.T) {
	good := ChangeVerdict{Recommendation: RecommendApprove, Approved: true, Approvals: Approvers{Count: 1, HumanApprovers: 1, Approvers: []string{"ann"}}}
	if !good.Approves() {
		t.Fatal("the good one does not approve")
	}
	for name, c := range map[string]struct {
		spoil func(*ChangeVerdict)
		want  HoldKind
	}{
		"unknown recommendation": {func(v *ChangeVerdict) { v.Recommendation = "approve-with-conditions" }, HoldOther},
		"upper case":             {func(v *ChangeVerdict) { v.Recommendation = "APPROVE" }, HoldOther},
		"not approved":           {func(v *ChangeVerdict) { v.Approved = false }, HoldOther},
		"a failed control":       {func(v *ChangeVerdict) { v.Failed = []ControlFinding{{Control: "C"}} }, FailingControls},
		"missing evidence":       {func(v *ChangeVerdict) { v.MissingEvidence = []ControlFinding{{Control: "C"}} }, MissingEvidence},
		"nobody":                 {func(v *ChangeVerdict) { v.Approvals = Approvers{} }, AwaitingHuman},
		"only a service":         {func(v *ChangeVerdict) { v.Approvals.HumanApprovers = 0 }, ServiceApprovalOnly},
	} {
		v := good
		c.spoil(&v)
		if holds := v.Holds(); v.Approves() || len(holds) != 1 || holds[0].Kind != c.want {
			t.Errorf("%s: approves %v, holds %v, want %s", name, v.Approves(), holds, c.want)
		}
	}
}

func TestConcernsTellWho(t *testing.T) {
	until := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
	v := ChangeVerdict{
		Approvals: Approvers{Count: 2, HumanApprovers: 1, Approvers: []string{"service-account"}, Deployers: []string{"dan"}},
		Waived:    []WaivedControl{{Control: "C1", ExpiresAt: until}},
		SegregationOfDuties: &SegregationOfDuties{Committer: "dan", Approvers: []string{"service-account", "eve"}, Deployers: []string{"eve", "dan"},
			Violations: []string{"in words"}},
	}
	got := v.Concerns()
	if len(got) != 3 || got[0].Kind != ApproverUnproven || got[1].Kind != Waived || got[2].Kind != SoDViolation {
		t.Fatalf("got %+v", got)
	}
	if !slices.Equal(got[0].Identities, []string{"dan"}) || !slices.Equal(got[2].Identities, []string{"dan", "eve"}) {
		t.Errorf("got identities %v and %v", got[0].Identities, got[2].Identities)
	}
	if got[1].Control.Control != "C1" || !got[1].ExpiresAt.Equal(until) {
		t.Errorf("got waiver %+v", got[1])
	}
	// Two people signed, one in each role, beside a service: an approver is proven.
	v.Approvals = Approvers{Count: 3, HumanApprovers: 2, Approvers: []string{"ann", "service-account"}, Deployers: []string{"dan"}}
	if got := v.Concerns(); got[0].Kind != Waived {
		t.Errorf("got %s for a proven approver", got[0].Kind)
	}
}

func TestDeployerOnly(t *testing.T) {
	person := func(role string) Approval { return Approval{Kind: KindSession, Role: role} }
	service := Approval{Kind: KindService, Role: RoleApprover}
	for _, c := range []struct {
		rows []Approval
		want bool
	}{
		{nil, false},
		{[]Approval{service}, false},
		{[]Approval{person(RoleDeployer)}, true},
		{[]Approval{service, person(RoleDeployer)}, true},
		{[]Approval{person(RoleApprover)}, false},
		{[]Approval{person(RoleDeployer), person(RoleApprover)}, false},
	} {
		if got := DeployerOnly(c.rows); got != c.want {
			t.Errorf("DeployerOnly(%v) = %v", c.rows, got)
		}
	}
}

func TestChange(t *testing.T) {
	for _, c := range []struct {
		typeName, payload string
		want              ChangeRecord
		ok                bool
	}{
		{TypeChange, `{"found":true,"number":"CHG1","state":"implement","approval":"approved","risk":"low","on_hold":true,"short_description":"x"}`,
			ChangeRecord{Found: true, Number: "CHG1", State: "implement", Approval: "approved", Risk: "low", OnHold: true, ShortDescription: "x"}, true},
		{TypeChange, `{"found":false}`, ChangeRecord{}, true},
		{TypeChange, `{}`, ChangeRecord{}, false},
		{TypeChange, `null`, ChangeRecord{}, false},
		{TypeChange, `{"found":"yes"}`, ChangeRecord{}, false},
		{TypePromotion, `{"found":true}`, ChangeRecord{}, false},
	} {
		got, ok := Attestation{TypeName: c.typeName, Payload: json.RawMessage(c.payload)}.Change()
		if got != c.want || ok != c.ok {
			t.Errorf("%s %s: got %+v, %v", c.typeName, c.payload, got, ok)
		}
	}
}
