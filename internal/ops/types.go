package ops

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hecate-mcp/hecate-mcp/internal/api/v1alpha1"
)

// Object names one Kubernetes object; it can be passed to other tools as it is.
type Object struct {
	APIVersion string `json:"apiVersion,omitempty" jsonschema_description:"group/version"`
	Kind       string `json:"kind" jsonschema_description:"kind of the object"`
	Namespace  string `json:"namespace,omitempty" jsonschema_description:"namespace of the object"`
	Name       string `json:"name,omitempty" jsonschema_description:"name of the object"`
}

// NextStep is what a tool can do next: never a shell command.
type NextStep struct {
	Tool      string            `json:"tool" jsonschema_description:"tool to call"`
	Arguments map[string]string `json:"arguments,omitempty" jsonschema_description:"its arguments"`
	Why       string            `json:"why" jsonschema_description:"what it would tell"`
}

// HumanStep is what only a person may do.
type HumanStep struct {
	Command string `json:"command" jsonschema_description:"what the person runs"`
	Why     string `json:"why" jsonschema_description:"what it changes"`
}

// Hold is one kind of reason why the change gate withholds approval.
type Hold struct {
	Kind   HoldKind `json:"kind" jsonschema_description:"code of the hold"`
	Detail string   `json:"detail" jsonschema_description:"specifics as recorded"`
}

// Blocker is one reason why nothing is crossing.
type Blocker struct {
	Kind   BlockerKind `json:"kind" jsonschema_description:"stable code"`
	Detail string      `json:"detail" jsonschema_description:"specifics, for people"`
	Fix    string      `json:"fix,omitempty" jsonschema_description:"what would unblock it when one answer is obvious"`
	// Reason refines the kind: a failed step's reason code, a Beacon's state,
	// a window's code.
	Reason string `json:"reason,omitempty" jsonschema_description:"refining code, such as a failed step's reason"`
	// Bundles are those concerned, newest first, at most MaxNames.
	Bundles []string `json:"bundles,omitempty" jsonschema_description:"Bundles concerned, newest first"`
	// MoreBundles counts what Bundles left out.
	MoreBundles int          `json:"moreBundles,omitempty" jsonschema_description:"how many Bundles are left out"`
	Object      *Object      `json:"object,omitempty" jsonschema_description:"object to look at"`
	Objects     []Object     `json:"objects,omitempty" jsonschema_description:"further objects"`
	Since       *metav1.Time `json:"since,omitempty" jsonschema_description:"since when, RFC 3339 UTC"`
	Step        string       `json:"step,omitempty" jsonschema_description:"step concerned, index and name"`
	Attempts    int32        `json:"attempts,omitempty" jsonschema_description:"how often the step was tried"`
	// CanFinish is false when waiting cannot end it, nil when unknown.
	CanFinish  *bool        `json:"canFinish,omitempty" jsonschema_description:"false: waiting never ends it"`
	OpensAt    *metav1.Time `json:"opensAt,omitempty" jsonschema_description:"when the window opens next"`
	Until      *metav1.Time `json:"until,omitempty" jsonschema_description:"when the deny window or the hold's timeout ends"`
	Hold       []Hold       `json:"hold,omitempty" jsonschema_description:"kinds of hold of the change gate"`
	NextSteps  []NextStep   `json:"nextSteps,omitempty" jsonschema_description:"{tool, arguments, why}"`
	HumanSteps []HumanStep  `json:"humanSteps,omitempty" jsonschema_description:"by a person only: {command, why}"`
}

// Waiting is one Bundle that cannot cross, and why.
type Waiting struct {
	Bundle string `json:"bundle" jsonschema_description:"Bundle"`
	Reason string `json:"reason" jsonschema_description:"why, for people"`
	// Kind is the first obstacle, as the seed has it; Kinds are all of them.
	Kind  string   `json:"kind,omitempty" jsonschema_description:"first obstacle's code"`
	Kinds []string `json:"kinds,omitempty" jsonschema_description:"all obstacles' codes when there is more than one"`
}

// Rollback is a Bundle older than the current one that could cross.
type Rollback struct {
	Bundle string `json:"bundle" jsonschema_description:"Bundle older than the current one"`
	Reason string `json:"reason" jsonschema_description:"why it is a rollback"`
}

// Link is one link of the causal chain, symptom first, root last.
type Link struct {
	Kind   ChainKind    `json:"kind" jsonschema_description:"code of the link"`
	Object Object       `json:"object" jsonschema_description:"object of the link"`
	Detail string       `json:"detail" jsonschema_description:"specifics, for people"`
	Since  *metav1.Time `json:"since,omitempty" jsonschema_description:"since when"`
	// Depth is the link's distance from the symptom: a chain that forks (a
	// Bundle waiting for two Gates) lists one branch after the other.
	Depth int `json:"depth" jsonschema_description:"distance from the symptom"`
	// Root marks the ends of the chain.
	Root bool `json:"-"`
}

// Warning is something worth knowing that blocks nothing.
type Warning struct {
	Kind   WarningKind `json:"kind" jsonschema_description:"stable code"`
	Detail string      `json:"detail" jsonschema_description:"specifics, for people"`
	Object *Object     `json:"object,omitempty" jsonschema_description:"object concerned"`
}

// Incomplete is one source that could not be read: part of the answer.
type Incomplete struct {
	Code   SourceCode `json:"code" jsonschema_description:"why it could not be read"`
	Object Object     `json:"object" jsonschema_description:"what could not be read"`
	Detail string     `json:"detail,omitempty" jsonschema_description:"specifics"`
}

// Explanation is why a Gate is where it is. Its field names are the seed's.
type Explanation struct {
	Gate      string `json:"gate" jsonschema_description:"Gate"`
	Namespace string `json:"namespace" jsonschema_description:"namespace of the Gate"`
	State     State  `json:"state" jsonschema_description:"what the Gate is doing"`
	// Summary is one line that stands alone.
	Summary  string    `json:"summary" jsonschema_description:"one line that stands alone"`
	Blockers []Blocker `json:"blockers" jsonschema_description:"what stands in the way, in the order to act"`
	// Chain leads from the symptom to the root causes.
	Chain      []Link                `json:"chain,omitempty" jsonschema_description:"symptom first, root last"`
	RootCauses []Link                `json:"rootCauses,omitempty" jsonschema_description:"the ends of the chain"`
	Current    string                `json:"current,omitempty" jsonschema_description:"Bundle in the environment now"`
	Crossing   *Crossing             `json:"crossing,omitempty" jsonschema_description:"the running Passage"`
	Eligible   []string              `json:"eligible,omitempty" jsonschema_description:"newer Bundles that could cross, newest first"`
	Rollback   []Rollback            `json:"rollback,omitempty" jsonschema_description:"older Bundles that could cross"`
	Waiting    []Waiting             `json:"waiting,omitempty" jsonschema_description:"Bundles that cannot cross"`
	Health     *v1alpha1.Health      `json:"health,omitempty" jsonschema_description:"the Gate's own assessment"`
	Evidence   *v1alpha1.EvidenceRef `json:"evidence,omitempty" jsonschema_description:"verdict recorded for the crossing"`
	Omitted    map[string]int        `json:"omitted,omitempty" jsonschema_description:"how many entries of a list are left out"`
	Warnings   []Warning             `json:"warnings,omitempty" jsonschema_description:"worth knowing, blocks nothing"`
	Incomplete []Incomplete          `json:"incomplete,omitempty" jsonschema_description:"what could not be read"`
	NextSteps  []NextStep            `json:"nextSteps,omitempty" jsonschema_description:"{tool, arguments, why}"`
	HumanSteps []HumanStep           `json:"humanSteps,omitempty" jsonschema_description:"by a person only: {command, why}"`
}

// Crossing is the Passage that runs now.
type Crossing struct {
	Passage string       `json:"passage" jsonschema_description:"Passage"`
	Bundle  string       `json:"bundle" jsonschema_description:"Bundle that is crossing"`
	Actor   string       `json:"actor,omitempty" jsonschema_description:"who asked"`
	Since   *metav1.Time `json:"since,omitempty" jsonschema_description:"since when"`
	Step    string       `json:"step,omitempty" jsonschema_description:"step it is at"`
}

// MaxNames bounds the lists of names in an answer; the rest is counted.
const MaxNames = 10

// AuditEntry is one thing that happened. The field names are the seed's.
type AuditEntry struct {
	At        metav1.Time           `json:"at" jsonschema_description:"when, RFC 3339 UTC"`
	Kind      AuditKind             `json:"kind" jsonschema_description:"what happened"`
	Namespace string                `json:"namespace,omitempty" jsonschema_description:"namespace"`
	Gate      string                `json:"gate" jsonschema_description:"Gate"`
	Bundle    string                `json:"bundle,omitempty" jsonschema_description:"Bundle"`
	Digest    string                `json:"digest,omitempty" jsonschema_description:"content digest of the Bundle"`
	Actor     string                `json:"actor,omitempty" jsonschema_description:"who caused it"`
	Passage   string                `json:"passage,omitempty" jsonschema_description:"Passage"`
	Detail    string                `json:"detail,omitempty" jsonschema_description:"why, in the words of what refused"`
	Reason    string                `json:"reason,omitempty" jsonschema_description:"failed step's reason code"`
	Step      string                `json:"step,omitempty" jsonschema_description:"step that sank it"`
	Verified  *bool                 `json:"verified,omitempty" jsonschema_description:"whether verification confirmed it"`
	Evidence  *v1alpha1.EvidenceRef `json:"evidence,omitempty" jsonschema_description:"trail and verdict"`
	// ApprovedBy links a crossing to the approval that enabled it, Enabled an
	// approval to the Passage it enabled.
	ApprovedBy string   `json:"approvedBy,omitempty" jsonschema_description:"approver whose approval enabled the crossing"`
	Enabled    string   `json:"enabled,omitempty" jsonschema_description:"Passage that this approval enabled"`
	Sources    []string `json:"sources" jsonschema_description:"where it is recorded: history, passage, blocked, cleared, approval"`
}
