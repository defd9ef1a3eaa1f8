package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/wire"
)

// Codes of errors: what a program branches on. The reason is for people.
const (
	codeBad         = "bad_request"
	codeSignIn      = "not_authorised"
	codeRefused     = "access_refused"
	codeNotFound    = "not_found"
	codeMethod      = "method_not_allowed"
	codeConflict    = "conflict"
	codeTooLarge    = "payload_too_large"
	codeMediaType   = "unsupported_media_type"
	codeTooMany     = "too_many_requests"
	codeInternal    = "internal_server_error"
	codeNoLeader    = "no_leader"
	codeUnavailable = "service_unavailable"
	codeUnknown     = "outcome_unknown"
)

// codes are what a status is called where nobody said more.
var codes = map[int]string{
	http.StatusBadRequest:            codeBad,
	http.StatusUnauthorized:          codeSignIn,
	http.StatusForbidden:             codeRefused,
	http.StatusNotFound:              codeNotFound,
	http.StatusMethodNotAllowed:      codeMethod,
	http.StatusConflict:              codeConflict,
	http.StatusPreconditionFailed:    "precondition_failed",
	http.StatusRequestEntityTooLarge: codeTooLarge,
	http.StatusUnsupportedMediaType:  codeMediaType,
	http.StatusTooManyRequests:       codeTooMany,
	http.StatusInternalServerError:   codeInternal,
	http.StatusServiceUnavailable:    codeUnavailable,
	http.StatusGatewayTimeout:        codeUnknown,
}

// problem is an error as a client sees it.
type problem struct {
	Status    int            `json:"-"`
	Code      string         `json:"error"`
	Reason    string         `json:"reason"`
	RequestID string         `json:"request_id"`
	Happened  *wire.Happened `json:"happened,omitempty"` // 404: what became of the entry, where that is known
	Offsets   []int64        `json:"offsets,omitempty"`  // 409: of all entries with the jid
	cause     error          // for the log

	retryAfter string // seconds
}

func (p *problem) Error() string { return p.Code + ": " + p.Reason }

func newProblem(status int, format string, args ...any) *problem {
	return &problem{Status: status, Code: codes[status], Reason: fmt.Sprintf(format, args...)}
}

func badRequest(format string, args ...any) *problem {
	return newProblem(http.StatusBadRequest, format, args...)
}

func noSuchPath() *problem { return newProblem(http.StatusNotFound, "there is nothing at this path") }

func unavailable(cause error, format string, args ...any) *problem {
	p := newProblem(http.StatusServiceUnavailable, format, args...)
	p.cause = cause
	return p
}

// problemOf says what an error is to a client. What is not foreseen is told to the log only.
func problemOf(err error) *problem {
	var p *problem
	var fromEcho *echo.HTTPError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "the body is over %d bytes, which is the most that is read", tooLarge.Limit)
	case errors.Is(err, echo.ErrNotFound):
		return noSuchPath()
	case errors.Is(err, echo.ErrMethodNotAllowed):
		return newProblem(http.StatusMethodNotAllowed, "this path does not take this method: the header Allow lists those it takes")
	case errors.As(err, &fromEcho) && codes[fromEcho.Code] != "":
		return newProblem(fromEcho.Code, "%v", fromEcho.Message)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable(err, "the request was given up before its answer was there")
	}
	p = newProblem(http.StatusInternalServerError, "something went wrong here: the log says more under this request id")
	p.cause = err
	return p
}

// writeError answers with an error. An answer that has begun is cut off, so that nobody takes it for whole.
func writeError(w http.ResponseWriter, r *http.Request, err error) {
	info := infoOf(r)
	p := *problemOf(err)
	p.RequestID = info.id
	info.problem = &p
	if info.begun() || waits(w) {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Del("Content-Disposition")
	h.Set("Content-Type", jsonType)
	if p.retryAfter != "" {
		h.Set("Retry-After", p.retryAfter)
	} else if p.Status == http.StatusServiceUnavailable {
		h.Set("Retry-After", "1")
	}
	body, err := json.Marshal(p)
	if err != nil { // strings and numbers only
		panic(err)
	}
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n'))
}

// waits tells whether an answer has begun that is still being held back, to be compressed.
func waits(w http.ResponseWriter) bool {
	r, ok := w.(*echo.Response)
	return ok && r.Committed
}
