package gate

import (
	"cmp"
	"slices"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Newer reports whether a stands before b in the order in which a Gate chooses:
// creationTimestamp descending, then name ascending.
func Newer(a, b *v1alpha1.Bundle) bool { return compare(a, b) < 0 }

// SortNewestFirst puts the Bundles into the order of Newer.
func SortNewestFirst(bundles []v1alpha1.Bundle) {
	slices.SortStableFunc(bundles, func(a, b v1alpha1.Bundle) int { return compare(&a, &b) })
}

// StrictlyNewer reports whether a was created after b. The controller compares
// a candidate with the current Bundle like this: a tie within the second is not
// newer, whatever the names.
func StrictlyNewer(a, b *v1alpha1.Bundle) bool {
	return a.CreationTimestamp.After(b.CreationTimestamp.Time)
}

func compare(a, b *v1alpha1.Bundle) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}
