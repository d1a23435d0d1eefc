package gate

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// bundle is one of Beacon web that cleared the given Gates.
func bundle(name string, cleared ...string) *v1alpha1.Bundle {
	b := &v1alpha1.Bundle{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: v1alpha1.BundleSpec{Beacon: "web"}}
	for _, g := range cleared {
		b.Status.Cleared = append(b.Status.Cleared, v1alpha1.BundleMark{Gate: g})
	}
	return b
}

func approve(b *v1alpha1.Bundle, gate, actor string) *v1alpha1.Bundle {
	b.Status.ApprovedFor = append(b.Status.ApprovedFor, v1alpha1.BundleApproval{Gate: gate, Actor: actor})
	return b
}

// prod is Gate prod with the given entries of spec.admits.
func prod(admits ...v1alpha1.Admission) *v1alpha1.Gate {
	return &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "prod", Namespace: "shop"}, Spec: v1alpha1.GateSpec{Admits: admits}}
}

func admit(beacon string, approval bool, after ...string) v1alpha1.Admission {
	return v1alpha1.Admission{From: v1alpha1.AdmissionSource{Beacon: beacon}, After: after, RequireApproval: approval}
}

func TestJudge(t *testing.T) {
	strict := func() *v1alpha1.Gate { return prod(admit("web", true, "dev", "staging")) }
	inside := func(name string) *v1alpha1.Gate {
		g := strict()
		g.Status.Current = &v1alpha1.GateEntry{Bundle: name}
		return g
	}
	blocked := bundle("a")
	blocked.Status.Blocked = []v1alpha1.BundleMark{{Gate: "prod"}}
	tests := []struct {
		name   string
		gate   *v1alpha1.Gate
		bundle *v1alpha1.Bundle
		code   Code
		codes  []Code
		reason string
	}{
		{"no rule", prod(admit("web", false)), bundle("a"), Eligible, nil, ""},
		{"other Beacon", prod(admit("api", false)), bundle("a"), NotAdmitted, nil, "no entry of spec.admits names its Beacon"},
		{"other Beacon wins over current", func() *v1alpha1.Gate {
			g := prod(admit("api", false))
			g.Status.Current = &v1alpha1.GateEntry{Bundle: "a"}
			return g
		}(), bundle("a"), NotAdmitted, nil, "no entry of spec.admits names its Beacon"},
		{"no entries", prod(), bundle("a"), NotAdmitted, nil, "no entry of spec.admits names its Beacon"},
		{"current, nothing cleared or approved", inside("a"), bundle("a"), AlreadyCurrent, nil, "already in this Gate"},
		{"another is current", inside("b"), bundle("a", "dev", "staging"), AwaitingApproval, []Code{AwaitingApproval}, "awaiting approval"},
		{"both missing and approval", strict(), bundle("a"), UpstreamNotCleared, []Code{UpstreamNotCleared, AwaitingApproval}, "has not cleared dev, staging; awaiting approval"},
		{"the second missing, approved", strict(), approve(bundle("a", "dev"), "prod", "ann"), UpstreamNotCleared, []Code{UpstreamNotCleared}, "has not cleared staging"},
		{"the first missing", strict(), approve(bundle("a", "staging"), "prod", "ann"), UpstreamNotCleared, []Code{UpstreamNotCleared}, "has not cleared dev"},
		{"approved for another Gate", strict(), approve(bundle("a", "staging", "dev"), "dev", "ann"), AwaitingApproval, []Code{AwaitingApproval}, "awaiting approval"},
		{"all given, in any order", strict(), approve(bundle("a", "staging", "qa", "dev", "dev"), "prod", "ann"), Eligible, nil, ""},
		{"a Gate named twice is missing once", prod(admit("web", false, "dev", "dev")), bundle("a"), UpstreamNotCleared, []Code{UpstreamNotCleared}, "has not cleared dev"},
		{"blocked before", prod(admit("web", false)), blocked, Eligible, nil, ""},
		{"the first entry of two wins", prod(admit("web", true), admit("web", false)), bundle("a"), AwaitingApproval, []Code{AwaitingApproval}, "awaiting approval"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v := Judge(tt.gate, tt.bundle)
			if v.Code() != tt.code || v.Eligible() != (tt.code == Eligible) {
				t.Errorf("Code() = %s, Eligible() = %t, want %s", v.Code(), v.Eligible(), tt.code)
			}
			if d := cmp.Diff(tt.codes, v.Codes()); d != "" {
				t.Errorf("Codes() (-want +got):\n%s", d)
			}
			if v.Reason() != tt.reason {
				t.Errorf("Reason() = %q, want %q", v.Reason(), tt.reason)
			}
		})
	}
}

func TestJudgeFields(t *testing.T) {
	g := prod(admit("api", false), admit("web", false, "dev"), admit("web", true))
	v := Judge(g, approve(approve(bundle("a"), "dev", "bob"), "prod", "ann"))
	if v.Admission != &g.Spec.Admits[1] {
		t.Errorf("Admission = %+v, want the first entry of the Bundle's Beacon", v.Admission)
	}
	if v.Approval == nil || v.Approval.Actor != "ann" {
		t.Errorf("Approval = %+v, want ann's although none is required", v.Approval)
	}
	if v := Judge(g, bundle("a")); v.Approval != nil || v.NeedsApproval {
		t.Errorf("Approval = %+v, NeedsApproval = %t, want neither", v.Approval, v.NeedsApproval)
	}
	if a := Admission(g, "nobody"); a != nil {
		t.Errorf("Admission of an unknown Beacon = %+v, want nil", a)
	}
	g.Status.Current = &v1alpha1.GateEntry{Bundle: "a"}
	if v := Judge(g, bundle("a")); len(v.Missing) > 0 || !v.Current || !v.Admitted {
		t.Errorf("current: %+v, want Current and nothing missing", v)
	}
}

func TestOrder(t *testing.T) {
	at := func(name string, second int) v1alpha1.Bundle {
		b := bundle(name)
		b.CreationTimestamp = metav1.NewTime(time.Date(2026, 12, 1, 0, 0, second, 0, time.UTC))
		return *b
	}
	list := []v1alpha1.Bundle{at("c", 1), at("d", 2), at("b", 2), at("a", 1), at("e", 3)}
	SortNewestFirst(list)
	var names []string
	for _, b := range list {
		names = append(names, b.Name)
	}
	if want := []string{"e", "b", "d", "a", "c"}; !slices.Equal(names, want) {
		t.Errorf("SortNewestFirst = %v, want %v", names, want)
	}
	for i := range list {
		for j := range list {
			if got := Newer(&list[i], &list[j]); got != (i < j) {
				t.Errorf("Newer(%s, %s) = %t", list[i].Name, list[j].Name, got)
			}
		}
	}
	for _, tt := range []struct {
		a, b v1alpha1.Bundle
		want bool
	}{{at("a", 2), at("b", 1), true}, {at("a", 1), at("b", 2), false}, {at("a", 1), at("b", 1), false}, {at("b", 1), at("a", 1), false}} {
		if got := StrictlyNewer(&tt.a, &tt.b); got != tt.want {
			t.Errorf("StrictlyNewer(%s %s, %s %s) = %t", tt.a.Name, tt.a.CreationTimestamp, tt.b.Name, tt.b.CreationTimestamp, got)
		}
	}
}
