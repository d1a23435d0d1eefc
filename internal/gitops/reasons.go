package gitops

import (
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// maxReasons bounds the reasons of one Kustomization.
const maxReasons = 20

// cause is what may have changed one Kustomization: files that explain it by
// themselves, and Kustomizations whatever explains which explains it.
type cause struct {
	direct []Reason
	links  []link
}

// link leads from a Kustomization to one that it changes, by the object via, or,
// when there is none, by rendering it.
type link struct {
	from KustomizationKey
	via  string
}

// reasons are the ways from changed files to Kustomizations: files that the build
// reads, else what changed the Kustomization itself, its variables or its source.
// A Kustomization of which what certainly changed leads nowhere is explained by
// what may have.
func (c *comparison) reasons(keys []KustomizationKey) map[KustomizationKey][]Reason {
	why := c.spread(keys, false)
	rest := slices.DeleteFunc(slices.Clone(keys), func(k KustomizationKey) bool { return len(why[k]) > 0 })
	if len(rest) > 0 {
		may := c.spread(rest, true)
		for _, k := range rest {
			why[k] = may[k]
			for _, r := range may[k] {
				c.mapped[r.File] = true
			}
		}
	}
	return why
}

// spread carries the reasons of Kustomizations, and of those that they are linked
// to, along the links. Each reason comes to each Kustomization once, by a shortest
// way, so that rings (two that take variables from each other, say) are walked
// round and no more often, wherever one begins.
func (c *comparison) spread(keys []KustomizationKey, loose bool) map[KustomizationKey][]Reason {
	type way struct {
		to, via string
		key     KustomizationKey
	}
	type arrival struct {
		key KustomizationKey
		// id is the way within the Kustomization where it begins.
		id string
		r  Reason
	}
	out := map[KustomizationKey][]Reason{}
	have := map[KustomizationKey]map[string]bool{}
	ways := map[KustomizationKey][]way{}
	var now, next []arrival
	come := func(a arrival) {
		if have[a.key] == nil {
			have[a.key] = map[string]bool{}
		}
		if len(out[a.key]) < maxReasons && !have[a.key][a.id] {
			have[a.key][a.id] = true
			out[a.key] = append(out[a.key], a.r)
			next = append(next, a)
		}
	}
	seen := map[KustomizationKey]bool{}
	for queue := slices.Clone(keys); len(queue) > 0; queue = queue[1:] {
		k := queue[0]
		if seen[k] {
			continue
		}
		seen[k] = true
		found := c.cause(k, loose)
		for _, r := range found.direct {
			if !loose {
				c.mapped[r.File] = true
			}
			come(arrival{k, strings.Join(r.Path, "\x00"), r})
		}
		for _, l := range found.links {
			if w := (way{"Kustomization " + k.String(), l.via, k}); !slices.Contains(ways[l.from], w) {
				ways[l.from] = append(ways[l.from], w)
			}
			queue = append(queue, l.from)
		}
	}
	for len(next) > 0 {
		now, next = next, nil
		for _, a := range now {
			for _, w := range ways[a.key] {
				steps := slices.Clone(a.r.Path)
				if w.via != "" {
					steps = append(steps, w.via)
				}
				come(arrival{w.key, a.id, Reason{a.r.File, append(steps, w.to)}})
			}
		}
	}
	return out
}

// cause finds what changed a Kustomization; loose takes what may have changed it,
// too.
func (c *comparison) cause(k KustomizationKey, loose bool) cause {
	b, h := c.base.node(k), c.head.node(k)
	var out cause
	both := b != nil && h != nil
	if both {
		out.direct = c.ownFiles(k)
	}
	// The Kustomization itself: new, gone, or edited.
	if !both || specOf(b) != specOf(h) {
		out.add(c.ownDocument(k, b, h))
		if !both {
			out.direct = append(out.direct, c.ownFiles(k)...)
		}
	}
	if both && b.vars.signature() != h.vars.signature() {
		out.add(c.variables(k, b, h, loose))
	}
	if both && (loose || len(out.direct)+len(out.links) == 0) {
		out.add(c.sources(k, b, h, loose))
	}
	return out
}

func (x *cause) add(y cause) {
	x.direct = append(x.direct, y.direct...)
	x.links = append(x.links, y.links...)
}

func specOf(n *node) string {
	b, err := json.Marshal(at(n.object, "spec"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// ownFiles are the changed files among what the build of either side looked at.
func (c *comparison) ownFiles(k KustomizationKey) []Reason {
	var out []Reason
	for _, s := range c.sides() {
		n := s.node(k)
		if n == nil {
			continue
		}
		for _, hit := range c.hits(n) {
			out = append(out, Reason{hit.repo, append(wayThrough(n, hit.local), "Kustomization "+k.String())})
		}
	}
	slices.SortStableFunc(out, func(a, b Reason) int { return strings.Compare(a.File, b.File) })
	return out
}

// wayThrough are the repository's files from one that is read up to the entry:
// each named by the next.
func wayThrough(n *node, local string) []string {
	way := []string{n.art.art.RepoPath(local)}
	seen := map[string]bool{local: true}
	for at := local; ; {
		next := ""
		for dir := at; next == "" && dir != "." && dir != "/"; dir = path.Dir(dir) {
			for _, from := range n.build.result.Edges[dir] {
				if from != "" && !seen[from] {
					next = from
					break
				}
			}
		}
		if next == "" {
			return way
		}
		seen[next] = true
		way = append(way, n.art.art.RepoPath(next))
		at = next
	}
}

// madeFrom are the changed files that an object of a build was made of.
func (c *comparison) madeFrom(n *node, from render.Origin) []hit {
	mine := map[string]bool{from.File: true, from.Generator: true}
	for _, t := range from.Transformers {
		mine[t.File] = true
	}
	return slices.DeleteFunc(slices.Clone(c.hits(n)), func(x hit) bool { return !mine[x.local] })
}

// ownDocument explains a Kustomization whose own object changed: by the file of
// its document, or by what changed the Kustomization that renders it.
func (c *comparison) ownDocument(k KustomizationKey, b, h *node) cause {
	var out cause
	self := "Kustomization " + k.String()
	for i, n := range []*node{b, h} {
		if n == nil {
			continue
		}
		s := c.sides()[i]
		if n.root != nil {
			if _, ok := c.changed[n.place.File]; ok {
				out.direct = append(out.direct, Reason{n.place.File, []string{n.place.File, self}})
			}
			continue
		}
		// The files of the parent that this object was made of come first.
		up := s.node(n.parent)
		if up == nil || up.build == nil || n.made == nil {
			continue
		}
		for _, x := range c.madeFrom(up, s.d.e.originOf(up.art, n.made)) {
			out.direct = append(out.direct, Reason{x.repo, append(wayThrough(up, x.local), "Kustomization "+up.key.String(), self)})
		}
	}
	if len(out.direct) > 0 {
		return out
	}
	for _, n := range []*node{h, b} {
		if n != nil && n.root == nil {
			out.links = append(out.links, link{from: n.parent})
		}
	}
	return out
}

// variables explains a Kustomization by the ConfigMaps and Secrets that its
// values come from, or came from.
func (c *comparison) variables(k KustomizationKey, b, h *node, loose bool) cause {
	var out cause
	seen := map[Object]bool{}
	for _, n := range []*node{h, b} {
		for _, f := range list(n.object, "spec", "postBuild", "substituteFrom") {
			id := Object{Kind: str(f, "kind"), Namespace: k.Namespace, Name: str(f, "name")}
			if !seen[id] {
				seen[id] = true
				out.add(c.through(k, id, loose))
			}
		}
	}
	return out
}

// sources explains a Kustomization by what its artifact is made of: ignore rules,
// and the objects that declare its source.
func (c *comparison) sources(k KustomizationKey, b, h *node, loose bool) cause {
	var out cause
	for _, f := range c.ignores {
		out.direct = append(out.direct, Reason{f, []string{f, h.ref.String(), "Kustomization " + k.String()}})
	}
	ids := map[Object]bool{}
	c.base.d.madeOf(k.Cluster, b.ref, ids)
	c.head.d.madeOf(k.Cluster, h.ref, ids)
	all := slices.Collect(maps.Keys(ids))
	slices.SortFunc(all, func(x, y Object) int { return strings.Compare(x.String(), y.String()) })
	for _, id := range all {
		out.add(c.through(k, id, loose))
	}
	return out
}

// through explains a Kustomization by an object of its cluster that the change
// alters (loose: or may): by the changed files that the object comes from, else by
// what changed the Kustomization that renders it.
func (c *comparison) through(k KustomizationKey, id Object, loose bool) cause {
	var out cause
	self := "Kustomization " + k.String()
	before, after := c.base.renderings(k.Cluster, id), c.head.renderings(k.Cluster, id)
	docsBefore, docsAfter := c.base.changedDocuments(c.changed, id), c.head.changedDocuments(c.changed, id)
	if !loose && slices.EqualFunc(before, after, func(x, y rendering) bool { return x.m == y.m || x.m.digest() == y.m.digest() }) &&
		slices.EqualFunc(docsBefore, docsAfter, func(x, y document) bool { return reflect.DeepEqual(x.obj, y.obj) }) {
		return out
	}
	for _, at := range []struct {
		s          *side
		renderings []rendering
		docs       []document
	}{{c.base, before, docsBefore}, {c.head, after, docsAfter}} {
		for _, r := range at.renderings {
			for _, x := range c.madeFrom(r.n, at.s.d.e.originOf(r.n.art, r.m)) {
				out.direct = append(out.direct, Reason{x.repo, append(wayThrough(r.n, x.local), "Kustomization "+r.n.key.String(), id.String(), self)})
			}
			if len(out.direct) == 0 && r.n.key != k {
				out.links = append(out.links, link{r.n.key, id.String()})
			}
		}
		if len(at.renderings) > 0 {
			continue // what stands in a file counts where nothing renders it
		}
		for _, doc := range at.docs {
			out.direct = append(out.direct, Reason{doc.File, []string{doc.File, id.String(), self}})
		}
	}
	return out
}
