package gitops

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// maxRounds bounds the fixpoint: each round renders what the one before brought
// to light, so it is also the depth to which Kustomizations can nest.
const maxRounds = 32

// maxNodes bounds the Kustomizations of one repository: a Kustomization that
// renders ever new ones ends here.
const maxNodes = 10000

// maxObjects bounds the objects of all Kustomizations of one repository: many that
// all render the same many would make as many times as many.
const maxObjects = 500_000

// maxDuplicates bounds the documents with another's key that are reported.
const maxDuplicates = 1000

// snapshot is a repository at a ref, materialised.
type snapshot struct {
	repo   Repo
	tree   *source.Tree
	config Config
	view   *artifactView
	docs   []document
	remote map[string]bool // normalized URLs that mean this repository

	mu    sync.Mutex
	views map[*source.Artifact]*artifactView
}

// viewOf gives an artifact its index, once.
func (s *snapshot) viewOf(a *source.Artifact) *artifactView {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.views[a]; v != nil {
		return v
	}
	v := &artifactView{art: a}
	s.views[a] = v
	return v
}

// open materialises a repository. configFrom, when set, is the tree whose
// configuration file counts.
func (e *Engine) open(ctx context.Context, repo Repo, configFrom *snapshot) (*snapshot, error) {
	tree, err := e.store.Open(ctx, repo.Path, repo.Ref)
	if err != nil {
		return nil, fromSource(err)
	}
	if w, ok := e.builder.(interface{ Warm() }); ok {
		w.Warm()
	}
	s := &snapshot{repo: repo, tree: tree, remote: map[string]bool{}, views: map[*source.Artifact]*artifactView{}}
	art, err := tree.Artifact("")
	if err != nil {
		tree.Release()
		return nil, fromSource(err)
	}
	s.view = s.viewOf(art)
	if configFrom != nil {
		s.config = configFrom.config
	} else if s.config, err = readConfig(tree, art); err != nil {
		tree.Release()
		return nil, err
	} else {
		s.config = s.config.merge(repo.Config)
	}
	if s.docs, err = e.scan(ctx, s.view); err != nil {
		tree.Release()
		return nil, err
	}
	// A folder without Git has no remotes.
	if urls, err := e.store.Remotes(repo.Path); err == nil {
		for _, u := range urls {
			s.remote[normalURL(u)] = true
		}
	}
	return s, nil
}

// readConfig reads a repository's own configuration, which is there for us whatever
// Flux leaves out of its artifact.
func readConfig(tree *source.Tree, art *source.Artifact) (Config, error) {
	if strings.HasPrefix(art.Dropped()[ConfigFile], "ignored") {
		var err error
		if art, err = tree.Artifact("/*\n!/" + ConfigFile); err != nil {
			return Config{}, fromSource(err)
		}
	}
	data, err := readBounded(filepath.Join(art.Dir, ConfigFile), maxRawFile)
	if err != nil {
		return Config{}, &Error{Code: ErrInvalidConfig, Message: ConfigFile + ": " + err.Error()}
	}
	return ParseConfig(data)
}

// readBounded reads a small file; a missing one is empty.
func readBounded(file string, bound int64) ([]byte, error) {
	info, err := os.Stat(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("it can't be read")
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no file")
	}
	if info.Size() > bound {
		return nil, fmt.Errorf("it is larger than %d bytes", bound)
	}
	return os.ReadFile(file)
}

// node is a Kustomization while it is being discovered.
type node struct {
	key    KustomizationKey
	object map[string]any
	parent KustomizationKey
	root   *root
	place  Place
	made   *manifest // the rendered document, nil for a root

	path      string
	ref       SourceRef
	art       *artifactView
	external  string // why the source is elsewhere
	noSource  bool   // the source is declared nowhere
	vars      *variables
	build     *built
	manifests []*manifest
	failure   *render.Error
	unset     []string

	signature string
}

// discovery is one run to the fixpoint.
type discovery struct {
	e    *Engine
	snap *snapshot
	// roots, in the order in which they were accepted.
	roots []*root
	nodes map[KustomizationKey]*node
	// rendered holds, by cluster, the objects that others refer to.
	rendered map[string]map[Object]*manifest
	// strict remembers strictIn, which is asked once all is rendered.
	strict map[string]strictness
	// artifacts are those of this repository, by ignore rules and folder or by what
	// they are composed of.
	artifacts map[string]*artifactView
	duplicate []duplicateNode
	// likely is likelyURLs of this round.
	likely map[string]bool
	round  *round
	// linked counts the files of all artifacts.
	linked int
	// refused says of artifacts that can't be had why.
	refused   map[string]string
	truncated bool
}

// duplicateNode is a second document with the key of another.
type duplicateNode struct{ first, second *node }

// DiscoverFluxGraph finds every Flux Kustomization of a repository, by cluster.
// A repository without any gives an empty graph with a note, not an error.
func (e *Engine) DiscoverFluxGraph(ctx context.Context, repo Repo) (*FluxGraph, error) {
	s, err := e.open(ctx, repo, nil)
	if err != nil {
		return nil, err
	}
	defer s.tree.Release()
	_, g, err := e.discovered(ctx, s)
	return g, err
}

// discovered runs discovery on a snapshot.
func (e *Engine) discovered(ctx context.Context, s *snapshot) (*discovery, *FluxGraph, error) {
	d := &discovery{e: e, snap: s, nodes: map[KustomizationKey]*node{}, rendered: map[string]map[Object]*manifest{}, strict: map[string]strictness{}, artifacts: map[string]*artifactView{}, refused: map[string]string{}}
	if err := d.declaredRoots(ctx); err != nil {
		return nil, nil, err
	}
	if err := d.fixpoint(ctx); err != nil {
		return nil, nil, err
	}
	if err := d.unclaimedRoots(ctx); err != nil {
		return nil, nil, err
	}
	return d, d.graph(), nil
}

// fixpoint renders until nothing new appears.
func (d *discovery) fixpoint(ctx context.Context) error {
	for round := 0; round < maxRounds; round++ {
		pending := d.collect()
		if len(pending) == 0 {
			return nil
		}
		group, gctx := errgroup.WithContext(ctx)
		group.SetLimit(d.e.workers)
		for _, n := range pending {
			group.Go(func() error { return d.render(gctx, n) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		d.boundObjects()
		d.indexRendered()
	}
	d.truncated = true
	return nil
}

// boundObjects takes the objects away from the Kustomizations, in order, with which
// there would be too many.
func (d *discovery) boundObjects() {
	total := 0
	for _, k := range sortedKeys(d.nodes) {
		n := d.nodes[k]
		if total+len(n.manifests) > maxObjects {
			n.manifests = nil
			n.failure = &render.Error{Code: render.TooLarge, Message: fmt.Sprintf("with its objects the Kustomizations of this repository have more than %d: it is not looked into", maxObjects)}
		}
		total += len(n.manifests)
	}
}

// collect walks from the roots through what they render and returns the nodes
// whose inputs changed since they were rendered last.
func (d *discovery) collect() []*node {
	next := map[KustomizationKey]*node{}
	d.duplicate = nil
	var queue, pending []*node
	take := func(n *node) {
		if first := next[n.key]; first != nil {
			if (first.root != n.root || first.parent != n.parent) && len(d.duplicate) < maxDuplicates {
				d.duplicate = append(d.duplicate, duplicateNode{first, n})
			}
			return
		}
		if len(next) >= maxNodes {
			d.truncated = true
			return
		}
		// What was rendered before is kept while its document is the same.
		if old := d.nodes[n.key]; old != nil && old.parent == n.parent && old.root == n.root && (old.made == n.made || old.made != nil && n.made != nil && string(old.made.json) == string(n.made.json)) {
			old.made = n.made
			n = old
		}
		next[n.key] = n
		queue = append(queue, n)
	}
	for _, r := range d.roots {
		take(r.node())
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, m := range n.manifests {
			if !isFluxKustomization(m.APIVersion, m.Kind) || m.Name == "" {
				continue
			}
			ns := m.Namespace
			if ns == "" {
				ns = n.key.Namespace
			}
			key := KustomizationKey{n.key.Cluster, ns, m.Name}
			if key == n.key {
				n.adopt(m)
				continue
			}
			take(&node{key: key, object: m.object(), parent: n.key, made: m})
		}
	}
	d.nodes, d.likely, d.round = next, nil, nil
	for _, k := range sortedKeys(next) {
		if n := next[k]; d.prepare(n) {
			pending = append(pending, n)
		}
	}
	return pending
}

// adopt makes a root what it renders of itself: flux bootstrap commits the root,
// and what patches it there is applied to it like anything else. A version whose
// path is not known here is not followed.
func (n *node) adopt(m *manifest) {
	if n.root == nil || variableIn(str(m.object(), "spec", "path")) != "" {
		return
	}
	n.object, n.root.object = m.object(), m.object()
}

func sortedKeys(m map[KustomizationKey]*node) []KustomizationKey {
	out := make([]KustomizationKey, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	SortKeys(out)
	return out
}

// prepare resolves what a node is built from and tells whether that changed.
func (d *discovery) prepare(n *node) bool {
	n.path = NormalizePath(str(n.object, "spec", "path"))
	n.ref = SourceRef{Kind: str(n.object, "spec", "sourceRef", "kind"), Namespace: str(n.object, "spec", "sourceRef", "namespace"), Name: str(n.object, "spec", "sourceRef", "name")}
	if n.ref.Namespace == "" {
		n.ref.Namespace = n.key.Namespace
	}
	n.vars = d.variablesOf(n)
	n.art, n.external, n.noSource = d.artifactOf(n)
	dir := ""
	if n.art != nil {
		dir = n.art.art.Dir
	}
	signature := digest(dir, n.external, n.path, n.vars.signature(), appliedKey(n.object, n.path))
	if n.signature == signature {
		return false
	}
	n.signature = signature
	return true
}

// render builds a node and substitutes its variables.
func (d *discovery) render(ctx context.Context, n *node) error {
	n.build, n.manifests, n.failure, n.unset = nil, nil, nil, nil
	if n.external != "" {
		return nil
	}
	if name := variableIn(n.path); name != "" {
		n.failure = &render.Error{Code: codePathUnknown, Message: fmt.Sprintf("spec.path holds ${%s}, whose value is not in the repository; give it with --vars or in %s", name, ConfigFile)}
		return nil
	}
	b, err := d.e.build(ctx, n.art, n.object, n.path)
	if err != nil {
		return err
	}
	n.build = b
	if b.result.Err != nil {
		n.failure = b.result.Err
		return nil
	}
	key := digest("final", b.id, n.vars.signature(), appliedKey(n.object, n.path))
	if v, ok := d.e.cache.get(key); ok {
		f := v.(*finished)
		n.manifests, n.failure, n.unset = f.manifests, f.failure, f.unset
		return nil
	}
	f := d.finish(ctx, n, b)
	if err := ctx.Err(); err != nil {
		return err
	}
	size := 256
	for _, m := range f.manifests {
		size += 512 + 6*len(m.json)
	}
	// A failure without a place may be one whose place could not be told in time.
	if f.failure == nil || f.failure.File != "" {
		d.e.cache.put(key, f, size)
	}
	n.manifests, n.failure, n.unset = f.manifests, f.failure, f.unset
	return nil
}

// codePathUnknown is a failure of ours, not of the build: the path is a variable.
const codePathUnknown = render.Code("PathUnknown")

// finished is what is applied of a build.
type finished struct {
	manifests []*manifest
	failure   *render.Error
	unset     []string
}

// finish substitutes, expands lists and applies commonMetadata.
func (d *discovery) finish(ctx context.Context, n *node, b *built) *finished {
	f := &finished{}
	unset := map[string]bool{}
	vars := render.Vars{Values: n.vars.values, Unknown: n.vars.unknown, Always: n.vars.always}
	type tainted struct {
		o      render.Object
		taints []render.Taint
	}
	var all []tainted
	for i, o := range b.result.Objects {
		t := tainted{o: o}
		if n.vars.active {
			out, taints, err := render.Substitute(ctx, o, vars)
			if err != nil {
				f.failure = d.failed(n, b, i, err)
				return f
			}
			t.o = out
			for _, x := range taints {
				if x.Known {
					unset[x.Variable] = true
				} else {
					t.taints = append(t.taints, x)
				}
			}
		}
		all = append(all, t)
	}
	for i, t := range all {
		objs, err := render.ExpandLists([]render.Object{t.o})
		if err == nil {
			for i := range objs {
				objs[i], err = render.CommonMetadata(n.object, objs[i])
				if err != nil {
					break
				}
			}
		}
		if err != nil {
			f.failure = d.failed(n, b, i, err)
			return f
		}
		for _, o := range objs {
			m := newManifest(o, t.taints)
			m.made, m.index = b.origin, i
			f.manifests = append(f.manifests, m)
		}
	}
	f.unset = slices.Sorted(maps.Keys(unset))
	return f
}

// failed is what went wrong with one object of a build after it.
func (d *discovery) failed(n *node, b *built, i int, err error) *render.Error {
	from := d.e.origin(n.art, b.origin, i)
	return &render.Error{Code: render.RenderFailed, Message: err.Error(), File: from.File, Line: d.e.lineOf(n.art, from)}
}

// variableIn names the first variable in a string that was not substituted.
func variableIn(s string) string {
	_, rest, ok := strings.Cut(s, "${")
	if !ok {
		return ""
	}
	name, _, ok := strings.Cut(rest, "}")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(name, ":=-?#%/,^"); i >= 0 {
		name = name[:i]
	}
	return name
}

// indexRendered indexes by cluster what Kustomizations refer to in each other's
// output: values, sources, generators of artifacts.
func (d *discovery) indexRendered() {
	d.rendered, d.round = map[string]map[Object]*manifest{}, nil
	for _, k := range sortedKeys(d.nodes) {
		for _, m := range d.nodes[k].manifests {
			switch m.group() {
			case "":
				if m.Kind != "ConfigMap" && m.Kind != "Secret" {
					continue
				}
			case groupSource, groupArtifact:
			default:
				continue
			}
			ns := m.Namespace
			if ns == "" {
				ns = k.Namespace
			}
			by := d.rendered[k.Cluster]
			if by == nil {
				by = map[Object]*manifest{}
				d.rendered[k.Cluster] = by
			}
			id := Object{Kind: m.Kind, Namespace: ns, Name: m.Name}
			if by[id] == nil {
				by[id] = m
			}
		}
	}
}

// owns tells whether a file lies in a folder that is one cluster's own: where its
// roots stand, or what they build.
func (d *discovery) owns(cluster, file string) bool {
	r := d.thisRound()
	own := r.folders[cluster]
	if own == nil {
		own = map[string]bool{}
		for _, r := range d.roots {
			if r.cluster == cluster {
				own[NormalizePath(str(r.object, "spec", "path"))] = true
				own[path.Dir(r.place.File)] = true
			}
		}
		r.folders[cluster] = own
	}
	for p := file; p != "." && p != "/"; p = path.Dir(p) {
		if own[p] {
			return true
		}
	}
	return false
}

// ownFirst moves the documents of a cluster's own folders to the front, keeping
// the order otherwise.
func (d *discovery) ownFirst(cluster string, docs []document) []document {
	var own, rest []document
	for _, doc := range docs {
		if d.owns(cluster, doc.File) {
			own = append(own, doc)
		} else {
			rest = append(rest, doc)
		}
	}
	return append(own, rest...)
}

// varsOf are the variables that the user named for a cluster.
func (d *discovery) varsOf(cluster string) map[string]string {
	out := overlay(d.snap.config.Vars, nil)
	for _, r := range d.snap.config.Roots {
		if r.Cluster == cluster {
			out = overlay(out, r.Vars)
		}
	}
	return out
}

// graph turns the nodes into the answer.
func (d *discovery) graph() *FluxGraph {
	g := &FluxGraph{Kustomizations: map[KustomizationKey]KustomizationNode{}, repo: d.snap,
		Commit: d.snap.tree.Commit, Worktree: d.snap.tree.Worktree, Dirty: d.snap.tree.Dirty}
	for _, k := range sortedKeys(d.nodes) {
		g.Kustomizations[k] = d.export(d.nodes[k])
	}
	g.index()
	g.Clusters = d.clusters()
	d.unreferenced(g)
	d.findings(g)
	g.secrets = d.secretValues()
	for _, n := range d.snap.tree.Notes {
		g.Notes = append(g.Notes, n.String())
	}
	if len(g.Kustomizations) == 0 && len(g.Unreferenced) == 0 {
		g.Notes = append(g.Notes, "no Flux content: no file declares a Flux Kustomization or a FluxInstance")
	}
	if d.truncated {
		g.Notes = append(g.Notes, fmt.Sprintf("discovery stopped after %d rounds or %d Kustomizations: they nest without end, or nearly", maxRounds, maxNodes))
	}
	return g
}

func (d *discovery) export(n *node) KustomizationNode {
	out := KustomizationNode{Key: n.key, Path: n.path, SourceRef: n.ref, Parent: n.parent, Root: n.root != nil, node: n, Place: d.placeOf(n)}
	out.Suspended, _ = at(n.object, "spec", "suspend").(bool)
	if n.art != nil {
		out.RepoPath = n.art.art.RepoPath(n.path)
	}
	for _, dep := range list(n.object, "spec", "dependsOn") {
		name, ns := str(dep, "name"), str(dep, "namespace")
		if ns == "" {
			ns = n.key.Namespace
		}
		if name != "" {
			out.DependsOn = append(out.DependsOn, KustomizationKey{n.key.Cluster, ns, name})
		}
	}
	out.State, out.Reason = d.stateOf(n)
	return out
}

// stateOf says how far a node could be followed, and why not further.
func (d *discovery) stateOf(n *node) (State, string) {
	switch {
	case n.external != "":
		return StateExternal, n.external
	case n.failure != nil && n.failure.Code == codePathUnknown:
		return StatePartial, n.failure.Message
	case n.failure != nil && n.build != nil && len(n.build.result.Stubs) > 0 && n.failure.Code == render.RenderFailed:
		return StatePartial, "not built without its remote entries: " + n.failure.Message
	case n.failure != nil:
		return StateFailed, n.failure.Message
	}
	var gaps []string
	if stubs := len(n.build.result.Stubs); stubs > 0 {
		gaps = append(gaps, fmt.Sprintf("%d remote entries are left out", stubs))
	}
	names := map[string]bool{}
	for _, m := range n.manifests {
		for _, t := range m.taints {
			names[t.Variable] = true
		}
	}
	if len(names) > 0 {
		gaps = append(gaps, "values unknown here: "+strings.Join(bounded(slices.Sorted(maps.Keys(names)), 5), ", "))
	}
	if len(gaps) > 0 {
		return StatePartial, strings.Join(gaps, "; ")
	}
	return StateRendered, ""
}

// bounded keeps the first n of a list and says how many more there are.
func bounded(l []string, n int) []string {
	if len(l) <= n {
		return l
	}
	return append(slices.Clone(l[:n]), fmt.Sprintf("and %d more", len(l)-n))
}

// placeOf finds the document of a node in the repository.
func (d *discovery) placeOf(n *node) Place {
	if n.made == nil {
		return n.place
	}
	up := d.nodes[n.parent]
	if up == nil || up.art == nil {
		return Place{}
	}
	return d.e.placeOf(up.art, n.made)
}

// unreferenced lists the Kustomizations in files that nothing renders.
func (d *discovery) unreferenced(g *FluxGraph) {
	read := map[string]bool{}
	claimed := map[string]bool{}
	for _, n := range d.nodes {
		if n.build != nil {
			for _, r := range n.build.result.Reads {
				if r.Kind == render.File {
					read[n.art.art.RepoPath(r.Path)] = true
				}
			}
		}
		if n.made != nil {
			if up := d.nodes[n.parent]; up != nil && up.art != nil {
				from := d.e.originOf(up.art, n.made)
				claimed[up.art.art.RepoPath(from.File)+"\x00"+from.Name] = true
			}
		} else {
			claimed[n.place.File+"\x00"+n.key.Name] = true
		}
	}
	for _, doc := range d.snap.docs {
		if !isFluxKustomization(doc.APIVersion, doc.Kind) || !complete(doc.obj) || read[doc.File] || claimed[doc.File+"\x00"+doc.Name] {
			continue
		}
		reason := "no Kustomization renders this file: it is listed in no kustomization.yaml on the way from a root"
		if name := variableIn(str(doc.obj, "spec", "path")); name != "" {
			reason = fmt.Sprintf("no Kustomization renders this file, and its path holds ${%s}: if Flux is started with it, name it in %s as a root {cluster, path, vars}", name, ConfigFile)
		}
		g.Unreferenced = append(g.Unreferenced, KustomizationNode{
			Key: KustomizationKey{Namespace: doc.Namespace, Name: doc.Name}, Path: NormalizePath(str(doc.obj, "spec", "path")),
			SourceRef: SourceRef{Kind: str(doc.obj, "spec", "sourceRef", "kind"), Namespace: str(doc.obj, "spec", "sourceRef", "namespace"), Name: str(doc.obj, "spec", "sourceRef", "name")},
			State:     StateUnreferenced, Reason: reason, Place: doc.Place})
	}
	slices.SortFunc(g.Unreferenced, func(a, b KustomizationNode) int {
		if c := strings.Compare(a.Place.File, b.Place.File); c != 0 {
			return c
		}
		return a.Place.Line - b.Place.Line
	})
}

// clusters describes the clusters.
func (d *discovery) clusters() []ClusterInfo {
	by := map[string]*ClusterInfo{}
	for _, r := range d.roots {
		c := by[r.cluster]
		if c == nil {
			c = &ClusterInfo{Name: r.cluster, From: r.from}
			by[r.cluster] = c
		}
		c.Roots = append(c.Roots, NormalizePath(str(r.object, "spec", "path")))
	}
	for k := range d.nodes {
		by[k.Cluster].Kustomizations++
	}
	var out []ClusterInfo
	for _, c := range by {
		slices.Sort(c.Roots)
		c.Roots = slices.Compact(c.Roots)
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b ClusterInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// base is the last element of a path, for names.
func base(p string) string {
	if p == "." {
		return ""
	}
	return path.Base(p)
}
