package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// controllerActor is who asks for an automatic crossing.
const controllerActor = "controller"

// fail makes the outcome of a failed evidence step.
func fail(reason, format string, args ...any) outcome {
	return outcome{reason: reason, message: evidenceStep + ": " + fmt.Sprintf(format, args...)}
}

// dial makes a client of a Gate's evidence server.
func (b *beat) dial(g *v1alpha1.Gate) (*fides.Client, error) {
	e := g.Spec.Evidence
	if e == nil {
		return nil, errors.New("there is no evidence.fidesEnvironment")
	}
	if e.CredentialsRef == nil {
		return nil, errors.New("there is no evidence.credentialsRef")
	}
	var secret corev1.Secret
	if err := b.world.Get(context.Background(), client.ObjectKey{Namespace: g.Namespace, Name: e.CredentialsRef.Name}, &secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", g.Namespace, e.CredentialsRef.Name, err)
	}
	return fides.New(fides.Config{BaseURL: e.ServerURL, Token: string(secret.Data["token"]), HTTPClient: b.world.HTTPClient})
}

// evidence asks the demo's evidence server as the real step asks a real one.
func (b *beat) evidence(p *v1alpha1.Passage, bundle *v1alpha1.Bundle, i int) outcome {
	g := b.gateOf(p)
	if g == nil {
		return fail("InvalidConfig", "Gate %s does not exist", p.Spec.Gate)
	}
	spec, err := gate.ParseEvidence(p.Spec.Steps[i])
	if err != nil {
		return fail("InvalidConfig", "%v", err)
	}
	server, err := b.dial(g)
	if err != nil {
		return fail("InvalidConfig", "Gate %s: %v", g.Name, err)
	}
	var digests []string
	for _, a := range bundle.Spec.Artifacts {
		if a.Image != nil && a.Image.Digest != "" {
			digests = append(digests, a.Image.Digest)
		}
	}
	if len(digests) == 0 {
		return fail("NoEvidence", "the Bundle pins no image digests")
	}
	first, err := server.ArtifactByDigest(context.Background(), digests[0])
	switch {
	case err != nil:
		return fail("EvidenceUnavailable", "finding the trail: %v", err)
	case first.State == fides.NotRegistered:
		return fail("NoEvidence", "the evidence server has no record of %s", digests[0])
	case first.State != fides.OnTrail:
		return fail("NoEvidence", "%s is on no trail", digests[0])
	}
	a := asking{server: server, environment: g.Spec.Evidence.FidesEnvironment, trail: first.TrailID, digests: digests}
	ref := &v1alpha1.EvidenceRef{Trail: first.TrailID}
	last := outcome{message: "compliant"}
	for _, check := range spec.Gates {
		switch check {
		case "assert":
			last = a.assert()
		case "allowlist":
			last = a.allowlist()
		case "policy":
			last = a.policy()
		case "change":
			last = a.change(p, spec, b.since(p.Status.Steps[i].StartedAt) > spec.HoldTimeout)
		}
		if last.evidence == nil {
			last.evidence = ref
		}
		if last.reason != "" || last.waits {
			break
		}
	}
	return last
}

type asking struct {
	server             *fides.Client
	environment, trail string
	digests            []string
}

func (a asking) assert() outcome {
	for _, d := range a.digests {
		v, err := a.server.Compliance(context.Background(), d)
		switch {
		case fides.CodeOf(err) == fides.NotFound:
			return fail("NoEvidence", "the evidence server has no record of %s", d)
		case err != nil:
			return fail("EvidenceUnavailable", "asserting policy compliance: %v", err)
		case !v.Compliant:
			return fail("NotCompliant", "%s is not compliant: %s", d, strings.Join(v.Violations, "; "))
		}
	}
	return outcome{message: "compliant"}
}

func (a asking) allowlist() outcome {
	for _, d := range a.digests {
		v, err := a.server.AllowlistCheck(context.Background(), a.environment, d)
		switch {
		case err != nil:
			return fail("EvidenceUnavailable", "checking the allowlist: %v", err)
		case !v.Approved:
			return fail("NotAllowlisted", "%s is not on this environment's allowlist", d)
		}
	}
	return outcome{message: "allowlisted"}
}

func (a asking) policy() outcome {
	v, err := a.server.PolicyCheck(context.Background(), a.environment, a.trail)
	if err != nil {
		return fail("EvidenceUnavailable", "checking the environment's policies: %v", err)
	}
	if v.Compliant {
		return outcome{message: "policies satisfied"}
	}
	var missing []string
	for _, r := range v.Results {
		if r.Applies && len(r.Missing) > 0 {
			missing = append(missing, fmt.Sprintf("%s (missing %s)", r.Policy, strings.Join(r.Missing, ", ")))
		}
	}
	out := fail("NotCompliant", "the environment policy is not satisfied: %s", strings.Join(missing, "; "))
	out.output = map[string]any{"trail": a.trail}
	return out
}

// change asks the change gate, after it has recorded a person as deployer.
func (a asking) change(p *v1alpha1.Passage, spec gate.EvidenceSpec, overdue bool) outcome {
	if out := a.deployer(p.Spec.Actor); out.reason != "" {
		return out
	}
	v, err := a.server.ChangeGate(context.Background(), a.trail)
	if err != nil {
		return fail("EvidenceUnavailable", "asking the change gate: %v", err)
	}
	risk := int32(v.RiskScore)
	blockers := blockersOf(v)
	ref := &v1alpha1.EvidenceRef{Trail: a.trail, Verdict: v.Recommendation, Risk: &risk, Blockers: blockers}
	said := strings.Join(blockers, "; ")
	var out outcome
	switch {
	case spec.MaxRisk != nil && v.RiskScore > *spec.MaxRisk:
		out = fail("NotCompliant", "risk score %d exceeds the Gate's maxRisk of %d", v.RiskScore, *spec.MaxRisk)
		out.final = true
	case v.Approves():
		out.message = fmt.Sprintf("change approved, risk %d (%s)", v.RiskScore, v.RiskLevel)
	case overdue:
		out = fail("ChangeHeld", "the change gate has withheld approval for longer than holdTimeout (%s): %s", spec.HoldTimeout, said)
		out.final = true
	default:
		out = outcome{waits: true, message: fmt.Sprintf("change gate is holding (risk %d): %s", v.RiskScore, said)}
	}
	out.evidence = ref
	out.output = map[string]any{"risk": v.RiskScore, "trail": a.trail, "verdict": v.Recommendation}
	return out
}

// deployer records who asked for the crossing, once.
func (a asking) deployer(actor string) outcome {
	if actor == "" || actor == controllerActor {
		return outcome{}
	}
	known, err := a.server.Approvals(context.Background(), a.trail)
	if err != nil {
		return fail("EvidenceUnavailable", "reading the approvals: %v", err)
	}
	if slices.ContainsFunc(known, func(x fides.Approval) bool { return x.Role == fides.RoleDeployer && x.ApprovedBy == actor }) {
		return outcome{}
	}
	r, err := a.server.Approve(context.Background(), a.trail, fides.ApprovalRequest{Role: fides.RoleDeployer, OnBehalfOf: actor})
	switch {
	case err != nil:
		return fail("EvidenceUnavailable", "recording the deployer: %v", err)
	case !r.Human():
		return fail("InvalidConfig", "the deployer approval for %s was stored as %q, so that the change gate does not count it", actor, r.Kind)
	}
	return outcome{}
}

func blockersOf(v fides.ChangeVerdict) []string {
	if v.Approves() {
		return nil
	}
	var out []string
	for _, f := range v.Failed {
		out = append(out, fmt.Sprintf("failing control %s %s (%s)", f.Control, f.Name, strings.Join(f.Reasons, ", ")))
	}
	for _, f := range v.MissingEvidence {
		out = append(out, fmt.Sprintf("missing evidence for %s %s (%s)", f.Control, f.Name, strings.Join(f.Reasons, ", ")))
	}
	if len(out) == 0 {
		out = append(out, "awaiting a human approval")
	}
	return out
}

// attest leaves the crossing on its trail, as the controller does once and
// without looking at the answer.
func (b *beat) attest(p *v1alpha1.Passage) {
	g, bundle := b.gateOf(p), b.bundle(p.Namespace, p.Spec.Bundle)
	if g == nil || g.Spec.Evidence == nil || bundle == nil || p.Status.Evidence == nil || p.Status.Evidence.Trail == "" {
		return
	}
	_ = b.record(g, p, bundle)
}

func (b *beat) record(g *v1alpha1.Gate, p *v1alpha1.Passage, bundle *v1alpha1.Bundle) error {
	server, err := b.dial(g)
	if err != nil {
		return err
	}
	type step struct {
		Uses    string             `json:"uses"`
		As      string             `json:"as,omitempty"`
		Phase   v1alpha1.StepPhase `json:"phase"`
		Reason  string             `json:"reason,omitempty"`
		Message string             `json:"message,omitempty"`
	}
	var steps []step
	for _, s := range p.Status.Steps {
		steps = append(steps, step{s.Uses, s.As, s.Phase, s.Reason, s.Message})
	}
	payload, err := json.Marshal(map[string]any{
		"passage": p.Name, "namespace": p.Namespace, "gate": p.Spec.Gate, "bundle": p.Spec.Bundle,
		"bundleDigest": bundle.Spec.Digest, "outcome": p.Status.Phase, "actor": p.Spec.Actor, "message": p.Status.Message,
		"startedAt": p.Status.StartedAt, "finishedAt": p.Status.FinishedAt, "steps": steps,
	})
	if err != nil {
		return err
	}
	for _, a := range bundle.Spec.Artifacts {
		if a.Image == nil || a.Image.Digest == "" {
			continue
		}
		sha, err := fides.NormalizeDigest(a.Image.Digest)
		if err != nil {
			return err
		}
		_, err = server.Attest(context.Background(), fides.NewAttestation{
			TrailID: p.Status.Evidence.Trail, ArtifactSHA256: sha, Name: fides.TypePromotion, TypeName: fides.TypePromotion,
			Payload: string(payload), SignedBy: "hecate",
		})
		return err
	}
	return errors.New("the Bundle pins no image digests")
}
