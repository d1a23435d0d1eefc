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

// matched is a path that rules were asked about, and by what it is left out.
type matched struct {
	path  string
	isDir bool
}

// remembered is rs.match with the answers of the last tree under the same rules:
// from one look at a repository to the next hardly a path changes, and each one
// is compared with every rule. The caller holds build.
func (s *Store) remembered(key string, rs rules, paths int) func(p string, isDir bool) (string, bool) {
	before, _ := s.matches.get(key)
	now := make(map[matched]string, paths)
	s.matches.put(key, now)
	return func(p string, isDir bool) (string, bool) {
		m := matched{p, isDir}
		why, known := before[m]
		if !known {
			why, _ = rs.match(p, isDir)
		}
		now[m] = why
		return why, why != ""
	}
}
