package tools

import (
	"github.com/hecate-mcp/hecate-mcp/internal/confirm"
	"github.com/hecate-mcp/hecate-mcp/internal/gitops"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

// CodeRow is one code of the catalogue.
type CodeRow struct {
	Code    string `json:"code"`
	Meaning string `json:"meaning"`
}

// CodeGroup is one family of codes and where they stand in an answer.
type CodeGroup struct {
	Group string    `json:"group"`
	Where string    `json:"where"`
	Codes []CodeRow `json:"codes"`
}

func group[C ~string](name, where string, table []ops.Meaning[C]) CodeGroup {
	g := CodeGroup{Group: name, Where: where}
	for _, m := range table {
		g.Codes = append(g.Codes, CodeRow{string(m.Code), m.Meaning})
	}
	return g
}

// Catalogue lists every code: the tables are the ones that the schemas' enums
// are made of.
func Catalogue() []CodeGroup {
	chain := ops.ChainKinds[len(ops.BlockerKinds):]
	return []CodeGroup{
		group("State", "state, in the order in which they are tried", ops.States),
		group("BlockerKind", "blockers[].kind, in the order in which somebody has to act", ops.BlockerKinds),
		group("ChainKind", "chain[].kind and rootCauses[].kind: every BlockerKind and these", chain),
		group("HoldKind", "hold[].kind", ops.HoldKinds),
		group("WarningKind", "warnings[].kind", ops.WarningKinds),
		group("SourceCode", "incomplete[].code", ops.SourceCodes),
		group("AuditKind", "entries[].kind", ops.AuditKinds),
		group("RefusalReason", "refusals[].reason", ops.RefusalReasons),
		group("WriteRefusal", "reason of Refused, for writes: every RefusalReason and these", ops.WriteRefusals),
		group("Confirmation", "reason of ConfirmationRequired, ConfirmationDeclined and ConfirmationExpired", confirmReasons),
		group("PreviewVerdict", "verdict of preview_promotion", ops.PreviewVerdicts),
		group("Role", "whoMustAct[].who", ops.Roles),
		group("ExclusionReason", "packet.notBy[].why", ops.ExclusionReasons),
		group("ArtifactStatus", "artifacts[].status", ops.ArtifactStatuses),
		group("Conclusion", "conclusion", ops.Conclusions),
		group("CheckName", "evidence[].check", ops.CheckNames),
		group("CheckResult", "evidence[].result", ops.CheckResults),
		group("HashChainStatus", "artifacts[].chain.status", ops.HashChainStatuses),
		group("ConcernKind", "artifacts[].concerns[].kind", ops.ConcernKinds),
		group("FluxState", "kustomizations[].state of a Flux repository", meanings(gitops.States)),
		group("Finding", "findings[].code", meanings(gitops.FindingCodes)),
		group("Severity", "findings[].severity and status", meanings(gitops.Severities)),
		group("Authority", "findings[].source", meanings(gitops.Sources)),
		group("Effect", "directlyAffected[].effect", meanings(gitops.Effects)),
		group("UnmappedReason", "unmappedFiles[].reason", meanings(gitops.UnmappedReasons)),
		group("ReconcileCode", "results[].code of reconcile_flux", reconcileCodes),
		group("DeclineReason", "declined[].code of reconcile_flux", declineReasons),
		group("Code", "code of an error", Codes),
	}
}

// confirmReasons are the reasons of internal/confirm with their meanings.
var confirmReasons = []ops.Meaning[confirm.Reason]{
	{Code: confirm.NoForm, Meaning: "the client does not declare that it can ask a person"},
	{Code: confirm.NoAnswer, Meaning: "the client was asked and gave no answer in time, or an error"},
	{Code: confirm.Busy, Meaning: "too many questions wait for an answer already"},
	{Code: confirm.StillWaiting, Meaning: "the plan of the same call waits for a person already"},
	{Code: confirm.Said, Meaning: "a person said no"},
	{Code: confirm.Cancelled, Meaning: "the question was closed without an answer"},
	{Code: confirm.NotConfirmed, Meaning: "accepted, but confirm is not true"},
	{Code: confirm.Unreadable, Meaning: "the answer is none of accept, decline and cancel"},
	{Code: confirm.TooLate, Meaning: "the confirmation's time is over"},
	{Code: confirm.Used, Meaning: "the confirmation was used before"},
	{Code: confirm.Unknown, Meaning: "this server process does not have the question (any more)"},
	{Code: confirm.Replaced, Meaning: "a newer plan of the same call was asked about meanwhile"},
	{Code: confirm.OtherCall, Meaning: "the answer belongs to another tool or other arguments"},
	{Code: confirm.OtherPrincipal, Meaning: "the answer belongs to somebody else's call"},
	{Code: confirm.Tampered, Meaning: "the state is not as this server sealed it"},
	{Code: confirm.Silent, Meaning: "the state came back without an answer"},
	{Code: confirm.Unasked, Meaning: "an answer came without a question"},
}
