package demo

import (
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// passage takes a Passage one second further.
func (b *beat) passage(p *v1alpha1.Passage) error {
	if p.Phase().Terminal() {
		return nil
	}
	bundle := b.bundle(p.Namespace, p.Spec.Bundle)
	if p.Status == nil {
		p.Status = &v1alpha1.PassageStatus{StartedAt: b.now.DeepCopy()}
		if bundle != nil {
			for _, s := range p.Spec.Steps {
				p.Status.Steps = append(p.Status.Steps, v1alpha1.StepStatus{Uses: s.Uses, As: s.As, Phase: v1alpha1.StepPending})
			}
		}
	}
	s := p.Status
	s.Phase, s.ObservedGeneration = v1alpha1.PassageRunning, p.Generation
	i := int(s.CurrentStep)
	switch {
	case p.Spec.Abort:
		b.closeSteps(s, v1alpha1.StepAborted, "")
		return b.end(p, v1alpha1.PassageAborted, "aborted")
	case bundle == nil:
		s.Steps = nil
		return b.end(p, v1alpha1.PassageFailed, fmt.Sprintf("Bundle %s no longer exists", p.Spec.Bundle))
	case i >= len(s.Steps) || len(s.Steps) != len(p.Spec.Steps):
		return b.end(p, v1alpha1.PassageFailed, "the recorded steps are not those of the Passage")
	case s.Steps[i].StartedAt == nil:
		b.begin(&s.Steps[i])
		return nil
	case !looks(&s.Steps[i], b.now):
		return nil
	}
	return b.step(p, bundle, i)
}

// looksEvery is how long a waiting step rests between two looks.
func looksEvery(uses string) time.Duration {
	if uses == evidenceStep {
		return 5 * time.Second
	}
	return 2 * time.Second
}

// looks reports whether a step that runs acts at now: a second after it began,
// and from then on at its own pace.
func looks(s *v1alpha1.StepStatus, now metav1.Time) bool {
	after := now.Sub(s.StartedAt.Time) - time.Second
	return after >= 0 && after%looksEvery(s.Uses) == 0
}

func (b *beat) begin(s *v1alpha1.StepStatus) {
	s.Phase, s.StartedAt, s.Attempts = v1alpha1.StepRunning, b.now.DeepCopy(), 1
}

// step has step i act and goes on to the next.
func (b *beat) step(p *v1alpha1.Passage, bundle *v1alpha1.Bundle, i int) error {
	s := p.Status
	st := &s.Steps[i]
	if b.since(st.StartedAt) > time.Second {
		st.Attempts++
	}
	o, err := b.act(p, bundle, i)
	if err != nil {
		return err
	}
	if o.output != nil {
		raw, err := json.Marshal(o.output)
		if err != nil {
			return err
		}
		st.Output = &apiextensionsv1.JSON{Raw: raw}
	}
	if o.evidence != nil {
		s.Evidence = o.evidence
	}
	s.Watch = append(s.Watch, o.watch...)
	st.Message, st.Reason = o.message, o.reason
	if o.waits {
		s.Message = o.message
		return nil
	}
	st.FinishedAt = b.now.DeepCopy()
	s.Message = ""
	switch {
	case o.reason == "":
		st.Phase = v1alpha1.StepSucceeded
	case p.Spec.Steps[i].ContinueOnError && !o.final:
		st.Phase = v1alpha1.StepFailed
	default:
		st.Phase = v1alpha1.StepFailed
		b.closeSteps(s, v1alpha1.StepSkipped, "the Passage had already failed")
		return b.end(p, v1alpha1.PassageFailed, o.message)
	}
	if i+1 == len(s.Steps) {
		return b.end(p, v1alpha1.PassageSucceeded, "crossed "+p.Spec.Gate)
	}
	s.CurrentStep++
	b.begin(&s.Steps[i+1])
	return nil
}

// closeSteps ends every step that has not ended.
func (b *beat) closeSteps(s *v1alpha1.PassageStatus, phase v1alpha1.StepPhase, message string) {
	for i := range s.Steps {
		st := &s.Steps[i]
		if st.Phase != v1alpha1.StepPending && st.Phase != v1alpha1.StepRunning {
			continue
		}
		st.Phase, st.FinishedAt = phase, b.now.DeepCopy()
		if message != "" {
			st.Message = message
		}
	}
}

func (b *beat) end(p *v1alpha1.Passage, phase v1alpha1.PassagePhase, message string) error {
	s := p.Status
	s.Phase, s.Message, s.FinishedAt = phase, message, b.now.DeepCopy()
	if phase != v1alpha1.PassageSucceeded {
		s.Watch = nil
	}
	b.attest(p)
	return nil
}
