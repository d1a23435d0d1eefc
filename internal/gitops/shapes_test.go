package gitops_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

// What users of such tools reported; each sub-test is a shape to be right about.

// The base is no Kustomization's own folder; only its file changes.
func TestShapeOverlayOfABase(t *testing.T) {
	base := prod(files{
		"clusters/prod/apps.yaml":  docs(ks("web", "./apps/overlays/web"), ks("shop", "./apps/overlays/shop"), ks("other", "./other")),
		"other/cm.yaml":            cm("other", "a: b"),
		"apps/base/app/app.yaml":   cm("app", "color: red"),
		"apps/base/app/more.yaml":  cm("more", "color: red"),
		"apps/base/app/patch.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: default}\ndata: {patched: base}\n",
		"apps/base/app/kustomization.yaml": kfile(resources("app.yaml", "more.yaml"), "patches: [{path: patch.yaml}]",
			"configMapGenerator: [{name: gen, namespace: default, files: [settings.ini]}]"),
		"apps/base/app/settings.ini":              "a=1\n",
		"apps/overlays/web/kustomization.yaml":    kfile(resources("../../base/app"), "nameSuffix: -web"),
		"apps/overlays/shop/kustomization.yaml":   kfile(resources("../middle"), "nameSuffix: -shop"),
		"apps/overlays/middle/kustomization.yaml": kfile(resources("../../base/app"), "components: [../../components/tag]", "replacements: [{path: ../../components/copy.yaml}]"),
		"apps/components/tag/kustomization.yaml":  "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {tag: one}\n",
		"apps/components/copy.yaml":               "source: {kind: ConfigMap, name: app, fieldPath: data.color}\ntargets: [{select: {kind: ConfigMap, name: more}, fieldPaths: [data.copied], options: {create: true}}]\n",
	})
	for _, tc := range []struct {
		name   string
		change files
		want   []string
		file   string
		way    []string
	}{
		{"the base's file", files{"apps/base/app/app.yaml": cm("app", "color: blue")}, []string{"shop changed", "web changed"}, "apps/base/app/app.yaml", []string{"apps/base/app/kustomization.yaml", "apps/overlays/middle/kustomization.yaml", "apps/overlays/shop/kustomization.yaml", "Kustomization prod/flux-system/shop"}},
		{"a patch of the base", files{"apps/base/app/patch.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app, namespace: default}\ndata: {patched: again}\n"}, []string{"shop changed", "web changed"}, "apps/base/app/patch.yaml", []string{"apps/overlays/shop/kustomization.yaml"}},
		{"what a generator of the base reads", files{"apps/base/app/settings.ini": "a=2\n"}, []string{"shop changed", "web changed"}, "apps/base/app/settings.ini", []string{"apps/base/app/kustomization.yaml"}},
		{"the base's kustomization", files{"apps/base/app/kustomization.yaml": kfile(resources("app.yaml", "more.yaml"))}, []string{"shop changed", "web changed"}, "apps/base/app/kustomization.yaml", nil},
		{"a component of one overlay", files{"apps/components/tag/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {tag: two}\n"}, []string{"shop changed"}, "apps/components/tag/kustomization.yaml", []string{"apps/overlays/middle/kustomization.yaml"}},
		{"a replacement of one overlay", files{"apps/components/copy.yaml": "source: {kind: ConfigMap, name: app, fieldPath: data.color}\ntargets: [{select: {kind: ConfigMap, name: more}, fieldPaths: [data.copied2], options: {create: true}}]\n"}, []string{"shop changed"}, "apps/components/copy.yaml", []string{"apps/overlays/middle/kustomization.yaml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := impactOf(t, base, tc.change)
			wantAffected(t, r, tc.want...)
			wantReason(t, affectedOf(t, r, "shop"), tc.file, tc.way...)
		})
	}
	t.Run("the base under another Kustomization's path", func(t *testing.T) {
		under := base.with(files{"clusters/prod/base.yaml": ks("base", "./apps/base")})
		r := impactOf(t, under, files{"apps/base/app/app.yaml": cm("app", "color: blue")})
		wantAffected(t, r, "base changed", "shop changed", "web changed")
	})
	t.Run("spec.components of the Kustomization itself", func(t *testing.T) {
		own := base.with(files{"clusters/prod/own.yaml": ks("own", "./own", "components: [../apps/components/tag]"), "own/cm.yaml": cm("own", "a: b")})
		r := impactOf(t, own, files{"apps/components/tag/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {tag: two}\n"})
		wantAffected(t, r, "own changed", "shop changed")
	})
}

// The parent gives every child substitutions that no file of the child has.
func TestShapeParentPatchesEveryChild(t *testing.T) {
	const vars = "clusters/prod/vars.yaml"
	injected := "postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}"
	leaf := files{
		vars:                       "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: {HOST: one.example.com}\n",
		"apps/kustomization.yaml":  kfile(resources("leaf.yaml")),
		"apps/leaf.yaml":           ks("leaf", "./leaf"),
		"leaf/cm.yaml":             cm("leaf", "host: ${HOST}", "kind: a"),
		"clusters/prod/other.yaml": ks("other", "./other"),
		"other/cm.yaml":            cm("other", "host: ${HOST}"),
	}
	for name, parent := range map[string]string{
		"by target":                 ks("apps", "./apps", "patches:", "- target: {kind: Kustomization, group: kustomize.toolkit.fluxcd.io}", "  patch: |", "    - {op: add, path: /spec/postBuild, value: {substituteFrom: [{kind: ConfigMap, name: vars}]}}"),
		"by target and label":       ks("apps", "./apps", "patches:", "- target: {kind: Kustomization, labelSelector: '!plain'}", "  patch: |", "    apiVersion: kustomize.toolkit.fluxcd.io/v1", "    kind: Kustomization", "    metadata: {name: any}", "    spec: {"+injected+"}"),
		"by name, strategic":        ks("apps", "./apps", "patches:", "- patch: |", "    apiVersion: kustomize.toolkit.fluxcd.io/v1", "    kind: Kustomization", "    metadata: {name: leaf, namespace: flux-system}", "    spec: {"+injected+"}"),
		"in the parent's folder":    ks("apps", "./apps"),
		"above the parent, through": ks("apps", "./apps"),
	} {
		t.Run(name, func(t *testing.T) {
			f := prod(leaf, files{"clusters/prod/apps.yaml": parent})
			patch := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: any}\nspec: {" + injected + "}\n"
			switch name {
			case "in the parent's folder":
				f = f.with(files{"apps/kustomization.yaml": kfile(resources("leaf.yaml"), "patches: [{path: patch.yaml, target: {kind: Kustomization}}]"), "apps/patch.yaml": patch})
			case "above the parent, through":
				// The root patches apps so that apps patches its children.
				f = f.with(files{"clusters/prod/kustomization.yaml": kfile(resources("flux-system/gotk-sync.yaml", "apps.yaml", "vars.yaml", "other.yaml"), "patches:", "- target: {kind: Kustomization, name: apps}", "  path: through.yaml"),
					"clusters/prod/through.yaml": "- op: add\n  path: /spec/patches\n  value:\n  - target: {kind: Kustomization}\n    patch: |\n      apiVersion: kustomize.toolkit.fluxcd.io/v1\n      kind: Kustomization\n      metadata: {name: any}\n      spec: {" + injected + "}\n"})
			}
			dir := repository(t, f)
			g := discover(t, dir)
			wantRendered(t, g, "leaf", `"host":"one.example.com"`)
			wantRendered(t, g, "other", `${HOST}`)

			put(t, dir, files{"leaf/cm.yaml": cm("leaf", "host: ${HOST}", "kind: b")})
			commit(t, dir, "leaf")
			r := compute(t, dir, "change", "main")
			wantAffected(t, r, "leaf changed")
			wantReason(t, affectedOf(t, r, "leaf"), "leaf/cm.yaml", "Kustomization prod/flux-system/leaf")

			put(t, dir, files{vars: strings.ReplaceAll(f[vars], "one", "two")})
			commit(t, dir, "vars")
			r = compute(t, dir, "change", "HEAD~1")
			wantAffected(t, r, "flux-system changed", "leaf changed")
			wantReason(t, affectedOf(t, r, "leaf"), vars, "Kustomization prod/flux-system/flux-system", "ConfigMap flux-system/vars", "Kustomization prod/flux-system/leaf")
		})
	}
	t.Run("the patch itself changes: the leaf says why", func(t *testing.T) {
		patched := func(name string) string {
			return ks("apps", "./apps", "patches:", "- target: {kind: Kustomization}", "  patch: |", "    - {op: add, path: /spec/postBuild, value: {substitute: {HOST: "+name+"}}}")
		}
		r := impactOf(t, prod(leaf, files{"clusters/prod/apps.yaml": patched("one")}), files{"clusters/prod/apps.yaml": patched("two")})
		wantAffected(t, r, "apps changed", "flux-system changed", "leaf changed")
		wantReason(t, affectedOf(t, r, "leaf"), "clusters/prod/apps.yaml", "Kustomization prod/flux-system/leaf")
	})
	t.Run("sourceRef and namespace are the parent's", func(t *testing.T) {
		bare := "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: %s}\nspec: {interval: 1h, prune: true, path: ./%s%s}\n"
		f := prod(files{
			"clusters/prod/apps.yaml": ks("apps", "./apps", "targetNamespace: team", "patches:", "- target: {kind: Kustomization}", "  patch: |", "    - {op: add, path: /spec/sourceRef, value: {kind: GitRepository, name: flux-system, namespace: flux-system}}"),
			"apps/a.yaml":             fmt.Sprintf(bare, "a", "a", ""),
			"apps/b.yaml":             fmt.Sprintf(bare, "b", "b", ", dependsOn: [{name: a}, {name: apps, namespace: flux-system}]"),
			"a/cm.yaml":               cm("a", "x: y"), "b/cm.yaml": cm("b", "x: y"),
		})
		g := graphOf(t, f)
		wantKeys(t, g, "apps", "flux-system", "prod/team/a", "prod/team/b")
		wantState(t, g, "prod/team/a", gitops.StateRendered)
		if d := gitops.DanglingDeps(g); len(d) > 0 || len(coded(g.Findings, gitops.DanglingDependency)) > 0 {
			t.Errorf("dangling %v, findings %s", d, lines(g.Findings))
		}
		wantAffected(t, impactOf(t, f, files{"a/cm.yaml": cm("a", "x: z")}), "prod/team/a changed")
	})
}

func TestShapeChildWithoutAFile(t *testing.T) {
	component := func(path string) string {
		return "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [child.yaml]\npatches:\n- target: {kind: Kustomization, name: template}\n  patch: |\n    - {op: replace, path: /metadata/name, value: made}\n    - {op: replace, path: /spec/path, value: " + path + "}\n"
	}
	f := prod(files{
		"clusters/prod/apps.yaml":        ks("apps", "./apps"),
		"apps/kustomization.yaml":        kfile("components: [../comp]"),
		"comp/kustomization.yaml":        component("./one"),
		"comp/child.yaml":                ks("template", "./nowhere"),
		"one/cm.yaml":                    cm("one", "a: b"),
		"two/cm.yaml":                    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: two, namespace: default}\ndata: {}\nspecX: 1\n",
		"clusters/prod/deep.yaml":        ks("deep", "./deep"),
		"deep/child.yaml":                ks("child", "./deeper", "namePrefix: p-"),
		"deeper/kustomization.yaml":      kfile(resources("grandchild.yaml")),
		"deeper/grandchild.yaml":         ks("grandchild", "./deepest"),
		"deepest/cm.yaml":                cm("deepest", "a: b"),
		"clusters/prod/list.yaml":        ks("list", "./list"),
		"list/kustomization.yaml":        kfile(resources("list.yaml")),
		"list/list.yaml":                 "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(ks("listed", "./deepest")), "\n", "\n  ") + "\n",
		"clusters/prod/transformed.yaml": ks("transformed", "./transformed"),
		"transformed/kustomization.yaml": kfile(resources("t.yaml"), "namePrefix: x-"),
		"transformed/t.yaml":             ks("kid", "./deepest"),
	})
	g := graphOf(t, f)
	wantKeys(t, g, "apps", "child", "deep", "flux-system", "list", "listed", "made", "p-grandchild", "transformed", "x-kid")
	wantState(t, g, "made", gitops.StateRendered)
	wantRendered(t, g, "p-grandchild", `"name":"deepest"`)
	if n := nodeOf(t, g, "p-grandchild"); n.Parent != key("child") || n.Place.File != "deeper/grandchild.yaml" || n.Place.Line != 1 {
		t.Errorf("parent %s, place %+v", n.Parent, n.Place)
	}
	if len(g.Unreferenced) > 0 {
		t.Errorf("unreferenced %v", unreferenced(g))
	}
	r := impactOf(t, f, files{"comp/kustomization.yaml": component("./two")})
	wantAffected(t, r, "apps changed", "made changed")
	wantReason(t, affectedOf(t, r, "made"), "comp/kustomization.yaml", "Kustomization prod/flux-system/apps", "Kustomization prod/flux-system/made")
	v := validate(t, f.with(files{"comp/kustomization.yaml": component("./two")}))
	wantFinding(t, v.Findings, gitops.UnknownField, "specX", "two/cm.yaml", "made")
}

func TestShapeUnlistedKustomization(t *testing.T) {
	f := prod(files{
		"clusters/prod/kustomization.yaml": kfile(resources("flux-system/gotk-sync.yaml", "apps.yaml")),
		"clusters/prod/apps.yaml":          ks("apps", "./apps"),
		"clusters/prod/forgotten.yaml":     docs("# a comment\n"+ks("one", "./apps"), ks("two", "./nowhere")),
		"apps/cm.yaml":                     cm("a", "b: c"),
	})
	v := validate(t, f)
	wantNoFailure(t, v.Findings)
	wantKeys(t, v.Graph, "apps", "flux-system")
	if got := strings.Join(unreferenced(v.Graph), " "); got != "clusters/prod/forgotten.yaml:2 one clusters/prod/forgotten.yaml:11 two" {
		t.Errorf("unreferenced %q", got)
	}
	for _, x := range coded(v.Findings, gitops.Unreferenced) {
		if x.Severity != gitops.SeverityPass {
			t.Errorf("severity %s", x.Severity)
		}
	}
	wantUnmapped(t, impactOf(t, f, files{"clusters/prod/forgotten.yaml": ks("one", "./elsewhere")}), "clusters/prod/forgotten.yaml", gitops.UnmappedUnreferenced)
}

func TestShapeVariablesFromASibling(t *testing.T) {
	vars := func(v string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: vars, namespace: flux-system}\ndata: {REGION: \"" + v + "\"}\n"
	}
	from := "postBuild: {substituteFrom: [{kind: ConfigMap, name: vars}]}"
	f := prod(files{
		"clusters/prod/all.yaml": docs(ks("config", "./config"), ks("apps", "./apps", from)),
		"config/vars.yaml":       vars("north"),
		"apps/cm.yaml":           cm("a", "region: ${REGION}", "x: y"),
	})
	r := impactOf(t, f, files{"apps/cm.yaml": cm("a", "region: ${REGION}", "x: z")})
	wantAffected(t, r, "apps changed")
	wantRendered(t, r.Graph, "apps", `"region":"north"`)
	r = impactOf(t, f, files{"config/vars.yaml": vars("south")})
	wantAffected(t, r, "apps changed", "config changed")
	wantReason(t, affectedOf(t, r, "apps"), "config/vars.yaml", "Kustomization prod/flux-system/config", "ConfigMap flux-system/vars", "Kustomization prod/flux-system/apps")

	t.Run("a generator makes the ConfigMap", func(t *testing.T) {
		gen := f.with(files{"config/vars.yaml": "", "config/vars.env": "REGION=west\n",
			"config/kustomization.yaml": kfile("generatorOptions: {disableNameSuffixHash: true}", "configMapGenerator: [{name: vars, namespace: flux-system, envs: [vars.env]}]")})
		r := impactOf(t, gen, files{"config/vars.env": "REGION=east\n"})
		wantAffected(t, r, "apps changed", "config changed")
		wantRendered(t, r.Graph, "apps", `"region":"east"`)
		wantReason(t, affectedOf(t, r, "apps"), "config/vars.env", "ConfigMap flux-system/vars")
	})
	t.Run("a producer whose own values are substituted", func(t *testing.T) {
		two := f.with(files{"clusters/prod/all.yaml": docs(ks("config", "./config", "postBuild: {substitute: {WHICH: deep}}"), ks("apps", "./apps", from)), "config/vars.yaml": vars("${WHICH}")})
		wantRendered(t, graphOf(t, two), "apps", `"region":"deep"`)
	})
	t.Run("later sources and inline values win", func(t *testing.T) {
		two := f.with(files{"clusters/prod/all.yaml": docs(ks("config", "./config"), ks("apps", "./apps", "postBuild:", "  substitute: {INLINE: inline}", "  substituteFrom: [{kind: ConfigMap, name: vars}, {kind: Secret, name: more}]")),
			"config/more.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: more, namespace: flux-system}\ndata: {REGION: ZmFyYXdheQ==}\nstringData: {INLINE: lost}\n",
			"apps/cm.yaml":     cm("a", "region: ${REGION}", "inline: ${INLINE}", `default: "${NOBODY:=d}"`)})
		wantRendered(t, graphOf(t, two), "apps", `"region":"faraway"`, `"inline":"inline"`, `"default":"d"`)
	})
}

func TestShapeChildOutsideTheParentsFolder(t *testing.T) {
	for _, p := range []string{"apps/web", "./apps/web", "/apps/web", "./apps/web/", "../apps/web", "./x/../apps/web"} {
		t.Run(p, func(t *testing.T) {
			f := prod(files{
				"clusters/prod/infra.yaml":   ks("infra", "./infra"),
				"infra/web.yaml":             ks("web", p),
				"apps/web/cm.yaml":           cm("web", "a: b"),
				"infra/apps/web/ignore.txt":  "not this folder\n",
				"clusters/prod/apps/web/a.t": "nor this\n",
			})
			g := graphOf(t, f)
			wantState(t, g, "web", gitops.StateRendered)
			if n := nodeOf(t, g, "web"); n.Path != "apps/web" || n.RepoPath != "apps/web" {
				t.Errorf("path %q, in the repository %q", n.Path, n.RepoPath)
			}
			wantRendered(t, g, "web", `"name":"web"`)
		})
	}
	t.Run("a path that is not there", func(t *testing.T) {
		g := graphOf(t, prod(files{"clusters/prod/infra.yaml": ks("web", "./clusters/prod/nothing")}))
		wantState(t, g, "web", gitops.StateFailed)
		wantFinding(t, g.Findings, gitops.PathNotFound, "clusters/prod/infra.yaml")
	})
	t.Run("no path at all is the whole artifact", func(t *testing.T) {
		// The root's document lies in what it builds: that is no second root.
		g := graphOf(t, files{"flux-system/gotk-sync.yaml": docs(gitRepo("flux-system", "flux-system", repoURL), ks("flux-system", "./")), "a.yaml": cm("a", "b: c")})
		wantKeys(t, g, "default/flux-system")
		wantState(t, g, "default/flux-system", gitops.StateRendered)
	})
}

func TestShapeSourceignoreAndPictures(t *testing.T) {
	f := prod(files{
		"clusters/prod/apps.yaml": ks("apps", "./apps"),
		"apps/kustomization.yaml": kfile("configMapGenerator: [{name: logo, files: [logo.png]}]"),
		"apps/logo.png":           "\x89PNG one",
	})
	t.Run("the default rules take the picture away", func(t *testing.T) {
		g := graphOf(t, f)
		wantState(t, g, "apps", gitops.StateFailed)
		if got := coded(g.Findings, gitops.RenderFailed); len(got) != 1 {
			t.Errorf("findings %s", lines(g.Findings))
		}
		wantUnmapped(t, impactOf(t, f, files{"apps/logo.png": "\x89PNG two"}), "apps/logo.png", gitops.UnmappedIgnored)
	})
	for name, more := range map[string]files{
		".sourceignore":                {".sourceignore": "/docs\n"},
		".sourceignore in a subfolder": {"docs/.sourceignore": "*.md\n"},
		"spec.ignore":                  {"clusters/prod/flux-system/gotk-sync.yaml": docs(gitRepo("flux-system", "flux-system", repoURL, "ignore: /docs"), ks("flux-system", "./clusters/prod"))},
	} {
		t.Run(name, func(t *testing.T) {
			wantState(t, graphOf(t, f.with(more)), "apps", gitops.StateRendered)
			r := impactOf(t, f.with(more), files{"apps/logo.png": "\x89PNG two"})
			wantAffected(t, r, "apps changed")
			wantReason(t, affectedOf(t, r, "apps"), "apps/logo.png", "apps/kustomization.yaml")
		})
	}
}

func TestShapeMalformedYAML(t *testing.T) {
	for _, tc := range []struct {
		name string
		more files
		code gitops.Code
		file string
		line int
	}{
		{"among listed resources", files{"apps/kustomization.yaml": kfile(resources("a.yaml", "b.yaml")), "apps/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n bad: x\n"}, gitops.InvalidYAML, "apps/b.yaml", 5},
		{"among generated resources", files{"apps/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n bad: x\n"}, gitops.InvalidYAML, "apps/b.yaml", 5},
		{"in a later document", files{"apps/b.yaml": docs(cm("x", "a: b"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [}\n")}, gitops.InvalidYAML, "apps/b.yaml", 0},
		{"a tab", files{"apps/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n\tname: b\n"}, gitops.InvalidYAML, "apps/b.yaml", 4},
		{"a key twice", files{"apps/b.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n  a: b\n  a: c\n"}, gitops.DuplicateKey, "apps/b.yaml", 6},
		{"no object", files{"apps/b.yaml": "just: text\n"}, gitops.RenderFailed, "apps/b.yaml", -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := graphOf(t, prod(files{"clusters/prod/apps.yaml": ks("apps", "./apps"), "apps/a.yaml": cm("a", "b: c")}, tc.more))
			wantState(t, g, "apps", gitops.StateFailed)
			f := wantFinding(t, g.Findings, tc.code)
			if f.Severity != gitops.SeverityFail || f.File != tc.file || tc.line > 0 && f.Line != tc.line || tc.line == 0 && f.Line < 7 {
				t.Errorf("finding %+v", f)
			}
			if rendered(t, g, "apps") != "" {
				t.Error("something of the folder is rendered")
			}
		})
	}
}

func TestShapeTwoBuildsOfOneReadOnlyTree(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may write to read-only folders: only the comparison counts")
	}
	dir := folder(t, prod(files{
		"clusters/prod/a.yaml": ks("a", "./apps", "namePrefix: a-"),
		"clusters/prod/b.yaml": ks("b", "./apps", "namePrefix: b-"),
		"apps/cm.yaml":         cm("x", "a: b"), "apps/sub/cm.yaml": cm("y", "a: b"),
	}))
	state := func() string {
		var b strings.Builder
		err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintln(&b, p, info.Mode(), info.ModTime().UnixNano())
			if d.Type().IsRegular() {
				data, err := os.ReadFile(p)
				fmt.Fprintln(&b, string(data))
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	var folders []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if d.IsDir() {
			folders = append(folders, p)
			return err
		}
		return os.Chmod(p, 0o400)
	})
	if err != nil {
		t.Fatal(err)
	}
	chmod := func(mode os.FileMode) {
		for _, p := range folders {
			if err := os.Chmod(p, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	chmod(0o500)
	t.Cleanup(func() { chmod(0o700) })
	before := state()
	e := newEngine(t, gitops.Options{Workers: 4})
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			g, err := e.DiscoverFluxGraph(context.Background(), gitops.Repo{Path: dir})
			if err != nil {
				t.Error(err)
				return
			}
			for _, k := range []string{"a", "b"} {
				if n := g.Kustomizations[key(k)]; n.State != gitops.StateRendered || n.Kinds()["ConfigMap"] != 2 {
					t.Errorf("%s is %s (%s) with %v", k, n.State, n.Reason, n.Kinds())
				}
			}
		})
	}
	wait.Wait()
	if after := state(); after != before {
		t.Errorf("the tree changed:\n%s\nwas\n%s", after, before)
	}
}

func TestShapeFolderOfAnotherRepository(t *testing.T) {
	f := prod(files{
		"clusters/prod/other.yaml": docs(gitRepo("flux-system", "other", "https://git.example.com/acme/other"), ksOf("flux-system", "other", "./deploy", "GitRepository", "other"),
			ks("mine", "./mine")),
		"deploy/cm.yaml": cm("d", "a: b"),
		"mine/cm.yaml":   cm("m", "a: b"),
	})
	g := graphOf(t, f)
	wantState(t, g, "other", gitops.StateExternal, "git.example.com/acme/other")
	wantNoFailure(t, g.Findings)
	r := impactOf(t, f, files{"deploy/cm.yaml": cm("d", "a: c")})
	wantAffected(t, r)
	wantUnmapped(t, r, "deploy/cm.yaml", gitops.UnmappedOtherSource)
}

func TestShapeNestedPlainFolders(t *testing.T) {
	f := prod(files{
		"clusters/prod/apps.yaml":            ks("apps", "./apps"),
		"apps/one/two/three/cm.yaml":         cm("three", "a: b"),
		"apps/one/cm.yml":                    cm("one", "a: b"),
		"apps/built/kustomization.yaml":      kfile(resources("in.yaml")),
		"apps/built/in.yaml":                 cm("in", "a: b"),
		"apps/built/out.yaml":                cm("out", "a: b"),
		"apps/built/deeper/out.yaml":         cm("deeper", "a: b"),
		"apps/one/notes.txt":                 "text\n",
		"clusters/prod/empty.yaml":           ks("empty", "./empty"),
		"empty/readme.md":                    "# nothing\n",
		"clusters/prod/kustomizationyml.yml": ks("yml", "./yml"),
		"yml/kustomization.yml":              kfile("resources: []"),
		"yml/cm.yaml":                        cm("no", "a: b"),
		"clusters/prod/capital.yaml":         ks("capital", "./capital"),
		"capital/Kustomization":              kfile("resources: []"),
		"capital/cm.yaml":                    cm("no", "a: b"),
	})
	g := graphOf(t, f)
	wantRendered(t, g, "apps", `"name":"three"`, `"name":"one"`, `"name":"in"`)
	for name, want := range map[string]int{"apps": 3, "empty": 0, "yml": 0, "capital": 0} {
		wantState(t, g, name, gitops.StateRendered)
		if n := nodeOf(t, g, name).Kinds()["ConfigMap"]; n != want {
			t.Errorf("%s: %d ConfigMaps, want %d", name, n, want)
		}
	}
	r := impactOf(t, f, files{"apps/one/two/new/cm.yaml": cm("new", "a: b"), "apps/built/new.yaml": cm("unlisted", "a: b")})
	wantAffected(t, r, "apps changed")
	wantObjects(t, affectedOf(t, r, "apps"), "added ConfigMap new")
	wantReason(t, affectedOf(t, r, "apps"), "apps/one/two/new/cm.yaml")
	// A kustomization file that appears in a plain folder hides what it does not list.
	r = impactOf(t, f, files{"apps/one/kustomization.yaml": kfile(resources("cm.yml"))})
	wantObjects(t, affectedOf(t, r, "apps"), "pruned ConfigMap three")
	wantReason(t, affectedOf(t, r, "apps"), "apps/one/kustomization.yaml")
	// And one that goes away lets everything in.
	r = impactOf(t, f, files{"apps/built/kustomization.yaml": ""})
	wantObjects(t, affectedOf(t, r, "apps"), "added ConfigMap deeper", "added ConfigMap out")
	wantReason(t, affectedOf(t, r, "apps"), "apps/built/kustomization.yaml")
}

func TestShapeEmptyResources(t *testing.T) {
	f := prod(files{
		"clusters/prod/apps.yaml": ks("apps", "./apps"),
		"apps/kustomization.yaml": kfile("resources: []"),
		"apps/web/cm.yaml":        cm("web", "a: b"),
		"apps/web/flux.yaml":      ks("hidden", "./x"),
	})
	g := graphOf(t, f)
	wantState(t, g, "apps", gitops.StateRendered)
	wantKeys(t, g, "apps", "flux-system")
	if rendered(t, g, "apps") != "" {
		t.Error("something is rendered")
	}
	wantUnmapped(t, impactOf(t, f, files{"apps/web/cm.yaml": cm("web", "a: c")}), "apps/web/cm.yaml", gitops.UnmappedUnreferenced)
}

func TestShapeVariablesNotInGit(t *testing.T) {
	from := "postBuild: {substituteFrom: [{kind: ConfigMap, name: cluster}]}"
	dep := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: default}\nspec:\n  replicas: ${N}\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}\n"
	f := prod(files{
		"clusters/prod/all.yaml": docs(ks("one", "./one", from), ks("two", "./two", from), ks("plain", "./plain")),
		"one/d.yaml":             dep, "two/cm.yaml": cm("t", "host: ${HOST}"), "plain/cm.yaml": cm("p", "x: ${HOST}"),
	})
	v := validate(t, f)
	wantNoFailure(t, v.Findings)
	x := wantFinding(t, v.Findings, gitops.UnresolvedVariable, "ConfigMap flux-system/cluster", "--vars")
	if fmt.Sprint(x.Kustomizations) != "[prod/flux-system/one prod/flux-system/two]" || x.File != "clusters/prod/all.yaml" {
		t.Errorf("finding %+v", x)
	}
	wantState(t, v.Graph, "one", gitops.StatePartial, "N")
	wantState(t, v.Graph, "plain", gitops.StateRendered)

	for _, tc := range []struct {
		name   string
		config gitops.Config
		more   files
	}{
		{"--vars", gitops.Config{Vars: map[string]string{"N": "3", "HOST": "h"}}, nil},
		{"the file", gitops.Config{}, files{gitops.ConfigFile: "vars: {N: \"3\", HOST: h}\n"}},
		{"--vars over the file", gitops.Config{Vars: map[string]string{"N": "3"}}, files{gitops.ConfigFile: "vars: {N: \"none\", HOST: h}\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := validate(t, f.with(tc.more), tc.config)
			wantNoFailure(t, v.Findings)
			wantState(t, v.Graph, "one", gitops.StateRendered)
			wantRendered(t, v.Graph, "one", `"replicas":3`)
			wantRendered(t, v.Graph, "two", `"host":"h"`)
			// Without postBuild Flux substitutes nothing.
			wantRendered(t, v.Graph, "plain", `${HOST}`)
		})
	}
	t.Run("--vars of one root only", func(t *testing.T) {
		v := validate(t, f.with(bootstrapped("clusters/test"), files{"clusters/test/all.yaml": f["clusters/prod/all.yaml"]}),
			gitops.Config{Roots: []gitops.RootConfig{{Cluster: "prod", Path: "clusters/prod", Vars: map[string]string{"N": "3", "HOST": "h"}}}})
		wantRendered(t, v.Graph, "one", `"replicas":3`)
		wantState(t, v.Graph, "test/one", gitops.StatePartial)
	})
	t.Run("a value that makes it wrong", func(t *testing.T) {
		v := validate(t, f, gitops.Config{Vars: map[string]string{"N": "many", "HOST": "h"}})
		wantFinding(t, v.Findings, gitops.WrongType, "/spec/replicas")
	})
}

func TestShapeSOPS(t *testing.T) {
	const sops = "sops: {mac: 'ENC[x]', version: 3.9.0, lastmodified: '2026-01-01T00:00:00Z', age: [{recipient: age1, enc: x}]}\n"
	f := prod(files{
		"clusters/prod/apps.yaml": ks("apps", "./apps", "decryption: {provider: sops}", "postBuild: {substituteFrom: [{kind: Secret, name: vals}]}"),
		"apps/cm.yaml":            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\ndata: {a: 'ENC[AES256_GCM,data:abc,type:str]'}\n" + sops,
		"apps/deploy.yaml":        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: default}\nspec:\n  replicas: ENC[AES256_GCM,data:Mw==,type:int]\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x}]}}\n" + sops,
		"apps/secret.yaml":        "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\nstringData: {p: hunter2}\n",
		"apps/vals.yaml":          "apiVersion: v1\nkind: Secret\nmetadata: {name: vals, namespace: flux-system}\nstringData: {TOKEN: 'ENC[AES256_GCM,data:abc,type:str]', OPEN: plain}\n" + sops,
		"apps/use.yaml":           cm("use", "t: ${TOKEN}", "o: ${OPEN}"),
	})
	v := validate(t, f)
	wantNoFailure(t, v.Findings)
	for _, x := range v.Findings {
		if strings.Contains(fmt.Sprint(x), "hunter2") || strings.Contains(fmt.Sprint(x), "data:abc") {
			t.Errorf("a secret in %+v", x)
		}
	}
	wantState(t, v.Graph, "apps", gitops.StatePartial, "TOKEN")
	wantRendered(t, v.Graph, "apps", `"o":"plain"`)
}

func TestShapeSchemas(t *testing.T) {
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.acme.example.com}\nspec:\n  group: acme.example.com\n  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}\n  scope: Namespaced\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {size: {type: integer}}}\n          strict: {type: object, properties: {size: {type: integer}}}\n"
	thing := "apiVersion: acme.example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: default}\n"
	dep := func(env string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d, namespace: default}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: x" + env + "}]}}\n"
	}
	for _, tc := range []struct {
		name, object string
		code         gitops.Code
		severity     gitops.Severity
		field        string
	}{
		{"preserve-unknown and properties", thing + "spec: {size: 1, extra: {deep: true}}\n", "", "", ""},
		{"preserve-unknown and a wrong type", thing + "spec: {size: one, extra: 1}\n", gitops.WrongType, gitops.SeverityFail, "/spec/size"},
		{"beside it, strict", thing + "strict: {size: 1, extra: 1}\n", gitops.UnknownField, gitops.SeverityFail, "/strict/extra"},
		{"a null optional field", "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: default, annotations: null}\nspec: {ports: [{port: 80, name: null}], selector: null}\n", "", "", ""},
		// Flux applies server-side, which takes null for a type of its own kinds only.
		{"a null field of a CRD", thing + "spec: null\n", gitops.WrongType, gitops.SeverityFail, "/spec"},
		{"a typo at the top level", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: default}\nspecX: {a: b}\n", gitops.UnknownField, gitops.SeverityFail, "/specX"},
		{"duplicate env names", dep(", env: [{name: A, value: '1'}, {name: A, value: '2'}]"), gitops.InvalidValue, gitops.SeverityFail, ""},
		{"Secret without type", "apiVersion: v1\nkind: Secret\nmetadata: {name: c, namespace: default}\ndata: {a: Yg==}\n", "", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := validate(t, prod(files{"clusters/prod/apps.yaml": ks("apps", "./apps"), "apps/crd.yaml": crd, "apps/o.yaml": tc.object}))
			var got []gitops.Finding
			for _, f := range v.Findings {
				if f.File == "apps/o.yaml" {
					got = append(got, f)
				}
			}
			switch {
			case tc.code == "":
				if len(v.Findings) > 0 {
					t.Errorf("findings %s", lines(v.Findings))
				}
			case len(got) != 1 || got[0].Code != tc.code || got[0].Severity != tc.severity || tc.field != "" && got[0].Field != tc.field:
				t.Errorf("findings %s, want %s %s %s", lines(v.Findings), tc.severity, tc.code, tc.field)
			}
		})
	}
}

func TestShapeNotExpanded(t *testing.T) {
	release := func(v string) string {
		return "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: default}\nspec: {interval: 1h, chart: {spec: {chart: web, sourceRef: {kind: HelmRepository, name: charts}}}, values: {v: " + v + "}}\n"
	}
	set := func(v string) string {
		return "apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: tenants, namespace: default}\nspec: {inputs: [{v: " + v + "}], resources: []}\n"
	}
	f := prod(files{"clusters/prod/apps.yaml": ks("apps", "./apps"), "apps/r.yaml": release("one"), "apps/s.yaml": set("one")})
	v := validate(t, f)
	if got := coded(v.Findings, gitops.NotExpanded); len(got) != 2 || v.Meta.NotExpanded != 2 {
		t.Errorf("findings %s, meta %+v", lines(v.Findings), v.Meta)
	}
	r := impactOf(t, f, files{"apps/r.yaml": release("two"), "apps/s.yaml": set("two")})
	a := affectedOf(t, r, "apps")
	wantObjects(t, a, "changed HelmRelease web", "changed ResourceSet tenants")
	for _, o := range a.Objects {
		if !o.Expands {
			t.Errorf("%s does not say that it expands", o)
		}
	}
	// A child that a ResourceSet may make is no failure of who waits for it.
	v = validate(t, f.with(files{"clusters/prod/late.yaml": ks("late", "./apps2", "dependsOn: [{name: tenant-a}]"), "apps2/cm.yaml": cm("x", "a: b")}))
	wantNoFailure(t, v.Findings)
	wantFinding(t, v.Findings, gitops.Unverifiable, "tenant-a", "ResourceSet")
}

func TestShapeLabelSelectorInThePatch(t *testing.T) {
	f := prod(files{
		"clusters/prod/apps.yaml": ks("apps", "./apps", "patches:", "- target: {labelSelector: team=a}", "  patch: |", "    - {op: add, path: /data/patched, value: 'yes'}"),
		"apps/kustomization.yaml": kfile(resources("a.yaml", "../b"), "labels: [{pairs: {team: a}}]"),
		"apps/a.yaml":             cm("a", "x: y"), "b/b.yaml": cm("b", "x: y"),
		"b/kustomization.yaml": kfile(resources("b.yaml")),
	})
	g := graphOf(t, f)
	// Patches run before the labels of the same folder are added: as in the cluster,
	// only labels from below are there to be selected.
	if out := rendered(t, g, "apps"); strings.Contains(out, "patched") {
		t.Errorf("labels of the same folder were selected:\n%s", out)
	}
	below := f.with(files{"b/kustomization.yaml": kfile(resources("b.yaml"), "labels: [{pairs: {team: a}}]")})
	if out := rendered(t, graphOf(t, below), "apps"); strings.Count(out, "patched") != 1 {
		t.Errorf("labels from below were not selected:\n%s", out)
	}
}

func TestShapeTwoClustersOneName(t *testing.T) {
	f := bootstrapped("clusters/prod").with(bootstrapped("clusters/stage"), files{
		"clusters/prod/apps.yaml":  ks("apps", "./apps/prod", "dependsOn: [{name: infra}]"),
		"clusters/stage/apps.yaml": docs(ks("apps", "./apps/stage"), ks("infra", "./apps/base")),
		"apps/base/cm.yaml":        cm("c", "a: b"), "apps/base/kustomization.yaml": kfile(resources("cm.yaml")),
		"apps/prod/kustomization.yaml":  kfile(resources("../base"), "nameSuffix: -prod"),
		"apps/stage/kustomization.yaml": kfile(resources("../base"), "nameSuffix: -stage"),
	})
	g := graphOf(t, f)
	wantKeys(t, g, "prod/apps", "prod/flux-system", "stage/apps", "stage/flux-system", "stage/infra")
	// The other cluster's infra does not count.
	x := wantFinding(t, g.Findings, gitops.DanglingDependency, "infra")
	if x.Kustomizations[0].Cluster != "prod" || x.File != "clusters/prod/apps.yaml" {
		t.Errorf("finding %+v", x)
	}
	wantRendered(t, g, "apps", `"name":"c-prod"`)
	wantRendered(t, g, "stage/apps", `"name":"c-stage"`)
	r := impactOf(t, f, files{"apps/base/cm.yaml": cm("c", "a: c")})
	wantAffected(t, r, "apps changed", "stage/apps changed", "stage/infra changed")
	wantAffected(t, impactOf(t, f, files{"apps/stage/kustomization.yaml": kfile(resources("../base"), "nameSuffix: -s")}), "stage/apps changed")
}

// Several documents in a file: each has its own line and its own Kustomization.
func TestShapeManyDocumentsInAFile(t *testing.T) {
	f := prod(files{
		"clusters/prod/all.yaml": "---\n# first\n" + docs(ks("a", "./a"), "# only a comment\n", ks("b", "./b", "dependsOn: [{name: a}]"), "", ks("c", "./c", "dependsOn: [{name: nobody}]")),
		"a/x.yaml":               cm("a", "x: y"), "b/x.yaml": cm("b", "x: y"), "c/x.yaml": cm("c", "x: y"),
	})
	g := graphOf(t, f)
	wantKeys(t, g, "a", "b", "c", "flux-system")
	text := strings.Split(f["clusters/prod/all.yaml"], "\n")
	for _, n := range []string{"a", "b", "c"} {
		p := nodeOf(t, g, n).Place
		if p.File != "clusters/prod/all.yaml" || p.Line < 1 || !strings.HasPrefix(text[p.Line-1], "apiVersion") || !strings.Contains(text[p.Line+1], "name: "+n) {
			t.Errorf("%s stands at %+v", n, p)
		}
	}
	x := wantFinding(t, g.Findings, gitops.DanglingDependency, "nobody")
	if !strings.Contains(text[x.Line-1], "nobody") {
		t.Errorf("line %d is %q", x.Line, text[x.Line-1])
	}
	r := impactOf(t, f, files{"clusters/prod/all.yaml": strings.Replace(f["clusters/prod/all.yaml"], `path: "./b"`, `path: "./a"`, 1)})
	wantAffected(t, r, "b changed", "flux-system changed")
	wantReason(t, affectedOf(t, r, "b"), "clusters/prod/all.yaml", "Kustomization prod/flux-system/flux-system", "Kustomization prod/flux-system/b")
}
