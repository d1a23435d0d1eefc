package gitops_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

// app is a Kustomization with one ConfigMap, in the cluster prod.
var app = prod(files{"clusters/prod/app.yaml": ks("app", "./app"), "app/cm.yaml": cm("app", "color: red"), "app/two.yaml": cm("two", "a: b")})

func TestImpactOfKustomizationsThatComeAndGo(t *testing.T) {
	t.Run("added", func(t *testing.T) {
		r := impactOf(t, app, files{"clusters/prod/new.yaml": ks("new", "./new"), "new/cm.yaml": cm("new", "a: b")})
		wantAffected(t, r, "flux-system changed", "new added")
		a := affectedOf(t, r, "new")
		wantObjects(t, a, "added ConfigMap new")
		wantReason(t, a, "clusters/prod/new.yaml", "Kustomization prod/flux-system/flux-system", "Kustomization prod/flux-system/new")
		wantReason(t, a, "new/cm.yaml", "Kustomization prod/flux-system/new")
		wantObjects(t, affectedOf(t, r, "flux-system"), "added Kustomization new")
		if len(r.UnmappedFiles) > 0 {
			t.Errorf("unmapped %v", r.UnmappedFiles)
		}
	})
	t.Run("removed, pruned", func(t *testing.T) {
		r := impactOf(t, app, files{"clusters/prod/app.yaml": ""})
		wantAffected(t, r, "app removed", "flux-system changed")
		wantObjects(t, affectedOf(t, r, "app"), "pruned ConfigMap app", "pruned ConfigMap two")
		wantObjects(t, affectedOf(t, r, "flux-system"), "pruned Kustomization app")
		wantReason(t, affectedOf(t, r, "app"), "clusters/prod/app.yaml", "Kustomization prod/flux-system/app")
		if slices.Contains(r.ReconcileSet, key("app")) {
			t.Errorf("what is gone is reconciled: %v", r.ReconcileSet)
		}
	})
	t.Run("removed, orphaned", func(t *testing.T) {
		kept := app.with(files{"clusters/prod/app.yaml": ks("app", "./app", "prune: false")})
		r := impactOf(t, kept, files{"clusters/prod/app.yaml": ""})
		wantObjects(t, affectedOf(t, r, "app"), "orphaned ConfigMap app", "orphaned ConfigMap two")
	})
	t.Run("renamed", func(t *testing.T) {
		r := impactOf(t, app, files{"clusters/prod/app.yaml": ks("renamed", "./app")})
		wantAffected(t, r, "app removed", "flux-system changed", "renamed added")
		wantObjects(t, affectedOf(t, r, "app"), "moved ConfigMap app", "moved ConfigMap two")
	})
	t.Run("an object that disappears", func(t *testing.T) {
		r := impactOf(t, app, files{"app/cm.yaml": ""})
		wantAffected(t, r, "app changed")
		wantObjects(t, affectedOf(t, r, "app"), "pruned ConfigMap app")
		wantReason(t, affectedOf(t, r, "app"), "app/cm.yaml", "Kustomization prod/flux-system/app")
		if k := affectedOf(t, r, "app").Kinds; k["ConfigMap"] != 1 || len(k) != 1 {
			t.Errorf("kinds %v", k)
		}
	})
	t.Run("an object that moves", func(t *testing.T) {
		two := app.with(files{"clusters/prod/other.yaml": ks("other", "./other"), "other/cm.yaml": cm("other", "a: b")})
		r := impactOf(t, two, files{"app/cm.yaml": "", "other/app.yaml": app["app/cm.yaml"]})
		wantAffected(t, r, "app changed", "other changed")
		wantObjects(t, affectedOf(t, r, "app"), "moved ConfigMap app")
		wantObjects(t, affectedOf(t, r, "other"), "added ConfigMap app")
	})
	t.Run("a file that moves within one is no change", func(t *testing.T) {
		one := prod(files{"clusters/prod/app.yaml": ks("app", "./app"), "app/cm.yaml": cm("app", "color: red")})
		r := impactOf(t, one, files{"app/cm.yaml": "", "app/renamed.yaml": one["app/cm.yaml"]})
		wantAffected(t, r)
		wantUnmapped(t, r, "app/cm.yaml", gitops.UnmappedNoChange)
		wantUnmapped(t, r, "app/renamed.yaml", gitops.UnmappedNoChange)
		if !slices.Equal(r.ChangedFiles, []gitops.ChangedFile{{File: "app/cm.yaml", Change: "deleted"}, {File: "app/renamed.yaml", Change: "added"}}) {
			t.Errorf("changed files %v", r.ChangedFiles)
		}
	})
	t.Run("a cluster that comes, and one that goes", func(t *testing.T) {
		r := impactOf(t, app, bootstrapped("clusters/new"))
		wantAffected(t, r, "new/flux-system added")
		r = impactOf(t, app.with(bootstrapped("clusters/old")), files{"clusters/old/flux-system/gotk-sync.yaml": ""})
		wantAffected(t, r, "old/flux-system removed")
		if !r.HasCluster("old") || !r.HasCluster("prod") || r.HasCluster("new") {
			t.Error("HasCluster")
		}
	})
	t.Run("the folder goes, the Kustomization stays", func(t *testing.T) {
		r := impactOf(t, app, files{"app/cm.yaml": "", "app/two.yaml": ""})
		a := affectedOf(t, r, "app")
		if a.Effect != gitops.EffectUnknown || a.Detail == "" {
			t.Errorf("%+v", a)
		}
		wantReason(t, a, "app/cm.yaml")
	})
}

func TestImpactOfGenerators(t *testing.T) {
	gen := func(lines ...string) string { return kfile(append(lines, resources("user.yaml"))...) }
	user := "apiVersion: v1\nkind: Pod\nmetadata: {name: user, namespace: default}\nspec: {containers: [{name: c, image: x, envFrom: [{configMapRef: {name: settings}}]}]}\n"
	t.Run("a new hash is one changed object", func(t *testing.T) {
		f := prod(files{"clusters/prod/app.yaml": ks("app", "./app"), "app/user.yaml": user, "app/s.env": "A=1\n",
			"app/kustomization.yaml": gen("configMapGenerator: [{name: settings, namespace: default, envs: [s.env]}]", "secretGenerator: [{name: keys, namespace: default, literals: [a=b]}]")})
		r := impactOf(t, f, files{"app/s.env": "A=2\n"})
		a := affectedOf(t, r, "app")
		if len(a.Objects) != 2 || a.Objects[0].Change != "changed" || a.Objects[0].Kind != "ConfigMap" || !strings.HasPrefix(a.Objects[0].Name, "settings-") || a.Objects[1].Change != "changed" || a.Objects[1].Kind != "Pod" {
			t.Errorf("objects %+v", a.Objects)
		}
		wantReason(t, a, "app/s.env", "app/kustomization.yaml")
	})
	t.Run("names that only look like they had a hash stay apart", func(t *testing.T) {
		f := prod(files{"clusters/prod/app.yaml": ks("app", "./app"), "app/user.yaml": user, "app/k.json": "1", "app/p.json": "1",
			"app/kustomization.yaml": gen("generatorOptions: {disableNameSuffixHash: true}", "configMapGenerator: [{name: dash-kubernetes, files: [k.json]}, {name: dash-prometheus, files: [p.json]}, {name: dash}]")})
		r := impactOf(t, f, files{"app/k.json": "2", "app/p.json": "2"})
		wantObjects(t, affectedOf(t, r, "app"), "changed ConfigMap dash-kubernetes", "changed ConfigMap dash-prometheus")
	})
	t.Run("an object of that name in a file is itself", func(t *testing.T) {
		f := prod(files{"clusters/prod/app.yaml": ks("app", "./app"), "app/a.yaml": cm("old-bbbbbbbbbb", "a: b")})
		r := impactOf(t, f, files{"app/a.yaml": cm("old-cccccccccc", "a: b")})
		wantObjects(t, affectedOf(t, r, "app"), "added ConfigMap old-cccccccccc", "pruned ConfigMap old-bbbbbbbbbb")
	})
}

func TestImpactOfFilesThatChangeNothing(t *testing.T) {
	for _, tc := range []struct {
		name, file   string
		base         files
		content      string
		reason       gitops.UnmappedReason
		detail       string
		alsoAffected []string
	}{
		{"a comment", "app/cm.yaml", nil, "# why\n" + app["app/cm.yaml"], gitops.UnmappedNoChange, "prod/flux-system/app", nil},
		{"the order of keys", "app/cm.yaml", nil, "kind: ConfigMap\napiVersion: v1\ndata: {color: red}\nmetadata: {namespace: default, name: app}\n", gitops.UnmappedNoChange, "app", nil},
		{"a comment in a Kustomization's file", "clusters/prod/app.yaml", nil, "# why\n" + app["clusters/prod/app.yaml"], gitops.UnmappedNoChange, "prod/flux-system/flux-system", nil},
		{"ignored by default", ".github/workflows/ci.yaml", nil, "on: push\n", gitops.UnmappedIgnored, "default rules", nil},
		{"ignored by .sourceignore", "app/ignored.yaml", files{".sourceignore": "ignored.yaml\n"}, cm("x", "a: b"), gitops.UnmappedIgnored, ".sourceignore", nil},
		{"read by nothing", "stray/cm.yaml", nil, cm("x", "a: b"), gitops.UnmappedUnreferenced, "", nil},
		{"no manifest", "README.md", nil, "# hello\n", gitops.UnmappedNotManifest, "", nil},
		{"a manifest's neighbour", "app/notes.txt", nil, "notes\n", gitops.UnmappedNoChange, "app", nil},
		{"not listed", "listed/extra.yaml", files{"clusters/prod/l.yaml": ks("listed", "./listed"), "listed/kustomization.yaml": kfile(resources("a.yaml")), "listed/a.yaml": cm("a", "b: c")}, cm("x", "a: b"), gitops.UnmappedUnreferenced, "", nil},
		{"a chart", "charts/web/templates/svc.yaml", files{"app/r.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: flux-system}\nspec: {interval: 1h, chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: flux-system}}}}\n"},
			"kind: Service\n", gitops.UnmappedChart, "HelmRelease flux-system/web", nil},
		{"a chart of another repository", "charts/web/templates/svc.yaml", files{"app/r.yaml": docs(gitRepo("flux-system", "charts", "https://git.example.com/acme/charts"), "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web, namespace: flux-system}\nspec: {interval: 1h, chart: {spec: {chart: ./charts/web, sourceRef: {kind: GitRepository, name: charts}}}}\n")},
			"kind: Service\n", gitops.UnmappedUnreferenced, "", nil},
		{"another source's folder", "ext/cm.yaml", files{"clusters/prod/e.yaml": docs(gitRepo("flux-system", "ext", "https://git.example.com/acme/ext"), ksOf("flux-system", "ext", "./ext", "GitRepository", "ext")), "ext/old.yaml": cm("o", "a: b")},
			cm("x", "a: b"), gitops.UnmappedOtherSource, "prod/flux-system/ext", nil},
		{"the configuration", gitops.ConfigFile, nil, "vars: {A: b}\n", gitops.UnmappedConfig, "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := impactOf(t, app.with(tc.base), files{tc.file: tc.content})
			wantAffected(t, r, tc.alsoAffected...)
			u := wantUnmapped(t, r, tc.file, tc.reason)
			if !strings.Contains(u.Detail, tc.detail) {
				t.Errorf("detail %q lacks %q", u.Detail, tc.detail)
			}
			if len(r.ReconcileSet)+len(r.TransitivelyAffected) > 0 {
				t.Errorf("reconcile %v, waiting %v", r.ReconcileSet, r.TransitivelyAffected)
			}
		})
	}
	t.Run("nothing changed", func(t *testing.T) {
		r := impactOf(t, app, nil)
		if wantAffected(t, r); len(r.ChangedFiles)+len(r.UnmappedFiles) > 0 {
			t.Errorf("%+v", r)
		}
	})
}

func waiting(r *gitops.ImpactResult) string {
	var out []string
	for _, w := range r.TransitivelyAffected {
		out = append(out, fmt.Sprintf("%s %d", short(w.KustomizationKey), w.Wave))
	}
	return strings.Join(out, ", ")
}

func TestImpactOnWhoWaits(t *testing.T) {
	f := app.with(files{"clusters/prod/chain.yaml": docs(ks("one", "./x", "dependsOn: [{name: app}]"), ks("two", "./x", "dependsOn: [{name: one}]"), ks("aside", "./x"), ks("both", "./app", "namePrefix: both-", "dependsOn: [{name: two}]")),
		"x/kustomization.yaml": kfile("resources: []")})
	r := impactOf(t, f, files{"app/cm.yaml": cm("app", "color: blue")})
	wantAffected(t, r, "app changed", "both changed")
	if got := waiting(r); got != "one 1, two 2" {
		t.Errorf("waiting %s", got)
	}
	if got := names(r.ReconcileSet); got != "app one two both" {
		t.Errorf("reconcile set %q", got)
	}
	t.Run("for one that goes away", func(t *testing.T) {
		r := impactOf(t, f, files{"clusters/prod/app.yaml": ""})
		wantAffected(t, r, "app removed", "flux-system changed")
		if got := waiting(r); got != "one 0, two 1, both 2" {
			t.Errorf("waiting %s", got)
		}
	})
}

func TestImpactUnknown(t *testing.T) {
	broken := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: [\n"
	t.Run("the head fails", func(t *testing.T) {
		a := affectedOf(t, impactOf(t, app, files{"app/cm.yaml": broken}), "app")
		if a.Effect != gitops.EffectUnknown || a.Detail == "" || strings.HasPrefix(a.Detail, "before") {
			t.Errorf("%+v", a)
		}
		wantReason(t, a, "app/cm.yaml", "Kustomization prod/flux-system/app")
	})
	t.Run("the base fails", func(t *testing.T) {
		a := affectedOf(t, impactOf(t, app.with(files{"app/cm.yaml": broken}), files{"app/cm.yaml": cm("app", "a: b")}), "app")
		if a.Effect != gitops.EffectUnknown || !strings.HasPrefix(a.Detail, "before the change") {
			t.Errorf("%+v", a)
		}
	})
	t.Run("both fail in the same way, nothing of it changed", func(t *testing.T) {
		r := impactOf(t, app.with(files{"app/bad.yaml": broken}), files{"README.md": "x\n"})
		wantAffected(t, r)
	})
	t.Run("both fail, and a file that was read changed", func(t *testing.T) {
		r := impactOf(t, app.with(files{"app/bad.yaml": broken}), files{"app/bad.yaml": "# still\n" + broken})
		wantAffected(t, r, "app unknown")
	})
	t.Run("an external one", func(t *testing.T) {
		f := app.with(files{"clusters/prod/e.yaml": docs(gitRepo("flux-system", "ext", "https://git.example.com/acme/ext"), ksOf("flux-system", "ext", "./ext", "GitRepository", "ext"))})
		r := impactOf(t, f, files{"clusters/prod/e.yaml": strings.Replace(f["clusters/prod/e.yaml"], "./ext", "./elsewhere", 1)})
		wantAffected(t, r, "ext unknown", "flux-system changed")
		wantReason(t, affectedOf(t, r, "ext"), "clusters/prod/e.yaml", "Kustomization prod/flux-system/ext")
	})
}

func TestImpactOfTheWorkingTree(t *testing.T) {
	dir := repository(t, app)
	put(t, dir, files{"app/cm.yaml": cm("app", "color: blue"), "app/untracked.yaml": cm("untracked", "a: b"), ".gitignore": "secret.yaml\n", "app/secret.yaml": cm("ignored", "a: b")})
	r := compute(t, dir, "", "main")
	wantAffected(t, r, "app changed")
	wantObjects(t, affectedOf(t, r, "app"), "added ConfigMap untracked", "changed ConfigMap app")
	if !r.Graph.Worktree || r.Graph.Dirty == nil || !*r.Graph.Dirty || r.Base != git(t, dir, "rev-parse", "main") {
		t.Errorf("worktree %v, dirty %v, base %s", r.Graph.Worktree, r.Graph.Dirty, r.Base)
	}
	for _, f := range r.ChangedFiles {
		if f.File == "app/secret.yaml" {
			t.Error("what Git ignores is a change")
		}
	}
	// At the commit the same tree is clean.
	r = compute(t, dir, "HEAD", "main")
	wantAffected(t, r)
	if r.Graph.Worktree {
		t.Error("a commit is read from the disk")
	}
	// Without a base it is the branch that this one left.
	r = compute(t, dir, "", "")
	wantAffected(t, r, "app changed")
	t.Run("the base moved on", func(t *testing.T) {
		commit(t, dir, "mine")
		git(t, dir, "checkout", "-q", "main")
		put(t, dir, files{"app/two.yaml": cm("two", "theirs: 1")})
		commit(t, dir, "theirs")
		r := compute(t, dir, "change", "main")
		wantObjects(t, affectedOf(t, r, "app"), "added ConfigMap untracked", "changed ConfigMap app")
	})
}

func TestImpactErrors(t *testing.T) {
	ctx := context.Background()
	impact := func(dir, head, base string) error {
		_, err := newEngine(t, gitops.Options{}).ComputeImpact(ctx, gitops.Repo{Path: dir, Ref: head}, base)
		return err
	}
	t.Run("unrelated histories", func(t *testing.T) {
		dir := repository(t, app)
		git(t, dir, "checkout", "-q", "--orphan", "alone")
		commit(t, dir, "alone")
		wantCode(t, impact(dir, "alone", "main"), gitops.ErrHistory)
	})
	t.Run("a shallow clone", func(t *testing.T) {
		dir := repository(t, app)
		put(t, dir, files{"app/cm.yaml": cm("app", "a: b")})
		commit(t, dir, "one")
		git(t, dir, "checkout", "-q", "main")
		put(t, dir, files{"app/two.yaml": cm("app", "a: c")})
		commit(t, dir, "two")
		clone := filepath.Join(t.TempDir(), "clone")
		git(t, dir, "clone", "-q", "--depth", "1", "--no-single-branch", "file://"+dir, clone)
		wantCode(t, impact(clone, "origin/change", "origin/main"), gitops.ErrHistory)
	})
	dir := repository(t, app)
	t.Run("no such ref", func(t *testing.T) {
		if e := wantCode(t, impact(dir, "nobody", "main"), gitops.ErrNotFound, "nobody"); len(e.Valid) == 0 {
			t.Error("no valid refs are named")
		}
		wantCode(t, impact(dir, "change", "nobody"), gitops.ErrNotFound, "nobody")
	})
	t.Run("a folder without Git", func(t *testing.T) {
		wantCode(t, impact(folder(t, app), "", "main"), gitops.ErrInvalidArgument)
	})
	t.Run("no folder", func(t *testing.T) {
		wantCode(t, impact(filepath.Join(dir, "nothing"), "", "main"), gitops.ErrNotFound)
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := newEngine(t, gitops.Options{}).ComputeImpact(ctx, gitops.Repo{Path: dir}, "main"); err == nil {
			t.Error("no error")
		}
	})
}

// What a source lets through decides, too.
func TestImpactOfIgnoreRules(t *testing.T) {
	sync := "clusters/prod/flux-system/gotk-sync.yaml"
	ignoring := func(rules string) string {
		return docs(gitRepo("flux-system", "flux-system", repoURL, "ignore: "+rules), ks("flux-system", "./clusters/prod"))
	}
	for _, tc := range []struct {
		name   string
		base   files
		change files
		file   string
		want   []string
	}{
		{"a .sourceignore that is new", nil, files{".sourceignore": "/app/two.yaml\n"}, ".sourceignore", []string{"app changed"}},
		{"one that changes", files{"app/.sourceignore": "x\n"}, files{"app/.sourceignore": "two.yaml\n"}, "app/.sourceignore", []string{"app changed"}},
		{"spec.ignore", files{sync: ignoring("x")}, files{sync: ignoring("/app/two.yaml")}, sync, []string{"app changed", "flux-system changed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := impactOf(t, app.with(tc.base), tc.change)
			wantAffected(t, r, tc.want...)
			wantObjects(t, affectedOf(t, r, "app"), "pruned ConfigMap two")
			wantReason(t, affectedOf(t, r, "app"), tc.file, "GitRepository", "Kustomization prod/flux-system/app")
			if len(r.UnmappedFiles) > 0 {
				t.Errorf("unmapped %v", r.UnmappedFiles)
			}
		})
	}
}

// The configuration that counts is the base's: a change must not judge itself.
func TestImpactReadsTheBasesConfig(t *testing.T) {
	root := func(path string) string { return "roots: [{cluster: prod, path: " + path + "}]\n" }
	f := files{gitops.ConfigFile: root("one"), "one/cm.yaml": cm("one", "a: b"), "two/cm.yaml": cm("two", "a: b")}
	r := impactOf(t, f, files{gitops.ConfigFile: root("two"), "one/cm.yaml": cm("one", "a: c")})
	wantAffected(t, r, "flux-system changed")
	wantObjects(t, affectedOf(t, r, "flux-system"), "changed ConfigMap one")
	x := wantFinding(t, r.Findings, gitops.ConfigChanged, gitops.ConfigFile)
	if x.Severity != gitops.SeverityWarn {
		t.Errorf("severity %s", x.Severity)
	}
	wantUnmapped(t, r, gitops.ConfigFile, gitops.UnmappedConfig)
	// A head whose file is broken is judged all the same; so is one without it.
	for _, head := range []string{"nonsense: true\n", ""} {
		r = impactOf(t, f, files{gitops.ConfigFile: head, "one/cm.yaml": cm("one", "a: c")})
		wantAffected(t, r, "flux-system changed")
		wantFinding(t, r.Findings, gitops.ConfigChanged)
	}
	// What the user says goes over both.
	dir := repository(t, f)
	put(t, dir, files{"two/cm.yaml": cm("two", "a: c")})
	commit(t, dir, "change")
	res, err := newEngine(t, gitops.Options{}).ComputeImpact(context.Background(), gitops.Repo{Path: dir, Ref: "change", Config: gitops.Config{Roots: []gitops.RootConfig{{Cluster: "prod", Path: "two"}}}}, "main")
	if err != nil {
		t.Fatal(err)
	}
	wantAffected(t, res, "flux-system changed")
}

// Kustomizations that take their variables from each other: the reasons go round.
func TestImpactReasonsInRings(t *testing.T) {
	from := func(cm string) string { return "postBuild: {substituteFrom: [{kind: ConfigMap, name: " + cm + "}]}" }
	values := func(name, text string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: flux-system}\ndata: {" + text + "}\n"
	}
	patched := func(to string) string {
		return kfile(resources("cm.yaml"), "patches: [{path: patch.yaml}]") + "# " + to + "\n"
	}
	// a, b and c each render what the next one substitutes; what starts it is a patch,
	// which is no file of the ConfigMap's own.
	ring := prod(files{
		"clusters/prod/ring.yaml": docs(ks("a", "./a", from("of-c")), ks("b", "./b", from("of-a")), ks("c", "./c", from("of-b")), ks("d", "./d", from("of-c"))),
		"a/cm.yaml":               values("of-a", "x: y, FROM_C: \"${FROM_B:=none}\""), "a/patch.yaml": values("of-a", "A: red"), "a/kustomization.yaml": patched("a"),
		"b/cm.yaml": values("of-b", "B: \"${A}\""),
		"c/cm.yaml": values("of-c", "FROM_B: \"${B}\""),
		"d/cm.yaml": values("of-d", "D: \"${FROM_B}\""),
	})
	way := map[string][]string{
		"a": {"a/kustomization.yaml", "Kustomization prod/flux-system/a"},
		"b": {"Kustomization prod/flux-system/a", "ConfigMap flux-system/of-a", "Kustomization prod/flux-system/b"},
		"c": {"Kustomization prod/flux-system/a", "Kustomization prod/flux-system/b", "ConfigMap flux-system/of-b", "Kustomization prod/flux-system/c"},
		"d": {"Kustomization prod/flux-system/a", "Kustomization prod/flux-system/b", "Kustomization prod/flux-system/c", "ConfigMap flux-system/of-c", "Kustomization prod/flux-system/d"},
	}
	// Whichever of the ring is looked at first, the names being those of a, b and c in
	// any order.
	for _, order := range []string{"abc", "bca", "cab", "cba"} {
		t.Run(order, func(t *testing.T) {
			to := strings.NewReplacer("name: a,", "name: "+order[:1]+",", "name: b,", "name: "+order[1:2]+",", "name: c,", "name: "+order[2:]+",")
			f := ring.with(files{"clusters/prod/ring.yaml": to.Replace(ring["clusters/prod/ring.yaml"])})
			r := impactOf(t, f, files{"a/patch.yaml": values("of-a", "A: blue")})
			wantAffected(t, r, "a changed", "b changed", "c changed", "d changed")
			for name, steps := range way {
				to := strings.NewReplacer("flux-system/a", "flux-system/"+order[:1], "flux-system/b", "flux-system/"+order[1:2], "flux-system/c", "flux-system/"+order[2:])
				var want []string
				for _, s := range steps {
					want = append(want, to.Replace(s))
				}
				if i := strings.Index("abc", name); i >= 0 {
					name = order[i : i+1]
				}
				a := affectedOf(t, r, name)
				wantReason(t, a, "a/patch.yaml", want...)
				if len(a.Reasons) != 1 {
					t.Errorf("%s has more reasons than the patch: %q", name, a.Reasons)
				}
			}
			if len(r.UnmappedFiles) > 0 {
				t.Errorf("unmapped %v", r.UnmappedFiles)
			}
		})
	}
}

// What changes beside a cause is none of its effects.
func TestImpactReasonsAreCauses(t *testing.T) {
	values := func(name, text string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: flux-system}\ndata: {" + text + "}\n"
	}
	f := app.with(files{"clusters/prod/app.yaml": ks("app", "./app", "postBuild: {substituteFrom: [{kind: ConfigMap, name: one}, {kind: ConfigMap, name: two}]}"),
		"app/cm.yaml": cm("app", "a: ${A}"), "clusters/prod/one.yaml": values("one", "A: b"), "clusters/prod/two.yaml": values("two", "B: b")})
	r := impactOf(t, f, files{"clusters/prod/one.yaml": values("one", "A: c"), "clusters/prod/two.yaml": "# why\n" + values("two", "B: b")})
	wantAffected(t, r, "app changed", "flux-system changed")
	a := affectedOf(t, r, "app")
	wantReason(t, a, "clusters/prod/one.yaml", "ConfigMap flux-system/one", "Kustomization prod/flux-system/app")
	if len(a.Reasons) != 1 {
		t.Errorf("reasons %q", a.Reasons)
	}
	t.Run("more than are listed", func(t *testing.T) {
		change := files{}
		for i := range 30 {
			change[fmt.Sprintf("app/%d.yaml", i)] = cm(fmt.Sprint("n", i), "a: b")
		}
		r := impactOf(t, app, change)
		if n := len(affectedOf(t, r, "app").Reasons); n != 20 || len(r.UnmappedFiles) > 0 {
			t.Errorf("%d reasons, unmapped %v", n, r.UnmappedFiles)
		}
	})
}

// A question after a question gives the same answer from the cache.
func TestImpactTwice(t *testing.T) {
	dir := repository(t, app)
	e := newEngine(t, gitops.Options{})
	ask := func() string {
		r, err := e.ComputeImpact(context.Background(), gitops.Repo{Path: dir}, "main")
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(affected(r))
	}
	want := []string{"[]", "[app changed]", "[]", "[app unknown]", "[app changed]"}
	for i, text := range []string{app["app/cm.yaml"], cm("app", "color: blue"), app["app/cm.yaml"], "a: [\n", cm("app", "color: blue")} {
		if err := os.WriteFile(filepath.Join(dir, "app", "cm.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := ask(); got != want[i] {
				t.Errorf("step %d: %s, want %s", i, got, want[i])
			}
		}
	}
}

// BenchmarkImpactOfManyFiles is a change of many files, most of which nothing reads,
// in a repository of many Kustomizations.
func BenchmarkImpactOfManyFiles(b *testing.B) {
	base, change := prod(), files{}
	for i := range 200 {
		name := fmt.Sprintf("app-%d", i)
		base["clusters/prod/"+name+".yaml"] = ks(name, "./"+name)
		base[name+"/cm.yaml"] = cm(name, "a: b")
		if i%2 == 0 {
			change[name+"/more.yaml"] = cm(name+"-more", "a: b")
		}
	}
	for i := range 3000 {
		change[fmt.Sprintf("stray/%d/cm.yaml", i)] = cm("stray", "a: b")
	}
	dir := repository(b, base)
	put(b, dir, change)
	commit(b, dir, "change")
	e := newEngine(b, gitops.Options{})
	for b.Loop() {
		r, err := e.ComputeImpact(b.Context(), gitops.Repo{Path: dir, Ref: "change"}, "main")
		if err != nil {
			b.Fatal(err)
		}
		if len(r.DirectlyAffected) != 100 || len(r.UnmappedFiles) != 3000 {
			b.Fatalf("%d affected, %d unmapped", len(r.DirectlyAffected), len(r.UnmappedFiles))
		}
	}
}
