package wire

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Streams that clients publish to through the default exchange.
const (
	ScheduledJobs = "scheduled_jobs"
	Retries       = "retries"
	DeadJobs      = "dead_jobs"
	Heartbeats    = "heartbeats"
	JobMetrics    = "job_metrics"
	Gated         = "jobs.gated"  // jobs for which no queue was bound when they were published
	JobBegins     = "jobs.begins" // written and read by workers alone: which redelivered jobs began, and which processes died
)

// Streams that only Millrace writes.
const (
	Journal = "job_journal"
	Rollups = "job_metrics_rollups"
)

// Exchanges and classic queues.
const (
	ExchangeDirect = "jobs.direct"      // producers publish here, routing key = queue name
	ExchangeDead   = "jobs.dead"        // dead-letter exchange of every queue.*
	ExchangeRoute  = "jobs.route"       // Millrace's own way to queue.*
	ExchangeFire   = "jobs.fire"        // to jobs.route and to the journal
	ExchangeBury   = "jobs.bury"        // to dead_jobs and to the journal
	Unrouted       = "jobs.unrouted"    // alternate exchange of jobs.direct and jobs.route; leads to jobs.gated
	DeadLetters    = "jobs.letters"     // what the broker dead-lettered
	OldDeadLetters = "jobs.deadletters" // the same, of versions before wire format 2: emptied and deleted
	Control        = "jobs.control"     // commands to workers
	LeaderInbox    = "jobs.leader"      // the leader's lock and inbox
	ProbePrefix    = "jobs.probe."      // + random: where the leader's probes arrive, exclusive
	WitnessPrefix  = "jobs.boot."       // + random: a queue that a broker restart would have removed
	QueuePrefix    = "queue."           // + name: one job queue
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

// DefaultQueue is where a job goes that names no queue.
const DefaultQueue = "default"

// MaxQueueName is the longest queue name in bytes: with QueuePrefix it still fits an AMQP short string.
const MaxQueueName = 200

// CheckQueueName tells why no queue can have this name, or nil.
func CheckQueueName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("queue name is empty")
	case len(name) > MaxQueueName:
		return fmt.Errorf("queue name is %d bytes long, at most %d are allowed", len(name), MaxQueueName)
	case !utf8.ValidString(name):
		return fmt.Errorf("queue name is not valid UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("queue name has a control character")
	}
	return nil
}

// QueueName is a job queue's name as clients say it, from what a worker calls it: with or without the prefix.
func QueueName(said string) string { return strings.TrimPrefix(said, QueuePrefix) }
