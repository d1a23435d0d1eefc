package ops

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// Evidence answers "why was this Bundle allowed, and who allowed it?" for every
// image of the Bundle, through the Gate of the query or through every distinct
// server and environment of the Gates that admit the Bundle; one that is dead
// does not hide another's answer.
//
// That there is no evidence is an answer (Evidence.Status), not an error. A
// Bundle or Gate that does not exist is a NotFoundError. Nothing is asked when
// o.DialFides is nil: the answer is then what the objects recorded.
func (o *Ops) Evidence(ctx context.Context, q EvidenceQuery) (*Evidence, error) {
	e, err := o.load(ctx, q.Namespace, noPassages)
	if err != nil {
		return nil, err
	}
	var through *v1alpha1.Gate
	if q.Gate != "" {
		if through, err = e.findGate(q.Namespace, q.Gate); err != nil {
			return nil, err
		}
	}
	namespace := q.Namespace
	if through != nil {
		namespace = through.Namespace
	}
	b, err := e.bundle(namespace, q.Bundle)
	if err != nil {
		return nil, err
	}
	out := &Evidence{
		Bundle: q.Bundle, Namespace: namespace, Status: ArtifactUnavailable, Conclusion: ConcludeUnknown,
		ApprovedIn: []v1alpha1.BundleApproval{}, Artifacts: []ArtifactEvidence{}, Views: []EvidenceView{}, Incomplete: []Incomplete{},
	}
	out.Incomplete = append(out.Incomplete, e.incomplete...)
	if b == nil {
		out.Unavailable = "the Bundles could not be read"
		out.Summary = out.summarise()
		return out, nil
	}
	out.Namespace = b.Namespace
	for _, a := range b.Status.ApprovedFor {
		a.Gate, a.Actor = clean(a.Gate, 253), clean(a.Actor, 120)
		out.ApprovedIn = append(out.ApprovedIn, a)
	}
	passages, err := o.listPassages(ctx, b.Namespace, ofBundle(b.Name))
	if err != nil {
		out.Incomplete = append(out.Incomplete, incomplete(err, hecate(v1alpha1.KindPassage, b.Namespace, "")))
	}
	var recorded []*v1alpha1.Passage
	for i := range passages {
		recorded = append(recorded, &passages[i])
	}
	if through == nil && e.unread(v1alpha1.KindGate, b.Namespace) {
		out.Unavailable = "the Gates of namespace " + b.Namespace + " could not be read"
		out.Summary = out.summarise()
		return out, nil
	}
	answers := o.askViews(ctx, viewsOf(e, b, through, o.FidesServer), b, recorded, q.ConsultChangeGate)
	out.fill(b, answers)
	for _, a := range answers {
		out.Incomplete = append(out.Incomplete, a.incomplete...)
	}
	if g := packetGate(e, b, through, answers); g != nil {
		out.Packet = packet(g, b, artifactsFor(g, answers))
	}
	out.Summary = out.summarise()
	return out, nil
}

// ofBundle selects a Bundle's Passages by label.
func ofBundle(name string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{v1alpha1.LabelBundle: name})
}

// fill puts the views into the answer, the first one that answered at the top.
func (out *Evidence) fill(b *v1alpha1.Bundle, answers []evidenceAnswer) {
	if len(answers) == 0 {
		out.Status, out.Conclusion = ArtifactNotConfigured, ConcludeUnknown
		out.Unavailable = "no Gate that admits this Bundle has evidence configured"
		for _, img := range images(b) {
			out.Artifacts = append(out.Artifacts, img.evidence(statusWithout(img, ArtifactNotConfigured), ""))
		}
		if first := firstOf(out.Artifacts); first != nil {
			out.Digest = first.Digest
		}
		return
	}
	first := max(0, slices.IndexFunc(answers, func(a evidenceAnswer) bool { return a.answered() }))
	ordered := append([]evidenceAnswer{answers[first]}, slices.Delete(slices.Clone(answers), first, first+1)...)
	for i, a := range ordered {
		view := a.view
		if i == 0 {
			out.Artifacts, view.Artifacts = view.Artifacts, nil
			out.Status, out.Conclusion, out.Gate = view.Status, view.Conclusion, view.Gates[0]
			if !a.answered() {
				out.Unavailable = view.Detail
			}
		}
		// What another server or environment says of the same Bundle counts as
		// much: a broken chain there outranks an approval here.
		if order := Codes(Conclusions); a.answered() && slices.Index(order, view.Conclusion) < slices.Index(order, out.Conclusion) {
			out.Conclusion = view.Conclusion
		}
		out.Views = append(out.Views, view)
	}
	if f := firstOf(out.Artifacts); f != nil {
		out.Digest, out.Trail, out.Verdict = f.Digest, f.Trail, f.Verdict
		if out.Unavailable == "" && f.Trail == "" {
			out.Unavailable = f.Detail
		}
	} else if out.Unavailable == "" {
		out.Unavailable = "the Bundle holds no image"
	}
}

// firstOf is the first image that pins a digest: the one whose trail the Gate's
// evidence step looks at. nil when none does.
func firstOf(as []ArtifactEvidence) *ArtifactEvidence {
	for i := range as {
		if as[i].Digest != "" {
			return &as[i]
		}
	}
	if len(as) > 0 {
		return &as[0]
	}
	return nil
}

// summarise says the answer in one line.
func (out *Evidence) summarise() string {
	through := ""
	if out.Gate != "" {
		through = " through " + out.Gate
	}
	if out.Unavailable != "" {
		return fmt.Sprintf("%s%s: %s: %s", out.Bundle, through, out.Status, out.Unavailable)
	}
	if len(out.Views) > 0 && out.Views[0].Conclusion != out.Conclusion {
		for _, v := range out.Views[1:] {
			if v.Conclusion == out.Conclusion {
				return fmt.Sprintf("%s through %s: %s: %s (through %s: %s)", out.Bundle, strings.Join(v.Gates, ", "), v.Conclusion, v.Detail, out.Gate, out.Views[0].Conclusion)
			}
		}
	}
	say := fmt.Sprintf("%s%s: %s", out.Bundle, through, out.Conclusion)
	for _, a := range out.Artifacts {
		if a.Conclusion == out.Conclusion && a.Detail != "" {
			return say + ": " + a.image() + ": " + a.Detail
		}
	}
	return say
}

// source is one evidence server and environment, with the Gates that use it.
type source struct {
	server      string // as configured; never shown
	environment string
	gates       []*v1alpha1.Gate
}

// viewsOf groups the Gates to ask through: the one given, else those that admit
// the Bundle and have evidence. In the order of their first Gate's name.
func viewsOf(e *estate, b *v1alpha1.Bundle, through *v1alpha1.Gate, fallback string) []source {
	var out []source
	add := func(g *v1alpha1.Gate) {
		s := source{server: fallback, gates: []*v1alpha1.Gate{g}}
		if ev := g.Spec.Evidence; ev != nil {
			s.environment = strings.ToLower(ev.FidesEnvironment)
			s.server = cmp.Or(ev.ServerURL, fallback)
		}
		for i := range out {
			if shownURL(out[i].server) == shownURL(s.server) && out[i].environment == s.environment {
				out[i].gates = append(out[i].gates, g)
				return
			}
		}
		out = append(out, s)
	}
	if through != nil {
		add(through)
		return out
	}
	for i := range e.gates {
		if g := &e.gates[i]; g.Namespace == b.Namespace && g.Spec.Evidence != nil && gate.Admission(g, b.Spec.Beacon) != nil {
			add(g)
		}
	}
	return out
}

// shownURL is a server's address without credentials, query and fragment; ""
// when it is not an address.
func shownURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return ""
	}
	return strings.TrimSuffix((&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(), "/")
}

// evidenceAnswer is what one view gave.
type evidenceAnswer struct {
	view       EvidenceView
	gates      []*v1alpha1.Gate
	incomplete []Incomplete
}

// answered says whether the view knows anything.
func (a evidenceAnswer) answered() bool {
	return a.view.Status != ArtifactUnavailable && a.view.Status != ArtifactNotConfigured
}

// askViews asks every source at once, so that a dead one costs no other time.
func (o *Ops) askViews(ctx context.Context, sources []source, b *v1alpha1.Bundle, recorded []*v1alpha1.Passage, consult bool) []evidenceAnswer {
	out := make([]evidenceAnswer, len(sources))
	var wg sync.WaitGroup
	shared := &trails{}
	for i, s := range sources {
		wg.Go(func() { out[i] = o.askSource(ctx, s, b, recorded, consult, shared) })
	}
	wg.Wait()
	return out
}

// askGate asks through one Gate.
func (o *Ops) askGate(ctx context.Context, g *v1alpha1.Gate, b *v1alpha1.Bundle, recorded []*v1alpha1.Passage, consult bool) evidenceAnswer {
	return o.askSource(ctx, viewsOf(nil, b, g, o.FidesServer)[0], b, recorded, consult, &trails{})
}

// askSource asks one evidence server about every image, or says why not.
func (o *Ops) askSource(ctx context.Context, s source, b *v1alpha1.Bundle, recorded []*v1alpha1.Passage, consult bool, shared *trails) evidenceAnswer {
	a := evidenceAnswer{gates: s.gates, view: EvidenceView{Server: shownURL(s.server), Environment: s.environment, Gates: []string{}, Artifacts: []ArtifactEvidence{}}}
	for _, g := range s.gates {
		a.view.Gates = append(a.view.Gates, g.Name)
	}
	imgs := images(b)
	without := func(status ArtifactStatus, detail string) evidenceAnswer {
		for _, img := range imgs {
			a.view.Artifacts = append(a.view.Artifacts, img.evidence(statusWithout(img, status), detail))
		}
		a.conclude()
		a.view.Status, a.view.Detail = status, detail
		return a
	}
	if s.gates[0].Spec.Evidence == nil {
		return without(ArtifactNotConfigured, fmt.Sprintf("Gate %s has no spec.evidence", s.gates[0].Name))
	}
	if o.DialFides == nil {
		return a.fromRecord(b, imgs, recorded)
	}
	if s.server == "" {
		return without(ArtifactNotConfigured, fmt.Sprintf("Gate %s names no evidence server, and none is given as default", s.gates[0].Name))
	}
	token, status, inc := o.credentials(ctx, s.gates)
	if token == "" {
		a.incomplete = append(a.incomplete, inc...)
		return without(status, credentialDetail(s.gates[0], inc))
	}
	ask, err := o.dial(s, token, shared)
	if err != nil {
		return without(ArtifactNotConfigured, mask(err.Error(), token))
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	a.view.Artifacts = make([]ArtifactEvidence, len(imgs))
	var wg sync.WaitGroup
	limit := make(chan struct{}, 4)
	for i, img := range imgs {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			a.view.Artifacts[i] = ask.artifact(ctx, img, consult)
		})
	}
	wg.Wait()
	a.conclude()
	return a
}

// conclude takes the view's status from the first image, its conclusion from
// the worst, and notes what a Gate that looks at the first image only misses.
func (a *evidenceAnswer) conclude() {
	as := a.view.Artifacts
	a.view.Status, a.view.Conclusion = ArtifactNoDigest, ConcludeNoEvidence
	first := firstOf(as)
	if first == nil {
		a.view.Detail = "the Bundle holds no image"
		return
	}
	a.view.Status, a.view.Detail = first.Status, first.Detail
	order := Codes(Conclusions)
	worst := len(order) - 1
	for i := range as {
		at := slices.Index(order, as[i].Conclusion)
		worst = min(worst, at)
		if &as[i] != first && (as[i].Conclusion == ConcludeHold || as[i].Conclusion == ConcludeBrokenChain || as[i].Conclusion == ConcludeNoEvidence) {
			as[i].Concerns = append(as[i].Concerns, Concern{ConcernNotJudged, fmt.Sprintf("%s; the policy and change checks of a Gate look at the first image only", as[i].Conclusion)})
		}
	}
	a.view.Conclusion = order[worst]
}

// fromRecord is the snapshot's way: what Passages and Gates recorded for this
// Bundle, which speaks of the first image only.
func (a evidenceAnswer) fromRecord(b *v1alpha1.Bundle, imgs []image, passages []*v1alpha1.Passage) evidenceAnswer {
	ref, where := recordedBy(a.gates, b, passages)
	first := true
	for _, img := range imgs {
		switch {
		case img.hex == "":
			a.view.Artifacts = append(a.view.Artifacts, img.evidence(ArtifactNoDigest, ""))
			continue
		case first && ref != nil:
			ev := img.evidence(ArtifactRecorded, "as recorded by "+where)
			ev.Trail, ev.Conclusion = ref.Trail, ConcludeUnknown
			ev.Verdict = recordedVerdict(ref)
			switch ref.Verdict {
			case verdictHold:
				ev.Conclusion, ev.Hold = ConcludeHold, recordedHolds(ref.Blockers)
			case fides.RecommendApprove:
				ev.Conclusion = ConcludeApprove
			}
			a.view.Artifacts = append(a.view.Artifacts, ev)
		case first:
			a.view.Artifacts = append(a.view.Artifacts, img.evidence(ArtifactUnavailable, "nothing may be asked, and no object recorded evidence of this Bundle here"))
		default:
			a.view.Artifacts = append(a.view.Artifacts, img.evidence(ArtifactUnavailable, "nothing may be asked, and objects record the first image only"))
		}
		first = false
	}
	a.conclude()
	return a
}

// recordedBy is the newest evidence of b recorded at one of the Gates, and who
// recorded it: a Passage, else the Gate while the Passage is its active one.
func recordedBy(gates []*v1alpha1.Gate, b *v1alpha1.Bundle, passages []*v1alpha1.Passage) (*v1alpha1.EvidenceRef, string) {
	for _, p := range passages {
		if p.Spec.Bundle != b.Name {
			continue
		}
		for _, g := range gates {
			switch {
			case g.Name != p.Spec.Gate:
			case p.Status != nil && p.Status.Evidence != nil:
				return p.Status.Evidence, "Passage " + p.Name
			case g.Status.Evidence != nil && g.Status.ActivePassage == p.Name:
				return g.Status.Evidence, "Gate " + g.Name
			}
		}
	}
	return nil, ""
}
