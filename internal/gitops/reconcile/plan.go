package reconcile

import (
	"fmt"
	"slices"
)

// Build plans the wanted Kustomizations of a graph. It is pure: the same nodes
// and wishes give the same plan in any order. A dependency that is not in the
// graph is Flux's to judge (it may come from elsewhere); one that is in the graph
// and would be declined declines all that wait for it, wanted or not.
func Build(nodes []Node, want []Key) Plan {
	b := builder{nodes: map[Key]*Node{}, twice: map[Key]bool{}, wanted: map[Key]bool{}}
	for i := range nodes {
		n := &nodes[i]
		if b.nodes[n.Key] != nil {
			b.twice[n.Key] = true
			continue
		}
		b.nodes[n.Key] = n
	}
	for _, k := range want {
		b.wanted[k] = true
	}
	b.cyclic = b.cycles()
	b.refused = b.refusals()
	return b.plan()
}

type builder struct {
	nodes  map[Key]*Node
	twice  map[Key]bool
	wanted map[Key]bool
	cyclic map[Key]bool
	// refused are the nodes that can't be expected to become ready.
	refused map[Key]Declined
}

// refuse judges a node by itself.
func (b *builder) refuse(k Key) (Reason, string) {
	n := b.nodes[k]
	switch {
	case n == nil:
		return NotInGraph, "no Kustomization of that namespace and name is in the graph of this cluster"
	case b.cyclic[k]:
		return InCycle, "it waits for itself through spec.dependsOn; Flux would never reconcile it"
	case b.twice[k]:
		return ValidationFailed, "two Kustomizations of this cluster have this namespace and name"
	case n.Verdict == "fail":
		return ValidationFailed, "its validation failed"
	case n.State == "failed":
		return ValidationFailed, "it could not be rendered"
	case n.Verdict != "pass" && n.Verdict != "warn" && n.External:
		return NotValidated, "its manifests are not in this repository, so they were not validated"
	case n.Verdict != "pass" && n.Verdict != "warn":
		return NotValidated, "it has no validation verdict; pass or warn is needed"
	case n.Suspended:
		return SuspendedInGraph, "spec.suspend is true; Flux ignores requests to it"
	}
	return "", ""
}

// blocks says that a dependency stops what waits for it. An unwanted one that is
// only unvalidated or suspended may well be ready in the cluster.
func (b *builder) blocks(k Key, code Reason) bool {
	return b.wanted[k] || code == InCycle || code == ValidationFailed
}

// refusals are the nodes and wishes that are stopped by what they are or by what
// they wait for.
func (b *builder) refusals() map[Key]Declined {
	keys := map[Key]bool{}
	dependants := map[Key][]Key{}
	for k, n := range b.nodes {
		keys[k] = true
		for _, d := range n.DependsOn {
			dependants[d] = append(dependants[d], k)
		}
	}
	for k := range b.wanted {
		keys[k] = true
	}
	refused := map[Key]Declined{}
	var queue []Key
	for _, k := range sortedKeys(keys) {
		if code, detail := b.refuse(k); code != "" && b.blocks(k, code) {
			refused[k] = Declined{k, code, detail}
			queue = append(queue, k)
		}
	}
	// Breadth first from sorted starts: the nearest cause is named, always the same.
	for i := 0; i < len(queue); i++ {
		cause := refused[queue[i]]
		next := dependants[cause.Key]
		slices.SortFunc(next, Key.Compare)
		for _, k := range next {
			if _, ok := refused[k]; ok {
				continue
			}
			refused[k] = Declined{k, DependencyDeclined, fmt.Sprintf("it waits for %s, which can't become ready (%s)", cause.Key, cause.Code)}
			queue = append(queue, k)
		}
	}
	return refused
}

func (b *builder) plan() Plan {
	p := Plan{Waves: [][]Item{}, Declined: []Declined{}}
	waits := newWaits(b)
	for _, k := range sortedKeys(b.wanted) {
		if d, ok := b.refused[k]; ok {
			p.Declined = append(p.Declined, d)
			continue
		}
		n, wave := b.nodes[k], waits.wave(k)
		for len(p.Waves) <= wave {
			p.Waves = append(p.Waves, []Item{})
		}
		source := n.Source
		if source.Name != "" && source.Namespace == "" {
			source.Namespace = k.Namespace
		}
		p.Waves[wave] = append(p.Waves[wave], Item{Key: k, DependsOn: sortedKeys(waits.planned(k)), Source: source, Wave: wave})
	}
	return p
}

// waits answers for nodes outside cycles which planned items they wait for.
type waits struct {
	b     *builder
	near  map[Key]map[Key]bool
	waves map[Key]int
}

func newWaits(b *builder) *waits {
	return &waits{b: b, near: map[Key]map[Key]bool{}, waves: map[Key]int{}}
}

// planned are the nearest planned items below a node.
func (w *waits) planned(k Key) map[Key]bool {
	if set, ok := w.near[k]; ok {
		return set
	}
	set := map[Key]bool{}
	for _, d := range w.b.nodes[k].DependsOn {
		_, refused := w.b.refused[d]
		switch {
		case w.b.nodes[d] == nil:
		case w.b.wanted[d] && !refused:
			set[d] = true
		default:
			for below := range w.planned(d) {
				set[below] = true
			}
		}
	}
	w.near[k] = set
	return set
}

// wave is the length of the longest chain of planned items below a node.
func (w *waits) wave(k Key) int {
	if depth, ok := w.waves[k]; ok {
		return depth
	}
	depth := 0
	for d := range w.planned(k) {
		depth = max(depth, 1+w.wave(d))
	}
	w.waves[k] = depth
	return depth
}
