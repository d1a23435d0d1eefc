package render

import (
	"regexp"

	"sigs.k8s.io/kustomize/api/types"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/locate"
)

// Ignored is a key of a kustomization file that has no effect, and that neither
// Flux nor kustomize mentions.
type Ignored struct {
	Key  string
	Line int
	// Twice says that the key is there twice: the later value counts. Otherwise
	// there is no such field.
	Twice bool
}

var unknownKey = regexp.MustCompile(`unknown field "([^"]+)"`)

// IgnoredKeys finds them in a kustomization file. A field that does not exist is
// dropped in the entry alone, where Flux reads the file before kustomize does; in
// a base it fails the build.
func IgnoredKeys(data []byte) []Ignored {
	var out []Ignored
	_, problems := locate.Parse(data)
	for _, p := range problems {
		if p.Kind == locate.DuplicateKey {
			out = append(out, Ignored{p.Key, p.Line, true})
		}
	}
	var k types.Kustomization
	// Every other error fails the build and is told there.
	if err := k.Unmarshal(data); err != nil {
		if m := unknownKey.FindStringSubmatch(err.Error()); m != nil {
			out = append(out, Ignored{m[1], lineOf(data, m[1]+":"), false})
		}
	}
	return out
}
