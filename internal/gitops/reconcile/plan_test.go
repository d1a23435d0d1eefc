package reconcile

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func key(name string) Key { return Key{"ns", name} }

func keys(names string) []Key {
	var ks []Key
	for _, n := range strings.Fields(names) {
		ks = append(ks, key(n))
	}
	return ks
}

// graph reads "a: b c !fail", one node a line: its name, what it depends on, and
// after ! what is special about it.
func graph(text string) []Node {
	var nodes []Node
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		n := Node{Key: key(name), Verdict: "pass", State: "rendered", Source: SourceRef{"GitRepository", "", "repo"}}
		for _, word := range strings.Fields(rest) {
			switch word {
			case "!fail":
				n.Verdict = "fail"
			case "!warn":
				n.Verdict = "warn"
			case "!unvalidated":
				n.Verdict = ""
			case "!strange":
				n.Verdict = "skipped"
			case "!broken":
				n.State = "failed"
			case "!external":
				n.External, n.Verdict = true, ""
			case "!suspended":
				n.Suspended = true
			default:
				n.DependsOn = append(n.DependsOn, key(word))
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// tell shows a plan as "a | b(a) c(a)" and its declined as "x NotFound".
func tell(p Plan) string {
	var waves, declined []string
	for i, w := range p.Waves {
		var items []string
		for _, it := range w {
			s := it.Name
			if it.Wave != i {
				s += fmt.Sprintf("(wave %d)", it.Wave)
			}
			if len(it.DependsOn) > 0 {
				var ds []string
				for _, d := range it.DependsOn {
					ds = append(ds, d.Name)
				}
				s += "(" + strings.Join(ds, ",") + ")"
			}
			items = append(items, s)
		}
		waves = append(waves, strings.Join(items, " "))
	}
	for _, d := range p.Declined {
		declined = append(declined, d.Name+" "+string(d.Code))
	}
	return strings.Join(waves, " | ") + "; " + strings.Join(declined, ", ")
}

func TestBuild(t *testing.T) {
	tests := []struct {
		name, graph, want, plan string
	}{
		{"nothing wanted", "a:", "", "; "},
		{"empty graph", "", "a", "; a NotFound"},
		{"one, wanted twice", "a:", "a a", "a; "},
		{"names order a wave", "c:\na:\nb:", "c b a", "a b c; "},
		{"diamond", "a:\nb: a\nc: a\nd: b c", "d c b a", "a | b(a) c(a) | d(b,c); "},
		{"a shallow leaf has an early wave", "a:\nb: a\nc: b\nz: a", "a b c z", "a | b(a) z(a) | c(b); "},
		{"depth is the longest path", "a:\nb: a\nc: b a", "a b c", "a | b(a) | c(a,b); "},
		{"through an unwanted one", "a:\nb: a\nc: b", "a c", "a | c(a); "},
		{"unwanted ones are no waves", "a:\nb: a\nc: b", "c", "c; "},
		{"dependency outside of the graph", "a: elsewhere", "a", "a; "},
		{"a wanted dependency outside of the graph", "a: gone", "a gone", "; a DependencyDeclined, gone NotFound"},
		{"warn is enough", "a: !warn", "a", "a; "},
		{"verdicts", "a: !fail\nb: !unvalidated\nc: !strange\nd: !broken\ne: !external\nf:", "a b c d e f",
			"f; a ValidationFailed, b NotValidated, c NotValidated, d ValidationFailed, e NotValidated"},
		{"suspended", "a: !suspended\nb: a", "a b", "; a Suspended, b DependencyDeclined"},
		{"dependants of a declined one, transitively", "a: !unvalidated\nb: a\nc: b\nd:", "a b c d", "d; a NotValidated, b DependencyDeclined, c DependencyDeclined"},
		{"an unwanted one failed", "a: !fail\nb: a\nc: b", "c", "; c DependencyDeclined"},
		{"an unwanted one may be ready in the cluster", "a: !suspended\nb: !unvalidated\nc: a b", "c", "c; "},
		{"a failed one behind an unwanted suspended one", "a: !fail\nb: a !suspended\nc: b", "c", "; c DependencyDeclined"},
		{"self-loop", "a: a\nb:", "a b", "b; a InCycle"},
		{"cycle and what waits for it", "a: c\nb: a\nc: b\nd: c\ne:", "a b c d e", "e; a InCycle, b InCycle, c InCycle, d DependencyDeclined"},
		{"what a cycle waits for", "a: b\nb: a base\nbase:", "a base", "base; a InCycle"},
		{"unwanted cycle", "a: b\nb: a\nc: a", "c", "; c DependencyDeclined"},
		{"two cycles and a bridge", "a: b\nb: a c\nc: d\nd: c", "a b c d", "; a InCycle, b InCycle, c InCycle, d InCycle"},
		{"a cycle is named before a verdict", "a: a !fail", "a", "; a InCycle"},
		{"twice in the graph", "a:\na:\nb: a", "a b", "; a ValidationFailed, b DependencyDeclined"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nodes, want := graph(tt.graph), keys(tt.want)
			p := Build(nodes, want)
			if got := tell(p); got != tt.plan {
				t.Fatalf("plan\n got %q\nwant %q", got, tt.plan)
			}
			for _, d := range p.Declined {
				if d.Detail == "" {
					t.Errorf("%s has no detail", d.Key)
				}
			}
			// The order of what comes in does not matter.
			for range 20 {
				rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
				rand.Shuffle(len(want), func(i, j int) { want[i], want[j] = want[j], want[i] })
				if diff := cmp.Diff(p, Build(nodes, want)); diff != "" {
					t.Fatalf("another order, another plan:\n%s", diff)
				}
			}
		})
	}
}

func TestBuildDetails(t *testing.T) {
	p := Build(graph("a: !fail\nb: a\nc: b"), keys("a b c"))
	if d := p.Declined[2]; !strings.Contains(d.Detail, "ns/b") || !strings.Contains(d.Detail, "DependencyDeclined") {
		t.Errorf("the nearest cause is named: %q", d.Detail)
	}
	// Lists are lists in JSON, also when empty.
	empty, err := json.Marshal(Build(nil, nil))
	if err != nil || string(empty) != `{"waves":[],"declined":[]}` {
		t.Errorf("%s, %v", empty, err)
	}
	one, err := json.Marshal(Build(graph("a:"), keys("a")))
	want := `{"waves":[[{"namespace":"ns","name":"a","dependsOn":[],"source":{"kind":"GitRepository","namespace":"ns","name":"repo"},"wave":0}]],"declined":[]}`
	if err != nil || string(one) != want {
		t.Errorf("%s, %v", one, err)
	}
}

// Whatever the graph, each wish is planned or declined once, after what it waits for.
func TestBuildRandom(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		n := 1 + r.Intn(12)
		var nodes []Node
		var want []Key
		for i := range n {
			node := Node{Key: key(fmt.Sprint(i)), Verdict: []string{"pass", "pass", "pass", "warn", "fail", ""}[r.Intn(6)]}
			for range r.Intn(3) {
				node.DependsOn = append(node.DependsOn, key(fmt.Sprint(r.Intn(n+1))))
			}
			nodes = append(nodes, node)
			if r.Intn(3) > 0 {
				want = append(want, node.Key)
			}
		}
		p := Build(nodes, want)
		var all []Key
		wave := map[Key]int{}
		for i, w := range p.Waves {
			if len(w) == 0 {
				t.Fatalf("seed %d: wave %d is empty", seed, i)
			}
			for _, it := range w {
				all = append(all, it.Key)
				wave[it.Key] = i
				for _, d := range it.DependsOn {
					if at, ok := wave[d]; !ok || at >= i {
						t.Fatalf("seed %d: %s before %s", seed, it.Key, d)
					}
				}
			}
		}
		for _, d := range p.Declined {
			all = append(all, d.Key)
		}
		slices.SortFunc(all, Key.Compare)
		slices.SortFunc(want, Key.Compare)
		if !slices.Equal(all, want) {
			t.Fatalf("seed %d: wanted %v, answered %v", seed, want, all)
		}
	}
}

// A long chain costs no more than its length.
func TestBuildLong(t *testing.T) {
	var nodes []Node
	var want []Key
	for i := range 20_000 {
		n := Node{Key: key(fmt.Sprint(i)), Verdict: "pass"}
		if i > 0 {
			n.DependsOn = []Key{key(fmt.Sprint(i - 1))}
		}
		nodes = append(nodes, n)
		want = append(want, n.Key)
	}
	if p := Build(nodes, want); len(p.Waves) != len(nodes) {
		t.Errorf("%d waves", len(p.Waves))
	}
}
