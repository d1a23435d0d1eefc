package gitops

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ChangedFile is one file of a change. A move is a deletion and an addition.
type ChangedFile struct {
	File   string `json:"file" jsonschema_description:"path in the repository"`
	Change string `json:"change" jsonschema_description:"added, modified or deleted"`
}

// Effect says what becomes of a Kustomization.
type Effect string

// The effects.
const (
	EffectChanged Effect = "changed"
	EffectAdded   Effect = "added"
	EffectRemoved Effect = "removed"
	EffectUnknown Effect = "unknown"
)

// Effects are all effects and what they mean.
var Effects = []Meaning[Effect]{
	{EffectChanged, "its rendered output differs"},
	{EffectAdded, "it is new"},
	{EffectRemoved, "it is gone; what it owned is pruned where prune is on"},
	{EffectUnknown, "what it is built from differs, but one side can't be built or looked into"},
}

// ObjectChange is one object that a change adds, changes or takes away.
type ObjectChange struct {
	Object
	// Change is added, changed, pruned, orphaned (gone, but prune is off) or
	// moved (another Kustomization renders it now).
	Change string `json:"change" jsonschema_description:"added, changed, pruned, orphaned, moved"`
	// Expands says that a chart or generator makes further objects from it.
	Expands bool `json:"expands,omitempty" jsonschema_description:"makes further objects that are not looked at"`
}

// Affected is a Kustomization that a change alters.
type Affected struct {
	KustomizationKey
	Effect  Effect         `json:"effect" jsonschema_description:"what becomes of it"`
	Reasons []Reason       `json:"reasons,omitempty" jsonschema_description:"why"`
	Objects []ObjectChange `json:"objects,omitempty" jsonschema_description:"what changes in it"`
	Kinds   map[string]int `json:"kinds,omitempty" jsonschema_description:"kind: objects that change"`
	Detail  string         `json:"detail,omitempty" jsonschema_description:"why the effect is unknown, or what else is to be said"`
}

// Reason is the way from a changed file to a Kustomization: file, the
// kustomization files that name it, and the Kustomizations in between.
type Reason struct {
	File string   `json:"file,omitempty" jsonschema_description:"changed file"`
	Path []string `json:"path" jsonschema_description:"from the file to the Kustomization"`
}

// Waiting is a Kustomization that waits for an affected one; it does not change.
type Waiting struct {
	KustomizationKey
	Wave int `json:"wave" jsonschema_description:"depth of dependsOn"`
}

// UnmappedReason says why a changed file affects nothing.
type UnmappedReason string

// The reasons.
const (
	UnmappedIgnored      UnmappedReason = "Ignored"
	UnmappedUnreferenced UnmappedReason = "Unreferenced"
	UnmappedNotManifest  UnmappedReason = "NotAManifest"
	UnmappedOtherSource  UnmappedReason = "OtherSource"
	UnmappedNoChange     UnmappedReason = "NoRenderedChange"
	UnmappedChart        UnmappedReason = "ChartSource"
	UnmappedConfig       UnmappedReason = "Config"
)

// UnmappedReasons are all reasons and what they mean.
var UnmappedReasons = []Meaning[UnmappedReason]{
	{UnmappedIgnored, "source-controller leaves it out of the artifact"},
	{UnmappedUnreferenced, "a manifest that no Kustomization reads"},
	{UnmappedNotManifest, "no manifest, and nothing reads it"},
	{UnmappedOtherSource, "in a folder that only Kustomizations of another source name"},
	{UnmappedNoChange, "it is read, but what is rendered stays the same"},
	{UnmappedChart, "part of a chart that a HelmRelease installs from this repository; charts are not rendered here"},
	{UnmappedConfig, "the configuration of hecate-mcp"},
}

// UnmappedFile is a changed file that affects no Kustomization.
type UnmappedFile struct {
	File   string         `json:"file" jsonschema_description:"path in the repository"`
	Reason UnmappedReason `json:"reason" jsonschema_description:"why"`
	Detail string         `json:"detail,omitempty" jsonschema_description:"more"`
}

// ImpactResult is what a change touches.
type ImpactResult struct {
	// Base is the merge base's commit, Head the head's, "" for a working tree.
	Base, Head           string
	ChangedFiles         []ChangedFile
	DirectlyAffected     []Affected
	TransitivelyAffected []Waiting
	// ReconcileSet are both, dependencies first.
	ReconcileSet  []KustomizationKey
	UnmappedFiles []UnmappedFile
	Findings      []Finding
	// Graph is that of the head.
	Graph *FluxGraph

	base *FluxGraph
}

// HasCluster tells whether the head has a cluster, or the change takes it away.
func (r *ImpactResult) HasCluster(name string) bool {
	return slices.ContainsFunc(r.Graph.Clusters, func(c ClusterInfo) bool { return c.Name == name }) ||
		slices.ContainsFunc(r.DirectlyAffected, func(a Affected) bool { return a.Cluster == name })
}

// GetChangedFiles lists what changed between the merge base of base and head,
// and head; head "" is the working tree. A shallow or unrelated history is an
// error that says so, never another comparison.
func (e *Engine) GetChangedFiles(ctx context.Context, repo Repo, base string) ([]ChangedFile, string, error) {
	if base == "" {
		var err error
		if base, err = e.store.DefaultBase(ctx, repo.Path, repo.Ref); err != nil {
			return nil, "", fromSource(err)
		}
	}
	changes, err := e.store.Changed(ctx, repo.Path, base, repo.Ref)
	if err != nil {
		return nil, "", fromSource(err)
	}
	out := make([]ChangedFile, 0, len(changes.Files))
	for _, c := range changes.Files {
		out = append(out, ChangedFile{File: c.Path, Change: string(c.Kind)})
	}
	return out, changes.MergeBase, nil
}

// ComputeImpact says which Kustomizations a change alters: those whose rendered
// output differs between the merge base and the head, exactly, and for each the
// way from the changed file to it. The configuration file is read from the base.
func (e *Engine) ComputeImpact(ctx context.Context, repo Repo, base string) (*ImpactResult, error) {
	var out *ImpactResult
	err := e.compared(ctx, repo, base, func(r *ImpactResult, _ *discovery) error {
		out = r
		return nil
	})
	return out, err
}

// compared hands a change's impact to use, with the discovery of its head, whose
// tree stays until use returns.
func (e *Engine) compared(ctx context.Context, repo Repo, base string, use func(r *ImpactResult, head *discovery) error) error {
	files, mergeBase, err := e.GetChangedFiles(ctx, repo, base)
	if err != nil {
		return err
	}
	before, err := e.open(ctx, Repo{Path: repo.Path, Ref: mergeBase, Config: repo.Config}, nil)
	if err != nil {
		var coded *Error
		if errors.As(err, &coded) && coded.Code == ErrInvalidConfig {
			// The change may be the very one that mends it.
			coded.Message = "at the base, whose configuration judges the change: " + coded.Message
		}
		return err
	}
	defer before.tree.Release()
	after, err := e.open(ctx, repo, before)
	if err != nil {
		return err
	}
	defer after.tree.Release()
	bd, bg, err := e.discovered(ctx, before)
	if err != nil {
		return err
	}
	hd, hg, err := e.discovered(ctx, after)
	if err != nil {
		return err
	}
	return use(newComparison(&side{d: bd, g: bg}, &side{d: hd, g: hg}, files).result(mergeBase, after.tree.Commit), hd)
}

// side is one side of a change.
type side struct {
	d *discovery
	g *FluxGraph
	sideIndex
}

func (s *side) node(k KustomizationKey) *node { return s.d.nodes[k] }

type comparison struct {
	base, head *side
	files      []ChangedFile
	touched
	mapped map[string]bool // files that explain an affected Kustomization
	homes  map[string]KustomizationKey
}

func newComparison(base, head *side, files []ChangedFile) *comparison {
	return &comparison{base: base, head: head, files: files, touched: touch(files), mapped: map[string]bool{}}
}

// sides are both, the base first.
func (c *comparison) sides() []*side { return []*side{c.base, c.head} }

func (c *comparison) result(mergeBase, head string) *ImpactResult {
	out := &ImpactResult{Base: mergeBase, Head: head, ChangedFiles: c.files, Graph: c.head.g, base: c.base.g}
	all := map[KustomizationKey]bool{}
	for k := range c.base.d.nodes {
		all[k] = true
	}
	for k := range c.head.d.nodes {
		all[k] = true
	}
	keys := slices.Collect(maps.Keys(all))
	SortKeys(keys)
	var direct, present []KustomizationKey
	for _, k := range keys {
		if a, ok := c.compare(k); ok {
			out.DirectlyAffected = append(out.DirectlyAffected, a)
			direct = append(direct, k)
			if c.head.node(k) != nil {
				present = append(present, k)
			}
		}
	}
	why := c.reasons(direct)
	for i := range out.DirectlyAffected {
		a := &out.DirectlyAffected[i]
		a.Reasons = why[a.KustomizationKey]
	}
	// What waited for a removed one waits in vain: dependants of both sides count.
	waves := Waves(c.head.g)
	waiting := map[KustomizationKey]bool{}
	for _, k := range Dependants(c.head.g, direct) {
		waiting[k] = true
	}
	for _, k := range Dependants(c.base.g, direct) {
		if c.head.node(k) != nil && !slices.Contains(direct, k) {
			waiting[k] = true
		}
	}
	rest := slices.Collect(maps.Keys(waiting))
	for _, k := range order(c.head.g, rest) {
		out.TransitivelyAffected = append(out.TransitivelyAffected, Waiting{k, waves[k]})
	}
	out.ReconcileSet = TopoSort(c.head.g, append(present, rest...))
	for _, f := range c.files {
		if u, ok := c.unmapped(f); ok {
			out.UnmappedFiles = append(out.UnmappedFiles, u)
		}
		if f.File == ConfigFile {
			out.Findings = append(out.Findings, Finding{Code: ConfigChanged, Severity: SeverityWarn, Source: SourceGraph, File: ConfigFile, Line: 1,
				Message: "the change edits the configuration of hecate-mcp; the base's was used to judge it"})
		}
	}
	return out
}

// compare tells whether a Kustomization's output differs.
func (c *comparison) compare(k KustomizationKey) (Affected, bool) {
	b, h := c.base.node(k), c.head.node(k)
	a := Affected{KustomizationKey: k, Effect: EffectChanged}
	switch {
	case b == nil:
		a.Effect = EffectAdded
	case h == nil:
		a.Effect = EffectRemoved
	default:
		if blind(b) != "" || blind(h) != "" {
			if sameInputs(b, h) {
				return a, false
			}
			a.Effect, a.Detail = EffectUnknown, blind(h)
			if a.Detail == "" {
				a.Detail = "before the change: " + blind(b)
			}
			return a, true
		}
		if sameOutput(b.manifests, h.manifests) {
			return a, false
		}
	}
	a.Objects = c.objects(k, b, h)
	if len(a.Objects) == 0 && a.Effect == EffectChanged {
		a.Detail = "only the order of its objects changes"
	}
	a.Kinds = map[string]int{}
	for _, o := range a.Objects {
		a.Kinds[o.Kind]++
	}
	return a, true
}

// blind says why a node's output is not known.
func blind(n *node) string {
	switch {
	case n.external != "":
		return n.external
	case n.failure != nil:
		return n.failure.Message
	}
	return ""
}

// sameInputs compares nodes of which at least one can't be built.
func sameInputs(b, h *node) bool {
	if b.path != h.path || b.ref != h.ref || b.external != h.external || (b.failure == nil) != (h.failure == nil) || (b.build == nil) != (h.build == nil) {
		return false
	}
	return appliedKey(b.object, b.path) == appliedKey(h.object, h.path) && (b.build == nil || b.build.id == h.build.id) && b.vars.signature() == h.vars.signature()
}

func sameOutput(b, h []*manifest) bool {
	return slices.EqualFunc(b, h, func(x, y *manifest) bool { return x == y || x.digest() == y.digest() })
}

// generated is the suffix that a generator puts behind the name of what it makes:
// ten characters of the alphabet of kustomize's hash.
var generated = regexp.MustCompile(`-[2456789bcdfghkmt]{10}$`)

// identityOf names an object of a node across a change: a generator's without its
// hash.
func (s *side) identityOf(n *node, m *manifest) Object {
	o := Object{Kind: m.Kind, APIVersion: m.group(), Namespace: m.Namespace, Name: m.Name}
	if generated.MatchString(m.Name) && s.d.e.originOf(n.art, m).Generator != "" {
		o.Name = generated.ReplaceAllString(o.Name, "")
	}
	return o
}

// objects lists what differs, by kind, namespace and name.
func (c *comparison) objects(k KustomizationKey, b, h *node) []ObjectChange {
	before, after := map[Object]*manifest{}, map[Object]*manifest{}
	if b != nil {
		for _, m := range b.manifests {
			before[c.base.identityOf(b, m)] = m
		}
	}
	if h != nil {
		for _, m := range h.manifests {
			after[c.head.identityOf(h, m)] = m
		}
	}
	var out []ObjectChange
	for id, m := range after {
		if old := before[id]; old == nil {
			out = append(out, ObjectChange{m.Object, "added", expands(m)})
		} else if old.digest() != m.digest() {
			out = append(out, ObjectChange{m.Object, "changed", expands(m)})
		}
	}
	for id, m := range before {
		if after[id] != nil {
			continue
		}
		change := "pruned"
		if prune, _ := at(b.object, "spec", "prune").(bool); !prune {
			change = "orphaned"
		}
		if home, ok := c.home(k.Cluster, id); ok && home != k {
			change = "moved"
		}
		out = append(out, ObjectChange{m.Object, change, expands(m)})
	}
	slices.SortFunc(out, func(x, y ObjectChange) int {
		return strings.Compare(x.Kind+"\x00"+x.Namespace+"\x00"+x.Name+"\x00"+x.Change, y.Kind+"\x00"+y.Namespace+"\x00"+y.Name+"\x00"+y.Change)
	})
	return out
}

// home finds the Kustomization that renders an object at the head.
func (c *comparison) home(cluster string, id Object) (KustomizationKey, bool) {
	if c.homes == nil {
		c.homes = map[string]KustomizationKey{}
		for _, k := range sortedKeys(c.head.d.nodes) {
			n := c.head.d.nodes[k]
			for _, m := range n.manifests {
				id := c.head.identityOf(n, m)
				key := k.Cluster + "\x00" + id.APIVersion + id.String()
				if _, ok := c.homes[key]; !ok {
					c.homes[key] = k
				}
			}
		}
	}
	k, ok := c.homes[cluster+"\x00"+id.APIVersion+id.String()]
	return k, ok
}

func expands(m *manifest) bool {
	return m.Kind == "HelmRelease" && m.group() == groupHelm || m.Kind == "ResourceSet" && m.group() == groupOperator
}
