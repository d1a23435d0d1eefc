package ops

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Where a fact is recorded: the values of AuditEntry.Sources, in their order,
// and of Completeness.Source, which has recordBundle besides.
const (
	recordHistory  = "history"
	recordPassage  = "passage"
	recordBlocked  = "blocked"
	recordCleared  = "cleared"
	recordApproval = "approval"
	recordBundle   = "bundle"
)

// maxHistory is how many entries a Gate's history keeps.
const maxHistory = 10

// fact is one entry in the making.
type fact struct {
	AuditEntry
	// began is when the attempt was opened: what an approval has to come before.
	began time.Time
}

// factKey tells facts apart. Every record names the Passage, whose outcome is
// final, so the two make one fact of several records. The Bundle is part of
// it because a Passage made by hand can have the name of one that is gone.
type factKey struct {
	namespace, gate, passage, bundle string
	outcome                          AuditKind
	at                               int64 // only where no Passage is named
}

// ledger collects the facts of all records.
type ledger struct {
	facts []*fact
	byKey map[factKey]*fact
}

// note finds or opens the fact that a record speaks of, and adds the record.
func (l *ledger) note(source string, e AuditEntry) *fact {
	k := factKey{namespace: e.Namespace, gate: e.Gate, passage: e.Passage, bundle: e.Bundle, outcome: e.Kind}
	if k.outcome == AuditAborted {
		k.outcome = AuditRefused // a mark says less surely than a Passage which of the two it was
	}
	if k.passage == "" {
		k.at = e.At.UnixNano()
	}
	f := l.byKey[k]
	if f == nil {
		f = &fact{AuditEntry: e, began: e.At.Time}
		l.facts = append(l.facts, f)
		l.byKey[k] = f
	}
	if !slices.Contains(f.Sources, source) {
		f.Sources = append(f.Sources, source)
	}
	f.Actor = cmp.Or(f.Actor, e.Actor)
	f.Digest = cmp.Or(f.Digest, e.Digest)
	if f.Verified == nil {
		f.Verified = e.Verified
	}
	return f
}

// auditEntries tells what happened, newest first, one entry a fact, from three
// records that outlive each other differently: a Gate's history, the Passages,
// and the cleared, blocked and approvedFor lists of the Bundles. A record that
// is missing takes its details with it, never the facts of the others.
// Texts are as the cluster has them: whoever shows an entry cleans it.
func auditEntries(gates []v1alpha1.Gate, bundles []v1alpha1.Bundle, passages []v1alpha1.Passage) []AuditEntry {
	l := &ledger{byKey: map[factKey]*fact{}}
	byGate := map[key]*v1alpha1.Gate{}
	for i := range gates {
		g := &gates[i]
		byGate[key{Namespace: g.Namespace, Name: g.Name}] = g
		l.history(g)
	}
	for i := range passages {
		l.passage(&passages[i])
	}
	for i := range bundles {
		l.marks(&bundles[i])
	}
	for i := range passages {
		l.unrecorded(&passages[i], byGate)
	}
	l.digests(bundles)
	l.approvals(bundles)

	out := make([]AuditEntry, len(l.facts))
	for i, f := range l.facts {
		out[i] = f.AuditEntry
	}
	slices.SortFunc(out, compareEntries)
	return out
}

// compareEntries orders newest first, then by namespace, gate, passage, kind
// and bundle; auditKey is the same order as text.
func compareEntries(a, b AuditEntry) int {
	return cmp.Or(cmp.Compare(b.At.UnixNano(), a.At.UnixNano()), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Gate, b.Gate),
		cmp.Compare(a.Passage, b.Passage), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Bundle, b.Bundle))
}

// auditKey joins with NUL, which sorts before every character of a name.
func auditKey(e AuditEntry) string {
	return newestFirst(e.At.Time, strings.Join([]string{e.Namespace, e.Gate, e.Passage, string(e.Kind), e.Bundle}, "\x00"))
}

func (l *ledger) history(g *v1alpha1.Gate) {
	for _, h := range entered(g) {
		l.note(recordHistory, AuditEntry{At: h.EnteredAt, Kind: AuditCrossed, Namespace: g.Namespace, Gate: g.Name, Bundle: h.Bundle,
			Digest: h.Digest, Actor: h.Actor, Passage: h.Passage, Verified: h.Verified})
	}
}

// entered is what a Gate says of its crossings, newest first: current, which
// is the first of history too unless somebody edited the status.
func entered(g *v1alpha1.Gate) []v1alpha1.GateEntry {
	if g.Status.Current == nil {
		return g.Status.History
	}
	return append([]v1alpha1.GateEntry{*g.Status.Current}, g.Status.History...)
}

// passage notes an attempt from its object, which knows most: when it ended
// (the other records say when the Gate took note), where it failed, and the
// evidence.
func (l *ledger) passage(p *v1alpha1.Passage) {
	e := AuditEntry{At: p.Ended(), Kind: AuditRunning, Namespace: p.Namespace, Gate: gateOf(p), Bundle: p.Spec.Bundle,
		Actor: p.Spec.Actor, Passage: p.Name}
	switch p.Phase() {
	case v1alpha1.PassageSucceeded:
		e.Kind = AuditCrossed
	case v1alpha1.PassageFailed:
		e.Kind = AuditRefused
	case v1alpha1.PassageAborted:
		e.Kind = AuditAborted
	default:
		e.At = p.CreationTimestamp
		if p.Status != nil && p.Status.StartedAt != nil {
			e.At = *p.Status.StartedAt
		}
	}
	f := l.note(recordPassage, e)
	f.At, f.Kind = e.At, e.Kind
	f.began = e.At.Time
	if !p.CreationTimestamp.IsZero() {
		f.began = p.CreationTimestamp.Time
	}
	if p.Status == nil {
		return
	}
	f.Evidence = p.Status.Evidence
	switch e.Kind {
	case AuditRefused:
		f.Detail = p.Status.Message
		if i, st := sinkingStep(p); st != nil {
			f.Step, f.Reason = stepName(i, st.Uses, st.As), st.Reason
		}
	case AuditAborted:
		f.Detail = detailAborted
	case AuditRunning:
		f.Detail = p.Status.Message
	}
}

// detailAborted keeps a reader from taking the actor for who aborted.
const detailAborted = "aborted; the actor asked for the crossing, who stopped it is not recorded"

// marks notes what a Bundle says of its crossings. It outlives the Passages.
func (l *ledger) marks(b *v1alpha1.Bundle) {
	entry := func(kind AuditKind, m v1alpha1.BundleMark) AuditEntry {
		return AuditEntry{At: m.At, Kind: kind, Namespace: b.Namespace, Gate: m.Gate, Bundle: b.Name, Actor: m.Actor, Passage: m.Passage}
	}
	for _, m := range b.Status.Blocked {
		e := entry(AuditRefused, m)
		e.Detail = m.Reason
		// The reason is the Passage's message, and that of an abort is exactly
		// this word: a value of the wire format (hecate-facts, section 3),
		// compared for equality, since a failure's own words may begin with it.
		if m.Reason == messageAborted {
			e.Kind, e.Detail = AuditAborted, detailAborted
		}
		l.note(recordBlocked, e)
	}
	for _, m := range b.Status.Cleared {
		l.note(recordCleared, entry(AuditCrossed, m))
	}
}

// unrecorded says of a Passage that crossed if its Gate does not know of it.
// Nothing is said where the Gate may have known: it is not among the ones that
// were read, or its history is full and begins later.
func (l *ledger) unrecorded(p *v1alpha1.Passage, gates map[key]*v1alpha1.Gate) {
	if p.Phase() != v1alpha1.PassageSucceeded {
		return
	}
	f := l.byKey[factKey{namespace: p.Namespace, gate: gateOf(p), passage: p.Name, bundle: p.Spec.Bundle, outcome: AuditCrossed}]
	g := gates[key{Namespace: p.Namespace, Name: gateOf(p)}]
	if f == nil || g == nil || !slices.Equal(f.Sources, []string{recordPassage}) {
		return
	}
	if h := g.Status.History; len(h) >= maxHistory && p.Ended().Time.Before(h[len(h)-1].EnteredAt.Time) {
		return
	}
	f.Detail = "the Passage succeeded, but the Gate has not recorded the crossing"
	if !labelled(p) {
		f.Detail = fmt.Sprintf("%s: the Passage lacks the label %s, so it never will", f.Detail, v1alpha1.LabelGate)
	}
}

// digests says which bits every entry is about, as far as the Bundle is there
// to tell: its name holds twelve digits only, which would not be the digest.
func (l *ledger) digests(bundles []v1alpha1.Bundle) {
	of := make(map[key]string, len(bundles))
	for i := range bundles {
		of[key{Namespace: bundles[i].Namespace, Name: bundles[i].Name}] = bundles[i].Spec.Digest
	}
	for _, f := range l.facts { // a Gate's history outlives the Bundle
		k := key{Namespace: f.Namespace, Name: f.Bundle}
		of[k] = cmp.Or(of[k], f.Digest)
	}
	for _, f := range l.facts {
		f.Digest = cmp.Or(f.Digest, of[key{Namespace: f.Namespace, Name: f.Bundle}])
	}
}

// approvals notes the approvals and links each with what it made possible. An
// approval never expires, so every later attempt stands on it; Enabled names
// the first that crossed, or else the first that was made.
func (l *ledger) approvals(bundles []v1alpha1.Bundle) {
	type entry struct{ namespace, gate, bundle string }
	attempts := map[entry][]*fact{}
	for _, f := range l.facts {
		k := entry{f.Namespace, f.Gate, f.Bundle}
		attempts[k] = append(attempts[k], f)
	}
	for i := range bundles {
		b := &bundles[i]
		for _, a := range b.Status.ApprovedFor {
			approval := l.note(recordApproval, AuditEntry{At: a.At, Kind: AuditApproved, Namespace: b.Namespace, Gate: a.Gate, Bundle: b.Name,
				Digest: b.Spec.Digest, Actor: a.Actor})
			enabled := enabledBy(a.At, attempts[entry{b.Namespace, a.Gate, b.Name}])
			for _, f := range enabled {
				f.ApprovedBy = a.Actor
			}
			if len(enabled) > 0 {
				approval.Enabled = enabled[0].Passage
			}
		}
	}
}

// enabledBy gives the attempts that began at the approval or later: the ones
// that crossed first, then in the order in which they began.
func enabledBy(approved metav1.Time, attempts []*fact) []*fact {
	out := slices.DeleteFunc(slices.Clone(attempts), func(f *fact) bool { return f.began.Before(approved.Time) })
	rank := map[AuditKind]int{AuditCrossed: -1}
	slices.SortFunc(out, func(a, b *fact) int {
		return cmp.Or(rank[a.Kind]-rank[b.Kind], a.began.Compare(b.began), compareEntries(b.AuditEntry, a.AuditEntry))
	})
	return out
}
