package gitops

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// ConfigFile is the one file in which a repository can say what can't be
// discovered. It is read from the root of the tree; when a change is judged, from
// the base.
const ConfigFile = ".hecate-mcp.yaml"

// Config is what can't be discovered: all of it is optional.
type Config struct {
	// Roots are Kustomizations that no file of the repository declares, or whose
	// path holds variables.
	Roots []RootConfig `yaml:"roots"`
	// Vars are values of substitution variables whose ConfigMap or Secret is not
	// in the repository, for every cluster.
	Vars map[string]string `yaml:"vars"`
	// ArtifactRoots gives for an OCIRepository ("[namespace/]name") the folder
	// that its artifact is pushed from.
	ArtifactRoots map[string]string `yaml:"artifactRoots"`
	// Sources maps a source ("Kind/[namespace/]name") to a folder of this
	// repository ("." for all of it), or to "external".
	Sources map[string]string `yaml:"sources"`
}

// RootConfig is one root: what Flux is started with in a cluster.
type RootConfig struct {
	Cluster   string            `yaml:"cluster"`
	Path      string            `yaml:"path"`
	Namespace string            `yaml:"namespace"`
	Name      string            `yaml:"name"`
	Vars      map[string]string `yaml:"vars"`
}

// External is the value in Config.Sources for a source that is not here.
const External = "external"

// ParseConfig reads a configuration strictly: an unknown key is an error that
// names the line. Empty data is the empty configuration.
func ParseConfig(data []byte) (Config, error) {
	var c Config
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		// yaml.v3 quotes the offending value, which may be a variable's.
		return Config{}, &Error{Code: ErrInvalidConfig, Message: fmt.Sprintf("%s can't be read: %s", ConfigFile, withoutValues(err.Error())),
			Valid: []string{"roots", "vars", "artifactRoots", "sources"}}
	}
	for _, vars := range c.allVars() {
		for name := range vars {
			if err := CheckVariable(name); err != nil {
				return Config{}, &Error{Code: ErrInvalidConfig, Message: ConfigFile + ": " + err.Error(), Valid: []string{variableShape}}
			}
		}
	}
	for i, r := range c.Roots {
		if r.Cluster == "" || r.Path == "" {
			return Config{}, &Error{Code: ErrInvalidConfig, Message: fmt.Sprintf("%s: roots[%d] needs cluster and path", ConfigFile, i), Valid: []string{"cluster", "path", "namespace", "name", "vars"}}
		}
	}
	return c, nil
}

func (c Config) allVars() []map[string]string {
	out := []map[string]string{c.Vars}
	for _, r := range c.Roots {
		out = append(out, r.Vars)
	}
	return out
}

// CheckVariable refuses, with InvalidArgument, the name of a variable that Flux
// would refuse: one such name fails every Kustomization that substitutes.
func CheckVariable(name string) error {
	if render.ValidVariable(name) {
		return nil
	}
	return &Error{Code: ErrInvalidArgument, Message: fmt.Sprintf("the variable name %q is not allowed: %s", name, variableShape), Valid: []string{variableShape}}
}

const variableShape = "letters, digits and _ only, and no digit first"

// withoutValues cuts what a YAML error quotes in backquotes.
func withoutValues(s string) string {
	parts := strings.Split(s, "`")
	for i := 1; i < len(parts); i += 2 {
		parts[i] = "…"
	}
	return strings.Join(parts, "`")
}

// merge lays flags over a repository's file.
func (c Config) merge(over Config) Config {
	out := Config{Roots: append(slices.Clone(over.Roots), c.Roots...)}
	out.Vars = overlay(c.Vars, over.Vars)
	out.ArtifactRoots = overlay(c.ArtifactRoots, over.ArtifactRoots)
	out.Sources = overlay(c.Sources, over.Sources)
	return out
}

func overlay(under, over map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range under {
		out[k] = v
	}
	for k, v := range over {
		out[k] = v
	}
	return out
}

// lookup finds a setting by Kind/namespace/name, then by Kind/name, or without
// the kind where the setting has none.
func lookup(m map[string]string, withKind bool, ref SourceRef) (string, bool) {
	prefix := ""
	if withKind {
		prefix = ref.Kind + "/"
	}
	for _, k := range []string{prefix + ref.Namespace + "/" + ref.Name, prefix + ref.Name} {
		if v, ok := m[k]; ok {
			return v, true
		}
	}
	return "", false
}
