package gitops

import (
	"fmt"
	"strings"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// unmapped says why a changed file explains nothing; false when it does.
func (c *comparison) unmapped(f ChangedFile) (UnmappedFile, bool) {
	if c.mapped[f.File] {
		return UnmappedFile{}, false
	}
	u := UnmappedFile{File: f.File}
	side := c.head
	if f.Change == string(source.Deleted) {
		side = c.base
	}
	if f.File == ConfigFile {
		u.Reason = UnmappedConfig
		return u, true
	}
	if why, ok := side.d.snap.view.art.Dropped()[f.File]; ok && !side.inOtherArtifact(c.changed, f.File) {
		u.Reason, u.Detail = UnmappedIgnored, why
		return u, true
	}
	if readers := c.readers(f.File); len(readers) > 0 {
		u.Reason = UnmappedNoChange
		u.Detail = "read by " + strings.Join(bounded(readers, 3), ", ")
		return u, true
	}
	if chart := side.chartOf(f.File); chart != "" {
		u.Reason, u.Detail = UnmappedChart, chart
		return u, true
	}
	if !isManifest(f.File) {
		u.Reason = UnmappedNotManifest
		return u, true
	}
	if n := side.otherSource(f.File); n != nil {
		u.Reason, u.Detail = UnmappedOtherSource, fmt.Sprintf("Kustomization %s builds a folder %s, but %s", n.key, n.path, n.external)
		return u, true
	}
	u.Reason = UnmappedUnreferenced
	return u, true
}
