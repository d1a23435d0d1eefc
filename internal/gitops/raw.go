package gitops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"
)

// document is one object as it stands in a file, before anything renders it.
type document struct {
	Object
	Place
	obj map[string]any
	// sops says that the document is encrypted.
	sops bool
}

// maxRawFile is the largest file that is looked into for documents, in bytes:
// nobody writes larger ones by hand.
const maxRawFile = 4 << 20

// maxDocuments is the most documents that discovery keeps.
const maxDocuments = 100_000

// rawWords are what a file must contain to be worth parsing.
var rawWords = [][]byte{[]byte("toolkit.fluxcd.io"), []byte("fluxcd.controlplane.io"), []byte("source.extensions.fluxcd.io"), []byte("ConfigMap"), []byte("Secret")}

// scan reads the documents of a tree's YAML files that discovery cares about:
// Flux's own kinds, ConfigMaps and Secrets. Files that don't parse are skipped
// here: the render that reads them says why.
//
// It fails with TooLarge.
func (e *Engine) scan(ctx context.Context, a *artifactView) ([]document, error) {
	var out []document
	for _, f := range a.files() {
		if !isManifest(f) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		hash, _ := a.hash(f)
		key := "raw:" + hash
		var docs []document
		if v, ok := e.cache.get(key); ok {
			docs = v.([]document)
		} else {
			var err error
			if docs, err = parseRaw(filepath.Join(a.art.Dir, filepath.FromSlash(f))); err != nil {
				return nil, fmt.Errorf("%s can't be read: %w", f, err)
			}
			e.cache.put(key, docs, rawSize(docs))
		}
		for _, d := range docs {
			d.File = a.art.RepoPath(f)
			out = append(out, d)
		}
		if len(out) > maxDocuments {
			return nil, &Error{Code: ErrTooLarge, Message: fmt.Sprintf("the files hold more than %d objects of Flux, ConfigMaps and Secrets: leave some out with a .sourceignore file, or open a part of the repository", maxDocuments)}
		}
	}
	return out, nil
}

func rawSize(docs []document) int {
	n := 64
	for _, d := range docs {
		n += 512 + len(d.Name)
		if b, err := json.Marshal(d.obj); err == nil {
			n += 4 * len(b)
		}
	}
	return n
}

func isManifest(file string) bool {
	ext := path.Ext(file)
	return ext == ".yaml" || ext == ".yml"
}

// parseRaw reads one file. Reading stops at the first malformed document.
func parseRaw(file string) ([]document, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if info.Size() > maxRawFile {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	worth := false
	for _, w := range rawWords {
		worth = worth || bytes.Contains(data, w)
	}
	if !worth {
		return nil, nil
	}
	var out []document
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		if err := safely(func() error { return dec.Decode(&n) }); err != nil {
			return out, nil // the end, or what the render that reads it will complain of
		}
		var v any
		plainDates(&n)
		if err := safely(func() error { return n.Decode(&v) }); err != nil {
			continue
		}
		v, ok := asJSON(v)
		if !ok {
			continue // no object that Kubernetes could read
		}
		for _, m := range unlist(v) {
			d := document{Object: Object{str(m, "apiVersion"), str(m, "kind"), str(m, "metadata", "namespace"), str(m, "metadata", "name")}, obj: m, sops: m["sops"] != nil}
			d.Line = n.Line
			if len(n.Content) > 0 {
				d.Line = n.Content[0].Line
			}
			if wanted(d) {
				out = append(out, d)
			}
		}
	}
}

// plainDates makes dates texts, as they are where YAML is read for Kubernetes.
func plainDates(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content {
		plainDates(c)
	}
}

// asJSON gives a value the types that JSON has, false when it has none there.
func asJSON(v any) (any, bool) {
	switch x := v.(type) {
	case map[string]any:
		for k, c := range x {
			c, ok := asJSON(c)
			if !ok {
				return nil, false
			}
			x[k] = c
		}
	case map[any]any:
		out := make(map[string]any, len(x))
		for k, c := range x {
			switch k.(type) {
			case string, bool, int, int64, uint64, float64:
			default:
				return nil, false
			}
			c, ok := asJSON(c)
			if !ok {
				return nil, false
			}
			out[fmt.Sprint(k)] = c
		}
		return out, true
	case []any:
		for i, c := range x {
			c, ok := asJSON(c)
			if !ok {
				return nil, false
			}
			x[i] = c
		}
	case int:
		return int64(x), true
	case uint64:
		return float64(x), true
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	return v, true
}

// safely turns a panic of the YAML library into an error.
func safely(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the YAML library panicked")
		}
	}()
	return f()
}

// unlist gives the object, or those of a List.
func unlist(v any) []map[string]any {
	m, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	if kind := str(m, "kind"); strings.HasSuffix(kind, "List") && m["items"] != nil {
		var out []map[string]any
		for _, i := range list(m, "items") {
			if o, ok := i.(map[string]any); ok {
				out = append(out, o)
			}
		}
		return out
	}
	return []map[string]any{m}
}

// wanted tells what discovery reads from files.
func wanted(d document) bool {
	switch groupOf(d.APIVersion) {
	case groupKustomize, groupSource, groupOperator, groupArtifact:
		return true
	case groupHelm:
		// The chart flux-instance starts Flux by its values.
		return at(d.obj, "spec", "values", "instance", "sync") != nil
	case "":
		return d.Kind == "ConfigMap" || d.Kind == "Secret"
	}
	return false
}
