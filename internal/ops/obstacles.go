package ops

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// rank is a kind's place in BlockerKinds: the order in which somebody has to act.
var rank = func() map[BlockerKind]int {
	m := map[BlockerKind]int{}
	for i, k := range BlockerKinds {
		m[k.Code] = i
	}
	return m
}()

func sortBlockers(bs []Blocker) {
	slices.SortStableFunc(bs, func(a, b Blocker) int { return cmp.Compare(rank[a.Kind], rank[b.Kind]) })
}

func (v *view) object() Object { return hecate(v1alpha1.KindGate, v.g.Namespace, v.g.Name) }

func (v *view) passageObject(p *v1alpha1.Passage) Object {
	return hecate(v1alpha1.KindPassage, p.Namespace, p.Name)
}

// names bounds a list of Bundles and says how many it leaves out.
func names(bs []*v1alpha1.Bundle) (out []string, more int) {
	for _, b := range bs {
		if len(out) == MaxNames {
			return out, len(bs) - MaxNames
		}
		out = append(out, b.Name)
	}
	return out, 0
}

// gateObstacles are what stands in the way whatever the Bundle: the state of
// the Gate itself and of the crossing that runs.
func (v *view) gateObstacles() []Blocker {
	var out []Blocker
	self := v.object()
	add := func(b Blocker) {
		if b.Object == nil {
			b.Object = &self
		}
		out = append(out, b)
	}
	g := v.g
	if g.Spec.Suspend {
		add(Blocker{Kind: BlockerSuspended, Detail: "spec.suspend is true: the Gate opens no Passage and records no outcome",
			Fix: "resume the Gate", Since: v.since(v1alpha1.GateReasonSuspended),
			HumanSteps: []HumanStep{{patchCommand("gate", g.Namespace, g.Name, `{"spec":{"suspend":false}}`), "resumes the Gate"}}})
	}
	if v.invalidSteps() {
		add(Blocker{Kind: BlockerInvalidSteps, Detail: cleanCause(v.ready.Message, 400), Fix: "correct spec.passage.steps of the Gate", Since: v.since(v1alpha1.GateReasonInvalidSteps)})
	}
	if v.noSteps() {
		add(Blocker{Kind: BlockerNoPassage, Detail: "spec.passage has no steps", Fix: "give the Gate steps"})
	}
	if len(g.Name) > gate.MaxLabelLength {
		add(Blocker{Kind: BlockerNameTooLong, Detail: fmt.Sprintf("the name has %d characters; a label value has at most %d, so its Passages cannot carry %s", len(g.Name), gate.MaxLabelLength, v1alpha1.LabelGate),
			Fix: "recreate the Gate under a shorter name"})
	}
	// Every window is looked at: evaluation stops at an open deny window, and
	// what is malformed behind it never resolves by waiting.
	for i, w := range g.Spec.Windows {
		if err := gate.CheckWindow(w); err != nil {
			add(Blocker{Kind: BlockerInvalidWindow, Detail: clean(fmt.Sprintf("windows[%d] is invalid: %v", i, err), 300), Fix: fmt.Sprintf("correct spec.windows[%d]", i)})
			break
		}
	}
	out = append(out, v.missingNames()...)
	out = append(out, v.verificationObstacle()...)
	out = append(out, v.recordingObstacles()...)
	out = append(out, v.healthObstacle()...)
	out = append(out, v.runningObstacles()...)
	return out
}

// since is when the Ready condition last changed, if it says this reason. The
// time moves only when the status changes, so for reasons that share a status
// it is the earliest possible moment.
func (v *view) since(reason string) *metav1.Time {
	if v.ready == nil || v.ready.Reason != reason {
		return nil
	}
	return &v.ready.LastTransitionTime
}

// missingNames reports names in the status that no longer exist.
func (v *view) missingNames() []Blocker {
	var out []Blocker
	missing := func(kind, name, detail string) {
		obj := hecate(kind, v.g.Namespace, name)
		out = append(out, Blocker{Kind: BlockerNotFound, Detail: detail, Object: &obj})
	}
	st := &v.g.Status
	bundlesKnown := !v.e.unread(v1alpha1.KindBundle, v.g.Namespace)
	if c := st.Current; c != nil && v.current == nil && bundlesKnown {
		missing(v1alpha1.KindBundle, c.Bundle, "status.current names Bundle "+c.Bundle+", which no longer exists; what is newer than it cannot be told")
	}
	if bundlesKnown && !v.g.Spec.Suspend {
		for _, name := range st.Eligible {
			if v.e.byBundle[key{Namespace: v.g.Namespace, Name: name}] == nil {
				missing(v1alpha1.KindBundle, name, "status.eligible names Bundle "+name+", which no longer exists")
				break // one says it: the list is from before they went
			}
		}
	}
	if st.ActivePassage != "" && v.passagesKnown() && v.passage(st.ActivePassage) == nil {
		missing(v1alpha1.KindPassage, st.ActivePassage, "status.activePassage names Passage "+st.ActivePassage+", which no longer exists")
	}
	return out
}

// passagesKnown says whether this Gate's Passages were read.
func (v *view) passagesKnown() bool {
	return v.e.read[v.key] && !v.e.unread(v1alpha1.KindPassage, v.g.Namespace)
}

func (v *view) passage(name string) *v1alpha1.Passage {
	for _, p := range v.e.passages[v.key] {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (v *view) verificationObstacle() []Blocker {
	ver := v.verification
	if !ver.pending {
		return nil
	}
	b := Blocker{Object: &ver.object}
	bundle := ver.bundle
	b.Bundles, b.Since = []string{bundle}, &ver.since
	said := ""
	if v.reason() == v1alpha1.GateReasonVerifying {
		said = ": " + cleanCause(v.ready.Message, 200)
	}
	switch {
	case ver.unknown != "":
		b.Kind, b.Reason = BlockerStalled, "UnknownVerifier"
		b.Detail = fmt.Sprintf("spec.verify uses %q, which is not registered (valid: %s): every reconcile fails, so the Gate records nothing", ver.unknown, verifierFlagger)
		b.Fix = "correct spec.verify; do not promote again"
	case ver.wedged:
		b.Kind, b.Reason = BlockerStalled, "VerifierObjectMissing"
		b.Detail = fmt.Sprintf("the verifier's Canary %s/%s does not exist: every reconcile fails, so the Gate records nothing", ver.object.Namespace, ver.object.Name)
		b.Fix = "create the Canary or correct spec.verify; do not promote again"
	case ver.failed:
		b.Kind = BlockerVerificationFailed
		b.Fix = "look at what the Canary measured, then cross a Bundle that passes"
		b.Detail = fmt.Sprintf("%s crossed, but its verification failed%s; it does not clear this Gate", bundle, said)
	case ver.lost:
		b.Kind, b.Reason = BlockerVerifying, "Lost"
		b.Detail = fmt.Sprintf("%s crossed but was not verified before a later crossing ended; the controller looks at the newest one only, so it will not clear by itself", bundle)
		b.Fix = "cross it again"
	default:
		b.Kind = BlockerVerifying
		b.Detail = fmt.Sprintf("%s crossed and is being verified%s", bundle, said)
	}
	return []Blocker{b}
}

// recordingObstacles say where the Gate's status and the objects part: what
// was not recorded, what the controller has not caught up with.
func (v *view) recordingObstacles() []Blocker {
	var out []Blocker
	self := v.object()
	g := v.g
	stalled := v.verification.wedged
	var unrecorded *v1alpha1.Passage
	if len(v.finished) > 0 && !v.recorded(v.finished[0]) && !v.verification.wedged {
		unrecorded = v.finished[0]
	}
	if unrecorded != nil {
		p, obj := unrecorded, v.passageObject(unrecorded)
		old := v.e.older(p.Ended().Time, lag)
		switch {
		case v.frozen():
			why := "the Gate is suspended"
			if !g.Spec.Suspend {
				why = "the Gate's steps are invalid"
			}
			out = append(out, Blocker{Kind: BlockerOutcomeUnrecorded, Object: &obj, Bundles: []string{p.Spec.Bundle}, Since: ptr(p.Ended()),
				Reason: string(p.Phase()), Detail: fmt.Sprintf("Passage %s of %s ended %s while %s, and the Gate has not recorded it", p.Name, p.Spec.Bundle, p.Phase(), why)})
		case v.stuckOn(p):
			stalled = true
			out = append(out, Blocker{Kind: BlockerStalled, Reason: "ActivePassageFinished", Object: &self, Objects: []Object{obj}, Since: ptr(p.Ended()),
				Detail: fmt.Sprintf("status.activePassage still names %s, which ended %s at %s: the controller's reconcile of this Gate fails", p.Name, p.Phase(), stamp(p.Ended())),
				Fix:    "look at the controller's log for this Gate; do not promote again"})
		case old:
			out = append(out, Blocker{Kind: BlockerOutcomeUnrecorded, Object: &obj, Bundles: []string{p.Spec.Bundle}, Since: ptr(p.Ended()), Reason: string(p.Phase()),
				Detail: fmt.Sprintf("Passage %s of %s ended %s, and the Gate has not recorded it", p.Name, p.Spec.Bundle, p.Phase())})
		}
	}
	out = append(out, v.lostOutcomes()...)
	if why, since := v.stale(stalled); why != "" {
		out = append(out, Blocker{Kind: BlockerControllerStale, Object: &self, Since: since, Detail: why,
			Fix: "check that the Hecate controller runs and reconciles this Gate"})
	}
	for _, p := range v.e.passages[v.key] {
		if labelled(p) {
			continue
		}
		obj := v.passageObject(p)
		// An old one that something newer has overtaken is history.
		if !p.Active() && (v.succeededSince(&attempt{at: p.Ended()}) && p.Phase() != v1alpha1.PassageSucceeded || v.overtaken(p)) {
			continue
		}
		detail := fmt.Sprintf("Passage %s lacks the label %s: it runs, but the Gate never records how it ends", p.Name, v1alpha1.LabelGate)
		if !p.Active() {
			detail = fmt.Sprintf("Passage %s ended %s, but it lacks the label %s: the Gate will never record it", p.Name, p.Phase(), v1alpha1.LabelGate)
		}
		out = append(out, Blocker{Kind: BlockerUnlabelled, Object: &obj, Bundles: []string{p.Spec.Bundle}, Since: &p.CreationTimestamp, Detail: detail,
			Fix: "open Passages with their labels, as `hecate promote` does"})
		break // the newest says it all
	}
	return out
}

// lostOutcomes are successes that the Gate will never record: the controller
// looks at the newest finished Passage only, so what ended before it in the
// same moment, or while the Gate recorded nothing, is in the environment and
// nowhere else.
func (v *view) lostOutcomes() []Blocker {
	var out []Blocker
	for i, p := range v.finished {
		if i == 0 || p.Phase() != v1alpha1.PassageSucceeded || v.recorded(p) {
			continue
		}
		ended, obj := p.Ended(), v.passageObject(p)
		if c := v.g.Status.Current; c != nil && ended.Before(&c.EnteredAt) {
			continue // what entered since is what the environment holds
		}
		if !v.frozen() && !v.e.older(ended.Time, lag) {
			continue
		}
		out = append(out, Blocker{Kind: BlockerOutcomeUnrecorded, Object: &obj, Bundles: []string{p.Spec.Bundle}, Since: &ended, Reason: string(p.Phase()),
			Detail: fmt.Sprintf("Passage %s took %s in, and the Gate will never record it: the controller looks at the newest finished Passage only, which is %s", p.Name, p.Spec.Bundle, v.finished[0].Name),
			Fix:    "cross it again, so that it is recorded"})
		break // the newest lost one is what the environment holds
	}
	return out
}

// stuckOn says that the Gate still names a Passage as active that ended long
// enough ago: its reconcile fails.
func (v *view) stuckOn(p *v1alpha1.Passage) bool {
	return !v.frozen() && v.g.Status.ActivePassage == p.Name && v.e.older(p.Ended().Time, lag) && !v.recorded(p)
}

// wedged says that the Gate does not move by itself, so that asking again is
// no help.
func (v *view) wedged() bool {
	return v.verification.wedged || (len(v.finished) > 0 && v.stuckOn(v.finished[0]))
}

// overtaken says whether a newer labelled crossing or entry follows p.
func (v *view) overtaken(p *v1alpha1.Passage) bool {
	if c := v.g.Status.Current; c != nil && p.CreationTimestamp.Before(&c.EnteredAt) {
		return true
	}
	for _, f := range v.finished {
		if p.CreationTimestamp.Before(&f.CreationTimestamp) {
			return true
		}
	}
	return false
}

// stale says in which way the controller has not caught up, "" when it has.
func (v *view) stale(stalled bool) (why string, since *metav1.Time) {
	g, now := v.g, v.e.now
	st := &g.Status
	if st.ObservedGeneration < g.Generation {
		// Without a time, a spec that is not observed is all that is known.
		at := edited(&g.ObjectMeta)
		if v.e.untimed || v.e.older(at.Time, lag) {
			return fmt.Sprintf("the controller has observed generation %d of %d: what the Gate's status says is about an earlier spec", st.ObservedGeneration, g.Generation), at
		}
	}
	for _, p := range v.running {
		if p.Status == nil && v.e.older(p.CreationTimestamp.Time, lag) {
			return fmt.Sprintf("Passage %s has no status %s after its creation: no controller has picked it up", p.Name, span(now.Sub(p.CreationTimestamp.Time))), &p.CreationTimestamp
		}
	}
	if stalled || v.frozen() {
		return "", nil
	}
	if h := st.Health; h != nil && h.ObservedAt != nil && v.e.older(h.ObservedAt.Time, staleHealth) {
		return fmt.Sprintf("the health report is %s old; the controller renews it every minute", span(now.Sub(h.ObservedAt.Time))), h.ObservedAt
	}
	if differs, at := v.contradicts(); differs && at != nil && v.e.older(at.Time, lag) {
		return fmt.Sprintf("status.eligible contradicts the Bundles, though nothing changed for %s", span(now.Sub(at.Time))), at
	}
	return "", nil
}

// edited is when the object's spec was last written, as far as it says: the
// newest managed field entry that is not a status, else its creation.
func edited(m *metav1.ObjectMeta) *metav1.Time {
	at := &m.CreationTimestamp
	for i := range m.ManagedFields {
		if f := &m.ManagedFields[i]; f.Subresource == "" && f.Time != nil && at.Before(f.Time) {
			at = f.Time
		}
	}
	return at
}

// contradicts compares status.eligible with what follows from the Bundles, and
// says when the newest of the differences came about.
func (v *view) contradicts() (bool, *metav1.Time) {
	if v.frozen() || v.e.unread(v1alpha1.KindBundle, v.g.Namespace) || v.g.Status.ObservedGeneration < v.g.Generation {
		return false, nil
	}
	said := map[string]bool{}
	for _, n := range v.g.Status.Eligible {
		said[n] = true
	}
	var at *metav1.Time
	differs := false
	for _, b := range v.admitted {
		verdict := v.verdicts[b.Name]
		if verdict.Eligible() == said[b.Name] {
			continue
		}
		differs = true
		newest := b.CreationTimestamp
		if verdict.Approval != nil && newest.Before(&verdict.Approval.At) {
			newest = verdict.Approval.At
		}
		for i := range b.Status.Cleared {
			if newest.Before(&b.Status.Cleared[i].At) {
				newest = b.Status.Cleared[i].At
			}
		}
		if c := v.g.Status.Current; c != nil && newest.Before(&c.EnteredAt) {
			newest = c.EnteredAt
		}
		if at == nil || at.Before(&newest) {
			at = &newest
		}
	}
	return differs, at
}

func (v *view) healthObstacle() []Blocker {
	h := v.g.Status.Health
	if h == nil || (h.Status != v1alpha1.HealthDegraded && h.Status != v1alpha1.HealthUnknown) {
		return nil
	}
	self := v.object()
	detail := fmt.Sprintf("health is %s", h.Status)
	if len(h.Issues) > 0 {
		detail += ": " + clean(strings.Join(h.Issues, "; "), 300)
	}
	if v.g.Spec.Suspend {
		detail += " (as of before the Gate was suspended)"
	}
	b := Blocker{Kind: BlockerUnhealthy, Reason: string(h.Status), Detail: detail, Object: &self, Since: h.Since, Objects: v.watched()}
	return []Blocker{b}
}

// checkerFlux is the only registered health checker.
const checkerFlux = "flux"

// watched names what the Gate's health is about: spec.watch and what it
// adopted from the current Bundle's Passage.
func (v *view) watched() []Object {
	checks := slices.Clone(v.g.Spec.Watch)
	if c := v.g.Status.Current; c != nil {
		if p := v.passage(c.Passage); p != nil && p.Status != nil {
			checks = append(checks, p.Status.Watch...)
		}
	}
	var out []Object
	for _, c := range checks {
		if c.Uses != checkerFlux || c.With == nil {
			continue
		}
		objects, _ := fluxObjects(v.g.Namespace, c.With.Raw)
		for _, o := range objects {
			if !slices.Contains(out, o) && len(out) < MaxNames {
				out = append(out, o)
			}
		}
	}
	return out
}

// runningObstacles say what the running crossings wait for.
func (v *view) runningObstacles() []Blocker {
	var out []Blocker
	if len(v.running) > 1 {
		b := Blocker{Kind: BlockerConcurrent, Since: &v.running[len(v.running)-2].CreationTimestamp, Fix: "abort all but one"}
		var say []string
		for i, p := range v.running {
			if i == MaxNames {
				say = append(say, fmt.Sprintf("and %d more", len(v.running)-i))
				break
			}
			b.Objects = append(b.Objects, v.passageObject(p))
			say = append(say, p.Name+" ("+p.Spec.Bundle+")")
			if !slices.Contains(b.Bundles, p.Spec.Bundle) {
				b.Bundles = append(b.Bundles, p.Spec.Bundle)
			}
			b.HumanSteps = append(b.HumanSteps, HumanStep{patchCommand("passage", p.Namespace, p.Name, `{"spec":{"abort":true}}`), "stops " + p.Name + " of " + p.Spec.Bundle})
		}
		b.Object = &b.Objects[0]
		b.Detail = fmt.Sprintf("%d Passages run at once: %s", len(v.running), strings.Join(say, ", "))
		out = append(out, b)
	}
	for _, p := range v.running {
		if b := v.stepObstacle(p); b != nil {
			out = append(out, *b)
		}
	}
	return out
}

// waitingStep is the step that a running Passage is at: the index, and its
// status (nil when there is none yet).
func waitingStep(p *v1alpha1.Passage) (int, *v1alpha1.StepStatus) {
	if p.Status == nil {
		return -1, nil
	}
	for i := range p.Status.Steps {
		if p.Status.Steps[i].Phase == v1alpha1.StepRunning && i < len(p.Spec.Steps) {
			return i, &p.Status.Steps[i]
		}
	}
	return -1, nil
}

func stepName(i int, uses, as string) string {
	uses, as = clean(uses, 80), clean(as, 80)
	if as != "" && as != uses {
		return fmt.Sprintf("steps[%d] %s (%s)", i, uses, as)
	}
	return fmt.Sprintf("steps[%d] %s", i, uses)
}

func (v *view) stepObstacle(p *v1alpha1.Passage) *Blocker {
	i, st := waitingStep(p)
	if st == nil {
		return nil
	}
	obj := v.passageObject(p)
	b := &Blocker{Kind: BlockerStepWaiting, Object: &obj, Bundles: []string{p.Spec.Bundle}, Since: st.StartedAt, Step: stepName(i, st.Uses, st.As),
		Attempts: st.Attempts, NextSteps: []NextStep{getPassage(p)},
		Detail: fmt.Sprintf("%s waits%s: %s", st.Uses, v.waited(st.StartedAt), cleanCause(st.Message, 300))}
	if p.Spec.Abort {
		b.Detail = "its abort has been asked for and not taken up yet; " + b.Detail
	}
	if st.Uses == stepEvidence && p.Status.Evidence != nil && p.Status.Evidence.Verdict == verdictHold {
		v.held(b, p, i)
		return b
	}
	if st.Uses == stepFluxWait && p.Spec.Steps[i].With != nil {
		v.fluxWait(b, p, p.Spec.Steps[i].With.Raw)
	}
	return b
}

func (v *view) waited(since *metav1.Time) string {
	if since == nil {
		return ""
	}
	return " for " + span(v.e.now.Sub(since.Time))
}

// fluxWait says whether a waiting flux-wait can ever finish: not on a suspended
// or missing object, since step timeouts are not enforced. Only what was looked
// up counts.
func (v *view) fluxWait(b *Blocker, p *v1alpha1.Passage, with []byte) {
	objects, remote := fluxObjects(p.Namespace, with)
	if remote {
		return
	}
	never := false
	known := len(objects) > 0
	for _, o := range objects {
		live, ok := v.e.live[o]
		switch {
		case !ok || (!live.found && live.code != SourceNotFound):
			known = false
		case !live.found:
			never = true
			b.Objects = append(b.Objects, o)
			b.Reason = reasonFluxMissing
			b.Fix = fmt.Sprintf("create %s %s/%s, or abort: step timeouts are not enforced", o.Kind, o.Namespace, o.Name)
		case live.suspended:
			never = true
			b.Objects = append(b.Objects, o)
			b.Reason = reasonFluxSuspended
			b.Fix = fmt.Sprintf("resume %s %s/%s, or abort: step timeouts are not enforced", o.Kind, o.Namespace, o.Name)
			if res := fluxResource(o); res != "" {
				b.HumanSteps = append(b.HumanSteps, HumanStep{patchCommand(res, o.Namespace, o.Name, `{"spec":{"suspend":false}}`), "lets Flux reconcile it again"})
			}
		}
	}
	switch {
	case never:
		b.CanFinish = ptr(false)
		b.Detail += "; it can never finish by waiting"
		b.HumanSteps = append(b.HumanSteps, HumanStep{patchCommand("passage", p.Namespace, p.Name, `{"spec":{"abort":true}}`), "or, instead, stops the crossing"})
	case known:
		b.CanFinish = ptr(true)
	}
}

// Reasons of a StepWaiting that never finishes.
const (
	reasonFluxMissing   = "FluxObjectMissing"
	reasonFluxSuspended = "FluxObjectSuspended"
)

// bundleObstacles are what stands in the way of one Bundle at this Gate.
// others are the Bundles that share an obstacle (all newer ones for the Gate's
// own explanation, none when the chain asks for one Bundle).
func (v *view) bundleObstacles(b *v1alpha1.Bundle, others []*v1alpha1.Bundle) []Blocker {
	var out []Blocker
	self := v.object()
	verdict := v.verdicts[b.Name]
	with := func(has func(gate.Verdict) bool) ([]string, int) {
		var bs []*v1alpha1.Bundle
		for _, o := range others {
			if has(v.verdicts[o.Name]) {
				bs = append(bs, o)
			}
		}
		return names(bs)
	}
	if len(verdict.Missing) > 0 {
		bl := Blocker{Kind: BlockerUpstream, Object: &self, Detail: clean(fmt.Sprintf("%s has not cleared %s", b.Name, strings.Join(verdict.Missing, ", ")), 300)}
		bl.Bundles, bl.MoreBundles = with(func(o gate.Verdict) bool { return len(o.Missing) > 0 })
		for i, m := range verdict.Missing {
			if i == MaxNames {
				break
			}
			m = clean(m, 253)
			obj := hecate(v1alpha1.KindGate, v.g.Namespace, m)
			bl.Objects = append(bl.Objects, obj)
			if v.e.byGate[key{Namespace: v.g.Namespace, Name: m}] != nil {
				bl.NextSteps = append(bl.NextSteps, NextStep{Tool: "explain_gate", Arguments: map[string]string{"gate": m, "namespace": v.g.Namespace}, Why: "why " + b.Name + " has not cleared " + m})
			}
		}
		out = append(out, bl)
	}
	if verdict.NeedsApproval {
		obj := hecate(v1alpha1.KindBundle, b.Namespace, b.Name)
		bl := Blocker{Kind: BlockerNotApproved, Object: &obj, Detail: fmt.Sprintf("%s needs a person's approval for %s", b.Name, v.g.Name), Fix: "a person approves it"}
		bl.Bundles, bl.MoreBundles = with(func(o gate.Verdict) bool { return o.NeedsApproval })
		bl.NextSteps = []NextStep{{Tool: "preview_promotion", Arguments: map[string]string{"gate": v.g.Name, "bundle": b.Name, "namespace": v.g.Namespace}, Why: "what has to be approved, and by whom it may not be"}}
		bl.HumanSteps = []HumanStep{{approveCommand(v.g.Namespace, b.Name, v.g.Name), "approves " + b.Name + " for " + v.g.Name}}
		// The newest Bundle that only lacks the approval could go now.
		if len(verdict.Missing) > 0 {
			for _, o := range others {
				if ov := v.verdicts[o.Name]; ov.NeedsApproval && len(ov.Missing) == 0 {
					bl.HumanSteps = append(bl.HumanSteps, HumanStep{approveCommand(v.g.Namespace, o.Name, v.g.Name), "approves " + o.Name + ", which has cleared everything upstream"})
					break
				}
			}
		}
		out = append(out, bl)
	}
	if len(v.g.Spec.Windows) > 0 && !v.window.Open && v.window.Code != gate.InvalidWindow {
		bl := Blocker{Kind: BlockerWindowClosed, Object: &self, Reason: string(v.window.Code), Detail: clean(v.window.Reason, 300), Bundles: []string{b.Name},
			OpensAt: kubeTime(v.window.NextOpen), Until: kubeTime(v.window.Until)}
		if v.window.Window != nil && v.window.Window.Deny {
			bl.Detail += fmt.Sprintf(" (spec.windows[%d])", v.window.Index)
		}
		switch {
		case bl.OpensAt != nil:
			bl.Detail += fmt.Sprintf("; opens next %s (in %s)", stamp(*bl.OpensAt), span(bl.OpensAt.Sub(v.e.now)))
		default:
			bl.Detail += "; it does not open within the next five years"
		}
		out = append(out, bl)
	}
	return out
}

func kubeTime(t *time.Time) *metav1.Time {
	if t == nil {
		return nil
	}
	return &metav1.Time{Time: t.UTC()}
}

// failureObstacle reports the crossing that failed or was aborted.
func (v *view) failureObstacle(a *attempt) Blocker {
	obj := hecate(v1alpha1.KindPassage, v.g.Namespace, a.passage)
	if a.passage == "" {
		obj = hecate(v1alpha1.KindBundle, v.g.Namespace, a.bundle)
	}
	b := Blocker{Kind: BlockerPassageFail, Object: &obj, Bundles: []string{a.bundle}}
	when := ""
	if !a.at.IsZero() {
		b.Since, when = &a.at, " at "+stamp(a.at)
	}
	message := cleanCause(a.reason, 300)
	if a.aborted {
		b.Kind = BlockerPassageAborted
		b.Detail = fmt.Sprintf("the crossing of %s was aborted%s", a.bundle, when)
	} else {
		b.Detail = fmt.Sprintf("the crossing of %s failed%s: %s", a.bundle, when, message)
	}
	if p := a.object; p != nil {
		b.NextSteps = append(b.NextSteps, getPassage(p))
		if i, st := sinkingStep(p); st != nil && !a.aborted {
			b.Step, b.Reason = stepName(i, st.Uses, st.As), st.Reason
			if st.Uses == stepEvidence {
				b.Hold = failedHolds(p, i, st)
				b.NextSteps = append(b.NextSteps, NextStep{Tool: "get_evidence", Arguments: map[string]string{"bundle": a.bundle, "gate": v.g.Name, "namespace": v.g.Namespace}, Why: "what the evidence says now"})
			}
		}
	} else if a.passage != "" && v.passagesKnown() {
		b.Detail += " (the Passage is gone; this is from the Bundle's record)"
	}
	again := "asks for the crossing again"
	rollback := slices.ContainsFunc(v.older, func(o *v1alpha1.Bundle) bool { return o.Name == a.bundle })
	switch {
	case rollback:
		b.Detail += fmt.Sprintf("; it was a rollback, %s stays current", v.g.Status.Current.Bundle)
		again = "asks for the rollback again: not the way forward"
	case v.g.Spec.Auto:
		b.Detail += "; the Gate will not retry it by itself"
		again = "asks for it again: an automatic Gate does not retry by itself"
	}
	if bundle := v.e.byBundle[key{Namespace: v.g.Namespace, Name: a.bundle}]; bundle != nil && v.mayAskAgain(bundle) {
		b.HumanSteps = append(b.HumanSteps, HumanStep{promoteCommand(v.g.Namespace, a.bundle, v.g.Name), again})
	}
	return b
}

// mayAskAgain says whether asking for the Bundle could be answered with yes:
// a command that is refused at once helps nobody.
func (v *view) mayAskAgain(b *v1alpha1.Bundle) bool {
	if len(v.g.Name) > gate.MaxLabelLength || len(b.Name) > gate.MaxLabelLength || !v.passagesKnown() {
		return false
	}
	if len(v.finished) > 0 && v.finished[0].Spec.Bundle == b.Name && v.finished[0].Phase() == v1alpha1.PassageSucceeded && !v.recorded(v.finished[0]) {
		return false // it is in; the Gate has yet to say so
	}
	return v.verdicts[b.Name].Eligible() && len(v.running) == 0 && !v.frozen() && !v.noSteps() && v.window.Open && !v.wedged()
}

func getPassage(p *v1alpha1.Passage) NextStep {
	return NextStep{Tool: "get_passage", Arguments: map[string]string{"passage": p.Name, "namespace": p.Namespace}, Why: "the crossing step by step"}
}
