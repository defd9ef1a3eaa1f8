package httpapi

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/problem"
)

// requestMetrics count requests by route, never by path: there are as many paths as jobs.
type requestMetrics struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec

	operations *prometheus.CounterVec
}

func newRequestMetrics() *requestMetrics {
	return &requestMetrics{
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

// operated counts an operation that the leader was asked for; p is nil where it has begun.
func (m *requestMetrics) operated(action string, p *problem.Problem, role auth.Role) {
	result := "begun"
	if p != nil {
		result = p.Code
	}
	m.operations.WithLabelValues(action, result, string(role)).Inc()
}

func (m *requestMetrics) count(route, method string, status int) {
	route, method = oneOfFew(route, method)
	m.total.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
}

func (m *requestMetrics) time(route, method string, took time.Duration) {
	m.took.WithLabelValues(oneOfFew(route, method)).Observe(took.Seconds())
}

// oneOfFew keeps labels from being as many as clients like.
func oneOfFew(route, method string) (string, string) {
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

// newRegistry has everything that /metrics shows.
func (s *Server) newRegistry() (*prometheus.Registry, *requestMetrics) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(s.cfg.Version))
	requests := newRequestMetrics()
	ours := prometheus.WrapRegistererWith(prometheus.Labels{"vhost": s.cfg.VHost}, registry)
	ours.MustRegister(requests.total, requests.took, requests.operations, &collector{cfg: &s.cfg, usual: s.usual}, s.eventClients(), s.eventDrops())
	return registry, requests
}

func (s *Server) eventClients() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "millrace_sse_clients", Help: "Viewers of events."}, func() float64 {
		viewers, _ := s.events.Counts()
		return float64(viewers)
	})
}

func (s *Server) eventDrops() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "millrace_sse_dropped_total", Help: "Viewers of events that did not read, and were cut off."}, func() float64 {
		_, dropped := s.events.Counts()
		return float64(dropped)
	})
}

func buildInfo(version string) prometheus.Collector {
	revision := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "millrace_build_info", Help: "This build; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "revision": revision, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

func (s *Server) metrics() echo.HandlerFunc { return echo.WrapHandler(s.exposition()) }

func (s *Server) exposition() http.Handler {
	return promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// Metrics answers /metrics alone, to whoever asks: for a port of its own.
func (s *Server) Metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.exposition())
	return mux
}
