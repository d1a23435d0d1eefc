package ops

import (
	"cmp"
	"maps"
	"slices"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// packetGate is whose approval the packet of an Evidence is about: the Gate
// asked for, else the first Gate that waits for an approval of b, else the
// first one asked. nil when there is none.
func packetGate(e *estate, b *v1alpha1.Bundle, through *v1alpha1.Gate, answers []evidenceAnswer) *v1alpha1.Gate {
	if through != nil {
		return through
	}
	for i := range e.gates {
		if g := &e.gates[i]; g.Namespace == b.Namespace && gate.Judge(g, b).NeedsApproval {
			return g
		}
	}
	if len(answers) > 0 {
		return answers[0].gates[0]
	}
	return nil
}

// artifactsFor are the images as the view of g sees them, else any view's.
func artifactsFor(g *v1alpha1.Gate, answers []evidenceAnswer) []ArtifactEvidence {
	for _, a := range answers {
		if slices.Contains(a.gates, g) {
			return a.view.Artifacts
		}
	}
	if i := slices.IndexFunc(answers, func(a evidenceAnswer) bool { return a.answered() }); i >= 0 {
		return answers[i].view.Artifacts
	}
	return nil
}

// packet puts together what an approver needs. Artifacts may be nil: nothing
// is then attested as far as anybody knows.
func packet(g *v1alpha1.Gate, b *v1alpha1.Bundle, artifacts []ArtifactEvidence) *Packet {
	verdict := gate.Judge(g, b)
	p := &Packet{Gate: g.Name, Bundle: b.Name, Digest: b.Spec.Digest, Required: verdict.NeedsApproval,
		Artifacts: []string{}, NotBy: []Exclusion{}, Attested: []string{}, Missing: []string{}, HumanSteps: []HumanStep{}}
	if verdict.Approval != nil {
		p.ApprovedBy = clean(verdict.Approval.Actor, 120)
	}
	for _, a := range b.Spec.Artifacts {
		p.Artifacts = append(p.Artifacts, pinnedName(a))
	}
	add := func(list *[]string, s string) {
		if !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	exclude := func(who string, why ExclusionReason) {
		if e := (Exclusion{who, why}); who != "" && !slices.Contains(p.NotBy, e) {
			p.NotBy = append(p.NotBy, e)
		}
	}
	checks := evidenceStep(g).checks
	several := len(artifacts) > 1
	of := func(a ArtifactEvidence, s string) string {
		if several {
			return a.Repo + ": " + s
		}
		return s
	}
	p.CommitterKnown = len(artifacts) > 0
	if len(artifacts) == 0 && len(images(b)) > 0 {
		add(&p.Missing, string(ConcludeUnknown)+": no evidence server answered for this Gate")
	}
	for _, a := range artifacts {
		committer := ""
		if vd := a.Verdict; vd != nil {
			for _, c := range vd.Failed {
				add(&p.Missing, of(a, "failing control "+controlText(c)))
			}
			for _, c := range vd.MissingEvidence {
				add(&p.Missing, of(a, "missing evidence for "+controlText(c)))
			}
			if sod := vd.SegregationOfDuties; sod != nil {
				committer = sod.Committer
				for _, d := range sod.Deployers {
					exclude(d, ExcludedDeployer)
				}
			}
			for _, d := range vd.Approvals.Deployers {
				exclude(d, ExcludedDeployer)
			}
		}
		p.CommitterKnown = p.CommitterKnown && committer != ""
		exclude(committer, ExcludedCommitter)
		for _, s := range a.Approvals {
			if s.Role == fides.RoleDeployer {
				exclude(s.By, ExcludedDeployer)
			}
		}
		for _, t := range slices.Sorted(maps.Keys(a.Types)) {
			if a.Types[t] {
				add(&p.Attested, of(a, t))
			} else {
				add(&p.Missing, of(a, "not compliant: "+t))
			}
		}
		for _, c := range a.Checks {
			// A check that this Gate does not run is nothing to approve.
			if c.Result == CheckFail && slices.Contains(checks, c.Check) {
				add(&p.Missing, of(a, string(c.Check)+": "+c.Detail))
			}
		}
		if a.Status == ArtifactRecorded { // without controls; its hold lines name them
			add(&p.Missing, of(a, "not asked; "+a.Detail+": attestations, sign-offs and committer are not recorded"))
			for _, h := range a.Hold {
				add(&p.Missing, of(a, h.Detail))
			}
		}
		switch a.Conclusion {
		case ConcludeNotAsked:
			add(&p.Missing, of(a, "NotAsked: which controls fail, and who committed, is not known until the change gate is asked (consultChangeGate)"))
		case ConcludeBrokenChain, ConcludeNoEvidence, ConcludeUnknown:
			add(&p.Missing, of(a, string(a.Conclusion)+": "+cmp.Or(a.Detail, string(a.Status))))
		}
	}
	slices.SortFunc(p.NotBy, func(a, b Exclusion) int { return cmp.Or(cmp.Compare(a.Who, b.Who), cmp.Compare(a.Why, b.Why)) })
	slices.Sort(p.Attested)
	if p.Required {
		if step := humanStep(approveCommand(g.Namespace, b.Name, g.Name), "approves "+b.Name+" for "+g.Name); step != nil {
			p.HumanSteps = append(p.HumanSteps, *step)
		}
	}
	return p
}

// pinnedName names an artifact with what pins it: who approves has to see that.
func pinnedName(a v1alpha1.Artifact) string {
	if a.Image != nil {
		return clean(ArtifactEvidence{Repo: a.Image.Repo, Tag: a.Image.Tag, Digest: a.Image.Digest}.image(), 300)
	}
	return artifactName(a)
}
