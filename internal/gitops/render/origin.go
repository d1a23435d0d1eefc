package render

import (
	"bytes"
	"path"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/locate"
)

// origin reads the annotations that say where an object comes from. Paths in
// them are relative to the entry.
func (g *guard) origin(res *resource.Resource, entry string) Origin {
	out := Origin{Kind: res.GetKind(), Namespace: res.GetNamespace(), Name: res.GetName()}
	// An object without the annotation has no place; that is said by the file
	// being empty.
	if from, err := res.GetOrigin(); err == nil && from != nil {
		if from.Path != "" && from.Repo == "" {
			out.File = path.Join(entry, from.Path)
		}
		if from.ConfiguredIn != "" {
			out.Generator = path.Join(entry, from.ConfiguredIn)
		}
	}
	if ts, err := res.GetTransformations(); err == nil {
		for _, t := range ts {
			if t.ConfiguredIn != "" && t.Repo == "" {
				out.Transformers = append(out.Transformers, Transformer{path.Join(entry, t.ConfiguredIn), t.ConfiguredBy.Kind})
			}
		}
	}
	if out.File != "" {
		g.document(&out)
	}
	return out
}

// document gives an origin the kind and name that the document has: prefixes,
// suffixes, namespaces and patches change them, and kustomize forgets the former
// ones before it returns.
func (g *guard) document(o *Origin) {
	data, ok := g.files[o.File]
	if !ok {
		return
	}
	if mentions(data, o.Name) && (o.Namespace == "" || mentions(data, o.Namespace)) {
		return
	}
	f, ok := g.parsed[o.File]
	if !ok {
		f, _ = locate.Parse(data) // it was parsed by kustomize: problems are none of origin's
		if g.parsed == nil {
			g.parsed = map[string]*locate.File{}
		}
		g.parsed[o.File] = f
	}
	if f == nil {
		return
	}
	if d, ok := f.Find(o.Kind, o.Namespace, o.Name); ok {
		o.Namespace = d.Namespace
		return
	}
	var best *locate.Doc
	same := 0
	docs := f.Documents()
	for i, d := range docs {
		if d.Kind != o.Kind {
			continue
		}
		same++
		if strings.Contains(o.Name, d.Name) && (best == nil || len(d.Name) > len(best.Name)) {
			best = &docs[i]
		}
	}
	switch {
	case best != nil:
	case same == 1:
		for i := range docs {
			if docs[i].Kind == o.Kind {
				best = &docs[i]
			}
		}
	case len(docs) == 1:
		best = &docs[0]
	default:
		return
	}
	o.Kind, o.Namespace, o.Name = best.Kind, best.Namespace, best.Name
}

// mentions tells whether a file gives something a name: the cheap test that
// spares most files a second parse.
func mentions(data []byte, name string) bool {
	for _, form := range []string{": " + name, `: "` + name, ": '" + name, `":"` + name} {
		if bytes.Contains(data, []byte(form)) {
			return true
		}
	}
	return false
}
