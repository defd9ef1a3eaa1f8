package wire

import (
	"strings"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Streams in addition to those that clients publish to. Only Millrace writes the last two.
const (
	Gated   = shared.GatedJobs // jobs that wait for their limits, or for which no queue was bound
	Journal = "job_journal"
	Rollups = "job_metrics_rollups"
)

// Exchanges and queues in addition to those that clients know.
const (
	ExchangeDead   = "jobs.dead"           // dead-letter exchange of every queue.*
	ExchangeRoute  = "jobs.route"          // Millrace's own route to queue.*
	ExchangeFire   = "jobs.fire"           // leads to jobs.route and to the journal
	ExchangeBury   = "jobs.bury"           // leads to dead_jobs and to the journal
	Unrouted       = "jobs.unrouted"       // the alternate exchange; leads to jobs.gated
	UnroutedFires  = "jobs.unrouted.fires" // leads what Millrace itself fired from jobs.unrouted back to its leader
	Full           = "jobs.full"           // refuses every message: where producers of a full governed queue are sent
	DeadLetters    = "jobs.letters"        // dead-lettered messages
	OldDeadLetters = "jobs.deadletters"    // the same before wire format 2; is emptied and deleted
	ProbePrefix    = "jobs.probe."         // + random: exclusive queue of a leader's probes
	WitnessPrefix  = "jobs.boot."          // + hash of a node or, on LavinMQ, random: a witness
)

// EntryStreams are the streams whose records are entries: scheduled jobs, retries, dead jobs, and
// jobs that wait for their queue.
var EntryStreams = []string{ScheduledJobs, Retries, DeadJobs, Gated}

// EntryStreamsOf returns the entry streams that leaders of a format know.
func EntryStreamsOf(format int) []string {
	if format < 2 {
		return EntryStreams[:3]
	}
	return EntryStreams
}

// Routed reports whether the exchange, routing key and priority of a stream's records matter.
func Routed(stream string) bool { return stream == Gated }

// QueueName returns the name of a job queue that a worker reports with or without the prefix.
func QueueName(said string) string { return strings.TrimPrefix(said, QueuePrefix) }
