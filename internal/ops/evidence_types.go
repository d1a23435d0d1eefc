package ops

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

// EvidenceQuery asks for the evidence of one Bundle.
type EvidenceQuery struct {
	Namespace string
	Bundle    string
	// Gate is whose evidence server and environment are asked; empty asks
	// every distinct one of the Gates that admit the Bundle.
	Gate string
	// ConsultChangeGate allows the one question that can write: reading the
	// change gate may append a segregation-of-duties attestation to the trail.
	ConsultChangeGate bool
}

// Evidence answers "why was this Bundle allowed, and who allowed it?". Its
// first fields are the seed's: they speak of the first image and of the first
// view. It is never an error that there is no evidence: status says which kind
// of none, and unavailable says it to people.
type Evidence struct {
	Summary   string `json:"summary" jsonschema_description:"one line that stands alone"`
	Bundle    string `json:"bundle" jsonschema_description:"Bundle"`
	Namespace string `json:"namespace" jsonschema_description:"namespace"`
	Digest    string `json:"digest,omitempty" jsonschema_description:"digest of the first image"`
	Trail     string `json:"trail,omitempty" jsonschema_description:"trail of the first image"`
	Gate      string `json:"gate,omitempty" jsonschema_description:"Gate through which it was asked"`
	// Status is the first image's; Conclusion is the worst over all images and views.
	Status      ArtifactStatus            `json:"status" jsonschema_description:"what is known of the first image"`
	Conclusion  Conclusion                `json:"conclusion" jsonschema_description:"worst over all images and views"`
	Verdict     *fides.ChangeVerdict      `json:"verdict,omitempty" jsonschema_description:"change gate's answer for the first image"`
	ApprovedIn  []v1alpha1.BundleApproval `json:"approvedIn" jsonschema_description:"in the Bundle: {gate, actor, at}"`
	Unavailable string                    `json:"unavailable,omitempty" jsonschema_description:"why there is none, for people"`
	Artifacts   []ArtifactEvidence        `json:"artifacts" jsonschema_description:"every image, as the first view sees it"`
	Views       []EvidenceView            `json:"views" jsonschema_description:"each server and environment asked: {gates, server, environment, status, conclusion, detail, artifacts}"`
	Packet      *Packet                   `json:"packet,omitempty" jsonschema_description:"what has to be approved"`
	Incomplete  []Incomplete              `json:"incomplete" jsonschema_description:"what could not be read"`
}

// EvidenceView is one server and environment, as some Gates see it.
type EvidenceView struct {
	Gates       []string       `json:"gates" jsonschema_description:"Gates that use it"`
	Server      string         `json:"server,omitempty" jsonschema_description:"evidence server"`
	Environment string         `json:"environment,omitempty" jsonschema_description:"environment id"`
	Status      ArtifactStatus `json:"status" jsonschema_description:"the first image's, there"`
	Conclusion  Conclusion     `json:"conclusion" jsonschema_description:"worst over all images, there"`
	Detail      string         `json:"detail,omitempty" jsonschema_description:"specifics, for people"`
	// Artifacts is left out for the first view, whose artifacts stand at the top.
	Artifacts []ArtifactEvidence `json:"artifacts,omitempty" jsonschema_description:"its images, but for the first view"`
}

// ArtifactEvidence is what one evidence server holds about one image.
type ArtifactEvidence struct {
	Repo         string               `json:"repo" jsonschema_description:"image repository"`
	Tag          string               `json:"tag,omitempty" jsonschema_description:"image tag"`
	Digest       string               `json:"digest,omitempty" jsonschema_description:"image digest"`
	Status       ArtifactStatus       `json:"status" jsonschema_description:"what is known of it"`
	Trail        string               `json:"trail,omitempty" jsonschema_description:"its trail"`
	Conclusion   Conclusion           `json:"conclusion" jsonschema_description:"what it amounts to"`
	Detail       string               `json:"detail,omitempty" jsonschema_description:"specifics, for people"`
	Verdict      *fides.ChangeVerdict `json:"verdict,omitempty" jsonschema_description:"change gate's answer"`
	Hold         []Hold               `json:"hold,omitempty" jsonschema_description:"why the change gate withholds approval"`
	Chain        *HashChain           `json:"chain,omitempty" jsonschema_description:"hash chain of the trail"`
	Checks       []EvidenceCheck      `json:"checks,omitempty" jsonschema_description:"compliance, allowlist, policy"`
	Attestations []Attestation        `json:"attestations,omitempty" jsonschema_description:"newest first"`
	// Types says of every type on the trail whether all its attestations are
	// compliant; Attestations shows the newest only.
	Types map[string]bool `json:"-"`
	// MoreAttestations counts what Attestations left out.
	MoreAttestations int             `json:"moreAttestations,omitempty" jsonschema_description:"how many are left out"`
	Approvals        []TrailApproval `json:"approvals,omitempty" jsonschema_description:"sign-offs on the trail"`
	Change           *ChangeRecord   `json:"change,omitempty" jsonschema_description:"newest ITSM check"`
	Concerns         []Concern       `json:"concerns,omitempty" jsonschema_description:"to be seen even when approved"`
}

// HashChain is the verdict on a trail's hash chain.
type HashChain struct {
	Status HashChainStatus `json:"status" jsonschema_description:"how far it vouches"`
	Count  int             `json:"count" jsonschema_description:"entries checked"`
	Detail string          `json:"detail,omitempty" jsonschema_description:"specifics, for people"`
}

// EvidenceCheck is one check of the evidence step and how it would end.
type EvidenceCheck struct {
	Check  CheckName   `json:"check" jsonschema_description:"what the step runs"`
	Result CheckResult `json:"result" jsonschema_description:"how it would end"`
	Detail string      `json:"detail,omitempty" jsonschema_description:"specifics, for people"`
	Digest string      `json:"digest,omitempty" jsonschema_description:"image digest"`
	Hold   []Hold      `json:"hold,omitempty" jsonschema_description:"kinds of hold"`
}

// Attestation is one entry of a trail, without its payload.
type Attestation struct {
	Type      string      `json:"type" jsonschema_description:"attestation type"`
	Name      string      `json:"name,omitempty" jsonschema_description:"its name"`
	Compliant bool        `json:"compliant" jsonschema_description:"whether its rule holds"`
	At        metav1.Time `json:"at" jsonschema_description:"when"`
}

// TrailApproval is one sign-off on a trail. Only kind session counts as a person.
type TrailApproval struct {
	By   string      `json:"by" jsonschema_description:"identity"`
	Kind string      `json:"kind" jsonschema_description:"session (a person) or service (does not count)"`
	Role string      `json:"role" jsonschema_description:"approver or deployer"`
	At   metav1.Time `json:"at" jsonschema_description:"when"`
}

// ChangeRecord is the newest check against the ITSM system.
type ChangeRecord struct {
	Found    bool   `json:"found" jsonschema_description:"whether the record exists"`
	Number   string `json:"number,omitempty" jsonschema_description:"change number"`
	State    string `json:"state,omitempty" jsonschema_description:"such as scheduled, implement, closed"`
	Approval string `json:"approval,omitempty" jsonschema_description:"such as approved, requested"`
	Risk     string `json:"risk,omitempty" jsonschema_description:"as the ITSM system has it"`
	OnHold   bool   `json:"onHold,omitempty" jsonschema_description:"whether it is on hold"`
}

// Concern is something to see even when the verdict is approve.
type Concern struct {
	Kind   ConcernKind `json:"kind" jsonschema_description:"stable code"`
	Detail string      `json:"detail" jsonschema_description:"specifics, for people"`
}
