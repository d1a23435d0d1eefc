package ops

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// slot is the one name that the next Passage of a Gate can have: two promotions
// that start from the same state of the Gate ask the API server for the same
// name, and it gives a name once. The name comes from the Gate's newest Passage,
// so it changes with every crossing, whoever opened it.
//
// passages are all of the Gate's, finished or not, in any order.
func slot(g *v1alpha1.Gate, passages []*v1alpha1.Passage) string {
	names := map[string]*v1alpha1.Passage{}
	var newest *v1alpha1.Passage
	for _, p := range passages {
		names[p.Name] = p
		if newest == nil || newest.CreationTimestamp.Before(&p.CreationTimestamp) ||
			newest.CreationTimestamp.Equal(&p.CreationTimestamp) && newest.Name < p.Name {
			newest = p
		}
	}
	last := ""
	if newest != nil {
		last = string(newest.UID)
	}
	// Times have seconds only: of two Passages within one, the newest by name may
	// be the older, and its successor there already.
	for {
		name := slotName(g, last)
		taken := names[name]
		if taken == nil {
			return name
		}
		last = string(taken.UID)
	}
}

func slotName(g *v1alpha1.Gate, last string) string {
	sum := sha256.Sum256([]byte(string(g.UID) + "\x00" + last))
	return g.Name + "-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:10])
}
