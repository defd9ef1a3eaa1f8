package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/wire"
)

// codes are what programs branch on, by the status. The reason is for people.
var codes = map[int]string{
	http.StatusBadRequest:            "bad_request",
	http.StatusUnauthorized:          "not_authorised",
	http.StatusForbidden:             "access_refused",
	http.StatusNotFound:              "not_found",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusConflict:              "conflict",
	http.StatusPreconditionFailed:    "precondition_failed",
	http.StatusRequestEntityTooLarge: "payload_too_large",
	http.StatusUnsupportedMediaType:  "unsupported_media_type",
	http.StatusTooManyRequests:       "too_many_requests",
	http.StatusInternalServerError:   "internal_server_error",
	http.StatusServiceUnavailable:    "service_unavailable",
	http.StatusGatewayTimeout:        "outcome_unknown",
}

// NoLeader is the reply to a command while no sidecar leads.
var NoLeader = wire.Reply{
	Status: wire.StatusUnavailable, Error: "no_leader", Reason: "no sidecar leads now: nothing was done, try again",
}

// Problem is an error as a client sees it.
type Problem struct {
	answer.Refusal
	Status     int    `json:"-"`
	Cause      error  `json:"-"` // for the log
	RetryAfter string `json:"-"` // seconds
}

func (p *Problem) Error() string { return p.Code + ": " + p.Reason }

// New returns a problem with the code of its status.
func New(status int, format string, args ...any) *Problem {
	return &Problem{Status: status, Refusal: answer.Refusal{Code: codes[status], Reason: fmt.Sprintf(format, args...)}}
}

// BadRequest returns a problem that the client must fix.
func BadRequest(format string, args ...any) *Problem {
	return New(http.StatusBadRequest, format, args...)
}

// NoSuchPath returns the problem of a path that no route has.
func NoSuchPath() *Problem { return New(http.StatusNotFound, "there is nothing at this path") }

// Unavailable returns a problem that may have passed when the client tries again.
func Unavailable(cause error, format string, args ...any) *Problem {
	p := New(http.StatusServiceUnavailable, format, args...)
	p.Cause = cause
	return p
}

// From returns the problem that a client gets for an error. The text of an unforeseen error is for
// the log.
func From(err error) *Problem {
	var p *Problem
	var fromEcho *echo.HTTPError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return New(http.StatusRequestEntityTooLarge, "the body is over %d bytes, which is the most that is read", tooLarge.Limit)
	case errors.Is(err, echo.ErrNotFound):
		return NoSuchPath()
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return New(http.StatusMethodNotAllowed, "this path does not take this method: the header Allow lists those it takes")
	case errors.As(err, &fromEcho) && codes[fromEcho.Code] != "":
		return New(fromEcho.Code, "%v", fromEcho.Message)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Unavailable(err, "the request was given up before its answer was there")
	}
	p = New(http.StatusInternalServerError, "something went wrong here: the log says more under this request id")
	p.Cause = err
	return p
}

// FromReply returns what the leader says went wrong; nil for a command that was carried out.
func FromReply(r wire.Reply) *Problem {
	if r.Status >= 200 && r.Status < 300 {
		return nil
	}
	if codes[r.Status] == "" { // a reply that this build does not understand
		r.Status, r.Error = http.StatusGatewayTimeout, ""
	}
	p := New(r.Status, "%s", r.Reason)
	if r.Error != "" {
		p.Code = r.Error
	}
	if p.Reason == "" {
		p.Reason = http.StatusText(p.Status)
	}
	p.Happened, p.Offsets = r.Happened, r.Offsets
	return p
}
