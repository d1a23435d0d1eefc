package ops

// State is the one-word answer to "what is this Gate doing?". A Gate has one:
// the first that holds, in the order of States.
type State string

// States of a Gate.
const (
	StateCrossing State = "Crossing"
	StateFailed   State = "Failed"
	StateBlocked  State = "Blocked"
	StateReady    State = "Ready"
	StateIdle     State = "Idle"
)

// Meaning is one code and what it means: the source of the schemas' enums, of
// the catalogue resource and of the documentation.
type Meaning[C ~string] struct {
	Code    C      `json:"code"`
	Meaning string `json:"meaning"`
}

// Codes returns the codes of a table, in its order.
func Codes[C ~string](table []Meaning[C]) []C {
	out := make([]C, len(table))
	for i, m := range table {
		out[i] = m.Code
	}
	return out
}

// States lists every State in the order in which they are tried.
var States = []Meaning[State]{
	{StateCrossing, "a Passage is running now"},
	{StateFailed, "the last crossing failed, was aborted or failed its verification, and has not been tried again"},
	{StateBlocked, "something has to change before anything can cross"},
	{StateReady, "the newest Bundle could cross and waits to be asked for (or, on an automatic Gate, for the controller)"},
	{StateIdle, "rest: nothing newer is waiting for this Gate"},
}

// BlockerKind is why a Gate is not crossing, as a stable code.
type BlockerKind string

// Blocker kinds: the first block is the seed's, the second came with the
// states that the seed could not tell apart.
const (
	BlockerSuspended    BlockerKind = "Suspended"
	BlockerInvalidSteps BlockerKind = "InvalidSteps"
	BlockerNoPassage    BlockerKind = "NoPassageTemplate"
	BlockerNoBundles    BlockerKind = "NoBundles"
	BlockerNotApproved  BlockerKind = "AwaitingApproval"
	BlockerUpstream     BlockerKind = "UpstreamNotCleared"
	BlockerWindowClosed BlockerKind = "WindowClosed"
	BlockerPassageFail  BlockerKind = "PassageFailed"
	BlockerStepWaiting  BlockerKind = "StepWaiting"
	BlockerChangeHeld   BlockerKind = "ChangeHeld"
	BlockerUnhealthy    BlockerKind = "Unhealthy"
	BlockerManual       BlockerKind = "AwaitingRequest"

	BlockerPassageAborted     BlockerKind = "PassageAborted"
	BlockerInvalidWindow      BlockerKind = "InvalidWindow"
	BlockerVerifying          BlockerKind = "Verifying"
	BlockerVerificationFailed BlockerKind = "VerificationFailed"
	BlockerStalled            BlockerKind = "Stalled"
	BlockerOutcomeUnrecorded  BlockerKind = "OutcomeUnrecorded"
	BlockerControllerStale    BlockerKind = "ControllerStale"
	BlockerConcurrent         BlockerKind = "ConcurrentPassages"
	BlockerUnlabelled         BlockerKind = "UnlabelledPassage"
	BlockerNotFound           BlockerKind = "NotFound"
	BlockerNameTooLong        BlockerKind = "NameTooLong"
)

// BlockerKinds lists every BlockerKind in the order in which somebody has to
// act: blockers of an Explanation are sorted by it.
var BlockerKinds = []Meaning[BlockerKind]{
	{BlockerConcurrent, "two or more Passages run on this Gate at once"},
	{BlockerChangeHeld, "the change gate of the evidence server withholds approval; hold says which kinds"},
	{BlockerStepWaiting, "the running crossing waits on a step; canFinish says whether that can ever end"},
	{BlockerStalled, "the Gate is wedged: its status will not move by itself, and promoting again does not help"},
	{BlockerControllerStale, "the controller has not caught up: generation not observed, Passage not picked up, or health report too old"},
	{BlockerSuspended, "the Gate is suspended: it opens no Passage and records no outcome"},
	{BlockerInvalidSteps, "the Gate's steps are invalid at the current generation"},
	{BlockerNoPassage, "the Gate has no steps, so a crossing would do nothing"},
	{BlockerNameTooLong, "the Gate's name does not fit a label value (63 characters), so no Passage of it can be found"},
	{BlockerInvalidWindow, "a promotion window is malformed; it counts as closed and never resolves by waiting"},
	{BlockerOutcomeUnrecorded, "a Passage finished while the Gate could not record it"},
	{BlockerUnlabelled, "a Passage lacks the label hecate.dev/gate, so the Gate never records its outcome"},
	{BlockerNotFound, "a status names an object that no longer exists"},
	{BlockerVerificationFailed, "the current Bundle crossed, but its verification failed"},
	{BlockerVerifying, "the current Bundle crossed and is still being verified; downstream Gates wait for it"},
	{BlockerPassageFail, "the last crossing failed; reason and step say where"},
	{BlockerPassageAborted, "the last crossing was aborted by somebody"},
	{BlockerNoBundles, "no Bundle exists from any admitted Beacon; reason says why"},
	{BlockerUpstream, "the Bundle has not cleared the Gates that come before; the chain leads to the root cause"},
	{BlockerNotApproved, "a person has to approve the Bundle for this Gate"},
	{BlockerWindowClosed, "no promotion window is open; opensAt says when"},
	{BlockerUnhealthy, "what the Gate watches is degraded or cannot be assessed"},
	{BlockerManual, "the Gate does not cross by itself: somebody has to ask for the crossing"},
}

// WarningKind is something worth knowing that blocks nothing.
type WarningKind string

// Warning kinds.
const (
	WarnStatusLags     WarningKind = "StatusLags"
	WarnBeacon         WarningKind = "BeaconNotReady"
	WarnNoCaptureTime  WarningKind = "NoCaptureTime"
	WarnUndone         WarningKind = "AutomaticGateUndoes"
	WarnRollback       WarningKind = "Rollback"
	WarnFailedBefore   WarningKind = "FailedHereBefore"
	WarnTargetHealth   WarningKind = "TargetUnhealthy"
	WarnUpstreamHealth WarningKind = "UpstreamTroubled"
	WarnNotVerified    WarningKind = "CurrentNotVerified"
	WarnEvidence       WarningKind = "EvidenceNotCompliant"
	WarnEvidenceAsk    WarningKind = "EvidenceNotAnswerable"
	WarnNotAsked       WarningKind = "ChangeGateNotAsked"
	WarnActor          WarningKind = "ActorMustBeEmail"
	WarnSource         WarningKind = "SourceWarning"
	WarnEvidencePart   WarningKind = "EvidenceConcern"
	WarnConcurrent     WarningKind = "ConcurrentPassages"
	WarnRestart        WarningKind = "MayRestart"
)

// WarningKinds lists every WarningKind.
var WarningKinds = []Meaning[WarningKind]{
	{WarnStatusLags, "the Gate's status contradicts the Bundles; under two minutes that is normal, since Bundles and approvals do not wake a Gate"},
	{WarnBeacon, "an admitted Beacon is missing, suspended or failing, so nothing new may appear"},
	{WarnNoCaptureTime, "the snapshot does not say when it was taken; ages are against the wall clock"},
	{WarnRollback, "the Bundle is older than what the Gate holds"},
	{WarnUndone, "the Gate is automatic and will cross the newest eligible Bundle again"},
	{WarnFailedBefore, "this Bundle failed or was aborted at this Gate before"},
	{WarnTargetHealth, "what the target Gate watches is degraded, unknown or not freshly assessed"},
	{WarnUpstreamHealth, "a Gate that comes before is suspended, failing or degraded"},
	{WarnNotVerified, "the Gate's current Bundle is not verified yet"},
	{WarnEvidence, "the evidence says that the crossing would be refused or held"},
	{WarnEvidenceAsk, "the evidence could not be asked, so compliance is unknown"},
	{WarnNotAsked, "the change gate was not asked, since asking can write to the trail"},
	{WarnActor, "the change step records the actor as deployer, which must be a plain e-mail address"},
	{WarnEvidencePart, "the evidence allows the crossing, but something in it deserves a look"},
	{WarnConcurrent, "another Passage of the Gate was opened at the same instant, by something that does not ask as this does"},
	{WarnRestart, "the Gate is automatic: the controller may start the same Bundle again"},
	{WarnSource, "something about where the data came from"},
}

// HoldKind is why the change gate withholds approval.
type HoldKind string

// Hold kinds.
const (
	HoldFailing     HoldKind = "FailingControls"
	HoldMissing     HoldKind = "MissingEvidence"
	HoldHuman       HoldKind = "AwaitingHuman"
	HoldServiceOnly HoldKind = "ServiceApprovalOnly"
	HoldRisk        HoldKind = "OverRiskLimit"
	HoldUnavailable HoldKind = "EvidenceUnavailable"
	HoldOther       HoldKind = "Other"
)

// HoldKinds lists every HoldKind.
var HoldKinds = []Meaning[HoldKind]{
	{HoldFailing, "a control has failing evidence"},
	{HoldMissing, "a control lacks evidence"},
	{HoldHuman, "every control is satisfied; a person has to approve"},
	{HoldServiceOnly, "only a service identity approved, which does not count"},
	{HoldRisk, "the risk score is over the step's maxRisk"},
	{HoldUnavailable, "the evidence server could not be asked"},
	{HoldOther, "the controller recorded a reason of another kind"},
}

// Reason codes of NoBundles.
const (
	ReasonBeaconMissing   = "BeaconMissing"
	ReasonBeaconSuspended = "BeaconSuspended"
	ReasonBeaconFailing   = "BeaconFailing"
	ReasonBeaconManual    = "BeaconManual"
	ReasonBeaconNotPolled = "BeaconNotPolled"
	ReasonBeaconEmpty     = "BeaconFoundNothing"
	ReasonBeaconUnread    = "BeaconUnreadable"
)

// ChainKind is what a link of the causal chain is. It holds every BlockerKind
// and the kinds that only a chain has.
type ChainKind string

// Chain kinds beyond the BlockerKinds.
const (
	ChainGateNotFound  ChainKind = "GateNotFound"
	ChainCycle         ChainKind = "Cycle"
	ChainNeverTried    ChainKind = "NeverTried"
	ChainCrossing      ChainKind = "Crossing"
	ChainNotAdmitted   ChainKind = "NotAdmitted"
	ChainStatusLags    ChainKind = "StatusLags"
	ChainSuperseded    ChainKind = "Superseded"
	ChainFluxSuspended ChainKind = "FluxSuspended"
	ChainBeaconMissing ChainKind = ReasonBeaconMissing
	ChainBeaconSusp    ChainKind = ReasonBeaconSuspended
	ChainBeaconFailing ChainKind = ReasonBeaconFailing
	ChainBeaconManual  ChainKind = ReasonBeaconManual
	ChainBeaconNotYet  ChainKind = ReasonBeaconNotPolled
	ChainBeaconEmpty   ChainKind = ReasonBeaconEmpty
	ChainBeaconUnread  ChainKind = ReasonBeaconUnread
)

// ChainKinds lists every kind a link can have: the blockers' and its own.
var ChainKinds = func() []Meaning[ChainKind] {
	var out []Meaning[ChainKind]
	for _, b := range BlockerKinds {
		out = append(out, Meaning[ChainKind]{ChainKind(b.Code), b.Meaning})
	}
	return append(out,
		Meaning[ChainKind]{ChainGateNotFound, "admits[].after names a Gate that does not exist"},
		Meaning[ChainKind]{ChainCycle, "Gates wait for each other in admits[].after"},
		Meaning[ChainKind]{ChainNeverTried, "the Bundle was never taken through this Gate, though it could be"},
		Meaning[ChainKind]{ChainCrossing, "the Bundle is crossing this Gate right now"},
		Meaning[ChainKind]{ChainNotAdmitted, "the Gate does not admit Bundles of this Beacon, so it can never clear them"},
		Meaning[ChainKind]{ChainStatusLags, "the controller has not written what follows from the objects yet"},
		Meaning[ChainKind]{ChainSuperseded, "the Gate holds another Bundle and will not take this one by itself"},
		Meaning[ChainKind]{ChainFluxSuspended, "the Flux object that the crossing waits for is suspended"},
		Meaning[ChainKind]{ChainBeaconMissing, "the admitted Beacon does not exist"},
		Meaning[ChainKind]{ChainBeaconSusp, "the Beacon is suspended"},
		Meaning[ChainKind]{ChainBeaconFailing, "the Beacon cannot resolve its sources"},
		Meaning[ChainKind]{ChainBeaconManual, "the Beacon only discovers; somebody has to emit"},
		Meaning[ChainKind]{ChainBeaconNotYet, "the Beacon has not polled yet"},
		Meaning[ChainKind]{ChainBeaconEmpty, "the Beacon polled and found nothing that matches"},
		Meaning[ChainKind]{ChainBeaconUnread, "the Beacon could not be read, so it cannot be told"},
	)
}()

// AuditKind is what happened.
type AuditKind string

// Audit kinds.
const (
	AuditCrossed  AuditKind = "crossed"
	AuditRefused  AuditKind = "refused"
	AuditAborted  AuditKind = "aborted"
	AuditRunning  AuditKind = "running"
	AuditApproved AuditKind = "approved"
)

// AuditKinds lists every AuditKind.
var AuditKinds = []Meaning[AuditKind]{
	{AuditCrossed, "a Bundle reached a Gate"},
	{AuditRefused, "a crossing was attempted and failed"},
	{AuditAborted, "a crossing was stopped by somebody"},
	{AuditRunning, "a crossing is in progress"},
	{AuditApproved, "a person approved a Bundle for a Gate"},
}

// SourceCode is why something could not be read.
type SourceCode string

// Source codes: the part of the error contract that a read can meet.
const (
	SourceNotFound     SourceCode = "NotFound"
	SourceForbidden    SourceCode = "Forbidden"
	SourceUnauth       SourceCode = "Unauthenticated"
	SourceNotInstalled SourceCode = "KindNotInstalled"
	SourceUnavailable  SourceCode = "Unavailable"
	SourceTimeout      SourceCode = "Timeout"
	SourceInternal     SourceCode = "Internal"
)

// SourceCodes lists every SourceCode.
var SourceCodes = []Meaning[SourceCode]{
	{SourceNotFound, "the object does not exist"},
	{SourceForbidden, "the identity in scope may not read it"},
	{SourceUnauth, "the credentials were refused"},
	{SourceNotInstalled, "the cluster does not have this kind"},
	{SourceUnavailable, "nothing that is an answer came back"},
	{SourceTimeout, "no answer in time"},
	{SourceInternal, "something unexpected"},
}
