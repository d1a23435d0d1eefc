package gitops

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// artifactOf resolves the source of a node: the artifact it is built from, or
// why there is none here. missing says that the source is declared nowhere.
func (d *discovery) artifactOf(n *node) (view *artifactView, external string, missing bool) {
	return d.resolve(n.key.Cluster, n.ref, n.path, n.root, 0)
}

// maxSourceDepth bounds artifacts made of artifacts.
const maxSourceDepth = 8

func (d *discovery) resolve(cluster string, ref SourceRef, p string, of *root, depth int) (*artifactView, string, bool) {
	if depth > maxSourceDepth {
		return nil, ref.String() + " is made of itself", false
	}
	if folder, ok := lookup(d.snap.config.Sources, true, ref); ok {
		if folder == External {
			return nil, ref.String() + " is external, says " + ConfigFile, false
		}
		return d.folder("", folder, ref)
	}
	if ref.Kind == "ExternalArtifact" {
		return d.external(cluster, ref, depth)
	}
	obj := d.sourceObject(cluster, ref)
	ignore := str(obj, "spec", "ignore")
	if d.isSelf(cluster, ref, obj, p, of) {
		if ref.Kind == "GitRepository" {
			return d.folder(ignore, ".", ref)
		}
		return d.folder(ignore, d.artifactRoot(cluster, ref), ref)
	}
	if obj == nil {
		return nil, ref.String() + " is declared nowhere in this repository", true
	}
	if u := str(obj, "spec", "url"); u != "" {
		what := urlWithoutSecrets(u)
		if b := str(obj, "spec", "ref", "branch"); b != "" && d.selfURLs()[normalURL(u)] {
			what = "the branch " + b + " of this repository"
		}
		return nil, ref.String() + " is " + what, false
	}
	return nil, ref.String() + " is not this repository", false
}

// folder is the artifact of this repository, seen from a folder.
func (d *discovery) folder(ignore, sub string, ref SourceRef) (*artifactView, string, bool) {
	sub = NormalizePath(sub)
	key := ignore + "\x00" + sub
	if v := d.artifacts[key]; v != nil {
		return v, "", false
	}
	if why, ok := d.refused[key]; ok {
		return nil, why, false
	}
	if d.linked > maxLinked {
		return nil, tooManyArtifacts(ref), false
	}
	art, err := d.snap.tree.Artifact(ignore)
	if err == nil && sub != "." {
		art, err = art.Sub(sub)
	}
	if err != nil {
		d.refused[key] = fmt.Sprintf("%s: its folder %s can't be read here: %s", ref, sub, err)
		return nil, d.refused[key], false
	}
	d.linked += len(art.Files())
	v := d.snap.viewOf(art)
	d.artifacts[key] = v
	return v, "", false
}

// sourceObject finds the object of a source: rendered in the cluster, else in
// the files, nil when it is nowhere.
func (d *discovery) sourceObject(cluster string, ref SourceRef) map[string]any {
	id, r := clustered{cluster, ref}, d.thisRound()
	obj, ok := r.objects[id]
	if !ok {
		obj = d.findSource(cluster, ref)
		r.objects[id] = obj
	}
	return obj
}

func (d *discovery) findSource(cluster string, ref SourceRef) map[string]any {
	if m := d.rendered[cluster][Object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}]; m != nil {
		return m.object()
	}
	for _, doc := range d.ownFirst(cluster, d.snap.docs) {
		if doc.Kind == ref.Kind && groupOf(doc.APIVersion) == groupSource && doc.Name == ref.Name && (doc.Namespace == ref.Namespace || doc.Namespace == "") {
			return doc.obj
		}
	}
	return nil
}

// isSelf tells whether a source is this repository. A root that says so itself
// (configuration, FluxInstance, bootstrap) is believed; any other source is this
// repository when its URL is one that is known to be, or when it is the source
// of such a root. A source that is declared nowhere is taken for this repository
// where it has the name that bootstrap gives, or where a root refers to a folder
// that exists here.
func (d *discovery) isSelf(cluster string, ref SourceRef, obj map[string]any, p string, of *root) bool {
	if of != nil {
		return of.from != fromDocument || d.judgeSelf(cluster, ref, obj, p, of)
	}
	id, r := clustered{cluster, ref}, d.thisRound()
	self, ok := r.self[id]
	if !ok {
		self = d.judgeSelf(cluster, ref, obj, p, nil)
		r.self[id] = self
	}
	return self
}

func (d *discovery) judgeSelf(cluster string, ref SourceRef, obj map[string]any, p string, of *root) bool {
	if d.declared(cluster, ref) {
		return true
	}
	if u := str(obj, "spec", "url"); u != "" {
		if d.selfURLs()[normalURL(u)] {
			return d.sameBranch(cluster, obj, p)
		}
		// Only where nothing says what this repository's URL is may a root's own
		// word count.
		return of != nil && len(d.selfURLs()) == 0 && ref.Kind == "GitRepository" && d.snap.view.isDir(p)
	}
	if ref.Kind == "GitRepository" && ref.Name == defaultName {
		// What flux bootstrap calls the repository that it writes to; only the
		// cluster has the object when the sync file is not committed.
		return true
	}
	if of != nil {
		return ref.Kind != "Bucket" && (d.snap.view.isDir(p) || ref.Kind == "OCIRepository" && p != "." && d.suffixed(p) != "")
	}
	// A child of a root from a document, with the root's source.
	return slices.ContainsFunc(d.roots, func(r *root) bool {
		return r.cluster == cluster && d.refOf(r) == ref && d.isSelf(cluster, ref, obj, NormalizePath(str(r.object, "spec", "path")), r)
	})
}

// declared tells whether a source is that of a root that says itself that it is
// one.
func (d *discovery) declared(cluster string, ref SourceRef) bool {
	r := d.thisRound()
	if r.declared == nil {
		r.declared = map[clustered]bool{}
		for _, root := range d.roots {
			if root.from != fromDocument {
				r.declared[clustered{root.cluster, d.refOf(root)}] = true
			}
		}
	}
	return r.declared[clustered{cluster, ref}]
}

// sameBranch tells whether a source with this repository's URL is of the branch
// that is looked at: the one that the cluster's declared roots follow; where that
// is not known, one with the path.
func (d *discovery) sameBranch(cluster string, obj map[string]any, p string) bool {
	branch := str(obj, "spec", "ref", "branch")
	if branch == "" {
		return true
	}
	known := false
	for _, r := range d.roots {
		if r.cluster != cluster || r.from == fromDocument {
			continue
		}
		if b := str(d.sourceObject(r.cluster, d.refOf(r)), "spec", "ref", "branch"); b != "" {
			if b == branch {
				return true
			}
			known = true
		}
	}
	return !known && d.snap.view.isDir(p)
}

// refOf is the source of a root.
func (d *discovery) refOf(r *root) SourceRef {
	ref := SourceRef{Kind: str(r.object, "spec", "sourceRef", "kind"), Namespace: str(r.object, "spec", "sourceRef", "namespace"), Name: str(r.object, "spec", "sourceRef", "name")}
	if ref.Namespace == "" {
		ref.Namespace = r.key().Namespace
	}
	return ref
}

// selfURLs are the URLs under which this repository is known: those of the sources
// of its declared roots, and its network remotes; else the likely ones.
func (d *discovery) selfURLs() map[string]bool {
	r := d.thisRound()
	if r.urls == nil {
		r.urls = d.findURLs()
	}
	return r.urls
}

func (d *discovery) findURLs() map[string]bool {
	out := map[string]bool{}
	for u := range d.snap.remote {
		// A remote that is a folder is a clone of a clone and says nothing.
		if !strings.HasPrefix(u, "/") && !strings.HasPrefix(u, ".") && !strings.HasPrefix(u, "file:") {
			out[u] = true
		}
	}
	for _, r := range d.roots {
		if r.from == fromDocument {
			continue
		}
		if u := str(d.sourceObject(r.cluster, d.refOf(r)), "spec", "url"); u != "" {
			out[normalURL(u)] = true
		}
	}
	if len(out) == 0 {
		return d.likelyURLs()
	}
	return out
}

// likelyURLs is for a clone that has no network remote, of a repository whose
// roots were started by hand: nothing says what its URL is. It is that of the
// GitRepository for which the most paths of Kustomizations exist here, less those
// that don't; another one counts with it when it is named alike (a mirror).
func (d *discovery) likelyURLs() map[string]bool {
	if d.likely != nil {
		return d.likely
	}
	urls := map[string]map[string]bool{} // name of the source → URLs
	for _, doc := range d.snap.docs {
		if doc.Kind == "GitRepository" && groupOf(doc.APIVersion) == groupSource {
			if u := str(doc.obj, "spec", "url"); u != "" {
				if urls[doc.Name] == nil {
					urls[doc.Name] = map[string]bool{}
				}
				urls[doc.Name][normalURL(u)] = true
			}
		}
	}
	votes := map[string]int{}
	vote := func(obj map[string]any) {
		p := NormalizePath(str(obj, "spec", "path"))
		if str(obj, "spec", "sourceRef", "kind") != "GitRepository" || p == "." || variableIn(p) != "" {
			return
		}
		for u := range urls[str(obj, "spec", "sourceRef", "name")] {
			if d.snap.view.isDir(p) {
				votes[u]++
			} else {
				votes[u]--
			}
		}
	}
	for _, doc := range d.snap.docs {
		if isFluxKustomization(doc.APIVersion, doc.Kind) && complete(doc.obj) {
			vote(doc.obj)
		}
	}
	for _, k := range sortedKeys(d.nodes) {
		vote(d.nodes[k].object)
	}
	best := ""
	for _, u := range slices.Sorted(maps.Keys(votes)) {
		if votes[u] > votes[best] {
			best = u
		}
	}
	d.likely = map[string]bool{}
	for u := range votes {
		if votes[best] > 0 && strings.EqualFold(path.Base(u), path.Base(best)) {
			d.likely[u] = true
		}
	}
	return d.likely
}

// artifactRoot is the folder that an OCIRepository's artifact is pushed from:
// said by the configuration, else the folder under which most paths of the
// Kustomizations with this source exist; the shortest when several do.
func (d *discovery) artifactRoot(cluster string, ref SourceRef) string {
	if f, ok := lookup(d.snap.config.ArtifactRoots, false, ref); ok {
		return f
	}
	id, r := clustered{cluster, ref}, d.thisRound()
	folder, ok := r.artifactRoots[id]
	if !ok {
		folder = d.findArtifactRoot(cluster, ref)
		r.artifactRoots[id] = folder
	}
	return folder
}

func (d *discovery) findArtifactRoot(cluster string, ref SourceRef) string {
	var paths []string
	add := func(obj map[string]any) {
		if p := NormalizePath(str(obj, "spec", "path")); p != "." && variableIn(p) == "" {
			paths = append(paths, p)
		}
	}
	for _, r := range d.roots {
		if r.cluster == cluster && d.refOf(r) == ref {
			add(r.object)
		}
	}
	for _, k := range sortedKeys(d.nodes) {
		if n := d.nodes[k]; k.Cluster == cluster && n.ref == ref {
			add(n.object)
		}
	}
	votes := map[string]int{}
	for _, p := range paths {
		for _, f := range d.foldersOver(p) {
			votes[f]++
		}
	}
	best := "."
	for _, f := range slices.Sorted(maps.Keys(votes)) {
		if votes[f] > votes[best] || votes[f] == votes[best] && len(f) < len(best) {
			best = f
		}
	}
	return best
}

// foldersOver are the folders under which a path exists.
func (d *discovery) foldersOver(p string) []string {
	d.snap.view.index()
	var out []string
	for dir := range d.snap.view.dirs {
		if dir == p {
			out = append(out, ".")
		} else if rest, ok := strings.CutSuffix(dir, "/"+p); ok {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}

func (d *discovery) suffixed(p string) string {
	if f := d.foldersOver(p); len(f) > 0 {
		return f[0]
	}
	return ""
}

// external rebuilds an ExternalArtifact, once a round.
func (d *discovery) external(cluster string, ref SourceRef, depth int) (*artifactView, string, bool) {
	id, r := clustered{cluster, ref}, d.thisRound()
	out, ok := r.external[id]
	if !ok {
		// What comes upon itself meanwhile is made of itself.
		r.external[id] = resolved{why: ref.String() + " is made of itself"}
		out.view, out.why, out.missing = d.compose(cluster, ref, depth)
		r.external[id] = out
	}
	return out.view, out.why, out.missing
}

// compose rebuilds an ExternalArtifact from the ArtifactGenerator that makes it.
func (d *discovery) compose(cluster string, ref SourceRef, depth int) (*artifactView, string, bool) {
	gen, spec := d.generatorOf(cluster, ref)
	if gen == nil {
		return nil, ref.String() + " is made by no ArtifactGenerator of this cluster", true
	}
	aliases := map[string]*artifactView{}
	for _, s := range list(gen, "spec", "sources") {
		from := SourceRef{Kind: str(s, "kind"), Namespace: str(s, "namespace"), Name: str(s, "name")}
		if from.Namespace == "" {
			from.Namespace = ref.Namespace
		}
		view, why, missing := d.resolve(cluster, from, ".", nil, depth+1)
		if view == nil {
			return nil, ref.String() + " is built from another source: " + why, missing
		}
		aliases[str(s, "alias")] = view
	}
	key, err := json.Marshal([]any{cluster, spec, ref})
	if err != nil {
		return nil, ref.String() + " can't be read", false
	}
	if v := d.artifacts[string(key)]; v != nil {
		return v, "", false
	}
	var parts []source.Part
	for _, c := range list(spec, "copy") {
		if how := str(c, "strategy"); how != "" && how != "Overwrite" {
			return nil, fmt.Sprintf("%s copies with the strategy %s, which is not followed here", ref, how), false
		}
		alias, glob, _ := strings.Cut(strings.TrimPrefix(str(c, "from"), "@"), "/")
		view := aliases[alias]
		if view == nil {
			return nil, fmt.Sprintf("%s copies from @%s, which its ArtifactGenerator does not declare", ref, alias), false
		}
		part := source.Part{From: view.art, Source: glob, To: strings.TrimPrefix(str(c, "to"), "@artifact/")}
		for _, x := range list(c, "exclude") {
			if s, ok := x.(string); ok {
				part.Exclude = append(part.Exclude, s)
			}
		}
		parts = append(parts, part)
	}
	if d.linked > maxLinked {
		return nil, tooManyArtifacts(ref), false
	}
	art, err := d.e.store.Compose(parts)
	if err != nil {
		return nil, ref.String() + " can't be rebuilt: " + err.Error(), false
	}
	d.linked += len(art.Files())
	v := d.snap.viewOf(art)
	d.artifacts[string(key)] = v
	return v, "", false
}

// generatorOf finds the ArtifactGenerator of an ExternalArtifact and the entry
// that makes it.
func (d *discovery) generatorOf(cluster string, ref SourceRef) (gen map[string]any, spec any) {
	look := func(obj map[string]any) bool {
		for _, a := range list(obj, "spec", "artifacts") {
			if str(a, "name") == ref.Name {
				gen, spec = obj, a
				return true
			}
		}
		return false
	}
	ids := make([]Object, 0, len(d.rendered[cluster]))
	for id := range d.rendered[cluster] {
		if id.Kind == "ArtifactGenerator" && id.Namespace == ref.Namespace {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	for _, id := range ids {
		if look(d.rendered[cluster][id].object()) {
			return gen, spec
		}
	}
	for _, doc := range d.ownFirst(cluster, d.snap.docs) {
		if doc.Kind == "ArtifactGenerator" && groupOf(doc.APIVersion) == groupArtifact && (doc.Namespace == ref.Namespace || doc.Namespace == "") && look(doc.obj) {
			return gen, spec
		}
	}
	return nil, nil
}

// madeOf gathers the objects that decide what a source holds: its own, or the
// ArtifactGenerator that makes it and what that is made from.
func (d *discovery) madeOf(cluster string, ref SourceRef, into map[Object]bool) {
	if ref.Kind != "ExternalArtifact" {
		into[Object{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}] = true
		return
	}
	gen, _ := d.generatorOf(cluster, ref)
	id := Object{Kind: "ArtifactGenerator", Namespace: ref.Namespace, Name: str(gen, "metadata", "name")}
	if gen == nil || into[id] {
		return
	}
	into[id] = true
	for _, s := range list(gen, "spec", "sources") {
		from := SourceRef{Kind: str(s, "kind"), Namespace: str(s, "namespace"), Name: str(s, "name")}
		if from.Namespace == "" {
			from.Namespace = ref.Namespace
		}
		d.madeOf(cluster, from, into)
	}
}

// patched lays the patches of a FluxInstance over the root that it makes, as the
// operator does, by building a folder with just that object.
func (d *discovery) patched(ctx context.Context, object map[string]any, patches []any) (map[string]any, error) {
	var mine []any
	for _, p := range patches {
		// A target's kind is a pattern; patches of other kinds have nothing to hit.
		if strings.Contains(str(p, "target", "kind"), "Kustomization") {
			mine = append(mine, p)
		}
	}
	if len(mine) == 0 {
		return object, nil
	}
	dir, err := os.MkdirTemp("", "hecate-mcp-instance-")
	if err != nil {
		return nil, fmt.Errorf("a private folder for a FluxInstance's patches: %w", err)
	}
	defer os.RemoveAll(dir)
	for name, v := range map[string]any{"sync.yaml": object, "kustomization.yaml": map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": []any{"sync.yaml"}, "patches": mine}} {
		b, err := yaml.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("the patches of a FluxInstance: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return nil, fmt.Errorf("the patches of a FluxInstance: %w", err)
		}
	}
	r := d.e.builder.Build(ctx, render.Request{Root: dir, Path: ".", Kustomization: kustomization("x", "x", ".", SourceRef{})})
	// Patches that don't apply are the operator's to complain of; the root is
	// then what it is without them.
	if r.Err != nil || len(r.Objects) != 1 {
		return object, nil
	}
	var out map[string]any
	if err := json.Unmarshal(r.Objects[0].JSON, &out); err != nil {
		return object, nil
	}
	return out, nil
}
