package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// StepEvidence is the `uses` of the step that asks the evidence server.
const StepEvidence = "evidence-gate"

// Defaults of an evidence step that names none.
const (
	DefaultHoldTimeout  = 24 * time.Hour
	DefaultPollInterval = time.Minute
)

// EvidenceChecks are the valid values of an evidence step's `gates`. assert and
// allowlist look at every image digest of a Bundle, policy and change at the
// trail of the first one.
var EvidenceChecks = []string{"assert", "allowlist", "policy", "change"}

// EvidenceSpec is the `with` of an evidence step, with defaults filled in.
type EvidenceSpec struct {
	// Index of the step among its steps; 0 from ParseEvidence.
	Index int
	// Gates holds at least one of EvidenceChecks, in the step's order.
	Gates []string
	// Policy is sent along by assert; empty is allowed.
	Policy string
	// MaxRisk is 0 to 100, nil without a limit.
	MaxRisk         *int
	ReportArtifacts bool
	HoldTimeout     time.Duration
	PollInterval    time.Duration
}

// EvidenceStep is the Gate's first evidence step; false when it has none. The
// error says what is wrong with the step's `with`; Index is set then too.
func EvidenceStep(g *v1alpha1.Gate) (EvidenceSpec, bool, error) {
	if g.Spec.Passage == nil {
		return EvidenceSpec{}, false, nil
	}
	spec, found, err := EvidenceStepOf(g.Spec.Passage.Steps)
	if err != nil {
		err = fmt.Errorf("evidence of Gate %s/%s: %w", g.Namespace, g.Name, err)
	}
	return spec, found, err
}

// EvidenceStepOf is EvidenceStep over steps, such as a Passage's own copy.
func EvidenceStepOf(steps []v1alpha1.Step) (EvidenceSpec, bool, error) {
	i := slices.IndexFunc(steps, func(s v1alpha1.Step) bool { return s.Uses == StepEvidence })
	if i < 0 {
		return EvidenceSpec{}, false, nil
	}
	spec, err := ParseEvidence(steps[i])
	spec.Index = i
	if err != nil {
		err = fmt.Errorf("steps[%d] (%s): %w", i, StepEvidence, err)
	}
	return spec, true, err
}

// ParseEvidence reads the `with` of one evidence step as strictly as the
// controller does: an unknown key is an error.
func ParseEvidence(s v1alpha1.Step) (EvidenceSpec, error) {
	var with struct {
		Gates           []string        `json:"gates"`
		Policy          string          `json:"policy"`
		MaxRisk         *int            `json:"maxRisk"`
		ReportArtifacts bool            `json:"reportArtifacts"`
		HoldTimeout     metav1.Duration `json:"holdTimeout"`
		PollInterval    metav1.Duration `json:"pollInterval"`
	}
	if s.With != nil {
		d := json.NewDecoder(bytes.NewReader(s.With.Raw))
		d.DisallowUnknownFields()
		if err := d.Decode(&with); err != nil {
			return EvidenceSpec{}, fmt.Errorf("with: %w", err)
		}
	}
	if len(with.Gates) == 0 {
		return EvidenceSpec{}, fmt.Errorf("with.gates is empty, want one or more of %s", strings.Join(EvidenceChecks, ", "))
	}
	for _, name := range with.Gates {
		if !slices.Contains(EvidenceChecks, name) {
			return EvidenceSpec{}, fmt.Errorf("with.gates has %q, valid are %s", name, strings.Join(EvidenceChecks, ", "))
		}
	}
	if with.MaxRisk != nil && (*with.MaxRisk < 0 || *with.MaxRisk > 100) {
		return EvidenceSpec{}, fmt.Errorf("with.maxRisk is %d, want 0 to 100", *with.MaxRisk)
	}
	spec := EvidenceSpec{Gates: with.Gates, Policy: with.Policy, MaxRisk: with.MaxRisk, ReportArtifacts: with.ReportArtifacts}
	var err error
	if spec.HoldTimeout, err = duration("holdTimeout", with.HoldTimeout, DefaultHoldTimeout); err != nil {
		return EvidenceSpec{}, err
	}
	if spec.PollInterval, err = duration("pollInterval", with.PollInterval, DefaultPollInterval); err != nil {
		return EvidenceSpec{}, err
	}
	return spec, nil
}

// duration reads an optional one; zero means that it was not given.
func duration(key string, given metav1.Duration, otherwise time.Duration) (time.Duration, error) {
	switch {
	case given.Duration < 0:
		return 0, fmt.Errorf("with.%s is %s, want a positive duration", key, given.Duration)
	case given.Duration == 0:
		return otherwise, nil
	}
	return given.Duration, nil
}
