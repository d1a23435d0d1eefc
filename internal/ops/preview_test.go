package ops

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
)

// offline opens the objects of a folder as a snapshot: nothing may be asked.
// Words of the objects are replaced as told.
func offline(t *testing.T, folder string, replace ...string) (*Ops, string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"objects.yaml", "meta.json"} {
		raw, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.NewReplacer(replace...).Replace(string(raw))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return snapshot(t, dir)
}

func snapshot(t *testing.T, path string) (*Ops, string) {
	t.Helper()
	src, err := cluster.Open(context.Background(), cluster.Options{Snapshot: path})
	if err != nil {
		t.Fatal(err)
	}
	return &Ops{Client: src.Client, Now: func() metav1.Time { return metav1.NewTime(src.Now()) }}, src.Namespace
}

func preview(t *testing.T, o *Ops, q PreviewQuery) *Preview {
	t.Helper()
	p, err := o.Preview(context.Background(), q)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	if raw, err := json.Marshal(p); err != nil || strings.Contains(string(raw), ":null") {
		t.Errorf("%+v: null in %s (%v)", q, raw, err)
	}
	if p.Summary == "" || p.WouldCross != (p.Verdict == PreviewCrosses) || (len(p.Refusals) > 0) != (p.Verdict == PreviewRefused) {
		t.Errorf("%+v: contradicts itself: %+v", q, p)
	}
	return p
}

func reasons(p *Preview) []RefusalReason {
	out := []RefusalReason{}
	for _, r := range p.Refusals {
		out = append(out, r.Reason)
	}
	return out
}

func warned(p *Preview) []WarningKind {
	out := []WarningKind{}
	for _, w := range p.Warnings {
		if !slices.Contains(out, w.Kind) {
			out = append(out, w.Kind)
		}
	}
	return out
}

func acts(p *Preview) []Role {
	out := []Role{}
	for _, a := range p.WhoMustAct {
		out = append(out, a.Who)
	}
	return out
}

// TestPreviewRules previews the newest Bundle at Gates of testdata/states.
func TestPreviewRules(t *testing.T) {
	for _, c := range []struct {
		state, gate, bundle string
		refused             []RefusalReason
		warned              []WarningKind
		acts                []Role
	}{
		{state: "ready", gate: "manual", acts: []Role{RolePromoter}},
		{state: "ready", gate: "open", acts: []Role{RolePromoter}},
		{state: "suspended", gate: "manual", refused: []RefusalReason{RefusedSuspended}, acts: []Role{RoleOperator, RolePromoter}},
		{state: "suspended", gate: "auto", refused: []RefusalReason{RefusedSuspended}, acts: []Role{RoleOperator, RoleTime}},
		{state: "invalid-steps", gate: "auto", refused: []RefusalReason{RefusedInvalidSteps}, acts: []Role{RoleOperator, RoleTime}},
		{state: "invalid-steps", gate: "in-flight", refused: []RefusalReason{RefusedCrossing, RefusedInvalidSteps}, acts: []Role{RoleOperator, RoleTime, RoleTime}},
		{state: "invalid-steps-stale", gate: "dev", warned: []WarningKind{WarnTargetHealth}, acts: []Role{RoleTime}},
		{state: "no-passage-template", gate: "manual", refused: []RefusalReason{RefusedNoPassage}, acts: []Role{RoleOperator, RolePromoter}},
		{state: "awaiting-approval", gate: "production", refused: []RefusalReason{RefusedNotApproved}, acts: []Role{RoleApprover, RolePromoter}},
		{state: "newest-waits", gate: "production", refused: []RefusalReason{RefusedNotApproved}, acts: []Role{RoleApprover, RolePromoter}},
		{state: "upstream", gate: "two-and-approval", refused: []RefusalReason{RefusedUpstream, RefusedNotApproved},
			acts: []Role{RoleOperator, RoleApprover, RolePromoter}},
		{state: "upstream", gate: "suspended-down", refused: []RefusalReason{RefusedUpstream}, warned: []WarningKind{WarnUpstreamHealth},
			acts: []Role{RoleOperator, RolePromoter}},
		{state: "upstream", gate: "typo", refused: []RefusalReason{RefusedUpstream}, warned: []WarningKind{WarnUpstreamHealth},
			acts: []Role{RoleOperator, RolePromoter}},
		{state: "windows", gate: "upstream", refused: []RefusalReason{RefusedUpstream, RefusedNotApproved, RefusedWindow},
			acts: []Role{RoleOperator, RoleApprover, RoleTime, RolePromoter}},
		{state: "windows", gate: "deny", refused: []RefusalReason{RefusedWindow}, acts: []Role{RoleTime, RolePromoter}},
		{state: "windows", gate: "invalid", refused: []RefusalReason{RefusedBadWindow}, acts: []Role{RoleOperator, RolePromoter}},
		{state: "two-passages", gate: "dev", refused: []RefusalReason{RefusedCrossing, RefusedCrossing}},
		{state: "unlabelled", gate: "running", refused: []RefusalReason{RefusedCrossing}},
		{state: "no-bundles", gate: "on-failing", refused: []RefusalReason{RefusedNoBundle}, acts: []Role{}},
		{state: "resting", gate: "production", refused: []RefusalReason{RefusedCurrent}, acts: []Role{}},
		{state: "failed", gate: "manual", warned: []WarningKind{WarnFailedBefore}, acts: []Role{RolePromoter}},
		{state: "failed", gate: "auto", warned: []WarningKind{WarnFailedBefore}, acts: []Role{RolePromoter}},
		{state: "aborted", gate: "manual", warned: []WarningKind{WarnFailedBefore}, acts: []Role{RolePromoter}},
		{state: "unhealthy", gate: "degraded", warned: []WarningKind{WarnTargetHealth}, acts: []Role{RolePromoter}},
		{state: "unhealthy", gate: "unknown", warned: []WarningKind{WarnTargetHealth}, acts: []Role{RolePromoter}},
		{state: "unhealthy", gate: "healthy", acts: []Role{RolePromoter}},
	} {
		t.Run(c.state+"/"+c.gate, func(t *testing.T) {
			o, ns := offline(t, filepath.Join("testdata", "states", c.state))
			p := preview(t, o, PreviewQuery{Namespace: ns, Gate: c.gate, Bundle: c.bundle})
			if c.refused == nil {
				c.refused = []RefusalReason{}
			}
			if got := reasons(p); !slices.Equal(got, c.refused) {
				t.Errorf("refused for %v, want %v", got, c.refused)
			}
			for _, k := range c.warned {
				if !slices.Contains(warned(p), k) {
					t.Errorf("no warning %s among %v", k, warned(p))
				}
			}
			if c.acts != nil && !slices.Equal(acts(p), c.acts) {
				t.Errorf("who must act: %+v, want %v", p.WhoMustAct, c.acts)
			}
			for _, r := range p.Refusals {
				if r.Reason == RefusedWindow && (r.OpensAt == nil) {
					t.Errorf("a closed window that does not say when it opens: %+v", r)
				}
				if r.Reason == RefusedCrossing && (r.Object == nil || r.Object.Kind != "Passage" || !strings.Contains(r.Detail, r.Object.Name)) {
					t.Errorf("the Passage is not named: %+v", r)
				}
			}
		})
	}
}

func TestPreviewOfANamedBundle(t *testing.T) {
	for _, c := range []struct {
		folder, gate, bundle string
		refused              []RefusalReason
		warned               []WarningKind
	}{
		{"shop", "other", "web-2", []RefusalReason{RefusedNotAdmitted}, []WarningKind{}},
		{"shop", "plain", "web-1", []RefusalReason{RefusedCurrent}, []WarningKind{}},
		{"shop", "plain", "web-2", []RefusalReason{}, []WarningKind{}},
		{"rollback", "dev", "web-1", []RefusalReason{}, []WarningKind{WarnRollback, WarnUndone}},
		{"rollback", "manual", "web-1", []RefusalReason{}, []WarningKind{WarnRollback}},
	} {
		t.Run(c.folder+"/"+c.gate+"/"+c.bundle, func(t *testing.T) {
			o, ns := offline(t, filepath.Join("testdata", "evidence", c.folder))
			p := preview(t, o, PreviewQuery{Namespace: ns, Gate: c.gate, Bundle: c.bundle})
			if got := reasons(p); !slices.Equal(got, c.refused) {
				t.Errorf("refused for %v, want %v", got, c.refused)
			}
			if got := warned(p); !slices.Equal(got, c.warned) {
				t.Errorf("warned of %v, want %v", got, c.warned)
			}
		})
	}
}

func TestPreviewNames(t *testing.T) {
	o, ns := offline(t, "testdata/evidence/shop")
	_, err := o.Preview(context.Background(), PreviewQuery{Namespace: ns, Gate: "plain", Bundle: "web"})
	var missing *NotFoundError
	if !errors.As(err, &missing) || missing.Object.Kind != "Bundle" || len(missing.Candidates) != 4 {
		t.Errorf("a part of a Bundle's name: %v", err)
	}
	if _, err = o.Preview(context.Background(), PreviewQuery{Namespace: ns, Gate: "nowhere"}); !IsNotFound(err) {
		t.Errorf("no such Gate: %v", err)
	}
	if _, err = o.Preview(context.Background(), PreviewQuery{Namespace: ns, Gate: "er"}); !IsAmbiguous(err) {
		t.Errorf("other and serverless: %v", err)
	}
	if p := preview(t, o, PreviewQuery{Namespace: ns, Gate: "prod"}); p.Gate != "production" || p.Bundle != "web-4" {
		t.Errorf("a unique part gives %s, %s", p.Gate, p.Bundle)
	}
}

// TestPinHoldsStill: only what the decision rests on moves a plan.
func TestPinHoldsStill(t *testing.T) {
	query := PreviewQuery{Namespace: "shop", Gate: "production", Bundle: "web-2"}
	digest := func(replace ...string) string {
		o, _ := offline(t, "testdata/evidence/shop", replace...)
		return preview(t, o, query).Pin.Digest()
	}
	base := digest()
	for name, replace := range map[string][]string{
		"a health report":       {"2026-12-01T11:59:30Z", "2026-12-01T11:59:59Z"},
		"a Secret":              {"stringData: {token: \"\"}", "stringData: {other: \"\"}"},
		"the clock":             {"2026-12-01T12:00:00Z", "2026-12-01T12:00:30Z"},
		"another Gate":          {"name: plain,", "name: plane,"},
		"when it was approved":  {"2026-11-30T12:00:00Z", "2026-11-30T12:30:00Z"},
		"an unrelated approval": {"{gate: production, actor: approver@example.com", "{gate: plain, actor: x@example.com, at: \"2026-11-30T12:00:00Z\"}\n    - {gate: production, actor: approver@example.com"},
	} {
		if digest(replace...) != base {
			t.Errorf("%s moves the plan", name)
		}
	}
	for name, replace := range map[string][]string{
		"the Gate's UID":    {"uid: gate-production", "uid: gate-again"},
		"the generation":    {"uid: gate-production, generation: 2", "uid: gate-production, generation: 3"},
		"the approval":      {"    approvedFor:\n    - {gate: production, actor: approver@example.com, at: \"2026-11-30T12:00:00Z\"}\n", ""},
		"the approver":      {"actor: approver@", "actor: somebody@"},
		"the steps":         {"maxRisk: 30", "maxRisk: 40"},
		"the current":       {"{bundle: web-1, enteredAt", "{bundle: web-3, enteredAt"},
		"what is upstream":  {"after: [staging]", "after: [staging, plain]"},
		"the Bundle's UID":  {"uid: bundle-web-2", "uid: bundle-again"},
		"a running Passage": {"- apiVersion: v1\n  kind: Secret", "- apiVersion: hecate.dev/v1alpha1\n  kind: Passage\n  metadata: {name: production-x, namespace: shop, uid: p, labels: {hecate.dev/gate: production}}\n  spec: {gate: production, bundle: web-2, steps: [{uses: http}]}\n- apiVersion: v1\n  kind: Secret"},
	} {
		if digest(replace...) == base {
			t.Errorf("%s does not move the plan", name)
		}
	}
}
