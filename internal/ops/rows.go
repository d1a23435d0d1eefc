package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

// BundleRow is one Bundle: what is in it, where it has been, what holds it.
type BundleRow struct {
	Bundle    string      `json:"bundle" jsonschema_description:"Bundle"`
	Namespace string      `json:"namespace" jsonschema_description:"namespace"`
	Beacon    string      `json:"beacon" jsonschema_description:"Beacon that emitted it"`
	Alias     string      `json:"alias,omitempty" jsonschema_description:"alias"`
	Created   metav1.Time `json:"created" jsonschema_description:"when it was emitted"`
	Age       string      `json:"age" jsonschema_description:"how old"`
	// Artifacts are repo:tag, chart:version or repo@sha, bounded.
	Artifacts []string     `json:"artifacts" jsonschema_description:"what is in it"`
	In        []string     `json:"in" jsonschema_description:"Gates that hold it now"`
	Cleared   []string     `json:"cleared" jsonschema_description:"Gates that it has cleared"`
	Approved  []string     `json:"approved,omitempty" jsonschema_description:"Gates that it is approved for, with who"`
	Blocked   []string     `json:"blocked,omitempty" jsonschema_description:"Gates where it failed or was aborted last"`
	Held      []BundleHold `json:"held,omitempty" jsonschema_description:"Gates that do not let it in yet, and why"`
	Digest    string       `json:"digest,omitempty" jsonschema_description:"content digest"`
}

// BundleHold is what keeps a Bundle out of one Gate.
type BundleHold struct {
	Gate   string   `json:"gate" jsonschema_description:"Gate"`
	Kinds  []string `json:"kinds" jsonschema_description:"codes"`
	Reason string   `json:"reason" jsonschema_description:"for people"`
}

// BundleRows lists Bundles newest first, narrowed to a Beacon, to Bundles whose
// name contains bundle, and to those that a Gate admits. Two LISTs. A Gate that
// cannot be read makes the answer incomplete.
func (o *Ops) BundleRows(ctx context.Context, namespace, beacon, bundle, gateName string) ([]BundleRow, []Incomplete, error) {
	e := newEstate(o.now())
	var bundles []v1alpha1.Bundle
	narrowed, err := o.inDefault(v1alpha1.KindBundle, namespace, func(ns string) (err error) { bundles, err = o.listBundles(ctx, ns); return err })
	if err != nil {
		return nil, nil, err
	}
	e.incomplete = append(e.incomplete, narrowed...)
	var gates []v1alpha1.Gate
	narrowed, err = o.inDefault(v1alpha1.KindGate, namespace, func(ns string) (err error) { gates, err = o.listGates(ctx, ns); return err })
	e.incomplete = append(e.incomplete, narrowed...)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, err
		}
		e.incomplete = append(e.incomplete, incomplete(err, hecate(v1alpha1.KindGate, namespace, "")))
	}
	e.addGates(gates)
	if gateName != "" && err == nil {
		g, err := e.findGate(namespace, gateName)
		if err != nil {
			return nil, nil, err
		}
		gateName = g.Name
	}
	beaconIs := meant(beacon, func(exact func(string) bool) bool {
		return slices.ContainsFunc(bundles, func(b v1alpha1.Bundle) bool { return exact(b.Spec.Beacon) })
	})
	rows := []BundleRow{}
	for i := range bundles {
		b := &bundles[i]
		if !beaconIs(b.Spec.Beacon) || !knownAs(b, bundle) {
			continue
		}
		row := bundleRow(b, e.now)
		admitted := gateName == ""
		for j := range e.gates {
			g := &e.gates[j]
			if g.Namespace != b.Namespace {
				continue
			}
			v := gate.Judge(g, b)
			if !v.Admitted {
				continue
			}
			admitted = admitted || g.Name == gateName
			if v.Current {
				row.In = append(row.In, g.Name)
			} else if !v.Eligible() && (gateName == "" || g.Name == gateName) {
				h := BundleHold{Gate: g.Name, Reason: v.Reason()}
				for _, c := range v.Codes() {
					h.Kinds = append(h.Kinds, string(c))
				}
				row.Held = append(row.Held, h)
			}
		}
		if admitted {
			rows = append(rows, row)
		}
	}
	return rows, e.incomplete, nil
}

// knownAs says whether a Bundle's name, alias or one of its versions contains
// what people call it.
func knownAs(b *v1alpha1.Bundle, want string) bool {
	if matches(b.Name, want) || matches(b.Spec.Alias, want) {
		return true
	}
	return slices.ContainsFunc(b.Spec.Artifacts, func(a v1alpha1.Artifact) bool {
		return (a.Image != nil && matches(a.Image.Tag, want)) || (a.Chart != nil && matches(a.Chart.Version, want)) ||
			(a.Commit != nil && (matches(a.Commit.Tag, want) || matches(a.Commit.SHA, want)))
	})
}

func bundleRow(b *v1alpha1.Bundle, now time.Time) BundleRow {
	row := BundleRow{Bundle: b.Name, Namespace: b.Namespace, Beacon: b.Spec.Beacon, Alias: clean(b.Spec.Alias, 100), Digest: b.Spec.Digest,
		Created: b.CreationTimestamp, Age: span(now.Sub(b.CreationTimestamp.Time)), Artifacts: []string{}, In: []string{}, Cleared: []string{}}
	for i, a := range b.Spec.Artifacts {
		if i == MaxNames {
			row.Artifacts = append(row.Artifacts, fmt.Sprintf("and %d more", len(b.Spec.Artifacts)-i))
			break
		}
		row.Artifacts = append(row.Artifacts, artifactName(a))
	}
	seen := map[string]bool{}
	for _, m := range b.Status.Cleared {
		if !seen[m.Gate] {
			seen[m.Gate] = true
			row.Cleared = append(row.Cleared, m.Gate)
		}
	}
	for _, a := range b.Status.ApprovedFor {
		row.Approved = append(row.Approved, a.Gate+" by "+clean(a.Actor, 80))
	}
	seen = map[string]bool{}
	for _, m := range b.Status.Blocked {
		if !seen[m.Gate] {
			seen[m.Gate] = true
			row.Blocked = append(row.Blocked, m.Gate)
		}
	}
	return row
}

// artifactName is an artifact in the form in which people write it.
func artifactName(a v1alpha1.Artifact) string {
	switch {
	case a.Image != nil && a.Image.Tag != "":
		return clean(a.Image.Repo+":"+a.Image.Tag, 150)
	case a.Image != nil:
		return clean(a.Image.Repo+"@"+a.Image.Digest, 200)
	case a.Chart != nil:
		return clean(strings.TrimSuffix(a.Chart.Repo+"/"+a.Chart.Name, "/")+":"+a.Chart.Version, 150)
	case a.Commit != nil:
		return clean(a.Commit.Repo+"@"+a.Commit.SHA, 200)
	}
	return "empty artifact"
}

// BeaconRow is one Beacon: what it watches, and whether it works.
type BeaconRow struct {
	Beacon    string `json:"beacon" jsonschema_description:"Beacon"`
	Namespace string `json:"namespace" jsonschema_description:"namespace"`
	Ready     string `json:"ready" jsonschema_description:"True, False or Unknown"`
	Reason    string `json:"reason,omitempty" jsonschema_description:"condition's reason"`
	Message   string `json:"message,omitempty" jsonschema_description:"condition's message"`
	// Cause is set when nothing comes from it, with the code explain uses.
	Cause      string       `json:"cause,omitempty" jsonschema_description:"why nothing comes from it"`
	Suspended  bool         `json:"suspended" jsonschema_description:"spec.suspend"`
	Emit       string       `json:"emit" jsonschema_description:"Automatic or Manual"`
	Interval   string       `json:"interval" jsonschema_description:"between polls"`
	LastPolled *metav1.Time `json:"lastPolled,omitempty" jsonschema_description:"last poll"`
	Latest     string       `json:"latest,omitempty" jsonschema_description:"newest Bundle it emitted"`
	Watches    []string     `json:"watches" jsonschema_description:"sources"`
}

// BeaconRows lists Beacons by namespace and name, narrowed to names that
// contain beacon. One LIST.
func (o *Ops) BeaconRows(ctx context.Context, namespace, beacon string) ([]BeaconRow, []Incomplete, error) {
	var beacons []v1alpha1.Beacon
	narrowed, err := o.inDefault(v1alpha1.KindBeacon, namespace, func(ns string) (err error) { beacons, err = o.listBeacons(ctx, ns); return err })
	if err != nil {
		return nil, nil, err
	}
	e := newEstate(o.now())
	e.addBeacons(beacons)
	rows := []BeaconRow{}
	for i := range beacons {
		b := &beacons[i]
		if !matches(b.Name, beacon) {
			continue
		}
		row := BeaconRow{Beacon: b.Name, Namespace: b.Namespace, Ready: string(metav1.ConditionUnknown), Suspended: b.Spec.Suspend, Emit: string(b.Spec.Emit),
			Interval: span(interval(b)), LastPolled: b.Status.LastPolled, Latest: b.Status.LatestBundle, Watches: []string{}}
		if row.Emit == "" {
			row.Emit = string(v1alpha1.EmitAutomatic)
		}
		if c := meta.FindStatusCondition(b.Status.Conditions, v1alpha1.ConditionReady); c != nil {
			row.Ready, row.Reason, row.Message = string(c.Status), c.Reason, cleanCause(c.Message, 300)
		}
		v := &view{e: e, g: &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: b.Namespace}}}
		if c := v.beaconCause(b.Name); c.change {
			row.Cause = c.code
		}
		for _, w := range b.Spec.Watch {
			row.Watches = append(row.Watches, sourceName(w))
		}
		rows = append(rows, row)
	}
	return rows, narrowed, nil
}

func sourceName(w v1alpha1.WatchSource) string {
	switch {
	case w.Image != nil:
		return clean(strings.TrimSpace("image "+w.Image.Repo+" "+w.Image.Constraint), 200)
	case w.Chart != nil:
		return clean(strings.TrimSpace("chart "+w.Chart.Repo+" "+w.Chart.Name+" "+w.Chart.Constraint), 200)
	case w.Git != nil:
		return clean(strings.TrimSpace("git "+w.Git.Repo+" "+w.Git.Branch), 200)
	case w.Provider != nil:
		return clean("provider "+w.Provider.Name, 200)
	}
	return "no source"
}

// PassageRow is one attempt.
type PassageRow struct {
	Passage   string `json:"passage" jsonschema_description:"Passage"`
	Namespace string `json:"namespace" jsonschema_description:"namespace"`
	Gate      string `json:"gate" jsonschema_description:"Gate"`
	Bundle    string `json:"bundle" jsonschema_description:"Bundle"`
	// Phase is Pending, Running, Succeeded, Failed or Aborted; New while no
	// controller has picked it up.
	Phase      string       `json:"phase" jsonschema_description:"Pending, Running, Succeeded, Failed, Aborted, or New when not picked up yet"`
	Actor      string       `json:"actor,omitempty" jsonschema_description:"who asked"`
	Created    metav1.Time  `json:"created" jsonschema_description:"when it was opened"`
	FinishedAt *metav1.Time `json:"finishedAt,omitempty" jsonschema_description:"when it ended"`
	Took       string       `json:"took,omitempty" jsonschema_description:"how long it ran, or has run"`
	Step       string       `json:"step,omitempty" jsonschema_description:"step that it is at, or that sank it"`
	Reason     string       `json:"reason,omitempty" jsonschema_description:"failed step's reason code"`
	Message    string       `json:"message,omitempty" jsonschema_description:"the controller's message"`
	Unlabelled bool         `json:"unlabelled,omitempty" jsonschema_description:"true: the Gate will never record it"`
}

// PhaseNew stands for a Passage without any status.
const PhaseNew = "New"

func (o *Ops) passageRow(p *v1alpha1.Passage) PassageRow {
	row := PassageRow{Passage: p.Name, Namespace: p.Namespace, Gate: p.Spec.Gate, Bundle: p.Spec.Bundle, Phase: string(p.Phase()),
		Actor: clean(p.Spec.Actor, 100), Created: p.CreationTimestamp, Unlabelled: !labelled(p)}
	if p.Status == nil {
		row.Phase = PhaseNew
		return row
	}
	row.Message, row.FinishedAt = cleanCause(p.Status.Message, 300), p.Status.FinishedAt
	if s := p.Status.StartedAt; s != nil {
		end := o.now()
		if p.Status.FinishedAt != nil {
			end = p.Status.FinishedAt.Time
		}
		row.Took = span(end.Sub(s.Time))
	}
	if i, st := waitingStep(p); st != nil {
		row.Step = stepName(i, st.Uses, st.As)
	} else if p.Phase() == v1alpha1.PassageFailed {
		if i, st := sinkingStep(p); st != nil {
			row.Step, row.Reason = stepName(i, st.Uses, st.As), st.Reason
		}
	}
	return row
}

// PassageRows lists attempts newest first, narrowed to a Gate and a Bundle: by
// exact name, else by a part of it.
func (o *Ops) PassageRows(ctx context.Context, namespace, gateName, bundle string) ([]PassageRow, []Incomplete, error) {
	var ps []v1alpha1.Passage
	narrowed, err := o.inDefault(v1alpha1.KindPassage, namespace, func(ns string) (err error) { ps, err = o.Passages(ctx, ns, "", ""); return err })
	if err != nil {
		return nil, nil, err
	}
	gateIs := meant(gateName, func(exact func(string) bool) bool {
		return slices.ContainsFunc(ps, func(p v1alpha1.Passage) bool { return exact(p.Spec.Gate) })
	})
	bundleIs := meant(bundle, func(exact func(string) bool) bool {
		return slices.ContainsFunc(ps, func(p v1alpha1.Passage) bool { return exact(p.Spec.Bundle) })
	})
	rows := make([]PassageRow, 0, len(ps))
	for i := range ps {
		if gateIs(ps[i].Spec.Gate) && bundleIs(ps[i].Spec.Bundle) {
			rows = append(rows, o.passageRow(&ps[i]))
		}
	}
	return rows, narrowed, nil
}

// PassageDetail is one attempt step by step.
type PassageDetail struct {
	PassageRow
	AbortAsked bool                  `json:"abortAsked,omitempty" jsonschema_description:"spec.abort"`
	Evidence   *v1alpha1.EvidenceRef `json:"evidence,omitempty" jsonschema_description:"verdict recorded"`
	TraceID    string                `json:"traceID,omitempty" jsonschema_description:"trace of the crossing"`
	Steps      []StepRow             `json:"steps" jsonschema_description:"the steps in order"`
}

// StepRow is one step of an attempt. With and Output have secrets masked.
type StepRow struct {
	Index     int          `json:"index" jsonschema_description:"position"`
	Uses      string       `json:"uses" jsonschema_description:"step"`
	As        string       `json:"as,omitempty" jsonschema_description:"alias"`
	Phase     string       `json:"phase" jsonschema_description:"Pending, Running, Succeeded, Failed, Skipped or Aborted"`
	Reason    string       `json:"reason,omitempty" jsonschema_description:"reason code"`
	Message   string       `json:"message,omitempty" jsonschema_description:"the step's message"`
	Attempts  int32        `json:"attempts,omitempty" jsonschema_description:"how often it was tried"`
	Took      string       `json:"took,omitempty" jsonschema_description:"how long"`
	StartedAt *metav1.Time `json:"startedAt,omitempty" jsonschema_description:"when it started"`
	Tolerated bool         `json:"tolerated,omitempty" jsonschema_description:"failed under continueOnError: not to blame"`
	Sank      bool         `json:"sank,omitempty" jsonschema_description:"the step that failed the Passage"`
	If        string       `json:"if,omitempty" jsonschema_description:"its condition"`
	With      string       `json:"with,omitempty" jsonschema_description:"configuration as JSON, secrets masked"`
	Output    string       `json:"output,omitempty" jsonschema_description:"output as JSON, secrets masked"`
}

// Detail reads one Passage by its exact name, step by step; detailed adds each
// step's configuration and output.
func (o *Ops) Detail(ctx context.Context, namespace, name string, detailed bool) (*PassageDetail, error) {
	p, err := o.findPassage(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return o.DetailOf(p, detailed), nil
}

// Progress says in a line how far the attempt is: "2/5 flux-wait: Running: …".
func (d *PassageDetail) Progress() string {
	for _, s := range d.Steps {
		switch s.Phase {
		case string(v1alpha1.StepSucceeded), string(v1alpha1.StepSkipped):
			continue
		}
		if s.Tolerated {
			continue
		}
		line := fmt.Sprintf("%d/%d %s: %s", s.Index+1, len(d.Steps), s.Uses, s.Phase)
		if s.Message != "" {
			line += ": " + cleanCause(s.Message, 120)
		}
		return line
	}
	return d.Phase
}

// Outcome says in a line where the attempt stands: phase, the step it is at or that
// sank it, and why.
func (d *PassageDetail) Outcome() string {
	out, message := d.Phase, cleanCause(d.Message, 200)
	if d.Step != "" {
		out += " at " + d.Step
		// A step's message begins with its name as often as not.
		if _, uses, ok := strings.Cut(d.Step, " "); ok {
			message = strings.TrimPrefix(message, uses+": ")
		}
	}
	if message != "" {
		out += ": " + message
	}
	return out
}

// DetailOf is Detail of a Passage that was read already.
func (o *Ops) DetailOf(p *v1alpha1.Passage, detailed bool) *PassageDetail {
	d := &PassageDetail{PassageRow: o.passageRow(p), AbortAsked: p.Spec.Abort, Steps: []StepRow{}}
	sank := -1
	if p.Status != nil {
		d.TraceID, d.Evidence = p.Status.TraceID, trimEvidence(p.Status.Evidence)
		if p.Phase() == v1alpha1.PassageFailed {
			sank, _ = sinkingStep(p)
		}
	}
	for i, s := range p.Spec.Steps {
		row := StepRow{Index: i, Uses: s.Uses, As: s.As, Phase: string(v1alpha1.StepPending)}
		if detailed {
			row.If = clean(s.If, 200)
			if s.With != nil {
				row.With = maskJSON(s.With.Raw, maxBlob)
			}
		}
		if p.Status != nil && i < len(p.Status.Steps) {
			st := p.Status.Steps[i]
			row.Phase, row.Reason, row.Message, row.Attempts, row.StartedAt = string(st.Phase), st.Reason, cleanCause(st.Message, 300), st.Attempts, st.StartedAt
			row.Tolerated = st.Phase == v1alpha1.StepFailed && i != sank
			row.Sank = i == sank
			if st.StartedAt != nil {
				end := o.now()
				if st.FinishedAt != nil {
					end = st.FinishedAt.Time
				}
				row.Took = span(end.Sub(st.StartedAt.Time))
			}
			if detailed && st.Output != nil {
				row.Output = maskJSON(st.Output.Raw, maxBlob)
			}
		}
		d.Steps = append(d.Steps, row)
	}
	return d
}

// maxBlob bounds a step's configuration or output in an answer, in bytes.
const maxBlob = 1500

// findPassage reads a Passage by name; over all namespaces it has to be unique.
func (o *Ops) findPassage(ctx context.Context, namespace, name string) (*v1alpha1.Passage, error) {
	if namespace != AllNamespaces {
		return o.Passage(ctx, namespace, name)
	}
	// A user who may not list over all namespaces is answered from the default
	// one: a name that is not there is then not found.
	var all []v1alpha1.Passage
	if _, err := o.inDefault(v1alpha1.KindPassage, namespace, func(ns string) (err error) { all, err = o.listPassages(ctx, ns, nil); return err }); err != nil {
		return nil, err
	}
	var found []*v1alpha1.Passage
	for i := range all {
		if all[i].Name == name {
			found = append(found, &all[i])
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		names, _ := namesOf(all, nil)
		return nil, &NotFoundError{Object: hecate(v1alpha1.KindPassage, "", name), Candidates: nearest(name, names, MaxNames)}
	}
	amb := &AmbiguousError{Kind: v1alpha1.KindPassage, Name: name}
	for _, p := range found {
		amb.Candidates = append(amb.Candidates, hecate(v1alpha1.KindPassage, p.Namespace, p.Name))
	}
	return nil, amb
}
