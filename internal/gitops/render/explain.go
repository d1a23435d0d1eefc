package render

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/locate"
)

// explain gives an error of a build its code and place: kustomize has prose only.
func (g *guard) explain(err error, r Request) *Error {
	if g.refusal != nil {
		return g.refusal
	}
	var coded *Error
	if errors.As(err, &coded) {
		return coded
	}
	text := err.Error()
	if e := g.template(text); e != nil {
		return e
	}
	if e := g.malformed(text); e != nil {
		return e
	}
	if e := g.missing(text); e != nil {
		return e
	}
	out := &Error{Code: RenderFailed, Message: g.message(text)}
	out.File, out.Line = g.place(text)
	return out
}

// place finds the file that an error is about, and the line.
func (g *guard) place(text string) (string, int) {
	if m := circle.FindStringSubmatch(text); m != nil {
		if rel, ok := g.relative(m[1]); ok {
			for _, from := range g.edges[rel] {
				if from != "" {
					return from, lineOf(g.files[from], g.entries[[2]string{rel, from}])
				}
			}
		}
	}
	file := g.fileIn(text)
	if rel, ok := g.relative(g.overlay); file == "" && ok && g.files[rel] != nil {
		file = rel
	}
	if m := nameless.FindString(text); m != "" && file != "" {
		f, _ := locate.Parse(g.files[file])
		for _, doc := range f.Documents() {
			if doc.Kind == "" || doc.Name == "" && !strings.HasSuffix(doc.Kind, "List") {
				return file, doc.Line
			}
		}
	}
	if m := identity.FindAllStringSubmatch(text, -1); len(m) > 0 {
		kind, name := m[len(m)-1][1], m[len(m)-1][2]
		if strings.Contains(text, "already registered id") {
			if line := secondOf(g.files[file], kind, name); line > 0 {
				return file, line
			}
		}
		if line := lineOfObject(g.files[file], kind, name); line > 0 {
			return file, line
		}
		// A patch in a file of its own.
		for _, rel := range g.order {
			if line := lineOfObject(g.files[rel], kind, name); line > 0 {
				return rel, line
			}
		}
	}
	if file == "" {
		return "", 0
	}
	if m := field.FindStringSubmatch(text); m != nil {
		if line := lineOf(g.files[file], m[1]+":"); line > 0 {
			return file, line
		}
	}
	if m := operation.FindStringSubmatch(text); m != nil {
		for _, rel := range append([]string{file}, g.order...) {
			if line := lineOf(g.files[rel], m[1]); line > 0 {
				return rel, line
			}
		}
	}
	return file, 1
}

// What kustomize says an error is about: a folder that is its own base, an
// object as Kind.version.group/name.namespace, a field.
var (
	circle   = regexp.MustCompile(`cycle detected: candidate root '([^']+)'`)
	identity = regexp.MustCompile(`([A-Z][A-Za-z]+)\.[^\s./]+\.[^\s/]+/([^\s/]+)\.\[?[A-Za-z0-9-]+\]?`)
	field    = regexp.MustCompile(`unknown field "([^"]+)"`)
	// operation is the path of a JSON patch's operation.
	operation = regexp.MustCompile(`for path: '(/[^']+)'`)
	nameless  = regexp.MustCompile(`missing (?:kind|metadata\.name|Resource metadata) in object`)
)

// secondOf finds the name of the second document of a file that has this kind and
// name, 0 when there is none.
func secondOf(data []byte, kind, name string) int {
	f, _ := locate.Parse(data)
	seen := map[string]bool{}
	for _, doc := range f.Documents() {
		if doc.Kind != kind || doc.Name != name {
			continue
		}
		if id := doc.APIVersion + " " + doc.Namespace; !seen[id] {
			seen[id] = true
			continue
		}
		line, _ := doc.Field("/metadata/name")
		return line
	}
	return 0
}

// lineOfObject finds the name of an object in a file, in a document or in a patch
// that is written into one.
func lineOfObject(data []byte, kind, name string) int {
	if !bytes.Contains(data, []byte(kind)) {
		return 0
	}
	re := regexp.MustCompile(`(?m)\bname["']?:\s*["']?` + regexp.QuoteMeta(name) + `\b`)
	at := re.FindIndex(data)
	if at == nil {
		return 0
	}
	return 1 + bytes.Count(data[:at[0]], []byte("\n"))
}

// braces are those of a template at the beginning of a value or of a line.
var braces = regexp.MustCompile(`(?m)^[^#"'\n]*(?::|-)[ \t]+\{\{|^[ \t]*\{\{`)

// template finds the template that somebody took for YAML: without quotes, {{ }} is
// a mapping with a mapping for a key.
func (g *guard) template(text string) *Error {
	if !strings.Contains(text, "invalid map key") {
		return nil
	}
	for _, rel := range g.order {
		if at := braces.FindIndex(g.files[rel]); at != nil && slices.Contains([]string{".yaml", ".yml"}, path.Ext(rel)) {
			return &Error{Code: InvalidYAML, File: rel, Line: 1 + bytes.Count(g.files[rel][:at[1]], []byte("\n")), Message: "a key is a mapping, where only a text is possible: a template's {{ }} must be put in quotes"}
		}
	}
	return nil
}

// malformed finds the file that can't be parsed: the one that the message names,
// else the first.
func (g *guard) malformed(text string) *Error {
	var first *Error
	for _, rel := range g.order {
		switch path.Ext(rel) {
		case ".yaml", ".yml", ".json":
		default:
			if path.Base(rel) != "Kustomization" {
				continue
			}
		}
		_, problems := locate.Parse(g.files[rel])
		if len(problems) == 0 {
			continue
		}
		p := problems[0]
		e := &Error{Code: InvalidYAML, File: rel, Line: p.Line, Message: p.Message}
		if p.Kind == locate.DuplicateKey {
			e.Code = DuplicateKey
		}
		if strings.Contains(text, path.Base(rel)) {
			return e
		}
		if first == nil {
			first = e
		}
	}
	return first
}

// missing finds the entry of a kustomization file that names what is not there,
// the innermost when several are on the way.
func (g *guard) missing(text string) *Error {
	var best string
	for rel := range g.edges {
		if g.reads[Read{rel, File}] || g.edges[rel][0] == "" && len(g.edges[rel]) == 1 {
			continue
		}
		gone := g.reads[Read{rel, Missing}]
		// A folder without a kustomization file is no base.
		hollow := g.reads[Read{rel, Folder}] && strings.Contains(text, "unable to find one of") && g.hollow(rel)
		if (gone || hollow) && (best == "" || rel < best) && strings.Contains(text, path.Base(rel)) {
			best = rel
		}
	}
	if best == "" {
		return nil
	}
	for _, from := range g.edges[best] {
		if from == "" {
			continue
		}
		entry := g.entries[[2]string{best, from}]
		what := "does not exist"
		if g.reads[Read{best, Folder}] {
			what = "has no kustomization file"
		}
		return &Error{Code: RenderFailed, File: from, Line: lineOf(g.files[from], entry), Message: fmt.Sprintf("it names %q, which %s", entry, what)}
	}
	return nil
}

func (g *guard) hollow(rel string) bool {
	for _, n := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		if g.reads[Read{path.Join(rel, n), File}] {
			return false
		}
	}
	return true
}

// fileIn is the last file of the build that a message names, by its own path or
// as the kustomization file of a folder.
func (g *guard) fileIn(text string) string {
	best, at := "", -1
	for _, rel := range g.order {
		abs := filepath.Join(g.root, filepath.FromSlash(rel))
		for _, name := range []string{abs, "'" + filepath.Dir(abs) + "'"} {
			// The folder of the message's end is where it happened.
			if name[0] == '\'' && !slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(rel)) {
				continue
			}
			if i := strings.LastIndex(text, name); i > at {
				best, at = rel, i
			}
		}
	}
	return best
}

// maxMessage bounds what is repeated of kustomize's words, in bytes.
const maxMessage = 600

// message is kustomize's text without this machine's folders and without values
// of Secrets.
func (g *guard) message(text string) string {
	text = strings.ReplaceAll(text, g.root+string(filepath.Separator), "")
	text = strings.ReplaceAll(text, g.root, ".")
	text = g.masked(text)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return strings.TrimSpace(text)
}

// masked puts asterisks for every value that a Secret, an encrypted file or a
// secretGenerator of this build holds.
func (g *guard) masked(text string) string {
	values := map[string]bool{}
	for _, rel := range g.order {
		data := g.files[rel]
		if isSecretive(data) {
			collectValues(data, values)
		}
	}
	if g.secretFiles(values); len(values) == 0 {
		return text
	}
	sorted := make([]string, 0, len(values))
	for v := range values {
		sorted = append(sorted, v)
	}
	// Longer ones first: a value may be part of another.
	sort.Slice(sorted, func(i, j int) bool {
		return len(sorted[i]) > len(sorted[j]) || len(sorted[i]) == len(sorted[j]) && sorted[i] < sorted[j]
	})
	for _, v := range sorted {
		text = strings.ReplaceAll(text, v, "***")
	}
	return text
}

func isSecretive(data []byte) bool {
	s := string(data)
	return strings.Contains(s, "Secret") || strings.Contains(s, "secretGenerator") || strings.Contains(s, "sops:") || strings.Contains(s, "stringData")
}

// collectValues gathers the scalars below data, stringData and literals, of
// every document; of a file that does not parse, every word that is long enough.
func collectValues(data []byte, into map[string]bool) {
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	for {
		var n yaml.Node
		err := safely(func() error { return dec.Decode(&n) })
		if err != nil {
			if err.Error() != "EOF" {
				for _, w := range strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune(" \n\t\r\"'", r) }) {
					if len(w) >= 6 && !strings.HasSuffix(w, ":") {
						into[w] = true
					}
				}
			}
			return
		}
		gather(&n, false, into, 0)
	}
}

func gather(n *yaml.Node, inside bool, into map[string]bool, depth int) {
	if depth > maxDepth {
		return
	}
	switch n.Kind {
	case yaml.ScalarNode:
		if inside && len(n.Value) >= 4 {
			into[n.Value] = true
			for _, line := range strings.Split(n.Value, "\n") {
				if line = strings.TrimSpace(line); len(line) >= 4 {
					into[line] = true
				}
			}
			if _, v, ok := strings.Cut(n.Value, "="); ok && len(v) >= 4 {
				into[v] = true
			}
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k := n.Content[i].Value
			gather(n.Content[i+1], inside || k == "data" || k == "stringData" || k == "literals", into, depth+1)
		}
	default:
		for _, c := range n.Content {
			gather(c, inside, into, depth+1)
		}
	}
}

// secretFiles adds the lines of files that a secretGenerator reads.
func (g *guard) secretFiles(into map[string]bool) {
	for _, rel := range g.order {
		for _, from := range g.edges[rel] {
			if from == "" || !strings.Contains(string(g.files[from]), "secretGenerator") || path.Ext(rel) == ".yaml" || path.Ext(rel) == ".yml" {
				continue
			}
			for _, line := range strings.Split(string(g.files[rel]), "\n") {
				if _, v, ok := strings.Cut(line, "="); ok && len(strings.TrimSpace(v)) >= 4 {
					into[strings.TrimSpace(v)] = true
				}
				if line = strings.TrimSpace(line); len(line) >= 4 {
					into[line] = true
				}
			}
		}
	}
}
