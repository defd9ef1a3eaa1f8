package prom

import "github.com/prometheus/client_golang/prometheus"

// part sends some of the metrics.
type part interface{ collect(out sink) }

// collector reads the values of all parts when Prometheus asks.
type collector []part

// Describe sends nothing: which metrics there are is known only when they are collected.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads everything.
func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, p := range c {
		p.collect(sink(to))
	}
}
