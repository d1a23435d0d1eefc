package ops

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// AuditQuery narrows the audit. Empty fields mean any; Gate, Bundle and Actor
// are compared for equality.
type AuditQuery struct {
	Namespace           string // AllNamespaces for all
	Gate, Bundle, Actor string
	Kind                AuditKind
	Since               *time.Time // not before
	Until               *time.Time // before
	Limit               int        // 1 to MaxLimit, 0 means DefaultLimit
	Cursor              string     // NextCursor of a page of the same query
}

// AuditPage is a part of the audit, newest first.
type AuditPage struct {
	Entries       []AuditEntry   `json:"entries" jsonschema_description:"what happened, newest first"`
	Total         int            `json:"total" jsonschema_description:"how many entries the query has"`
	Truncated     bool           `json:"truncated" jsonschema_description:"true: nextCursor continues"`
	NextCursor    string         `json:"nextCursor,omitempty" jsonschema_description:"pass as cursor for the next page"`
	CompleteSince []Completeness `json:"completeSince" jsonschema_description:"records that retention has shortened; a record that is not named shows no sign of it"`
	Incomplete    []Incomplete   `json:"incomplete,omitempty" jsonschema_description:"what could not be read"`
}

// Completeness is one record that retention may have shortened. Where several
// Gates are concerned it speaks of the one whose record begins last.
type Completeness struct {
	Source string       `json:"source" jsonschema_description:"record: history, passage, blocked or bundle"`
	Gate   string       `json:"gate,omitempty" jsonschema_description:"Gate whose record begins last"`
	Since  *metav1.Time `json:"since,omitempty" jsonschema_description:"complete since, RFC 3339 UTC"`
	Why    string       `json:"why" jsonschema_description:"what was dropped"`
}

// Audit answers what happened and who caused it: one LIST each of Gates,
// Bundles and Passages. What cannot be read is Incomplete; when nothing can be
// read, that is the error. A Gate or Bundle of the query that neither exists
// nor is recorded anywhere is a NotFoundError, a cursor of another query a
// CursorError.
func (o *Ops) Audit(ctx context.Context, q AuditQuery) (*AuditPage, error) {
	r, err := o.readRecords(ctx, q.Namespace)
	if err != nil {
		return nil, err
	}
	all := auditEntries(r.gates, r.bundles, r.passages)
	if err := r.checkNames(q, all); err != nil {
		return nil, err
	}
	page, err := Paginate(slices.DeleteFunc(all, func(e AuditEntry) bool { return !q.wants(e) }), auditKey, min(q.Limit, MaxLimit), q.Cursor,
		"audit", q.Namespace, q.Gate, q.Bundle, q.Actor, string(q.Kind), bound(q.Since), bound(q.Until))
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		page.Items[i].clean()
	}
	return &AuditPage{Entries: page.Items, Total: page.Total, Truncated: page.Truncated, NextCursor: page.NextCursor,
		CompleteSince: r.completeness(q), Incomplete: r.incomplete}, nil
}

func (q AuditQuery) wants(e AuditEntry) bool {
	return (q.Gate == "" || e.Gate == q.Gate) && (q.Bundle == "" || e.Bundle == q.Bundle) && (q.Actor == "" || e.Actor == q.Actor) &&
		(q.Kind == "" || e.Kind == q.Kind) && (q.Since == nil || !e.At.Time.Before(*q.Since)) && (q.Until == nil || e.At.Time.Before(*q.Until))
}

// bound writes a limit of time for the cursor's query: the same moment in
// another zone is the same query.
func bound(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// clean makes everything that somebody else wrote safe to show. It is done to
// the page and not to all entries, since masking is what costs most.
func (e *AuditEntry) clean() {
	for s, max := range map[*string]int{&e.Gate: 253, &e.Bundle: 253, &e.Passage: 253, &e.Enabled: 253, &e.Digest: 128,
		&e.Actor: 100, &e.ApprovedBy: 100, &e.Reason: 100, &e.Step: 120, &e.Detail: 300} {
		*s = clean(*s, max)
	}
	e.Evidence = trimEvidence(e.Evidence)
	if ev := e.Evidence; ev != nil {
		ev.Trail, ev.Verdict, ev.URL = clean(ev.Trail, 100), clean(ev.Verdict, 100), clean(ev.URL, 300)
	}
}

// records is what the audit is made of.
type records struct {
	gates      []v1alpha1.Gate
	bundles    []v1alpha1.Bundle
	passages   []v1alpha1.Passage
	unread     map[string]bool   // kinds: nothing follows from their absence
	only       map[string]string // kinds that were read in this namespace only
	incomplete []Incomplete
}

// readRecords reads the three kinds in parallel. A user who may not list over
// all namespaces gets the default one, and is told.
func (o *Ops) readRecords(ctx context.Context, namespace string) (*records, error) {
	r := &records{unread: map[string]bool{}, only: map[string]string{}}
	sources := []struct {
		kind string
		read func(ns string) error
	}{
		{v1alpha1.KindGate, func(ns string) (err error) { r.gates, err = o.listGates(ctx, ns); return err }},
		{v1alpha1.KindBundle, func(ns string) (err error) { r.bundles, err = o.listBundles(ctx, ns); return err }},
		{v1alpha1.KindPassage, func(ns string) (err error) { r.passages, err = o.listPassages(ctx, ns, nil); return err }},
	}
	var mu sync.Mutex
	var eg errgroup.Group
	errs := make([]error, len(sources))
	for i, s := range sources {
		eg.Go(func() error {
			narrowed, err := o.inDefault(s.kind, namespace, s.read)
			mu.Lock()
			defer mu.Unlock()
			r.incomplete = append(r.incomplete, narrowed...)
			if len(narrowed) > 0 {
				r.only[s.kind] = o.DefaultNamespace
			}
			if err != nil {
				errs[i], r.unread[s.kind] = err, true
				r.incomplete = append(r.incomplete, incomplete(err, hecate(s.kind, namespace, "")))
			}
			return nil // told in the answer, unless nothing is left to answer from
		})
	}
	if err := eg.Wait(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(r.unread) == len(sources) {
		return nil, errs[0]
	}
	slices.SortFunc(r.incomplete, func(a, b Incomplete) int { return cmp.Compare(a.Object.Kind, b.Object.Kind) })
	return r, nil
}

// hidden says that objects of a kind may exist in a namespace unread.
func (r *records) hidden(kind, namespace string) bool {
	only, narrowed := r.only[kind]
	return r.unread[kind] || narrowed && only != namespace
}

// checkNames refuses a query for a Gate or a Bundle that nothing speaks of: an
// empty answer to a mistyped name would read as "nothing happened". Where the
// kind could not be read, nothing is refused.
func (r *records) checkNames(q AuditQuery, all []AuditEntry) error {
	var gates, bundles []string
	for i := range r.gates {
		gates = append(gates, r.gates[i].Name)
	}
	for i := range r.bundles {
		bundles = append(bundles, r.bundles[i].Name)
	}
	for _, e := range all {
		gates, bundles = append(gates, e.Gate), append(bundles, e.Bundle)
	}
	for _, c := range []struct {
		kind, name string
		known      []string
	}{{v1alpha1.KindGate, q.Gate, gates}, {v1alpha1.KindBundle, q.Bundle, bundles}} {
		if c.name != "" && !r.hidden(c.kind, q.Namespace) && !slices.Contains(c.known, c.name) {
			return &NotFoundError{Object: hecate(c.kind, q.Namespace, c.name), Candidates: nearest(c.name, c.known, MaxNames)}
		}
	}
	return nil
}

// shortened is the record of one source that begins last, and how many do not
// go back to the beginning.
type shortened struct {
	since metav1.Time
	gate  string
	why   string
	count int
}

// add counts a record that was cut, and keeps it if it begins last.
func (s *shortened) add(since metav1.Time, gate, why string) {
	if s.count == 0 || s.since.Before(&since) {
		s.since, s.gate, s.why = since, gate, why
	}
	s.count++
}

// completeness says what retention may have dropped of what the query is about,
// one line a record. A record without a sign of it is not named.
func (r *records) completeness(q AuditQuery) []Completeness {
	gates := slices.DeleteFunc(slices.Clone(r.gates), func(g v1alpha1.Gate) bool { return q.Gate != "" && g.Name != q.Gate })
	bundles := slices.DeleteFunc(slices.Clone(r.bundles), func(b v1alpha1.Bundle) bool { return q.Bundle != "" && b.Name != q.Bundle })
	out := []Completeness{}
	for _, c := range []struct {
		source, others string
		cut            shortened
	}{
		{recordHistory, "Gate", shortHistory(gates)},
		{recordPassage, "Gate", r.shortPassages(gates, q)},
		{recordBlocked, "Bundle", shortBlocked(bundles)},
		{recordBundle, "Bundle", r.goneBundles(gates, q)},
	} {
		if c.cut.count == 0 {
			continue
		}
		why := clean(c.cut.why, 200)
		if c.cut.count > 1 {
			why = fmt.Sprintf("%s; %s concerned", why, plural(c.cut.count, c.others))
		}
		out = append(out, Completeness{Source: c.source, Gate: clean(c.cut.gate, 253), Since: &c.cut.since, Why: why})
	}
	return out
}

func shortHistory(gates []v1alpha1.Gate) (cut shortened) {
	for i := range gates {
		if h := gates[i].Status.History; len(h) >= maxHistory {
			cut.add(h[len(h)-1].EnteredAt, gates[i].Name, fmt.Sprintf("a Gate's history keeps its newest %d crossings", maxHistory))
		}
	}
	return cut
}

func shortBlocked(bundles []v1alpha1.Bundle) (cut shortened) {
	for i := range bundles {
		if m := bundles[i].Status.Blocked; len(m) >= maxBlocked {
			cut.add(m[len(m)-1].At, "", fmt.Sprintf("Bundle %s holds its newest %d failed crossings, the most that a Bundle keeps", bundles[i].Name, maxBlocked))
		}
	}
	return cut
}

// defaultRetain is how many finished Passages a Gate keeps that does not say.
const defaultRetain = 20

// shortPassages finds the Gates that keep as many finished Passages as they
// may, and those whose records name a Passage that is gone: the attempt is
// known, but not its steps and evidence.
func (r *records) shortPassages(gates []v1alpha1.Gate, q AuditQuery) (cut shortened) {
	if r.unread[v1alpha1.KindPassage] {
		return cut
	}
	begins := map[key]shortened{}
	mark := func(k key, since metav1.Time, why string) {
		s := begins[k]
		s.add(since, k.Name, why)
		begins[k] = s
	}
	there := make(map[key]bool, len(r.passages))
	finished := map[key][]*v1alpha1.Passage{}
	for i := range r.passages {
		p := &r.passages[i]
		there[key{Namespace: p.Namespace, Name: p.Name}] = true
		if labelled(p) && p.Phase().Terminal() {
			k := key{Namespace: p.Namespace, Name: gateOf(p)}
			finished[k] = append(finished[k], p)
		}
	}
	named := func(gate key, bundle, passage string, at metav1.Time) {
		if passage != "" && !r.hidden(v1alpha1.KindPassage, gate.Namespace) && !there[key{Namespace: gate.Namespace, Name: passage}] && (q.Gate == "" || q.Gate == gate.Name) && (q.Bundle == "" || q.Bundle == bundle) {
			mark(gate, at, fmt.Sprintf("Passage %s and with it its steps and evidence are gone", passage))
		}
	}
	for i := range gates {
		g := &gates[i]
		k := key{Namespace: g.Namespace, Name: g.Name}
		protected := map[string]bool{}
		for _, h := range entered(g) {
			protected[h.Passage] = true
			named(k, h.Bundle, h.Passage, h.EnteredAt)
		}
		unprotected := slices.DeleteFunc(finished[k], func(p *v1alpha1.Passage) bool { return protected[p.Name] })
		retain := defaultRetain
		if g.Spec.Retain != nil {
			retain = int(*g.Spec.Retain)
		}
		if retain == 0 || len(unprotected) < retain {
			continue
		}
		oldest := slices.MinFunc(unprotected, func(a, b *v1alpha1.Passage) int { return a.Ended().Compare(b.Ended().Time) })
		mark(k, oldest.Ended(), fmt.Sprintf("the Gate keeps its newest %d finished Passages besides those in its history", retain))
	}
	for i := range r.bundles {
		b := &r.bundles[i]
		for _, m := range slices.Concat(b.Status.Blocked, b.Status.Cleared) {
			named(key{Namespace: b.Namespace, Name: m.Gate}, b.Name, m.Passage, m.At)
		}
	}
	for _, s := range sorted(begins) {
		cut.add(s.since, s.gate, s.why)
	}
	return cut
}

// sorted gives the values by their keys, so that a tie has one winner.
func sorted(m map[key]shortened) []shortened {
	keys := make([]key, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) })
	out := make([]shortened, 0, len(m))
	for _, k := range keys {
		out = append(out, m[k])
	}
	return out
}

// goneBundles finds the Bundles that a Gate or a Passage names and a Beacon no
// longer keeps: their refusals, clearances and approvals went with them.
func (r *records) goneBundles(gates []v1alpha1.Gate, q AuditQuery) (cut shortened) {
	if r.unread[v1alpha1.KindBundle] {
		return cut
	}
	there := make(map[key]bool, len(r.bundles))
	for i := range r.bundles {
		there[key{Namespace: r.bundles[i].Namespace, Name: r.bundles[i].Name}] = true
	}
	last := map[key]shortened{} // by Bundle
	named := func(bundle key, gate string, at metav1.Time) {
		if there[bundle] || r.hidden(v1alpha1.KindBundle, bundle.Namespace) || (q.Gate != "" && q.Gate != gate) || (q.Bundle != "" && q.Bundle != bundle.Name) {
			return
		}
		s := last[bundle]
		s.add(at, gate, fmt.Sprintf("Bundle %s is gone, and with it its refusals, clearances and approvals", bundle.Name))
		last[bundle] = s
	}
	for i := range gates {
		for _, h := range entered(&gates[i]) {
			named(key{Namespace: gates[i].Namespace, Name: h.Bundle}, gates[i].Name, h.EnteredAt)
		}
	}
	for i := range r.passages {
		p := &r.passages[i]
		named(key{Namespace: p.Namespace, Name: p.Spec.Bundle}, gateOf(p), p.Ended())
	}
	for _, s := range sorted(last) {
		cut.add(s.since, s.gate, s.why)
	}
	return cut
}
