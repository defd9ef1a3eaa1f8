package wire

// Streams that clients publish to through the default exchange.
const (
	ScheduledJobs = "scheduled_jobs"
	Retries       = "retries"
	DeadJobs      = "dead_jobs"
	Heartbeats    = "heartbeats"
	JobMetrics    = "job_metrics"
	// Only workers write and read it: which redelivered jobs began, and which processes died.
	JobBegins = "jobs.begins"
)

// Exchanges and queues.
const (
	ExchangeDirect = "jobs.direct"  // producers publish here, routing key = queue name
	Control        = "jobs.control" // commands to workers
	LeaderInbox    = "jobs.leader"  // the leader's lock and inbox
	QueuePrefix    = "queue."       // + name: one job queue
)

// Commands to workers, on jobs.control.
const (
	ControlQuiet  = "quiet"  // take no more jobs
	ControlStop   = "stop"   // stop when the running jobs have ended
	ControlCancel = "cancel" // set the cancel signal of a running job
	ControlPause  = "pause"  // take no more jobs of a queue
	ControlResume = "resume" // take jobs of a queue again
)

// CommandState is the command that asks the leader which queues are paused.
const CommandState = "state"

// CommandDefine is the command that sets what a source defines.
const CommandDefine = "define"

// DefaultQueue is the queue of a job that names none.
const DefaultQueue = "default"

// The class and the queue of jobs that are delayed messages.
const (
	MessageClass = "millrace.Message"
	MessageQueue = "millrace.messages"
)

// MaxQueueName is the length in bytes of the longest queue name. With QueuePrefix it fits an AMQP
// short string.
const MaxQueueName = 200
