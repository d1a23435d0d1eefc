package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamespaces holds where the command line looks: a dump of several
// namespaces is looked at whole, a mistyped namespace is not peace.
func TestNamespaces(t *testing.T) {
	dump := filepath.Join("..", "..", "examples", "estate")
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"a dump of two namespaces", []string{"call", "explain_gate", "--snapshot", dump}, 0, "5 of 6 Gates are not at rest"},
		{"one of them", []string{"call", "explain_gate", "--snapshot", dump, "-n", "shop"}, 0, "3 of 3 Gates are not at rest"},
		{"all by a star", []string{"call", "list_gates", "--demo", "-n", "*"}, 0, "5 of 6 Gates"},
		{"a mistyped one", []string{"call", "explain_gate", "--demo", "-n", "sho"}, 0, "no Gate in namespace sho"},
		{"no name at all", []string{"call", "list_gates", "--demo", "-n", "Bad Name"}, 1, "not a namespace"},
		{"a version for a name", []string{"call", "list_bundles", "--demo", "--arg", "bundle=1.8.1"}, 0, "storefront-ad9f857c874a"},
		{"a part of a Gate's name as filter", []string{"call", "list_passages", "--demo", "--arg", "gate=prod"}, 0, "production-qwddd"},
		{"the exact name where it exists", []string{"call", "list_passages", "--demo", "--arg", "gate=dev"}, 0, "dev-qd2r7"},
		{"a filter that fits nothing", []string{"call", "list_passages", "--demo", "--arg", "gate=nope"}, 0, "no Passage of gate nope"},
		{"a date without a time", []string{"call", "get_audit_trail", "--demo", "--arg", "since=2026-11-30"}, 1, "such as 2026-11-30T14:00:00Z"},
		{"a namespace in the name", []string{"call", "explain_gate", "--demo", "--arg", "gate=shop/production"}, 1, "the namespace is an argument of its own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			if code := run(context.Background(), c.args, strings.NewReader(""), &out, &errOut); code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("says %q %q, not %q", out.String(), errOut.String(), c.says)
			}
		})
	}
}

// TestSnapshotWithoutATime holds that nothing is called stale for its age where
// nobody knows when the dump was made.
func TestSnapshotWithoutATime(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "examples", "estate"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "meta.json")); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	if code := run(context.Background(), []string{"call", "explain_gate", "--snapshot", dir, "--arg", "gate=production", "-o", "json"}, strings.NewReader(""), &out, &errOut); code != 0 {
		t.Fatalf("exit %d: %s", code, out.String())
	}
	if strings.Contains(out.String(), "ControllerStale") || !strings.Contains(out.String(), `"kind":"PassageFailed"`) || !strings.Contains(out.String(), "wall clock") {
		t.Errorf("%s", out.String())
	}
}
