package ops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// wantAudit is the whole audit of a folder.
type wantAudit struct {
	Entries       []AuditEntry   `json:"entries"`
	CompleteSince []Completeness `json:"completeSince"`
}

func readWant(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatal(err)
	}
}

// audit asks for one page, all of it unless the query says otherwise.
func audit(t *testing.T, o *Ops, q AuditQuery) *AuditPage {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = MaxLimit
	}
	page, err := o.Audit(context.Background(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return page
}

func checkAudit(t *testing.T, o *Ops, want wantAudit) {
	t.Helper()
	page := audit(t, o, AuditQuery{})
	if d := cmp.Diff(want, wantAudit{page.Entries, page.CompleteSince}, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("audit (-want +got):\n%s", d)
		if raw, err := yaml.Marshal(wantAudit{page.Entries, page.CompleteSince}); err == nil {
			t.Logf("got:\n%s", raw)
		}
	}
	if page.Total != len(want.Entries) || page.Truncated || page.NextCursor != "" || page.Entries == nil || page.CompleteSince == nil {
		t.Errorf("total %d, truncated %t, cursor %q, entries nil %t", page.Total, page.Truncated, page.NextCursor, page.Entries == nil)
	}
}

func TestAuditJoinsRecords(t *testing.T) {
	const dir = "testdata/audit/shop"
	var want wantAudit
	readWant(t, filepath.Join(dir, "want.yaml"), &want)
	checkAudit(t, fromSnapshot(t, dir), want)
}

func TestAuditScenarios(t *testing.T) {
	if _, err := os.Stat(scenarios); err != nil {
		t.Skip("../shared/scenarios is not there: ", err)
	}
	var want map[string]wantAudit
	readWant(t, "testdata/audit/scenarios.yaml", &want)
	for name, w := range want {
		t.Run(name, func(t *testing.T) { checkAudit(t, fromSnapshot(t, filepath.Join(scenarios, name)), w) })
	}
}

func TestAuditFilters(t *testing.T) {
	o := fromSnapshot(t, "testdata/audit/shop")
	moment := func(s string) *time.Time {
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return &at
	}
	for name, c := range map[string]struct {
		q    AuditQuery
		want []string // Passages, newest first; of an approval its Bundle
	}{
		"gate":         {AuditQuery{Gate: "production"}, []string{"production-2b", "production-2", "web-2", "web-1", "production-1b", "production-1"}},
		"bundle":       {AuditQuery{Bundle: "web-3"}, []string{"staging-3b", "staging-3", "by-hand"}},
		"gone bundle":  {AuditQuery{Bundle: "web-0"}, []string{"staging-0"}},
		"actor":        {AuditQuery{Actor: "controller"}, []string{"staging-2", "staging-1"}},
		"nobody":       {AuditQuery{Actor: "nobody"}, []string{}},
		"kind":         {AuditQuery{Kind: AuditAborted}, []string{"production-1b"}},
		"since is in":  {AuditQuery{Since: moment("2026-12-01T11:00:01Z")}, []string{"staging-3b", "staging-3"}},
		"until is out": {AuditQuery{Until: moment("2026-11-09T10:00:00Z")}, []string{"staging-0"}},
		"all of them":  {AuditQuery{Namespace: "shop", Gate: "production", Kind: AuditRefused, Since: moment("2026-11-13T00:00:00+01:00")}, []string{"production-2"}},
		"elsewhere":    {AuditQuery{Namespace: "nowhere"}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := []string{}
			for _, e := range audit(t, o, c.q).Entries {
				if e.Passage == "" {
					got = append(got, e.Bundle)
					continue
				}
				got = append(got, e.Passage)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAuditUnknownNames(t *testing.T) {
	o := fromSnapshot(t, "testdata/audit/shop")
	for _, c := range []struct {
		q    AuditQuery
		want NotFoundError
	}{
		{AuditQuery{Gate: "produktion"}, NotFoundError{hecate(v1alpha1.KindGate, "", "produktion"), []string{"production", "staging"}}},
		{AuditQuery{Bundle: "web-9"}, NotFoundError{hecate(v1alpha1.KindBundle, "", "web-9"), []string{"web-0", "web-1", "web-2", "web-3"}}},
	} {
		_, err := o.Audit(context.Background(), c.q)
		var nf *NotFoundError
		if !errors.As(err, &nf) {
			t.Errorf("%+v: %v, want a NotFoundError", c.q, err)
			continue
		}
		if d := cmp.Diff(c.want, *nf); d != "" {
			t.Errorf("%+v: %s", c.q, d)
		}
	}
}

func TestAuditOfWhatCanBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		forbidden  []string
		entries    int
		incomplete []string
		sources    []string // of CompleteSince
	}{
		"all":             {nil, 14, nil, []string{recordPassage, recordBundle}},
		"without Gates":   {[]string{v1alpha1.KindGate}, 13, []string{v1alpha1.KindGate}, []string{recordPassage}},
		"without Bundles": {[]string{v1alpha1.KindBundle}, 7, []string{v1alpha1.KindBundle}, []string{recordPassage}},
		"without Passages": {[]string{v1alpha1.KindPassage}, 11, []string{v1alpha1.KindPassage},
			[]string{recordBundle}},
		"Gates alone": {[]string{v1alpha1.KindPassage, v1alpha1.KindBundle}, 3, []string{v1alpha1.KindBundle, v1alpha1.KindPassage}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := fromSnapshot(t, "testdata/audit/shop")
			o.Client = forbidding{Client: o.Client, everywhere: kindSet(c.forbidden...)}
			page := audit(t, o, AuditQuery{})
			if page.Total != c.entries {
				t.Errorf("%d entries, want %d", page.Total, c.entries)
			}
			var incomplete, sources []string
			for _, i := range page.Incomplete {
				if i.Code != SourceForbidden {
					t.Errorf("%+v: want code %s", i, SourceForbidden)
				}
				incomplete = append(incomplete, i.Object.Kind)
			}
			for _, s := range page.CompleteSince {
				sources = append(sources, s.Source)
			}
			if !slices.Equal(incomplete, c.incomplete) || !slices.Equal(sources, c.sources) {
				t.Errorf("incomplete %v, completeSince %v; want %v, %v", incomplete, sources, c.incomplete, c.sources)
			}
			if slices.Contains(c.forbidden, v1alpha1.KindGate) {
				audit(t, o, AuditQuery{Gate: "unknown"}) // nothing is refused on the word of a list that was not read
			}
		})
	}

	t.Run("nothing", func(t *testing.T) {
		o := fromSnapshot(t, "testdata/audit/shop")
		o.Client = forbidding{Client: o.Client, everywhere: kindSet(v1alpha1.KindGate, v1alpha1.KindBundle, v1alpha1.KindPassage)}
		if page, err := o.Audit(context.Background(), AuditQuery{}); sourceCode(err) != SourceForbidden {
			t.Errorf("got %+v, %v; want the API server's refusal", page, err)
		}
	})
	t.Run("own namespace only", func(t *testing.T) {
		o := fromSnapshot(t, "testdata/audit/shop")
		o.Client, o.DefaultNamespace = forbidding{Client: o.Client, clusterWide: kindSet(v1alpha1.KindGate, v1alpha1.KindBundle, v1alpha1.KindPassage)}, "shop"
		if page := audit(t, o, AuditQuery{}); page.Total != 14 || len(page.Incomplete) != 3 {
			t.Errorf("%d entries, incomplete %+v; want all of shop, and to be told so", page.Total, page.Incomplete)
		}
	})
}

// crossings makes n crossings of one Gate, a second apart, two at a time.
func crossings(n int) v1alpha1.Bundle {
	b := v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop"}}
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		b.Status.Cleared = append(b.Status.Cleared, v1alpha1.BundleMark{Gate: "staging", Passage: fmt.Sprintf("staging-%03d", i),
			At: metav1.NewTime(start.Add(time.Duration(i/2) * time.Second))})
	}
	return b
}

// listing gives a list of Bundles that a test can lengthen, and nothing else.
type listing struct {
	client.Client
	bundle *v1alpha1.Bundle
}

func (c listing) List(_ context.Context, l client.ObjectList, _ ...client.ListOption) error {
	if bundles, ok := l.(*v1alpha1.BundleList); ok {
		bundles.Items = []v1alpha1.Bundle{*c.bundle.DeepCopy()}
	}
	return nil
}

func TestAuditPages(t *testing.T) {
	for _, limit := range []int{1, 7, 20, 46, 200, 1000} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			bundle := crossings(46)
			o := New(listing{bundle: &bundle})
			want := audit(t, o, AuditQuery{}).Entries
			var got []AuditEntry
			q := AuditQuery{Limit: limit}
			for pages := 0; ; pages++ {
				page := audit(t, o, q)
				got = append(got, page.Entries...)
				if page.Truncated != (page.NextCursor != "") || len(page.Entries) > min(limit, MaxLimit) || pages > 46 {
					t.Fatalf("page %d: %d entries, truncated %t, cursor %q", pages, len(page.Entries), page.Truncated, page.NextCursor)
				}
				if !page.Truncated {
					break
				}
				q.Cursor = page.NextCursor
				bundle = crossings(46 + 4*(pages+1)) // new entries arrive in between
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("all pages differ from the list (-list +pages):\n%s", d)
			}
		})
	}
}

func TestAuditCursors(t *testing.T) {
	bundle := crossings(46)
	o := New(listing{bundle: &bundle})
	cursor := audit(t, o, AuditQuery{Limit: 5}).NextCursor
	if page := audit(t, o, AuditQuery{Limit: 9, Cursor: cursor}); len(page.Entries) != 9 {
		t.Errorf("another limit: %d entries, want 9", len(page.Entries))
	}
	since := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for name, q := range map[string]AuditQuery{
		"malformed": {Cursor: "%%%"}, "not ours": {Cursor: "e30"}, "cut": {Cursor: cursor[:len(cursor)-3]},
		"other gate": {Gate: "staging", Cursor: cursor}, "other bundle": {Bundle: "web-1", Cursor: cursor}, "other actor": {Actor: "a", Cursor: cursor},
		"other kind": {Kind: AuditCrossed, Cursor: cursor}, "other since": {Since: &since, Cursor: cursor}, "other until": {Until: &since, Cursor: cursor},
		"other namespace": {Namespace: "shop", Cursor: cursor},
	} {
		var c *CursorError
		if _, err := o.Audit(context.Background(), q); !errors.As(err, &c) {
			t.Errorf("%s: %v, want a CursorError", name, err)
		}
	}
}

func TestAuditCompleteness(t *testing.T) {
	hour := func(h int) metav1.Time { return metav1.Date(2026, 11, 1, h, 0, 0, 0, time.UTC) }
	history := func(gate string, newest, n int) v1alpha1.Gate {
		g := v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: gate, Namespace: "shop"}}
		for i := range n {
			g.Status.History = append(g.Status.History, v1alpha1.GateEntry{Bundle: "web-1", EnteredAt: hour(newest - i)})
		}
		return g
	}
	finished := func(gate string, h int) v1alpha1.Passage {
		at := hour(h)
		return v1alpha1.Passage{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", gate, h), Namespace: "shop", Labels: map[string]string{v1alpha1.LabelGate: gate}},
			Spec: v1alpha1.PassageSpec{Gate: gate, Bundle: "web-1"}, Status: &v1alpha1.PassageStatus{Phase: v1alpha1.PassageFailed, FinishedAt: &at}}
	}
	retaining := func(n int32, history ...v1alpha1.GateEntry) v1alpha1.Gate {
		return v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "staging", Namespace: "shop"}, Spec: v1alpha1.GateSpec{Retain: &n},
			Status: v1alpha1.GateStatus{History: history}}
	}
	bundle := func(mark func(*v1alpha1.BundleStatus)) v1alpha1.Bundle {
		b := v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop"}}
		mark(&b.Status)
		return b
	}
	plain := bundle(func(*v1alpha1.BundleStatus) {})
	refusals := func(n int) v1alpha1.Bundle {
		return bundle(func(s *v1alpha1.BundleStatus) {
			for i := range n {
				s.Blocked = append(s.Blocked, v1alpha1.BundleMark{Gate: "staging", At: hour(20 - i)})
			}
		})
	}
	twenty := func() (out []v1alpha1.Passage) {
		for h := range 20 {
			out = append(out, finished("staging", h))
		}
		return out
	}
	for name, c := range map[string]struct {
		r    records
		q    AuditQuery
		want []string
	}{
		"nothing dropped":        {r: records{gates: []v1alpha1.Gate{history("dev", 20, 9)}, bundles: []v1alpha1.Bundle{refusals(9)}}},
		"full history":           {r: records{gates: []v1alpha1.Gate{history("dev", 20, 10)}, bundles: []v1alpha1.Bundle{plain}}, want: []string{"history dev 11"}},
		"two full, later counts": {r: records{gates: []v1alpha1.Gate{history("dev", 22, 10), history("qa", 20, 10)}, bundles: []v1alpha1.Bundle{plain}}, want: []string{"history dev 13"}},
		"only the Gate asked for": {r: records{gates: []v1alpha1.Gate{history("dev", 22, 10), history("qa", 20, 10)}, bundles: []v1alpha1.Bundle{plain}},
			q: AuditQuery{Gate: "qa"}, want: []string{"history qa 11"}},
		"full blocked":     {r: records{bundles: []v1alpha1.Bundle{refusals(10)}}, want: []string{"blocked  11"}},
		"default retain":   {r: records{gates: []v1alpha1.Gate{history("staging", 1, 0)}, bundles: []v1alpha1.Bundle{plain}, passages: twenty()}, want: []string{"passage staging 0"}},
		"below the retain": {r: records{gates: []v1alpha1.Gate{history("staging", 1, 0)}, bundles: []v1alpha1.Bundle{plain}, passages: twenty()[1:]}},
		"keeps all":        {r: records{gates: []v1alpha1.Gate{retaining(0)}, bundles: []v1alpha1.Bundle{plain}, passages: twenty()}},
		"protected ones do not count": {r: records{gates: []v1alpha1.Gate{retaining(2, v1alpha1.GateEntry{Bundle: "web-1", Passage: "staging-3", EnteredAt: hour(3)})},
			bundles: []v1alpha1.Bundle{plain}, passages: []v1alpha1.Passage{finished("staging", 3), finished("staging", 4)}}},
		"a named Passage is gone": {r: records{gates: []v1alpha1.Gate{retaining(0)}, bundles: []v1alpha1.Bundle{bundle(func(s *v1alpha1.BundleStatus) {
			s.Cleared = []v1alpha1.BundleMark{{Gate: "staging", Passage: "staging-1", At: hour(1)}, {Gate: "staging", Passage: "staging-2", At: hour(2)}}
		})}}, want: []string{"passage staging 2"}},
		"a named Bundle is gone": {r: records{gates: []v1alpha1.Gate{history("dev", 5, 3)}}, want: []string{"bundle dev 5"}},
		"nothing follows from what was not read": {r: records{gates: []v1alpha1.Gate{retaining(0, v1alpha1.GateEntry{Bundle: "web-1", Passage: "staging-3", EnteredAt: hour(3)})},
			unread: map[string]bool{v1alpha1.KindBundle: true, v1alpha1.KindPassage: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, x := range c.r.completeness(c.q) {
				got = append(got, fmt.Sprintf("%s %s %d", x.Source, x.Gate, x.Since.Hour()))
				if x.Why == "" {
					t.Errorf("%+v does not say why", x)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A Passage of a name that was used before is another fact, and an edited
// status with nothing but current is history enough.
func TestAuditTellsFactsApart(t *testing.T) {
	at := func(minute int) metav1.Time { return metav1.Date(2026, 11, 1, 0, minute, 0, 0, time.UTC) }
	gates := []v1alpha1.Gate{{ObjectMeta: metav1.ObjectMeta{Name: "dev", Namespace: "shop"}, Status: v1alpha1.GateStatus{
		Current: &v1alpha1.GateEntry{Bundle: "web-2", Passage: "again", EnteredAt: at(2)},
	}}}
	bundles := []v1alpha1.Bundle{
		{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop"}, Status: v1alpha1.BundleStatus{Cleared: []v1alpha1.BundleMark{{Gate: "dev", Passage: "again", At: at(1)}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "web-2", Namespace: "shop"}, Status: v1alpha1.BundleStatus{
			Cleared: []v1alpha1.BundleMark{{Gate: "dev", Passage: "again", At: at(2)}},
			Blocked: []v1alpha1.BundleMark{{Gate: "dev", Passage: "again", At: at(0), Reason: "no"}}}},
	}
	var got []string
	for _, e := range auditEntries(gates, bundles, nil) {
		got = append(got, fmt.Sprintf("%d %s %s %v", e.At.Minute(), e.Kind, e.Bundle, e.Sources))
	}
	want := []string{"2 crossed web-2 [history cleared]", "1 crossed web-1 [cleared]", "0 refused web-2 [blocked]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
