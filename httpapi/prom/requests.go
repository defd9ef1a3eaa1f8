package prom

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Requests counts requests by route, never by path: there are as many paths as jobs.
type Requests struct {
	total      *prometheus.CounterVec
	took       *prometheus.HistogramVec
	operations *prometheus.CounterVec
}

func newRequests() *Requests {
	return &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_http_requests_total", Help: "Requests that were answered.",
		}, []string{"route", "method", "code"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "millrace_http_request_duration_seconds", Help: "How long answers took.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route", "method"}),
		operations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "millrace_operations_total", Help: "Operations that this sidecar was asked to begin: begun, or why not.",
		}, []string{"action", "result", "user_tag"}),
	}
}

// Operation counts an operation that the leader was asked for.
func (r *Requests) Operation(action, result, tag string) {
	r.operations.WithLabelValues(action, result, tag).Inc()
}

// Answered counts an answer.
func (r *Requests) Answered(route, method string, status int) {
	route, method = bounded(route, method)
	r.total.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
}

// Took notes how long an answer took.
func (r *Requests) Took(route, method string, took time.Duration) {
	r.took.WithLabelValues(bounded(route, method)).Observe(took.Seconds())
}

// bounded keeps clients from making series.
func bounded(route, method string) (string, string) {
	if route == "" {
		route = "other"
	}
	if !knownMethods[method] {
		method = "other"
	}
	return route, method
}

var knownMethods = map[string]bool{
	http.MethodGet: true, http.MethodHead: true, http.MethodPost: true, http.MethodPut: true, http.MethodPatch: true,
	http.MethodDelete: true, http.MethodOptions: true,
}
