package gitops_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops/render"
)

// TestPlanReconcile plans the demo's change: the sound ones in waves, the one that
// fails declined.
func TestPlanReconcile(t *testing.T) {
	dir := t.TempDir()
	if err := examples.Repository(dir); err != nil {
		t.Fatal(err)
	}
	engine, err := gitops.New(gitops.Options{Builder: render.NewLocal()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	repo := gitops.Repo{Path: dir, Ref: examples.Branch}
	plan, commit, err := engine.PlanReconcile(t.Context(), repo, "", "shop", gitops.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(commit) != 40 {
		t.Errorf("commit %q", commit)
	}
	if one, _, err := engine.PlanReconcile(t.Context(), repo, "", "", gitops.ValidateOptions{}); err != nil || len(one.Waves) != len(plan.Waves) {
		t.Errorf("without the name of the only cluster: %v %v", one, err)
	}
	var got []string
	for i, wave := range plan.Waves {
		for _, item := range wave {
			got = append(got, fmt.Sprintf("%d %s from %s", i, item.Key, item.Source))
		}
	}
	for _, d := range plan.Declined {
		got = append(got, fmt.Sprintf("declined %s %s", d.Key, d.Code))
	}
	want := []string{"0 shop/storefront-dev from GitRepository shop/deploy", "0 shop/storefront-staging from GitRepository shop/deploy", "declined shop/storefront-production ValidationFailed"}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if _, _, err := engine.PlanReconcile(t.Context(), repo, "", "other", gitops.ValidateOptions{}); err == nil || !strings.Contains(err.Error(), "no such cluster") {
		t.Errorf("another cluster: %v", err)
	}
}

// TestPlanReconcileReadsTheBasesConfig: what is planned is what was judged, by the
// configuration of the base.
func TestPlanReconcileReadsTheBasesConfig(t *testing.T) {
	root := func(path string) string { return "roots: [{cluster: prod, path: " + path + "}]\n" }
	dir := repository(t, files{gitops.ConfigFile: root("one"), "one/cm.yaml": cm("one", "a: b"), "two/cm.yaml": cm("two", "a: b")})
	put(t, dir, files{gitops.ConfigFile: root("two"), "one/cm.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one, namespace: default}\ndatum: {}\n"})
	commit(t, dir, "change")
	plan, _, err := newEngine(t, gitops.Options{}).PlanReconcile(t.Context(), gitops.Repo{Path: dir, Ref: "change"}, "main", "prod", gitops.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Waves) > 0 || len(plan.Declined) != 1 || plan.Declined[0].Code != "ValidationFailed" {
		t.Errorf("waves %v, declined %v", plan.Waves, plan.Declined)
	}
}
