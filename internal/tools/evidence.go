package tools

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

type getEvidenceIn struct {
	Bundle string `json:"bundle" jsonschema_description:"exact name"`
	Gate   string `json:"gate,omitempty" jsonschema_description:"ask through this Gate; else through each distinct evidence server"`
	InNamespace
	Consult *bool `json:"consultChangeGate,omitempty" jsonschema_description:"default true; false asks only what cannot write"`
	InFormat
}

type getEvidenceOut struct {
	ops.Evidence
	Scope      Scope           `json:"scope" jsonschema_description:"cluster, mode, namespace, identity, asOf"`
	Warnings   []sourceWarning `json:"warnings,omitempty" jsonschema_description:"of the source: {kind, detail}"`
	NextSteps  []ops.NextStep  `json:"nextSteps,omitempty" jsonschema_description:"{tool, arguments, why}"`
	HumanSteps []ops.HumanStep `json:"humanSteps,omitempty" jsonschema_description:"by a person only: {command, why}"`
}

// Said names what the schemas of other tools spell out.
func (getEvidenceOut) Said() map[string]string {
	return map[string]string{
		"packet":           "what has to be approved, as in preview_promotion",
		"artifacts.checks": "as evidence of preview_promotion",
		"artifacts.hold":   "as hold of explain_gate",
		"incomplete":       "what could not be read: {code, object, detail}",
	}
}

var getEvidence = New(About{
	Name:    "get_evidence",
	Title:   "Evidence for a Bundle",
	Toolset: Promotion,
	// Reading the change gate can append a segregation-of-duties attestation to
	// the trail: not read-only, and not idempotent. It reaches a server that is
	// not the cluster's.
	Hints: Hints{OpenWorld: true},
	Description: "Why was (or would be) this Bundle allowed, and who allowed it? For every image: change-gate verdict, failing and missing controls, waivers, approvals, segregation of duties, hash chain, allowlist and policy, and the approval packet (what to approve, who may not, the person's command). " +
		"Asking the evidence server's change gate can append an attestation to the trail; consultChangeGate false avoids that.",
}, func(ctx context.Context, env *Env, in getEvidenceIn) (getEvidenceOut, error) {
	ns := env.namespace(in.Namespace)
	ev, err := env.Ops.Evidence(ctx, ops.EvidenceQuery{Namespace: ns, Bundle: in.Bundle, Gate: in.Gate, ConsultChangeGate: in.Consult == nil || *in.Consult})
	if err != nil {
		return getEvidenceOut{}, err
	}
	out := getEvidenceOut{Evidence: *ev, Scope: env.scope(ctx, ev.Namespace), Warnings: env.warnings()}
	if ev.Packet != nil {
		out.HumanSteps = ev.Packet.HumanSteps
	}
	if ev.Gate != "" {
		out.NextSteps = []ops.NextStep{{Tool: "preview_promotion", Arguments: map[string]string{"gate": ev.Gate, "bundle": ev.Bundle, "namespace": ev.Namespace}, Why: "whether it would cross"}}
	}
	if !in.detailed() {
		conciseEvidence(&out.Evidence, 5)
	}
	// A Bundle of dozens of images keeps every conclusion with its holds, checks
	// and concerns, and loses what stands behind them.
	if raw, err := encode(out); err != nil {
		return getEvidenceOut{}, err
	} else if len(raw) > ops.MaxPageBytes {
		conciseEvidence(&out.Evidence, 0)
	}
	return out, nil
}, func(w *Writer, out getEvidenceOut) {
	w.Summary(out.Summary)
	w.Fact("conclusion", string(out.Conclusion))
	for _, a := range out.Artifacts {
		w.Head(strings.TrimSuffix(a.Repo+":"+a.Tag, ":"))
		w.Fact("digest", a.Digest)
		w.Fact("status", string(a.Status)+" / "+string(a.Conclusion))
		w.Fact("trail", a.Trail)
		w.Fact("detail", a.Detail)
		if v := a.Verdict; v != nil {
			w.Fact("verdict", fmt.Sprintf("%s, risk %d (%s)", v.Recommendation, v.RiskScore, v.RiskLevel))
			w.Fact("passed", strings.Join(v.Passed, ", "))
			for _, f := range v.Failed {
				w.Fact("failed", f.Control+" "+f.Name+" ("+strings.Join(f.Reasons, ", ")+")")
			}
			for _, f := range v.MissingEvidence {
				w.Fact("missing", f.Control+" "+f.Name+" ("+strings.Join(f.Reasons, ", ")+")")
			}
			for _, f := range v.Waived {
				w.Fact("waived", fmt.Sprintf("%s %s by %s until %s", f.Control, f.Name, f.ApprovedBy, f.ExpiresAt.UTC().Format(time.RFC3339)))
			}
		}
		for _, h := range a.Hold {
			w.Item("%s  %s", w.Code(string(h.Kind)), h.Detail)
		}
		if a.Chain != nil {
			w.Fact("hash chain", string(a.Chain.Status)+" "+a.Chain.Detail)
		}
		for _, c := range a.Checks {
			w.Item("%s  %s  %s", c.Check, c.Result, c.Detail)
		}
		for _, p := range a.Approvals {
			w.Item("%s as %s (%s) at %s", p.By, p.Role, p.Kind, p.At.UTC().Format(time.RFC3339))
		}
		for _, c := range a.Concerns {
			w.Item("%s  %s", w.Code(string(c.Kind)), c.Detail)
		}
	}
	for i, v := range out.Views {
		if i > 0 { // the first view's images stand above
			w.Fact("also asked", fmt.Sprintf("%s, environment %s (%s): %s %s", v.Server, v.Environment, strings.Join(v.Gates, ", "), v.Conclusion, v.Detail))
		}
	}
	for _, a := range out.ApprovedIn {
		w.Fact("approved", fmt.Sprintf("for %s by %s at %s", a.Gate, a.Actor, a.At.UTC().Format(time.RFC3339)))
	}
	w.result(Result{Warnings: out.Warnings, Incomplete: unreads(out.Incomplete), NextSteps: out.NextSteps}, out.HumanSteps...)
})

// conciseEvidence keeps the verdicts and the first few of the lists behind them;
// keep 0 also drops each image's verdict, whose holds and conclusion stay.
func conciseEvidence(ev *ops.Evidence, keep int) {
	trim := func(as []ops.ArtifactEvidence) {
		for i := range as {
			a := &as[i]
			if n := len(a.Attestations) - keep; n > 0 {
				a.Attestations, a.MoreAttestations = a.Attestations[:keep], a.MoreAttestations+n
			}
			if keep == 0 {
				a.Verdict, a.Approvals = nil, nil
			}
		}
	}
	trim(ev.Artifacts)
	for i := range ev.Views {
		trim(ev.Views[i].Artifacts)
	}
}

type previewIn struct {
	Gate   string `json:"gate" jsonschema_description:"exact name or a unique part"`
	Bundle string `json:"bundle,omitempty" jsonschema_description:"exact name; left out: the newest not yet in"`
	InNamespace
	Consult bool `json:"consultChangeGate,omitempty" jsonschema_description:"default false; true may write an attestation to the trail"`
	InFormat
}

type previewOut struct {
	ops.Preview
	Scope      Scope           `json:"scope" jsonschema_description:"cluster, mode, namespace, identity, asOf"`
	NextSteps  []ops.NextStep  `json:"nextSteps,omitempty" jsonschema_description:"{tool, arguments, why}"`
	HumanSteps []ops.HumanStep `json:"humanSteps,omitempty" jsonschema_description:"by a person only: {command, why}"`
}

// Said names what the schemas of other tools spell out.
func (previewOut) Said() map[string]string {
	return map[string]string{
		"incomplete":    "what could not be read: {code, object, detail}",
		"evidence.hold": "as hold of explain_gate",
	}
}

var previewPromotion = New(About{
	Name:    "preview_promotion",
	Title:   "Would this promotion cross?",
	Toolset: Promotion,
	// With consultChangeGate it may write to the trail, so it is not read-only
	// under every argument; the hint has to hold for all of them.
	Hints: Hints{OpenWorld: true},
	Description: "Would this Bundle cross this Gate now? Every refusal of the rules at once, warnings a person must see before saying yes, what the Gate's evidence step would find (assert, allowlist, policy, change, maxRisk), when a window opens, who still has to act, and the approval packet. Opens nothing. " +
		"The change gate is asked only with consultChangeGate, since asking can write.",
}, func(ctx context.Context, env *Env, in previewIn) (previewOut, error) {
	ns := env.namespace(in.Namespace)
	p, err := env.Ops.Preview(ctx, ops.PreviewQuery{Namespace: ns, Gate: in.Gate, Bundle: in.Bundle, ConsultChangeGate: in.Consult})
	if err != nil {
		return previewOut{}, err
	}
	out := previewOut{Preview: *p, Scope: env.scope(ctx, p.Namespace)}
	out.Warnings = env.withWarnings(out.Warnings)
	for _, a := range p.WhoMustAct {
		if a.Command != nil {
			out.HumanSteps = append(out.HumanSteps, *a.Command)
		}
	}
	for _, r := range p.Refusals {
		if r.Reason == ops.RefusedUpstream || r.Reason == ops.RefusedNoBundle || r.Reason == ops.RefusedCrossing {
			out.NextSteps = append(out.NextSteps, ops.NextStep{Tool: "explain_gate", Arguments: map[string]string{"gate": p.Gate, "namespace": p.Namespace}, Why: "the chain to the root cause"})
			break
		}
	}
	if p.Packet != nil && p.Packet.Required && !in.Consult && len(p.Evidence) > 0 {
		out.NextSteps = append(out.NextSteps, ops.NextStep{Tool: "get_evidence", Arguments: map[string]string{"bundle": p.Bundle, "gate": p.Gate, "namespace": p.Namespace},
			Why: "failing controls and who may not approve, in full; asking may write an attestation to the trail"})
	} else if len(p.Evidence) > 0 && p.Bundle != "" {
		out.NextSteps = append(out.NextSteps, ops.NextStep{Tool: "get_evidence", Arguments: map[string]string{"bundle": p.Bundle, "gate": p.Gate, "namespace": p.Namespace}, Why: "the evidence in full"})
	}
	return out, nil
}, func(w *Writer, out previewOut) {
	w.Summary(out.Summary)
	w.Fact("verdict", string(out.Verdict))
	if len(out.Refusals) > 0 {
		w.Head("refusals")
		for _, r := range out.Refusals {
			w.Item("%s  %s", w.Code(string(r.Reason)), r.Detail)
			if r.Fix != "" {
				w.Sub("fix: %s", r.Fix)
			}
		}
	}
	if len(out.Preview.Evidence) > 0 {
		w.Head("evidence")
		for _, c := range out.Preview.Evidence {
			w.Item("%s  %s  %s  %s", c.Check, c.Result, c.Digest[:min(len(c.Digest), len("sha256:")+12)], c.Detail)
		}
	}
	if len(out.WhoMustAct) > 0 {
		w.Head("who has to act")
		for _, a := range out.WhoMustAct {
			w.Item("%s: %s", a.Who, a.What)
		}
	}
	if p := out.Packet; p != nil {
		w.Head("approval packet")
		switch {
		case p.ApprovedBy != "":
			w.Fact("approved", p.Bundle+" for "+p.Gate+" by "+p.ApprovedBy)
		case p.Required:
			w.Fact("approve", p.Bundle+" for "+p.Gate)
		default:
			w.Fact("approval", "not needed for "+p.Gate)
		}
		w.Fact("contains", strings.Join(p.Artifacts, ", "))
		for _, x := range p.NotBy {
			w.Fact("not by", x.Who+" ("+string(x.Why)+")")
		}
		w.Fact("attested", strings.Join(p.Attested, ", "))
		w.Fact("missing", strings.Join(p.Missing, ", "))
	}
	w.tail(out.Warnings, out.Incomplete, out.NextSteps, out.HumanSteps)
})
