package gitops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

func oci(name, url string) string {
	return fmt.Sprintf("apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: %s, namespace: flux-system}\nspec: {interval: 1m, url: %q, ref: {tag: latest}}\n", name, url)
}

func TestSourceOCIRepository(t *testing.T) {
	f := prod(files{
		"clusters/prod/tenants.yaml": docs(oci("apps", "oci://registry.example.com/acme/apps"), ksOf("flux-system", "web", "./web", "OCIRepository", "apps"), ksOf("flux-system", "shop", "shop", "OCIRepository", "apps")),
		"deploy/web/cm.yaml":         cm("w", "a: b"), "deploy/shop/kustomization.yaml": kfile(resources("../base")), "deploy/base/kustomization.yaml": kfile(resources("cm.yaml")), "deploy/base/cm.yaml": cm("s", "a: b"),
		"web/other.txt": "a folder of that name, with nothing in it\n",
	})
	t.Run("without a word of the user it is another artifact", func(t *testing.T) {
		g := graphOf(t, f)
		wantState(t, g, "web", gitops.StateExternal, "registry.example.com/acme/apps")
		wantUnmapped(t, impactOf(t, f, files{"deploy/web/cm.yaml": cm("w", "a: c")}), "deploy/web/cm.yaml", gitops.UnmappedUnreferenced)
	})
	for name, config := range map[string]string{
		"sources": "sources: {OCIRepository/apps: deploy}\n", "sources with a namespace": "sources: {OCIRepository/flux-system/apps: ./deploy/}\n",
	} {
		t.Run(name, func(t *testing.T) {
			mine := f.with(files{gitops.ConfigFile: config})
			g := graphOf(t, mine)
			wantRendered(t, g, "web", `"name":"w"`)
			wantRendered(t, g, "shop", `"name":"s"`)
			if n := nodeOf(t, g, "shop"); n.Path != "shop" || n.RepoPath != "deploy/shop" || n.SourceRef.String() != "OCIRepository/flux-system/apps" {
				t.Errorf("%+v", n)
			}
			r := impactOf(t, mine, files{"deploy/base/cm.yaml": cm("s", "a: c")})
			wantAffected(t, r, "shop changed")
			wantReason(t, affectedOf(t, r, "shop"), "deploy/base/cm.yaml", "deploy/base/kustomization.yaml", "deploy/shop/kustomization.yaml")
		})
	}
	// The root itself comes from an artifact, as with a FluxInstance.
	root := files{
		"instance.yaml":          fmt.Sprintf(instance, "OCIRepository", "oci://registry.example.com/acme/fleet", "clusters/prod", ""),
		"a/clusters/prod/k.yaml": ksOf("flux-system", "web", "./web", "OCIRepository", "flux-system"),
		"a/web/cm.yaml":          cm("right", "a: b"), "b/web/cm.yaml": cm("wrong", "a: b"),
	}
	t.Run("its root is where most paths are", func(t *testing.T) {
		wantRendered(t, graphOf(t, root), "web", `"name":"right"`)
	})
	for name, key := range map[string]string{"artifactRoots": "flux-system", "artifactRoots with a namespace": "flux-system/flux-system"} {
		t.Run(name, func(t *testing.T) {
			g := graphOf(t, root.with(files{"b/clusters/prod/k.yaml": root["a/clusters/prod/k.yaml"], gitops.ConfigFile: "artifactRoots: {" + key + ": b}\n"}))
			wantRendered(t, g, "web", `"name":"wrong"`)
			if n := nodeOf(t, g, "web"); n.RepoPath != "b/web" {
				t.Errorf("%+v", n)
			}
		})
	}
	t.Run("an artifact root that is not there", func(t *testing.T) {
		g := graphOf(t, root.with(files{gitops.ConfigFile: "artifactRoots: {flux-system: gone}\n"}))
		if n := nodeOf(t, g, "flux-system"); n.State == gitops.StateRendered || !strings.Contains(n.Reason, "gone") {
			t.Errorf("%+v", n)
		}
	})
}

func TestSourceGitRepositories(t *testing.T) {
	at := func(url string) files {
		return prod(files{"clusters/prod/second.yaml": docs(gitRepo("apps", "second", url), ksOf("apps", "second", "./deploy", "GitRepository", "second")), "deploy/cm.yaml": cm("d", "a: b")})
	}
	for _, url := range []string{repoURL, repoURL + ".git", repoURL + "/", "ssh://git@git.example.com/acme/fleet", "ssh://git@git.example.com:22/acme/fleet.git", "https://user:secret@GIT.example.com/acme/fleet", "http://git.example.com/acme/fleet"} {
		t.Run("this one, written "+url, func(t *testing.T) {
			wantState(t, graphOf(t, at(url)), "prod/apps/second", gitops.StateRendered)
		})
	}
	for _, url := range []string{"https://git.example.com/acme/fleet2", "https://git.example.org/acme/fleet", "https://git.example.com/other/fleet", "https://u:hunter2@git.example.com/acme/x?token=hunter3"} {
		t.Run("another, "+url, func(t *testing.T) {
			g := graphOf(t, at(url))
			wantState(t, g, "prod/apps/second", gitops.StateExternal)
			if all := fmt.Sprint(g.Findings, nodeOf(t, g, "prod/apps/second").Reason); strings.Contains(all, "hunter") {
				t.Errorf("a credential in %s", all)
			}
		})
	}
	t.Run("by a remote, in the way of scp", func(t *testing.T) {
		dir := repository(t, files{"k/k.yaml": docs(gitRepo("flux-system", "me", "https://git.example.com/acme/fleet"), gitRepo("flux-system", "you", "https://git.example.com/acme/other"),
			ksOf("flux-system", "mine", "./deploy", "GitRepository", "me"), ksOf("flux-system", "yours", "./deploy", "GitRepository", "you")), "deploy/cm.yaml": cm("d", "a: b")})
		git(t, dir, "remote", "add", "origin", "git@git.example.com:acme/fleet.git")
		g := discover(t, dir)
		wantState(t, g, "k/mine", gitops.StateRendered)
		wantState(t, g, "k/yours", gitops.StateExternal)
	})
	t.Run("said to be this one, or elsewhere", func(t *testing.T) {
		f := at("https://git.example.com/acme/mirror")
		wantState(t, graphOf(t, f.with(files{gitops.ConfigFile: "sources: {GitRepository/second: .}\n"})), "prod/apps/second", gitops.StateRendered)
		wantState(t, graphOf(t, at(repoURL).with(files{gitops.ConfigFile: "sources: {GitRepository/apps/second: external}\n"})), "prod/apps/second", gitops.StateExternal, gitops.ConfigFile)
		wantState(t, graphOf(t, f.with(files{gitops.ConfigFile: "sources: {GitRepository/second: ../../etc}\n"})), "prod/apps/second", gitops.StateExternal)
	})
	t.Run("declared nowhere", func(t *testing.T) {
		g := graphOf(t, prod(files{"clusters/prod/k.yaml": ksOf("flux-system", "k", "./deploy", "GitRepository", "ghost"), "deploy/cm.yaml": cm("d", "a: b")}))
		wantState(t, g, "k", gitops.StateExternal, "ghost")
		x := wantFinding(t, g.Findings, gitops.SourceNotFound, "ghost")
		if x.Severity != gitops.SeverityWarn || x.File != "clusters/prod/k.yaml" {
			t.Errorf("%+v", x)
		}
	})
	t.Run("of another namespace", func(t *testing.T) {
		g := graphOf(t, prod(files{"clusters/prod/k.yaml": strings.Replace(ksOf("team", "k", "./deploy", "GitRepository", "flux-system"), "name: flux-system}", "name: flux-system, namespace: flux-system}", 1), "deploy/cm.yaml": cm("d", "a: b")}))
		wantState(t, g, "prod/team/k", gitops.StateRendered)
	})
	t.Run("a Bucket", func(t *testing.T) {
		g := graphOf(t, prod(files{"clusters/prod/k.yaml": docs("apiVersion: source.toolkit.fluxcd.io/v1\nkind: Bucket\nmetadata: {name: b, namespace: flux-system}\nspec: {interval: 1m, bucketName: x, endpoint: s3.example.com}\n", ksOf("flux-system", "k", "./deploy", "Bucket", "b")), "deploy/cm.yaml": cm("d", "a: b")}))
		wantState(t, g, "k", gitops.StateExternal)
	})
}

func generator(name, sources string, artifacts ...string) string {
	return "apiVersion: source.extensions.fluxcd.io/v1beta1\nkind: ArtifactGenerator\nmetadata: {name: " + name + ", namespace: flux-system}\nspec:\n  sources: [" + sources + "]\n  artifacts:\n" + strings.Join(artifacts, "")
}

func artifact(name string, copies ...string) string {
	return "  - name: " + name + "\n    copy: [" + strings.Join(copies, ", ") + "]\n"
}

func TestSourceExternalArtifact(t *testing.T) {
	const self = "{alias: repo, kind: GitRepository, name: flux-system}"
	app := func(name, path, src string) string {
		return ksOf("flux-system", name, path, "ExternalArtifact", src)
	}
	f := prod(files{"apps/web/cm.yaml": cm("w", "a: b"), "apps/shop/cm.yaml": cm("s", "a: b"), "apps/shop/notes.txt": "x\n", "envs/prod.yaml": cm("env", "a: b"), "clusters/other.txt": "x\n"})
	with := func(gen, ks string) files { return f.with(files{"clusters/prod/gen.yaml": docs(gen, ks)}) }

	t.Run("dir/** leaves the folder's name away", func(t *testing.T) {
		m := with(generator("g", self, artifact("web", "{from: '@repo/apps/web/**', to: '@artifact/'}")), app("web", "./", "web"))
		g := graphOf(t, m)
		wantRendered(t, g, "web", `"name":"w"`)
		r := impactOf(t, m, files{"apps/web/cm.yaml": cm("w", "a: c")})
		wantAffected(t, r, "web changed")
		wantReason(t, affectedOf(t, r, "web"), "apps/web/cm.yaml", "Kustomization prod/flux-system/web")
		r = impactOf(t, m, files{"apps/web/new.yaml": cm("new", "a: c")})
		wantReason(t, affectedOf(t, r, "web"), "apps/web/new.yaml")
		wantUnmapped(t, impactOf(t, m, files{"apps/shop/cm.yaml": cm("s", "a: c")}), "apps/shop/cm.yaml", gitops.UnmappedUnreferenced)
	})
	t.Run("dir/ keeps it", func(t *testing.T) {
		g := graphOf(t, with(generator("g", self, artifact("web", "{from: '@repo/apps/web/', to: '@artifact/'}")), app("web", "./web", "web")))
		wantRendered(t, g, "web", `"name":"w"`)
		if n := nodeOf(t, g, "web"); n.RepoPath != "apps/web" {
			t.Errorf("%+v", n)
		}
	})
	t.Run("several artifacts, copies in order, exclude", func(t *testing.T) {
		g := graphOf(t, with(generator("g", self,
			artifact("one", "{from: '@repo/apps/**', to: '@artifact/all/', exclude: ['*.txt', 'web/**']}"),
			artifact("two", "{from: '@repo/apps/web/**', to: '@artifact/x/'}", "{from: '@repo/envs/prod.yaml', to: '@artifact/x/cm.yaml'}")),
			docs(app("one", "all", "one"), app("two", "x", "two"))))
		wantRendered(t, g, "one", `"name":"s"`)
		if strings.Contains(rendered(t, g, "one"), `"name":"w"`) {
			t.Error("what is excluded is copied")
		}
		wantRendered(t, g, "two", `"name":"env"`)
		if strings.Contains(rendered(t, g, "two"), `"name":"w"`) {
			t.Error("the later copy does not lie over the earlier")
		}
	})
	t.Run("each cluster has its own generator of one name", func(t *testing.T) {
		for _, where := range []string{"clusters/%s/gen.yaml", "clusters/%s/sub/gen.yaml"} {
			m := f.with(bootstrapped("clusters/stage"))
			for cluster, dir := range map[string]string{"prod": "web", "stage": "shop"} {
				m[fmt.Sprintf(where, cluster)] = docs(generator("g", self, artifact("app", "{from: '@repo/apps/"+dir+"/**', to: '@artifact/'}")), app("app", "./", "app"))
			}
			g := graphOf(t, m)
			wantRendered(t, g, "app", `"name":"w"`)
			wantRendered(t, g, "stage/app", `"name":"s"`)
			r := impactOf(t, m, files{"apps/shop/cm.yaml": cm("s", "a: c")})
			wantAffected(t, r, "stage/app changed")
		}
	})
	t.Run("the generator changes", func(t *testing.T) {
		of := func(dir string) string {
			return docs(generator("g", self, artifact("app", "{from: '@repo/apps/"+dir+"/**', to: '@artifact/'}")), app("app", "./", "app"))
		}
		r := impactOf(t, f.with(files{"clusters/prod/gen.yaml": of("web")}), files{"clusters/prod/gen.yaml": of("shop")})
		wantAffected(t, r, "app changed", "flux-system changed")
		wantReason(t, affectedOf(t, r, "app"), "clusters/prod/gen.yaml")
	})
	for _, tc := range []struct{ name, gen, reason string }{
		{"nobody makes it", generator("g", self, artifact("other", "{from: '@repo/apps/web/**', to: '@artifact/'}")), "no ArtifactGenerator"},
		{"an alias that is not declared", generator("g", self, artifact("app", "{from: '@nobody/apps/web/**', to: '@artifact/'}")), "@nobody"},
		{"nothing to copy", generator("g", self, artifact("app", "{from: '@repo/gone/**', to: '@artifact/'}")), "gone"},
		{"from another repository", docs(gitRepo("flux-system", "ext", "https://git.example.com/acme/ext"), generator("g", "{alias: repo, kind: GitRepository, name: ext}", artifact("app", "{from: '@repo/apps/web/**', to: '@artifact/'}"))), "acme/ext"},
		{"made of itself", generator("g", "{alias: repo, kind: ExternalArtifact, name: app}", artifact("app", "{from: '@repo/apps/**', to: '@artifact/'}")), "itself"},
		{"two made of each other", docs(generator("g", "{alias: repo, kind: ExternalArtifact, name: b}", artifact("app", "{from: '@repo/a/**', to: '@artifact/'}")), generator("h", "{alias: repo, kind: ExternalArtifact, name: app}", artifact("b", "{from: '@repo/a/**', to: '@artifact/'}"))), "itself"},
		{"a destination outside", generator("g", self, artifact("app", "{from: '@repo/apps/web/**', to: '@artifact/../../x'}")), "leaves the artifact"},
		{"a source outside", generator("g", self, artifact("app", "{from: '@repo/../../etc/**', to: '@artifact/'}")), "leaves its artifact"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wantState(t, graphOf(t, with(tc.gen, app("app", "./", "app"))), "app", gitops.StateExternal, tc.reason)
		})
	}
	t.Run("an artifact of an artifact", func(t *testing.T) {
		g := graphOf(t, with(docs(generator("g", self, artifact("first", "{from: '@repo/apps/**', to: '@artifact/'}")), generator("h", "{alias: a, kind: ExternalArtifact, name: first}", artifact("second", "{from: '@a/web/**', to: '@artifact/deep/'}"))), app("app", "deep", "second")))
		wantRendered(t, g, "app", `"name":"w"`)
		if n := nodeOf(t, g, "app"); n.RepoPath != "apps/web" {
			t.Errorf("%+v", n)
		}
	})
}

// TestSourceOtherBranch: this repository's URL at another branch is not this tree.
func TestSourceOtherBranch(t *testing.T) {
	at := func(branch string) string {
		return strings.Replace(gitRepo("flux-system", "tenant", repoURL), "branch: main", "branch: "+branch, 1)
	}
	base := prod(files{"web/cm.yaml": cm("w", "a: b")})
	main := strings.Contains(base["clusters/prod/flux-system/gotk-sync.yaml"], "branch: main")
	for name, c := range map[string]struct {
		source string
		state  gitops.State
	}{"the branch of the root": {at("main"), gitops.StateRendered}, "another branch": {at("tenant"), gitops.StateExternal}} {
		t.Run(name, func(t *testing.T) {
			g := graphOf(t, base.with(files{"clusters/prod/tenant.yaml": docs(c.source, ksOf("flux-system", "web", "./web", "GitRepository", "tenant"))}))
			if !main {
				t.Fatal("the root's source says no branch: the case shows nothing")
			}
			if c.state == gitops.StateExternal {
				wantState(t, g, "web", c.state, "the branch tenant of this repository")
				return
			}
			wantState(t, g, "web", c.state)
		})
	}
}
