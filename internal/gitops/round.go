package gitops

import "fmt"

// round remembers what holds while neither the roots nor what is rendered change:
// with it a look at the graph costs what there is, not what there is by itself.
type round struct {
	declared      map[clustered]bool
	objects       map[clustered]map[string]any
	self          map[clustered]bool
	urls          map[string]bool
	folders       map[string]map[string]bool // cluster → its own folders
	artifactRoots map[clustered]string
	external      map[clustered]resolved
}

// clustered is a source in a cluster.
type clustered struct {
	cluster string
	ref     SourceRef
}

// resolved is an artifact, or why there is none.
type resolved struct {
	view    *artifactView
	why     string
	missing bool
}

func (d *discovery) thisRound() *round {
	if d.round == nil {
		d.round = &round{objects: map[clustered]map[string]any{}, self: map[clustered]bool{}, folders: map[string]map[string]bool{},
			artifactRoots: map[clustered]string{}, external: map[clustered]resolved{}}
	}
	return d.round
}

// maxLinked bounds the files of all artifacts that one repository is made into:
// sources with ever other ignore rules would make one each.
const maxLinked = 250_000

func tooManyArtifacts(ref SourceRef) string {
	return fmt.Sprintf("%s is not looked into: the artifacts of this repository have more than %d files in all", ref, maxLinked)
}
