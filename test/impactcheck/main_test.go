package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/hecate-mcp/hecate-mcp/examples"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
)

// demo is the demo's repository on the branch with the change, and one commit
// more that changes no output.
func demo(t *testing.T) (string, *git.Worktree) {
	t.Helper()
	dir := t.TempDir()
	if err := examples.Repository(dir); err != nil {
		t.Fatal(err)
	}
	repo, err := git.PlainOpen(dir)
	if err != nil {
		t.Fatal(err)
	}
	work, err := repo.Worktree()
	if err != nil {
		t.Fatal(err)
	}
	if err := work.Checkout(&git.CheckoutOptions{Branch: plumbing.NewBranchReferenceName(examples.Branch)}); err != nil {
		t.Fatal(err)
	}
	return dir, work
}

func TestDemo(t *testing.T) {
	dir, work := demo(t)
	file := filepath.Join(dir, "apps/storefront/base/service.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append([]byte("# a comment\n"), data...), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := work.Commit("a comment", &git.CommitOptions{All: true, Author: &object.Signature{Name: "test", Email: "test@example.com"}}); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	ok, err := check(t.Context(), &out, dir, 5, true, gitops.Config{})
	if err != nil || !ok {
		t.Fatalf("%v %v\n%s", ok, err, out.String())
	}
	// Two commits: the comment, which affects nothing, and the change of three.
	if !strings.Contains(out.String(), "recall 1.000, precision 1.000, outputs that differ from fluxcd/pkg's: 0 of 15\n") {
		t.Errorf("printed:\n%s", out.String())
	}
	var totals []string
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) > 4 && f[0] == "total" {
			totals = f[1:5]
		}
	}
	if strings.Join(totals, " ") != "5 3 3 3" {
		t.Errorf("totals %v, want 5 Kustomizations and 3 affected, found, right\n%s", totals, out.String())
	}
}

func TestNoRepository(t *testing.T) {
	if _, err := check(t.Context(), &strings.Builder{}, t.TempDir(), 5, false, gitops.Config{}); err == nil {
		t.Error("an empty folder was checked")
	}
}
