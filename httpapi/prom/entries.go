package prom

import (
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// sets are the sets of pending entries, as metrics name them.
var sets = []struct{ name, stream string }{
	{"scheduled", wire.ScheduledJobs}, {"retry", wire.Retries}, {"dead", wire.DeadJobs}, {"gated", wire.Gated},
}

var (
	descSetJobs     = desc("set_jobs", "Pending entries.", "set")
	descSetMessages = desc("set_messages", "Pending entries that are delayed messages, by the exchange to which they go.", "set", "exchange")
	descSetBytes    = desc("set_bytes", "Bytes of the records of pending entries.", "set")
	descOverdue     = desc("scheduled_overdue_seconds", "How long the oldest due entry waits to be delivered; 0 if none is due.")
	descJournaled   = desc("journal_dispatches_total", "Deliveries and burials in the journal, of all leaders.", "kind")
	descDuplicates  = desc("duplicates_total", "Publishes that were recognised as repeated.")
	descUndecided   = desc("unique_undecided_jobs", "Unique jobs that wait for the decision whether they have their keys.")
	descUndecidedS  = desc("unique_undecided_seconds", "For how long no such decision has been made although unique jobs wait for it; 0 if none waits.")
	descVoid        = desc("void_records_total", "Records of a leader that had been followed already.", "stream")
	descRejected    = desc("rejected_records_total", "Records that could not be taken in.", "stream")
	descKept        = desc("rejected_records", "Rejected records that are kept.", "stream")
)

// counted are the streams and queues from which records are read.
var counted = append(slices.Clone(wire.EntryStreams), wire.Journal, wire.Heartbeats, wire.JobMetrics, wire.DeadLetters)

// maxExchangeSeries bounds the exchanges that have series in a set. With more there are none.
const maxExchangeSeries = 500

// entries sends what is pending, and what the journal counts.
type entries struct {
	entries *tracker.Reader
	now     func() time.Time
}

func (p *entries) collect(out sink) {
	for _, set := range sets {
		out.gauge(descSetJobs, float64(p.entries.Total(set.stream)), set.name)
		out.gauge(descSetBytes, float64(p.entries.Bytes(set.stream)), set.name)
		if messages := p.entries.ByExchange(set.stream); len(messages) <= maxExchangeSeries {
			for exchange, n := range messages {
				out.gauge(descSetMessages, float64(n), set.name, exchange)
			}
		}
	}
	if late, err := p.entries.Overdue(p.now()); err == nil {
		out.gauge(descOverdue, late.Seconds())
	}
	if kept, err := p.entries.RejectedKept(); err == nil {
		for stream, n := range kept {
			out.gauge(descKept, float64(n), stream)
		}
	}
	out.gauge(descUndecided, float64(p.entries.UndecidedJobs()))
	out.gauge(descUndecidedS, p.entries.UndecidedFor(p.now()).Seconds())
	state := p.entries.State()
	for _, stream := range counted { // also 0: Prometheus sees no increase of a series that is new
		out.counter(descRejected, state.Rejected[stream], stream)
		out.counter(descVoid, state.Void[stream], stream)
	}
	out.counter(descJournaled, state.Fired, "fire")
	out.counter(descJournaled, state.Buried, "burial")
	out.counter(descDuplicates, state.Duplicates)
}
