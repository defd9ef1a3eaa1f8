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
	Unrouted       = "jobs.unrouted"    // exchange and queue: jobs for a queue that does not exist yet
	DeadLetters    = "jobs.deadletters" // what the broker dead-lettered
	Control        = "jobs.control"     // commands to workers
	LeaderInbox    = "jobs.leader"      // exclusive: the leader's lock and inbox
	ProbePrefix    = "jobs.probe."      // + random: where the leader's probes arrive, exclusive
	WitnessPrefix  = "jobs.boot."       // + random: a queue that a broker restart would have removed
	QueuePrefix    = "queue."           // + name: one job queue
)

// EntryStreams are the streams whose records are entries: jobs with a time, or dead jobs.
var EntryStreams = []string{ScheduledJobs, Retries, DeadJobs}

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
