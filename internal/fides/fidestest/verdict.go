package fidestest

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/hecate-mcp/hecate-mcp/internal/fides"
)

func (s *Server) changeGate(r *http.Request, _ caller) (int, any, error) {
	t, err := s.trail(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	v := s.verdict(t)
	// The answer is computed first: only the next one counts what this appends.
	s.chainDuties(t)
	return http.StatusOK, v, nil
}

// verdict judges a trail as the change gate does.
func (s *Server) verdict(t *Trail) fides.ChangeVerdict {
	v := fides.ChangeVerdict{TrailID: t.ID, Passed: []string{}, Failed: []fides.ControlFinding{},
		MissingEvidence: []fides.ControlFinding{}, Waived: []fides.WaivedControl{}}
	for _, c := range s.state.Controls {
		reasons, failed := t.open(c)
		switch waiver := s.waiver(c.Key); {
		case len(reasons) == 0:
			v.Passed = append(v.Passed, c.Key)
		case waiver != nil:
			v.Waived = append(v.Waived, fides.WaivedControl{Control: c.Key, Name: c.Name, Reason: waiver.Reason,
				ApprovedBy: waiver.ApprovedBy, ExpiresAt: waiver.ExpiresAt, WaivedReasons: reasons})
		case failed:
			v.Failed = append(v.Failed, fides.ControlFinding{Control: c.Key, Name: c.Name, Reasons: reasons})
		default:
			v.MissingEvidence = append(v.MissingEvidence, fides.ControlFinding{Control: c.Key, Name: c.Name, Reasons: reasons})
		}
	}
	v.Attestations.Total = len(t.Attestations)
	for _, a := range t.Attestations {
		if !a.Compliant {
			v.Attestations.NonCompliant++
		}
	}
	v.Approvals = t.signOffs()
	human := v.Approvals.HumanApprovers > 0
	v.RiskScore, v.RiskLevel = risk(len(v.Failed), len(v.MissingEvidence), v.Attestations.NonCompliant, human)
	v.Recommendation = fides.RecommendHold
	switch {
	case len(v.Failed) > 0:
		v.Summary = "Failing controls present — do not approve until remediated."
	case len(v.MissingEvidence) > 0:
		v.Summary = "Evidence is missing for some controls — approval requires the missing attestations."
	case !human:
		v.Summary = "Controls satisfied, but awaiting a human approval (segregation of duties)."
	default:
		v.Recommendation, v.Approved = fides.RecommendApprove, true
		v.Summary = "All controls satisfied by compliant evidence and a human sign-off is present; safe to approve."
	}
	duties := t.duties()
	v.SegregationOfDuties = &duties
	return v
}

// risk is 25 for each failed control, 15 for each with missing evidence, 10 for
// each non-compliant attestation and 20 without a human, at most 100.
func risk(failed, missing, nonCompliant int, human bool) (int, string) {
	score := 25*failed + 15*missing + 10*nonCompliant
	if !human {
		score += 20
	}
	score = min(score, 100)
	switch {
	case score >= 50:
		return score, "high"
	case score >= 20:
		return score, "medium"
	default:
		return score, "low"
	}
}

// open lists why a control is not satisfied, and whether something failed. A
// type is met only if every attestation of it is compliant.
func (t *Trail) open(c Control) (reasons []string, failed bool) {
	for _, kind := range c.Types {
		seen, bad := false, false
		for _, a := range t.Attestations {
			if a.Type == kind {
				seen, bad = true, bad || !a.Compliant
			}
		}
		switch {
		case !seen:
			reasons = append(reasons, "missing "+kind)
		case bad:
			reasons, failed = append(reasons, "failed "+kind), true
		}
	}
	return reasons, failed
}

func (s *Server) waiver(control string) *Waiver {
	for i := range s.state.Waivers {
		if w := &s.state.Waivers[i]; w.Control == control && s.Now().Before(w.ExpiresAt) {
			return w
		}
	}
	return nil
}

func (t *Trail) signOffs() fides.Approvers {
	out := fides.Approvers{Approvers: []string{}, Deployers: []string{}, Count: len(t.Approvals)}
	for _, a := range t.Approvals {
		if a.Kind == fides.KindSession {
			out.HumanApprovers++
		}
		if a.Role == fides.RoleDeployer {
			out.Deployers = append(out.Deployers, a.By)
		} else {
			out.Approvers = append(out.Approvers, a.By)
		}
	}
	out.FourEyes = out.HumanApprovers >= 2
	return out
}

// duties judges who did what; empty lists are null on the wire here.
func (t *Trail) duties() fides.SegregationOfDuties {
	signed := t.signOffs()
	out := fides.SegregationOfDuties{Committer: t.Committer}
	if len(signed.Approvers) > 0 {
		out.Approvers = signed.Approvers
	} else {
		out.Violations = append(out.Violations, "no approver recorded")
	}
	if len(signed.Deployers) > 0 {
		out.Deployers = signed.Deployers
	} else {
		out.Violations = append(out.Violations, "no deployer recorded")
	}
	if t.Committer == "" {
		out.Violations = append(out.Violations, "no committer recorded")
	} else {
		if slices.Contains(out.Approvers, t.Committer) {
			out.Violations = append(out.Violations, "committer "+t.Committer+" is also an approver")
		}
		if slices.Contains(out.Deployers, t.Committer) {
			out.Violations = append(out.Violations, "committer "+t.Committer+" is also a deployer")
		}
	}
	out.Compliant = len(out.Violations) == 0
	return out
}

// chainDuties appends the segregation-of-duties finding when the three roles
// are known (or two collide) and the finding is not the last one appended.
func (s *Server) chainDuties(t *Trail) {
	d := t.duties()
	complete := d.Committer != "" && len(d.Approvers) > 0 && len(d.Deployers) > 0
	if !complete && len(d.Collisions()) == 0 {
		return
	}
	payload, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings and a bool: cannot happen
	}
	for i := len(t.Attestations) - 1; i >= 0; i-- {
		if a := t.Attestations[i]; a.Type == fides.TypeSoD {
			if string(a.Payload) == string(payload) {
				return
			}
			break
		}
	}
	s.append(t, Attestation{Name: fides.TypeSoD, Type: fides.TypeSoD, Compliant: d.Compliant, Payload: payload})
}

func (s *Server) append(t *Trail, a Attestation) Attestation {
	a.ID, a.At = s.newID(), s.Now()
	t.Attestations = append(t.Attestations, a)
	s.writes++
	return a
}

func (s *Server) verifyChain(r *http.Request, _ caller) (int, any, error) {
	t, err := s.trail(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	if t.Chain != nil {
		return http.StatusOK, *t.Chain, nil
	}
	return http.StatusOK, fides.ChainVerdict{Valid: true, Count: len(t.Attestations), BrokenAt: -1}, nil
}

func (s *Server) policyCheck(r *http.Request, _ caller) (int, any, error) {
	e, err := s.environment(r.PathValue("env"))
	if err != nil {
		return 0, nil, err
	}
	id := r.URL.Query().Get("trail")
	if !uuidPattern.MatchString(id) {
		return 0, nil, refused{http.StatusBadRequest, "trail query param (UUID) is required"}
	}
	t, err := s.trail(id)
	if err != nil {
		return 0, nil, err
	}
	v := fides.PolicyVerdict{Compliant: true, TrailID: t.ID, Results: []fides.PolicyResult{}}
	for _, p := range e.Policies {
		result := fides.PolicyResult{Policy: p.Name, Applies: true, Missing: []string{}}
		for key, want := range p.FlowTags {
			if t.FlowTags[key] != want {
				result.Applies = false
			}
		}
		for _, kind := range p.Types {
			met := slices.ContainsFunc(t.Attestations, func(a Attestation) bool { return a.Type == kind && a.Compliant })
			if result.Applies && !met {
				result.Missing, v.Compliant = append(result.Missing, kind), false
			}
		}
		v.Results = append(v.Results, result)
	}
	return http.StatusOK, v, nil
}

func (s *Server) compliance(r *http.Request, _ caller) (int, any, error) {
	sha := r.URL.Query().Get("sha256")
	if sha == "" {
		return 0, nil, refused{http.StatusBadRequest, "missing sha256 query param"}
	}
	a := s.artifact(sha)
	if a == nil {
		return 0, nil, refused{http.StatusNotFound, "artifact not found"}
	}
	v := fides.ComplianceVerdict{SHA256: sha, Name: a.Name, Compliant: true} // violations null
	if t, err := s.trail(a.Trail); err == nil {
		for _, at := range t.Attestations {
			if !at.Compliant {
				v.Compliant = false
				v.Violations = append(v.Violations, "Failing control: "+at.Name+" (Type: "+at.Type+")")
			}
		}
	}
	return http.StatusOK, v, nil
}
