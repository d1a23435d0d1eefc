package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the four kinds.
var GroupVersion = schema.GroupVersion{Group: "hecate.dev", Version: "v1alpha1"}

// Kinds, as they stand in objects.
const (
	KindBeacon  = "Beacon"
	KindBundle  = "Bundle"
	KindGate    = "Gate"
	KindPassage = "Passage"
)

// Labels and annotations that the controllers read or write.
const (
	// LabelGate on a Passage names its Gate. The Gate controller finds
	// Passages by this label only.
	LabelGate = "hecate.dev/gate"
	// LabelBundle on a Passage names its Bundle.
	LabelBundle = "hecate.dev/bundle"
	// LabelBeacon on a Bundle names its Beacon.
	LabelBeacon = "hecate.dev/beacon"
	// AnnotationReconcile asks a Beacon or a Gate to reconcile now; the value
	// is echoed in status.lastHandledReconcileAt.
	AnnotationReconcile = "reconcile.fluxcd.io/requestedAt"
)

// ConditionReady is the only condition type that the controllers write.
const ConditionReady = "Ready"

// ActorController is the actor of automatic crossings.
const ActorController = "controller"

// AddToScheme registers the four kinds and their lists.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Beacon{}, &BeaconList{},
		&Bundle{}, &BundleList{},
		&Gate{}, &GateList{},
		&Passage{}, &PassageList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
