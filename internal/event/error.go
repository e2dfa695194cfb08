package event

import (
	"errors"
	"fmt"
	"time"
)

// Code classifies an error for every edge at once: HTTP status, exit code and
// the error object of an event.
type Code string

const (
	Invalid      Code = "invalid"     // the request is well-formed but wrong: 422
	BadRequest   Code = "bad_request" // not even readable: 400
	NotFound     Code = "not_found"
	Conflict     Code = "conflict"
	Unauthorized Code = "unauthorized"
	Forbidden    Code = "forbidden"
	Limit        Code = "limit"       // too large or too many: 413
	Unavailable  Code = "unavailable" // try again: 503
	Internal     Code = "internal"
)

// Error is a coded error. Message says what is wrong in words meant for the
// person who caused it; Remedy, when set, says what to do.
type Error struct {
	Code    Code
	Message string
	Remedy  string
	Reason  string // machine-readable refinement, e.g. "already_terminal" on a refused claim
	Err     error  // the cause, for logs; never shown to clients
	// RetryAfter is how long a server asked to be left alone; 0 when it did not.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	if e.Remedy != "" {
		return e.Message + " (" + e.Remedy + ")"
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Err }

// Is matches two coded errors by code, so errors.Is(err, &Error{Code: Conflict})
// holds for a conflict from any layer or from across the wire.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == ""
}

// Errorf makes a coded error. A %w operand becomes its cause.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Code: code, Message: err.Error(), Err: errors.Unwrap(err)}
}

// CodeOf is the code of err, or Internal when it carries none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}
