package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// mostKept is how many entries Gate.status.history and Bundle.status.blocked
// hold.
const mostKept = 10

// gate reconciles a Gate (hecate-facts, section 6).
func (b *beat) gate(g *v1alpha1.Gate) error {
	s := &g.Status
	s.ObservedGeneration = g.Generation
	s.LastHandledReconcileAt = g.Annotations[v1alpha1.AnnotationReconcile]
	if g.Spec.Suspend {
		s.Eligible = nil
		b.ready(g, metav1.ConditionFalse, v1alpha1.GateReasonSuspended, "Gate is suspended")
		return nil
	}
	active, newest := b.passagesOf(g)
	verifying, err := b.outcome(g, newest)
	if err != nil {
		return err
	}
	if err := b.health(g); err != nil {
		return err
	}
	admitted := b.eligible(g)
	reason, message := "", ""
	if active == nil {
		if active, reason, message, err = b.advance(g, admitted); err != nil {
			return err
		}
	}
	s.ActivePassage, s.Evidence = "", nil
	if active != nil {
		s.ActivePassage = active.Name
		reason, message = v1alpha1.GateReasonCrossing, fmt.Sprintf("Passage %s is in progress", active.Name)
		if active.Status != nil && active.Status.Evidence != nil {
			e := active.Status.Evidence
			s.Evidence = e.DeepCopy()
			if len(e.Blockers) > 0 && e.Risk != nil {
				message = fmt.Sprintf("Passage %s is held by the change gate (risk %d): %s", active.Name, *e.Risk, strings.Join(e.Blockers, "; "))
			}
		}
	}
	if verifying != "" {
		b.ready(g, metav1.ConditionFalse, v1alpha1.GateReasonVerifying, verifying)
		return nil
	}
	b.ready(g, metav1.ConditionTrue, reason, message)
	return nil
}

func (b *beat) ready(g *v1alpha1.Gate, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: status, Reason: reason, Message: message,
		ObservedGeneration: g.Generation, LastTransitionTime: b.now,
	})
}

// passagesOf are the active Passage of a Gate and its newest finished one. A
// Gate finds its Passages by label.
func (b *beat) passagesOf(g *v1alpha1.Gate) (active, newest *v1alpha1.Passage) {
	for i := range b.passages {
		p := &b.passages[i]
		switch {
		case p.Namespace != g.Namespace || p.Labels[v1alpha1.LabelGate] != g.Name:
		case p.Active():
			active = p
		case newest == nil || p.CreationTimestamp.After(newest.CreationTimestamp.Time):
			newest = p
		}
	}
	return active, newest
}

// outcome records what the newest finished Passage came to. verifying says why
// a Bundle that crossed has not cleared the Gate yet.
func (b *beat) outcome(g *v1alpha1.Gate, p *v1alpha1.Passage) (verifying string, err error) {
	if p == nil {
		return "", nil
	}
	bundle := b.bundle(p.Namespace, p.Spec.Bundle)
	if bundle == nil {
		return "", nil
	}
	mark := v1alpha1.BundleMark{Gate: g.Name, At: p.Ended(), Passage: p.Name, Actor: p.Spec.Actor}
	same := func(m v1alpha1.BundleMark) bool { return m.Gate == g.Name && m.Passage == p.Name }
	if p.Phase() != v1alpha1.PassageSucceeded {
		if slices.ContainsFunc(bundle.Status.Blocked, same) {
			return "", nil
		}
		mark.Reason = p.Status.Message
		return "", change(b, bundle, func(x *v1alpha1.Bundle) error {
			x.Status.Blocked = prepend(x.Status.Blocked, mark)
			return nil
		})
	}
	if !slices.ContainsFunc(g.Status.History, func(e v1alpha1.GateEntry) bool { return e.Passage == p.Name }) {
		entry := v1alpha1.GateEntry{Bundle: bundle.Name, EnteredAt: p.Ended(), Digest: bundle.Spec.Digest, Passage: p.Name, Actor: p.Spec.Actor}
		g.Status.Current = &entry
		g.Status.History = prepend(g.Status.History, entry)
	}
	if slices.ContainsFunc(bundle.Status.Cleared, same) {
		return "", nil
	}
	if verifying, err = b.verify(g); err != nil || verifying != "" {
		return verifying, err
	}
	return "", change(b, bundle, func(x *v1alpha1.Bundle) error {
		x.Status.Cleared = append(x.Status.Cleared, mark)
		return nil
	})
}

func prepend[T any](list []T, x T) []T {
	list = slices.Insert(list, 0, x)
	return list[:min(len(list), mostKept)]
}

// verify asks the Canaries of a Gate, which stay as the estate has them.
func (b *beat) verify(g *v1alpha1.Gate) (string, error) {
	for _, v := range g.Spec.Verify {
		var of resource
		if v.With != nil {
			if err := json.Unmarshal(v.With.Raw, &of); err != nil {
				return "", err
			}
		}
		if of.Namespace == "" {
			of.Namespace = g.Namespace
		}
		c := &unstructured.Unstructured{}
		c.SetGroupVersionKind(schema.GroupVersionKind{Group: "flagger.app", Version: "v1beta1", Kind: "Canary"})
		if err := b.world.Get(context.Background(), client.ObjectKey{Namespace: of.Namespace, Name: of.Name}, c); err != nil {
			return fmt.Sprintf("Canary %s cannot be read", of.Name), nil
		}
		if phase := text(c, "status", "phase"); phase != "Succeeded" && phase != "Initialized" {
			return fmt.Sprintf("Canary %s is %s", of.Name, phase), nil
		}
	}
	return "", nil
}

// eligible lists what may enter and returns what the Gate admits at all, both
// newest first.
func (b *beat) eligible(g *v1alpha1.Gate) (admitted []*v1alpha1.Bundle) {
	g.Status.Eligible = nil
	for i := range b.bundles {
		x := &b.bundles[i]
		if x.Namespace != g.Namespace {
			continue
		}
		v := gate.Judge(g, x)
		if v.Admitted {
			admitted = append(admitted, x)
		}
		if v.Eligible() {
			g.Status.Eligible = append(g.Status.Eligible, x.Name)
		}
	}
	return admitted
}

// advance opens a Passage where the Gate does so by itself, or says why not.
func (b *beat) advance(g *v1alpha1.Gate, admitted []*v1alpha1.Bundle) (opened *v1alpha1.Passage, reason, message string, err error) {
	idle := v1alpha1.GateReasonIdle
	n := len(g.Status.Eligible)
	switch {
	case n == 0:
		return nil, idle, commonest(g, admitted), nil
	case !g.Spec.Auto:
		return nil, idle, fmt.Sprintf("%d Bundle(s) eligible; crossing must be requested", n), nil
	}
	next := b.bundle(g.Namespace, g.Status.Eligible[0])
	if g.Status.Current != nil {
		if current := b.bundle(g.Namespace, g.Status.Current.Bundle); current != nil && !gate.StrictlyNewer(next, current) {
			return nil, idle, "nothing newer than the current Bundle", nil
		}
	}
	for _, m := range next.Status.Blocked {
		if m.Gate == g.Name {
			return nil, v1alpha1.GateReasonCrossingFailed, fmt.Sprintf("%s did not cross and will not be retried automatically: %s — retry with `hecate promote %s --bundle %s`",
				next.Name, m.Reason, g.Name, next.Name), nil
		}
	}
	if state := gate.CheckWindows(g.Spec.Windows, b.now.Time); !state.Open {
		return nil, v1alpha1.GateReasonWindowClosed, state.Reason, nil
	}
	p, err := gate.BuildPassage(g, next, controllerActor)
	if err != nil {
		return nil, v1alpha1.GateReasonPassageFailed, err.Error(), nil
	}
	if err := b.world.Create(p, b.now.Time); err != nil {
		return nil, "", "", err
	}
	return p, "", "", nil
}

// commonest is why most of the admitted Bundles may not enter.
func commonest(g *v1alpha1.Gate, admitted []*v1alpha1.Bundle) string {
	if len(admitted) == 0 {
		return "no Bundles from any admitted Beacon"
	}
	counts := map[string]int{}
	best := ""
	for _, x := range admitted {
		r := gate.Judge(g, x).Reason()
		counts[r]++
		if best == "" || counts[r] > counts[best] {
			best = r
		}
	}
	if counts[best] == len(admitted) {
		return best
	}
	return fmt.Sprintf("%s (%d of %d Bundles)", best, counts[best], len(admitted))
}

// severity of a health, worst last.
var severity = []v1alpha1.HealthStatus{
	v1alpha1.HealthHealthy, v1alpha1.HealthNotApplicable, v1alpha1.HealthProgressing, v1alpha1.HealthUnknown, v1alpha1.HealthDegraded,
}

// health assesses what the Gate watches and what its last crossing waited for.
func (b *beat) health(g *v1alpha1.Gate) error {
	checks := slices.Clone(g.Spec.Watch)
	if c := g.Status.Current; c != nil {
		p := find(b.passages, func(x *v1alpha1.Passage) bool { return x.Namespace == g.Namespace && x.Name == c.Passage })
		if p != nil && p.Status != nil {
			checks = append(checks, p.Status.Watch...)
		}
	}
	h := v1alpha1.Health{Status: v1alpha1.HealthHealthy}
	seen := map[string]any{}
	for _, c := range checks {
		for _, r := range with(v1alpha1.Step{With: c.With}).Resources {
			if r.Namespace == "" {
				r.Namespace = g.Namespace
			}
			if seen[r.key()] != nil {
				continue
			}
			is, err := b.read(r, false, defaultFailAfter)
			if err != nil {
				return err
			}
			seen[r.key()] = map[string]any{"health": is.status, "revision": is.revision}
			if is.issue != "" {
				h.Issues = append(h.Issues, is.issue)
			}
			if slices.Index(severity, is.status) > slices.Index(severity, h.Status) {
				h.Status = is.status
			}
		}
	}
	if len(seen) == 0 {
		h.Status = v1alpha1.HealthNotApplicable
	} else {
		raw, err := json.Marshal(map[string]any{"flux": seen})
		if err != nil {
			return err
		}
		h.Details = jsonOf(raw)
	}
	h.ObservedAt, h.Since = b.now.DeepCopy(), b.now.DeepCopy()
	if old := g.Status.Health; old != nil {
		if old.Status == h.Status {
			h.Since = old.Since
		}
		// An observation of the same is written once a minute, as upstream's
		// reconciles are: a Gate that rests keeps its resourceVersion.
		if old.ObservedAt != nil && b.since(old.ObservedAt) < time.Minute && sameHealth(old, &h) {
			return nil
		}
	}
	g.Status.Health = &h
	return nil
}

func sameHealth(a, b *v1alpha1.Health) bool {
	var x, y any
	if (a.Details == nil) != (b.Details == nil) {
		return false
	}
	if a.Details != nil && (json.Unmarshal(a.Details.Raw, &x) != nil || json.Unmarshal(b.Details.Raw, &y) != nil) {
		return false
	}
	return a.Status == b.Status && slices.Equal(a.Issues, b.Issues) && fmt.Sprint(x) == fmt.Sprint(y)
}
