package httpapi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/httpapi/prom"
)

const (
	headerRequestID = "X-Request-Id"
	headerTiming    = "Server-Timing"
	maxRequestID    = 64
)

// observedWriter notes when an answer begins, and its status.
type observedWriter struct {
	http.ResponseWriter
	info  *problem.RequestInfo
	began time.Time // the request
}

// begin notes the status of an answer, and sends the client how long the handler took.
func (w *observedWriter) begin(status int) {
	if w.info.Begun() {
		return
	}
	w.info.Status = status
	w.Header().Set(headerTiming, fmt.Sprintf("handler;dur=%.3f", time.Since(w.began).Seconds()*1000))
}

// WriteHeader notes the status.
func (w *observedWriter) WriteHeader(status int) {
	if status >= 200 {
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write notes that an answer has begun.
func (w *observedWriter) Write(b []byte) (int, error) {
	w.begin(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Unwrap returns the writer that http.ResponseController controls.
func (w *observedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// noteRoute notes the route of a request.
func noteRoute(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		problem.InfoOf(c.Request()).Route = c.Path()
		return next(c)
	}
}

// observer gives each request an id, counts it and logs it.
type observer struct {
	requests *prom.Requests
	log      *slog.Logger
	running  sync.RWMutex // every request holds it for reading, so that Run can wait for them
}

func (o *observer) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.running.RLock()
		defer o.running.RUnlock()
		info := &problem.RequestInfo{ID: requestID(r)}
		observed := &observedWriter{ResponseWriter: w, info: info, began: time.Now()}
		r = problem.WithInfo(r, info)
		w.Header().Set(headerRequestID, info.ID)
		defer func() {
			cut := o.recovered(observed, r, recover())
			observed.begin(http.StatusOK) // where there was nothing to write
			o.note(info, r, time.Since(observed.began))
			if cut {
				panic(http.ErrAbortHandler) // net/http closes the connection
			}
		}()
		next.ServeHTTP(observed, r)
	})
}

// recovered turns a panic into a 500, and reports whether the answer must be cut off.
func (o *observer) recovered(w *observedWriter, r *http.Request, what any) bool {
	if what == nil {
		return false
	}
	if err, ok := what.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		return true
	}
	o.log.Error("httpapi: handler panicked", "request_id", w.info.ID, "panic", fmt.Sprint(what), "stack", string(debug.Stack()))
	if w.info.Begun() {
		return true
	}
	problem.Write(w, r, fmt.Errorf("panic: %v", what))
	return false
}

// note counts a request and logs it. Changes are logged at level info, reads at debug.
func (o *observer) note(info *problem.RequestInfo, r *http.Request, took time.Duration) {
	status := info.Status
	o.requests.Answered(info.Route, r.Method, status)
	if !info.Streamed {
		o.requests.Took(info.Route, r.Method, took)
	}
	level := slog.LevelDebug
	switch {
	case status >= 500 && status != http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		level = slog.LevelInfo
	}
	attrs := []any{"request_id", info.ID, "method", r.Method, "path", problem.Shorten(r.URL.EscapedPath()), "status", status, "took", took}
	if info.User != "" {
		attrs = append(attrs, "user", problem.Shorten(info.User))
	}
	if p := info.Problem; p != nil {
		attrs = append(attrs, "error", p.Code, "reason", p.Reason)
		if p.Cause != nil {
			attrs = append(attrs, "cause", p.Cause.Error())
		}
	}
	o.log.Log(r.Context(), level, "httpapi: request", append(attrs, info.Command...)...)
}

// requestID returns the client's id for the request if a log can hold it, else a new one.
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
