package gate

import (
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

func TestDigestSteps(t *testing.T) {
	steps := func(s ...v1alpha1.Step) []v1alpha1.Step { return s }
	base := v1alpha1.Step{Uses: "http", With: with(`{"a":1,"b":[1,2]}`)}
	change := func(f func(*v1alpha1.Step)) []v1alpha1.Step {
		s := *base.DeepCopy()
		f(&s)
		return steps(s)
	}
	want := DigestSteps(steps(base), nil)
	if len(want) != 64 || strings.Trim(want, "0123456789abcdef") != "" {
		t.Fatalf("digest %q is not 64 hex digits", want)
	}
	for name, same := range map[string][]v1alpha1.Step{
		"key order":   change(func(s *v1alpha1.Step) { s.With = with(`{"b":[1,2],"a":1}`) }),
		"white space": change(func(s *v1alpha1.Step) { s.With = with(" {\n\"a\": 1, \"b\": [1, 2]}\n") }),
	} {
		if DigestSteps(same, []v1alpha1.Var{}) != want {
			t.Errorf("%s: the digest changed", name)
		}
	}
	seen := map[string]string{want: "base"}
	for name, d := range map[string]string{
		"none":            DigestSteps(nil, nil),
		"twice":           DigestSteps(steps(base, base), nil),
		"value":           DigestSteps(change(func(s *v1alpha1.Step) { s.With = with(`{"a":2,"b":[1,2]}`) }), nil),
		"large number":    DigestSteps(change(func(s *v1alpha1.Step) { s.With = with(`{"a":9007199254740993}`) }), nil),
		"its neighbour":   DigestSteps(change(func(s *v1alpha1.Step) { s.With = with(`{"a":9007199254740992}`) }), nil),
		"list order":      DigestSteps(change(func(s *v1alpha1.Step) { s.With = with(`{"a":1,"b":[2,1]}`) }), nil),
		"no with":         DigestSteps(change(func(s *v1alpha1.Step) { s.With = nil }), nil),
		"not JSON":        DigestSteps(change(func(s *v1alpha1.Step) { s.With = with(`{"a":1`) }), nil),
		"other not JSON":  DigestSteps(change(func(s *v1alpha1.Step) { s.With = with(`{"a":2`) }), nil),
		"trailing":        DigestSteps(change(func(s *v1alpha1.Step) { s.With = with(`{"a":1,"b":[1,2]} {}`) }), nil),
		"uses":            DigestSteps(change(func(s *v1alpha1.Step) { s.Uses = "git-push" }), nil),
		"as":              DigestSteps(change(func(s *v1alpha1.Step) { s.As = "x" }), nil),
		"if":              DigestSteps(change(func(s *v1alpha1.Step) { s.If = "x" }), nil),
		"timeout":         DigestSteps(change(func(s *v1alpha1.Step) { s.Timeout = &metav1.Duration{Duration: time.Minute} }), nil),
		"continueOnError": DigestSteps(change(func(s *v1alpha1.Step) { s.ContinueOnError = true }), nil),
		"vars":            DigestSteps(steps(base), []v1alpha1.Var{{Name: "a", Value: "b"}}),
		"vars' value":     DigestSteps(steps(base), []v1alpha1.Var{{Name: "a", Value: "c"}}),
		"two vars":        DigestSteps(steps(base), []v1alpha1.Var{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}}),
		"vars' order":     DigestSteps(steps(base), []v1alpha1.Var{{Name: "c", Value: "d"}, {Name: "a", Value: "b"}}),
	} {
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have one digest", name, other)
		}
		seen[d] = name
	}
	if n := reflect.TypeFor[v1alpha1.Step]().NumField(); n != 6 {
		t.Errorf("Step has %d fields, DigestSteps pins 6", n)
	}
}

func TestBundleDigest(t *testing.T) {
	image := v1alpha1.Artifact{Image: &v1alpha1.ImageArtifact{Repo: "registry.example.com/acme/web", Tag: "1.0.0",
		Digest: "sha256:442791acc4f1f969771707d65bfc0a55268660d11a49ef6923bf2a78eafb5563"}}
	chart := v1alpha1.Artifact{Chart: &v1alpha1.ChartArtifact{Repo: "r", Name: "n", Version: "1"}}
	commit := v1alpha1.Artifact{Commit: &v1alpha1.CommitArtifact{Repo: "r", SHA: "s"}}

	// As a controller of release 0.8.1 wrote it.
	if got, want := BundleDigest([]v1alpha1.Artifact{image}), "a853882110a3f4ed0241152bd8eaa5b5560262584fcef489ab0e17918364fffb"; got != want {
		t.Errorf("BundleDigest = %s, want %s", got, want)
	}
	all := BundleDigest([]v1alpha1.Artifact{image, chart, commit})
	lines := "chart\x00r\x00n\x001\ncommit\x00r\x00s\nimage\x00" + image.Image.Repo + "\x00" + image.Image.Digest
	if all != sum([]byte(lines)) {
		t.Error("the digest of three artifacts is not that of their sorted lines")
	}
	if BundleDigest([]v1alpha1.Artifact{commit, {}, chart, image}) != all {
		t.Error("the order of artifacts counts, or an empty one does")
	}

	retagged := image.DeepCopy()
	retagged.Image.Tag = "2.0.0"
	if BundleDigest([]v1alpha1.Artifact{*retagged}) != BundleDigest([]v1alpha1.Artifact{image}) {
		t.Error("the tag of an image with a digest counts")
	}
	retagged.Image.Digest = ""
	if BundleDigest([]v1alpha1.Artifact{*retagged}) != sum([]byte("image\x00"+image.Image.Repo+"\x002.0.0")) {
		t.Error("the tag of an image without a digest does not count")
	}
	described := commit.DeepCopy()
	described.Commit.Branch, described.Commit.Tag, described.Commit.Message = "main", "v1", "m"
	if BundleDigest([]v1alpha1.Artifact{*described}) != BundleDigest([]v1alpha1.Artifact{commit}) {
		t.Error("branch, tag or message of a commit count")
	}
}
