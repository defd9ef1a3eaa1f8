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
)

// requestMetrics count requests by route, never by path: there are as many paths as jobs.
type requestMetrics struct {
	total *prometheus.CounterVec
	took  *prometheus.HistogramVec
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
	}
}

func (m *requestMetrics) note(route, method string, status int, took time.Duration) {
	if route == "" {
		route = "other"
	}
	if !knownMethods[method] {
		method = "other"
	}
	m.total.WithLabelValues(route, method, strconv.Itoa(status)).Inc()
	m.took.WithLabelValues(route, method).Observe(took.Seconds())
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
	ours.MustRegister(requests.total, requests.took, &collector{cfg: &s.cfg})
	return registry, requests
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

func (s *Server) metrics() echo.HandlerFunc {
	return echo.WrapHandler(promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
}
