package fides

import (
	"context"
	"time"
)

// Recommendations of the change gate. Any other value is kept, and never read
// as approve.
const (
	RecommendApprove = "approve"
	RecommendHold    = "hold"
)

// ChangeVerdict is the change gate's answer about one trail. It says nothing
// about the trail's hash chain: a tampered attestation counts (VerifyChain).
type ChangeVerdict struct {
	TrailID        string `json:"trail_id"`
	Recommendation string `json:"recommendation"`
	Approved       bool   `json:"approved"`
	Summary        string `json:"summary"`
	// RiskScore is 0 to 100; RiskLevel is low, medium (from 20) or high (from 50).
	RiskScore int    `json:"risk_score"`
	RiskLevel string `json:"risk_level"`
	// Passed holds control keys. A control that fails and lacks evidence is in Failed.
	Passed          []string         `json:"passed"`
	Failed          []ControlFinding `json:"failed"`
	MissingEvidence []ControlFinding `json:"missing_evidence"`
	Waived          []WaivedControl  `json:"waived"`
	Attestations    Counts           `json:"attestations"`
	Approvals       Approvers        `json:"approvals"`
	// SegregationOfDuties is nil when the server failed to evaluate it.
	SegregationOfDuties *SegregationOfDuties `json:"segregation_of_duties,omitempty"`
}

// ControlFinding is a control that is not satisfied, and why
// ("failed <type>", "missing <type>").
type ControlFinding struct {
	Control string   `json:"control"`
	Name    string   `json:"name"`
	Reasons []string `json:"reasons"`
}

// WaivedControl is a control that somebody set aside until ExpiresAt, for the
// whole organisation.
type WaivedControl struct {
	Control       string    `json:"control"`
	Name          string    `json:"name"`
	Reason        string    `json:"reason"`
	ApprovedBy    string    `json:"approved_by"`
	ExpiresAt     time.Time `json:"expires_at"`
	WaivedReasons []string  `json:"waived_reasons"`
}

// Counts counts everything on the trail, promotion records included.
type Counts struct {
	Total        int `json:"total"`
	NonCompliant int `json:"non_compliant"`
}

// Approvers sums up who signed off. HumanApprovers counts people in either
// role, a deployer too; Count counts service identities as well.
type Approvers struct {
	Count          int      `json:"count"`
	HumanApprovers int      `json:"human_approvers"`
	FourEyes       bool     `json:"four_eyes"`
	Approvers      []string `json:"approvers"`
	Deployers      []string `json:"deployers"`
}

// SegregationOfDuties is the finding about who did what. Not compliant also
// means that a role is not recorded yet.
type SegregationOfDuties struct {
	Committer  string   `json:"committer"`
	Approvers  []string `json:"approvers"`
	Deployers  []string `json:"deployers"`
	Compliant  bool     `json:"compliant"`
	Violations []string `json:"violations,omitempty"`
}

func (s *SegregationOfDuties) normalize() {
	if s != nil {
		s.Approvers, s.Deployers = list(s.Approvers), list(s.Deployers)
	}
}

var changeShape = object("trail_id", "recommendation", "approved", "risk_score",
	"attestations.total", "attestations.non_compliant", "approvals.count", "approvals.human_approvers").
	orNull("passed", "failed", "missing_evidence", "waived", "approvals.approvers", "approvals.deployers")

// ChangeGate asks whether the trail's change may go out. It is not read-only:
// the server may append a segregation-of-duties attestation to the trail, with
// any role's key.
func (c *Client) ChangeGate(ctx context.Context, trail string) (ChangeVerdict, error) {
	if err := segment("trail", trail); err != nil {
		return ChangeVerdict{}, err
	}
	var v ChangeVerdict
	a, err := c.get(ctx, "/api/v1/trails/"+trail+"/change-gate", nil, changeShape, &v)
	if err != nil {
		return ChangeVerdict{}, err
	}
	if err := a.confirm("trail_id", trail, v.TrailID); err != nil {
		return ChangeVerdict{}, err
	}
	v.normalize()
	return v, nil
}

func (v *ChangeVerdict) normalize() {
	v.Passed, v.Failed, v.MissingEvidence, v.Waived = list(v.Passed), list(v.Failed), list(v.MissingEvidence), list(v.Waived)
	for _, findings := range [][]ControlFinding{v.Failed, v.MissingEvidence} {
		for i := range findings {
			findings[i].Reasons = list(findings[i].Reasons)
		}
	}
	for i := range v.Waived {
		v.Waived[i].WaivedReasons = list(v.Waived[i].WaivedReasons)
	}
	v.Approvals.Approvers, v.Approvals.Deployers = list(v.Approvals.Approvers), list(v.Approvals.Deployers)
	v.SegregationOfDuties.normalize()
}
