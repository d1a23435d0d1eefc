package ops

import "testing"

func TestCommands(t *testing.T) {
	for _, c := range []struct{ namespace, bundle, gate, approve, promote string }{
		{"shop", "web-1", "production", "hecate-mcp approve web-1 --gate production --namespace shop",
			"hecate-mcp promote production --bundle web-1 --namespace shop"},
		{"shop", "web.v1", "eu-1.production", "hecate-mcp approve web.v1 --gate eu-1.production --namespace shop",
			"hecate-mcp promote eu-1.production --bundle web.v1 --namespace shop"},
		{"shop", "web; reboot", "production", "", ""},
		{"shop", "--help", "production", "", ""},
		{"shop", "", "production", "", ""},
		{"shop", "web", "$(id)", "", ""},
		{"sh\nop", "web", "production", "", ""},
	} {
		if got := approveCommand(c.namespace, c.bundle, c.gate); got != c.approve {
			t.Errorf("approve %q: got %q, want %q", c.bundle, got, c.approve)
		}
		if got := promoteCommand(c.namespace, c.bundle, c.gate); got != c.promote {
			t.Errorf("promote %q: got %q, want %q", c.bundle, got, c.promote)
		}
		if (humanStep(c.approve, "why") == nil) != (c.approve == "") {
			t.Errorf("%q: a step without a command, or the reverse", c.bundle)
		}
	}
}
