package gitops

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
)

// minSecret is the shortest value that is masked, in bytes: shorter ones are
// ports, flags and the like, and stand in every other word.
const minSecret = 6

// mask stands where a secret value was.
const mask = "***"

// secretValues are what must not leave: values of Secrets in the files and in what
// is rendered, of variables that come from Secrets, and of those that the user
// gave. A value that a path or a name in the files shows anyway is none.
func (d *discovery) secretValues() *strings.Replacer {
	values := map[string]bool{}
	add := func(v string) {
		for _, part := range append(strings.Split(v, "\n"), v) {
			if part = strings.TrimSpace(part); len(part) >= minSecret && !isEncrypted(part) {
				values[part] = true
			}
		}
	}
	secret := func(obj map[string]any) {
		for _, field := range []string{"data", "stringData"} {
			m, _ := obj[field].(map[string]any)
			for _, v := range m {
				s, ok := v.(string)
				if !ok {
					continue
				}
				add(s)
				if b, err := base64.StdEncoding.DecodeString(s); err == nil && field == "data" {
					add(string(b))
				}
			}
		}
	}
	for _, doc := range d.snap.docs {
		if doc.Kind == "Secret" {
			secret(doc.obj)
		}
	}
	for _, n := range d.nodes {
		for _, m := range n.manifests {
			if m.Kind == "Secret" && m.group() == "" {
				secret(m.object())
			}
		}
		if n.vars == nil {
			continue
		}
		for name, of := range n.vars.secret {
			if of {
				add(n.vars.values[name])
			}
		}
	}
	for _, v := range d.snap.repo.Config.Vars {
		add(v)
	}
	shown := d.shown()
	list := make([]string, 0, len(values))
	for v := range values {
		if !strings.Contains(shown, v) {
			list = append(list, v)
		}
	}
	// The longer first: one value may be part of another.
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(list))
	for _, v := range list {
		pairs = append(pairs, v, mask)
	}
	return strings.NewReplacer(pairs...)
}

// shown are the paths and names that stand in the files for everybody to read.
func (d *discovery) shown() string {
	var b strings.Builder
	for _, f := range d.snap.view.files() {
		b.WriteString(f)
		b.WriteByte('\n')
	}
	for _, doc := range d.snap.docs {
		b.WriteString(doc.Namespace + "/" + doc.Name + "\n")
	}
	return b.String()
}

// Mask takes the values of Secrets out of a text that was made from the
// repository: whatever shows an answer to somebody passes every text through it.
func (g *FluxGraph) Mask(s string) string {
	if g.secrets == nil {
		return s
	}
	return g.secrets.Replace(s)
}

// Mask does the same for both sides of a change.
func (r *ImpactResult) Mask(s string) string { return r.base.Mask(r.Graph.Mask(s)) }
