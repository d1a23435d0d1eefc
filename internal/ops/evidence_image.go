package ops

import (
	"regexp"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// image is one image of a Bundle.
type image struct {
	repo, tag, digest string
	hex               string // the digest as the evidence server keys it, "" when there is none
}

var sha256Digest = regexp.MustCompile(`^sha256:([0-9a-f]{64})$`)

// images are a Bundle's images in spec order, each digest once.
func images(b *v1alpha1.Bundle) []image {
	var out []image
	seen := map[string]bool{}
	for _, a := range b.Spec.Artifacts {
		if a.Image == nil {
			continue
		}
		img := image{repo: a.Image.Repo, tag: a.Image.Tag, digest: a.Image.Digest}
		if m := sha256Digest.FindStringSubmatch(img.digest); m != nil {
			img.hex = m[1]
		}
		if img.hex != "" && seen[img.hex] {
			continue
		}
		seen[img.hex] = true
		out = append(out, img)
	}
	return out
}

// evidence starts the answer about an image that is not on a trail.
func (i image) evidence(status ArtifactStatus, detail string) ArtifactEvidence {
	out := ArtifactEvidence{Repo: clean(i.repo, 200), Tag: clean(i.tag, 128), Digest: clean(i.digest, 80), Status: status, Detail: detail, Conclusion: ConcludeUnknown}
	switch status {
	case ArtifactNoDigest, ArtifactNoTrail, ArtifactNotRegistered:
		out.Conclusion = ConcludeNoEvidence
	}
	if status == ArtifactNoDigest {
		out.Detail = "the Bundle pins no digest of this image, and a tag can be moved"
		if i.digest != "" {
			out.Detail = "the evidence server knows SHA-256 digests only"
		}
	}
	return out
}

// statusWithout is the image's status where no server was asked.
func statusWithout(i image, status ArtifactStatus) ArtifactStatus {
	if i.hex == "" {
		return ArtifactNoDigest
	}
	return status
}

// image names the artifact as people write it.
func (a ArtifactEvidence) image() string {
	switch {
	case a.Digest != "" && a.Tag != "":
		return a.Repo + ":" + a.Tag + "@" + a.Digest
	case a.Digest != "":
		return a.Repo + "@" + a.Digest
	case a.Tag != "":
		return a.Repo + ":" + a.Tag
	}
	return a.Repo
}
