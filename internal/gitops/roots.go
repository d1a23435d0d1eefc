package gitops

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// How a root was found, in the order in which they count.
const (
	fromConfig    = "config"
	fromInstance  = "FluxInstance"
	fromBootstrap = "bootstrap"
	fromDocument  = "document"
)

// defaultName is what bootstrap, FluxInstance and everybody call the root.
const defaultName = "flux-system"

// root is a Kustomization that Flux is started with in one cluster.
type root struct {
	cluster string
	// where names the cluster: the root's path, or the folder of its file.
	where  string
	object map[string]any
	from   string
	place  Place
	// instance is the spec of the FluxInstance that makes it, nil for others.
	instance any
}

func (r *root) key() KustomizationKey {
	ns := str(r.object, "metadata", "namespace")
	if ns == "" {
		ns = defaultName
	}
	return KustomizationKey{r.cluster, ns, str(r.object, "metadata", "name")}
}

// node is a fresh node of the root.
func (r *root) node() *node {
	return &node{key: r.key(), object: r.object, root: r, place: r.place}
}

// declaredRoots takes the roots that say so themselves: those of the
// configuration, of a FluxInstance, of flux bootstrap.
func (d *discovery) declaredRoots(ctx context.Context) error {
	var found []*root
	for _, c := range d.snap.config.Roots {
		name, ns := c.Name, c.Namespace
		if name == "" {
			name = defaultName
		}
		if ns == "" {
			ns = defaultName
		}
		p := expand(c.Path, overlay(d.snap.config.Vars, c.Vars))
		object := kustomization(ns, name, p, SourceRef{Kind: "GitRepository", Namespace: ns, Name: defaultName})
		if len(c.Vars) > 0 {
			substitute := map[string]any{}
			for k, v := range c.Vars {
				substitute[k] = v
			}
			object["spec"].(map[string]any)["postBuild"] = map[string]any{"substitute": substitute}
		}
		found = append(found, &root{cluster: c.Cluster, from: fromConfig, place: Place{File: ConfigFile}, object: object})
	}
	for _, doc := range d.snap.docs {
		r, err := d.instanceRoot(ctx, doc)
		if err != nil {
			return err
		}
		if r != nil {
			found = append(found, r)
		}
	}
	for _, doc := range d.snap.docs {
		if isFluxKustomization(doc.APIVersion, doc.Kind) && complete(doc.obj) && isBootstrap(doc) {
			found = append(found, &root{where: NormalizePath(str(doc.obj, "spec", "path")), from: fromBootstrap, place: doc.Place, object: doc.obj})
		}
	}
	d.accept(found)
	return nil
}

// isBootstrap recognises what flux bootstrap writes: a Kustomization in a
// folder flux-system right under its own path.
func isBootstrap(doc document) bool {
	p := NormalizePath(str(doc.obj, "spec", "path"))
	return variableIn(p) == "" && under(doc.File, p) && (path.Dir(doc.File) == path.Join(p, defaultName) || doc.Name == defaultName)
}

// expand puts variables into a path of the configuration.
func expand(p string, vars map[string]string) string {
	for k, v := range vars {
		p = strings.ReplaceAll(p, "${"+k+"}", v)
	}
	return p
}

// kustomization is the Flux object that somebody else would write.
func kustomization(ns, name, p string, ref SourceRef) map[string]any {
	return map[string]any{
		"apiVersion": groupKustomize + "/v1", "kind": "Kustomization",
		"metadata": map[string]any{"namespace": ns, "name": name},
		"spec":     map[string]any{"path": p, "prune": true, "interval": "10m", "sourceRef": map[string]any{"kind": ref.Kind, "name": ref.Name}},
	}
}

// instanceRoot reads spec.sync of a FluxInstance, or the same in the values of
// the chart that makes one; nil when the document is neither.
func (d *discovery) instanceRoot(ctx context.Context, doc document) (*root, error) {
	ns, name := doc.Namespace, defaultName
	spec := instanceSpec(doc.Object, doc.obj)
	sync := at(spec, "sync")
	if sync == nil || str(sync, "path") == "" {
		return nil, nil
	}
	if ns == "" {
		ns = defaultName
	}
	if n := str(sync, "name"); n != "" {
		name = n
	}
	kind := str(sync, "kind")
	if kind == "" {
		kind = "GitRepository"
	}
	p := NormalizePath(str(sync, "path"))
	object := kustomization(ns, name, p, SourceRef{Kind: kind, Name: name})
	object, err := d.patched(ctx, object, list(spec, "kustomize", "patches"))
	if err != nil {
		return nil, err
	}
	return &root{where: p, from: fromInstance, place: doc.Place, object: object, instance: spec}, nil
}

// instanceSpec is the spec of a FluxInstance, or the same in the values of a
// HelmRelease; nil when there is none.
func instanceSpec(o Object, obj map[string]any) any {
	switch {
	case o.Kind == "FluxInstance" && groupOf(o.APIVersion) == groupOperator:
		return at(obj, "spec")
	case o.Kind == "HelmRelease" && groupOf(o.APIVersion) == groupHelm:
		return at(obj, "spec", "values", "instance")
	}
	return nil
}

// accept names the clusters of new roots and takes those that are new.
func (d *discovery) accept(found []*root) {
	shared := map[string]map[string]bool{}
	for _, r := range append(slices.Clone(d.roots), found...) {
		if r.from == fromConfig {
			continue
		}
		b := base(r.where)
		if shared[b] == nil {
			shared[b] = map[string]bool{}
		}
		shared[b][r.where] = true
	}
	taken := map[KustomizationKey]bool{}
	for _, r := range d.roots {
		taken[r.key()] = true
	}
	type sameness struct{ where, path, name string }
	same := func(r *root) sameness {
		return sameness{r.where, NormalizePath(str(r.object, "spec", "path")), r.key().Name}
	}
	said := map[sameness]string{} // how the root was found first
	for _, r := range d.roots {
		if _, ok := said[same(r)]; !ok {
			said[same(r)] = r.from
		}
	}
	for _, r := range found {
		if r.from == fromConfig {
			r.where = NormalizePath(str(r.object, "spec", "path"))
		} else {
			switch b := base(r.where); {
			case b == "":
				r.cluster = "default"
			case len(shared[b]) > 1:
				r.cluster = r.where
			default:
				r.cluster = b
			}
		}
		if from, ok := said[same(r)]; ok && from != r.from {
			continue // said in a better place already
		}
		if taken[r.key()] {
			// Two documents of one folder with one name: they can't be one cluster's.
			if r.cluster = r.place.File; taken[r.key()] {
				continue
			}
		}
		taken[r.key()] = true
		if _, ok := said[same(r)]; !ok {
			said[same(r)] = r.from
		}
		d.roots = append(d.roots, r)
	}
	d.round = nil
}

// unclaimedRoots takes complete documents that nothing renders and that lie in
// no folder that anything renders: their clusters were started by hand.
func (d *discovery) unclaimedRoots(ctx context.Context) error {
	tried := map[Place]bool{}
	for {
		cands := slices.DeleteFunc(d.unclaimed(), func(doc document) bool { return tried[doc.Place] })
		if len(cands) == 0 {
			return nil
		}
		batch := first(cands)
		var found []*root
		for _, doc := range batch {
			tried[doc.Place] = true
			found = append(found, &root{where: clusterFolder(doc, batch), from: fromDocument, place: doc.Place, object: doc.obj})
		}
		before := len(d.roots)
		d.accept(found)
		if len(d.roots) == before {
			continue
		}
		if err := d.fixpoint(ctx); err != nil {
			return err
		}
		for d.dropClaimed() {
			if err := d.fixpoint(ctx); err != nil {
				return err
			}
		}
	}
}

// first chooses among documents that may be roots: those that call themselves the
// root, else those that lie in nobody else's folder, else, when they lie in each
// other's, all of them: dropClaimed keeps one of a ring.
func first(cands []document) []document {
	batch := slices.DeleteFunc(slices.Clone(cands), func(doc document) bool { return doc.Name != defaultName })
	if len(batch) > 0 {
		return batch
	}
	paths := make([]string, len(cands))
	for i, doc := range cands {
		paths[i] = NormalizePath(str(doc.obj, "spec", "path"))
	}
	for i, doc := range cands {
		inside := false
		for j, o := range cands {
			if i != j && under(doc.File, paths[j]) && !under(o.File, paths[i]) {
				inside = true
				break
			}
		}
		if !inside {
			batch = append(batch, doc)
		}
	}
	if len(batch) == 0 {
		return cands
	}
	return batch
}

// clusterFolder is the folder that a document's cluster is named after.
func clusterFolder(doc document, others []document) string {
	if doc.Name == defaultName {
		return NormalizePath(str(doc.obj, "spec", "path"))
	}
	dir := path.Dir(doc.File)
	for _, o := range others {
		if up := path.Dir(o.File); o.Name != defaultName && up != "." && under(dir, up) && len(up) < len(dir) {
			dir = up
		}
	}
	return dir
}

// unclaimed are the documents that could be roots: complete, with a path that is
// known, rendered by nothing, in no folder of a known Kustomization.
func (d *discovery) unclaimed() []document {
	read, folders := d.territory()
	seen := map[Place]bool{}
	for _, r := range d.roots {
		seen[r.place] = true
	}
	var out []document
	for _, doc := range d.snap.docs {
		if !isFluxKustomization(doc.APIVersion, doc.Kind) || !complete(doc.obj) || variableIn(str(doc.obj, "spec", "path")) != "" || seen[doc.Place] || read[doc.File] || hiddenFolder(doc.File) {
			continue
		}
		if slices.ContainsFunc(folders, func(f string) bool { return under(doc.File, f) }) {
			continue
		}
		out = append(out, doc)
	}
	return out
}

// hiddenFolder tells a file below a folder with a dot: where people put what is no
// longer, or not yet, applied. What renders it makes it known all the same.
func hiddenFolder(file string) bool {
	for _, part := range strings.Split(path.Dir(file), "/") {
		if len(part) > 1 && part[0] == '.' {
			return true
		}
	}
	return false
}

// territory is what the known Kustomizations cover: files that a build read and
// folders that are built.
func (d *discovery) territory() (read map[string]bool, folders []string) {
	read = map[string]bool{}
	for _, n := range d.nodes {
		if n.build == nil || n.art == nil {
			continue
		}
		folders = append(folders, n.art.art.RepoPath(n.path))
		for _, r := range n.build.result.Reads {
			read[n.art.art.RepoPath(r.Path)] = true
		}
	}
	return read, folders
}

// dropClaimed removes roots taken from documents that another root turned out to
// lead to. Of roots that lead to each other one stays.
func (d *discovery) dropClaimed() bool {
	type doc struct{ file, name string }
	// Two different roots are enough: one of them is another than the document's own.
	claims := map[doc][]*root{}
	for _, k := range sortedKeys(d.nodes) {
		n := d.nodes[k]
		if n.art == nil {
			continue
		}
		top := d.top(n)
		for _, m := range n.manifests {
			if !isFluxKustomization(m.APIVersion, m.Kind) {
				continue
			}
			from := d.e.originOf(n.art, m)
			at := doc{n.art.art.RepoPath(from.File), from.Name}
			if len(claims[at]) < 2 && !slices.Contains(claims[at], top) {
				claims[at] = append(claims[at], top)
			}
		}
	}
	dropped := map[*root]bool{}
	d.round = nil
	d.roots = slices.DeleteFunc(d.roots, func(r *root) bool {
		if r.from != fromDocument {
			return false
		}
		for _, by := range claims[doc{r.place.File, str(r.object, "metadata", "name")}] {
			if by != r && !dropped[by] {
				dropped[r] = true
				return true
			}
		}
		return false
	})
	return len(dropped) > 0
}

// top is the root that leads to a node.
func (d *discovery) top(n *node) *root {
	for n.root == nil {
		n = d.nodes[n.parent]
	}
	return n.root
}

// normalURL makes two ways to write a repository's URL equal: no scheme, user,
// port of ssh, ".git" or case of the host.
func normalURL(raw string) string {
	s := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(raw), "/"), ".git")
	if !strings.Contains(s, "://") {
		// user@host:path
		if host, p, ok := strings.Cut(s, ":"); ok && !strings.Contains(host, "/") {
			s = "ssh://" + host + "/" + strings.TrimPrefix(p, "/")
		}
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return s
	}
	return strings.ToLower(u.Hostname()) + "/" + strings.Trim(u.Path, "/")
}

// urlWithoutSecrets is a URL that can be shown.
func urlWithoutSecrets(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "another repository"
	}
	u.User, u.RawQuery = nil, ""
	return fmt.Sprint(u)
}
