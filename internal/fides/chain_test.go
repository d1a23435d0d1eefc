package fides

import "testing"

func TestJudge(t *testing.T) {
	n := func(i int) *int { return &i }
	ok := func(count int) ChainVerdict { return ChainVerdict{Valid: true, Count: count, BrokenAt: -1} }
	anchored := func(count int, a ExternalAnchor) ChainVerdict {
		v := ok(count)
		v.ExternalAnchor = &a
		return v
	}
	good := ExternalAnchor{Anchored: true, HeadMatches: true}
	behind := ExternalAnchor{Anchored: true}
	failed := ExternalAnchor{Anchored: true, HeadMatches: true, Error: "bad token"}
	for _, c := range []struct {
		name     string
		chain    ChainVerdict
		total    *int
		want     ChainState
		anchored bool
	}{
		{"valid", ok(3), nil, ChainValid, false},
		{"valid, all attested are chained", ok(3), n(3), ChainValid, false},
		{"more chained than attested: read before an append", ok(4), n(3), ChainValid, false},
		{"fewer chained than attested", ok(2), n(3), ChainCountMismatch, false},
		{"broken", ChainVerdict{Count: 3, BrokenAt: 1}, n(3), ChainBroken, false},
		{"says valid and broken", ChainVerdict{Valid: true, Count: 3, BrokenAt: 1}, nil, ChainBroken, false},
		{"empty or unhashed", ok(0), nil, ChainUnhashed, false},
		{"unhashed", ok(0), n(3), ChainUnhashed, false},
		{"anchored", anchored(3, good), n(3), ChainValid, true},
		{"behind", anchored(3, behind), n(3), ChainAnchorBehind, false},
		{"behind, and nothing left", anchored(0, behind), n(0), ChainAnchorBehind, false},
		{"behind and fewer", anchored(2, behind), n(3), ChainCountMismatch, false},
		{"broken outranks the anchor", ChainVerdict{BrokenAt: 0, ExternalAnchor: &good}, nil, ChainBroken, false},
		{"not verified", anchored(3, failed), nil, ChainAnchorUnverified, false},
		{"not anchored", anchored(3, ExternalAnchor{}), nil, ChainValid, false},
	} {
		if got := c.chain.Judge(c.total); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if got := c.chain.Anchored(); got != c.anchored {
			t.Errorf("%s: anchored %v", c.name, got)
		}
	}
}
