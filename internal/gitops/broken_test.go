package gitops

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bootstrapFiles are what every case lies in: a cluster with a root and one
// Kustomization, app, that builds the folder of the case's file.
var bootstrapFiles = map[string]string{
	"clusters/test/flux-system/gotk-sync.yaml": `apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {interval: 1m, ref: {branch: main}, url: "https://example.com/acme/fleet"}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: flux-system, namespace: flux-system}
spec:
  interval: 10m
  path: ./clusters/test
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`,
	"clusters/test/app.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: app, namespace: flux-system}
spec:
  interval: 10m
  path: ./app
  prune: true
  sourceRef: {kind: GitRepository, name: flux-system}
`,
}

// A manifestCase is a file of a table, or a folder that lies over the repository.
// The file says in its comments what is expected, one finding a line:
//
//	# want: severity code pointer line
//
// with "-" where a finding has no pointer and line 0 where it has no place. A folder says it in want.txt,
// without the prefix and with a file before the line.
type manifestCase struct {
	name  string
	files map[string]string
	want  []string
}

var wantComment = regexp.MustCompile(`(?m)^# want: (\S+ \S+ \S+) (\d+)$`)

// readCases reads a table of manifests.
func readCases(t *testing.T, dir string) []manifestCase {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []manifestCase
	for _, e := range entries {
		c := manifestCase{name: strings.TrimSuffix(e.Name(), ".yaml"), files: map[string]string{}}
		if e.IsDir() {
			c.readFolder(t, filepath.Join(dir, e.Name()))
		} else {
			text := readFile(t, filepath.Join(dir, e.Name()))
			file := "app/" + e.Name()
			c.files[file] = text
			for _, m := range wantComment.FindAllStringSubmatch(text, -1) {
				at := file
				if m[2] == "0" {
					at = "-"
				}
				c.want = append(c.want, m[1]+" "+at+" "+m[2])
			}
			if n := strings.Count(text, "# want:"); n != len(c.want) {
				t.Fatalf("%s: %d of %d expectations can be read", e.Name(), len(c.want), n)
			}
		}
		slices.Sort(c.want)
		out = append(out, c)
	}
	return out
}

func (c *manifestCase) readFolder(t *testing.T, dir string) {
	t.Helper()
	for _, file := range filesBelow(t, dir) {
		text := readFile(t, filepath.Join(dir, file))
		if file != "want.txt" {
			c.files[filepath.ToSlash(file)] = text
			continue
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				c.want = append(c.want, line)
			}
		}
	}
}

func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		out = append(out, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// repository writes the case as plain files.
func (c *manifestCase) repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, files := range []map[string]string{bootstrapFiles, c.files} {
		for name, text := range files {
			p := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// findings are all that the engine says, as the tables write it.
func (c *manifestCase) findings(t *testing.T, e *Engine) (lines []string, found []Finding) {
	t.Helper()
	v, err := e.ValidateManifests(t.Context(), Repo{Path: c.repository(t)}, ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range v.Findings {
		lines = append(lines, fmt.Sprintf("%s %s %s %s %d", f.Severity, f.Code, cmp.Or(f.Field, "-"), cmp.Or(f.File, "-"), f.Line))
	}
	slices.Sort(lines)
	return lines, v.Findings
}

func tableEngine(t *testing.T) *Engine {
	t.Helper()
	e, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// check compares all findings: one more is as wrong as one less.
func (c *manifestCase) check(t *testing.T, e *Engine) {
	t.Helper()
	got, found := c.findings(t, e)
	if slices.Equal(got, c.want) {
		return
	}
	t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
	for _, f := range found {
		t.Logf("%s %s: %s", f.Code, f.Field, f.Message)
	}
}

func TestBrokenManifests(t *testing.T) {
	e := tableEngine(t)
	cases := readCases(t, "testdata/broken")
	seen := map[Code]bool{}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if len(c.want) == 0 {
				t.Fatal("nothing is expected of it")
			}
			c.check(t, e)
		})
		for _, w := range c.want {
			seen[Code(strings.Fields(w)[1])] = true
		}
	}
	// Those of a change and of a live cluster have no broken manifest.
	for _, m := range FindingCodes {
		if !seen[m.Code] && m.Code != ConfigChanged && m.Code != ServerRefused {
			t.Errorf("no case expects %s", m.Code)
		}
	}
}

// TestSoundManifests: what an API server takes may be warned about, never failed.
func TestSoundManifests(t *testing.T) {
	e := tableEngine(t)
	for _, c := range readCases(t, "testdata/sound") {
		t.Run(c.name, func(t *testing.T) {
			c.check(t, e)
			for _, w := range c.want {
				if strings.HasPrefix(w, string(SeverityFail)) {
					t.Error("the table expects a failure of a sound manifest")
				}
			}
		})
	}
}
