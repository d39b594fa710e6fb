package blob

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Errors that callers distinguish. Any other error means that the store is unreachable or refuses the request.
var (
	ErrNotFound = errors.New("the object does not exist")
	ErrChanged  = errors.New("the object has changed")
	ErrRange    = errors.New("the object is shorter than the range")
	ErrDenied   = errors.New("the store refuses access")
	ErrClosed   = errors.New("the store lists the object but cannot open it")
	ErrArchived = errors.New("the store has archived the object") // Amazon S3 Glacier: it must be restored first
	ErrBusy     = errors.New("the store is writing the object for another request")
	// ErrCut is not io.ErrUnexpectedEOF, which format readers return for a truncated file.
	ErrCut = errors.New("the store's answer ended early")
)

// StatusError is an error response of the store that is none of the errors that callers distinguish.
type StatusError struct {
	Status  int
	Message string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("the store answered %d: %s", e.Status, e.Message)
}

// explain wraps err with what failed where, and maps it to the errors that callers distinguish.
func explain(what, bucket, key string, err error) error {
	var re *smithyhttp.ResponseError
	if errors.As(err, &re) {
		err = cmp.Or(kindOf(re.HTTPStatusCode(), err), err)
	}
	return fmt.Errorf("%s s3://%s/%s: %w", what, bucket, key, err)
}

// kindOf returns the error that callers distinguish for the status of a response, or nil. response has its body.
func kindOf(status int, response error) error {
	switch status {
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusPreconditionFailed:
		return ErrChanged
	case http.StatusRequestedRangeNotSatisfiable:
		return ErrRange
	case http.StatusConflict:
		return fmt.Errorf("%w: %w", ErrBusy, response)
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect: // the bucket is in another region
		return fmt.Errorf("%w: %w", ErrDenied, response)
	case http.StatusBadRequest:
		if strings.Contains(response.Error(), "AuthorizationHeaderMalformed") { // so is this one
			return fmt.Errorf("%w: %w", ErrDenied, response)
		}
	case http.StatusForbidden, http.StatusUnauthorized:
		if strings.Contains(response.Error(), "InvalidObjectState") {
			return fmt.Errorf("%w: %w", ErrArchived, response)
		}
		return fmt.Errorf("%w: %w", ErrDenied, response)
	}
	return nil
}

// InternalError reports whether the store answered 500. A gateway over folders also does when it may not read a folder
// or open a file.
func InternalError(err error) bool {
	var answer *StatusError
	return errors.As(err, &answer) && answer.Status == http.StatusInternalServerError
}

// Lost reports whether a read failed because the object is gone or has changed.
func Lost(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrChanged) || errors.Is(err, ErrRange)
}

// Unreachable reports whether err is a failure of the store or the connection, not of one object.
func Unreachable(err error) bool {
	var re *smithyhttp.ResponseError
	var answer *StatusError
	var ne net.Error
	switch {
	case errors.Is(err, ErrCut): // whatever the response began with
		return true
	case errors.As(err, &answer):
		return ailing(answer.Status)
	case errors.As(err, &re) && re.HTTPStatusCode() != 0: // without a status there was no response
		return ailing(re.HTTPStatusCode())
	}
	return errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// ailing reports whether a status is about the store, not about the request.
func ailing(status int) bool { return status >= 500 || status == http.StatusTooManyRequests }

// errRanges means that a store, or a proxy in front of it, answers with the whole object.
var errRanges = errors.New("the store does not support ranges")

// cut maps the end of a body that is not complete to ErrCut.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCut
	}
	return err
}
