package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pager is an API server with n Gates whose continue tokens expire at the
// requests, counted from 1, that expire names. It records each request.
type pager struct {
	n        int
	expire   map[int]bool
	requests []string
}

func (p *pager) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.requests = append(p.requests, q.Get("limit")+"@"+q.Get("continue"))
	if p.expire[len(p.requests)] {
		answerJSON(w, 410, status(410, "Expired", "too old", nil))
		return
	}
	from, _ := strconv.Atoi(q.Get("continue"))
	to := p.n
	meta := map[string]any{"resourceVersion": "7"}
	if limit, err := strconv.Atoi(q.Get("limit")); err == nil && from+limit < p.n {
		to = from + limit
		meta["continue"] = strconv.Itoa(to)
		meta["remainingItemCount"] = p.n - to
	}
	items := []any{}
	for i := from; i < to; i++ {
		items = append(items, map[string]any{"apiVersion": hecate, "kind": "Gate",
			"metadata": map[string]any{"namespace": "ns", "name": fmt.Sprintf("g%04d", i)}})
	}
	answerJSON(w, 200, map[string]any{"apiVersion": hecate, "kind": "GateList", "metadata": meta, "items": items})
}

func TestListAll(t *testing.T) {
	for name, tc := range map[string]struct {
		n        int
		expire   map[int]bool
		requests []string
		want     Code
	}{
		"none":                     {0, nil, []string{"500@"}, ""},
		"one page":                 {500, nil, []string{"500@"}, ""},
		"pages":                    {1201, nil, []string{"500@", "500@500", "500@1000"}, ""},
		"a token expires":          {1201, map[int]bool{3: true}, []string{"500@", "500@500", "500@1000", "500@", "500@500", "500@1000"}, ""},
		"it expires again":         {1201, map[int]bool{2: true, 4: true}, []string{"500@", "500@500", "500@", "500@500", "@"}, ""},
		"410 without a token":      {1201, map[int]bool{1: true}, []string{"500@"}, CodeExpired},
		"410 without limit at all": {1201, map[int]bool{2: true, 4: true, 5: true}, []string{"500@", "500@500", "500@", "500@500", "@"}, CodeExpired},
	} {
		p := &pager{n: tc.n, expire: tc.expire}
		s := liveAgainst(t, p)
		list := &v1alpha1.GateList{Items: []v1alpha1.Gate{{}}}
		err := ListAll(t.Context(), s.Client, list, client.Limit(7), client.Continue("3"))
		expect(t, name+", requests", p.requests, tc.requests...)
		if Classify(err) != tc.want {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
			continue
		}
		if err != nil {
			if len(list.Items) != 1 {
				t.Errorf("%s: the list changed although there was an error", name)
			}
			continue
		}
		if len(list.Items) != tc.n || list.Continue != "" || list.RemainingItemCount != nil || list.ResourceVersion != "7" {
			t.Errorf("%s: %d items, %+v", name, len(list.Items), list.ListMeta)
		}
		for i := range list.Items {
			if want := fmt.Sprintf("g%04d", i); list.Items[i].Name != want {
				t.Fatalf("%s: item %d is %s, want %s", name, i, list.Items[i].Name, want)
			}
		}
	}
}

func TestListAllUnstructuredAndSelected(t *testing.T) {
	c := passages(t, 700)
	l := listOf(hecate, "Passage")
	if err := ListAll(t.Context(), c, l, client.InNamespace("one")); err != nil {
		t.Fatal(err)
	}
	if len(l.Items) != 700 || l.GetKind() != "PassageList" {
		t.Errorf("%d items of %s", len(l.Items), l.GetKind())
	}
	typed := &v1alpha1.PassageList{}
	if err := ListAll(t.Context(), c, typed, selector(t, "!hecate.dev/gate")); err != nil {
		t.Fatal(err)
	}
	if len(typed.Items) != 700 {
		t.Errorf("%d unlabelled items", len(typed.Items))
	}
}

func TestListAllRespectsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := &pager{n: 1201}
	s := liveAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r)
		cancel()
	}))
	if err := ListAll(ctx, s.Client, &v1alpha1.GateList{}); Classify(err) != CodeTimeout {
		t.Errorf("got %v", err)
	}
	if len(p.requests) != 1 {
		t.Errorf("asked %q", p.requests)
	}
}

func TestListAllEndsOnAServerThatRepeats(t *testing.T) {
	s := liveAgainst(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answerJSON(w, 200, map[string]any{"apiVersion": hecate, "kind": "GateList", "metadata": map[string]any{"continue": "x"}, "items": []any{}})
	}))
	if err := ListAll(t.Context(), s.Client, &v1alpha1.GateList{}); err == nil {
		t.Error("no error")
	}
}
