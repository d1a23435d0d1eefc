package ops

import (
	"cmp"
	"slices"
	"strings"
)

// nearest orders names by how close they are to what was asked for, and gives
// the first n: what a person meant is usually among them.
func nearest(name string, all []string, n int) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	all = slices.Compact(all)
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(distance(name, a), distance(name, b)) })
	if len(all) > n {
		all = all[:n]
	}
	return all
}

// didYouMean is a hint at the nearest name, "" when none is near.
func didYouMean(name string, all []string) string {
	near := nearest(name, all, 1)
	if len(near) == 0 || distance(name, near[0]) > 1+len(name)/3 {
		return ""
	}
	return "; did you mean " + near[0] + "?"
}

// distance is the edit distance of two names, 0 when b contains a.
func distance(a, b string) int {
	if strings.Contains(b, a) {
		return 0
	}
	// Names are at most 253 characters; what is longer is no name.
	if len(a) > 253 || len(b) > 253 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diag
			if a[i-1] != b[j-1] {
				cost++
			}
			diag = row[j]
			row[j] = min(cost, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
