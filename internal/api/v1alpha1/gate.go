package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HealthStatus is a Gate's assessment of what it watches.
// +kubebuilder:validation:Enum=Healthy;Progressing;Degraded;Unknown;NotApplicable
type HealthStatus string

// Health statuses.
const (
	HealthHealthy       HealthStatus = "Healthy"
	HealthProgressing   HealthStatus = "Progressing"
	HealthDegraded      HealthStatus = "Degraded"
	HealthUnknown       HealthStatus = "Unknown"
	HealthNotApplicable HealthStatus = "NotApplicable"
)

// Reasons of a Gate's Ready condition.
const (
	GateReasonSuspended      = "Suspended"
	GateReasonInvalidSteps   = "InvalidSteps"
	GateReasonVerifying      = "Verifying"
	GateReasonCrossing       = "Crossing"
	GateReasonIdle           = "Idle"
	GateReasonWindowClosed   = "WindowClosed"
	GateReasonCrossingFailed = "CrossingFailed"
	GateReasonPassageFailed  = "PassageFailed"
)

// Gate is an environment plus the rules to enter it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=gt
// +kubebuilder:printcolumn:name="Current",type=string,JSONPath=`.status.current.bundle`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health.status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Gate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GateSpec `json:"spec"`
	// +optional
	Status GateStatus `json:"status,omitempty,omitzero"`
}

// GateList is a list of Gates.
// +kubebuilder:object:root=true
type GateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Gate `json:"items"`
}

// GateSpec says which Bundles may enter, when, and what a crossing does.
type GateSpec struct {
	// Admits is matched in order: the first entry for the Bundle's Beacon wins.
	// +kubebuilder:validation:MinItems=1
	Admits []Admission `json:"admits"`
	// +optional
	Passage *PassageTemplate `json:"passage,omitempty"`
	// Watch lists health checks; the only registered checker is "flux".
	// +optional
	Watch []Check `json:"watch,omitempty"`
	// Verify lists verifiers; the only registered one is "flagger".
	// +optional
	Verify []Check `json:"verify,omitempty"`
	// Auto lets the controller open Passages by itself.
	// +optional
	Auto bool `json:"auto,omitempty"`
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// +optional
	Windows []Window `json:"windows,omitempty"`
	// +optional
	Vars []Var `json:"vars,omitempty"`
	// Retain is how many finished Passages stay besides the protected ones;
	// unset means 20, 0 keeps all.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Retain *int32 `json:"retain,omitempty"`
	// +optional
	Evidence *EvidenceConfig `json:"evidence,omitempty"`
}

// Admission admits the Bundles of one Beacon under conditions.
type Admission struct {
	From AdmissionSource `json:"from"`
	// After names Gates that the Bundle must have cleared.
	// +optional
	After []string `json:"after,omitempty"`
	// +optional
	RequireApproval bool `json:"requireApproval,omitempty"`
}

// AdmissionSource names a Beacon.
type AdmissionSource struct {
	Beacon string `json:"beacon"`
}

// PassageTemplate holds the steps of a crossing.
type PassageTemplate struct {
	// +kubebuilder:validation:MinItems=1
	Steps []Step `json:"steps"`
}

// Step is one action of a crossing. Its timeout is not enforced upstream.
type Step struct {
	Uses string `json:"uses"`
	// +optional
	As string `json:"as,omitempty"`
	// With is the step's own configuration, any JSON.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	With *apiextensionsv1.JSON `json:"with,omitempty"`
	// If is a condition; the step is skipped when it is false.
	// +optional
	If string `json:"if,omitempty"`
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// +optional
	ContinueOnError bool `json:"continueOnError,omitempty"`
}

// Check is a health check or a verifier.
type Check struct {
	Uses string `json:"uses"`
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +optional
	With *apiextensionsv1.JSON `json:"with,omitempty"`
}

// Window allows (or, with deny, forbids) the start of a crossing.
type Window struct {
	// Schedule is five-field cron, a descriptor, or either with a TZ= prefix.
	Schedule string `json:"schedule"`
	// Duration that the window stays open after each activation.
	Duration metav1.Duration `json:"duration"`
	// TimeZone is an IANA name, UTC when empty.
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// +optional
	Deny bool `json:"deny,omitempty"`
}

// Var is a named value for the steps.
type Var struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// EvidenceConfig links a Gate to an environment of the evidence server.
type EvidenceConfig struct {
	// FidesEnvironment is a UUID.
	// +kubebuilder:validation:Pattern=`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`
	FidesEnvironment string `json:"fidesEnvironment"`
	// +optional
	ServerURL string `json:"serverURL,omitempty"`
	// CredentialsRef names a Secret in the Gate's namespace with key "token".
	// +optional
	CredentialsRef *LocalReference `json:"credentialsRef,omitempty"`
}

// GateStatus is what the controller last recorded.
type GateStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
	// +optional
	Current *GateEntry `json:"current,omitempty"`
	// History is newest first, at most 10.
	// +optional
	History []GateEntry `json:"history,omitempty"`
	// +optional
	Health *Health `json:"health,omitempty"`
	// Eligible names Bundles, newest first.
	// +optional
	Eligible []string `json:"eligible,omitempty"`
	// +optional
	ActivePassage string `json:"activePassage,omitempty"`
	// +optional
	Evidence *EvidenceRef `json:"evidence,omitempty"`
}

// GateEntry is one Bundle that entered a Gate.
type GateEntry struct {
	Bundle    string      `json:"bundle"`
	EnteredAt metav1.Time `json:"enteredAt"`
	// +optional
	Digest string `json:"digest,omitempty"`
	// +optional
	Passage string `json:"passage,omitempty"`
	// +optional
	Actor string `json:"actor,omitempty"`
	// +optional
	Verified *bool `json:"verified,omitempty"`
}

// Health is the worst of a Gate's health checks.
type Health struct {
	Status HealthStatus `json:"status"`
	// +optional
	Issues []string `json:"issues,omitempty"`
	// Details are the checkers' own, any JSON.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Details *apiextensionsv1.JSON `json:"details,omitempty"`
	// +optional
	ObservedAt *metav1.Time `json:"observedAt,omitempty"`
	// Since is when the status last changed.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// EvidenceRef is the change gate's verdict as the controller recorded it.
type EvidenceRef struct {
	// +optional
	Trail string `json:"trail,omitempty"`
	// +optional
	Verdict string `json:"verdict,omitempty"`
	// Risk is 0 to 100.
	// +optional
	Risk *int32 `json:"risk,omitempty"`
	// +optional
	Blockers []string `json:"blockers,omitempty"`
	// +optional
	URL string `json:"url,omitempty"`
}
