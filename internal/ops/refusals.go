package ops

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RefusalReason is why the rules would not open a Passage.
type RefusalReason string

// Refusal reasons. Those that a Gate can have as blocker have its name.
const (
	RefusedCrossing     RefusalReason = "CrossingInProgress"
	RefusedSuspended    RefusalReason = "Suspended"
	RefusedInvalidSteps RefusalReason = "InvalidSteps"
	RefusedNoPassage    RefusalReason = "NoPassageTemplate"
	RefusedNameTooLong  RefusalReason = "NameTooLong"
	RefusedBadWindow    RefusalReason = "InvalidWindow"
	RefusedNoBundle     RefusalReason = "NoBundles"
	RefusedNotAdmitted  RefusalReason = "NotAdmitted"
	RefusedCurrent      RefusalReason = "AlreadyCurrent"
	RefusedUpstream     RefusalReason = "UpstreamNotCleared"
	RefusedNotApproved  RefusalReason = "AwaitingApproval"
	RefusedWindow       RefusalReason = "WindowClosed"
)

// RefusalReasons lists every RefusalReason in the order in which somebody has
// to act.
var RefusalReasons = []Meaning[RefusalReason]{
	{RefusedCrossing, "a Passage of this Gate is not finished; object names it"},
	{RefusedSuspended, "the Gate is suspended"},
	{RefusedInvalidSteps, "the Gate's steps are invalid at the current generation"},
	{RefusedNoPassage, "the Gate has no steps, so a crossing would do nothing"},
	{RefusedNameTooLong, "a name does not fit a label value (63 characters), so no Passage can carry it"},
	{RefusedBadWindow, "a promotion window is malformed; it counts as closed and never resolves by waiting"},
	{RefusedNoBundle, "no Bundle exists from any admitted Beacon"},
	{RefusedNotAdmitted, "the Gate does not admit Bundles of this Beacon"},
	{RefusedCurrent, "the Bundle is already in this Gate"},
	{RefusedUpstream, "the Bundle has not cleared the Gates that come before"},
	{RefusedNotApproved, "a person has to approve the Bundle for this Gate"},
	{RefusedWindow, "no promotion window is open; opensAt says when"},
}

// Refusal reasons that only a write meets.
const (
	RefusedDeployer    RefusalReason = "DeployerWouldApprove"
	RefusedFinished    RefusalReason = "AlreadyFinished"
	RefusedAborting    RefusalReason = "AlreadyAborting"
	RefusedNotNeeded   RefusalReason = "ApprovalNotRequired"
	RefusedApproved    RefusalReason = "AlreadyApproved"
	RefusedNoEvidence  RefusalReason = "EvidenceUnavailable"
	RefusedNotHuman    RefusalReason = "NotAPerson"
	RefusedNothingRuns RefusalReason = "NothingCrossing"
)

// WriteRefusals lists the reasons that only a write meets.
var WriteRefusals = []Meaning[RefusalReason]{
	{RefusedDeployer, "an e-mail actor is recorded as deployer, and no person has approved: the deployer's own sign-off would lift the hold"},
	{RefusedFinished, "the Passage is finished: there is nothing to stop"},
	{RefusedAborting, "somebody asked for the abort already; the controller has not acted on it yet"},
	{RefusedNotNeeded, "the Gate asks for no approval of Bundles of this Beacon"},
	{RefusedApproved, "somebody has approved this Bundle for this Gate before; one approval stands"},
	{RefusedNoEvidence, "the approval has to be recorded in the evidence server, which can't be asked or knows no trail"},
	{RefusedNotHuman, "the sign-off in the evidence server would not stand, or does not, under the approver's own e-mail address as a person's"},
	{RefusedNothingRuns, "nothing is crossing the Gate"},
}

// Refusal is one obstacle that the rules put before a crossing.
type Refusal struct {
	Reason  RefusalReason `json:"reason" jsonschema_description:"code of the rule"`
	Detail  string        `json:"detail" jsonschema_description:"specifics, for people"`
	Object  *Object       `json:"object,omitempty" jsonschema_description:"object to look at"`
	Fix     string        `json:"fix,omitempty" jsonschema_description:"what would remove it"`
	OpensAt *metav1.Time  `json:"opensAt,omitempty" jsonschema_description:"when the window opens next"`
	Until   *metav1.Time  `json:"until,omitempty" jsonschema_description:"when the deny window ends"`
}
