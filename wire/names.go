package wire

import "strings"

// Streams beside those that clients publish to. Only Millrace writes the last two.
const (
	Gated   = "jobs.gated" // jobs for which no queue was bound when they were published
	Journal = "job_journal"
	Rollups = "job_metrics_rollups"
)

// Exchanges and classic queues beside those that clients know.
const (
	ExchangeDead   = "jobs.dead"        // dead-letter exchange of every queue.*
	ExchangeRoute  = "jobs.route"       // Millrace's own way to queue.*
	ExchangeFire   = "jobs.fire"        // to jobs.route and to the journal
	ExchangeBury   = "jobs.bury"        // to dead_jobs and to the journal
	Unrouted       = "jobs.unrouted"    // alternate exchange of jobs.direct and jobs.route; leads to jobs.gated
	DeadLetters    = "jobs.letters"     // what the broker dead-lettered
	OldDeadLetters = "jobs.deadletters" // the same, of versions before wire format 2: emptied and deleted
	ProbePrefix    = "jobs.probe."      // + random: where the leader's probes arrive, exclusive
	WitnessPrefix  = "jobs.boot."       // + random: a queue that a broker restart would have removed
)

// EntryStreams are the streams whose records are entries: jobs with a time, jobs that wait for their queue, or dead jobs.
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

// QueueName is a job queue's name as clients say it, from what a worker calls it: with or without the prefix.
func QueueName(said string) string { return strings.TrimPrefix(said, QueuePrefix) }
