package ops

// PreviewQuery asks what a promotion would do.
type PreviewQuery struct {
	Namespace string
	// Gate is an exact name or a unique part of one.
	Gate string
	// Bundle is an exact name; empty takes the newest one not yet in.
	Bundle string
	// ConsultChangeGate allows the one question that can write.
	ConsultChangeGate bool
}

// PreviewVerdict is how a promotion would end.
type PreviewVerdict string

// Preview verdicts.
const (
	PreviewRefused   PreviewVerdict = "Refused"
	PreviewWouldFail PreviewVerdict = "WouldFail"
	PreviewWouldHold PreviewVerdict = "WouldHold"
	PreviewUnknown   PreviewVerdict = "Unknown"
	PreviewCrosses   PreviewVerdict = "WouldCross"
)

// PreviewVerdicts lists every PreviewVerdict, the first that holds.
var PreviewVerdicts = []Meaning[PreviewVerdict]{
	{PreviewRefused, "the rules would not open a Passage; refusals say why"},
	{PreviewWouldFail, "a Passage would open and fail at its evidence step"},
	{PreviewWouldHold, "a Passage would open and wait at its evidence step"},
	{PreviewUnknown, "the rules allow it, but something that decides could not be found out or was not asked"},
	{PreviewCrosses, "the rules and the evidence allow it; other steps may still fail"},
}

// Role is who has to act.
type Role string

// Roles.
const (
	RoleOperator Role = "Operator"
	RoleEvidence Role = "EvidenceOwner"
	RoleApprover Role = "Approver"
	RoleTime     Role = "Time"
	RolePromoter Role = "Promoter"
)

// Roles lists every Role in the order in which they act.
var Roles = []Meaning[Role]{
	{RoleOperator, "somebody who may change the Gate, or another Gate before it"},
	{RoleEvidence, "whoever owns the build, its tests and scans, or the evidence server"},
	{RoleApprover, "a person who may approve and is not excluded"},
	{RoleTime, "nobody: it ends by itself"},
	{RolePromoter, "somebody who asks for the crossing"},
}

// Act is one thing that somebody has to do before the Bundle crosses.
type Act struct {
	Who     Role       `json:"who" jsonschema_description:"role"`
	What    string     `json:"what" jsonschema_description:"what is left to do"`
	Command *HumanStep `json:"command,omitempty" jsonschema_description:"what the person runs"`
}

// ExclusionReason is why somebody may not approve.
type ExclusionReason string

// Exclusion reasons.
const (
	ExcludedCommitter ExclusionReason = "Committer"
	ExcludedDeployer  ExclusionReason = "Deployer"
)

// ExclusionReasons lists every ExclusionReason.
var ExclusionReasons = []Meaning[ExclusionReason]{
	{ExcludedCommitter, "wrote the change; approving it too is a segregation-of-duties violation"},
	{ExcludedDeployer, "deploys the change; a deployer's own sign-off is not an approval"},
}

// Exclusion is somebody who may not approve.
type Exclusion struct {
	Who string          `json:"who" jsonschema_description:"identity"`
	Why ExclusionReason `json:"why" jsonschema_description:"code of the reason"`
}

// Packet is what an approver needs to decide: what, for which Gate, on which
// evidence, and how. An approval is a person's: no tool gives one.
type Packet struct {
	Gate      string   `json:"gate" jsonschema_description:"Gate to approve for"`
	Bundle    string   `json:"bundle" jsonschema_description:"Bundle to approve"`
	Digest    string   `json:"digest,omitempty" jsonschema_description:"content digest of the Bundle"`
	Artifacts []string `json:"artifacts" jsonschema_description:"what is in it, with digests"`
	// Required says whether the Gate asks for an approval that is not there.
	Required   bool        `json:"required" jsonschema_description:"whether the Gate still waits for an approval"`
	ApprovedBy string      `json:"approvedBy,omitempty" jsonschema_description:"whose approval stands for this Gate"`
	NotBy      []Exclusion `json:"notBy" jsonschema_description:"who may not approve"`
	// CommitterKnown is false when nobody has said who wrote the change, so
	// that NotBy may lack them.
	CommitterKnown bool        `json:"committerKnown" jsonschema_description:"false: notBy may lack the committer"`
	Attested       []string    `json:"attested" jsonschema_description:"compliant attestation types"`
	Missing        []string    `json:"missing" jsonschema_description:"what is missing or failing"`
	HumanSteps     []HumanStep `json:"humanSteps" jsonschema_description:"by a person only: {command, why}"`
}

// Preview is whether a promotion would cross, what is missing, when a window
// opens and who still has to act. It is the Plan of a promotion: reading only.
type Preview struct {
	Summary    string          `json:"summary" jsonschema_description:"one line that stands alone"`
	Gate       string          `json:"gate" jsonschema_description:"Gate"`
	Namespace  string          `json:"namespace" jsonschema_description:"namespace"`
	Bundle     string          `json:"bundle,omitempty" jsonschema_description:"Bundle that would cross"`
	Digest     string          `json:"digest,omitempty" jsonschema_description:"content digest of the Bundle"`
	WouldCross bool            `json:"wouldCross" jsonschema_description:"true only when nothing is left open"`
	Verdict    PreviewVerdict  `json:"verdict" jsonschema_description:"how it would end"`
	Refusals   []Refusal       `json:"refusals" jsonschema_description:"every obstacle, in the order to act"`
	Warnings   []Warning       `json:"warnings" jsonschema_description:"to be seen before saying yes"`
	Evidence   []EvidenceCheck `json:"evidence" jsonschema_description:"what the Gate's evidence step would run"`
	WhoMustAct []Act           `json:"whoMustAct" jsonschema_description:"who still has to act, in order"`
	Packet     *Packet         `json:"packet,omitempty" jsonschema_description:"what has to be approved"`
	// Pin is what the decision rests on: the Plan's own, not the reader's.
	Pin        Pin          `json:"-"`
	Incomplete []Incomplete `json:"incomplete" jsonschema_description:"what could not be read"`
}

// Pin is what a plan rests on. It holds no resourceVersion, timestamp or count:
// a controller rewrites a Gate's status every minute, and that changes nothing.
type Pin struct {
	Namespace      string `json:"namespace"`
	Gate           string `json:"gate"`
	GateUID        string `json:"gateUID"`
	GateGeneration int64  `json:"gateGeneration"`
	Bundle         string `json:"bundle"`
	BundleUID      string `json:"bundleUID"`
	BundleDigest   string `json:"bundleDigest"`
	Current        string `json:"current"`
	// Passages are the UIDs of the Gate's Passages that are not finished.
	Passages []string `json:"passages"`
	// Approval is whose approval for this Gate stands, "" for none.
	Approval string `json:"approval"`
	// NotEligible are the codes of the eligibility rules that refuse.
	NotEligible []RefusalReason `json:"notEligible"`
	Window      string          `json:"window"`
	Suspended   bool            `json:"suspended"`
	Steps       string          `json:"steps"`
	Checks      []PinnedCheck   `json:"checks"`
	Verdicts    []PinnedVerdict `json:"verdicts"`
}

// PinnedCheck is how one check of the evidence step would end.
type PinnedCheck struct {
	Check  CheckName   `json:"check"`
	Digest string      `json:"digest"`
	Result CheckResult `json:"result"`
}

// PinnedVerdict is a change gate's recommendation with its control sets.
type PinnedVerdict struct {
	Digest         string     `json:"digest"`
	Trail          string     `json:"trail"`
	Conclusion     Conclusion `json:"conclusion"`
	Recommendation string     `json:"recommendation"`
	Passed         []string   `json:"passed"`
	Failed         []string   `json:"failed"`
	Missing        []string   `json:"missing"`
	Waived         []string   `json:"waived"`
}

// Digest is the SHA-256 of the pin, in hex: equal pins have equal digests.
func (p Pin) Digest() string { return digestOf(p) }
