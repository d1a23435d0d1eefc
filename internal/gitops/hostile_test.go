package gitops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// What one hostile repository may cost: generous, since machines are busy.
const (
	maxTime   = time.Minute
	maxMemory = 3 << 30 // of this process, beyond what it had
)

// bounded runs f and wants it to end in time and memory.
func bounded(t *testing.T, f func(ctx context.Context)) {
	t.Helper()
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	done, peak := make(chan struct{}), make(chan uint64)
	go func() {
		most := uint64(0)
		for {
			select {
			case <-done:
				peak <- most
				return
			case <-time.After(20 * time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
	}()
	start := time.Now()
	// Well past the bound, so that what hangs fails this test and not the run.
	ctx, cancel := context.WithTimeout(context.Background(), 2*maxTime)
	defer cancel()
	f(ctx)
	took := time.Since(start)
	close(done)
	most := <-peak
	t.Logf("%s, %d MiB", took.Round(time.Millisecond), most>>20)
	if took > maxTime {
		t.Errorf("it took %s", took)
	}
	if most > before.HeapAlloc+maxMemory {
		t.Errorf("it held %d MiB", most>>20)
	}
}

// unhurried skips what takes its time, which under the race detector is minutes.
func unhurried(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("large repositories take their time")
	}
}

// survey discovers and validates with worker processes, as hecate-mcp does.
func survey(t *testing.T, dir string) *gitops.Validation {
	t.Helper()
	var v *gitops.Validation
	bounded(t, func(ctx context.Context) {
		e := pooled(t, 30*time.Second)
		var err error
		if v, err = e.ValidateManifests(ctx, gitops.Repo{Path: dir}, gitops.ValidateOptions{}); err != nil {
			t.Fatal(err)
		}
	})
	return v
}

// noted wants a note that holds a word.
func noted(t *testing.T, g *gitops.FluxGraph, word string) {
	t.Helper()
	if !strings.Contains(strings.Join(g.Notes, "\n"), word) {
		t.Errorf("notes %q lack %q", g.Notes, word)
	}
}

func bomb() string {
	var b strings.Builder
	b.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb, namespace: default}\ndata:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "  a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return b.String()
}

func TestHostileAliasBomb(t *testing.T) {
	t.Run("in a file that is only scanned", func(t *testing.T) {
		v := survey(t, folder(t, app.with(files{"stray/bomb.yaml": bomb()})))
		wantState(t, v.Graph, "app", gitops.StateRendered)
	})
	t.Run("in a Kustomization's own document", func(t *testing.T) {
		v := survey(t, folder(t, app.with(files{"clusters/other/k.yaml": strings.Replace(bomb(), "apiVersion: v1\nkind: ConfigMap", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization", 1) + "spec: {path: ./app, sourceRef: {kind: GitRepository, name: x}}\n"})))
		wantState(t, v.Graph, "app", gitops.StateRendered)
	})
	t.Run("in a file that is built", func(t *testing.T) {
		v := survey(t, folder(t, app.with(files{"app/bomb.yaml": bomb()})))
		wantState(t, v.Graph, "app", gitops.StateFailed)
	})
	t.Run("in the configuration", func(t *testing.T) {
		bounded(t, func(ctx context.Context) {
			_, err := newEngine(t, gitops.Options{}).DiscoverFluxGraph(ctx, gitops.Repo{Path: folder(t, app.with(files{gitops.ConfigFile: strings.ReplaceAll(bomb(), "data:", "vars:")}))})
			wantCode(t, err, gitops.ErrInvalidConfig)
		})
	})
}

func sparse(t *testing.T, dir, name string, size int64) {
	t.Helper()
	put(t, dir, files{name: "#"})
	if err := os.Truncate(filepath.Join(dir, filepath.FromSlash(name)), size); err != nil {
		t.Fatal(err)
	}
}

func TestHostileSizes(t *testing.T) {
	t.Run("a file of 200 MB", func(t *testing.T) {
		dir := folder(t, app)
		sparse(t, dir, "app/huge.yaml", 200<<20)
		bounded(t, func(ctx context.Context) {
			_, err := pooled(t, 30*time.Second).DiscoverFluxGraph(ctx, gitops.Repo{Path: dir})
			wantCode(t, err, gitops.ErrTooLarge, "app/huge.yaml")
		})
	})
	t.Run("a file that may be in the tree but is no manifest", func(t *testing.T) {
		dir := folder(t, app)
		sparse(t, dir, "app/large.yaml", 20<<20)
		v := survey(t, dir)
		wantState(t, v.Graph, "app", gitops.StateFailed)
	})
	t.Run("a large configuration", func(t *testing.T) {
		dir := folder(t, app)
		sparse(t, dir, gitops.ConfigFile, 20<<20)
		_, err := newEngine(t, gitops.Options{}).DiscoverFluxGraph(context.Background(), gitops.Repo{Path: dir})
		wantCode(t, err, gitops.ErrInvalidConfig, "larger")
	})
	t.Run("more files than the limit", func(t *testing.T) {
		dir := folder(t, app)
		for i := range 20 {
			put(t, dir, files{fmt.Sprintf("more/%d.txt", i): "x"})
		}
		_, err := limited(t, source.Limits{Files: 10}).DiscoverFluxGraph(context.Background(), gitops.Repo{Path: dir})
		wantCode(t, err, gitops.ErrTooLarge, "10")
		_, err = limited(t, source.Limits{TotalBytes: 10}).DiscoverFluxGraph(context.Background(), gitops.Repo{Path: dir})
		wantCode(t, err, gitops.ErrTooLarge)
	})
	t.Run("100,000 files", func(t *testing.T) {
		unhurried(t)
		dir := folder(t, app)
		for i := range 1000 {
			sub := filepath.Join(dir, "many", fmt.Sprint(i))
			if err := os.MkdirAll(sub, 0o755); err != nil {
				t.Fatal(err)
			}
			for j := range 100 {
				if err := os.WriteFile(filepath.Join(sub, fmt.Sprint(j, ".yaml")), []byte("kind: ConfigMap\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		bounded(t, func(ctx context.Context) {
			_, err := pooled(t, 30*time.Second).DiscoverFluxGraph(ctx, gitops.Repo{Path: dir})
			wantCode(t, err, gitops.ErrTooLarge)
		})
	})
}

func TestHostileNesting(t *testing.T) {
	deepFolder := strings.Repeat("d/", 200)
	for name, more := range map[string]files{
		"flow":           {"stray/deep.yaml": "kind: ConfigMap\napiVersion: v1\ndata: " + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "\n"},
		"blocks":         {"stray/deep.yaml": "kind: ConfigMap\napiVersion: v1\ndata:\n" + strings.Repeat("- ", 100_000) + "x\n"},
		"lists of lists": {"stray/deep.yaml": strings.Repeat("{kind: List, items: [", 4000) + strings.Repeat("]}", 4000) + "\n# ConfigMap\n"},
		"folders":        {"stray/" + deepFolder + "k.yaml": ks("deep", "./"+deepFolder)},
		"configuration":  {"stray/k.yaml": cm("x", "a: b")},
	} {
		t.Run(name, func(t *testing.T) {
			v := survey(t, folder(t, app.with(more)))
			wantState(t, v.Graph, "app", gitops.StateRendered)
		})
		if file := "stray/deep.yaml"; more[file] != "" {
			t.Run(name+", built", func(t *testing.T) {
				v := survey(t, folder(t, app.with(files{"app/deep.yaml": more[file]})))
				wantState(t, v.Graph, "app", gitops.StateFailed)
			})
		}
	}
	bounded(t, func(ctx context.Context) {
		_, err := gitops.ParseConfig([]byte("vars: " + strings.Repeat("[", 100_000)))
		wantCode(t, err, gitops.ErrInvalidConfig)
	})
}

const secretOutside = "the file outside"

func TestHostilePathsAndLinks(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, files{"secret.yaml": cm("stolen", "text: "+secretOutside), "k/secret.yaml": cm("stolen", "text: "+secretOutside)})
	// Reaching it by .. works from any depth of the private folder.
	up := strings.Repeat("../", 20)
	check := func(t *testing.T, dir string) *gitops.Validation {
		t.Helper()
		v := survey(t, dir)
		all := fmt.Sprint(v.Findings, v.Graph.Notes)
		for _, k := range v.Graph.Keys() {
			n := v.Graph.Kustomizations[k]
			all += n.Reason
			for _, o := range n.Inspect().Rendered {
				all += string(o)
			}
		}
		if strings.Contains(all, secretOutside) || strings.Contains(all, `"stolen"`) {
			t.Errorf("something outside the repository was read: %s", all)
		}
		return v
	}
	t.Run("links", func(t *testing.T) {
		dir := folder(t, app.with(files{"app/kustomization.yaml": kfile(resources("cm.yaml", "link.yaml"))}))
		for name, target := range map[string]string{"app/link.yaml": filepath.Join(outside, "secret.yaml"), "linked": outside, "clusters/prod/link.yaml": filepath.Join(outside, "secret.yaml"), gitops.ConfigFile: filepath.Join(outside, "secret.yaml")} {
			if err := os.Symlink(target, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
				t.Fatal(err)
			}
		}
		put(t, dir, files{"clusters/prod/linked.yaml": ks("linked", "./linked/k")})
		v := check(t, dir)
		// As in the cluster: source-controller leaves links out.
		wantState(t, v.Graph, "app", gitops.StateFailed)
		wantState(t, v.Graph, "linked", gitops.StateFailed)
	})
	for name, more := range map[string]files{
		"spec.path":            {"clusters/prod/k.yaml": ks("k", up+outside+"/k")},
		"spec.path, absolute":  {"clusters/prod/k.yaml": ks("k", outside+"/k")},
		"resources":            {"app/kustomization.yaml": kfile(resources(up + outside + "/secret.yaml"))},
		"resources, absolute":  {"app/kustomization.yaml": kfile(resources(outside + "/secret.yaml"))},
		"a base":               {"app/kustomization.yaml": kfile(resources(up + outside + "/k"))},
		"a generator":          {"app/kustomization.yaml": kfile("configMapGenerator: [{name: x, files: [" + up + outside + "/secret.yaml]}]")},
		"spec.components":      {"clusters/prod/k.yaml": ks("k", "./app", "components: ["+up+outside+"/k]")},
		"a patch's file":       {"app/kustomization.yaml": kfile(resources("cm.yaml"), "patches: [{path: "+up+outside+"/secret.yaml, target: {kind: ConfigMap}}]")},
		"kind and apiVersion":  {"app/bad.yaml": "apiVersion: ../../../../etc\nkind: ../../x\nmetadata: {name: k, namespace: default}\n"},
		"kind of a core group": {"app/bad.yaml": "apiVersion: v1\nkind: ../../../" + outside + "/secret\nmetadata: {name: k, namespace: default}\n"},
		"name":                 {"app/bad.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../x, namespace: ../..}\n"},
		"artifactRoots":        {gitops.ConfigFile: "artifactRoots: {flux-system: " + up + outside + "}\nsources: {GitRepository/flux-system: " + up + outside + "}\n"},
		"a root's path":        {gitops.ConfigFile: "roots: [{cluster: ../x, path: " + up + outside + "}]\n"},
		"openapi":              {"app/kustomization.yaml": kfile(resources("cm.yaml"), "openapi: {path: "+up+outside+"/secret.yaml}")},
	} {
		t.Run(name, func(t *testing.T) { check(t, folder(t, app.with(more))) })
	}
	t.Run("a schema's folder is not left", func(t *testing.T) {
		v := survey(t, folder(t, app.with(files{"app/bad.yaml": "apiVersion: v1\nkind: ../../x\nmetadata: {name: k, namespace: default}\n"})))
		if !slices.ContainsFunc(v.Findings, func(f gitops.Finding) bool { return f.File == "app/bad.yaml" && f.Severity == gitops.SeverityFail }) {
			t.Errorf("findings %s", lines(v.Findings))
		}
	})
}

func TestHostileGrowth(t *testing.T) {
	unhurried(t)
	self := func(values string) string {
		return strings.Replace(ks("k", "./k", "postBuild: {substitute: {"+values+"}}"), "name: k,", "name: 'k${N}',", 1)
	}
	start := func(values string) files {
		return prod(files{"clusters/prod/start.yaml": ks("start", "./k", "postBuild: {substitute: {"+values+"}}")})
	}
	t.Run("Kustomizations that nest without end", func(t *testing.T) {
		v := survey(t, folder(t, start("N: a").with(files{"k/k.yaml": self("N: '${N}a'")})))
		noted(t, v.Graph, "nest")
	})
	t.Run("and branch", func(t *testing.T) {
		v := survey(t, folder(t, start("N: a").with(files{"k/k.yaml": docs(self("N: '${N}a'"), strings.Replace(self("N: '${N}b'"), "k${N}", "l${N}", 1), strings.Replace(self("N: '${N}c'"), "k${N}", "m${N}", 1))})))
		noted(t, v.Graph, "nest")
	})
	t.Run("a value that doubles", func(t *testing.T) {
		double := "N: '${N}a', V: '${V}${V}'"
		survey(t, folder(t, start("N: a, V: "+strings.Repeat("x", 1000)).with(files{"k/k.yaml": self(double)})))
	})
	t.Run("a value that is put in a million times", func(t *testing.T) {
		v := survey(t, folder(t, start("V: "+strings.Repeat("x", 500_000)).with(files{"k/cm.yaml": cm("big", "v: '"+strings.Repeat("${V}", 500_000)+"'")})))
		wantState(t, v.Graph, "start", gitops.StateFailed)
	})
	t.Run("a root that goes to and fro", func(t *testing.T) {
		v := survey(t, folder(t, files{"a/flux-system/k.yaml": ks("flux-system", "./a"), "a/kustomization.yaml": kfile(resources("../b")), "b/kustomization.yaml": kfile(resources("k.yaml")), "b/k.yaml": ks("flux-system", "./c"), "c/k.yaml": ks("flux-system", "./a")}))
		noted(t, v.Graph, "rounds")
	})
	t.Run("bases that name each other", func(t *testing.T) {
		v := survey(t, folder(t, app.with(files{"app/kustomization.yaml": kfile(resources("../base")), "base/kustomization.yaml": kfile(resources("../app")), "clusters/prod/me.yaml": ks("me", "./me"), "me/kustomization.yaml": kfile(resources("."))})))
		wantState(t, v.Graph, "app", gitops.StateFailed)
		wantState(t, v.Graph, "me", gitops.StateFailed)
	})
	t.Run("bases that double", func(t *testing.T) {
		f := files{"b0/kustomization.yaml": kfile(resources("cm.yaml")), "b0/cm.yaml": cm("x", "a: b")}
		for i := 1; i < 40; i++ {
			for _, side := range []string{"l", "r"} {
				f[fmt.Sprintf("%s%d/kustomization.yaml", side, i)] = kfile(resources(fmt.Sprintf("../b%d", i-1)), fmt.Sprintf("namePrefix: %s%d-", side, i))
			}
			f[fmt.Sprintf("b%d/kustomization.yaml", i)] = kfile(resources(fmt.Sprintf("../l%d", i), fmt.Sprintf("../r%d", i)))
		}
		dir := folder(t, app.with(f, files{"clusters/prod/double.yaml": ks("double", "./b39")}))
		bounded(t, func(ctx context.Context) {
			g, err := pooled(t, 3*time.Second).DiscoverFluxGraph(ctx, gitops.Repo{Path: dir})
			if err != nil {
				t.Fatal(err)
			}
			wantState(t, g, "double", gitops.StateFailed)
			wantState(t, g, "app", gitops.StateRendered)
		})
	})
	t.Run("artifacts made of each other", func(t *testing.T) {
		gen := func(i int, kind, name string) string {
			var sources []string
			for j := range 20 {
				sources = append(sources, fmt.Sprintf("{alias: s%d, kind: %s, name: %s}", j, kind, name))
			}
			return generator(fmt.Sprintf("g%d", i), strings.Join(sources, ", "), artifact(fmt.Sprintf("a%d", i), "{from: '@s0/app/**', to: '@artifact/app/'}"))
		}
		all := []string{gen(0, "GitRepository", "flux-system")}
		for i := 1; i < 8; i++ {
			all = append(all, gen(i, "ExternalArtifact", fmt.Sprintf("a%d", i-1)))
		}
		all = append(all, gen(20, "ExternalArtifact", "a21"), gen(21, "ExternalArtifact", "a20"),
			ksOf("flux-system", "top", "./app", "ExternalArtifact", "a7"), ksOf("flux-system", "ring", "./app", "ExternalArtifact", "a20"))
		v := survey(t, folder(t, app.with(files{"clusters/prod/all.yaml": docs(all...)})))
		wantState(t, v.Graph, "top", gitops.StateRendered)
		wantState(t, v.Graph, "ring", gitops.StateExternal, "itself")
	})
	t.Run("as many artifacts as files", func(t *testing.T) {
		f := app.with()
		for i := range 2000 {
			f[fmt.Sprintf("some/%d.txt", i)] = fmt.Sprint(i)
		}
		for i := range 1000 {
			f[fmt.Sprintf("clusters/prod/%d.yaml", i)] = docs(gitRepo("flux-system", fmt.Sprint("g", i), repoURL, fmt.Sprint("ignore: x", i)), ksOf("flux-system", fmt.Sprint("k", i), "./app", "GitRepository", fmt.Sprint("g", i)))
		}
		survey(t, folder(t, f))
	})
}

func TestHostileManyDocuments(t *testing.T) {
	unhurried(t)
	many := func(n int, doc func(i int) string) string {
		var all []string
		for i := range n {
			all = append(all, doc(i))
		}
		return docs(all...)
	}
	for _, tc := range []struct {
		name  string
		files files
	}{
		{"ConfigMaps in one file", app.with(files{"app/many.yaml": many(2000, func(i int) string { return cm(fmt.Sprint("c", i), "a: b") })})},
		{"Kustomizations in one file", app.with(files{"clusters/prod/many.yaml": many(1500, func(i int) string { return ks(fmt.Sprint("k", i), "./app") })})},
		{"Kustomizations that a root does not reach", app.with(files{"stray/many.yaml": many(5000, func(i int) string { return ks(fmt.Sprint("k", i), "./stray2") })})},
		{"roots that nobody declares", files{"a/many.yaml": many(3000, func(i int) string {
			return ksOf("flux-system", fmt.Sprint("k", i), fmt.Sprint("./p", i), "GitRepository", fmt.Sprint("ghost", i))
		})}},
		{"roots of one source", files{"a/many.yaml": many(3000, func(i int) string {
			return ksOf("flux-system", fmt.Sprint("k", i), "./p", "GitRepository", "ghost")
		})}},
		{"roots that all render all", files{"flux-system/many.yaml": many(2000, func(i int) string { return ks(fmt.Sprint("k", i), "./") })}},
		{"rings of roots", func() files {
			f := files{}
			for i := range 300 {
				for j := range 3 {
					f[fmt.Sprintf("r%d/%d/k.yaml", i, j)] = ks(fmt.Sprintf("k%d-%d", i, j), fmt.Sprintf("./r%d/%d", i, (j+1)%3))
				}
			}
			return f
		}()},
	} {
		t.Run(tc.name, func(t *testing.T) { survey(t, folder(t, tc.files)) })
	}
}

func TestHostileText(t *testing.T) {
	for name, text := range map[string]string{
		"invalid UTF-8":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"\xff\xfe\"}\n",
		"UTF-16":             "\xff\xfea\x00:\x00",
		"NUL":                "kind: ConfigMap\n\x00\n",
		"a control sequence": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"\x1b[2J\"}\n",
	} {
		t.Run(name, func(t *testing.T) {
			v := survey(t, folder(t, app.with(files{"stray/bad.yaml": text, "app/bad.yaml": text})))
			if n := nodeOf(t, v.Graph, "app"); n.State == gitops.StateRendered {
				if !slices.ContainsFunc(v.Findings, func(f gitops.Finding) bool { return f.Severity == gitops.SeverityFail }) {
					t.Error("nothing is wrong with it")
				}
			}
		})
	}
	t.Run("an openapi field does not leak", func(t *testing.T) {
		f := app.with(files{
			"clusters/prod/o.yaml":   ks("o", "./o"),
			"o/kustomization.yaml":   kfile(resources("../app"), "openapi: {path: schema.json}", "namePrefix: o-"),
			"o/schema.json":          `{"swagger":"2.0","info":{"title":"x","version":"v1"},"paths":{},"definitions":{"io.k8s.api.core.v1.ConfigMap":{"type":"object","x-kubernetes-group-version-kind":[{"group":"","kind":"ConfigMap","version":"v1"}]}}}`,
			"app/kustomization.yaml": kfile(resources("cm.yaml", "two.yaml")),
		})
		plain := rendered(t, graphOf(t, f), "app")
		for range 3 {
			v := survey(t, folder(t, f))
			wantState(t, v.Graph, "o", gitops.StateRendered)
			if got := rendered(t, v.Graph, "app"); got != plain {
				t.Errorf("app renders %s, want %s", got, plain)
			}
		}
	})
}

// Fields of every type in every place: findings, never a panic.
func TestHostileTypes(t *testing.T) {
	unhurried(t)
	values := []string{"text", "5", "[]", "{}", "null", "true", "[1, [2]]", "{a: {b: c}}", "[{}]", "[text, {name: 5}]", "1.5", ".nan", ".inf", "2026-01-01", "{1: 2}", "{[a]: b}", "!!binary aGk=", "\"\"", "!x y", "\"${N}\"", "9223372036854775808"}
	flux := func(kind, group string, fields string) string {
		return "apiVersion: " + group + "/v1\nkind: " + kind + "\n" + fields
	}
	var all []string
	i := 0
	for _, v := range values {
		name := func() string { i++; return fmt.Sprintf("metadata: {name: t%d, namespace: flux-system}\n", i) }
		whole := "path: ./app, sourceRef: {kind: GitRepository, name: flux-system}"
		const k, g = "Kustomization", "kustomize.toolkit.fluxcd.io"
		all = append(all,
			flux(k, g, "metadata: "+v+"\nspec: {"+whole+"}\n"), flux(k, g, name()+"spec: "+v+"\n"),
			flux(k, g, "metadata: {name: "+v+", namespace: flux-system}\nspec: {"+whole+"}\n"), flux(k, g, "metadata: {name: q, namespace: "+v+"}\nspec: {"+whole+"}\n"),
			flux(k, g, name()+"spec: {path: "+v+", sourceRef: {kind: GitRepository, name: flux-system}}\n"),
			flux(k, g, name()+"spec: {path: ./app, sourceRef: "+v+"}\n"), flux(k, g, name()+"spec: {path: ./app, sourceRef: {kind: "+v+", name: "+v+", namespace: "+v+"}}\n"),
			flux("FluxInstance", "fluxcd.controlplane.io", name()+"spec: {sync: "+v+"}\n"), flux("FluxInstance", "fluxcd.controlplane.io", name()+"spec: {sync: {path: app, name: "+v+", kind: "+v+"}, kustomize: {patches: "+v+"}}\n"),
			flux("GitRepository", "source.toolkit.fluxcd.io", "metadata: {name: src, namespace: flux-system}\nspec: {url: "+v+", ignore: "+v+"}\n"),
			flux("ArtifactGenerator", "source.extensions.fluxcd.io", name()+"spec: {sources: "+v+", artifacts: [{name: art, copy: "+v+"}, "+v+"]}\n"),
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vals, namespace: flux-system}\ndata: "+v+"\n", "apiVersion: v1\nkind: Secret\n"+name()+"data: {a: "+v+"}\nstringData: "+v+"\n",
			"apiVersion: "+v+"\nkind: "+v+"\nmetadata: {name: a}\n# ConfigMap\n", "apiVersion: v1\nkind: List\nitems: "+v+"\n# ConfigMap\n",
			flux("HelmRelease", "helm.toolkit.fluxcd.io", name()+"spec: {chart: {spec: "+v+"}, values: {instance: {sync: "+v+"}}}\n"),
		)
		for _, field := range []string{"dependsOn", "postBuild", "patches", "images", "components", "commonMetadata", "targetNamespace", "suspend", "prune", "decryption", "kubeConfig", "namePrefix"} {
			all = append(all, flux(k, g, name()+"spec: {"+whole+", "+field+": "+v+"}\n"))
		}
		for _, field := range []string{"substitute: " + v, "substituteFrom: " + v, "substituteFrom: [{kind: " + v + ", name: " + v + ", optional: " + v + "}]", "substitute: {N: " + v + "}", "substituteStrategy: " + v + ", substitute: {N: a}"} {
			all = append(all, flux(k, g, name()+"spec: {"+whole+", postBuild: {"+field+"}}\n"))
		}
		all = append(all, flux(k, g, name()+"spec: {"+whole+", dependsOn: [{name: "+v+", namespace: "+v+"}]}\n"))
	}
	t.Run("documents that nothing renders", func(t *testing.T) {
		f := app.with()
		for i, doc := range all {
			// A file each: the first malformed document would hide the rest.
			f[fmt.Sprintf("stray/%d/k.yaml", i)] = doc
		}
		v := survey(t, folder(t, f))
		wantState(t, v.Graph, "app", gitops.StateRendered)
	})
	t.Run("documents that are rendered", func(t *testing.T) {
		f := app.with()
		for i, doc := range all {
			f[fmt.Sprintf("many/%d/k.yaml", i)] = doc
			f[fmt.Sprintf("many/%d/kustomization.yaml", i)] = kfile(resources("k.yaml"))
			f[fmt.Sprintf("clusters/prod/%d.yaml", i)] = ks(fmt.Sprint("outer", i), fmt.Sprintf("./many/%d", i))
		}
		v := survey(t, folder(t, f))
		wantState(t, v.Graph, "app", gitops.StateRendered)
	})
	t.Run("on both sides of a change", func(t *testing.T) {
		base, head := files{}, files{}
		for i, doc := range all {
			file := fmt.Sprintf("stray/%d.yaml", i)
			base[file], head[file] = doc, all[(i+40)%len(all)]
		}
		dir := repository(t, app.with(base))
		put(t, dir, head)
		commit(t, dir, "change")
		bounded(t, func(ctx context.Context) {
			if _, err := pooled(t, 30*time.Second).ComputeImpact(ctx, gitops.Repo{Path: dir, Ref: "change"}, "main"); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// A call that is cancelled ends and says so; the engine goes on.
func TestHostileCancel(t *testing.T) {
	f := app.with()
	for i := range 200 {
		f[fmt.Sprintf("clusters/prod/%d.yaml", i)] = ks(fmt.Sprint("k", i), "./app", fmt.Sprintf("namePrefix: p%d-", i))
	}
	dir, e := folder(t, f), pooled(t, 30*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		time.Sleep(50 * time.Millisecond)
		cancel()
	}()
	if _, err := e.DiscoverFluxGraph(ctx, gitops.Repo{Path: dir}); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	g, err := e.DiscoverFluxGraph(context.Background(), gitops.Repo{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	wantState(t, g, "k199", gitops.StateRendered)
}
