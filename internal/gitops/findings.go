package gitops

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// renderCodes are the codes of builds that fail.
var renderCodes = map[render.Code]Code{
	render.RemoteReference: RemoteReference,
	render.PathNotFound:    PathNotFound,
	render.DuplicateKey:    DuplicateKey,
	render.InvalidYAML:     InvalidYAML,
}

// findings gathers what discovery itself says about the graph: unreachable
// sources and paths, builds that fail, dependencies, unknown variables.
func (d *discovery) findings(g *FluxGraph) {
	book := newBook()
	for _, k := range g.Keys() {
		out := g.Kustomizations[k]
		n := out.node
		d.nodeFindings(book, out, n)
	}
	d.dependencyFindings(book, g)
	for _, dup := range d.duplicate {
		f := Finding{Code: DuplicateOwner, Severity: SeverityFail, Source: SourceGraph,
			Message:        fmt.Sprintf("Kustomization %s is rendered twice: by %s and by %s; the later one to be applied wins", dup.first.key, parentName(dup.first), parentName(dup.second)),
			Object:         &Object{APIVersion: str(dup.first.object, "apiVersion"), Kind: "Kustomization", Namespace: dup.first.key.Namespace, Name: dup.first.key.Name},
			Kustomizations: parents(dup.first, dup.second)}
		p := d.placeOf(dup.second)
		f.File, f.Line = p.File, p.Line
		book.add(f)
	}
	for _, u := range g.Unreferenced {
		book.add(Finding{Code: Unreferenced, Severity: SeverityPass, Source: SourceGraph, Message: fmt.Sprintf("Kustomization %s: %s", u.Key.Name, u.Reason),
			Object: &Object{Kind: "Kustomization", Namespace: u.Key.Namespace, Name: u.Key.Name}, File: u.Place.File, Line: u.Place.Line})
	}
	g.Findings = book.sorted()
}

func parentName(n *node) string {
	if n.root != nil {
		return "the root document"
	}
	return n.parent.String()
}

func parents(ns ...*node) []KustomizationKey {
	var out []KustomizationKey
	for _, n := range ns {
		if n.root == nil && !slices.Contains(out, n.parent) {
			out = append(out, n.parent)
		}
	}
	SortKeys(out)
	return out
}

func (d *discovery) nodeFindings(book *book, out KustomizationNode, n *node) {
	key := []KustomizationKey{n.key}
	self := Object{APIVersion: str(n.object, "apiVersion"), Kind: "Kustomization", Namespace: n.key.Namespace, Name: n.key.Name}
	own := func(field string) Place { return d.ownField(n, field) }
	switch {
	case n.noSource:
		p := own("/spec/sourceRef/name")
		book.add(Finding{Code: SourceNotFound, Severity: SeverityWarn, Source: SourceGraph, Kustomizations: key, Object: &self, Field: "/spec/sourceRef",
			Message: fmt.Sprintf("%s; Flux finds it only if something else creates it", n.external), File: p.File, Line: p.Line})
	case n.failure != nil && n.failure.Code == codePathUnknown:
		p := own("/spec/path")
		book.add(Finding{Code: UnresolvedVariable, Severity: SeverityWarn, Source: SourceRender, Kustomizations: key, Object: &self, Field: "/spec/path",
			Message: n.failure.Message, File: p.File, Line: p.Line})
	case n.failure != nil && n.failure.Code == render.PathNotFound && n.failure.File == "":
		p := own("/spec/path")
		book.add(Finding{Code: PathNotFound, Severity: SeverityFail, Source: SourceGraph, Kustomizations: key, Object: &self, Field: "/spec/path",
			Message: fmt.Sprintf("spec.path %q is not in the artifact of %s", n.path, n.ref), File: p.File, Line: p.Line})
	case n.failure != nil && (n.failure.Code == render.Timeout || n.failure.Code == render.TooLarge):
		// Our bounds, not Flux's.
		f := Finding{Code: Unverifiable, Severity: SeverityWarn, Source: SourceRender, Kustomizations: key,
			Message: "not built here, so nothing is said of it: " + n.failure.Message}
		if n.failure.File != "" {
			f.File, f.Line = n.art.art.RepoPath(n.failure.File), n.failure.Line
		} else {
			p := own("/spec/path")
			f.File, f.Line = p.File, p.Line
		}
		book.add(f)
	case n.failure != nil && n.build != nil && len(n.build.result.Stubs) > 0 && n.failure.Code == render.RenderFailed:
		book.add(Finding{Code: Unverifiable, Severity: SeverityWarn, Source: SourceRender, Kustomizations: key, Raw: n.failure.Message,
			Message: "the build does not come to an end without the remote entries that were left out: " + n.failure.Message,
			File:    n.art.art.RepoPath(n.failure.File), Line: n.failure.Line})
	case n.failure != nil:
		code, ok := renderCodes[n.failure.Code]
		if !ok {
			code = RenderFailed
		}
		f := Finding{Code: code, Severity: SeverityFail, Source: SourceRender, Kustomizations: key, Message: n.failure.Message, Raw: n.failure.Message}
		if n.failure.File != "" {
			f.File, f.Line = n.art.art.RepoPath(n.failure.File), n.failure.Line
		} else {
			p := own("/spec/path")
			f.File, f.Line = p.File, p.Line
		}
		book.add(f)
	}
	if n.build == nil {
		return
	}
	for _, s := range n.build.result.Stubs {
		if s.Dependent {
			book.add(Finding{Code: RemoteReference, Severity: SeverityWarn, Source: SourceRender, Kustomizations: key, Field: s.Field,
				Message: fmt.Sprintf("the patch of %s is left out, since a remote entry would bring what it patches", s.Value), File: n.art.art.RepoPath(s.File), Line: s.Line})
			continue
		}
		book.add(Finding{Code: RemoteReference, Severity: SeverityWarn, Source: SourceRender, Kustomizations: key, Field: "/" + s.Field,
			Message: fmt.Sprintf("%s is outside the repository: it was left out, and what it would bring is not judged", s.Value), File: n.art.art.RepoPath(s.File), Line: s.Line})
	}
	d.ignoredFindings(book, n)
	d.variableFindings(book, n, &self)
	d.expansionFindings(book, n)
}

// ownField is where a field of a Kustomization's own document stands, or of what
// put it there.
func (d *discovery) ownField(n *node, field string) Place {
	if n.made != nil {
		if up := d.nodes[n.parent]; up != nil && up.art != nil {
			return d.fieldPlace(up, n.made, field, false)
		}
	}
	p := n.place
	if f, _ := d.e.parsed(d.snap.view, p.File); f != nil {
		if doc, ok := f.Find(str(n.object, "kind"), str(n.object, "metadata", "namespace"), str(n.object, "metadata", "name")); ok {
			p.Line, _ = doc.Field(field)
		}
	}
	return p
}

// ignoredFindings names keys of kustomization files that have no effect.
func (d *discovery) ignoredFindings(book *book, n *node) {
	if n.build.result.Err != nil {
		return
	}
	for _, r := range n.build.result.Reads {
		if r.Kind != render.File || !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(r.Path)) {
			continue
		}
		for _, x := range d.e.ignoredKeys(n.art, r.Path) {
			f := Finding{Code: DuplicateKey, Severity: SeverityWarn, Source: SourceRender, Kustomizations: []KustomizationKey{n.key}, Field: "/" + x.Key,
				Message: fmt.Sprintf("the key %q is there twice: the later one counts, and nobody says so", x.Key), File: n.art.art.RepoPath(r.Path), Line: x.Line}
			if !x.Twice {
				f.Code, f.Message = UnknownField, fmt.Sprintf("a kustomization file has no field %q: Flux drops it without a word", x.Key)
			}
			book.add(f)
		}
	}
}

// ignoredKeys remembers by content.
func (e *Engine) ignoredKeys(a *artifactView, file string) []render.Ignored {
	hash, ok := a.hash(file)
	if !ok {
		return nil
	}
	key := "ignored:" + hash
	if v, ok := e.cache.get(key); ok {
		return v.([]render.Ignored)
	}
	data, err := readBounded(filepath.Join(a.art.Dir, filepath.FromSlash(file)), maxRawFile)
	if err != nil || data == nil {
		return nil // the build has read it; what changed since is not this answer's
	}
	out := render.IgnoredKeys(data)
	e.cache.put(key, out, 128+64*len(out))
	return out
}

// variableFindings reports each producer of values that is missing once, and
// each name that no producer has.
func (d *discovery) variableFindings(book *book, n *node, self *Object) {
	used := map[string]bool{}
	for _, m := range n.manifests {
		for _, t := range m.taints {
			used[t.Variable] = true
		}
	}
	for i, from := range n.vars.missing {
		if len(used) == 0 || from.optional {
			continue
		}
		p := d.ownField(n, fmt.Sprintf("/spec/postBuild/substituteFrom/%d", i))
		book.add(Finding{Code: UnresolvedVariable, Severity: SeverityWarn, Source: SourceRender, Kustomizations: []KustomizationKey{n.key},
			Object:  &Object{APIVersion: "v1", Kind: from.kind, Namespace: from.namespace, Name: from.name},
			Message: fmt.Sprintf("%s is not in the repository; values that may come from it are not known here and not judged: give them with --vars", from),
			Rule:    "variables: " + strings.Join(bounded(slices.Sorted(maps.Keys(used)), 8), ", "), File: p.File, Line: p.Line}, mergeByObject)
	}
	if len(n.unset) > 0 {
		p := d.ownField(n, "/spec/postBuild")
		f := Finding{Code: UnresolvedVariable, Severity: SeverityWarn, Source: SourceRender, Kustomizations: []KustomizationKey{n.key}, Object: self, Field: "/spec/postBuild",
			Message: fmt.Sprintf("nothing sets %s: ", strings.Join(bounded(n.unset, 8), ", ")), File: p.File, Line: p.Line}
		switch d.strictIn(n.key.Cluster) {
		case strictYes:
			f.Severity = SeverityFail
			f.Message += "the Kustomization fails for it; set it, or write a default as in ${NAME:=value}"
		case strictNo:
			f.Message += "Flux puts an empty text there"
		default:
			f.Message += "Flux 2.9 and later fail for it, earlier ones put an empty text there; set it, or write a default as in ${NAME:=value}"
		}
		book.add(f)
	}
}

// expansionFindings names what makes further objects that are not looked at.
func (d *discovery) expansionFindings(book *book, n *node) {
	for _, m := range n.manifests {
		switch {
		case m.Kind == "HelmRelease" && m.group() == groupHelm:
			book.add(Finding{Code: NotExpanded, Severity: SeverityPass, Source: SourceRender, Kustomizations: []KustomizationKey{n.key},
				Object: &Object{APIVersion: m.APIVersion, Kind: m.Kind}, Message: "what the charts of HelmReleases render is not looked at"}, mergeByObject)
		case m.Kind == "ResourceSet" && m.group() == groupOperator:
			p := d.e.placeOf(n.art, m)
			o := m.Object
			book.add(Finding{Code: NotExpanded, Severity: SeverityWarn, Source: SourceRender, Kustomizations: []KustomizationKey{n.key}, Object: &o,
				Message: "a ResourceSet makes further objects, maybe Kustomizations: they are not looked at", File: p.File, Line: p.Line})
		}
	}
}

// dependencyFindings reports cycles, each once, and dependsOn without a target.
func (d *discovery) dependencyFindings(book *book, g *FluxGraph) {
	for _, cycle := range Cycles(g) {
		names := make([]string, 0, len(cycle)+1)
		for _, k := range cycle {
			names = append(names, k.Namespace+"/"+k.Name)
		}
		p := d.ownField(g.Kustomizations[cycle[0]].node, "/spec/dependsOn")
		book.add(Finding{Code: DependsOnCycle, Severity: SeverityFail, Source: SourceGraph, Kustomizations: cycle, Cycle: cycle,
			Message: fmt.Sprintf("cluster %s: %s wait for each other and never run; while they are there, no new revision of their source wakes a Kustomization: the others follow at their interval", cycle[0].Cluster, strings.Join(append(names, names[0]), " → ")), Field: "/spec/dependsOn", File: p.File, Line: p.Line})
	}
	gaps := d.gaps(g)
	for _, k := range g.Keys() {
		n := g.Kustomizations[k]
		for i, dep := range n.DependsOn {
			if _, ok := g.Kustomizations[dep]; ok || variableIn(dep.Namespace+dep.Name) != "" {
				continue
			}
			field := fmt.Sprintf("/spec/dependsOn/%d", i)
			p := d.ownField(n.node, field)
			f := Finding{Code: DanglingDependency, Severity: SeverityFail, Source: SourceGraph, Kustomizations: []KustomizationKey{k},
				Message: fmt.Sprintf("dependsOn names %s/%s, which cluster %s does not have%s", dep.Namespace, dep.Name, k.Cluster, suggestion(g, dep)),
				Object:  &Object{APIVersion: str(n.node.object, "apiVersion"), Kind: "Kustomization", Namespace: k.Namespace, Name: k.Name}, Field: field, File: p.File, Line: p.Line}
			if why := gaps[k.Cluster]; why != "" {
				f.Code, f.Severity = Unverifiable, SeverityWarn
				f.Message = fmt.Sprintf("dependsOn names %s/%s, which is not among the Kustomizations found for cluster %s; it may come from what can't be looked into here: %s", dep.Namespace, dep.Name, k.Cluster, why)
			}
			book.add(f)
		}
	}
}

// gaps says, by cluster, what might hold Kustomizations that were not found.
func (d *discovery) gaps(g *FluxGraph) map[string]string {
	out := map[string]string{}
	for _, k := range g.Keys() {
		n := g.Kustomizations[k]
		if out[k.Cluster] != "" {
			continue
		}
		switch {
		case n.State == StateExternal, n.State == StateFailed, n.node.failure != nil:
			out[k.Cluster] = fmt.Sprintf("Kustomization %s/%s (%s)", k.Namespace, k.Name, n.State)
		case n.node.build != nil && len(n.node.build.result.Stubs) > 0:
			out[k.Cluster] = fmt.Sprintf("remote entries of Kustomization %s/%s", k.Namespace, k.Name)
		default:
			for _, m := range n.node.manifests {
				if m.Kind == "ResourceSet" && m.group() == groupOperator {
					out[k.Cluster] = "ResourceSet " + m.Name
				}
			}
		}
	}
	return out
}

// suggestion names the Kustomization that was likely meant.
func suggestion(g *FluxGraph, dep KustomizationKey) string {
	for _, k := range g.Keys() {
		if k.Cluster == dep.Cluster && k.Name == dep.Name {
			return fmt.Sprintf("; there is %s/%s", k.Namespace, k.Name)
		}
	}
	return ""
}

// book collects findings, each once with all the Kustomizations it concerns.
type book struct {
	at  map[string]int
	all []Finding
}

func newBook() *book { return &book{at: map[string]int{}} }

// identity decides when two findings are one.
type identity func(Finding) string

// mergeByObject makes one finding of all about one object, wherever it is used.
func mergeByObject(f Finding) string { return digest(string(f.Code), f.Object.String()) }

// mergeByPlace makes one finding of all about one line: a base or a component is
// rendered into many objects, under other names and namespaces.
func mergeByPlace(f Finding) string {
	o := ""
	if f.Object != nil && f.Line == 0 {
		o = f.Object.APIVersion + f.Object.String()
	}
	return digest(string(f.Code), string(f.Source), o, f.Field, f.Message, f.File, fmt.Sprint(f.Line))
}

func (b *book) add(f Finding, by ...identity) {
	same := identity(mergeByPlace)
	if len(by) > 0 {
		same = by[0]
	}
	key := same(f)
	if i, ok := b.at[key]; ok {
		for _, k := range f.Kustomizations {
			if !slices.Contains(b.all[i].Kustomizations, k) {
				b.all[i].Kustomizations = append(b.all[i].Kustomizations, k)
			}
		}
		return
	}
	b.at[key] = len(b.all)
	f.Kustomizations = slices.Clone(f.Kustomizations)
	b.all = append(b.all, f)
}

// rankOf orders codes as FindingCodes does.
var rankOf = func() map[Code]int {
	m := map[Code]int{}
	for i, c := range FindingCodes {
		m[c.Code] = i
	}
	return m
}()

// sorted orders findings, the worst first, deterministically.
func (b *book) sorted() []Finding {
	for i := range b.all {
		if b.all[i].Code != DependsOnCycle {
			SortKeys(b.all[i].Kustomizations)
		}
	}
	slices.SortStableFunc(b.all, compareFindings)
	return b.all
}

func compareFindings(a, b Finding) int {
	return cmp.Or(cmp.Compare(b.Severity.weight(), a.Severity.weight()), cmp.Compare(rankOf[a.Code], rankOf[b.Code]),
		cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
}
