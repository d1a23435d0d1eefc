package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Pinned is a plan together with what it rests on in the cluster: what a person
// is shown, and what is compared before it is executed.
type Pinned struct {
	Plan Plan `json:"plan"`
	// Cluster is what the objects are in: the context of the kubeconfig.
	Cluster string `json:"cluster"`
	// Commit is what the plan was computed from; "" when no repository was asked.
	Commit string `json:"commit,omitempty"`
	// Pins are by object, in the plan's order, sources after their first user.
	Pins []Pin `json:"pins"`
	// Problems are what stops items in the cluster; the plan goes on without them.
	Problems []Declined `json:"problems"`
}

// Pin is the part of an object that decides what reconciling it does. Status and
// resourceVersion are not in it: controllers write those all the time.
type Pin struct {
	Object     string `json:"object"`
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	// Revision is that of a source's artifact: it moves by itself, so it is shown
	// and no part of the digest.
	Revision string `json:"-"`
}

// Change is a pin that is not what it was.
type Change struct {
	Field, Planned, Now string
}

// One plans a single Kustomization of a cluster with the source that it names.
func One(k Key) Plan {
	return Plan{Waves: [][]Item{{{Key: k, DependsOn: []Key{}}}}, Declined: []Declined{}}
}

// PinPlan looks a plan's objects up. An item whose object is missing, suspended or
// being deleted is taken out of the plan with its reason, and what waits for it
// as well: a request to it would be ignored. The error is that of reading.
func PinPlan(ctx context.Context, c client.Client, plan Plan, cluster, commit string) (*Pinned, error) {
	p := &Pinned{Cluster: cluster, Commit: commit, Pins: []Pin{}, Problems: []Declined{}, Plan: Plan{Waves: [][]Item{}, Declined: plan.Declined}}
	e := &Executor{Client: c}
	out := map[Key]bool{}
	seen := map[string]bool{}
	for _, wave := range plan.Waves {
		kept := []Item{}
		for _, item := range wave {
			o := kustomization(item.Key)
			problem := func(code Reason, format string, args ...any) {
				out[item.Key] = true
				p.Problems = append(p.Problems, Declined{item.Key, code, fmt.Sprintf(format, args...)})
			}
			if i := slices.IndexFunc(item.DependsOn, func(d Key) bool { return out[d] }); i >= 0 {
				problem(DependencyDeclined, "it waits for %s, which can't be reconciled", item.DependsOn[i])
				continue
			}
			u := o.empty()
			if err := c.Get(ctx, client.ObjectKeyFromObject(u), u); err != nil {
				f := refusal(o, err)
				if f == nil || f.code != NotFound {
					return nil, err
				}
				problem(NotInCluster, "%s", f.message)
				continue
			}
			s := statusOf(u)
			if s.suspended || s.deleting {
				problem(SuspendedInGraph, "%s is suspended or being deleted; Flux ignores requests to it", o)
				continue
			}
			ref := liveSource(u)
			if ref.Namespace == "" {
				ref.Namespace = item.Namespace
			}
			item.Source = ref
			kept = append(kept, item)
			p.Pins = append(p.Pins, Pin{Object: o.String(), UID: string(u.GetUID()), Generation: u.GetGeneration(), Revision: s.applied})
			src := source(ref)
			if ref.Kind == externalArtifact || seen[ref.String()] {
				continue
			}
			seen[ref.String()] = true
			su, err := e.get(ctx, src)
			if err != nil {
				problem(SourceMissing, "%s", err.Error())
				kept, p.Pins = kept[:len(kept)-1], p.Pins[:len(p.Pins)-1]
				continue
			}
			p.Pins = append(p.Pins, Pin{Object: src.String(), UID: string(su.GetUID()), Generation: su.GetGeneration(), Revision: statusOf(su).artifact})
		}
		if len(kept) > 0 {
			p.Plan.Waves = append(p.Plan.Waves, kept)
		}
	}
	return p, nil
}

// Items counts what would be reconciled.
func (p *Pinned) Items() int {
	n := 0
	for _, w := range p.Plan.Waves {
		n += len(w)
	}
	return n
}

// Digest is the SHA-256 of what is pinned, in hex.
func (p *Pinned) Digest() string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic("reconcile: a Pinned holds texts and numbers only: " + err.Error())
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Title says in one line what would be done.
func (p *Pinned) Title() string {
	if p.Items() == 1 {
		return fmt.Sprintf("reconcile Kustomization %s in %s, with its source", p.first(), p.Cluster)
	}
	return fmt.Sprintf("reconcile %d Kustomizations in %s, in %d waves, with their sources", p.Items(), p.Cluster, len(p.Plan.Waves))
}

func (p *Pinned) first() Key {
	for _, w := range p.Plan.Waves {
		for _, i := range w {
			return i.Key
		}
	}
	return Key{}
}

// maxShown bounds how many objects a person is shown of each list.
const maxShown = 40

// Lines are what a person has to see before saying yes.
func (p *Pinned) Lines() []string {
	lines := []string{"cluster: " + p.Cluster}
	if p.Commit != "" {
		lines = append(lines, "set computed at commit: "+p.Commit)
	}
	shown := 0
	for i, w := range p.Plan.Waves {
		for _, item := range w {
			if shown++; shown > maxShown {
				continue
			}
			lines = append(lines, fmt.Sprintf("wave %d: %s from %s", i+1, item.Key, item.Source))
		}
	}
	if n := p.Items() - maxShown; n > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", n))
	}
	for i, d := range slices.Concat(p.Plan.Declined, p.Problems) {
		if i == maxShown {
			lines = append(lines, "… and more that are not reconciled")
			break
		}
		lines = append(lines, fmt.Sprintf("not reconciled: %s (%s: %s)", d.Key, d.Code, d.Detail))
	}
	return append(lines, "Flux then applies, and prunes, what the sources hold by then.")
}

// Confirm is the name that a person types: the Kustomization's, or the cluster's
// for several.
func (p *Pinned) Confirm() string {
	if p.Items() == 1 {
		return p.first().Name
	}
	return p.Cluster
}

// Changed compares with the same plan pinned now.
func (p *Pinned) Changed(now *Pinned) []Change {
	var out []Change
	add := func(field, before, after string) {
		if before != after {
			out = append(out, Change{field, before, after})
		}
	}
	add("cluster", p.Cluster, now.Cluster)
	add("commit", p.Commit, now.Commit)
	add("items", p.items(), now.items())
	after := map[string]Pin{}
	for _, pin := range now.Pins {
		after[pin.Object] = pin
	}
	for _, pin := range p.Pins {
		a, ok := after[pin.Object]
		if !ok {
			continue // told by items
		}
		add(pin.Object+" uid", pin.UID, a.UID)
		add(pin.Object+" generation", fmt.Sprint(pin.Generation), fmt.Sprint(a.Generation))
	}
	return out
}

func (p *Pinned) items() string {
	var names []string
	for i, w := range p.Plan.Waves {
		for _, item := range w {
			names = append(names, fmt.Sprintf("%d:%s", i+1, item.Key))
		}
	}
	return strings.Join(names, " ")
}
