package feed

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Event is something that happened to a job.
type Event struct {
	At         float64 `json:"at"`
	What       string  `json:"what"` // scheduled, retry or dead (an entry came); an op of the journal; what a worker says became of an attempt
	JID        string  `json:"jid"`
	Class      string  `json:"class,omitempty"`
	Queue      string  `json:"queue,omitempty"`
	ErrorClass string  `json:"error_class,omitempty"`
	DurationMS float64 `json:"duration_ms,omitempty"`
	Worker     string  `json:"worker,omitempty"`
	Actor      string  `json:"actor,omitempty"`
}

// The events of new entries.
var came = map[string]string{wire.ScheduledJobs: "scheduled", wire.Retries: "retry", wire.DeadJobs: "dead", wire.Gated: "gated"}

// outcomes are the journal's records that say what became of a job.
var outcomes = map[string]bool{
	wire.TypeReturned: true, wire.TypeRefused: true, wire.TypeDuplicate: true, wire.TypeExpired: true, wire.TypeDeleted: true,
	wire.TypeChanged: true, wire.TypeUndone: true, wire.TypeKilled: true,
}

// eventsOf appends the events of a record. A record that cannot be read has none: the fold lists it
// as rejected.
func eventsOf(into []Event, r *wire.Record) []Event {
	switch r.Stream {
	case wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated:
		return entryEvent(into, r)
	case wire.JobMetrics:
		return metricEvents(into, r)
	case wire.Journal:
		return journalEvent(into, r)
	}
	return into
}

// entryEvent appends the event of a new entry, unless the entry replaces another one.
func entryEvent(into []Event, r *wire.Record) []Event {
	if _, replaces := r.Headers[wire.HeaderReplaces]; replaces {
		return into
	}
	e, err := wire.EntryOf(r)
	if err != nil { // a barrier, or rejected
		return into
	}
	what, jid := came[r.Stream], e.JID
	if _, lease := r.Headers[wire.HeaderLease]; lease {
		what, jid = "leased", e.Job.JID
	}
	return append(into, Event{At: at(r), What: what, JID: jid, Class: e.Job.Class, Queue: e.Job.Queue, ErrorClass: e.ErrorClass})
}

func metricEvents(into []Event, r *wire.Record) []Event {
	all, _, err := wire.ParseMetrics(nil, r.Body)
	if err != nil {
		return into
	}
	for i := range all {
		m := &all[i]
		e := Event{At: wire.Seconds(m.At), What: m.Status, JID: m.JID, Class: m.Class, Queue: m.Queue, ErrorClass: m.ErrorClass, Worker: m.Worker}
		if m.Duration > 0 {
			e.DurationMS = float64(m.Duration) / float64(time.Millisecond)
		}
		into = append(into, e)
	}
	return into
}

func journalEvent(into []Event, r *wire.Record) []Event {
	if d, ok := wire.DispatchOf(r.Headers); ok {
		e := Event{At: at(r), What: d.Op, JID: d.JIDTag, Actor: d.Actor}
		if job, err := wire.ParseJob(r.Body); err == nil && !d.Burial() {
			e.JID, e.Class, e.Queue = job.JID, job.Class, job.Queue
		}
		return append(into, e)
	}
	j, err := wire.ParseJournal(r.Body)
	if err != nil || !outcomes[j.Type] || wire.SettlesLease(j.Command) {
		return into
	}
	return append(into, Event{At: j.At, What: j.Type, JID: j.JID, Actor: j.Actor})
}

func at(r *wire.Record) float64 {
	if r.Time.IsZero() {
		return wire.Seconds(time.Now())
	}
	return wire.Seconds(r.Time)
}
