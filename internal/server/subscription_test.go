package server

import (
	"strings"
	"testing"
)

// TestSubscriptionIsAcknowledged listens for nothing, which ends at once: the acknowledgement, which the
// library hands to another goroutine, has to be out before the end every time.
func TestSubscriptionIsAcknowledged(t *testing.T) {
	r := serve(t, HTTPOptions{})
	for range 200 {
		a := r.send(t, modern(1, "subscriptions/listen", "", map[string]any{"notifications": map[string]any{}}))
		if a.status != 200 || !strings.Contains(a.body, `"notifications/subscriptions/acknowledged"`) || !strings.Contains(a.body, `"result"`) {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
}
