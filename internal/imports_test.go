// Package internal_test holds the rules of the house that no compiler checks.
package internal_test

import (
	"bytes"
	"errors"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const (
	root   = ".."
	module = "github.com/hecate-mcp/hecate-mcp"
	mcpGo  = "github.com/mark3labs/" + "mcp-go" // in two, so that a search for importers does not find this line
)

// floors are the rooms of the house from the ground up: a room may import what
// lies below it, never a neighbour or what lies above.
var floors = [][]string{
	{"internal/api"},
	{"internal/gate", "internal/fides", "internal/flux", "internal/schema", "internal/cluster"},
	{"internal/confirm", "internal/writelog", "internal/demo", "internal/ops", "internal/gitops"},
	{"internal/tools"},
	{"internal/server"},
	{"cmd"},
}

// speaksMCP are the only rooms that know the protocol's library.
var speaksMCP = []string{"internal/tools", "internal/server", "internal/confirm", "test", "cmd"}

// within reports whether a folder is a room or lies in it.
func within(dir, room string) bool { return dir == room || strings.HasPrefix(dir, room+"/") }

func inAny(dir string, rooms []string) bool {
	for _, r := range rooms {
		if within(dir, r) {
			return true
		}
	}
	return false
}

// floorOf is the room that a folder lies in and its floor, -1 when it has none.
func floorOf(dir string) (string, int) {
	for floor, rooms := range floors {
		for _, room := range rooms {
			if within(dir, room) {
				return room, floor
			}
		}
	}
	return "", -1
}

// breach says which rule an import of a file breaks, "" when none.
func breach(file, imported string) string {
	dir, test := path.Dir(file), strings.HasSuffix(file, "_test.go")
	if within(imported, mcpGo) {
		if !inAny(dir, speaksMCP) {
			return "mcp-go is known in " + strings.Join(speaksMCP, ", ") + " only"
		}
		return ""
	}
	target, ours := strings.CutPrefix(imported, module+"/")
	// Tests may reach for more, and what lies in test is nothing but tests.
	if !ours || test || within(dir, "test") {
		return ""
	}
	if within(target, "test") {
		return "code that ships imports code of tests"
	}
	if within(dir, "examples") {
		if !inAny(target, []string{"internal/fides/fidestest", "internal/api", "examples"}) {
			return "examples know internal/fides/fidestest and internal/api only"
		}
		return ""
	}
	room, floor := floorOf(dir)
	if floor < 0 {
		return "the folder is no room of the house: give it a floor"
	}
	if within(target, "examples") {
		if room != "cmd" {
			return "examples are wired in cmd"
		}
		return ""
	}
	below, targetFloor := floorOf(target)
	switch {
	case targetFloor < 0:
		return "what is imported is no room of the house: give it a floor"
	case below == room || targetFloor < floor:
		return ""
	default:
		return room + " may import what lies below it only"
	}
}

// TestImports holds the imports rule of the design over every Go file of the
// module.
func TestImports(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		if d.IsDir() {
			if file == "." {
				return nil
			}
			if base := d.Name(); strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" {
				return fs.SkipDir
			}
			// A module of its own has its own rules.
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return fs.SkipDir
			} else if !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		files++
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, i := range parsed.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if why := breach(file, imported); why != "" {
				t.Errorf("%s imports %s: %s", file, imported, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("only %d Go files were seen", files)
	}
}

// TestBreach holds the rule itself: a rule that nothing breaks may be no rule.
func TestBreach(t *testing.T) {
	for _, c := range []struct {
		file, imported string
		broken         bool
	}{
		{"cmd/hecate-mcp/root.go", module + "/internal/server", false},
		{"cmd/hecate-mcp/root.go", module + "/examples", false},
		{"cmd/hecate-mcp/root.go", mcpGo + "/server", false},
		{"internal/server/http.go", module + "/internal/tools", false},
		{"internal/tools/audit.go", module + "/internal/ops", false},
		{"internal/tools/audit.go", module + "/internal/api/v1alpha1", false},
		{"internal/ops/audit.go", module + "/internal/gate", false},
		{"internal/fides/fidestest/server.go", module + "/internal/fides", false},
		{"internal/gate/window.go", module + "/internal/api/v1alpha1", false},
		{"internal/gate/window.go", "time", false},
		{"internal/ops/audit_test.go", module + "/internal/fides/fidestest", false},
		{"examples/examples.go", module + "/internal/fides/fidestest", false},
		{"test/clients/fixture/main.go", module + "/internal/server", false},
		{"test/clients/fixture/main.go", mcpGo + "/mcp", false},
		{"internal/tools/audit.go", module + "/internal/server", true},
		{"internal/tools/audit.go", module + "/examples", true},
		{"internal/ops/audit.go", module + "/internal/tools", true},
		{"internal/ops/audit.go", module + "/internal/confirm", true},
		{"internal/ops/audit.go", module + "/internal/gitops", true},
		{"internal/ops/audit.go", mcpGo + "/mcp", true},
		{"internal/ops/audit_test.go", mcpGo + "/mcp", true},
		{"internal/gitops/graph.go", mcpGo, true},
		{"internal/gate/window.go", module + "/internal/cluster", true},
		{"internal/api/v1alpha1/gate.go", module + "/internal/gate", true},
		{"internal/cluster/live.go", module + "/test/cluster", true},
		{"internal/drawer/utils.go", module + "/internal/api/v1alpha1", true},
		{"internal/ops/audit.go", module + "/internal/drawer", true},
		{"internal/ops/audit.go", module + "/internal/gateway", true},
		{"examples/examples.go", module + "/internal/ops", true},
		{"examples/examples.go", module + "/internal/fides", true},
	} {
		if why := breach(c.file, c.imported); (why != "") != c.broken {
			t.Errorf("%s imports %s: %q", c.file, c.imported, why)
		}
	}
}

// machinePath is an absolute path that exists on somebody's machine only.
var machinePath = regexp.MustCompile(`/(work|farm|root|tmp)/[A-Za-z]`)

// TestNoPathOfAMachine holds that no tracked file names such a path: it would
// mean nothing to anybody who clones the repository.
func TestNoPathOfAMachine(t *testing.T) {
	if !machinePath.MatchString("/"+"tmp/x") || machinePath.MatchString("internal/tmp") {
		t.Fatal("the pattern does not match what it should")
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("no git checkout: there is no list of tracked files")
	}
	list, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	if len(files) < 100 {
		t.Errorf("only %d files are tracked", len(files))
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".sum") {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed and not committed yet
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(raw, 0) >= 0 {
			continue // not a text
		}
		n := 0
		for line := range strings.Lines(string(raw)) {
			n++
			if machinePath.MatchString(line) {
				t.Errorf("%s:%d names a path of one machine: %.120s", file, n, strings.TrimSpace(line))
			}
		}
	}
}
