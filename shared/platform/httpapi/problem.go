package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/validation"

	"github.com/longbox/longbox/shared/platform/fault"
)

// Problem is the body of every error response.
type Problem struct {
	Word       string        `json:"error" doc:"Kind of error" example:"NotFound"`
	Message    string        `json:"message" doc:"What happened and what to do about it"`
	Details    []fault.Field `json:"details" nullable:"true" doc:"Invalid inputs, if any"`
	RetryAfter *int          `json:"retry_after,omitempty" doc:"Seconds to wait before a retry, with status 429 and 503"`
	RequestID  string        `json:"requestId,omitempty" doc:"With status 500: id under which the log contains the cause"`

	status int
}

// maxFields limits the invalid inputs that a response names.
const maxFields = 100

// shortly is the default delay before a retry after 503.
const shortly = 2 * time.Second

// Error implements error, so that huma can respond with a Problem.
func (p *Problem) Error() string { return p.Message }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.status }

// problem turns an error into its response, which must not be cached, and logs what the client must not see.
func problem(r *request, err error) *Problem {
	e := fault.From(err)
	if e.Code.Status() >= http.StatusInternalServerError && Gone(r.client, err) {
		return &Problem{Word: "ClientClosedRequest", Message: "The client left before the answer", status: gone}
	}
	// The runtime's time limit: nothing is broken.
	if e.Code == fault.Internal && errors.Is(err, context.DeadlineExceeded) {
		e = fault.Wrap(err, fault.Unavailable, "This took too long; try again")
		e.RetryAfter = time.Second
	}
	r.header.Set("Cache-Control", "no-store")
	if e.Code == fault.Unauthorized && isOPDS(r.url.Path) {
		// OPDS readers send user name and password only after a challenge. In a browser, the API must not cause a login
		// dialog.
		r.header.Set("WWW-Authenticate", `Basic realm="Longbox", charset="UTF-8"`)
	}
	p := &Problem{Word: e.Code.Word(), Message: e.Message, Details: e.Fields[:min(len(e.Fields), maxFields)], status: e.Code.Status()}
	switch {
	case e.Code == fault.Internal:
		r.fail(err)
		p.RequestID = r.id
	case e.Err != nil:
		r.note(slog.String("cause", fault.Line(e.Err.Error())))
	case p.status >= http.StatusInternalServerError:
		r.note(slog.String("cause", fault.Line(e.Message)))
	}
	wait := e.RetryAfter
	if wait == 0 && e.Code == fault.Unavailable {
		wait = shortly
	}
	if wait > 0 {
		s := int(math.Ceil(wait.Seconds()))
		p.RetryAfter = &s
		r.header.Set("Retry-After", strconv.Itoa(s))
	}
	return p
}

// WriteError responds with an error to the request of a plain handler.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	req := requestOf(r.Context())
	p := problem(req, err)
	h := w.Header()
	for _, of := range []string{"ETag", "Last-Modified", "Content-Disposition"} { // of the content that is not sent
		h.Del(of)
	}
	h.Set("Content-Type", "application/json")
	w.WriteHeader(p.status)
	if err := json.NewEncoder(w).Encode(p); err != nil {
		req.note(slog.String("write", err.Error()))
	}
}

// humaErrors makes huma respond with Problems. Failed validation is 400 with the fields, but only for a caller who may
// use the operation. huma keeps the constructor in a package variable, hence once.
var humaErrors = sync.OnceFunc(func() {
	huma.ErrorFormatter = phrase
	huma.NewErrorWithContext = func(hc huma.Context, status int, msg string, errs ...error) huma.StatusError {
		if hc == nil { // during registration, for the error schema
			return &Problem{status: status, Message: msg}
		}
		r := requestOf(hc.Context())
		for _, err := range errs {
			if errors.As(err, new(*fault.Error)) {
				return problem(r, err)
			}
		}
		if err := r.body.broken(); err != nil {
			r.header.Set("Connection", "close") // the rest of the body must not be read as the next request
			return problem(r, err)
		}
		code := fault.FromStatus(status)
		if status == http.StatusUnprocessableEntity {
			code = fault.BadRequest
		}
		if code == fault.Internal {
			return problem(r, errors.Join(append(errs, errors.New(msg))...))
		}
		if r.enter != nil && code == fault.BadRequest {
			if err := r.enter(); err != nil {
				return problem(r, err)
			}
		}
		if msg == "request body is required" {
			return problem(r, fault.Invalid("body", "is required: send JSON"))
		}
		return problem(r, &fault.Error{Code: code, Message: message(msg, errs), Fields: fields(errs)})
	}
	huma.NewError = func(status int, msg string, errs ...error) huma.StatusError {
		return &Problem{status: status, Word: fault.FromStatus(status).Word(), Message: message(msg, errs), Details: fields(errs)}
	}
})

const (
	noUUID = "must be a UUID"
	noTime = "must be a time such as 2026-11-21T08:30:00Z"
)

// phrase formats a message of huma: numbers are written in full, and all invalid ids get the same message.
func phrase(format string, args ...any) string {
	if format == validation.MsgExpectedRFC4122UUID {
		return noUUID
	}
	for i, a := range args {
		if f, ok := a.(float64); ok {
			args[i] = strconv.FormatFloat(f, 'f', -1, 64)
		}
	}
	return fmt.Sprintf(format, args...)
}

func message(msg string, errs []error) string {
	if f := fields(errs); len(f) > 0 && f[0].Field != "" {
		return f[0].Field + ": " + f[0].Message
	}
	for _, err := range errs {
		return msg + ": " + err.Error()
	}
	if limit, ok := strings.CutPrefix(msg, "request body is too large limit="); ok {
		return "The body is too large: the limit is " + limit
	}
	return msg
}

func fields(errs []error) []fault.Field {
	var out []fault.Field
	for _, err := range errs {
		var d huma.ErrorDetailer
		if !errors.As(err, &d) {
			continue
		}
		det := d.ErrorDetail()
		_, path, _ := strings.Cut(det.Location, ".")
		msg := det.Message
		if name, ok := strings.CutPrefix(msg, "expected required property "); ok {
			name, _, _ = strings.Cut(name, " ")
			path, msg = strings.TrimPrefix(path+"."+name, "."), "is required"
		} else if path == "" {
			path = det.Location
		}
		// In a path or a query.
		if strings.HasPrefix(msg, "invalid value: invalid UUID") || strings.HasPrefix(msg, "invalid value: invalid urn") {
			msg = noUUID
		}
		if msg == validation.MsgExpectedRFC3339DateTime || strings.HasPrefix(msg, "invalid date/time for format ") {
			msg = noTime
		}
		if kind, ok := strings.CutPrefix(msg, "unknown content type: "); ok {
			path, msg = "body", "is of type "+kind+"; send JSON with Content-Type: application/json"
		}
		if out = append(out, fault.Field{Field: path, Message: msg}); len(out) == maxFields {
			break
		}
	}
	return out
}
