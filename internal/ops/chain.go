package ops

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// maxLinks bounds a chain; upstream graphs are small, so this is a guard.
const maxLinks = 40

// chain walks from a Gate to the root causes, symptom first. Branches stand
// one after the other, each link with its depth.
type chain struct {
	e     *estate
	links []Link
	// human is what a person can do at the roots further up.
	human []HumanStep
	seen  map[string]bool // kind/namespace/name: a cause is told once
}

func (c *chain) add(l Link) bool {
	id := string(l.Kind) + "/" + l.Object.Kind + "/" + l.Object.Namespace + "/" + l.Object.Name
	if c.seen[id] || len(c.links) >= maxLinks {
		return false
	}
	c.seen[id] = true
	c.links = append(c.links, l)
	return true
}

// linkOf makes a link of a blocker.
func linkOf(b Blocker, depth int) Link {
	return Link{Kind: ChainKind(b.Kind), Object: *b.Object, Detail: b.Detail, Since: b.Since, Depth: depth}
}

// causal is the chain of a Gate: its first blocker, and every Gate upstream
// that the Bundle waits for, to the ends.
func (v *view) causal(blockers []Blocker) ([]Link, []HumanStep) {
	c := &chain{e: v.e, seen: map[string]bool{}}
	for i, b := range blockers {
		switch {
		case b.Kind == BlockerUpstream:
			if f := v.front(); f != nil {
				c.upstream(v, f, linkOf(b, 0), []string{v.g.Name})
			}
		case b.Kind == BlockerNoBundles:
			c.noBundles(v, b)
		case b.Kind == BlockerManual:
			// A Gate that waits to be asked is no trouble to explain.
		case i == 0:
			c.blocker(b, 0)
		}
	}
	return c.links, c.human
}

// blocker adds a blocker as the end of a branch, with the object that holds it
// up where one is known.
func (c *chain) blocker(b Blocker, depth int) {
	l := linkOf(b, depth)
	follow := b.Kind == BlockerStepWaiting && (b.Reason == reasonFluxMissing || b.Reason == reasonFluxSuspended) && len(b.Objects) > 0
	l.Root = !follow
	if c.add(l) && depth > 0 {
		c.offer(b.HumanSteps...)
	}
	if !follow {
		return
	}
	for _, o := range b.Objects {
		kind, what := ChainFluxSuspended, "is suspended, so Flux will not reconcile it"
		if live := c.e.live[o]; !live.found {
			kind, what = ChainKind(BlockerNotFound), "does not exist"
		}
		c.add(Link{Kind: kind, Object: o, Detail: fmt.Sprintf("%s %s/%s %s", o.Kind, o.Namespace, o.Name, what), Depth: depth + 1, Root: true})
	}
}

// offer keeps the steps that have a command.
func (c *chain) offer(steps ...HumanStep) {
	for _, h := range steps {
		if h.Command != "" {
			c.human = append(c.human, h)
		}
	}
}

func (c *chain) noBundles(v *view, b Blocker) {
	symptom := linkOf(b, 0)
	symptom.Detail = "no Bundle from any admitted Beacon"
	c.add(symptom)
	for _, cause := range v.beaconCauses() {
		c.add(Link{Kind: ChainKind(cause.code), Object: cause.object, Detail: cause.detail, Since: cause.since, Depth: 1, Root: true})
	}
}

// upstream follows a Bundle through the Gates that it has not cleared.
func (c *chain) upstream(v *view, b *v1alpha1.Bundle, symptom Link, path []string) {
	if !c.add(symptom) {
		return // told already, or enough: a lattice of Gates has endless paths
	}
	depth := symptom.Depth + 1
	for _, name := range v.verdicts[b.Name].Missing {
		object := hecate(v1alpha1.KindGate, v.g.Namespace, name)
		if slices.Contains(path, name) {
			round := append(slices.Clone(path[slices.Index(path, name):]), name)
			c.add(Link{Kind: ChainCycle, Object: object, Detail: "the Gates wait for each other: " + strings.Join(round, " → "), Depth: depth, Root: true})
			continue
		}
		up := c.e.byGate[key{Namespace: v.g.Namespace, Name: name}]
		if up == nil {
			c.add(Link{Kind: ChainGateNotFound, Object: object, Depth: depth, Root: true,
				Detail: fmt.Sprintf("Gate %s waits for %q, which does not exist%s", v.g.Name, clean(name, 253), didYouMean(name, c.e.gateNames(v.g.Namespace)))})
			continue
		}
		c.gate(c.e.view(up), b, depth, append(slices.Clone(path), name))
	}
}

// gate says why a Bundle has not cleared a Gate upstream.
func (c *chain) gate(u *view, b *v1alpha1.Bundle, depth int, path []string) {
	self := u.object()
	end := func(kind ChainKind, since *metav1.Time, format string, args ...any) {
		c.add(Link{Kind: kind, Object: self, Detail: fmt.Sprintf(format, args...), Since: since, Depth: depth, Root: true})
	}
	verdict, admitted := u.verdicts[b.Name]
	if !admitted {
		end(ChainNotAdmitted, nil, "Gate %s does not admit Bundles of Beacon %s, so %s can never clear it", u.g.Name, b.Spec.Beacon, b.Name)
		return
	}
	// It is crossing, or something else is.
	for _, p := range u.running {
		if p.Spec.Bundle == b.Name {
			if step := u.stepObstacle(p); step != nil {
				c.blocker(*step, depth)
			} else if why, since := u.stale(false); why != "" {
				end(ChainKind(BlockerControllerStale), since, "%s", why)
			} else {
				end(ChainCrossing, u.started(p), "%s is crossing %s in Passage %s", b.Name, u.g.Name, p.Name)
			}
			if u.g.Spec.Suspend {
				end(ChainKind(BlockerSuspended), u.since(v1alpha1.GateReasonSuspended), "Gate %s is suspended: it will not record how the crossing ends", u.g.Name)
			}
			return
		}
	}
	var found []Blocker
	for _, o := range u.gateObstacles() {
		switch o.Kind {
		case BlockerUnhealthy, BlockerNotFound, BlockerConcurrent, BlockerStepWaiting, BlockerChangeHeld:
			// About the Gate's present Bundle, not about this one.
		case BlockerVerifying, BlockerVerificationFailed:
			if verdict.Current {
				found = append(found, o)
			}
		default:
			found = append(found, o)
		}
	}
	if failed := u.failureOf(b); failed != nil {
		found = append(found, u.failureObstacle(failed))
	}
	if !verdict.Current {
		found = append(found, u.bundleObstacles(b, []*v1alpha1.Bundle{b})...)
	}
	sortBlockers(found)
	for _, o := range found {
		if o.Kind == BlockerUpstream {
			c.upstream(u, b, linkOf(o, depth), path)
			continue
		}
		c.blocker(o, depth)
	}
	if len(found) > 0 {
		return
	}
	switch {
	case verdict.Current:
		end(ChainStatusLags, &u.g.Status.Current.EnteredAt, "%s is in %s, and its mark as cleared is not written yet", b.Name, u.g.Name)
	case len(u.running) > 0:
		end(ChainCrossing, u.started(u.running[0]), "Gate %s is busy: Passage %s takes %s through it", u.g.Name, u.running[0].Name, u.running[0].Spec.Bundle)
	case u.wasIn(b):
		end(ChainSuperseded, nil, "%s was in %s and left it before it cleared: what came after has to be crossed again, or it itself", b.Name, u.g.Name)
	case u.g.Spec.Auto && u.front() != b:
		newer := "a newer Bundle"
		if f := u.front(); f != nil {
			newer = f.Name
		} else if u.current != nil {
			newer = u.current.Name
		}
		end(ChainSuperseded, nil, "automatic Gate %s goes for %s and will not take %s by itself", u.g.Name, newer, b.Name)
	case u.g.Spec.Auto:
		end(ChainStatusLags, &b.CreationTimestamp, "automatic Gate %s may take %s at its next reconcile", u.g.Name, b.Name)
	default:
		end(ChainNeverTried, nil, "%s could cross %s, but nobody has asked for it", b.Name, u.g.Name)
		c.offer(HumanStep{promoteCommand(u.g.Namespace, b.Name, u.g.Name), "asks for the crossing of " + u.g.Name})
	}
}

func (v *view) started(p *v1alpha1.Passage) *metav1.Time {
	if p.Status != nil && p.Status.StartedAt != nil {
		return p.Status.StartedAt
	}
	return &p.CreationTimestamp
}

// wasIn says whether the Bundle was in this Gate at some time.
func (v *view) wasIn(b *v1alpha1.Bundle) bool {
	return slices.ContainsFunc(v.g.Status.History, func(h v1alpha1.GateEntry) bool { return h.Bundle == b.Name })
}

// upstreamGates are the Gates that the chain of a Gate visits: those that the
// Bundles waiting for it have not cleared, and so on upwards. Their Passages
// have to be read before the chain is told.
func (e *estate) upstreamGates(g *v1alpha1.Gate) []*v1alpha1.Gate {
	front := e.view(g).front()
	if front == nil {
		return nil
	}
	var out []*v1alpha1.Gate
	seen := map[string]bool{g.Name: true}
	var visit func(g *v1alpha1.Gate)
	visit = func(g *v1alpha1.Gate) {
		for _, name := range gate.Judge(g, front).Missing {
			up := e.byGate[key{Namespace: g.Namespace, Name: name}]
			if up == nil || seen[name] {
				continue
			}
			seen[name] = true
			out = append(out, up)
			visit(up)
		}
	}
	visit(g)
	return out
}

func (e *estate) gateNames(namespace string) []string {
	var out []string
	for i := range e.gates {
		if e.gates[i].Namespace == namespace {
			out = append(out, e.gates[i].Name)
		}
	}
	return out
}

// rootsOf are the ends of a chain.
func rootsOf(links []Link) []Link {
	var out []Link
	for _, l := range links {
		if l.Root {
			out = append(out, l)
		}
	}
	return out
}
