package fides

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// ComplianceVerdict says whether every attestation of an artifact's trail is
// compliant. Without a trail, or with an empty one, it is compliant.
type ComplianceVerdict struct {
	SHA256     string   `json:"sha256"`
	Name       string   `json:"name"`
	Compliant  bool     `json:"compliant"`
	Violations []string `json:"violations"` // for people
}

// Compliance asks whether an artifact is compliant. The digest is normalised
// first. The server does not read a policy here, so none can be given.
func (c *Client) Compliance(ctx context.Context, digest string) (ComplianceVerdict, error) {
	sha, err := NormalizeDigest(digest)
	if err != nil {
		return ComplianceVerdict{}, err
	}
	var v ComplianceVerdict
	a, err := c.get(ctx, "/api/v1/compliance", params("sha256", sha), object("sha256", "compliant").orNull("violations"), &v)
	if err != nil {
		return ComplianceVerdict{}, err
	}
	if err := a.confirm("sha256", sha, v.SHA256); err != nil {
		return ComplianceVerdict{}, err
	}
	v.Violations = list(v.Violations)
	return v, nil
}

// Types of attestations that this project reads.
const (
	TypePromotion = "promotion"
	TypeChange    = "servicenow-change"
	TypeSoD       = "segregation-of-duties"
)

// AttestationFilter narrows SearchAttestations; empty fields do not.
type AttestationFilter struct {
	Type      string
	Trail     string // UUID
	Compliant *bool
	SHA       string
}

// AttestationHit is one attestation of a search, without its payload.
type AttestationHit struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	TypeName    string    `json:"type_name"`
	IsCompliant bool      `json:"is_compliant"`
	TrailID     string    `json:"trail_id"`
	CreatedAt   time.Time `json:"created_at"`
}

// SearchAttestations lists the newest 100 attestations that fit, newest first.
// An unknown trail is an empty list, not an error.
func (c *Client) SearchAttestations(ctx context.Context, f AttestationFilter) ([]AttestationHit, error) {
	query := params("type", f.Type, "trail", f.Trail, "sha", f.SHA)
	if f.Compliant != nil {
		query.Set("compliant", strconv.FormatBool(*f.Compliant))
	}
	var out []AttestationHit
	if _, err := c.get(ctx, "/api/v1/search/attestations", query, arrayOf("id", "type_name", "is_compliant"), &out); err != nil {
		return nil, err
	}
	return out, nil
}

// Attestation is one attestation with its payload, verbatim.
type Attestation struct {
	ID                  string          `json:"id"`
	Name                string          `json:"name"`
	TypeName            string          `json:"type_name"`
	IsCompliant         bool            `json:"is_compliant"`
	Payload             json.RawMessage `json:"payload"`
	SignedBy            string          `json:"signed_by"`
	SignatureAlgorithm  string          `json:"signature_algorithm"`
	ManifestationReason string          `json:"manifestation_reason"`
	ContentHash         string          `json:"content_hash"`
	CreatedAt           time.Time       `json:"created_at"`
	TrailID             string          `json:"trail_id"`
	ArtifactSHA256      string          `json:"artifact_sha256"` // "" when it is about no artifact
}

// Attestation reads one attestation.
func (c *Client) Attestation(ctx context.Context, id string) (Attestation, error) {
	if err := segment("attestation", id); err != nil {
		return Attestation{}, err
	}
	var v Attestation
	a, err := c.get(ctx, "/api/v1/attestations/"+id, nil, object("id", "type_name", "is_compliant").orNull("payload"), &v)
	if err != nil {
		return Attestation{}, err
	}
	if err := a.confirm("id", id, v.ID); err != nil {
		return Attestation{}, err
	}
	return v, nil
}

// ChangeRecord is the payload of an ITSM check. When Found is false nothing
// else is set. State is one of new, assess, authorize, scheduled, implement,
// review, closed, canceled, or whatever text the ITSM system sent.
type ChangeRecord struct {
	Found            bool   `json:"found"`
	Number           string `json:"number"`
	State            string `json:"state"`
	Approval         string `json:"approval"` // approved, requested, not requested, rejected, …
	Risk             string `json:"risk"`
	OnHold           bool   `json:"on_hold"`
	ShortDescription string `json:"short_description"`
}

// Change reads the payload of an ITSM check; false when the attestation is of
// another type or its payload has another form.
func (a Attestation) Change() (ChangeRecord, bool) {
	if a.TypeName != TypeChange {
		return ChangeRecord{}, false
	}
	var r ChangeRecord
	if err := decode(a.Payload, object("found"), &r); err != nil {
		return ChangeRecord{}, false
	}
	return r, true
}

// NewAttestation is an attestation to write. Payload is JSON as text.
type NewAttestation struct {
	TrailID        string `json:"trail_id"`
	ArtifactSHA256 string `json:"artifact_sha256"` // "" or a reported digest
	Name           string `json:"name"`
	TypeName       string `json:"type_name"`
	Payload        string `json:"payload"`
	SignedBy       string `json:"signed_by"`
}

// StoredAttestation is what the server stored: unlike Attestation, with the
// payload as text.
type StoredAttestation struct {
	ID                  string    `json:"id"`
	TrailID             string    `json:"trail_id"`
	ArtifactSHA256      string    `json:"artifact_sha256"`
	Name                string    `json:"name"`
	TypeName            string    `json:"type_name"`
	Payload             string    `json:"payload"`
	IsCompliant         bool      `json:"is_compliant"`
	SignedBy            string    `json:"signed_by"`
	Signature           string    `json:"signature"`
	SignatureAlgorithm  string    `json:"signature_algorithm"`
	ManifestationReason string    `json:"manifestation_reason"`
	CreatedAt           time.Time `json:"created_at"`
}

// Attest writes: it appends an attestation to a trail's hash chain. A digest
// that was never reported is a ServerError here.
func (c *Client) Attest(ctx context.Context, n NewAttestation) (StoredAttestation, error) {
	var out StoredAttestation
	if _, err := c.call(ctx, http.MethodPost, "/api/v1/attestations", nil, n, object("id", "trail_id", "is_compliant"), &out); err != nil {
		return StoredAttestation{}, orUnknown(err, "the artifact's digest")
	}
	return out, nil
}
