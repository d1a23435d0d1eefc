package fides

import (
	"context"
	"time"
)

// ChainVerdict is the server's check of a trail's hash chain.
type ChainVerdict struct {
	Valid bool `json:"valid"`
	// Count is the hashed entries checked; all entries when the chain is broken.
	Count int `json:"count"`
	// BrokenAt is the 0-based index of the first bad entry, -1 when valid.
	BrokenAt int    `json:"broken_at"`
	Reason   string `json:"reason,omitempty"`
	// ExternalAnchor is nil when the chain was never anchored.
	ExternalAnchor *ExternalAnchor `json:"external_anchor,omitempty"`
}

// ExternalAnchor is the last timestamp that an outside authority gave the head.
type ExternalAnchor struct {
	Anchored    bool   `json:"anchored"`
	HeadMatches bool   `json:"head_matches"`
	TSAURL      string `json:"tsa_url,omitempty"`
	// AnchoredAt and Timestamp are the zero time when verification failed.
	AnchoredAt time.Time `json:"anchored_at"`
	Timestamp  time.Time `json:"timestamp"`
	Error      string    `json:"error,omitempty"`
}

// VerifyChain checks the hash chain of a trail.
func (c *Client) VerifyChain(ctx context.Context, trail string) (ChainVerdict, error) {
	if err := segment("trail", trail); err != nil {
		return ChainVerdict{}, err
	}
	var v ChainVerdict
	if _, err := c.get(ctx, "/api/v1/trails/"+trail+"/verify-chain", nil, object("valid", "count", "broken_at"), &v); err != nil {
		return ChainVerdict{}, err
	}
	return v, nil
}

// ChainState is how far a hash chain vouches for a trail.
type ChainState string

// Chain states, the worst first.
const (
	// ChainBroken: an entry was altered, removed or reordered.
	ChainBroken ChainState = "Broken"
	// ChainCountMismatch: fewer entries are chained than attested, so the chain
	// does not vouch for all of them.
	ChainCountMismatch ChainState = "CountMismatch"
	// ChainAnchorUnverified: the outside timestamp could not be verified.
	ChainAnchorUnverified ChainState = "AnchorUnverified"
	// ChainAnchorBehind: the head is not the anchored one. Either entries were
	// appended since, or the newest were removed; the server cannot tell.
	ChainAnchorBehind ChainState = "AnchorBehind"
	// ChainUnhashed: nothing was checked: the trail is empty, or its entries
	// carry no hashes.
	ChainUnhashed ChainState = "Unhashed"
	// ChainValid: every entry checked fits. Unless Anchored, removed newest
	// entries would not show.
	ChainValid ChainState = "Valid"
)

// State judges a chain on its own.
func (c ChainVerdict) State() ChainState { return c.Judge(nil) }

// Judge judges a chain, given the number of attestations on the trail when it
// is known (ChangeVerdict.Attestations.Total, read at the same time).
func (c ChainVerdict) Judge(total *int) ChainState {
	anchor := c.ExternalAnchor
	if anchor != nil && !anchor.Anchored && anchor.Error == "" {
		anchor = nil
	}
	switch {
	case !c.Valid || c.BrokenAt >= 0:
		return ChainBroken
	case total != nil && c.Count > 0 && c.Count < *total:
		return ChainCountMismatch
	case anchor != nil && anchor.Error != "":
		return ChainAnchorUnverified
	case anchor != nil && !anchor.HeadMatches:
		return ChainAnchorBehind
	case c.Count == 0:
		return ChainUnhashed
	default:
		return ChainValid
	}
}

// Anchored reports whether an outside authority vouches for the head as it is.
func (c ChainVerdict) Anchored() bool {
	a := c.ExternalAnchor
	return c.State() == ChainValid && a != nil && a.Anchored && a.HeadMatches
}
