package gitops_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

// clustersOf are the clusters as "name from roots".
func clustersOf(g *gitops.FluxGraph) string {
	var out []string
	for _, c := range g.Clusters {
		out = append(out, fmt.Sprintf("%s %s %s", c.Name, c.From, strings.Join(c.Roots, "+")))
	}
	return strings.Join(out, ", ")
}

func wantClusters(t testing.TB, g *gitops.FluxGraph, want string) {
	t.Helper()
	if got := clustersOf(g); got != want {
		t.Errorf("clusters %q, want %q", got, want)
	}
}

func TestRootsOfTheConfiguration(t *testing.T) {
	f := files{
		"fleet/app.yaml":     ks("app", "./apps/${REGION}", "postBuild: {substitute: {WHO: '${REGION}'}}"),
		"apps/north/cm.yaml": cm("n", "who: ${WHO}"), "apps/south/cm.yaml": cm("s", "who: ${WHO}"),
	}
	t.Run("variables of a root reach the Kustomizations below", func(t *testing.T) {
		g := graphOf(t, f.with(files{gitops.ConfigFile: "roots:\n- {cluster: north, path: ./fleet, vars: {REGION: north}}\n- {cluster: south, path: ./fleet, vars: {REGION: south}}\n"}))
		wantClusters(t, g, "north config fleet, south config fleet")
		wantRendered(t, g, "north/app", `"name":"n"`, `"who":"north"`)
		wantRendered(t, g, "south/app", `"name":"s"`, `"who":"south"`)
	})
	t.Run("a variable in the root's own path", func(t *testing.T) {
		g := graphOf(t, f, gitops.Config{Vars: map[string]string{"WHERE": "fleet"}, Roots: []gitops.RootConfig{{Cluster: "prod", Path: "${WHERE}", Name: "start", Namespace: "ops"}}})
		wantClusters(t, g, "prod config fleet")
		wantState(t, g, "prod/ops/start", gitops.StateRendered)
	})
	t.Run("one that nobody sets", func(t *testing.T) {
		g := graphOf(t, f, gitops.Config{Roots: []gitops.RootConfig{{Cluster: "prod", Path: "clusters/${WHERE}"}}})
		wantState(t, g, "flux-system", gitops.StatePartial, "WHERE")
		x := wantFinding(t, g.Findings, gitops.UnresolvedVariable, "WHERE", gitops.ConfigFile)
		if x.Severity != gitops.SeverityWarn {
			t.Errorf("severity %s", x.Severity)
		}
	})
	t.Run("the same root in a file is one root", func(t *testing.T) {
		g := graphOf(t, prod(files{"clusters/prod/app.yaml": ks("app", "./a"), "a/cm.yaml": cm("a", "b: c")}), gitops.Config{Roots: []gitops.RootConfig{{Cluster: "production", Path: "./clusters/prod"}}})
		wantClusters(t, g, "production config clusters/prod")
		wantKeys(t, g, "production/app", "production/flux-system")
		if len(g.Unreferenced) > 0 {
			t.Errorf("unreferenced %v", unreferenced(g))
		}
	})
	t.Run("its document lies elsewhere, and there are others", func(t *testing.T) {
		// What the configuration says already must not keep the rest from being found.
		g := graphOf(t, files{
			"bootstrap/sync.yaml": ks("flux-system", "./clusters/prod"), "clusters/prod/app.yaml": ks("app", "./a"), "a/cm.yaml": cm("a", "b: c"),
			"manual/edge.yaml": ks("edge", "./e"), "e/cm.yaml": cm("e", "b: c"),
		}, gitops.Config{Roots: []gitops.RootConfig{{Cluster: "prod", Path: "./clusters/prod"}}})
		wantKeys(t, g, "manual/edge", "prod/app", "prod/flux-system")
	})
	t.Run("a path that is not there", func(t *testing.T) {
		g := graphOf(t, f, gitops.Config{Roots: []gitops.RootConfig{{Cluster: "prod", Path: "nowhere"}}})
		wantState(t, g, "flux-system", gitops.StateFailed)
		wantFinding(t, g.Findings, gitops.PathNotFound, gitops.ConfigFile)
	})
	t.Run("the variable stands in a document", func(t *testing.T) {
		g := graphOf(t, files{"sync.yaml": ks("flux-system", "./clusters/${CLUSTER}"), "clusters/a/cm.yaml": cm("a", "b: c")})
		if len(g.Unreferenced) != 1 || !strings.Contains(g.Unreferenced[0].Reason, "${CLUSTER}") || !strings.Contains(g.Unreferenced[0].Reason, gitops.ConfigFile) {
			t.Errorf("unreferenced %+v", g.Unreferenced)
		}
	})
}

const instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec:\n  distribution: {version: 2.x, registry: registry.example.com/flux}\n  sync: {kind: %s, url: %s, ref: refs/heads/main, path: %s%s}\n"

// givesChildren is a patch of a Kustomization that makes it patch its children.
func givesChildren(name, value string) string {
	return "- op: add\n  path: /spec/patches\n  value:\n  - target: {kind: Kustomization}\n    patch: |\n      - {op: add, path: /spec/postBuild, value: {substitute: {" + name + ": " + value + "}}}\n"
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n"+by) + "\n"
}

func TestRootsOfAFluxInstance(t *testing.T) {
	body := files{"clusters/prod/apps.yaml": ks("apps", "./apps"), "apps/cm.yaml": cm("a", "b: ${REGION}")}
	for _, tc := range []struct {
		name string
		more files
		root string
	}{
		{"beside the cluster", files{"bootstrap/instance.yaml": fmt.Sprintf(instance, "GitRepository", repoURL, "./clusters/prod", "")}, "flux-system"},
		{"in the cluster's own folder", files{"clusters/prod/flux-system/instance.yaml": fmt.Sprintf(instance, "GitRepository", repoURL, "clusters/prod/", "")}, "flux-system"},
		{"with a name of its own", files{"bootstrap/instance.yaml": fmt.Sprintf(instance, "GitRepository", repoURL, "/clusters/prod", ", name: cluster")}, "cluster"},
		{"by the chart", files{"bootstrap/instance.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: flux-instance, namespace: flux-system}\nspec: {interval: 1h, chartRef: {kind: OCIRepository, name: flux-instance}, values: {instance: {sync: {kind: GitRepository, url: \"" + repoURL + "\", ref: refs/heads/main, path: clusters/prod}}}}\n"}, "flux-system"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := graphOf(t, body.with(tc.more))
			wantClusters(t, g, "prod FluxInstance clusters/prod")
			if tc.root == "flux-system" {
				wantState(t, g, "apps", gitops.StateRendered)
			}
			n := nodeOf(t, g, tc.root)
			for file := range tc.more {
				if n.Place.File != file || !n.Root {
					t.Errorf("node %+v", n)
				}
			}
		})
	}
	t.Run("patches of the operator", func(t *testing.T) {
		patched := strings.Replace(fmt.Sprintf(instance, "GitRepository", repoURL, "clusters/prod", ""), "  sync:", "  kustomize:\n    patches:\n    - target: {kind: Deployment}\n      patch: '[{\"op\": \"add\", \"path\": \"/spec/x\", \"value\": 1}]'\n    - target: {kind: Kustomization}\n      patch: |\n"+indent(givesChildren("REGION", "north"), "        ")+"  sync:", 1)
		g := graphOf(t, body.with(files{"clusters/prod/flux-system/instance.yaml": patched}))
		wantRendered(t, g, "apps", `"b":"north"`)
	})
	t.Run("two clusters, two instances", func(t *testing.T) {
		g := graphOf(t, files{
			"clusters/prod/flux-system/i.yaml":  fmt.Sprintf(instance, "GitRepository", repoURL, "clusters/prod", ""),
			"clusters/stage/flux-system/i.yaml": fmt.Sprintf(instance, "GitRepository", repoURL, "clusters/stage", ""),
		})
		wantClusters(t, g, "prod FluxInstance clusters/prod, stage FluxInstance clusters/stage")
	})
	t.Run("without a sync there is no root", func(t *testing.T) {
		g := graphOf(t, files{"i.yaml": "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux, namespace: flux-system}\nspec: {distribution: {version: 2.x}}\n"})
		wantClusters(t, g, "")
	})
	t.Run("an artifact as its source", func(t *testing.T) {
		g := graphOf(t, files{
			"i.yaml":             fmt.Sprintf(instance, "OCIRepository", "oci://registry.example.com/fleet", "tenants", ""),
			"oci/tenants/a.yaml": ksOf("flux-system", "a", "./apps", "OCIRepository", "flux-system"), "oci/apps/cm.yaml": cm("a", "b: c"),
		})
		wantState(t, g, "tenants/a", gitops.StateRendered)
		if n := nodeOf(t, g, "tenants/a"); n.Path != "apps" || n.RepoPath != "oci/apps" {
			t.Errorf("path %s, in the repository %s", n.Path, n.RepoPath)
		}
	})
}

func TestRootsOfBootstrap(t *testing.T) {
	t.Run("folders with one base name are two clusters", func(t *testing.T) {
		g := graphOf(t, bootstrapped("eu/prod").with(bootstrapped("us/prod"), bootstrapped("stage")))
		wantClusters(t, g, "eu/prod bootstrap eu/prod, stage bootstrap stage, us/prod bootstrap us/prod")
	})
	t.Run("the whole repository", func(t *testing.T) {
		g := graphOf(t, bootstrapped(".").with(files{"apps/a.yaml": ks("a", "./x"), "x/cm.yaml": cm("x", "a: b")}))
		wantClusters(t, g, "default bootstrap .")
	})
	t.Run("a root that renders itself", func(t *testing.T) {
		f := prod(files{"clusters/prod/app.yaml": ks("app", "./app"), "app/cm.yaml": cm("a", "r: ${R}"),
			"clusters/prod/flux-system/kustomization.yaml": kfile(resources("gotk-sync.yaml"), "patches: [{path: patch.yaml, target: {kind: Kustomization}}]"), "clusters/prod/flux-system/patch.yaml": givesChildren("R", "north")})
		g := graphOf(t, f)
		wantKeys(t, g, "app", "flux-system")
		wantNoFailure(t, g.Findings)
		wantRendered(t, g, "app", `"r":"north"`)
		if n := nodeOf(t, g, "flux-system"); !n.Root {
			t.Error("the root is none")
		}
		r := impactOf(t, f, files{"clusters/prod/flux-system/patch.yaml": givesChildren("R", "south")})
		wantAffected(t, r, "app changed", "flux-system changed")
		wantReason(t, affectedOf(t, r, "app"), "clusters/prod/flux-system/patch.yaml", "Kustomization prod/flux-system/app")
	})
	// Whatever field comes in with the root's own patch, the root is rendered with it.
	for _, tc := range []struct{ name, field, want string }{
		{"labels", "commonMetadata: {labels: {team: sea}}", `"metadata":{"labels":{"team":"sea"},"name":"own"`},
		{"annotations", "commonMetadata: {annotations: {team: sea}}", `"metadata":{"annotations":{"team":"sea"},"name":"own"`},
		{"patches", `patches: [{patch: '[{"op": "add", "path": "/data/b", "value": "patched"}]', target: {kind: ConfigMap}}]`, `"data":{"a":"${R}","b":"patched"}`},
		{"components", "components: [../../components/c]", `"name":"of-the-component"`},
		{"values", "postBuild: {substitute: {R: north}}", `"data":{"a":"north"}`},
		{"always", "postBuild: {substituteStrategy: Always}", `"data":{"a":null}`},
		{"images", "images: [{name: x, newTag: v2}]", `"image":"x:v2"`},
		{"prefix", "namePrefix: my-", `"name":"my-own"`},
		{"suffix", "nameSuffix: -mine", `"name":"own-mine"`},
		{"namespace", "targetNamespace: elsewhere", `"name":"own","namespace":"elsewhere"`},
	} {
		t.Run("a root that patches itself: "+tc.name, func(t *testing.T) {
			g := graphOf(t, prod(files{"clusters/prod/own.yaml": docs(cm("own", "a: ${R}"), "apiVersion: v1\nkind: Pod\nmetadata: {name: pod, namespace: default}\nspec: {containers: [{name: c, image: x}]}\n"),
				"components/c/kustomization.yaml":              "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [cm.yaml]\n",
				"components/c/cm.yaml":                         cm("of-the-component", "a: b"),
				"clusters/prod/kustomization.yaml":             kfile(resources("flux-system", "own.yaml")),
				"clusters/prod/flux-system/kustomization.yaml": kfile(resources("gotk-sync.yaml"), "patches: [{path: patch.yaml, target: {kind: Kustomization}}]"),
				"clusters/prod/flux-system/patch.yaml":         "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: flux-system, namespace: flux-system}\nspec:\n  " + tc.field + "\n"}))
			wantRendered(t, g, "flux-system", tc.want)
		})
	}
	t.Run("the source's file is not committed", func(t *testing.T) {
		g := graphOf(t, files{"clusters/prod/flux-system/sync.yaml": ks("flux-system", "clusters/prod"), "clusters/prod/app.yaml": ks("app", "./app"), "app/cm.yaml": cm("a", "b: c")})
		wantState(t, g, "app", gitops.StateRendered)
	})
}

func TestRootsOfDocuments(t *testing.T) {
	t.Run("unclaimed documents", func(t *testing.T) {
		g := graphOf(t, files{
			"clusters/prod/apps.yaml": ks("apps", "./apps"), "clusters/prod/infra.yaml": ks("infra", "./infra"),
			"apps/web.yaml": ks("web", "./web"), "web/cm.yaml": cm("w", "a: b"), "infra/cm.yaml": cm("i", "a: b"),
		})
		wantClusters(t, g, "prod document apps+infra")
		wantKeys(t, g, "apps", "infra", "web")
		if n := nodeOf(t, g, "web"); n.Root || n.Parent != key("apps") {
			t.Errorf("web: root %v, parent %s", n.Root, n.Parent)
		}
	})
	t.Run("one of them applies the other", func(t *testing.T) {
		g := graphOf(t, files{"start/root.yaml": ks("root", "./all"), "all/a.yaml": ks("a", "./x"), "all/kustomization.yaml": kfile(resources("a.yaml", "../far/b.yaml")), "far/b.yaml": ks("b", "./x"), "x/cm.yaml": cm("x", "a: b")})
		wantKeys(t, g, "start/a", "start/b", "start/root")
		if n := nodeOf(t, g, "start/b"); n.Root {
			t.Error("b is no root: root renders it")
		}
	})
	t.Run("two that apply each other", func(t *testing.T) {
		g := graphOf(t, files{"one/k.yaml": ks("one", "./two"), "two/k.yaml": ks("two", "./one")})
		var found []string
		for _, k := range g.Keys() {
			found = append(found, k.Name)
		}
		slices.Sort(found)
		if got := strings.Join(slices.Compact(found), " "); got != "one two" {
			t.Errorf("found %v", g.Keys())
		}
	})
	t.Run("three in a ring", func(t *testing.T) {
		g := graphOf(t, files{"one/k.yaml": ks("one", "./two"), "two/k.yaml": ks("two", "./three"), "three/k.yaml": ks("three", "./one")})
		if len(g.Kustomizations) < 3 {
			t.Errorf("found %v", g.Keys())
		}
	})
	t.Run("two roots of one name, folder and file, and what comes after them", func(t *testing.T) {
		twice := ks("flux-system", "./a")
		g := graphOf(t, files{"up/k.yaml": docs(twice, twice, twice), "other/k.yaml": ks("later", "./b"), "a/cm.yaml": cm("a", "b: c"), "b/cm.yaml": cm("b", "c: d")})
		if !slices.ContainsFunc(g.Keys(), func(k gitops.KustomizationKey) bool { return k.Name == "later" }) {
			t.Errorf("found %v", g.Keys())
		}
	})
	t.Run("fragments are none", func(t *testing.T) {
		g := graphOf(t, files{"patch.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: any}\nspec: {interval: 1h}\n", "k.yaml": kfile("resources: []")})
		if len(g.Kustomizations)+len(g.Unreferenced) > 0 {
			t.Errorf("%v, %v", g.Keys(), unreferenced(g))
		}
	})
	t.Run("nothing of Flux", func(t *testing.T) {
		g := graphOf(t, files{"README.md": "x\n"})
		if len(g.Kustomizations) > 0 || len(g.Notes) == 0 || !strings.Contains(strings.Join(g.Notes, " "), "no Flux content") {
			t.Errorf("%v, notes %v", g.Keys(), g.Notes)
		}
		wantClusters(t, g, "")
	})
}
