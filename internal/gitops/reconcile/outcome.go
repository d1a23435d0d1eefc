package reconcile

import "time"

// Code says what came of an item.
type Code string

// The codes of results.
const (
	// Ready: the controller handled the request and the Kustomization is ready for
	// its current generation and its source's current revision.
	Ready Code = "Ready"
	// NotReady: the controller handled the request, and the Kustomization is
	// stalled, being deleted, or did not become ready in time.
	NotReady Code = "NotReady"
	// SourceFailed: its source could not be reconciled; nothing was asked of the
	// Kustomization itself.
	SourceFailed Code = "SourceFailed"
	// Timeout: the controller did not handle the request in time.
	Timeout Code = "Timeout"
	// DependencyFailed: an item it waits for did not become ready.
	DependencyFailed Code = "DependencyFailed"
	// Forbidden: the API server refuses this client's request.
	Forbidden Code = "Forbidden"
	// NotFound: the cluster has no such object, or not its kind.
	NotFound Code = "NotFound"
	// Suspended: spec.suspend is true in the cluster; Flux ignores requests to it.
	Suspended Code = "Suspended"
	// Cancelled: the context ended first.
	Cancelled Code = "Cancelled"
)

// Result is what came of one item.
type Result struct {
	Key
	// Attempted says that the request was written to the Kustomization.
	Attempted bool `json:"attempted"`
	// Success is Code Ready.
	Success bool `json:"success"`
	// Ready is the Ready condition as it was last seen.
	Ready bool `json:"ready"`
	// Revision is status.lastAppliedRevision as it was last seen.
	Revision string        `json:"revision,omitempty"`
	Duration time.Duration `json:"duration" jsonschema_description:"nanoseconds"`
	Code     Code          `json:"code"`
	Message  string        `json:"message"`
}

// Outcome is what came of a plan: one result for each of its items, in its order.
type Outcome struct {
	Results []Result `json:"results"`
}

// Success says that every item became ready. A plan without items succeeds.
func (o Outcome) Success() bool {
	for _, r := range o.Results {
		if !r.Success {
			return false
		}
	}
	return true
}

// Stage is how far an item is.
type Stage string

// The stages of an item, in their order.
const (
	StageSource    Stage = "Source"    // its source is being reconciled, by it or by another item
	StageRequested Stage = "Requested" // the request is written to the Kustomization
	StageDone      Stage = "Done"      // Code and Message are those of the result
)

// Event is one step of one item.
type Event struct {
	Key
	Stage   Stage  `json:"stage"`
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}
