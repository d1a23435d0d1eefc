package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// Explain answers "why is this Gate not crossing?": one state, every obstacle
// in the order in which somebody has to act, the chain to the root causes.
// The name may be a unique part of a Gate's name; namespace "" looks in all.
// Requests: one LIST each of Gates, Bundles, Beacons and unlabelled Passages,
// one of Passages for each Gate of the chain, and a GET for each object that
// somebody waits for. Errors: NotFoundError, AmbiguousError, the client's.
func (o *Ops) Explain(ctx context.Context, namespace, name string) (*Explanation, error) {
	e, err := o.load(ctx, namespace, unlabelledPassages)
	if err != nil {
		return nil, err
	}
	g, err := e.findGate(namespace, name)
	if err != nil {
		return nil, err
	}
	gates := append([]*v1alpha1.Gate{g}, e.upstreamGates(g)...)
	if err := o.readPassages(ctx, e, gates); err != nil {
		return nil, err
	}
	if err := o.lookup(ctx, e, gates); err != nil {
		return nil, err
	}
	if err := o.askHolds(ctx, e, gates[:1]); err != nil {
		return nil, err
	}
	x := e.explain(g)
	x.Incomplete = e.incompleteFor(g)
	return x, nil
}

// ExplainAll explains every Gate of a namespace that is not at rest, all
// namespaces for "", by namespace and name. Requests: four LISTs, and a GET
// for each object that somebody waits for.
func (o *Ops) ExplainAll(ctx context.Context, namespace string) (troubled []*Explanation, resting int, incomplete []Incomplete, err error) {
	e, err := o.load(ctx, namespace, allPassages)
	if err != nil {
		return nil, 0, nil, err
	}
	gates := make([]*v1alpha1.Gate, len(e.gates))
	for i := range e.gates {
		gates[i] = &e.gates[i]
	}
	if err := o.lookup(ctx, e, gates); err != nil {
		return nil, 0, nil, err
	}
	for _, g := range gates {
		if ctx.Err() != nil {
			return nil, 0, nil, ctx.Err()
		}
		// A Gate whose Bundles nobody could read is not at rest, it is unknown.
		if x := e.explain(g); x.State != StateIdle || e.unread(v1alpha1.KindBundle, g.Namespace) {
			troubled = append(troubled, x)
		} else {
			resting++
		}
	}
	return troubled, resting, e.incomplete, nil
}

// incompleteFor leaves out what concerns other namespaces than the Gate's.
func (e *estate) incompleteFor(g *v1alpha1.Gate) []Incomplete {
	var out []Incomplete
	for _, i := range e.incomplete {
		if i.Object.Namespace == "" || i.Object.Namespace == g.Namespace || i.Object.APIVersion != v1alpha1.GroupVersion.String() {
			out = append(out, i)
		}
	}
	return out
}

// explain judges one Gate. It makes no request.
func (e *estate) explain(g *v1alpha1.Gate) *Explanation {
	v := e.view(g)
	x := &Explanation{Gate: g.Name, Namespace: g.Namespace, Health: trimHealth(g.Status.Health), Blockers: []Blocker{}}
	if c := g.Status.Current; c != nil {
		x.Current = c.Bundle
	}
	front := v.front()
	blockers := v.gateObstacles()
	failed := v.lastFailure()
	if failed != nil {
		blockers = append(blockers, v.failureObstacle(failed))
	} else if failed = v.failedByCondition(); failed != nil {
		blockers = append(blockers, v.failureObstacle(failed))
	}
	crossingFront := front != nil && slices.ContainsFunc(v.running, func(p *v1alpha1.Passage) bool { return p.Spec.Bundle == front.Name })
	if front != nil && !crossingFront {
		blockers = append(blockers, v.bundleObstacles(front, v.newer)...)
	}
	if b := v.unreadCrossing(); b != nil {
		blockers = append(blockers, *b)
	}
	if len(v.admitted) == 0 && len(v.running) == 0 && !e.unread(v1alpha1.KindBundle, g.Namespace) {
		blockers = append(blockers, v.noBundles())
	}
	if b := v.awaitingRequest(front); b != nil {
		blockers = append(blockers, *b)
	}
	sortBlockers(blockers)
	x.Blockers = append(x.Blockers, blockers...)
	x.State = v.state(blockers, failed != nil)
	v.fillCrossing(x)
	v.fillBundles(x)
	x.Warnings = v.warnings(x.State)
	if x.State != StateIdle && x.State != StateReady || hasKind(blockers, BlockerUpstream) {
		x.Chain, x.HumanSteps = v.causal(blockers)
		x.RootCauses = rootsOf(x.Chain)
	}
	x.Summary = v.summary(x, failed)
	x.NextSteps = v.nextSteps(x)
	for i := range x.Blockers {
		x.Blockers[i].HumanSteps = slices.DeleteFunc(x.Blockers[i].HumanSteps, func(h HumanStep) bool { return h.Command == "" })
	}
	return x
}

// failedByCondition is the failure that only the Gate's condition still knows
// of. Its lastTransitionTime does not move with the reason, so it has no time.
func (v *view) failedByCondition() *attempt {
	front := v.front()
	if len(v.running) > 0 || front == nil || !v.g.Spec.Auto {
		return nil
	}
	switch v.reason() {
	case v1alpha1.GateReasonCrossingFailed:
		// The condition is about the newest eligible Bundle.
		if v.verdicts[front.Name].Eligible() && !v.crossedSince(front, front.CreationTimestamp) {
			return &attempt{bundle: front.Name, reason: v.ready.Message}
		}
	case v1alpha1.GateReasonPassageFailed:
		// No Passage could be created: a quota, a webhook, a right that lacks.
		if !v.noSteps() && len(v.g.Name) <= gate.MaxLabelLength {
			return &attempt{bundle: front.Name, reason: "the Gate could not create a Passage: " + v.ready.Message}
		}
	}
	return nil
}

// unreadCrossing reports a crossing that the Gate's status names while its
// Passages could not be read.
func (v *view) unreadCrossing() *Blocker {
	name := v.g.Status.ActivePassage
	if name == "" || v.passagesKnown() || v.frozen() {
		return nil
	}
	obj := hecate(v1alpha1.KindPassage, v.g.Namespace, name)
	return &Blocker{Kind: BlockerStepWaiting, Reason: reasonUnread, Object: &obj,
		Detail: "Passage " + name + " is in progress, as the Gate's status says; it could not be read"}
}

// reasonUnread marks a crossing of which nothing but its name is known.
const reasonUnread = "PassageUnreadable"

// trimHealth leaves out the checkers' details, whose size nobody bounds.
func trimHealth(h *v1alpha1.Health) *v1alpha1.Health {
	if h == nil {
		return nil
	}
	out := *h
	out.Details = nil
	out.Issues = nil
	for i, s := range h.Issues {
		if i == 5 {
			break
		}
		out.Issues = append(out.Issues, clean(s, 200))
	}
	return &out
}

func hasKind(bs []Blocker, kinds ...BlockerKind) bool {
	return slices.ContainsFunc(bs, func(b Blocker) bool { return slices.Contains(kinds, b.Kind) })
}

// state is the first State that holds.
func (v *view) state(bs []Blocker, failed bool) State {
	front := v.front()
	switch {
	case len(v.running) > 0, v.unreadCrossing() != nil:
		return StateCrossing
	case failed, hasKind(bs, BlockerVerificationFailed):
		return StateFailed
	case hasKind(bs, BlockerSuspended, BlockerInvalidSteps, BlockerNoPassage, BlockerNameTooLong, BlockerInvalidWindow, BlockerStalled):
		return StateBlocked
	case hasKind(bs, BlockerNoBundles):
		for _, c := range v.beaconCauses() {
			if !c.change {
				return StateIdle
			}
		}
		return StateBlocked
	case front == nil:
		if hasKind(bs, BlockerVerifying) {
			return StateBlocked
		}
		return StateIdle
	case hasKind(bs, BlockerUpstream, BlockerNotApproved, BlockerWindowClosed):
		return StateBlocked
	case hasKind(bs, BlockerControllerStale):
		return StateBlocked
	default:
		return StateReady
	}
}

func (v *view) noBundles() Blocker {
	self := v.object()
	b := Blocker{Kind: BlockerNoBundles, Object: &self}
	var say []string
	for _, c := range v.beaconCauses() {
		if b.Reason == "" {
			b.Reason, b.Since = c.code, c.since
		}
		b.Objects = append(b.Objects, c.object)
		say = append(say, c.detail)
		switch c.code {
		case ReasonBeaconSuspended:
			b.HumanSteps = append(b.HumanSteps, HumanStep{patchCommand("beacon", v.g.Namespace, c.object.Name, `{"spec":{"suspend":false}}`), "resumes the Beacon"})
		case ReasonBeaconMissing:
			b.Fix = "create the Beacon, or correct spec.admits of the Gate"
		case ReasonBeaconFailing, ReasonBeaconManual, ReasonBeaconEmpty:
			b.NextSteps = append(b.NextSteps, NextStep{Tool: "list_beacons", Arguments: map[string]string{"beacon": c.object.Name, "namespace": v.g.Namespace}, Why: "what it watches and what it found"})
		}
	}
	b.Detail = "no Bundle from any admitted Beacon: " + strings.Join(say, "; ")
	return b
}

// awaitingRequest says that a manual Gate waits to be asked.
func (v *view) awaitingRequest(front *v1alpha1.Bundle) *Blocker {
	if v.g.Spec.Auto || front == nil || len(v.running) > 0 || v.unreadCrossing() != nil || !v.verdicts[front.Name].Eligible() || v.wedged() {
		return nil
	}
	obj := hecate(v1alpha1.KindBundle, front.Namespace, front.Name)
	b := &Blocker{Kind: BlockerManual, Bundles: []string{front.Name}, Object: &obj,
		Detail:    fmt.Sprintf("%s could cross; %s does not cross by itself, somebody has to ask", front.Name, v.g.Name),
		NextSteps: []NextStep{{Tool: "preview_promotion", Arguments: map[string]string{"gate": v.g.Name, "bundle": front.Name, "namespace": v.g.Namespace}, Why: "whether it would cross, and what to know before"}}}
	if v.mayAskAgain(front) {
		b.HumanSteps = []HumanStep{{promoteCommand(v.g.Namespace, front.Name, v.g.Name), "asks for the crossing"}}
	}
	return b
}

func (v *view) fillCrossing(x *Explanation) {
	if len(v.running) == 0 {
		if b := v.unreadCrossing(); b != nil {
			x.Crossing = &Crossing{Passage: b.Object.Name}
		}
		return
	}
	p := v.running[0]
	x.Crossing = &Crossing{Passage: p.Name, Bundle: p.Spec.Bundle, Actor: clean(p.Spec.Actor, 100), Since: v.started(p)}
	if i, st := waitingStep(p); st != nil {
		x.Crossing.Step = stepName(i, st.Uses, st.As)
	}
	if p.Status != nil && p.Status.Evidence != nil {
		x.Evidence = trimEvidence(p.Status.Evidence)
	}
}

func trimEvidence(ev *v1alpha1.EvidenceRef) *v1alpha1.EvidenceRef {
	if ev == nil {
		return nil
	}
	out := *ev
	out.Blockers = nil
	for i, s := range ev.Blockers {
		if i == MaxNames {
			break
		}
		out.Blockers = append(out.Blockers, clean(s, 200))
	}
	return &out
}

func (v *view) fillBundles(x *Explanation) {
	omit := func(list string) {
		if x.Omitted == nil {
			x.Omitted = map[string]int{}
		}
		x.Omitted[list]++
	}
	for _, b := range v.admitted {
		verdict := v.verdicts[b.Name]
		if verdict.Current {
			continue
		}
		isOld := slices.Contains(v.older, b)
		switch {
		case !verdict.Eligible():
			if len(x.Waiting) == MaxNames {
				omit("waiting")
				continue
			}
			w := Waiting{Bundle: b.Name, Reason: verdict.Reason(), Kind: string(verdict.Code())}
			if codes := verdict.Codes(); len(codes) > 1 {
				for _, c := range codes {
					w.Kinds = append(w.Kinds, string(c))
				}
			}
			x.Waiting = append(x.Waiting, w)
		case isOld:
			if len(x.Rollback) == MaxNames {
				omit("rollback")
				continue
			}
			reason := "older than current " + x.Current
			if !b.CreationTimestamp.Before(&v.current.CreationTimestamp) {
				reason = "no newer than current " + x.Current
			}
			x.Rollback = append(x.Rollback, Rollback{Bundle: b.Name, Reason: reason})
		default:
			if len(x.Eligible) == MaxNames {
				omit("eligible")
				continue
			}
			x.Eligible = append(x.Eligible, b.Name)
		}
	}
}

func (v *view) warnings(s State) []Warning {
	var out []Warning
	self := v.object()
	g := v.g
	if differs, at := v.contradicts(); differs && (at == nil || !v.e.older(at.Time, lag)) && len(v.running) == 0 && !v.verification.wedged {
		out = append(out, Warning{WarnStatusLags, "status.eligible does not yet say what follows from the Bundles; the Gate looks again within a minute", &self})
	}
	if g.Status.ObservedGeneration < g.Generation && !v.e.untimed && !v.e.older(edited(&g.ObjectMeta).Time, lag) {
		out = append(out, Warning{WarnStatusLags, fmt.Sprintf("the controller has observed generation %d of %d", g.Status.ObservedGeneration, g.Generation), &self})
	}
	if len(v.finished) > 0 && !v.frozen() && !v.verification.wedged && !v.recorded(v.finished[0]) && !v.e.older(v.finished[0].Ended().Time, lag) {
		obj := v.passageObject(v.finished[0])
		out = append(out, Warning{WarnStatusLags, fmt.Sprintf("Passage %s ended %s and is not recorded yet", v.finished[0].Name, v.finished[0].Phase()), &obj})
	}
	for _, p := range v.running {
		if p.Status == nil && !v.e.older(p.CreationTimestamp.Time, lag) {
			obj := v.passageObject(p)
			out = append(out, Warning{WarnStatusLags, fmt.Sprintf("Passage %s has not been picked up yet", p.Name), &obj})
		}
	}
	if s == StateIdle && len(v.admitted) > 0 {
		for _, c := range v.beaconCauses() {
			switch c.code {
			case ReasonBeaconMissing, ReasonBeaconSuspended, ReasonBeaconFailing:
				out = append(out, Warning{WarnBeacon, c.detail, &c.object})
			}
		}
	}
	if !g.Spec.Auto {
		if f := v.front(); f != nil && len(v.running) == 0 {
			if a, last := v.failureOf(f), v.lastFailure(); a != nil && (last == nil || last.bundle != f.Name) {
				obj := hecate(v1alpha1.KindBundle, f.Namespace, f.Name)
				out = append(out, Warning{WarnFailedBefore, fmt.Sprintf("%s failed or was aborted here before, at %s: %s", f.Name, stamp(a.at), cleanCause(a.reason, 200)), &obj})
			}
		}
	}
	return out
}

// nextSteps lead to the root causes further up; each blocker has its own. Where
// nothing stands in the way there is only the past to look at.
func (v *view) nextSteps(x *Explanation) []NextStep {
	if len(x.Blockers) == 0 {
		return []NextStep{{Tool: "get_audit_trail", Arguments: map[string]string{"gate": v.g.Name, "namespace": v.g.Namespace}, Why: "what happened here last"}}
	}
	var out []NextStep
	for _, r := range x.RootCauses {
		if r.Depth == 0 || len(out) == 3 {
			continue
		}
		switch r.Object.Kind {
		case v1alpha1.KindPassage:
			out = append(out, NextStep{Tool: "get_passage", Arguments: map[string]string{"passage": r.Object.Name, "namespace": r.Object.Namespace}, Why: "the root cause step by step"})
		case v1alpha1.KindGate:
			if v.e.byGate[key{Namespace: r.Object.Namespace, Name: r.Object.Name}] != nil && r.Object.Name != v.g.Name {
				out = append(out, NextStep{Tool: "explain_gate", Arguments: map[string]string{"gate": r.Object.Name, "namespace": r.Object.Namespace}, Why: "the Gate at the root"})
			}
		}
	}
	return out
}

// summary is one line that stands alone.
func (v *view) summary(x *Explanation, failed *attempt) string {
	where := v.g.Namespace + "/" + v.g.Name
	front := v.front()
	root := ""
	if n := len(x.RootCauses); n > 0 && x.State != StateCrossing && hasKind(x.Blockers, BlockerUpstream) {
		last := x.RootCauses[0]
		for _, r := range x.RootCauses {
			if r.Depth > last.Depth {
				last = r
			}
		}
		root = fmt.Sprintf("; root cause: %s on %s %s: %s", last.Kind, last.Object.Kind, last.Object.Name, last.Detail)
	}
	line := ""
	switch x.State {
	case StateCrossing:
		line = fmt.Sprintf("%s is crossing %s", x.Crossing.Bundle, where)
		switch {
		case hasKind(x.Blockers, BlockerConcurrent):
			line = fmt.Sprintf("%s: %d Passages run at once", where, len(v.running))
		case x.Crossing.Bundle == "":
			line = where + ": " + first(x.Blockers, BlockerStepWaiting).Detail
		default:
			if b := first(x.Blockers, BlockerChangeHeld, BlockerStepWaiting, BlockerControllerStale); b.Detail != "" {
				line += ": " + b.Detail
			}
			if v.g.Spec.Suspend {
				line += "; the Gate is suspended and will not record how it ends"
			}
		}
		if front != nil && front.Name != x.Crossing.Bundle {
			line += fmt.Sprintf("; the newer %s %s", front.Name, v.standing(front))
		}
	case StateFailed:
		if failed == nil {
			line = fmt.Sprintf("%s: %s", where, first(x.Blockers, BlockerVerificationFailed).Detail)
			break
		}
		b := first(x.Blockers, BlockerPassageFail, BlockerPassageAborted)
		line = fmt.Sprintf("%s: %s", where, b.Detail)
		if b.Reason != "" {
			line = fmt.Sprintf("%s [%s at %s]", line, b.Reason, b.Step)
		}
		if front != nil && front.Name != failed.bundle {
			line += fmt.Sprintf("; the newer %s %s", front.Name, v.standing(front))
		}
	case StateBlocked:
		var say []string
		for _, b := range x.Blockers {
			if b.Kind != BlockerManual && b.Kind != BlockerUnhealthy && b.Kind != BlockerNotFound {
				say = append(say, b.Detail)
			}
			if len(say) == 3 {
				break
			}
		}
		line = fmt.Sprintf("%s is blocked: %s", where, strings.Join(say, "; "))
	case StateReady:
		if v.g.Spec.Auto {
			line = fmt.Sprintf("%s: %s can cross, and the automatic Gate will take it at its next reconcile", where, front.Name)
		} else {
			line = fmt.Sprintf("%s: %s can cross; somebody has to ask for it", where, front.Name)
		}
	default:
		line = where + " is at rest: "
		switch {
		case v.e.unread(v1alpha1.KindBundle, v.g.Namespace):
			line = where + ": the Bundles could not be read, so it cannot be told whether anything waits"
			if n := len(v.g.Status.Eligible); n > 0 {
				line += fmt.Sprintf("; the Gate's status names %s as eligible", plural(n, "Bundle"))
			}
		case x.Current != "":
			line += x.Current + " is in, nothing newer waits"
		case hasKind(x.Blockers, BlockerNoBundles):
			line += first(x.Blockers, BlockerNoBundles).Detail
		default:
			line += "nothing is in and nothing waits"
		}
		if b := first(x.Blockers, BlockerUnhealthy); b.Detail != "" {
			line += "; " + b.Detail
		}
	}
	return clean(line+root, 700)
}

// standing says in a word where a Bundle stands.
func (v *view) standing(b *v1alpha1.Bundle) string {
	if verdict := v.verdicts[b.Name]; !verdict.Eligible() {
		return verdict.Reason()
	}
	if !v.window.Open {
		return "waits for a window"
	}
	return "could cross"
}

func first(bs []Blocker, kinds ...BlockerKind) Blocker {
	for _, k := range kinds {
		for _, b := range bs {
			if b.Kind == k {
				return b
			}
		}
	}
	return Blocker{}
}

// findGate resolves a name: exact, else the only Gate that contains it.
func (e *estate) findGate(namespace, name string) (*v1alpha1.Gate, error) {
	var exact, part []*v1alpha1.Gate
	for i := range e.gates {
		g := &e.gates[i]
		if g.Name == name {
			exact = append(exact, g)
		} else if strings.Contains(g.Name, name) {
			part = append(part, g)
		}
	}
	found := exact
	if len(found) == 0 {
		found = part
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		all := make([]string, 0, len(e.gates))
		for i := range e.gates {
			all = append(all, e.gates[i].Name)
		}
		return nil, &NotFoundError{Object: hecate(v1alpha1.KindGate, namespace, name), Candidates: nearest(name, all, MaxNames)}
	}
	amb := &AmbiguousError{Kind: v1alpha1.KindGate, Name: name}
	for _, g := range found {
		amb.Candidates = append(amb.Candidates, hecate(v1alpha1.KindGate, g.Namespace, g.Name))
	}
	return nil, amb
}
