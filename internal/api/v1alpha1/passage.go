package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PassagePhase is where a Passage stands. A brand-new Passage has none.
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Aborted
type PassagePhase string

// Passage phases. The last three are terminal.
const (
	PassagePending   PassagePhase = "Pending"
	PassageRunning   PassagePhase = "Running"
	PassageSucceeded PassagePhase = "Succeeded"
	PassageFailed    PassagePhase = "Failed"
	PassageAborted   PassagePhase = "Aborted"
)

// Terminal reports whether nothing more will happen to the Passage.
func (p PassagePhase) Terminal() bool {
	return p == PassageSucceeded || p == PassageFailed || p == PassageAborted
}

// StepPhase is where a step stands.
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Skipped;Aborted
type StepPhase string

// Step phases. The last four are terminal.
const (
	StepPending   StepPhase = "Pending"
	StepRunning   StepPhase = "Running"
	StepSucceeded StepPhase = "Succeeded"
	StepFailed    StepPhase = "Failed"
	StepSkipped   StepPhase = "Skipped"
	StepAborted   StepPhase = "Aborted"
)

// Passage is one attempt to move one Bundle through one Gate.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=psg
// +kubebuilder:printcolumn:name="Gate",type=string,JSONPath=`.spec.gate`
// +kubebuilder:printcolumn:name="Bundle",type=string,JSONPath=`.spec.bundle`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Passage struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PassageSpec `json:"spec"`
	// Status is nil until the controller has written one: that a Passage has
	// never been picked up is an answer of its own.
	// +optional
	Status *PassageStatus `json:"status,omitempty"`
}

// PassageList is a list of Passages.
// +kubebuilder:object:root=true
type PassageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Passage `json:"items"`
}

// PassageSpec is immutable by convention, except Abort.
type PassageSpec struct {
	Gate   string `json:"gate"`
	Bundle string `json:"bundle"`
	// Steps is a copy of the Gate's steps at creation.
	// +kubebuilder:validation:MinItems=1
	Steps []Step `json:"steps"`
	// +optional
	Vars []Var `json:"vars,omitempty"`
	// Actor is who asked; "controller" for automatic crossings.
	// +optional
	Actor string `json:"actor,omitempty"`
	// Abort asks the controller to stop.
	// +optional
	Abort bool `json:"abort,omitempty"`
}

// PassageStatus is how far a Passage came.
type PassageStatus struct {
	// +kubebuilder:default=Pending
	// +optional
	Phase PassagePhase `json:"phase,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// CurrentStep is an index into Steps, frozen at the first failure that
	// was not tolerated.
	// +optional
	CurrentStep int32 `json:"currentStep,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// +optional
	TraceID string `json:"traceID,omitempty"`
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Watch lists health checks for the Gate to adopt after a success.
	// +optional
	Watch []Check `json:"watch,omitempty"`
	// +optional
	Evidence *EvidenceRef `json:"evidence,omitempty"`
	// +optional
	Steps []StepStatus `json:"steps,omitempty"`
}

// StepStatus is how far a step came.
type StepStatus struct {
	Uses  string    `json:"uses"`
	Phase StepPhase `json:"phase"`
	// +optional
	As string `json:"as,omitempty"`
	// Reason is a stable code; it exists on failed steps only.
	// +optional
	Reason string `json:"reason,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// Output is the step's own, any JSON.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Output *apiextensionsv1.JSON `json:"output,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
}

// Phase is the Passage's phase, "" while it has no status at all.
func (p *Passage) Phase() PassagePhase {
	if p.Status == nil {
		return ""
	}
	return p.Status.Phase
}

// Active reports whether the Passage can still change.
func (p *Passage) Active() bool { return !p.Phase().Terminal() }

// Ended is when the Passage finished, or its creation when it has not said.
func (p *Passage) Ended() metav1.Time {
	if p.Status != nil && p.Status.FinishedAt != nil {
		return *p.Status.FinishedAt
	}
	return p.CreationTimestamp
}
