package ops

import (
	"fmt"
	"strings"
	"testing"
)

// TestPageBytes holds that a page ends before it is too large for a model, and
// that the pages together are the list.
func TestPageBytes(t *testing.T) {
	var all []string
	for i := range 150 {
		all = append(all, fmt.Sprintf("%03d%s", i, strings.Repeat("x", 997)))
	}
	all = append(all, "999"+strings.Repeat("y", 2*MaxPageBytes))
	var got []string
	cursor, pages := "", 0
	for {
		p, err := Paginate(all, func(s string) string { return s[:3] }, MaxLimit, cursor, "q")
		if err != nil {
			t.Fatal(err)
		}
		size := 0
		for _, s := range p.Items {
			size += len(s) + 2
		}
		if size > MaxPageBytes && len(p.Items) > 1 {
			t.Errorf("a page of %d items has %d bytes", len(p.Items), size)
		}
		got = append(got, p.Items...)
		if pages++; !p.Truncated {
			break
		}
		cursor = p.NextCursor
	}
	if len(got) != len(all) || pages < 6 {
		t.Errorf("%d of %d items in %d pages", len(got), len(all), pages)
	}
}
