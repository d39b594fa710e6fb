// Package fault defines the one error type that reaches a client: a code, a sentence that says what to do, and, for bad
// input, the invalid fields.
package fault

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Code is the kind of an Error. Each maps to one HTTP status and one `error` word.
type Code int

// Codes with their HTTP status.
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
	TimedOut                    // 408: the client was too slow to send
	BadGateway                  // 502: another server failed
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

// Status returns the HTTP status of the code.
func (c Code) Status() int { return codes[c].status }

// Word returns the `error` string of the code in an error body.
func (c Code) Word() string { return codes[c].word }

// FromStatus returns the code for an HTTP status. An unknown 4xx is BadRequest, anything else Internal.
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

// Field is one invalid input and what is wrong with it.
type Field struct {
	Field   string `json:"field" doc:"Path of the invalid input"`
	Message string `json:"message" doc:"What is wrong with the input and how to correct it"`
}

// Error is a failure that a client may see. Err, the cause, is logged and never shown.
type Error struct {
	Code       Code
	Message    string
	Fields     []Field
	RetryAfter time.Duration
	Err        error
}

// After sets when the client may retry, and returns the same error.
func (e *Error) After(wait time.Duration) *Error {
	e.RetryAfter = wait
	return e
}

// Error returns the message and its cause, without repeating a cause that the message contains.
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

// Line returns text in one line. The text of joined errors has several.
func Line(text string) string {
	var parts []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an Error with a message for the client.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error with a message for the client and a cause for the log.
func Wrap(err error, code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// Invalid returns a BadRequest about one field.
func Invalid(field, format string, args ...any) *Error {
	msg := fmt.Sprintf(format, args...)
	return &Error{Code: BadRequest, Message: field + ": " + msg, Fields: []Field{{field, msg}}}
}

// InvalidFields returns a BadRequest about several fields, or nil if there are none.
func InvalidFields(fields []Field) error {
	if len(fields) == 0 {
		return nil
	}
	return &Error{Code: BadRequest, Message: fields[0].Field + ": " + fields[0].Message, Fields: fields}
}

// Missing returns a NotFound for a named thing, for example Missing("Book").
func Missing(what string) *Error { return New(NotFound, "%s not found", what) }

// Taken returns a Conflict for a field whose value is already in use.
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

// Is reports whether err carries the code.
func Is(err error, code Code) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
