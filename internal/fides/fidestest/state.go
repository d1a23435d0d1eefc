package fidestest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

// State is what a server holds.
type State struct {
	// Token is the static service token. Empty: the server was started without
	// one and answers 503 to everything.
	Token string `json:"token"`
	// Keys are further tokens that the server takes.
	Keys []Key `json:"keys,omitempty"`
	// Delegation: on_behalf_of is honoured for keys that may delegate.
	Delegation bool `json:"delegation,omitempty"`
	// Users are the e-mails that on_behalf_of may name.
	Users []string `json:"users,omitempty"`
	// Older: a server before mid-2026, whose artifact search has no trail_id.
	Older bool `json:"older,omitempty"`
	// ListsArtifacts: row-level security is off, so GET artifacts works.
	ListsArtifacts bool `json:"listsArtifacts,omitempty"`

	Controls     []Control     `json:"controls,omitempty"`
	Waivers      []Waiver      `json:"waivers,omitempty"`
	Environments []Environment `json:"environments,omitempty"`
	Trails       []Trail       `json:"trails,omitempty"`
	Artifacts    []Artifact    `json:"artifacts,omitempty"`
}

// Key is a token and what comes with it. Person makes it a person's session.
type Key struct {
	Token     string `json:"token"`
	Person    string `json:"person,omitempty"`
	Delegates bool   `json:"delegates,omitempty"`
}

// Control needs attestations of Types, all of them compliant.
type Control struct {
	Key   string   `json:"key"`
	Name  string   `json:"name"`
	Types []string `json:"types"`
}

// Waiver sets a control aside on every trail until ExpiresAt.
type Waiver struct {
	Control    string    `json:"control"`
	Reason     string    `json:"reason"`
	ApprovedBy string    `json:"approvedBy"`
	ExpiresAt  time.Time `json:"expiresAt"`
}

// Environment has policies and an allowlist.
type Environment struct {
	ID        string         `json:"id"` // UUID
	Policies  []Policy       `json:"policies,omitempty"`
	Allowlist []AllowedImage `json:"allowlist,omitempty"`
}

// Policy needs one compliant attestation of each type. It applies to trails
// that carry every one of FlowTags.
type Policy struct {
	Name     string            `json:"name"`
	Types    []string          `json:"types"`
	FlowTags map[string]string `json:"flowTags,omitempty"`
}

// AllowedImage is an entry of an allowlist.
type AllowedImage struct {
	SHA256     string    `json:"sha256"`
	ApprovedBy string    `json:"approvedBy"`
	Reason     string    `json:"reason"`
	At         time.Time `json:"at"`
}

// Trail is the build record that artifacts belong to.
type Trail struct {
	ID           string            `json:"id"` // UUID
	Name         string            `json:"name,omitempty"`
	Commit       string            `json:"commit,omitempty"`
	Committer    string            `json:"committer,omitempty"`
	FlowTags     map[string]string `json:"flowTags,omitempty"`
	Attestations []Attestation     `json:"attestations,omitempty"` // oldest first
	Approvals    []Approval        `json:"approvals,omitempty"`
	// Chain replaces the verdict on the hash chain, which otherwise is valid
	// and counts every attestation.
	Chain *fides.ChainVerdict `json:"chain,omitempty"`
}

// Attestation is an entry of a trail. An empty ID is filled in.
type Attestation struct {
	ID        string          `json:"id,omitempty"` // UUID
	Name      string          `json:"name"`
	Type      string          `json:"type"`
	Compliant bool            `json:"compliant"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	SignedBy  string          `json:"signedBy,omitempty"`
	SHA256    string          `json:"sha256,omitempty"`
	At        time.Time       `json:"at"`
}

// Approval is a sign-off of a trail.
type Approval struct {
	By          string    `json:"by"`
	Kind        string    `json:"kind"` // session or service
	Role        string    `json:"role"` // approver or deployer
	Reason      string    `json:"reason,omitempty"`
	DelegatedBy string    `json:"delegatedBy,omitempty"`
	At          time.Time `json:"at"`
}

// Artifact is a registered image; an empty Trail is none.
type Artifact struct {
	SHA256     string            `json:"sha256"`
	Name       string            `json:"name"`
	Type       string            `json:"type,omitempty"` // container-image when empty
	Trail      string            `json:"trail,omitempty"`
	At         time.Time         `json:"at"`
	SBOMStatus string            `json:"sbomStatus,omitempty"` // Pending when empty
	SBOM       []fides.Component `json:"sbom,omitempty"`
}

var (
	uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	shaPattern  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Parse reads a State from YAML or JSON. It refuses unknown and repeated keys,
// ids and digests of another form, and references to what is not there.
func Parse(data []byte) (State, error) {
	var s State
	if err := yaml.UnmarshalStrict(data, &s); err != nil {
		return State{}, fmt.Errorf("evidence state: %w", err)
	}
	if err := s.check(); err != nil {
		return State{}, fmt.Errorf("evidence state: %w", err)
	}
	return s, nil
}

func (s State) check() error {
	trails := map[string]bool{}
	for _, t := range s.Trails {
		if !uuidPattern.MatchString(t.ID) {
			return fmt.Errorf("trail %q: the id is not a lower-case UUID", t.ID)
		}
		if trails[t.ID] {
			return fmt.Errorf("trail %s stands twice", t.ID)
		}
		trails[t.ID] = true
		for _, a := range t.Attestations {
			if a.ID != "" && !uuidPattern.MatchString(a.ID) {
				return fmt.Errorf("trail %s: attestation id %q is not a lower-case UUID", t.ID, a.ID)
			}
			if a.Name == "" || a.Type == "" {
				return fmt.Errorf("trail %s: an attestation lacks name or type", t.ID)
			}
		}
		for _, a := range t.Approvals {
			if a.Kind != fides.KindSession && a.Kind != fides.KindService {
				return fmt.Errorf("trail %s: approval of %s has kind %q; valid: session, service", t.ID, a.By, a.Kind)
			}
			if a.Role != fides.RoleApprover && a.Role != fides.RoleDeployer {
				return fmt.Errorf("trail %s: approval of %s has role %q; valid: approver, deployer", t.ID, a.By, a.Role)
			}
		}
	}
	for _, a := range s.Artifacts {
		if !shaPattern.MatchString(a.SHA256) {
			return fmt.Errorf("artifact %q: the digest is not 64 lower-case hex characters", a.SHA256)
		}
		if a.Trail != "" && !trails[a.Trail] {
			return fmt.Errorf("artifact %s: trail %s is not there", a.SHA256, a.Trail)
		}
	}
	for _, e := range s.Environments {
		if !uuidPattern.MatchString(e.ID) {
			return fmt.Errorf("environment %q: the id is not a lower-case UUID", e.ID)
		}
	}
	return nil
}
