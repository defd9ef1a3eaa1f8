package prom

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-jobs/millrace/scheduler"
	"github.com/millrace-jobs/millrace/wire"
)

// collector reads the values when Prometheus asks.
type collector struct{ cfg Config }

// sets are the sets of pending entries, as metrics name them.
var sets = []struct{ name, stream string }{
	{"scheduled", wire.ScheduledJobs}, {"retry", wire.Retries}, {"dead", wire.DeadJobs}, {"gated", wire.Gated},
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("millrace_"+name, help, labels, nil)
}

var (
	descUp          = desc("up", "This sidecar runs; always 1.")
	descLeader      = desc("leader", "1 if this sidecar leads.")
	descSetJobs     = desc("set_jobs", "Pending entries.", "set")
	descSetMessages = desc("set_messages", "Pending entries that are delayed messages, by the exchange to which they go.", "set", "exchange")
	descSetBytes    = desc("set_bytes", "Bytes of the records of pending entries.", "set")
	descOverdue     = desc("scheduled_overdue_seconds", "How long the oldest due entry waits to be delivered; 0 if none is due.")
	descLastDelay   = desc("scheduled_last_fire_delay_seconds", "How late the newest delivery of this leader was.")
	descFireDelay   = desc("scheduled_fire_delay_seconds", "How late jobs were delivered by this leader.")
	descConfirm     = desc("publish_confirm_seconds", "How long the broker took to confirm what this leader published.")
	descOffset      = desc("stream_offset", "Offset up to which a stream was read, and that of its newest record when the broker was last asked.", "stream", "kind")
	descStreamLag   = desc("stream_lag_seconds", "How far the view is behind a stream, at least.", "stream")
	descStreamLeft  = desc("stream_lag_messages", "Offsets of a stream that the view has not read.", "stream")
	descReady       = desc("index_ready", "1 if the view has caught up with every stream.")
	descConnected   = desc("broker_connected", "1 if the broker is connected.")
	descBlocked     = desc("broker_blocked", "1 if the broker takes no publishes from this leader.")
	descReconnects  = desc("broker_reconnects_total", "Connections to lead with that were lost.")
	descFailed      = desc("publish_failed_total", "Deliveries that did not reach their queue.", "reason")
	descUnconfirmed = desc("unconfirmed_publishes", "Deliveries that the broker has not confirmed yet.")
	descFires       = desc("fires_total", "Jobs that this sidecar delivered.")
	descJournaled   = desc("journal_dispatches_total", "Deliveries and burials in the journal, of all leaders.", "kind")
	descDuplicates  = desc("duplicates_total", "Publishes that were recognised as repeated.")
	descDeadLetters = desc("dead_lettered_total", "Jobs that the broker dead-lettered, that this sidecar took over.")
	descCommands    = desc("commands_total", "Commands that this sidecar answered as leader.")
	descTicks       = desc("periodic_ticks_total", "Ticks of periodic jobs that this sidecar decided as leader, by outcome: made, missed, skipped for another reason, or run by a user.", "outcome")
	descTickLate    = desc("periodic_tick_late_seconds", "How late this leader enqueued the jobs of ticks.")
	descEpochs      = desc("epochs_total", "How often this sidecar became leader.")
	descHeld        = desc("held_queues", "Queues that take no jobs now.")
	descGap         = desc("journal_gap", "1 if the journal may have lost records and due entries are held.")
	descDegraded    = desc("degraded", "1 for each thing that fails and that jobs are delivered without, such as a metrics stream.", "subject")
	descInDoubt     = desc("fires_in_doubt", "Deliveries of earlier leaders that may have arrived, and that this leader has not settled yet.")
	descSilent      = desc("silent_queues", "Queues that do not answer what this leader delivers to them.")
	descLease       = desc("leader_lease_age_seconds", "How old the newest ping is that came back to this leader through the lock; 0 if it needs none.")
	descReplicas    = desc("missing_replicas", "Replicas that a stream or quorum queue should have, and that are not online.", "queue")
	descOrphaned    = desc("leader_lock_orphaned", "1 if a client holds the leader's lock, so that no sidecar leads.")
	descVoid        = desc("void_records_total", "Records of a leader that had been followed already.", "stream")
	descRejected    = desc("rejected_records_total", "Records that could not be taken in.", "stream")
	descKept        = desc("rejected_records", "Rejected records that are kept.", "stream")
)

// counted are the streams and queues from which records are read.
var counted = append(slices.Clone(wire.EntryStreams), wire.Journal, wire.Heartbeats, wire.JobMetrics, wire.DeadLetters)

// maxExchangeSeries bounds the exchanges that have series in a set. With more there are none.
const maxExchangeSeries = 500

// Describe sends nothing: which metrics there are is known only when they are collected.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect reads everything.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	out := sink(to)
	connected, _, _ := c.cfg.Broker()
	out.gauge(descUp, 1)
	out.gauge(descConnected, truth(connected))
	c.collectEntries(out)
	c.collectView(out)
	c.collectScheduler(out, c.cfg.Leader())
	c.collectProcesses(out)
	c.collectJobs(out)
	c.collectQueues(out)
}

func (c *collector) collectEntries(out sink) {
	for _, set := range sets {
		out.gauge(descSetJobs, float64(c.cfg.Entries.Total(set.stream)), set.name)
		out.gauge(descSetBytes, float64(c.cfg.Entries.Bytes(set.stream)), set.name)
		if messages := c.cfg.Entries.ByExchange(set.stream); len(messages) <= maxExchangeSeries {
			for exchange, n := range messages {
				out.gauge(descSetMessages, float64(n), set.name, exchange)
			}
		}
	}
	if late, err := c.cfg.Entries.Overdue(c.cfg.Now()); err == nil {
		out.gauge(descOverdue, late.Seconds())
	}
	if kept, err := c.cfg.Entries.RejectedKept(); err == nil {
		for stream, n := range kept {
			out.gauge(descKept, float64(n), stream)
		}
	}
	state := c.cfg.Entries.State()
	for _, stream := range counted { // also 0: Prometheus sees no increase of a series that is new
		out.counter(descRejected, state.Rejected[stream], stream)
		out.counter(descVoid, state.Void[stream], stream)
	}
	out.counter(descJournaled, state.Fired, "fire")
	out.counter(descJournaled, state.Buried, "burial")
	out.counter(descDuplicates, state.Duplicates)
}

func (c *collector) collectView(out sink) {
	ready := true
	for _, t := range c.cfg.View.Status() {
		out.gauge(descOffset, float64(t.Position), t.Stream, "applied")
		out.gauge(descStreamLag, t.Lag.Seconds(), t.Stream)
		if t.End != nil {
			out.gauge(descOffset, float64(t.End.Written), t.Stream, "written")
			out.gauge(descStreamLeft, float64(t.End.Left), t.Stream)
		}
		ready = ready && t.CaughtUp
	}
	out.gauge(descReady, truth(ready))
}

func (c *collector) collectScheduler(out sink, s scheduler.Status) {
	out.gauge(descLeader, truth(s.Leader))
	out.gauge(descLastDelay, s.LastLate.Seconds())
	out.gauge(descBlocked, truth(s.Blocked != ""))
	out.gauge(descUnconfirmed, float64(s.Unconfirmed))
	out.gauge(descHeld, float64(len(s.Held)))
	out.gauge(descGap, truth(s.Gap != ""))
	out.gauge(descInDoubt, float64(s.InDoubt))
	out.gauge(descSilent, float64(s.Silent))
	out.gauge(descLease, s.LeaseAge.Seconds())
	for queue, n := range s.MissingReplicas {
		out.gauge(descReplicas, float64(n), queue)
	}
	out.gauge(descOrphaned, truth(s.Orphaned))
	for _, d := range s.Degraded {
		out.gauge(descDegraded, 1, d.Subject)
	}
	out.delays(descFireDelay, &s.Counters.FireDelays)
	out.delays(descConfirm, &s.Counters.Confirms)
	out.counter(descReconnects, s.Counters.Lost)
	out.counter(descFailed, s.Counters.Returned, "returned")
	out.counter(descFailed, s.Counters.Refused, "refused")
	out.counter(descFires, s.Counters.Fired)
	out.counter(descDeadLetters, s.Counters.DeadLettered)
	out.counter(descCommands, s.Counters.Commands)
	out.counter(descEpochs, s.Counters.Epochs)
	ticks := &s.Counters.Ticks
	for outcome, n := range map[string]int64{"made": ticks.Made, "missed": ticks.Missed, "skipped": ticks.Skipped, "run": ticks.Runs} {
		out.counter(descTicks, n, outcome)
	}
	out.delays(descTickLate, &ticks.Late)
}

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

func (s sink) delays(d *prometheus.Desc, v *scheduler.Delays) {
	s.histogram(d, scheduler.DelayBounds[:], v.Counts[:], v.Count(), v.Sum)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
