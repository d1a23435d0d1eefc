package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/tools"
)

// TestSubscriptionIsAcknowledged listens for nothing, which ends at once: the acknowledgement, which the
// library hands to another goroutine, has to be out before the end every time.
func TestSubscriptionIsAcknowledged(t *testing.T) {
	log := &buffer{}
	r := &running{log: log, done: make(chan error, 1)}
	h, err := NewHTTP(tools.NewServer(&tools.Env{}, nil, "1", slog.New(slog.NewTextHandler(log, nil))), HTTPOptions{}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	r.start(t, h)
	for range 200 {
		a := r.send(t, modern(1, "subscriptions/listen", "", map[string]any{"notifications": map[string]any{}}))
		if a.status != 200 || !strings.Contains(a.body, `"notifications/subscriptions/acknowledged"`) || !strings.Contains(a.body, `"result"`) {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
}
