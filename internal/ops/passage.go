package ops

import "github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"

// sinkingStep is the step that failed a Passage: the index and its status, -1
// and nil when none can be told. currentStep is frozen at the first failure
// that was not tolerated; a step with continueOnError is not to blame, however
// early it failed.
func sinkingStep(p *v1alpha1.Passage) (int, *v1alpha1.StepStatus) {
	if p.Status == nil || p.Status.Phase != v1alpha1.PassageFailed {
		return -1, nil
	}
	steps := p.Status.Steps
	failed := func(i int) bool { return i >= 0 && i < len(steps) && steps[i].Phase == v1alpha1.StepFailed }
	says := func(i int) bool { return failed(i) && steps[i].Message == p.Status.Message }
	at := int(p.Status.CurrentStep)
	if says(at) {
		return at, &steps[at]
	}
	for i := range steps {
		if says(i) {
			return i, &steps[i]
		}
	}
	if failed(at) {
		return at, &steps[at]
	}
	for i := len(steps) - 1; i >= 0; i-- {
		if failed(i) && (i >= len(p.Spec.Steps) || !p.Spec.Steps[i].ContinueOnError) {
			return i, &steps[i]
		}
	}
	return -1, nil
}
