package prom

import (
	"context"
	"net/http"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/tracker/queues"
	"github.com/millrace-jobs/millrace/view"
)

// Config configures an Exporter. Processes, Metrics, Queues and QueueSLO may be nil.
type Config struct {
	Version string
	VHost   string // a label of every series of ours

	Entries   *tracker.Reader
	View      *view.View
	Processes *processes.Processes
	Metrics   *metrics.Reader
	Queues    *queues.Watch

	QueueSLO func(queue string) time.Duration // 0: a job may wait for any time
	Leader   func() scheduler.Status
	Broker   func() (connected bool, product, version string)
	Usual    func(ctx context.Context) (map[string]time.Duration, error) // of each class
	Viewers  func() (viewers int, dropped int64)                         // of live events
	Now      func() time.Time
}

// Exporter answers /metrics.
type Exporter struct {
	Requests *Requests
	registry *prometheus.Registry
}

// New returns an Exporter.
func New(cfg Config) *Exporter {
	e := &Exporter{newRequests(), prometheus.NewRegistry()}
	e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), buildInfo(cfg.Version))
	viewers := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "millrace_sse_clients", Help: "Viewers of events."}, func() float64 {
		viewers, _ := cfg.Viewers()
		return float64(viewers)
	})
	dropped := prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "millrace_sse_dropped_total", Help: "Viewers of events that did not read, and were cut off."}, func() float64 {
		_, dropped := cfg.Viewers()
		return float64(dropped)
	})
	ours := prometheus.WrapRegistererWith(prometheus.Labels{"vhost": cfg.VHost}, e.registry)
	ours.MustRegister(e.Requests.total, e.Requests.took, e.Requests.operations, newCollector(&cfg), viewers, dropped)
	return e
}

// newCollector returns the collector of all that is read when Prometheus asks.
func newCollector(cfg *Config) collector {
	return collector{
		broker{cfg.Broker}, &entries{cfg.Entries, cfg.Now}, &limits{cfg.Entries, cfg.Usual, cfg.Now}, streams{cfg.View}, leader{cfg.Leader}, workers{cfg.Processes, cfg.Usual}, jobs{cfg.Metrics},
		&depths{cfg.Queues, cfg.Processes, cfg.Entries, cfg.Usual, cfg.QueueSLO},
	}
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

// Handler returns what answers /metrics.
func (e *Exporter) Handler() http.Handler {
	return promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}
