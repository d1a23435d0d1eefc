package fides

import (
	"slices"
	"time"
)

// HoldKind is why the change gate withholds approval.
type HoldKind string

// Hold kinds.
const (
	// FailingControls: an attestation that a control needs is not compliant.
	FailingControls HoldKind = "FailingControls"
	// MissingEvidence: an attestation that a control needs is not there.
	MissingEvidence HoldKind = "MissingEvidence"
	// AwaitingHuman: the controls are satisfied and nobody signed off.
	AwaitingHuman HoldKind = "AwaitingHuman"
	// ServiceApprovalOnly: as AwaitingHuman; only service identities signed.
	ServiceApprovalOnly HoldKind = "ServiceApprovalOnly"
	// HoldOther: not approved, and the verdict does not say why.
	HoldOther HoldKind = "Other"
)

// Hold is one kind of reason why the change gate withholds approval.
type Hold struct {
	Kind HoldKind `json:"kind"`
	// Controls of FailingControls and MissingEvidence.
	Controls []ControlFinding `json:"controls,omitempty"`
	// Identities that signed, for ServiceApprovalOnly.
	Identities []string `json:"identities,omitempty"`
}

// Approves reports whether the change gate approves. It takes every sign: an
// unknown recommendation, or one that its own parts contradict, is no approval.
func (v ChangeVerdict) Approves() bool {
	return v.Recommendation == RecommendApprove && v.Approved &&
		len(v.Failed) == 0 && len(v.MissingEvidence) == 0 && v.Approvals.HumanApprovers > 0
}

// Holds says why the change gate withholds approval; it is empty exactly when
// Approves. That a human is missing as well is not told while controls are
// open, as the server and the controller have it (fides-facts.md, hold kinds).
func (v ChangeVerdict) Holds() []Hold {
	out := []Hold{}
	if v.Approves() {
		return out
	}
	if len(v.Failed) > 0 {
		out = append(out, Hold{Kind: FailingControls, Controls: v.Failed})
	}
	if len(v.MissingEvidence) > 0 {
		out = append(out, Hold{Kind: MissingEvidence, Controls: v.MissingEvidence})
	}
	if len(out) > 0 {
		return out
	}
	switch {
	case v.Approvals.HumanApprovers > 0:
		return append(out, Hold{Kind: HoldOther})
	case v.Approvals.Count > 0:
		return append(out, Hold{Kind: ServiceApprovalOnly, Identities: slices.Concat(v.Approvals.Approvers, v.Approvals.Deployers)})
	default:
		return append(out, Hold{Kind: AwaitingHuman})
	}
}

// ConcernKind is something to point at even when the verdict is approve.
type ConcernKind string

// Concern kinds.
const (
	// DeployerSignOffOnly: the only people who signed are deployers, so a
	// deployer's own sign-off lifted the hold.
	DeployerSignOffOnly ConcernKind = "DeployerSignOffOnly"
	// ApproverUnproven: a service identity signed too, and the verdict does not
	// tell which; the people may all be deployers. DeployerOnly tells.
	ApproverUnproven ConcernKind = "ApproverUnproven"
	// Waived: a control is set aside, not satisfied.
	Waived ConcernKind = "Waived"
	// SoDViolation: one person holds two roles, or a role is not recorded.
	SoDViolation ConcernKind = "SegregationOfDuties"
)

// Concern is one thing to point at.
type Concern struct {
	Kind ConcernKind `json:"kind"`
	// Identities of the deployers who signed, or of who holds two roles: empty
	// for SoDViolation when a role is only not recorded yet.
	Identities []string `json:"identities,omitempty"`
	// Control is what is Waived, and ExpiresAt until when.
	Control   *WaivedControl `json:"control,omitempty"`
	ExpiresAt *time.Time     `json:"expires_at,omitempty"`
	// Violations as the server words them, for people.
	Violations []string `json:"violations,omitempty"`
}

// Concerns lists what to point at whatever the recommendation is, in the order
// of the kinds.
func (v ChangeVerdict) Concerns() []Concern {
	out := []Concern{}
	a := v.Approvals
	switch {
	case a.HumanApprovers == 0:
	case len(a.Approvers) == 0:
		out = append(out, Concern{Kind: DeployerSignOffOnly, Identities: a.Deployers})
	case a.Count > a.HumanApprovers && a.HumanApprovers <= len(a.Deployers):
		out = append(out, Concern{Kind: ApproverUnproven, Identities: a.Deployers})
	}
	for i := range v.Waived {
		w := v.Waived[i]
		out = append(out, Concern{Kind: Waived, Control: &w, ExpiresAt: &w.ExpiresAt})
	}
	if s := v.SegregationOfDuties; s != nil && !s.Compliant {
		out = append(out, Concern{Kind: SoDViolation, Identities: s.Collisions(), Violations: s.Violations})
	}
	return out
}

// Collisions lists who holds two roles, sorted.
func (s SegregationOfDuties) Collisions() []string {
	out := []string{}
	if s.Committer != "" && (slices.Contains(s.Approvers, s.Committer) || slices.Contains(s.Deployers, s.Committer)) {
		out = append(out, s.Committer)
	}
	for _, who := range s.Approvers {
		if slices.Contains(s.Deployers, who) {
			out = append(out, who)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// DeployerOnly reports whether people signed and every one of them is a
// deployer: the exact form of DeployerSignOffOnly, from the sign-offs themselves.
func DeployerOnly(approvals []Approval) bool {
	people := 0
	for _, a := range approvals {
		if a.Kind != KindSession {
			continue
		}
		if a.Role != RoleDeployer {
			return false
		}
		people++
	}
	return people > 0
}
