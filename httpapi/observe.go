package httpapi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	jsonType        = "application/json"
	headerRequestID = "X-Request-Id"
	headerTiming    = "Server-Timing"
	maxRequestID    = 64
)

// requestInfo is what is noted of a request while it is answered.
type requestInfo struct {
	http.ResponseWriter
	began   time.Time
	id      string
	route   string // the route's pattern: one of few, unlike paths
	user    string // who asked, where that was asked
	status  int
	problem *problem
	command []any // what it asked for, for the log

	streamed bool // it lasts for as long as somebody watches
}

type infoKey struct{}

func infoOf(r *http.Request) *requestInfo {
	info, _ := r.Context().Value(infoKey{}).(*requestInfo)
	return info
}

func (i *requestInfo) begun() bool { return i.status != 0 }

// begin notes the status of an answer, and tells the client how long it was thought about.
func (i *requestInfo) begin(status int) {
	if i.begun() {
		return
	}
	i.status = status
	i.Header().Set(headerTiming, fmt.Sprintf("handler;dur=%.3f", time.Since(i.began).Seconds()*1000))
}

// WriteHeader notes the status.
func (i *requestInfo) WriteHeader(status int) {
	if status >= 200 {
		i.begin(status)
	}
	i.ResponseWriter.WriteHeader(status)
}

// Write notes that an answer has begun.
func (i *requestInfo) Write(b []byte) (int, error) {
	i.begin(http.StatusOK)
	return i.ResponseWriter.Write(b)
}

// Unwrap gives http.ResponseController what it controls.
func (i *requestInfo) Unwrap() http.ResponseWriter { return i.ResponseWriter }

// noteRoute notes which route a request took.
func noteRoute(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		infoOf(c.Request()).route = c.Path()
		return next(c)
	}
}

// observe gives each request an id, and counts and logs it.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.running.RLock()
		defer s.running.RUnlock()
		info := &requestInfo{ResponseWriter: w, began: time.Now(), id: requestID(r)}
		r = r.WithContext(context.WithValue(r.Context(), infoKey{}, info))
		w.Header().Set(headerRequestID, info.id)
		defer func() {
			cut := s.recovered(info, r, recover())
			info.begin(http.StatusOK) // where there was nothing to write
			s.note(info, r, time.Since(info.began))
			if cut {
				panic(http.ErrAbortHandler) // net/http closes the connection, so that the client sees a broken answer
			}
		}()
		next.ServeHTTP(info, r)
	})
}

// recovered turns a panic into a 500 and tells whether the answer must be cut off.
func (s *Server) recovered(info *requestInfo, r *http.Request, what any) bool {
	if what == nil {
		return false
	}
	if err, ok := what.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return true
	}
	s.cfg.Log.Error("httpapi: handler panicked", "request_id", info.id, "panic", fmt.Sprint(what), "stack", string(debug.Stack()))
	if info.begun() {
		return true
	}
	writeError(info, r, fmt.Errorf("panic: %v", what))
	return false
}

// note counts a request and logs it: what changes something always, reads only when they failed or on request.
func (s *Server) note(info *requestInfo, r *http.Request, took time.Duration) {
	status := info.status
	s.requests.count(info.route, r.Method, status)
	if !info.streamed {
		s.requests.time(info.route, r.Method, took)
	}
	level := slog.LevelDebug
	switch {
	case status >= 500 && status != http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		level = slog.LevelInfo
	}
	attrs := []any{"request_id", info.id, "method", r.Method, "path", shorten(r.URL.EscapedPath()), "status", status, "took", took}
	if info.user != "" {
		attrs = append(attrs, "user", shorten(info.user))
	}
	if p := info.problem; p != nil {
		attrs = append(attrs, "error", p.Code, "reason", p.Reason)
		if p.cause != nil {
			attrs = append(attrs, "cause", p.cause.Error())
		}
	}
	s.cfg.Log.Log(r.Context(), level, "httpapi: request", append(attrs, info.command...)...)
}

// requestID is the client's id for the request, if it has one that may stand in a log, else a new one.
func requestID(r *http.Request) string {
	id := r.Header.Get(headerRequestID)
	if id == "" || len(id) > maxRequestID {
		return rand.Text()
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return rand.Text()
		}
	}
	return id
}
