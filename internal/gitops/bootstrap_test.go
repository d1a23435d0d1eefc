package gitops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

const fluxCRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: kustomizations.kustomize.toolkit.fluxcd.io}\nspec: {group: kustomize.toolkit.fluxcd.io, names: {kind: Kustomization, plural: kustomizations}, scope: Namespaced, versions: []}\n"

func TestDetectBootstrapRequired(t *testing.T) {
	const controllers, src, applied = "controllers", "source GitRepository", "nothing in the repository applies"
	for _, tc := range []struct {
		name   string
		files  files
		config gitops.Config
		want   []string
	}{
		{"what flux bootstrap commits", prod(files{"clusters/prod/flux-system/gotk-components.yaml": fluxCRD}), gitops.Config{}, nil},
		{"without the components", prod(), gitops.Config{}, []string{controllers}},
		{"without the source", files{"clusters/prod/flux-system/sync.yaml": docs(ks("flux-system", "clusters/prod"), fluxCRD)}, gitops.Config{}, []string{src}},
		{"a FluxInstance", files{"i.yaml": fmt.Sprintf(instance, "GitRepository", repoURL, "clusters/prod", "")}, gitops.Config{}, nil},
		{"a root by configuration", files{"clusters/prod/cm.yaml": cm("a", "b: c")}, gitops.Config{Roots: []gitops.RootConfig{{Cluster: "prod", Path: "clusters/prod"}}}, []string{applied, controllers, src}},
		{"a document", files{"k/k.yaml": ks("k", "./app"), "app/cm.yaml": cm("a", "b: c")}, gitops.Config{}, []string{applied, controllers, src}},
		{"nothing of Flux", files{"README.md": "x\n"}, gitops.Config{}, nil},
		{"one of two clusters", prod(files{"clusters/prod/flux-system/gotk-components.yaml": fluxCRD}, bootstrapped("clusters/stage")), gitops.Config{}, []string{controllers}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := gitops.DetectBootstrapRequired(graphOf(t, tc.files, tc.config))
			if got.Required != (len(tc.want) > 0) || len(got.Missing) != len(tc.want) {
				t.Fatalf("%+v, want %q", got, tc.want)
			}
			for _, w := range tc.want {
				if !strings.Contains(strings.Join(got.Missing, "\n"), w) {
					t.Errorf("%q lacks %q", got.Missing, w)
				}
			}
			if tc.name == "one of two clusters" && !strings.Contains(got.Missing[0], "stage") {
				t.Errorf("%q", got.Missing)
			}
		})
	}
	t.Run("a graph that somebody made", func(t *testing.T) {
		g := madeGraph("flux-system")
		g.Clusters = []gitops.ClusterInfo{{Name: "prod", From: "bootstrap"}}
		if !gitops.DetectBootstrapRequired(g).Required {
			t.Error("nothing is missing")
		}
	})
}
