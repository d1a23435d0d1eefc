package gitops

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// sideIndex is what questions about one side of a change look up, each part made
// when it is asked for first.
type sideIndex struct {
	objects   map[clusterObject][]rendering
	documents map[kindName][]document
	elsewhere map[string]KustomizationKey
	charts    map[string][]*chart
	others    map[string]bool
}

// clusterObject names an object that a cluster renders, whatever its API group.
type clusterObject struct{ cluster, kind, namespace, name string }

// rendering is an object and the Kustomization that renders it.
type rendering struct {
	n *node
	m *manifest
}

type kindName struct{ kind, name string }

// renderings are the Kustomizations of a cluster that render an object, by key.
func (s *side) renderings(cluster string, id Object) []rendering {
	if s.objects == nil {
		s.objects = map[clusterObject][]rendering{}
		for _, k := range sortedKeys(s.d.nodes) {
			n := s.d.nodes[k]
			for _, m := range n.manifests {
				ns := m.Namespace
				if ns == "" {
					ns = k.Namespace
				}
				at := clusterObject{k.Cluster, m.Kind, ns, m.Name}
				s.objects[at] = append(s.objects[at], rendering{n, m})
			}
		}
	}
	return s.objects[clusterObject{cluster, id.Kind, id.Namespace, id.Name}]
}

// changedDocuments are the documents of an object in changed files, which need not
// be rendered by anything.
func (s *side) changedDocuments(changed map[string]string, id Object) []document {
	if s.documents == nil {
		s.documents = map[kindName][]document{}
		for _, doc := range s.d.snap.docs {
			if _, ok := changed[doc.File]; ok {
				at := kindName{doc.Kind, doc.Name}
				s.documents[at] = append(s.documents[at], doc)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(s.documents[kindName{id.Kind, id.Name}]), func(doc document) bool {
		return doc.Namespace != id.Namespace && doc.Namespace != ""
	})
}

// otherSource finds the first Kustomization, by key, of another source that builds
// a folder with the name of one that a file lies in.
func (s *side) otherSource(file string) *node {
	if s.elsewhere == nil {
		s.elsewhere = map[string]KustomizationKey{}
		for _, k := range sortedKeys(s.d.nodes) {
			n := s.d.nodes[k]
			if _, ok := s.elsewhere[n.path]; !ok && n.external != "" && n.path != "." {
				s.elsewhere[n.path] = k
			}
		}
	}
	var first *node
	look := func(p string) {
		if k, ok := s.elsewhere[p]; ok && (first == nil || k.Compare(first.key) < 0) {
			first = s.d.nodes[k]
		}
	}
	look(file)
	for dir := range folders(file) {
		look(dir)
	}
	return first
}

// inOtherArtifact tells whether another artifact of this repository, with other
// ignore rules, has a changed file.
func (s *side) inOtherArtifact(changed map[string]string, file string) bool {
	if s.others == nil {
		s.others = map[string]bool{}
		for _, a := range s.d.artifacts {
			for _, f := range a.files() {
				p := a.art.RepoPath(f)
				if _, ok := changed[p]; ok {
					s.others[p] = true
				}
			}
		}
	}
	return s.others[file]
}

// chart is a folder that a HelmRelease installs.
type chart struct {
	cluster, folder string
	ref             SourceRef
	name            string
	// here, once it is known, tells that the folder is one of this repository.
	here *bool
}

// chartOf names the HelmReleases that install the chart in whose folder a file is.
func (s *side) chartOf(file string) string {
	if s.charts == nil {
		s.charts = map[string][]*chart{}
		for _, k := range sortedKeys(s.d.nodes) {
			for _, m := range s.d.nodes[k].manifests {
				if c := chartIn(k, m); c != nil {
					s.charts[c.folder] = append(s.charts[c.folder], c)
				}
			}
		}
	}
	names := map[string]bool{}
	look := func(folder string) {
		for _, c := range s.charts[folder] {
			if c.here == nil {
				view, _, _ := s.d.resolve(c.cluster, c.ref, c.folder, nil, 0)
				here := view != nil
				c.here = &here
			}
			if *c.here {
				names[c.name] = true
			}
		}
	}
	look(file)
	for dir := range folders(file) {
		look(dir)
	}
	return strings.Join(bounded(slices.Sorted(maps.Keys(names)), 3), ", ")
}

// chartIn is the chart that an object of a Kustomization installs from a
// GitRepository, nil when it does not.
func chartIn(k KustomizationKey, m *manifest) *chart {
	if m.Kind != "HelmRelease" || m.group() != groupHelm {
		return nil
	}
	spec := at(m.object(), "spec", "chart", "spec")
	folder := NormalizePath(str(spec, "chart"))
	if str(spec, "sourceRef", "kind") != "GitRepository" || folder == "." {
		return nil
	}
	ns := str(spec, "sourceRef", "namespace")
	if ns == "" {
		ns = m.Namespace
	}
	return &chart{cluster: k.Cluster, folder: folder, ref: SourceRef{"GitRepository", ns, str(spec, "sourceRef", "name")},
		name: fmt.Sprintf("HelmRelease %s/%s of Kustomization %s", m.Namespace, m.Name, k)}
}
