package ops

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

const (
	// lag is how long a status may contradict the objects before that is worth
	// more than a warning: a Gate wakes by itself once a minute.
	lag = 2 * time.Minute
	// staleHealth is three of the controller's intervals.
	staleHealth = 3 * time.Minute
)

// view is one Gate with what belongs to it, sorted for the rules.
type view struct {
	e       *estate
	g       *v1alpha1.Gate
	key     key
	ready   *metav1.Condition // the Ready condition, nil when there is none
	current *v1alpha1.Bundle  // nil when there is none or it no longer exists
	// admitted are the Bundles of admitted Beacons, newest first; newer those
	// strictly newer than the current one, without it.
	admitted, newer, older []*v1alpha1.Bundle
	verdicts               map[string]gate.Verdict
	running                []*v1alpha1.Passage // non-terminal, newest first
	finished               []*v1alpha1.Passage // terminal, labelled, newest first
	window                 gate.WindowState
	verification           verification
}

// verification says whether the current Bundle is verified, without prose: a
// condition reason, the declared verifiers and what the Canary says.
type verification struct {
	pending bool
	failed  bool
	// wedged: a verifier that can never answer makes every reconcile fail.
	wedged  bool
	object  Object
	unknown string // name of a verifier that is not registered
	// bundle is what is being verified, since when.
	bundle string
	since  metav1.Time
	// lost: a later crossing ended since, and only the newest one is looked at,
	// so this Bundle will not clear by itself any more.
	lost bool
}

func (e *estate) view(g *v1alpha1.Gate) *view {
	v := &view{e: e, g: g, key: client.ObjectKeyFromObject(g), verdicts: map[string]gate.Verdict{}}
	v.ready = meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	if c := g.Status.Current; c != nil {
		v.current = e.byBundle[key{Namespace: g.Namespace, Name: c.Bundle}]
	}
	for _, b := range e.bundles[g.Namespace] {
		verdict := gate.Judge(g, b)
		if !verdict.Admitted {
			continue
		}
		v.verdicts[b.Name] = verdict
		v.admitted = append(v.admitted, b)
		switch {
		case verdict.Current:
		case v.current == nil || gate.StrictlyNewer(b, v.current):
			v.newer = append(v.newer, b)
		default:
			v.older = append(v.older, b)
		}
	}
	for _, p := range e.passages[v.key] {
		switch {
		case p.Active():
			v.running = append(v.running, p)
		case labelled(p):
			v.finished = append(v.finished, p)
		}
	}
	// The controller takes the newest by creation; among equals the one that
	// ended last is the better guess.
	slices.SortStableFunc(v.finished, func(a, b *v1alpha1.Passage) int {
		if c := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); c != 0 {
			return c
		}
		return b.Ended().Compare(a.Ended().Time)
	})
	v.window = gate.CheckWindows(g.Spec.Windows, e.now)
	v.verification = v.verify()
	return v
}

// front is the newest Bundle that is not yet in, nil at rest.
func (v *view) front() *v1alpha1.Bundle {
	if len(v.newer) == 0 {
		return nil
	}
	return v.newer[0]
}

// reason is the Ready condition's reason while the condition is about the
// Gate's present generation, else "".
func (v *view) reason() string {
	if v.ready == nil || v.ready.ObservedGeneration < v.g.Generation {
		return ""
	}
	return v.ready.Reason
}

func (v *view) invalidSteps() bool { return v.reason() == v1alpha1.GateReasonInvalidSteps }

func (v *view) noSteps() bool { return v.g.Spec.Passage == nil || len(v.g.Spec.Passage.Steps) == 0 }

// frozen says that the controller records nothing for this Gate, by design.
func (v *view) frozen() bool { return v.g.Spec.Suspend || v.invalidSteps() }

// cleared says whether the Bundle has cleared this Gate, and when last.
func (v *view) cleared(b *v1alpha1.Bundle) *metav1.Time {
	var at *metav1.Time
	for i := range b.Status.Cleared {
		if m := &b.Status.Cleared[i]; m.Gate == v.g.Name && (at == nil || at.Before(&m.At)) {
			at = &m.At
		}
	}
	return at
}

// verifierFlagger is the only registered verifier.
const verifierFlagger = "flagger"

func (v *view) verify() verification {
	var out verification
	if len(v.g.Spec.Verify) == 0 {
		return out
	}
	// Unverified: the current Bundle entered and has not cleared since, or a
	// success stands that the Gate never recorded.
	c := v.g.Status.Current
	unverified := c != nil && v.current != nil && func() bool {
		at := v.cleared(v.current)
		return at == nil || at.Before(&c.EnteredAt)
	}()
	unrecorded := !v.frozen() && len(v.finished) > 0 && v.finished[0].Phase() == v1alpha1.PassageSucceeded && !v.recorded(v.finished[0])
	switch {
	case unrecorded:
		out.bundle, out.since = v.finished[0].Spec.Bundle, v.finished[0].Ended()
	case c != nil && (unverified || v.reason() == v1alpha1.GateReasonVerifying):
		out.bundle, out.since = c.Bundle, c.EnteredAt
		out.lost = len(v.finished) > 0 && v.finished[0].Name != c.Passage && c.EnteredAt.Time.Before(v.finished[0].Ended().Time)
	default:
		return out
	}
	out.pending = true
	out.object = hecate(v1alpha1.KindGate, v.g.Namespace, v.g.Name)
	for _, check := range v.g.Spec.Verify {
		if check.Uses != verifierFlagger {
			out.wedged, out.unknown = true, check.Uses
			return out
		}
		canary := canaryOf(v.g, check)
		live, ok := v.e.live[canary]
		if !ok {
			continue
		}
		out.object = canary
		switch {
		case !live.found && (live.code == SourceNotFound || live.code == SourceNotInstalled):
			// Without the kind there is no Canary either.
			out.wedged = true
			return out
		case live.phase == "Failed":
			out.failed = true
			return out
		}
	}
	return out
}

// recorded says whether the Gate took note of how a finished Passage ended.
func (v *view) recorded(p *v1alpha1.Passage) bool {
	b := v.e.byBundle[key{Namespace: p.Namespace, Name: p.Spec.Bundle}]
	if p.Phase() == v1alpha1.PassageSucceeded {
		if c := v.g.Status.Current; c != nil && (c.Passage == p.Name || !c.EnteredAt.Before(ptr(p.Ended()))) {
			return true
		}
		for _, h := range v.g.Status.History {
			if h.Passage == p.Name {
				return true
			}
		}
		return b == nil && !v.e.unread(v1alpha1.KindBundle, v.g.Namespace) // nothing is ever recorded then
	}
	if b == nil {
		return true
	}
	for _, m := range b.Status.Blocked {
		if m.Gate == v.g.Name && m.Passage == p.Name {
			return true
		}
	}
	// blocked holds ten; an older attempt may have been pushed out.
	return len(b.Status.Blocked) >= maxBlocked && p.Ended().Time.Before(b.Status.Blocked[len(b.Status.Blocked)-1].At.Time)
}

// maxBlocked is how many entries a Bundle's blocked list keeps.
const maxBlocked = 10

func ptr[T any](v T) *T { return &v }

// attempt is how a crossing ended.
type attempt struct {
	bundle  string
	passage string
	at      metav1.Time
	aborted bool
	reason  string            // message recorded
	object  *v1alpha1.Passage // nil when the Passage is gone
}

// lastFailure is the failed or aborted crossing that still counts: the last
// attempt at this Gate, or (automatic Gates never retry) the last one of the
// newest Bundle that is not in. nil when the last crossing succeeded.
func (v *view) lastFailure() *attempt {
	var last *attempt
	take := func(a attempt) {
		if last == nil || last.at.Before(&a.at) || (last.at.Equal(&a.at) && last.object == nil) {
			last = &a
		}
	}
	// An unlabelled Passage is not the Gate's: the controller does not see it.
	for _, p := range v.finished {
		if ph := p.Phase(); ph == v1alpha1.PassageFailed || ph == v1alpha1.PassageAborted {
			take(attempt{bundle: p.Spec.Bundle, passage: p.Name, at: p.Ended(), aborted: ph == v1alpha1.PassageAborted,
				reason: p.Status.Message, object: p})
		}
	}
	for _, b := range v.admitted {
		for _, a := range v.blocked(b) {
			take(a)
		}
	}
	if last == nil || v.succeededSince(last) {
		f := v.front()
		if !v.g.Spec.Auto || f == nil {
			return nil
		}
		last = v.failureOf(f)
	}
	if last == nil {
		return nil
	}
	// A crossing that started since is the retry.
	for _, p := range v.running {
		if !p.CreationTimestamp.Before(&last.at) {
			return nil
		}
	}
	return last
}

// failureOf is the last failed or aborted crossing of one Bundle here.
func (v *view) failureOf(b *v1alpha1.Bundle) *attempt {
	var last *attempt
	for _, a := range v.blocked(b) {
		if last == nil || last.at.Before(&a.at) {
			last = &a
		}
	}
	for _, p := range v.finished {
		if p.Spec.Bundle != b.Name || p.Phase() == v1alpha1.PassageSucceeded {
			continue
		}
		if at := p.Ended(); last == nil || last.at.Before(&at) || last.passage == p.Name {
			last = &attempt{bundle: b.Name, passage: p.Name, at: at, aborted: p.Phase() == v1alpha1.PassageAborted,
				reason: p.Status.Message, object: p}
		}
	}
	if last != nil && v.crossedSince(b, last.at) {
		return nil
	}
	return last
}

// crossedSince says whether the Bundle went through this Gate at or after a
// moment: by its mark, by what the Gate holds, or by a Passage.
func (v *view) crossedSince(b *v1alpha1.Bundle, t metav1.Time) bool {
	if at := v.cleared(b); at != nil && !at.Before(&t) {
		return true
	}
	if c := v.g.Status.Current; c != nil && c.Bundle == b.Name && !c.EnteredAt.Before(&t) {
		return true
	}
	return slices.ContainsFunc(v.finished, func(p *v1alpha1.Passage) bool {
		at := p.Ended()
		return p.Spec.Bundle == b.Name && p.Phase() == v1alpha1.PassageSucceeded && !at.Before(&t)
	})
}

// messageAborted is what the controller writes as the message of an aborted
// Passage, and so as the reason of the blocked entry that outlives it: a value
// of the wire format (hecate-facts, section 3), compared for equality.
const messageAborted = "aborted"

func (v *view) blocked(b *v1alpha1.Bundle) []attempt {
	var out []attempt
	for _, m := range b.Status.Blocked {
		if m.Gate != v.g.Name {
			continue
		}
		a := attempt{bundle: b.Name, passage: m.Passage, at: m.At, reason: m.Reason, aborted: m.Reason == messageAborted}
		for _, p := range v.e.passages[v.key] {
			if p.Name == m.Passage {
				a.object, a.aborted, a.at = p, p.Phase() == v1alpha1.PassageAborted, p.Ended()
			}
		}
		out = append(out, a)
	}
	return out
}

// succeededSince says whether a crossing of this Gate ended well after the
// attempt: by the Gate's entry, a Bundle's mark or a Passage.
func (v *view) succeededSince(a *attempt) bool {
	after := func(t metav1.Time, bundle string) bool {
		return a.at.Before(&t) || (a.at.Equal(&t) && bundle == a.bundle)
	}
	if c := v.g.Status.Current; c != nil && after(c.EnteredAt, c.Bundle) {
		return true
	}
	for _, p := range v.finished {
		if p.Phase() == v1alpha1.PassageSucceeded && after(p.Ended(), p.Spec.Bundle) {
			return true
		}
	}
	for _, b := range v.admitted {
		if at := v.cleared(b); at != nil && after(*at, b.Name) {
			return true
		}
	}
	return false
}
