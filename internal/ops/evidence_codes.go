package ops

// ArtifactStatus is what is known about one image of a Bundle.
type ArtifactStatus string

// Artifact statuses.
const (
	ArtifactOnTrail       ArtifactStatus = "OnTrail"
	ArtifactTrailEmpty    ArtifactStatus = "TrailEmpty"
	ArtifactNoTrail       ArtifactStatus = "NoTrail"
	ArtifactNotRegistered ArtifactStatus = "NotRegistered"
	ArtifactNoDigest      ArtifactStatus = "NoDigest"
	ArtifactNotConfigured ArtifactStatus = "NotConfigured"
	ArtifactUnavailable   ArtifactStatus = "Unavailable"
	ArtifactRecorded      ArtifactStatus = "Recorded"
)

// ArtifactStatuses lists every ArtifactStatus.
var ArtifactStatuses = []Meaning[ArtifactStatus]{
	{ArtifactOnTrail, "the artifact is on a trail that holds evidence"},
	{ArtifactTrailEmpty, "the artifact is on a trail, but nothing is attested there yet"},
	{ArtifactNoTrail, "the evidence server knows the artifact, but it is on no trail"},
	{ArtifactNotRegistered, "the evidence server has never heard of this digest"},
	{ArtifactNoDigest, "the Bundle pins no digest, so there is nothing to ask about"},
	{ArtifactNotConfigured, "no evidence server is configured here"},
	{ArtifactUnavailable, "nothing that is an answer came back; nothing follows about compliance"},
	{ArtifactRecorded, "not asked; this is what the cluster's objects recorded"},
}

// Conclusion is what the evidence of an artifact amounts to.
type Conclusion string

// Conclusions.
const (
	ConcludeBrokenChain Conclusion = "BrokenChain"
	ConcludeHold        Conclusion = "Hold"
	ConcludeNoEvidence  Conclusion = "NoEvidence"
	ConcludeUnknown     Conclusion = "Unknown"
	ConcludeNotAsked    Conclusion = "NotAsked"
	ConcludeApprove     Conclusion = "Approve"
)

// Conclusions lists every Conclusion, the worst first: the worst one stands
// for several artifacts.
var Conclusions = []Meaning[Conclusion]{
	{ConcludeBrokenChain, "the trail's hash chain is broken: nothing on it can be trusted, an approval included"},
	{ConcludeHold, "the change gate withholds approval; hold says which kinds"},
	{ConcludeNoEvidence, "there is no trail to judge"},
	{ConcludeUnknown, "it could not be found out, which is not the same as non-compliant"},
	{ConcludeNotAsked, "the change gate was not asked"},
	{ConcludeApprove, "the change gate approves and the chain is not broken; concerns may remain"},
}

// HashChainStatus is how far a trail's hash chain vouches for its evidence.
type HashChainStatus string

// Hash chain statuses.
const (
	HashAnchored         HashChainStatus = "Anchored"
	HashUnanchored       HashChainStatus = "Unanchored"
	HashExtended         HashChainStatus = "ExtendedSinceAnchor"
	HashAnchorBehind     HashChainStatus = "AnchorBehind"
	HashAnchorUnverified HashChainStatus = "AnchorUnverified"
	HashPartial          HashChainStatus = "CountMismatch"
	HashEmpty            HashChainStatus = "Unhashed"
	HashUnknown          HashChainStatus = "Unknown"
	HashTruncated        HashChainStatus = "TailRemoved"
	HashBroken           HashChainStatus = "Broken"
)

// HashChainStatuses lists every HashChainStatus, the best first.
var HashChainStatuses = []Meaning[HashChainStatus]{
	{HashAnchored, "intact, and its head is the one that an outside authority timestamped"},
	{HashUnanchored, "intact, but never anchored: removed newest entries would not show"},
	{HashExtended, "intact; the head is not the anchored one, which newer entries explain"},
	{HashAnchorBehind, "intact; the head is not the anchored one: entries were appended since, or removed"},
	{HashAnchorUnverified, "intact, but the outside timestamp could not be verified"},
	{HashPartial, "fewer entries are chained than attested, so it does not vouch for all of them"},
	{HashEmpty, "no entry carries a hash, so the chain vouches for nothing"},
	{HashUnknown, "the chain could not be checked"},
	{HashTruncated, "the anchored head is gone and no newer entry explains that: the newest entries were removed"},
	{HashBroken, "an entry was altered, removed or reordered"},
}

// ConcernKind is something in the evidence that a person should see even when
// the verdict is approve.
type ConcernKind string

// Concern kinds.
const (
	ConcernDeployer   ConcernKind = "DeployerSignOff"
	ConcernSoD        ConcernKind = "SegregationOfDuties"
	ConcernWaiver     ConcernKind = "Waiver"
	ConcernService    ConcernKind = "ServiceApproval"
	ConcernChain      ConcernKind = "ChainNotAnchored"
	ConcernAttested   ConcernKind = "NonCompliantAttestation"
	ConcernChange     ConcernKind = "ChangeRecordNotReady"
	ConcernNotJudged  ConcernKind = "NotJudgedByGate"
	ConcernUnanswered ConcernKind = "Unanswered"
)

// ConcernKinds lists every ConcernKind.
var ConcernKinds = []Meaning[ConcernKind]{
	{ConcernDeployer, "the only human sign-off is the deployer's own, and it lifted the hold"},
	{ConcernSoD, "one person holds two roles, or a role is not recorded"},
	{ConcernWaiver, "a control is waived, not satisfied"},
	{ConcernService, "a service identity approved, which does not count"},
	{ConcernChain, "the hash chain vouches for less than it seems to"},
	{ConcernAttested, "an attestation on the trail is not compliant"},
	{ConcernChange, "the change record of the ITSM system is missing, on hold or not approved"},
	{ConcernNotJudged, "the Gate's step looks at the first image only; this one would not be approved"},
	{ConcernUnanswered, "a part of the evidence could not be read"},
}

// CheckName is one thing that a Gate's evidence step can run, as the step
// itself calls it.
type CheckName string

// Checks.
const (
	CheckAssert    CheckName = "assert"
	CheckAllowlist CheckName = "allowlist"
	CheckPolicy    CheckName = "policy"
	CheckChange    CheckName = "change"
	CheckMaxRisk   CheckName = "maxRisk"
	CheckConfig    CheckName = "config"
)

// CheckNames lists every CheckName.
var CheckNames = []Meaning[CheckName]{
	{CheckConfig, "the step can run at all: Gate, Secret and token are there"},
	{CheckAssert, "every image digest is compliant"},
	{CheckAllowlist, "every image digest is on the environment's allowlist"},
	{CheckPolicy, "the first image's trail satisfies the environment's policies"},
	{CheckChange, "the change gate approves the first image's trail"},
	{CheckMaxRisk, "the risk score is not over the step's maxRisk"},
}

// CheckResult is how a check would end.
type CheckResult string

// Check results.
const (
	CheckPass          CheckResult = "Pass"
	CheckFail          CheckResult = "Fail"
	CheckHold          CheckResult = "Hold"
	CheckUnknown       CheckResult = "Unknown"
	CheckNotAsked      CheckResult = "NotAsked"
	CheckNotConfigured CheckResult = "NotConfigured"
)

// CheckResults lists every CheckResult.
var CheckResults = []Meaning[CheckResult]{
	{CheckPass, "it would pass"},
	{CheckFail, "it would fail the crossing"},
	{CheckHold, "the crossing would wait for it"},
	{CheckUnknown, "it could not be found out"},
	{CheckNotAsked, "not asked, since asking can write to the trail"},
	{CheckNotConfigured, "no evidence server is known here; the controller may know one"},
}
