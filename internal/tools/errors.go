package tools

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/hecate-mcp/hecate-mcp/internal/cluster"
	"github.com/hecate-mcp/hecate-mcp/internal/confirm"
	"github.com/hecate-mcp/hecate-mcp/internal/fides"
	"github.com/hecate-mcp/hecate-mcp/internal/ops"
)

// Code is the stable code of an error.
type Code string

// Codes of errors. Not found, forbidden, kind not installed and empty are four
// different answers; Refused is an answer of the rules, not a failure.
const (
	InvalidArgument  Code = "InvalidArgument"
	NotFound         Code = "NotFound"
	Ambiguous        Code = "Ambiguous"
	Refused          Code = "Refused"
	Forbidden        Code = "Forbidden"
	Unauthenticated  Code = "Unauthenticated"
	KindNotInstalled Code = "KindNotInstalled"
	Conflict         Code = "Conflict"
	Drifted          Code = "Drifted"
	// The three of a write that nobody confirmed.
	ConfirmationRequired Code = "ConfirmationRequired"
	ConfirmationDeclined Code = "ConfirmationDeclined"
	ConfirmationExpired  Code = "ConfirmationExpired"
	Unavailable          Code = "Unavailable"
	Timeout              Code = "Timeout"
	TooLarge             Code = "TooLarge"
	Internal             Code = "Internal"
)

// Codes lists every Code.
var Codes = []ops.Meaning[Code]{
	{Code: InvalidArgument, Meaning: "an argument is wrong; validValues says what is valid"},
	{Code: NotFound, Meaning: "the named object does not exist; candidates are the nearest that do"},
	{Code: Ambiguous, Meaning: "the name fits several objects; candidates lists them"},
	{Code: Refused, Meaning: "the rules do not allow it; reason is the rule's code"},
	{Code: Forbidden, Meaning: "the identity may not do this"},
	{Code: Unauthenticated, Meaning: "the credentials were not accepted"},
	{Code: KindNotInstalled, Meaning: "the cluster does not have this kind: Hecate is not installed there"},
	{Code: Conflict, Meaning: "somebody else changed the object at the same time"},
	{Code: Drifted, Meaning: "what the confirmed plan rests on changed before it was carried out: differences; nothing was done"},
	{Code: ConfirmationRequired, Meaning: "a person has to confirm the plan first; humanSteps says how, then the same call again"},
	{Code: ConfirmationDeclined, Meaning: "a person did not agree; nothing was done"},
	{Code: ConfirmationExpired, Meaning: "the confirmation does not count, reason says why; nothing was done"},
	{Code: Unavailable, Meaning: "no usable answer came back; trying again may help"},
	{Code: Timeout, Meaning: "no answer in time"},
	{Code: TooLarge, Meaning: "more than what is allowed"},
	{Code: Internal, Meaning: "something unexpected; a fault of this server"},
}

// Error is the error contract: what went wrong, on which object, why, and what
// is valid instead.
type Error struct {
	Code        Code         `json:"code"`
	Reason      string       `json:"reason,omitempty"`
	Message     string       `json:"message"`
	Detail      string       `json:"detail,omitempty"`
	Object      *ops.Object  `json:"object,omitempty"`
	ValidValues []string     `json:"validValues,omitempty"`
	Candidates  []ops.Object `json:"candidates,omitempty"`
	// Refusals are all of a refused plan, Differences what drifted.
	Refusals     []ops.Refusal    `json:"refusals,omitempty"`
	Differences  []ops.Difference `json:"differences,omitempty"`
	Confirmation *Confirmation    `json:"confirmation,omitempty"`
	Retryable    bool             `json:"retryable"`
	NextSteps    []ops.NextStep   `json:"nextSteps,omitempty"`
	HumanSteps   []ops.HumanStep  `json:"humanSteps,omitempty"`
}

// Confirmation is what waits for a person. It is no key to anything.
type Confirmation struct {
	Title     string     `json:"title"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

func invalid(format string, args ...any) *Error {
	return &Error{Code: InvalidArgument, Message: fmt.Sprintf(format, args...)}
}

// toError makes any error a coded one.
func toError(err error) *Error {
	var coded *Error
	var notFound *ops.NotFoundError
	var ambiguous *ops.AmbiguousError
	var refused *ops.RefusedError
	var cursor *ops.CursorError
	var evidence *fides.Error
	var usage *cluster.UsageError
	var argument *ops.InvalidError
	var drifted *ops.DriftedError
	var required *confirm.Required
	var declined *confirm.Declined
	var expired *confirm.Expired
	var folder *confirm.FolderError
	switch {
	case errors.As(err, &coded):
		return coded
	case errors.As(err, &notFound):
		e := &Error{Code: NotFound, Message: notFound.Error(), Object: &notFound.Object}
		for _, name := range notFound.Candidates {
			o := notFound.Object
			o.Name = name
			e.Candidates = append(e.Candidates, o)
		}
		if tool := listTool[notFound.Object.Kind]; tool != "" {
			e.NextSteps = []ops.NextStep{{Tool: tool, Arguments: map[string]string{"namespace": allNamespaces}, Why: "what there is, in all namespaces"}}
		}
		return e
	case errors.As(err, &ambiguous):
		e := &Error{Code: Ambiguous, Message: ambiguous.Error() + ": give the exact name and the namespace", Candidates: ambiguous.Candidates}
		if len(e.Candidates) > maxCandidates {
			e.Candidates = e.Candidates[:maxCandidates]
		}
		return e
	case errors.As(err, &refused):
		return &Error{Code: Refused, Reason: refused.Reason, Message: refused.Detail, Object: refused.Object, Refusals: refused.Refusals}
	case errors.As(err, &argument):
		return invalid("%s", argument.Message)
	case errors.As(err, &drifted):
		return &Error{Code: Drifted, Message: drifted.Error(), Object: drifted.Object, Differences: drifted.Differences}
	case errors.As(err, &required):
		e := &Error{Code: ConfirmationRequired, Reason: string(required.Reason), Message: required.Error(), Confirmation: &Confirmation{Title: required.Title}}
		if required.Command != "" {
			at := required.ExpiresAt.UTC()
			e.Confirmation.ExpiresAt = &at
			e.HumanSteps = []ops.HumanStep{{Command: required.Command, Why: "shows the plan and asks for the name to be typed; then make the same call again"}}
		}
		return e
	case errors.As(err, &declined):
		return &Error{Code: ConfirmationDeclined, Reason: string(declined.Reason), Message: declined.Error()}
	case errors.As(err, &expired):
		return &Error{Code: ConfirmationExpired, Reason: string(expired.Reason), Message: expired.Error()}
	case errors.As(err, &folder):
		return &Error{Code: Refused, Reason: "ConfirmationFolder", Message: folder.Error()}
	case errors.As(err, &cursor):
		return invalid("cursor: %s", cursor.Message)
	case errors.As(err, &evidence):
		return &Error{Code: Unavailable, Reason: string(evidence.Code), Message: "evidence server: " + ops.Clean(evidence.Error(), 300), Retryable: true}
	case errors.As(err, &usage):
		return &Error{Code: InvalidArgument, Message: usage.Error(), ValidValues: usage.ValidValues}
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: Timeout, Message: "no answer in time from the cluster or the evidence server", Detail: ops.Clean(err.Error(), 200), Retryable: true}
	case errors.Is(err, context.Canceled):
		return &Error{Code: Timeout, Message: "the call was cancelled", Retryable: true}
	}
	e := &Error{Code: clusterCode(err), Message: ops.Clean(err.Error(), 400)}
	e.Retryable = (e.Code == Unavailable || e.Code == Timeout || e.Code == Conflict) && !needsRepair(err)
	if e.Code == KindNotInstalled {
		e.Message = "the cluster does not serve hecate.dev/v1alpha1: Hecate is not installed there (" + e.Message + ")"
	}
	return e
}

// needsRepair says that trying again meets the same: a certificate that is not
// trusted, a credential helper that is not there.
func needsRepair(err error) bool {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	return errors.As(err, &authority) || errors.As(err, &invalid) || errors.As(err, &host) || errors.Is(err, exec.ErrNotFound)
}

// listTool is the tool that lists a kind.
var listTool = map[string]string{"Gate": "list_gates", "Bundle": "list_bundles", "Beacon": "list_beacons", "Passage": "list_passages"}

// maxCandidates bounds the candidates of an error; the message counts all.
const maxCandidates = 20

func clusterCode(err error) Code {
	switch c := cluster.Classify(err); c {
	case cluster.CodeExpired:
		return Unavailable
	case cluster.CodeNotFound, cluster.CodeForbidden, cluster.CodeUnauthenticated, cluster.CodeKindNotInstalled, cluster.CodeConflict,
		cluster.CodeTimeout, cluster.CodeUnavailable, cluster.CodeInvalidArgument, cluster.CodeTooLarge, cluster.CodeRefused:
		return Code(c)
	default:
		return Internal
	}
}

// ExitCode is the command line's: 0 answered, 1 usage, 2 could not tell,
// 3 not found or ambiguous, 5 refused.
func (e *Error) ExitCode() int {
	switch e.Code {
	case InvalidArgument:
		return 1
	case NotFound, Ambiguous:
		return 3
	case Refused, Drifted, ConfirmationRequired, ConfirmationDeclined, ConfirmationExpired:
		return 5
	default:
		return 2
	}
}

// Invalid is an InvalidArgument error.
func Invalid(format string, args ...any) *Error { return invalid(format, args...) }

// Failed is the answer of a call that an error prevented.
func Failed(err error) Answer { return failed(toError(err)) }
