package render

import (
	"bytes"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
	"sigs.k8s.io/kustomize/api/types"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/locate"
)

// scp is the beginning of user@host:path, which kustomize hands to git.
var scp = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// remotePrefixes begin what kustomize fetches, in any case of letters.
var remotePrefixes = []string{"http://", "https://", "ssh://", "file://", "git://", "github.com/", "github.com:", "www.github.com/", "gh:"}

// remote tells whether kustomize would fetch an entry, by HTTP or with git.
func remote(s string) bool {
	lower := strings.ToLower(strings.TrimSpace(s))
	lower = strings.TrimPrefix(lower, "git::")
	for _, p := range remotePrefixes {
		if strings.HasPrefix(lower, p) {
			return true
		}
	}
	if scp.MatchString(lower) {
		return true
	}
	u, err := url.Parse(lower)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// withoutCredentials is a remote entry as it can be shown.
func withoutCredentials(s string) string {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" {
		if i := strings.LastIndex(s, "@"); i >= 0 {
			return s[i+1:]
		}
		return s
	}
	u.User = nil
	return u.String()
}

// kustomization is a kustomization file as the build is to see it: without
// entries that would be fetched. It is decoded as kustomize decodes it, so
// nothing that kustomize would understand escapes; what neither understands is
// left for kustomize to refuse.
func (g *guard) kustomization(rel string, data []byte) ([]byte, error) {
	var k types.Kustomization
	if err := k.Unmarshal(data); err != nil {
		return data, nil
	}
	k.FixKustomization()
	if len(k.OpenAPI) > 0 {
		g.openAPI = true
		if g.building && !g.alone {
			return nil, fmt.Errorf("%s has an openapi field", rel)
		}
	}
	v := &visitor{g: g, rel: rel, raw: g.files[rel]}
	v.visit(&k)
	if v.err != nil {
		return nil, v.err
	}
	if !v.changed {
		g.edited[rel] = data
		return data, nil
	}
	if k.CheckEmpty() != nil || len(k.Resources) == 0 {
		// What had entries must not become an error for having none; the field is
		// replaced by that of the outermost kustomization anyway.
		k.BuildMetadata = append(k.BuildMetadata, types.OriginAnnotations)
	}
	out, err := sigsyaml.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", rel, err)
	}
	g.edited[rel] = out
	return out, nil
}

// visitor goes through the entries of a kustomization that name something to
// load.
type visitor struct {
	g       *guard
	rel     string
	raw     []byte
	changed bool
	err     error
}

func (v *visitor) visit(k *types.Kustomization) {
	k.Resources = v.list("resources", k.Resources)
	k.Components = v.list("components", k.Components)
	k.Crds = v.list("crds", k.Crds)
	k.Configurations = v.list("configurations", k.Configurations)
	k.Generators = v.inlineList("generators", k.Generators)
	k.Transformers = v.inlineList("transformers", k.Transformers)
	k.Validators = v.inlineList("validators", k.Validators)
	if p, ok := k.OpenAPI["path"]; ok && !v.keep("openapi", p) {
		delete(k.OpenAPI, "path")
	}
	k.Patches = v.patches("patches", k.Patches)
	//lint:ignore SA1019 Repositories use the fields that kustomize would rather not see.
	k.PatchesJson6902 = v.patches("patchesJson6902", k.PatchesJson6902)
	var merge []types.PatchStrategicMerge
	//lint:ignore SA1019 As above.
	for _, p := range k.PatchesStrategicMerge {
		inline := strings.Contains(string(p), "\n")
		patch := types.Patch{Path: string(p)}
		if inline {
			patch = types.Patch{Patch: string(p)}
		}
		if (inline || v.keep("patchesStrategicMerge", string(p))) && !v.orphaned("patchesStrategicMerge", patch) {
			merge = append(merge, p)
		}
	}
	//lint:ignore SA1019 As above.
	k.PatchesStrategicMerge = merge
	var replacements []types.ReplacementField
	for _, r := range k.Replacements {
		if r.Path == "" || v.keep("replacements", r.Path) {
			replacements = append(replacements, r)
		}
	}
	k.Replacements = replacements
	for i := range k.ConfigMapGenerator {
		v.sources("configMapGenerator", &k.ConfigMapGenerator[i].KvPairSources)
	}
	for i := range k.SecretGenerator {
		v.sources("secretGenerator", &k.SecretGenerator[i].KvPairSources)
	}
}

func (v *visitor) list(field string, entries []string) []string {
	var out []string
	for _, e := range entries {
		if v.keep(field, e) {
			out = append(out, e)
		}
	}
	return out
}

// inlineList is a list of paths or of documents.
func (v *visitor) inlineList(field string, entries []string) []string {
	var out []string
	for _, e := range entries {
		if !strings.Contains(e, "\n") {
			if v.keep(field, e) {
				out = append(out, e)
			}
			continue
		}
		if _, value := builtinRemote([]byte(e)); value != "" {
			v.stub(field, value)
			continue
		}
		out = append(out, e)
	}
	return out
}

func (v *visitor) patches(field string, patches []types.Patch) []types.Patch {
	var out []types.Patch
	for _, p := range patches {
		if (p.Path == "" || v.keep(field, p.Path)) && !v.orphaned(field, p) {
			out = append(out, p)
		}
	}
	return out
}

// sources are the files of a generator, each maybe with a name in front.
func (v *visitor) sources(field string, s *types.KvPairSources) {
	var files []string
	for _, f := range s.FileSources {
		_, p, named := strings.Cut(f, "=")
		if !named {
			p = f
		}
		if v.keep(field, p) {
			files = append(files, f)
		}
	}
	s.FileSources = files
	s.EnvSources = v.list(field, s.EnvSources)
}

// keep notes a local entry and takes out a remote one. A file that is there is a
// file, whatever it is called, unless kustomize fetches first.
func (v *visitor) keep(field, entry string) bool {
	p := filepath.Join(v.g.root, filepath.FromSlash(v.rel), "..", filepath.FromSlash(entry))
	if remote(entry) {
		u, err := url.Parse(strings.TrimSpace(entry))
		fetched := err == nil && (strings.EqualFold(u.Scheme, "http") || strings.EqualFold(u.Scheme, "https"))
		if info, err := v.g.stat(p); fetched || err != nil || info.IsDir() {
			v.stub(field, entry)
			return false
		}
	}
	if _, ok := v.g.relative(p); !ok && !filepath.IsAbs(entry) && v.err == nil {
		v.err = v.g.refuse(&Error{Code: RenderFailed, File: v.rel, Line: lineOf(v.raw, entry),
			Message: fmt.Sprintf("%s names %q, which is outside the artifact", field, entry)})
	}
	v.g.edge(p, v.rel, entry)
	return true
}

func (v *visitor) stub(field, entry string) {
	v.changed = true
	s := Stub{File: v.rel, Line: lineOf(v.raw, entry), Field: field, Value: withoutCredentials(entry)}
	// The entry is seen twice: as the repository has it, and as Flux edits it.
	if !slices.Contains(v.g.stubs, s) {
		v.g.stubs = append(v.g.stubs, s)
	}
}

// lineOf finds the line of an entry, which may be part of a longer text.
func lineOf(data []byte, entry string) int {
	if line := locate.KustomizationEntry(data, "", entry); line > 0 {
		return line
	}
	before, _, found := bytes.Cut(data, []byte(entry))
	if !found {
		return 0
	}
	return 1 + bytes.Count(before, []byte("\n"))
}

// builtin refuses a file with a configuration of a builtin generator or
// transformer that names something remote: such a field can't be left out
// without meaning something else.
func (g *guard) builtin(rel string, data []byte) error {
	line, value := builtinRemote(data)
	if value == "" {
		return nil
	}
	return g.refuse(&Error{Code: RemoteReference, File: rel, Line: line, Message: fmt.Sprintf("a builtin generator or transformer names %s, which is outside the repository", withoutCredentials(value))})
}

// builtinRemote finds a remote entry in documents whose apiVersion is builtin.
func builtinRemote(data []byte) (line int, value string) {
	if !bytes.Contains(data, []byte("builtin")) {
		return 0, ""
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		// What can't be parsed here is refused by kustomize too.
		if err := safely(func() error { return dec.Decode(&n) }); err != nil {
			return 0, ""
		}
		if !isBuiltin(&n) {
			continue
		}
		if line, value := remoteScalar(&n, 0); value != "" {
			return line, value
		}
	}
}

func isBuiltin(n *yaml.Node) bool {
	if len(n.Content) == 0 {
		return false
	}
	m := n.Content[0]
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == "apiVersion" && m.Content[i+1].Value == "builtin" {
			return true
		}
	}
	return false
}

// maxDepth bounds how deep a tree is followed.
const maxDepth = 200

func remoteScalar(n *yaml.Node, depth int) (int, string) {
	if depth > maxDepth {
		return 0, ""
	}
	if n.Kind == yaml.AliasNode {
		return remoteScalar(n.Alias, depth+1)
	}
	if n.Kind == yaml.ScalarNode {
		v := n.Value
		if _, after, ok := strings.Cut(v, "="); ok && remote(after) {
			return n.Line, after
		}
		if remote(v) {
			return n.Line, v
		}
		return 0, ""
	}
	for _, c := range n.Content {
		if line, v := remoteScalar(c, depth+1); v != "" {
			return line, v
		}
	}
	return 0, ""
}
