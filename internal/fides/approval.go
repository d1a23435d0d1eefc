package fides

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Kinds of a sign-off. Only KindSession counts as a person.
const (
	KindSession = "session"
	KindService = "service"
)

// Roles of a sign-off.
const (
	RoleApprover = "approver"
	RoleDeployer = "deployer"
)

// Approval is one sign-off on a trail. There is one for each identity.
type Approval struct {
	ApprovedBy  string    `json:"approved_by"`
	Kind        string    `json:"approver_kind"`
	Reason      string    `json:"reason"`
	Role        string    `json:"role"`
	CreatedAt   time.Time `json:"created_at"`
	DelegatedBy string    `json:"delegated_by,omitempty"`
}

// ApprovalRequest is a sign-off to record.
type ApprovalRequest struct {
	Role string `json:"role"`
	// OnBehalfOf is a plain e-mail of a known user. A server or key without
	// delegation ignores it without an error: see ApprovalResult.OnBehalfOfIgnored.
	OnBehalfOf string `json:"on_behalf_of,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// ApprovalResult is what the server recorded.
type ApprovalResult struct {
	Status              string               `json:"status"`
	ApprovedBy          string               `json:"approved_by"`
	Kind                string               `json:"kind"`
	Role                string               `json:"role"`
	DelegatedBy         string               `json:"delegated_by,omitempty"`
	SegregationOfDuties *SegregationOfDuties `json:"segregation_of_duties,omitempty"`
	// OnBehalfOfIgnored: somebody else than asked for was recorded.
	OnBehalfOfIgnored bool `json:"-"`
}

// Human reports whether the sign-off counts as a person's.
func (r ApprovalResult) Human() bool { return r.Kind == KindSession }

// Approvals lists the sign-offs on a trail, oldest first.
func (c *Client) Approvals(ctx context.Context, trail string) ([]Approval, error) {
	if err := segment("trail", trail); err != nil {
		return nil, err
	}
	var out []Approval
	if _, err := c.get(ctx, "/api/v1/trails/"+trail+"/approvals", nil, arrayOf("approved_by", "approver_kind", "role"), &out); err != nil {
		return nil, err
	}
	return out, nil
}

// Approve writes: it records a sign-off. A second one by the same identity
// overwrites role, reason and time of the first, and keeps its kind. An unknown
// trail is a ServerError here. The server may append a segregation-of-duties
// attestation as well.
func (c *Client) Approve(ctx context.Context, trail string, r ApprovalRequest) (ApprovalResult, error) {
	if err := segment("trail", trail); err != nil {
		return ApprovalResult{}, err
	}
	var out ApprovalResult
	if _, err := c.call(ctx, http.MethodPost, "/api/v1/trails/"+trail+"/approvals", nil, r,
		object("status", "approved_by", "kind", "role"), &out); err != nil {
		return ApprovalResult{}, orUnknown(err, "the trail")
	}
	out.SegregationOfDuties.normalize()
	out.OnBehalfOfIgnored = r.OnBehalfOf != "" && !strings.EqualFold(strings.TrimSpace(r.OnBehalfOf), out.ApprovedBy)
	return out, nil
}
