package prom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("millrace_"+name, help, labels, nil)
}

// sink takes the values of one collection.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (s sink) counter(d *prometheus.Desc, v int64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

// histogram sends count spans of time, of which within[i] lie in the bucket that bounds[i] ends.
func (s sink) histogram(d *prometheus.Desc, bounds []time.Duration, within []int64, count int64, sum time.Duration, labels ...string) {
	upTo := map[float64]uint64{}
	var n uint64
	for i, b := range bounds {
		n += uint64(within[i])
		upTo[b.Seconds()] = n
	}
	s <- prometheus.MustNewConstHistogram(d, uint64(count), sum.Seconds(), upTo, labels...)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
