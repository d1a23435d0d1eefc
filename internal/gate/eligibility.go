package gate

import (
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Code says why a Bundle may not enter a Gate. Values double as blocker kinds.
type Code string

// Codes, in the order in which upstream checks them; Eligible is what is left.
const (
	Eligible           Code = "Eligible"
	NotAdmitted        Code = "NotAdmitted"
	AlreadyCurrent     Code = "AlreadyCurrent"
	UpstreamNotCleared Code = "UpstreamNotCleared"
	AwaitingApproval   Code = "AwaitingApproval"
)

// Verdict holds all obstacles between one Bundle and one Gate at once.
// Windows, suspension, steps, health and a running Passage are not part of it.
type Verdict struct {
	// Admitted is whether the Gate takes Bundles of this Beacon at all.
	Admitted bool
	// Current is whether the Bundle is in the Gate already.
	Current bool
	// Admission is the entry of spec.admits that matched, nil when none did.
	Admission *v1alpha1.Admission
	// Missing names the Gates of Admission.After that the Bundle has not
	// cleared, in spec order and once each. Empty when Current.
	Missing []string
	// NeedsApproval is whether an approval is required and not given. False
	// when Current.
	NeedsApproval bool
	// Approval is the one given for this Gate, nil without one. It is set
	// whether or not the Gate requires it.
	Approval *v1alpha1.BundleApproval
}

// Judge applies the rules of entry (hecate-facts, section 4). A crossing that
// failed before does not count, and what a Bundle has cleared never expires.
func Judge(g *v1alpha1.Gate, b *v1alpha1.Bundle) Verdict {
	v := Verdict{Admission: Admission(g, b.Spec.Beacon)}
	v.Admitted = v.Admission != nil
	v.Current = g.Status.Current != nil && g.Status.Current.Bundle == b.Name
	for i := range b.Status.ApprovedFor {
		if b.Status.ApprovedFor[i].Gate == g.Name {
			v.Approval = &b.Status.ApprovedFor[i]
			break
		}
	}
	if !v.Admitted || v.Current {
		return v
	}
	for _, name := range v.Admission.After {
		cleared := slices.ContainsFunc(b.Status.Cleared, func(m v1alpha1.BundleMark) bool { return m.Gate == name })
		if !cleared && !slices.Contains(v.Missing, name) {
			v.Missing = append(v.Missing, name)
		}
	}
	v.NeedsApproval = v.Admission.RequireApproval && v.Approval == nil
	return v
}

// Admission is the first entry of the Gate that admits the Beacon, nil when
// none does. Later entries for the same Beacon never count.
func Admission(g *v1alpha1.Gate, beacon string) *v1alpha1.Admission {
	for i := range g.Spec.Admits {
		if g.Spec.Admits[i].From.Beacon == beacon {
			return &g.Spec.Admits[i]
		}
	}
	return nil
}

// Eligible reports whether nothing stands between the Bundle and the Gate.
func (v Verdict) Eligible() bool { return v.Code() == Eligible }

// Code is the first obstacle in upstream's order.
func (v Verdict) Code() Code {
	switch {
	case !v.Admitted:
		return NotAdmitted
	case v.Current:
		return AlreadyCurrent
	case len(v.Missing) > 0:
		return UpstreamNotCleared
	case v.NeedsApproval:
		return AwaitingApproval
	}
	return Eligible
}

// Codes lists every obstacle that somebody can remove, in the order in which
// they have to act. It is empty when the Bundle is eligible, when it is current
// and when the Gate does not admit it: there is nothing to wait for then.
func (v Verdict) Codes() []Code {
	if !v.Admitted || v.Current {
		return nil
	}
	var codes []Code
	if len(v.Missing) > 0 {
		codes = append(codes, UpstreamNotCleared)
	}
	if v.NeedsApproval {
		codes = append(codes, AwaitingApproval)
	}
	return codes
}

// Reason says Codes in words, to show and never to compare. It is empty when
// the Bundle is eligible.
func (v Verdict) Reason() string {
	switch {
	case !v.Admitted:
		return "no entry of spec.admits names its Beacon"
	case v.Current:
		return "already in this Gate"
	}
	var parts []string
	if len(v.Missing) > 0 {
		parts = append(parts, "has not cleared "+strings.Join(v.Missing, ", "))
	}
	if v.NeedsApproval {
		parts = append(parts, "awaiting approval")
	}
	return strings.Join(parts, "; ")
}
