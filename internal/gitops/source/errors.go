package source

import (
	"context"
	"errors"
	"fmt"
)

// Code says why a tree can't be had.
type Code string

// The codes of errors.
const (
	// NotARepository: the folder is no Git repository and the question needs one.
	NotARepository Code = "NotARepository"
	// UnknownRef: no such branch, tag or commit; Valid holds some that exist.
	UnknownRef Code = "UnknownRef"
	// Shallow: the clone lacks the history that the question needs.
	Shallow Code = "Shallow"
	// UnrelatedHistory: two commits have no common ancestor.
	UnrelatedHistory Code = "UnrelatedHistory"
	// TooLarge: a limit was passed.
	TooLarge Code = "TooLarge"
	// PathNotFound: a folder or file does not exist.
	PathNotFound Code = "PathNotFound"
	// InvalidArgument: the question itself is malformed.
	InvalidArgument Code = "InvalidArgument"
	// Unreadable: the repository is damaged, hostile or may not be read.
	Unreadable Code = "Unreadable"
)

// Error is a failure with a code. Messages name files and refs, never contents.
type Error struct {
	Code    Code
	Message string
	// Valid are, for UnknownRef and PathNotFound, up to ten that exist.
	Valid []string
	Err   error
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// fail makes an Error; what %w wraps becomes its cause.
func fail(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// coded gives an error that has no code one, and leaves a cancelled context be.
func coded(what string, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fail(Unreadable, "%s: %w", what, plain(err))
}

// maxValid bounds Error.Valid.
const maxValid = 10
