package gitops_test

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

func TestParseConfig(t *testing.T) {
	got, err := gitops.ParseConfig([]byte("# ours\nroots:\n- {cluster: prod, path: clusters/prod, namespace: ops, name: start, vars: {A: b}}\nvars: {REGION: north, N: \"5\"}\nartifactRoots: {apps: deploy}\nsources: {GitRepository/x: external}\n"))
	want := gitops.Config{Roots: []gitops.RootConfig{{Cluster: "prod", Path: "clusters/prod", Namespace: "ops", Name: "start", Vars: map[string]string{"A": "b"}}},
		Vars: map[string]string{"REGION": "north", "N": "5"}, ArtifactRoots: map[string]string{"apps": "deploy"}, Sources: map[string]string{"GitRepository/x": "external"}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, empty := range []string{"", "\n", "# nothing\n", "{}\n", "null\n"} {
		if c, err := gitops.ParseConfig([]byte(empty)); err != nil || !reflect.DeepEqual(c, gitops.Config{}) {
			t.Errorf("%q: %+v, %v", empty, c, err)
		}
	}
}

// An error names what is valid, and never a value: that may be a secret.
func TestParseConfigErrors(t *testing.T) {
	top := []string{"roots", "vars", "artifactRoots", "sources"}
	for _, tc := range []struct {
		name, text, word string
		valid            []string
	}{
		{"an unknown key", "vars: {A: hunter2}\nvariables: {B: hunter2}\n", "variables", top},
		{"a line is named", "vars: {A: b}\n\nrootz: []\n", "line 3", top},
		{"an unknown key of a root", "roots: [{cluster: a, path: b, token: hunter2}]\n", "token", nil},
		{"a value of another type", "vars: hunter2\n", "line 1", top},
		{"a list for a value", "vars: {A: [hunter2]}\n", "line 1", top},
		{"a long value", "roots: 'hunter2 " + strings.Repeat("x", 100) + "'\n", "line 1", top},
		{"a value with backquotes", "vars: 'a`hunter2`b'\n", "line 1", top},
		{"no YAML", "vars: {A: hunter2\n", "", top},
		{"a key twice", "vars: {A: hunter2}\nvars: {B: hunter2}\n", "vars", top},
		{"a root without a path", "roots: [{cluster: a}]\n", "roots[0]", []string{"cluster", "path", "namespace", "name", "vars"}},
		{"a root without a cluster", "roots: [{cluster: a, path: b}, {path: c}]\n", "roots[1]", []string{"cluster", "path", "namespace", "name", "vars"}},
		{"the name of a variable", "vars: {1-x: hunter2}\n", "1-x", nil},
		{"the name of a root's variable", "roots: [{cluster: a, path: b, vars: {a.b: hunter2}}]\n", "a.b", nil},
		{"a list", "- hunter2\n", "", top},
		{"text", "hunter2\n", "", top},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := gitops.ParseConfig([]byte(tc.text))
			e := wantCode(t, err, gitops.ErrInvalidConfig, gitops.ConfigFile, tc.word)
			if strings.Contains(e.Message, "hunter2") {
				t.Errorf("a value in %q", e.Message)
			}
			if tc.valid != nil && !slices.Equal(e.Valid, tc.valid) || len(e.Valid) == 0 {
				t.Errorf("valid %q", e.Valid)
			}
		})
	}
}

func TestConfigOfARepository(t *testing.T) {
	f := files{"fleet/app.yaml": ks("app", "./app"), "app/cm.yaml": cm("a", "b: c"), gitops.ConfigFile: "roots: [{cluster: prod, path: fleet}]\n"}
	wantKeys(t, graphOf(t, f), "app", "flux-system")
	// Flux needs the file as little as we need Flux's rules for it.
	for name, rules := range map[string]files{
		"everything but a folder": {".sourceignore": "/*\n!/fleet\n!/app\n"},
		"what begins with a dot":  {".sourceignore": ".*\n"},
		"the file itself":         {".sourceignore": gitops.ConfigFile + "\n"},
	} {
		t.Run("not in the artifact: "+name, func(t *testing.T) {
			wantKeys(t, graphOf(t, f.with(rules)), "app", "flux-system")
		})
	}
	t.Run("an error is one of every question", func(t *testing.T) {
		dir := repository(t, f.with(files{gitops.ConfigFile: "nonsense: hunter2\n"}))
		e, ctx, r := newEngine(t, gitops.Options{}), context.Background(), gitops.Repo{Path: dir, Ref: "main"}
		_, err := e.DiscoverFluxGraph(ctx, r)
		wantCode(t, err, gitops.ErrInvalidConfig, "nonsense")
		_, err = e.ValidateManifests(ctx, r, gitops.ValidateOptions{})
		wantCode(t, err, gitops.ErrInvalidConfig)
		_, err = e.ComputeImpact(ctx, r, "main")
		if x := wantCode(t, err, gitops.ErrInvalidConfig); strings.Contains(x.Message, "hunter2") {
			t.Errorf("a value in %q", x.Message)
		}
	})
	t.Run("a folder of that name", func(t *testing.T) {
		dir := folder(t, f.with(files{gitops.ConfigFile: ""}))
		put(t, dir, files{gitops.ConfigFile + "/x.yaml": "a: b\n"})
		_, err := newEngine(t, gitops.Options{}).DiscoverFluxGraph(context.Background(), gitops.Repo{Path: dir})
		if x := wantCode(t, err, gitops.ErrInvalidConfig); strings.Contains(x.Message, string(filepath.Separator)+"tmp") || strings.Contains(x.Message, os.TempDir()) {
			t.Errorf("a path of this machine in %q", x.Message)
		}
	})
	t.Run("what the user says goes first", func(t *testing.T) {
		g := graphOf(t, f.with(files{"other/cm.yaml": cm("o", "b: c")}), gitops.Config{Roots: []gitops.RootConfig{{Cluster: "prod", Path: "other"}}})
		wantRendered(t, g, "flux-system", `"name":"o"`)
	})
}
