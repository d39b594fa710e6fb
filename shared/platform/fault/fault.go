// Package fault is the one error type that reaches a client: a code, a sentence that says what to do,
// and, for bad input, the fields at fault.
package fault

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Code says what kind of failure an Error is; each maps to one HTTP status and one `error` word.
type Code int

// The codes, with the HTTP status each is answered with.
const (
	Internal        Code = iota // 500
	BadRequest                  // 400
	Unauthorized                // 401
	Forbidden                   // 403
	NotFound                    // 404
	Conflict                    // 409
	Unprocessable               // 422
	TooManyRequests             // 429
	Unavailable                 // 503
	RangeInvalid                // 416
	TooLarge                    // 413
	Precondition                // 412
	TimedOut                    // 408: of the client, while it sent
	BadGateway                  // 502: another server that was to answer
)

var codes = map[Code]struct {
	status int
	word   string
}{
	Internal:        {http.StatusInternalServerError, "InternalServerError"},
	BadRequest:      {http.StatusBadRequest, "BadRequest"},
	Unauthorized:    {http.StatusUnauthorized, "Unauthorized"},
	Forbidden:       {http.StatusForbidden, "Forbidden"},
	NotFound:        {http.StatusNotFound, "NotFound"},
	Conflict:        {http.StatusConflict, "Conflict"},
	Unprocessable:   {http.StatusUnprocessableEntity, "UnprocessableEntity"},
	TooManyRequests: {http.StatusTooManyRequests, "rate_limit_exceeded"},
	Unavailable:     {http.StatusServiceUnavailable, "ServiceUnavailable"},
	RangeInvalid:    {http.StatusRequestedRangeNotSatisfiable, "RangeNotSatisfiable"},
	TooLarge:        {http.StatusRequestEntityTooLarge, "PayloadTooLarge"},
	Precondition:    {http.StatusPreconditionFailed, "PreconditionFailed"},
	TimedOut:        {http.StatusRequestTimeout, "RequestTimeout"},
	BadGateway:      {http.StatusBadGateway, "BadGateway"},
}

// Status is the HTTP status of the code.
func (c Code) Status() int { return codes[c].status }

// Word is the `error` string of the code in an error body.
func (c Code) Word() string { return codes[c].word }

// FromStatus is the code with the given HTTP status; an unknown 4xx is BadRequest, anything else Internal.
func FromStatus(status int) Code {
	for c, v := range codes {
		if v.status == status {
			return c
		}
	}
	if status >= 400 && status < 500 {
		return BadRequest
	}
	return Internal
}

// Field is one input at fault and what is wrong with it.
type Field struct {
	Field   string `json:"field" doc:"Path of the input at fault"`
	Message string `json:"message" doc:"What is wrong with it and what to do"`
}

// Error is a failure that a client may see. Err, the cause, is logged and never shown.
type Error struct {
	Code       Code
	Message    string
	Fields     []Field
	RetryAfter time.Duration
	Err        error
}

// After says that it may be tried again in that time, and is the same error.
func (e *Error) After(wait time.Duration) *Error {
	e.RetryAfter = wait
	return e
}

// Error is the message and its cause. What the message says of the cause already is not said twice.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	cause := e.Err.Error()
	for said := e.Message; said != ""; _, said, _ = strings.Cut(said, ": ") {
		if more, ok := strings.CutPrefix(cause, said); ok && (more == "" || strings.HasPrefix(more, ": ")) {
			return e.Message + more
		}
	}
	return e.Message + ": " + cause
}

// Line is text in one line: that of joined errors has several.
func Line(text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// New is an Error with a message for the client.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap is an Error with a message for the client and a cause for the log.
func Wrap(err error, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// Invalid is a BadRequest about one field.
func Invalid(field, format string, args ...any) *Error {
	msg := fmt.Sprintf(format, args...)
	return &Error{Code: BadRequest, Message: field + ": " + msg, Fields: []Field{{field, msg}}}
}

// InvalidFields is a BadRequest about several fields; nil when there are none.
func InvalidFields(fields []Field) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Code: BadRequest, Message: fields[0].Field + ": " + fields[0].Message, Fields: fields}
}

// Missing is the NotFound of a named thing, for example Missing("Book").
func Missing(what string) *Error { return New(NotFound, "%s not found", what) }

// Taken is the Conflict about a field whose value another has already.
func Taken(field, format string, args ...any) *Error {
	return &Error{Code: Conflict, Message: fmt.Sprintf(format, args...), Fields: []Field{{field, "is taken"}}}
}

// From is the Error in err's chain, or an Internal one that hides err from the client.
func From(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Message: "An internal error occurred", Err: err}
}

// Is tells whether err carries the code.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
