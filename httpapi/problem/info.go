package problem

import (
	"context"
	"net/http"
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
