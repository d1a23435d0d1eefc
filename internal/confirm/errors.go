package confirm

import (
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Codes of this package's errors.
const (
	CodeRequired = "ConfirmationRequired"
	CodeDeclined = "ConfirmationDeclined"
	CodeExpired  = "ConfirmationExpired"
	CodeRefused  = "Refused"
)

// Reason says why, as a stable code.
type Reason string

// Reasons of Required.
const (
	// NoForm: the client does not declare that it can show a form.
	NoForm Reason = "NoForm"
	// NoAnswer: the client was asked and gave no answer in time, or an error.
	NoAnswer Reason = "NoAnswer"
	// Busy: too many questions wait for an answer already.
	Busy Reason = "Busy"
	// StillWaiting: the plan of the same call waits for the terminal since an
	// earlier call.
	StillWaiting Reason = "Waiting"
)

// Reasons of Declined.
const (
	// Said: a person said no.
	Said Reason = "Declined"
	// Cancelled: the question was closed without an answer.
	Cancelled Reason = "Cancelled"
	// NotConfirmed: accepted, but confirm is not the boolean true.
	NotConfirmed Reason = "NotConfirmed"
	// Unreadable: the answer is none of accept, decline and cancel.
	Unreadable Reason = "Unreadable"
)

// Reasons of Expired.
const (
	// TooLate: the confirmation's time is over.
	TooLate Reason = "Expired"
	// Used: the confirmation was used before.
	Used Reason = "Used"
	// Unknown: this server process does not have the question (any more).
	Unknown Reason = "Unknown"
	// Replaced: a newer plan of the same call was asked about meanwhile.
	Replaced Reason = "Replaced"
	// OtherCall: the answer belongs to another tool or other arguments.
	OtherCall Reason = "OtherCall"
	// OtherPrincipal: the answer belongs to somebody else's call.
	OtherPrincipal Reason = "OtherPrincipal"
	// Tampered: the state is not as this server sealed it.
	Tampered Reason = "Tampered"
	// Silent: the state came back without an answer.
	Silent Reason = "Silent"
	// Unasked: an answer came without a question.
	Unasked Reason = "Unasked"
)

// Required is the error of a call whose plan nobody has confirmed yet and
// whose client can't ask. A person has to run Command and accept the plan;
// then the same call goes through once.
type Required struct {
	Reason Reason
	// Title is the plan's.
	Title string
	// Command is what a person runs; "" when there is no terminal way, and
	// nothing waits then.
	Command string
	// ExpiresAt is when the plan stops waiting; zero without a Command.
	ExpiresAt time.Time
	// Replaced: the plan of an earlier same call waited and differed; this one
	// took its place.
	Replaced bool
}

var requiredWhy = map[Reason]string{
	NoForm:       "this client cannot ask a person",
	NoAnswer:     "the client was asked and gave no answer",
	Busy:         "too many questions wait for an answer already",
	StillWaiting: "the plan of this call waits for a person already",
}

func (e *Required) Error() string {
	msg := "a person has to confirm this first, and " + requiredWhy[e.Reason]
	if e.Command == "" {
		return msg + "; this server has no other way to ask"
	}
	msg += fmt.Sprintf(": a person runs %q on a terminal before %s, then make the same call again", e.Command, e.ExpiresAt.UTC().Format(time.RFC3339))
	if e.Replaced {
		msg += "; the plan has changed since the last call, and the new one waits instead"
	}
	return msg
}

// Code returns CodeRequired.
func (e *Required) Code() string { return CodeRequired }

// Declined is the error of a plan that was put before a person and not
// accepted. The plan is gone.
type Declined struct {
	Reason Reason
	// Via is where the answer came from.
	Via string
	// Plan is the one that was not accepted, for the record.
	Plan Plan
}

var declinedWhy = map[Reason]string{
	Said:         "a person declined: nothing was done",
	Cancelled:    "the question was closed without an answer: nothing was done",
	NotConfirmed: "the form was sent without confirm: true, which is no confirmation: nothing was done",
	Unreadable:   "the client's answer is none of accept, decline and cancel: nothing was done",
}

func (e *Declined) Error() string { return declinedWhy[e.Reason] }

// Code returns CodeDeclined.
func (e *Declined) Code() string { return CodeDeclined }

// Expired is the error of an answer that does not count, or not any more.
// Nothing was done by it.
type Expired struct{ Reason Reason }

var expiredWhy = map[Reason]string{
	TooLate:        "its time is over",
	Used:           "it was used before; look whether the write was done",
	Unknown:        "this server does not have the question: it was restarted, or newer ones took its place",
	Replaced:       "the plan has changed since, and a newer question was asked",
	OtherCall:      "it belongs to another tool or other arguments",
	OtherPrincipal: "it belongs to somebody else's call",
	Tampered:       "its state is not as this server made it",
	Silent:         "its state came back without an answer",
	Unasked:        "no question was asked: answers in a first call do not count",
}

func (e *Expired) Error() string {
	return "this confirmation does not count: " + expiredWhy[e.Reason] + "; make the call without requestState and inputResponses to be asked anew"
}

// Code returns CodeExpired.
func (e *Expired) Code() string { return CodeExpired }

// InputRequired is no failure: Result asks a modern client for the answer and
// is to be returned as it is.
type InputRequired struct {
	Result *mcp.CallToolResult
	Title  string
}

func (e *InputRequired) Error() string { return "a person is asked: " + e.Title }

// FolderError is a folder of sockets that cannot be private to the user, or
// cannot be used.
type FolderError struct {
	Folder, Problem string
	Err             error
}

func (e *FolderError) Error() string {
	msg := fmt.Sprintf("the folder for confirmations %s %s", e.Folder, e.Problem)
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

func (e *FolderError) Unwrap() error { return e.Err }

// Code returns CodeRefused: without privacy there are no confirmations.
func (e *FolderError) Code() string { return CodeRefused }
