package gitops

import (
	"errors"

	"github.com/hecate-mcp/hecate-mcp/internal/gitops/source"
)

// ErrorCode says why a question can't be answered at all. What is wrong inside a
// repository is a Finding, never an error.
type ErrorCode string

// The codes of errors.
const (
	ErrInvalidConfig   ErrorCode = "InvalidConfig"
	ErrInvalidArgument ErrorCode = "InvalidArgument"
	ErrNotFound        ErrorCode = "NotFound"
	ErrTooLarge        ErrorCode = "TooLarge"
	ErrHistory         ErrorCode = "History"
	ErrUnavailable     ErrorCode = "Unavailable"
)

// Error is a question that can't be answered.
type Error struct {
	Code    ErrorCode
	Message string
	// Valid are what would have been accepted instead.
	Valid []string
	Err   error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// codeOf maps an error of the source tree.
var codeOf = map[source.Code]ErrorCode{
	source.NotARepository:   ErrInvalidArgument,
	source.UnknownRef:       ErrNotFound,
	source.PathNotFound:     ErrNotFound,
	source.InvalidArgument:  ErrInvalidArgument,
	source.Shallow:          ErrHistory,
	source.UnrelatedHistory: ErrHistory,
	source.TooLarge:         ErrTooLarge,
	source.Unreadable:       ErrUnavailable,
}

// fromSource gives an error of the source tree its code here.
func fromSource(err error) error {
	var se *source.Error
	if !errors.As(err, &se) {
		return err
	}
	code, ok := codeOf[se.Code]
	if !ok {
		code = ErrUnavailable
	}
	return &Error{Code: code, Message: se.Message, Valid: se.Valid, Err: err}
}
