package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

const (
	// maxAttestations bounds the list in an answer; the rest is counted.
	maxAttestations = 10
	// askTimeout bounds everything that is asked of one evidence server: a
	// server that hangs must not cost more than that.
	askTimeout = 25 * time.Second
	// fullPage is how many entries the evidence server's searches give at most.
	fullPage = 100
)

// asker asks one evidence server about images of one environment.
type asker struct {
	client      *fides.Client
	server      string
	environment string
	token       string
	trails      *trails
}

func (o *Ops) dial(s source, token string, shared *trails) (*asker, error) {
	c, err := o.DialFides(fides.Config{BaseURL: s.server, Token: token})
	if err != nil {
		return nil, err
	}
	return &asker{client: c, server: s.server, environment: s.environment, token: token, trails: shared}, nil
}

// trails remembers, within one answer, what the trails said: images and
// environments share trails, and reading the change gate can append to one, so
// asking twice at once would give each another state of it.
type trails struct {
	mu    sync.Mutex
	known map[string]*trail
}

// trail is what one trail said. An error stands beside what it left empty.
type trail struct {
	once         sync.Once
	attestations []fides.AttestationHit
	change       *ChangeRecord
	approvals    []fides.Approval
	chain        fides.ChainVerdict
	verdict      *fides.ChangeVerdict // text cleaned; shared, never written to
	err          struct{ attestations, change, approvals, chain, verdict error }
}

// trail asks a trail everything, once. The change gate comes last, and only
// when it may be asked: reading it can append to the trail.
func (k *asker) trail(ctx context.Context, id string, consult bool) *trail {
	k.trails.mu.Lock()
	if k.trails.known == nil {
		k.trails.known = map[string]*trail{}
	}
	t := k.trails.known[k.server+" "+id]
	if t == nil {
		t = &trail{}
		k.trails.known[k.server+" "+id] = t
	}
	k.trails.mu.Unlock()
	t.once.Do(func() {
		t.attestations, t.err.attestations = k.client.SearchAttestations(ctx, fides.AttestationFilter{Trail: id})
		t.change, t.err.change = k.change(ctx, t.attestations)
		t.approvals, t.err.approvals = k.client.Approvals(ctx, id)
		t.chain, t.err.chain = k.client.VerifyChain(ctx, id)
		if consult {
			var vd fides.ChangeVerdict
			if vd, t.err.verdict = k.client.ChangeGate(ctx, id); t.err.verdict == nil {
				t.verdict = cleaned(vd)
			}
		}
	})
	return t
}

// say is an error as text that may be shown.
func (k *asker) say(err error) string { return mask(err.Error(), k.token) }

// artifact asks everything about one image. Only when it is on a trail is there
// more to ask; what a single question leaves open is a concern, and the rest
// stands.
func (k *asker) artifact(ctx context.Context, img image, consult bool) ArtifactEvidence {
	if img.hex == "" {
		return img.evidence(ArtifactNoDigest, "")
	}
	found, err := k.client.ArtifactByDigest(ctx, img.digest)
	switch {
	case err != nil:
		return img.evidence(ArtifactUnavailable, k.say(err))
	case found.State == fides.NotRegistered:
		out := img.evidence(ArtifactNotRegistered, "the evidence server has no record of this digest")
		out.Checks = []EvidenceCheck{k.allowlist(ctx, img)}
		return out
	case found.State != fides.OnTrail:
		out := img.evidence(ArtifactNoTrail, "the evidence server knows this digest, but it is on no trail")
		out.Checks = []EvidenceCheck{k.assert(ctx, img), k.allowlist(ctx, img)}
		return out
	}
	out := img.evidence(ArtifactOnTrail, "")
	out.Trail = found.TrailID
	open := func(what string, err error) {
		out.Concerns = append(out.Concerns, Concern{ConcernUnanswered, what + ": " + k.say(err)})
	}
	out.Checks = []EvidenceCheck{k.assert(ctx, img), k.allowlist(ctx, img), k.policy(ctx, img, out.Trail)}
	t := k.trail(ctx, out.Trail, consult)
	for _, x := range []struct {
		what string
		err  error
	}{{"attestations", t.err.attestations}, {"change record", t.err.change}, {"approvals", t.err.approvals}, {"hash chain", t.err.chain}, {"change gate", t.err.verdict}} {
		if x.err != nil {
			open(x.what, x.err)
		}
	}
	listed := t.err.attestations == nil
	out.attested(t.attestations, listed)
	out.Change = t.change
	for _, a := range t.approvals {
		out.Approvals = append(out.Approvals, TrailApproval{By: clean(a.ApprovedBy, 120), Kind: clean(a.Kind, 40), Role: clean(a.Role, 40), At: metav1.NewTime(a.CreatedAt)})
	}
	out.Chain = chainOf(t.chain, t.err.chain, t.attestations, listed)
	switch {
	case !consult:
	case t.err.verdict != nil:
		out.Detail = "the change gate could not be asked: " + k.say(t.err.verdict)
	default:
		out.Verdict = t.verdict
	}
	out.judge(consult, t.approvals)
	return out
}

// attested fills in the attestations, the newest first.
func (a *ArtifactEvidence) attested(list []fides.AttestationHit, known bool) {
	if known && len(list) == 0 {
		a.Status = ArtifactTrailEmpty
	}
	var bad []string
	a.Types = map[string]bool{}
	for _, t := range list {
		ok, seen := a.Types[clean(t.TypeName, 80)]
		a.Types[clean(t.TypeName, 80)] = t.IsCompliant && (ok || !seen)
		if len(a.Attestations) < maxAttestations {
			a.Attestations = append(a.Attestations, Attestation{Type: clean(t.TypeName, 80), Name: clean(t.Name, 80), Compliant: t.IsCompliant, At: metav1.NewTime(t.CreatedAt)})
		} else {
			a.MoreAttestations++
		}
		if !t.IsCompliant && !slices.Contains(bad, t.TypeName) {
			bad = append(bad, t.TypeName)
		}
	}
	if len(bad) > 0 {
		slices.Sort(bad)
		a.Concerns = append(a.Concerns, Concern{ConcernAttested, "not compliant: " + clean(strings.Join(bad, ", "), 300)})
	}
}

// change reads the newest ITSM check, nil when there is none.
func (k *asker) change(ctx context.Context, list []fides.AttestationHit) (*ChangeRecord, error) {
	i := slices.IndexFunc(list, func(t fides.AttestationHit) bool { return t.TypeName == fides.TypeChange })
	if i < 0 {
		return nil, nil
	}
	full, err := k.client.Attestation(ctx, list[i].ID)
	if err != nil {
		return nil, err
	}
	r, ok := full.Change()
	if !ok {
		return nil, fmt.Errorf("the payload of attestation %s is not an ITSM check", full.ID)
	}
	return &ChangeRecord{Found: r.Found, Number: clean(r.Number, 60), State: clean(r.State, 60),
		Approval: clean(r.Approval, 60), Risk: clean(r.Risk, 60), OnHold: r.OnHold}, nil
}

// assert, allowlist and policy ask what the checks of those names ask.
func (k *asker) assert(ctx context.Context, img image) EvidenceCheck {
	out := EvidenceCheck{Check: CheckAssert, Digest: img.digest}
	c, err := k.client.Compliance(ctx, img.digest)
	switch {
	case err != nil:
		out.Result, out.Detail = CheckUnknown, k.say(err)
	case c.Compliant:
		out.Result = CheckPass
	default:
		out.Result, out.Detail = CheckFail, clean(strings.Join(c.Violations, "; "), 300)
	}
	return out
}

func (k *asker) allowlist(ctx context.Context, img image) EvidenceCheck {
	out := EvidenceCheck{Check: CheckAllowlist, Digest: img.digest}
	a, err := k.client.AllowlistCheck(ctx, k.environment, img.digest)
	switch {
	case err != nil:
		out.Result, out.Detail = CheckUnknown, k.say(err)
	case a.Approved:
		out.Result = CheckPass
	default:
		out.Result, out.Detail = CheckFail, "not on the environment's allowlist"
	}
	return out
}

func (k *asker) policy(ctx context.Context, img image, trail string) EvidenceCheck {
	out := EvidenceCheck{Check: CheckPolicy, Digest: img.digest}
	p, err := k.client.PolicyCheck(ctx, k.environment, trail)
	if err != nil {
		out.Result, out.Detail = CheckUnknown, k.say(err)
		return out
	}
	out.Result = CheckPass
	if !p.Compliant {
		out.Result = CheckFail
		var say []string
		for _, r := range p.Results {
			if r.Applies && len(r.Missing) > 0 {
				say = append(say, r.Policy+" (missing "+strings.Join(r.Missing, ", ")+")")
			}
		}
		out.Detail = clean(strings.Join(say, "; "), 300)
	}
	return out
}

// chainOf says how far the chain vouches. "valid" alone is not enough: removed
// newest entries leave a valid, shorter chain. Where it was anchored and its
// head is another one now, entries newer than the anchor explain that; without
// any, the tail was removed.
func chainOf(c fides.ChainVerdict, err error, attestations []fides.AttestationHit, listed bool) *HashChain {
	if err != nil {
		return &HashChain{Status: HashUnknown, Detail: "the chain could not be checked"}
	}
	out := &HashChain{Count: c.Count}
	var total *int
	if listed && len(attestations) < fullPage {
		total = ptr(len(attestations))
	}
	switch c.Judge(total) {
	case fides.ChainBroken:
		out.Status, out.Detail = HashBroken, clean(fmt.Sprintf("entry %d: %s", c.BrokenAt, c.Reason), 200)
	case fides.ChainCountMismatch:
		out.Status, out.Detail = HashPartial, fmt.Sprintf("%d of %d entries are chained", c.Count, *total)
		// Fewer entries than listed may stand behind an anchor as well.
		if a := c.ExternalAnchor; a != nil && !a.HeadMatches && a.Error == "" && !newerThan(attestations, a.AnchoredAt) {
			out.Status = HashTruncated
		}
	case fides.ChainAnchorUnverified:
		out.Status, out.Detail = HashAnchorUnverified, clean(c.ExternalAnchor.Error, 200)
	case fides.ChainAnchorBehind:
		switch {
		case !listed || len(attestations) == fullPage:
			out.Status = HashAnchorBehind
		case newerThan(attestations, c.ExternalAnchor.AnchoredAt):
			out.Status = HashExtended
		default:
			out.Status, out.Detail = HashTruncated, "anchored at "+stamp(metav1.NewTime(c.ExternalAnchor.AnchoredAt))+", and that head is gone"
		}
	case fides.ChainUnhashed:
		out.Status = HashEmpty
	default:
		out.Status = HashUnanchored
		if c.Anchored() {
			out.Status = HashAnchored
		}
	}
	return out
}

func newerThan(list []fides.AttestationHit, t time.Time) bool {
	return slices.ContainsFunc(list, func(a fides.AttestationHit) bool { return a.CreatedAt.After(t) })
}

// judge concludes: a broken chain outranks an approval, an unchecked one does
// not let an approval stand.
func (a *ArtifactEvidence) judge(consult bool, approvals []fides.Approval) {
	vd := a.Verdict
	if vd != nil {
		a.Hold = holdsOf(vd)
	}
	a.Concerns = append(a.Concerns, a.concerns(approvals)...)
	order := Codes(ConcernKinds)
	slices.SortStableFunc(a.Concerns, func(x, y Concern) int { return slices.Index(order, x.Kind) - slices.Index(order, y.Kind) })
	switch {
	case a.Chain.Status == HashBroken || a.Chain.Status == HashTruncated:
		a.Conclusion, a.Detail = ConcludeBrokenChain, "the hash chain is not intact"
		if a.Chain.Detail != "" {
			a.Detail += ": " + a.Chain.Detail
		}
	case !consult:
		a.Conclusion = ConcludeNotAsked
	case vd == nil:
		a.Conclusion = ConcludeUnknown
	case len(a.Hold) > 0:
		a.Conclusion, a.Detail = ConcludeHold, a.Hold[0].Detail
	case a.Chain.Status == HashUnknown:
		a.Conclusion, a.Detail = ConcludeUnknown, "the change gate approves, but the hash chain could not be checked"
	default:
		a.Conclusion = ConcludeApprove
	}
}

// concerns are what a person should see whatever the verdict is.
func (a *ArtifactEvidence) concerns(approvals []fides.Approval) []Concern {
	var out []Concern
	add := func(kind ConcernKind, format string, args ...any) {
		out = append(out, Concern{kind, clean(fmt.Sprintf(format, args...), 300)})
	}
	var verdict []fides.Concern
	if a.Verdict != nil {
		verdict = a.Verdict.Concerns()
	}
	has := func(kinds ...fides.ConcernKind) bool {
		return slices.ContainsFunc(verdict, func(c fides.Concern) bool { return slices.Contains(kinds, c.Kind) })
	}
	switch {
	case fides.DeployerOnly(approvals):
		add(ConcernDeployer, "nobody but a deployer signed off: %s", strings.Join(signers(approvals, fides.KindSession), ", "))
	case len(approvals) == 0 && has(fides.DeployerSignOffOnly, fides.ApproverUnproven):
		add(ConcernDeployer, "nobody but a deployer may have signed off: %s", strings.Join(a.Verdict.Approvals.Deployers, ", "))
	}
	for _, c := range verdict {
		switch c.Kind {
		case fides.SoDViolation:
			add(ConcernSoD, "%s", strings.Join(c.Violations, "; "))
		case fides.Waived:
			add(ConcernWaiver, "control %s %s is waived by %s until %s: %s", c.Control.Control, c.Control.Name, c.Control.ApprovedBy,
				stamp(metav1.NewTime(c.Control.ExpiresAt)), c.Control.Reason)
		}
	}
	if a.Verdict != nil && a.Verdict.SegregationOfDuties == nil {
		add(ConcernUnanswered, "segregation of duties: the evidence server did not evaluate it")
	}
	if services := signers(approvals, fides.KindService); len(services) > 0 {
		add(ConcernService, "signed off by a service identity: %s", strings.Join(services, ", "))
	}
	switch a.Chain.Status {
	case HashExtended, HashAnchorBehind, HashPartial, HashAnchorUnverified:
		add(ConcernChain, "%s %s", a.Chain.Status, a.Chain.Detail)
	case HashEmpty:
		if a.Status != ArtifactTrailEmpty {
			add(ConcernChain, "no entry carries a hash")
		}
	}
	switch c := a.Change; {
	case c == nil:
	case !c.Found:
		add(ConcernChange, "the change record does not exist")
	case c.OnHold || c.Approval != changeApproved || !slices.Contains(changeReady, c.State):
		add(ConcernChange, "change %s: state %s, approval %s, on hold: %t", c.Number, c.State, c.Approval, c.OnHold)
	}
	return out
}

// A change record lets a change go out in these states (fides-recordings: the
// rule of the type servicenow-change).
const changeApproved = "approved"

var changeReady = []string{"scheduled", "implement"}

// signers are the identities of a kind that signed off.
func signers(approvals []fides.Approval, kind string) []string {
	var out []string
	for _, s := range approvals {
		if s.Kind == kind {
			out = append(out, s.ApprovedBy)
		}
	}
	return out
}
