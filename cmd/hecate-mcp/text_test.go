package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// goldens are calls whose text a person has read and found good.
var goldens = []struct {
	file string
	args []string
}{
	{"explain_gate_production.txt", []string{"explain_gate", "--arg", "gate=production"}},
	{"explain_gate.txt", []string{"explain_gate"}},
	{"list_gates.txt", []string{"list_gates"}},
	{"preview_promotion_production.txt", []string{"preview_promotion", "--arg", "gate=production"}},
	{"get_evidence.txt", []string{"get_evidence", "--arg", "bundle=ledger-e99a8e964f58", "--arg", "gate=live"}},
	{"get_audit_trail.txt", []string{"get_audit_trail", "--arg", "limit=8"}},
	{"get_passage.txt", []string{"get_passage", "--arg", "passage=dev-qd2r7"}},
}

// TestText holds what a person reads to the golden files; go test -update
// writes them anew.
func TestText(t *testing.T) {
	isolate(t)
	for _, g := range goldens {
		t.Run(g.file, func(t *testing.T) {
			o := hecate(context.Background(), append([]string{"call", "--demo"}, g.args...)...)
			if o.code != 0 || o.err != "" {
				t.Fatalf("exit code %d: %s%s", o.code, o.out, o.err)
			}
			file := filepath.Join("testdata", g.file)
			if *update {
				if err := os.WriteFile(file, []byte(o.out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), o.out); diff != "" {
				t.Errorf("not the golden text (-want +got):\n%s", diff)
			}
			if strings.Contains(o.out, "\x1b") {
				t.Error("colour without a terminal")
			}
			for line := range strings.Lines(o.out) {
				if l := strings.TrimSuffix(line, "\n"); strings.TrimRight(l, " \t") != l {
					t.Errorf("blanks at the end of %q", l)
				}
			}
		})
	}
}

// TestOffered runs each command that the goldens offer, and holds that those
// for a person name things that exist: a Gate where a Gate belongs and a Bundle
// where a Bundle does.
func TestOffered(t *testing.T) {
	isolate(t)
	gates, bundles := names(t, "list_gates", "gates", "gate"), names(t, "list_bundles", "bundles", "bundle")
	ran, human := 0, 0
	for _, g := range goldens {
		raw, err := os.ReadFile(filepath.Join("testdata", g.file))
		if err != nil {
			t.Fatal(err)
		}
		_, offers, _ := strings.Cut(string(raw), "\nwhat to do next\n")
		for line := range strings.Lines(offers) {
			offer, ok := strings.CutPrefix(line, "  - ")
			if !ok {
				continue
			}
			words := strings.Fields(offer)
			switch {
			case words[0] != "hecate-mcp":
				t.Errorf("%s offers %q: whose command is that?", g.file, words)
			case words[1] == "call":
				ran++
				if o := hecate(context.Background(), words[1:]...); o.code != 0 {
					t.Errorf("%s offers %q, which exits %d:\n%s%s", g.file, words, o.code, o.out, o.err)
				}
			default:
				human++
				var gate, bundle string
				switch {
				case len(words) == 8 && words[1] == "promote" && words[3] == "--bundle":
					gate, bundle = words[2], words[4]
				case len(words) == 8 && words[1] == "approve" && words[3] == "--gate":
					gate, bundle = words[4], words[2]
				default:
					t.Errorf("%s offers %q: no known form", g.file, words)
					continue
				}
				// Nobody is there to be asked, which is all that is wrong with it.
				if o := hecate(context.Background(), words[1:]...); o.code != 1 || !strings.Contains(o.err, "stdin is not a terminal") {
					t.Errorf("%s offers %q, which exits %d: %s", g.file, words, o.code, o.err)
				}
				ns := words[6]
				if words[5] != "--namespace" || !gates[ns+"/"+gate] || !bundles[ns+"/"+bundle] {
					t.Errorf("%s offers %q: no such Gate or Bundle in %s", g.file, words, ns)
				}
			}
		}
	}
	if ran < 6 || human < 3 {
		t.Errorf("only %d commands were run and %d of a person's seen: are the goldens read right?", ran, human)
	}
}

// names lists what is in the demo, as namespace/name.
func names(t *testing.T, tool, list, key string) map[string]bool {
	t.Helper()
	var answer map[string]any
	hecate(context.Background(), "call", tool, "--demo", "-o", "json", "--arg", "limit=200").oneJSON(t, &answer)
	out := map[string]bool{}
	for _, row := range answer[list].([]any) {
		r := row.(map[string]any)
		out[r["namespace"].(string)+"/"+r[key].(string)] = true
	}
	return out
}

// TestOffersRepeatTheSource holds that an offered command asks the same source,
// whatever its path looks like to a shell.
func TestOffersRepeatTheSource(t *testing.T) {
	for _, c := range []struct {
		flags sourceFlags
		want  string
	}{
		{sourceFlags{}, ""},
		{sourceFlags{demo: true}, " --demo"},
		{sourceFlags{snapshot: "dump"}, " --snapshot dump"},
		{sourceFlags{snapshot: "it's here"}, ` --snapshot 'it'\''s here'`},
		{sourceFlags{snapshot: "$(reboot)", now: "2026-11-30T14:00:00Z"}, " --snapshot '$(reboot)' --now 2026-11-30T14:00:00Z"},
		{sourceFlags{kubeconfig: "k", context: "c", fidesServer: "https://fides.example.com"}, " --kubeconfig k --context c --fides-server https://fides.example.com"},
	} {
		if got := c.flags.source(); got != c.want {
			t.Errorf("%+v: %q, not %q", c.flags, got, c.want)
		}
	}
}
