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

// Exchanges and classic queues.
const (
	ExchangeDirect = "jobs.direct"  // producers publish here, routing key = queue name
	Control        = "jobs.control" // commands to workers
	LeaderInbox    = "jobs.leader"  // the leader's lock and inbox
	QueuePrefix    = "queue."       // + name: one job queue
)

// Commands to workers, on jobs.control.
const (
	ControlQuiet  = "quiet"  // take no more jobs
	ControlStop   = "stop"   // end when the jobs have
	ControlCancel = "cancel" // set the cancel signal of a job, if it runs
	ControlPause  = "pause"  // take no more jobs of a queue
	ControlResume = "resume" // take jobs of a queue again
)

// CommandState is the command to the leader that asks which queues are paused.
const CommandState = "state"

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
