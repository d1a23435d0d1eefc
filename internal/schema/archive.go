package schema

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"
)

//go:embed archives/*.zst
var archives embed.FS

// versions are the embedded minors, the newest first. hack/schemas has the
// patches.
var versions = []string{"1.36", "1.35", "1.34"}

// Versions are the Kubernetes minors that can be validated against, the newest
// first.
func Versions() []string { return append([]string(nil), versions...) }

// archive is what hack/schemas writes of one minor.
type archive struct {
	Source      string                 `json:"source"`
	Kinds       []archivedKind         `json:"kinds"`
	Definitions map[string]*definition `json:"definitions"`
	Lifecycle   []lifecycle            `json:"lifecycle"`
}

type archivedKind struct {
	Group      string `json:"group"`
	Version    string `json:"version"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
	Definition string `json:"definition"`
}

// definition is a JSON schema as archived.
type definition struct {
	Ref        string                 `json:"$ref"`
	Type       string                 `json:"type"`
	Format     string                 `json:"format"`
	Properties map[string]*definition `json:"properties"`
	// Extra is false or a schema.
	Extra    json.RawMessage `json:"additionalProperties"`
	Items    *definition     `json:"items"`
	Required []string        `json:"required"`
	Default  any             `json:"default"`
	ListType string          `json:"x-kubernetes-list-type"`
	MapKeys  []string        `json:"x-kubernetes-list-map-keys"`
}

// fluxArchive is what hack/schemas writes of Flux's CRDs.
type fluxArchive struct {
	Sources []string         `json:"sources"`
	CRDs    []map[string]any `json:"crds"`
}

// unpack reads an embedded archive into v and returns the packed bytes, whose
// digest is its identity. An error means that the binary itself is broken.
func unpack(name string, v any) ([]byte, error) {
	packed, err := archives.ReadFile("archives/" + name + ".json.zst")
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	raw, err := dec.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("embedded schemas %s: %w", name, err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return nil, fmt.Errorf("embedded schemas %s: %w", name, err)
	}
	return packed, nil
}

// minorOf is the embedded minor of a version that a user wrote: "1.35",
// "v1.35.2", "" for the newest.
func minorOf(version string) (string, error) {
	if version == "" {
		return versions[0], nil
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	for _, v := range versions {
		if len(parts) >= 2 && v == parts[0]+"."+parts[1] {
			return v, nil
		}
	}
	return "", &Error{Message: fmt.Sprintf("there are no schemas of Kubernetes %s", short(version)), Valid: Versions()}
}
