package problem

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/labstack/echo/v4"
)

// RequestInfo collects what the log says of a request once it has been answered.
type RequestInfo struct {
	ID       string
	Route    string // the route's pattern: one of few, unlike paths
	User     string // empty where no user was asked for
	Status   int    // of the answer; 0 before it has begun
	Problem  *Problem
	Command  []any // keys and values: what was done
	Streamed bool  // the answer lasts for as long as a viewer watches
}

// Begun reports whether the answer has begun.
func (i *RequestInfo) Begun() bool { return i.Status != 0 }

type infoKey struct{}

// WithInfo returns the request with a place for its information.
func WithInfo(r *http.Request, info *RequestInfo) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), infoKey{}, info))
}

// InfoOf returns the information of a request that came through the server.
func InfoOf(r *http.Request) *RequestInfo {
	info, _ := r.Context().Value(infoKey{}).(*RequestInfo)
	return info
}

// Write answers with an error. It cuts an answer off that has begun.
func Write(w http.ResponseWriter, r *http.Request, err error) {
	info := InfoOf(r)
	p := *From(err)
	p.RequestID = info.ID
	info.Problem = &p
	if info.Begun() || buffered(w) {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	h.Del("Content-Disposition")
	h.Set("Content-Type", echo.MIMEApplicationJSON)
	if p.RetryAfter != "" {
		h.Set("Retry-After", p.RetryAfter)
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

// buffered reports whether an answer has begun that is still held back, to be compressed.
func buffered(w http.ResponseWriter) bool {
	r, ok := w.(*echo.Response)
	return ok && r.Committed
}
