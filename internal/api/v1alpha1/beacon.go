package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EmitMode says whether a Beacon turns what it finds into Bundles by itself.
// +kubebuilder:validation:Enum=Automatic;Manual
type EmitMode string

// Emit modes.
const (
	EmitAutomatic EmitMode = "Automatic"
	EmitManual    EmitMode = "Manual"
)

// SelectPolicy picks one tag among many.
// +kubebuilder:validation:Enum=SemVer;Lexical;NewestBuild;Digest
type SelectPolicy string

// Beacon watches sources and emits Bundles.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bcn
// +kubebuilder:printcolumn:name="Interval",type=string,JSONPath=`.spec.interval`
// +kubebuilder:printcolumn:name="Latest",type=string,JSONPath=`.status.latestBundle`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Beacon struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BeaconSpec `json:"spec"`
	// +optional
	Status BeaconStatus `json:"status,omitempty,omitzero"`
}

// BeaconList is a list of Beacons.
// +kubebuilder:object:root=true
type BeaconList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Beacon `json:"items"`
}

// BeaconSpec says what to watch and how often.
type BeaconSpec struct {
	// Interval between polls, a Go duration.
	// +kubebuilder:default="5m"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Watch lists the sources; each item sets exactly one of its fields.
	// +kubebuilder:validation:MinItems=1
	Watch []WatchSource `json:"watch"`
	// Emit is Automatic (default) or Manual.
	// +kubebuilder:default=Automatic
	// +optional
	Emit EmitMode `json:"emit,omitempty"`
	// Retain is how many unreferenced Bundles stay; 0 keeps all.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +optional
	Retain *int32 `json:"retain,omitempty"`
	// Suspend stops polling.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// WatchSource is one source; exactly one field is set.
type WatchSource struct {
	// +optional
	Image *ImageSource `json:"image,omitempty"`
	// +optional
	Chart *ChartSource `json:"chart,omitempty"`
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// +optional
	Provider *ProviderSource `json:"provider,omitempty"`
}

// LocalReference names an object in the same namespace.
type LocalReference struct {
	Name string `json:"name"`
}

// ImageSource watches the tags of an image repository.
type ImageSource struct {
	Repo string `json:"repo"`
	// +kubebuilder:default=SemVer
	// +optional
	Select SelectPolicy `json:"select,omitempty"`
	// +optional
	Constraint string `json:"constraint,omitempty"`
	// Allow is a regular expression that a tag has to match.
	// +optional
	Allow string `json:"allow,omitempty"`
	// +optional
	Ignore []string `json:"ignore,omitempty"`
	// +optional
	Platform string `json:"platform,omitempty"`
	// +optional
	CredentialsRef *LocalReference `json:"credentialsRef,omitempty"`
	// +optional
	Insecure bool `json:"insecure,omitempty"`
}

// ChartSource watches the versions of a Helm chart.
type ChartSource struct {
	Repo string `json:"repo"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Constraint string `json:"constraint,omitempty"`
	// +optional
	CredentialsRef *LocalReference `json:"credentialsRef,omitempty"`
}

// GitSource watches a branch or the tags of a Git repository.
type GitSource struct {
	Repo string `json:"repo"`
	// +optional
	Branch string `json:"branch,omitempty"`
	// +optional
	Tags *GitTags `json:"tags,omitempty"`
	// +optional
	Paths []string `json:"paths,omitempty"`
	// +optional
	IgnorePaths []string `json:"ignorePaths,omitempty"`
	// +optional
	CredentialsRef *LocalReference `json:"credentialsRef,omitempty"`
}

// GitTags picks among the tags of a Git repository.
type GitTags struct {
	// +kubebuilder:default=SemVer
	// +optional
	Select SelectPolicy `json:"select,omitempty"`
	// +optional
	Constraint string `json:"constraint,omitempty"`
	// +optional
	Allow string `json:"allow,omitempty"`
	// +optional
	Ignore []string `json:"ignore,omitempty"`
}

// ProviderSource names a ResourceSetInputProvider of the Flux Operator.
type ProviderSource struct {
	Name string `json:"name"`
}

// BeaconStatus is what the controller last saw.
type BeaconStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
	// +optional
	LastPolled *metav1.Time `json:"lastPolled,omitempty"`
	// +optional
	LatestBundle string `json:"latestBundle,omitempty"`
	// +optional
	Discovered []Artifact `json:"discovered,omitempty"`
}
