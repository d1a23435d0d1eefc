package demo

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
	"github.com/hecate-mcp/hecate-mcp/internal/gate"
)

const evidenceStep = gate.StepEvidence

// outcome is what a step came to: done, unless it waits or has a reason.
type outcome struct {
	waits    bool
	reason   string // of a failure
	final    bool   // a failure that continueOnError does not tolerate
	message  string
	output   any
	evidence *v1alpha1.EvidenceRef
	watch    []v1alpha1.Check
}

// options are the keys of the steps' `with` that matter here.
type options struct {
	URL       string     `json:"url"`
	Branch    string     `json:"branch"`
	Path      string     `json:"path"`
	Key       string     `json:"key"`
	FailAfter string     `json:"failAfter"`
	Resources []resource `json:"resources"`
}

type resource struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

func with(s v1alpha1.Step) options {
	var o options
	if s.With != nil {
		// What does not fit is as if it were not there: nothing depends on it.
		_ = json.Unmarshal(s.With.Raw, &o)
	}
	o.Branch = cmp.Or(o.Branch, "main")
	return o
}

// act has step i of a Passage look once.
func (b *beat) act(p *v1alpha1.Passage, bundle *v1alpha1.Bundle, i int) (outcome, error) {
	step := p.Spec.Steps[i]
	o := with(step)
	switch step.Uses {
	case evidenceStep:
		return b.evidence(p, bundle, i), nil
	case "flux-wait":
		return b.fluxWait(p, o, step)
	}
	if failed := b.failedBefore(p, i); failed != nil {
		return outcome{reason: failed.Reason, message: failed.Message}, nil
	}
	sha := commitOf(p)
	switch step.Uses {
	case "git-clone":
		return outcome{message: fmt.Sprintf("cloned %s at %s", o.URL, o.Branch)}, nil
	case "set-image":
		return outcome{message: fmt.Sprintf("set %d image(s) in %s", images(bundle), o.Path)}, nil
	case "edit-yaml":
		return outcome{message: fmt.Sprintf("set %s in %s", o.Key, o.Path)}, nil
	case "git-commit":
		return outcome{message: "committed " + sha[:12]}, nil
	case "git-push":
		return outcome{message: fmt.Sprintf("pushed %s to %s", sha[:12], o.Branch)}, b.pushed(p, i, o.Branch+"@sha1:"+sha)
	}
	return outcome{message: "simulated"}, nil
}

// commitOf makes up the commit of a Passage.
func commitOf(p *v1alpha1.Passage) string {
	sum := sha1.Sum([]byte(p.UID))
	return hex.EncodeToString(sum[:])
}

func images(bundle *v1alpha1.Bundle) int {
	n := 0
	for _, a := range bundle.Spec.Artifacts {
		if a.Image != nil {
			n++
		}
	}
	return n
}

// failedBefore is step i of the newest Passage that failed for the same Gate
// and Bundle, nil unless this step failed there: nobody repaired what it failed
// at, so it fails again.
func (b *beat) failedBefore(p *v1alpha1.Passage, i int) *v1alpha1.StepStatus {
	var newest *v1alpha1.Passage
	for j := range b.passages {
		x := &b.passages[j]
		if x.Namespace == p.Namespace && x.Spec.Gate == p.Spec.Gate && x.Spec.Bundle == p.Spec.Bundle &&
			x.Phase() == v1alpha1.PassageFailed && (newest == nil || x.Ended().After(newest.Ended().Time)) {
			newest = x
		}
	}
	if newest == nil || i >= len(newest.Status.Steps) {
		return nil
	}
	if s := &newest.Status.Steps[i]; s.Phase == v1alpha1.StepFailed && s.Uses == p.Spec.Steps[i].Uses {
		return s
	}
	return nil
}

// fluxWait waits until every Kustomization has applied what its source holds.
func (b *beat) fluxWait(p *v1alpha1.Passage, o options, step v1alpha1.Step) (outcome, error) {
	failAfter := defaultFailAfter
	if d, err := time.ParseDuration(o.FailAfter); err == nil && d > 0 {
		failAfter = d
	}
	seen := map[string]any{}
	out := outcome{output: map[string]any{"resources": seen}}
	for _, r := range o.Resources {
		r.Namespace = cmp.Or(r.Namespace, p.Namespace)
		h, err := b.read(r, true, failAfter)
		if err != nil {
			return outcome{}, err
		}
		seen[r.key()] = map[string]any{"health": h.status, "revision": h.revision}
		switch {
		case h.status == v1alpha1.HealthDegraded:
			out.waits, out.reason, out.message = false, "FluxDegraded", "flux-wait: "+h.issue
			return out, nil
		case h.status != v1alpha1.HealthHealthy && !out.waits:
			out.waits, out.message = true, h.issue
		}
	}
	if !out.waits {
		out.message = fmt.Sprintf("Flux applied the promoted revision to %d resource(s)", len(o.Resources))
		raw, err := json.Marshal(map[string]any{"resources": json.RawMessage(resourcesOf(step))})
		if err != nil {
			return outcome{}, err
		}
		out.watch = []v1alpha1.Check{{Uses: "flux", With: jsonOf(raw)}}
	}
	return out, nil
}

// resourcesOf is a step's own list of resources, as it is written there.
func resourcesOf(step v1alpha1.Step) []byte {
	var keep struct {
		Resources json.RawMessage `json:"resources"`
	}
	if step.With == nil || json.Unmarshal(step.With.Raw, &keep) != nil || keep.Resources == nil {
		return []byte("[]")
	}
	return keep.Resources
}
