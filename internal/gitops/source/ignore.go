package source

import (
	"bytes"
	"path"
	"strings"

	"github.com/fluxcd/pkg/sourceignore"
	"github.com/fluxcd/pkg/sourceignore/gitignore"
)

// rule is one pattern and where it was written.
type rule struct {
	pattern gitignore.Pattern
	from    string
}

// rules decide what an artifact leaves out; later ones win.
type rules []rule

func (rs rules) add(patterns []gitignore.Pattern, from string) rules {
	for _, p := range patterns {
		rs = append(rs, rule{p, from})
	}
	return rs
}

const (
	fromVCS      = "ignored by Flux: a file of the version control"
	fromDefaults = "ignored by the default rules of Flux, which hold where there is neither a .sourceignore nor spec.ignore"
	fromSpec     = "ignored by spec.ignore of the source"
)

// rulesOf collects the rules of a tree in source-controller's order: version
// control, the defaults when nothing else speaks, the .sourceignore files from
// the root on, spec.ignore.
func rulesOf(files []string, read func(string) ([]byte, error), ignore string) (rules, error) {
	var own rules
	for _, f := range files {
		data, err := read(f)
		if err != nil {
			return nil, err
		}
		var domain []string
		if dir := path.Dir(f); dir != "." {
			domain = strings.Split(dir, "/")
		}
		own = own.add(sourceignore.ReadPatterns(bytes.NewReader(data), domain), "ignored by "+f)
	}
	own = own.add(sourceignore.ReadPatterns(strings.NewReader(ignore), nil), fromSpec)
	rs := rules{}.add(sourceignore.VCSPatterns(nil), fromVCS)
	if len(own) == 0 {
		rs = rs.add(sourceignore.DefaultPatterns(nil), fromDefaults)
	}
	return append(rs, own...), nil
}

// match tells whether a path is left out, and by what. Folders that match don't
// take along what lies in them: a later rule may let a file in again.
func (rs rules) match(p string, isDir bool) (string, bool) {
	parts := strings.Split(p, "/")
	for i := len(rs) - 1; i >= 0; i-- {
		switch rs[i].pattern.Match(parts, isDir) {
		case gitignore.Exclude:
			return rs[i].from, true
		case gitignore.Include:
			return "", false
		}
	}
	return "", false
}
