package wire

// Streams that clients publish to through the default exchange.
const (
	ScheduledJobs = "scheduled_jobs"
	Retries       = "retries"
	DeadJobs      = "dead_jobs"
	GatedJobs     = "jobs.gated" // jobs that wait for their limits, or for their queue
	Heartbeats    = "heartbeats"
	JobMetrics    = "job_metrics"
	// Only workers write and read it: which redelivered jobs began, and which processes died.
	JobBegins = "jobs.begins"
	// Workers write to it that jobs which limits count have ended.
	JobEnds = "jobs.ends"
)

// MaxEnds is how many jobs a record of jobs.ends may be about.
const MaxEnds = 100

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

// Commands of workers to the leader.
const (
	CommandState = "state" // which queues are paused, and which jobs must be claimed
	CommandClaim = "claim" // whether a job that limits count may run
)

// Answers to a claim.
const (
	ClaimRun  = "run"
	ClaimDrop = "drop" // the job has ended, or another copy of it runs
)

// Headers of jobs that Millrace has fired.
const (
	HeaderOp    = "millrace-op"
	HeaderEpoch = "millrace-epoch"
)

// OpRefired is the op of a job that was fired again, because the first fire may not have arrived.
const OpRefired = "refired"

// HeaderSlot is the header of a job that limits count. The worker says with its value that the job
// has ended.
const HeaderSlot = "millrace-slot"

// HeaderClaim is the header of a job that must be claimed before it runs.
const HeaderClaim = "millrace-claim"

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
