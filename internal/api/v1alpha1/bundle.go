package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bundle is an immutable set of artifact versions.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bnd
// +kubebuilder:printcolumn:name="Beacon",type=string,JSONPath=`.spec.beacon`
// +kubebuilder:printcolumn:name="Digest",type=string,JSONPath=`.spec.digest`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Bundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec BundleSpec `json:"spec"`
	// +optional
	Status BundleStatus `json:"status,omitempty,omitzero"`
}

// BundleList is a list of Bundles.
// +kubebuilder:object:root=true
type BundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bundle `json:"items"`
}

// BundleSpec names the artifacts.
type BundleSpec struct {
	Beacon string `json:"beacon"`
	// Digest is 64 hex digits without a prefix: SHA-256 over the sorted
	// artifact lines (hecate-facts, section 2).
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +optional
	Digest string `json:"digest,omitempty"`
	// +optional
	Alias string `json:"alias,omitempty"`
	// +kubebuilder:validation:MinItems=1
	Artifacts []Artifact `json:"artifacts"`
}

// Artifact is one version of one thing; exactly one field is set.
type Artifact struct {
	// +optional
	Image *ImageArtifact `json:"image,omitempty"`
	// +optional
	Chart *ChartArtifact `json:"chart,omitempty"`
	// +optional
	Commit *CommitArtifact `json:"commit,omitempty"`
}

// ImageArtifact is an image by tag, digest ("sha256:<hex>") or both.
type ImageArtifact struct {
	Repo string `json:"repo"`
	// +optional
	Tag string `json:"tag,omitempty"`
	// +optional
	Digest string `json:"digest,omitempty"`
}

// ChartArtifact is a chart version.
type ChartArtifact struct {
	Repo string `json:"repo"`
	// +optional
	Name    string `json:"name,omitempty"`
	Version string `json:"version"`
}

// CommitArtifact is a Git commit. Message is free text that somebody outside
// wrote.
type CommitArtifact struct {
	Repo string `json:"repo"`
	SHA  string `json:"sha"`
	// +optional
	Branch string `json:"branch,omitempty"`
	// +optional
	Tag string `json:"tag,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
}

// BundleStatus is where a Bundle has been and who let it in.
type BundleStatus struct {
	// Cleared is appended to in order, unbounded; a Gate can appear many times.
	// +optional
	Cleared []BundleMark `json:"cleared,omitempty"`
	// Blocked holds the failed and aborted crossings, newest first, at most 10.
	// +optional
	Blocked []BundleMark `json:"blocked,omitempty"`
	// ApprovedFor holds one approval per Gate.
	// +listType=map
	// +listMapKey=gate
	// +optional
	ApprovedFor []BundleApproval `json:"approvedFor,omitempty"`
}

// BundleMark records that a Bundle cleared a Gate or was blocked at one.
type BundleMark struct {
	Gate string      `json:"gate"`
	At   metav1.Time `json:"at"`
	// +optional
	Passage string `json:"passage,omitempty"`
	// +optional
	Actor string `json:"actor,omitempty"`
	// +optional
	Reason string `json:"reason,omitempty"`
}

// BundleApproval is one person's approval of a Bundle for one Gate.
type BundleApproval struct {
	Gate  string      `json:"gate"`
	Actor string      `json:"actor"`
	At    metav1.Time `json:"at"`
}
