package wire

import (
	"math"
	"time"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Streams that clients publish to through the default exchange.
const (
	ScheduledJobs = shared.ScheduledJobs
	Retries       = shared.Retries
	DeadJobs      = shared.DeadJobs
	Heartbeats    = shared.Heartbeats
	JobMetrics    = shared.JobMetrics
	JobBegins     = shared.JobBegins
	JobEnds       = shared.JobEnds
)

// MaxEnds is how many jobs a record of jobs.ends may be about.
const MaxEnds = shared.MaxEnds

// Exchanges and queues that clients know.
const (
	ExchangeDirect = shared.ExchangeDirect
	Control        = shared.Control
	LeaderInbox    = shared.LeaderInbox
	QueuePrefix    = shared.QueuePrefix
)

// The class and the queue of jobs that are delayed messages.
const (
	MessageClass = shared.MessageClass
	MessageQueue = shared.MessageQueue
)

// MaxShort is the length in bytes of the longest AMQP short string.
const MaxShort = shared.MaxShort

// Commands to workers.
const (
	ControlQuiet  = shared.ControlQuiet
	ControlStop   = shared.ControlStop
	ControlCancel = shared.ControlCancel
	ControlPause  = shared.ControlPause
	ControlResume = shared.ControlResume
)

// Answers to a claim.
const (
	ClaimRun  = shared.ClaimRun
	ClaimDrop = shared.ClaimDrop
)

// States of a worker process.
const (
	StateRunning  = shared.StateRunning
	StateQuiet    = shared.StateQuiet
	StateStopping = shared.StateStopping
)

// Results of an attempt.
const (
	MetricSuccess   = shared.MetricSuccess
	MetricFailed    = shared.MetricFailed
	MetricDead      = shared.MetricDead
	MetricDiscarded = shared.MetricDiscarded
	MetricExpired   = shared.MetricExpired
)

// Reasons of a dead job.
const (
	ReasonExhausted = shared.ReasonExhausted
	ReasonKilled    = shared.ReasonKilled
	ReasonExpired   = shared.ReasonExpired
	ReasonPoison    = shared.ReasonPoison
)

// Defaults and limits of jobs and records.
const (
	DefaultQueue = shared.DefaultQueue
	MaxQueueName = shared.MaxQueueName
	DefaultRetry = shared.DefaultRetry
	MaxPriority  = shared.MaxPriority
	MaxRecord    = shared.MaxRecord
	MillisAbove  = shared.MillisAbove
)

// Types that clients write or read.
type (
	// Job is what Millrace reads of a job.
	Job = shared.Job
	// Failure describes a failed job, in the record of a retry or a dead job.
	Failure = shared.Failure
	// MetricRecord is a record of job_metrics as a worker writes it.
	MetricRecord = shared.MetricRecord
)

// ParseJob parses a job of a queue.
func ParseJob(body []byte) (Job, error) { return shared.ParseJob(body) }

// WithQueue returns a job with its queue filled in, if it names none.
func WithQueue(job []byte, queue string) ([]byte, error) { return shared.WithQueue(job, queue) }

// ForQueue returns a parsed job with its queue replaced.
func ForQueue(job []byte, queue string) ([]byte, error) { return shared.ForQueue(job, queue) }

// SetRaw sets one member of an object, and leaves every other byte unchanged.
func SetRaw(raw []byte, name, value string) ([]byte, error) { return shared.SetRaw(raw, name, value) }

// Quote returns a text as a JSON string.
func Quote(s string) string { return shared.Quote(s) }

// CheckQueueName returns an error if no queue can have this name.
func CheckQueueName(name string) error { return shared.CheckQueueName(name) }

// CheckLimitKey returns an error if no job can have this key.
func CheckLimitKey(key string) error { return shared.CheckLimitKey(key) }

// Backoff returns how long a job waits after its attempt number count (from 0) failed.
func Backoff(count int, random func(n int) int) time.Duration { return shared.Backoff(count, random) }

// Seconds returns t as the formats write it.
func Seconds(t time.Time) float64 { return shared.Seconds(t) }

// FromSeconds returns the time that Seconds was given, to the microsecond.
func FromSeconds(seconds float64) time.Time {
	return time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC()
}

// Property returns s if a message property may hold it, and "" otherwise.
func Property(s string) string { return shared.Property(s) }
