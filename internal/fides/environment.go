package fides

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// PolicyVerdict says whether a trail satisfies an environment's policies. One
// compliant attestation of a type is enough here, unlike at the change gate.
type PolicyVerdict struct {
	Compliant bool           `json:"compliant"`
	TrailID   string         `json:"trail_id"`
	Results   []PolicyResult `json:"results"` // empty: no policies, compliant
}

// PolicyResult is one policy. Missing also lists types whose attestations are
// all non-compliant. A policy that does not apply does not count.
type PolicyResult struct {
	Policy  string   `json:"policy"`
	Applies bool     `json:"applies"`
	Missing []string `json:"missing"`
}

// PolicyCheck asks whether a trail satisfies an environment's policies.
func (c *Client) PolicyCheck(ctx context.Context, environment, trail string) (PolicyVerdict, error) {
	if err := segment("environment", environment); err != nil {
		return PolicyVerdict{}, err
	}
	if err := segment("trail", trail); err != nil {
		return PolicyVerdict{}, err
	}
	var v PolicyVerdict
	a, err := c.get(ctx, "/api/v1/environments/"+environment+"/policy-check", params("trail", trail),
		object("compliant", "trail_id").orNull("results"), &v)
	if err != nil {
		return PolicyVerdict{}, err
	}
	if err := a.confirm("trail_id", trail, v.TrailID); err != nil {
		return PolicyVerdict{}, err
	}
	v.Results = list(v.Results)
	for i := range v.Results {
		v.Results[i].Missing = list(v.Results[i].Missing)
	}
	return v, nil
}

// AllowlistVerdict says whether a digest is on an environment's allowlist.
type AllowlistVerdict struct {
	EnvironmentID  string `json:"environment_id"`
	ArtifactSHA256 string `json:"artifact_sha256"`
	Approved       bool   `json:"approved"`
}

// AllowlistCheck asks whether a digest is on an environment's allowlist. The
// digest is normalised first: the server compares its text, and "sha256:…"
// would read as not approved.
func (c *Client) AllowlistCheck(ctx context.Context, environment, digest string) (AllowlistVerdict, error) {
	sha, err := NormalizeDigest(digest)
	if err != nil {
		return AllowlistVerdict{}, err
	}
	return c.allowlistCheck(ctx, environment, sha)
}

func (c *Client) allowlistCheck(ctx context.Context, environment, sha string) (AllowlistVerdict, error) {
	if err := segment("environment", environment); err != nil {
		return AllowlistVerdict{}, err
	}
	var v AllowlistVerdict
	a, err := c.get(ctx, allowlistPath(environment), url.Values{"sha": {sha}}, object("environment_id", "artifact_sha256", "approved"), &v)
	if err != nil {
		return AllowlistVerdict{}, err
	}
	if err := a.confirm("environment_id", environment, v.EnvironmentID); err != nil {
		return AllowlistVerdict{}, err
	}
	if err := a.confirm("artifact_sha256", sha, v.ArtifactSHA256); err != nil {
		return AllowlistVerdict{}, err
	}
	return v, nil
}

// AllowlistEntry is a digest that somebody accepted for an environment.
type AllowlistEntry struct {
	ArtifactSHA256 string    `json:"artifact_sha256"`
	ApprovedBy     string    `json:"approved_by"`
	Reason         string    `json:"reason"`
	CreatedAt      time.Time `json:"created_at"`
}

// Allowlist lists an environment's allowlist.
func (c *Client) Allowlist(ctx context.Context, environment string) ([]AllowlistEntry, error) {
	if err := segment("environment", environment); err != nil {
		return nil, err
	}
	var out []AllowlistEntry
	if _, err := c.get(ctx, allowlistPath(environment), nil, arrayOf("artifact_sha256"), &out); err != nil {
		return nil, err
	}
	return out, nil
}

// AddToAllowlist writes: it accepts a digest for an environment. The server
// refuses an empty reason.
func (c *Client) AddToAllowlist(ctx context.Context, environment, digest, reason string) error {
	if err := segment("environment", environment); err != nil {
		return err
	}
	sha, err := NormalizeDigest(digest)
	if err != nil {
		return err
	}
	entry := struct {
		SHA256 string `json:"artifact_sha256"`
		Reason string `json:"reason,omitempty"`
	}{sha, reason}
	var out struct {
		Status string `json:"status"`
	}
	_, err = c.call(ctx, http.MethodPost, allowlistPath(environment), nil, entry, object("status"), &out)
	return err
}

func allowlistPath(environment string) string {
	return "/api/v1/environments/" + environment + "/allowlist"
}
