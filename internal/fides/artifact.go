package fides

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// ArtifactFilter narrows SearchArtifacts; empty fields do not.
type ArtifactFilter struct {
	SHA    string // prefix, case-sensitive, without "sha256:"
	Commit string // exact
	Name   string // substring
}

// ArtifactHit is one artifact of a search.
type ArtifactHit struct {
	SHA256    string    `json:"sha256"`
	Name      string    `json:"name"`
	Type      string    `json:"type"`
	CreatedAt time.Time `json:"created_at"`
	GitCommit string    `json:"git_commit"`
	TrailID   *string   `json:"trail_id"`
	// TrailReported is false when the answer has no key trail_id at all, as
	// servers before mid-2026: then a nil TrailID says nothing.
	TrailReported bool `json:"-"`
}

// UnmarshalJSON keeps "no trail" and "not told" apart.
func (a *ArtifactHit) UnmarshalJSON(data []byte) error {
	type wire ArtifactHit
	if err := json.Unmarshal(data, (*wire)(a)); err != nil {
		return err
	}
	_, a.TrailReported = lookup(data, "trail_id")
	return nil
}

// Artifact is one entry of the list of all artifacts.
type Artifact struct {
	SHA256     string         `json:"sha256"`
	OrgID      string         `json:"org_id"`
	TrailID    *string        `json:"trail_id"`
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Tags       map[string]any `json:"tags"`
	CreatedAt  time.Time      `json:"created_at"`
	TrailName  string         `json:"trail_name"`
	SBOMStatus string         `json:"sbom_status"` // Compliant, Non-Compliant or Pending
	SBOM       []Component    `json:"sbom"`
}

// Component is one entry of an artifact's SBOM.
type Component struct {
	Name     string   `json:"name"`
	Version  string   `json:"version"`
	PURL     string   `json:"purl"`
	Licenses []string `json:"licenses"`
}

// SearchArtifacts lists the newest 100 artifacts that fit, newest first. The
// SHA is a prefix: see ArtifactByDigest for one digest.
func (c *Client) SearchArtifacts(ctx context.Context, f ArtifactFilter) ([]ArtifactHit, error) {
	var out []ArtifactHit
	query := params("sha", f.SHA, "commit", f.Commit, "name", f.Name)
	if _, err := c.get(ctx, "/api/v1/search/artifacts", query, arrayOf("sha256", "name"), &out); err != nil {
		return nil, err
	}
	return out, nil
}

// Artifacts lists every artifact with its SBOM; there is no filter and no
// paging. A server with row-level security (the default) answers ServerError as
// soon as it holds one artifact.
func (c *Client) Artifacts(ctx context.Context) ([]Artifact, error) {
	var out []Artifact
	if _, err := c.get(ctx, "/api/v1/artifacts", nil, arrayOf("sha256").orNull("trail_id"), &out); err != nil {
		return nil, err
	}
	for i := range out {
		out[i].SBOM = list(out[i].SBOM)
		for j := range out[i].SBOM {
			out[i].SBOM[j].Licenses = list(out[i].SBOM[j].Licenses)
		}
	}
	return out, nil
}

// ArtifactState is what the server knows of one digest.
type ArtifactState string

// Artifact states.
const (
	// OnTrail: registered, with a trail.
	OnTrail ArtifactState = "OnTrail"
	// NoTrail: registered, without a trail.
	NoTrail ArtifactState = "NoTrail"
	// NotRegistered: the server has never heard of the digest.
	NotRegistered ArtifactState = "NotRegistered"
	// TrailUnknown: registered, but an older server does not tell its trail and
	// the list of all artifacts could not be read; an error says why.
	TrailUnknown ArtifactState = "TrailUnknown"
)

// ArtifactFinding is the answer about one digest. Name is empty when the digest
// is not registered, TrailID unless State is OnTrail.
type ArtifactFinding struct {
	State   ArtifactState `json:"state"`
	SHA256  string        `json:"sha256"`
	Name    string        `json:"name,omitempty"`
	TrailID string        `json:"trail_id,omitempty"`
}

// ArtifactByDigest finds one artifact by its whole digest, with or without
// "sha256:", in any case. Only equality counts, since the server matches
// prefixes. The error is nil unless the server could not be asked; with
// TrailUnknown the finding stands beside the error.
func (c *Client) ArtifactByDigest(ctx context.Context, digest string) (ArtifactFinding, error) {
	sha, err := NormalizeDigest(digest)
	if err != nil {
		return ArtifactFinding{}, err
	}
	hits, err := c.SearchArtifacts(ctx, ArtifactFilter{SHA: sha})
	if err != nil {
		return ArtifactFinding{}, err
	}
	for _, hit := range hits {
		if hit.SHA256 != sha {
			continue
		}
		found := ArtifactFinding{State: NoTrail, SHA256: sha, Name: hit.Name}
		if !hit.TrailReported {
			return c.trailFromList(ctx, found)
		}
		return found.onTrail(hit.TrailID), nil
	}
	return ArtifactFinding{State: NotRegistered, SHA256: sha}, nil
}

// trailFromList is the way of servers whose search does not tell the trail.
func (c *Client) trailFromList(ctx context.Context, found ArtifactFinding) (ArtifactFinding, error) {
	found.State = TrailUnknown
	all, err := c.Artifacts(ctx)
	if err != nil {
		return found, fmt.Errorf("an older server's search does not tell the trail of %s, and its list of artifacts cannot be read: %w", found.SHA256, err)
	}
	for _, a := range all {
		if a.SHA256 == found.SHA256 {
			found.State = NoTrail
			return found.onTrail(a.TrailID), nil
		}
	}
	return found, &Error{Code: Unavailable, Message: "an older server's search does not tell the trail of " + found.SHA256 + ", and its list of artifacts lacks it"}
}

func (f ArtifactFinding) onTrail(trail *string) ArtifactFinding {
	if trail != nil && *trail != "" {
		f.State, f.TrailID = OnTrail, *trail
	}
	return f
}

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// NormalizeDigest gives a digest as the server stores it: 64 lower-case hex
// characters without "sha256:". The error is an *Error with InvalidArgument.
func NormalizeDigest(digest string) (string, error) {
	sha := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(digest)), "sha256:")
	if !digestPattern.MatchString(sha) {
		return "", &Error{Code: InvalidArgument, Message: fmt.Sprintf("digest %q is not a SHA-256; valid is [sha256:]<64 hex characters>", clean(digest, 80))}
	}
	return sha, nil
}

// NewArtifact is an artifact to report. The digest is sent as it is.
type NewArtifact struct {
	SHA256  string `json:"sha256"`
	TrailID string `json:"trail_id"`
	Name    string `json:"name"`
	Type    string `json:"type"` // such as container-image
}

// ReportedArtifact is what the server stored.
type ReportedArtifact struct {
	SHA256    string         `json:"sha256"`
	OrgID     string         `json:"org_id"`
	TrailID   *string        `json:"trail_id"`
	Name      string         `json:"name"`
	Type      string         `json:"type"`
	Tags      map[string]any `json:"tags"`
	CreatedAt time.Time      `json:"created_at"`
}

// ReportArtifact writes: it puts an artifact on a trail, or moves it there.
func (c *Client) ReportArtifact(ctx context.Context, a NewArtifact) (ReportedArtifact, error) {
	var out ReportedArtifact
	_, err := c.call(ctx, http.MethodPost, "/api/v1/artifacts", nil, a, object("sha256").orNull("trail_id"), &out)
	return out, err
}

// params makes a query of pairs, leaving empty values out.
func params(pairs ...string) url.Values {
	out := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out.Set(pairs[i], pairs[i+1])
		}
	}
	return out
}
