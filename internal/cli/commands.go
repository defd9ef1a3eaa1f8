package cli

// Commands are all commands of this package, in the groups in which the help lists them.
type Commands struct {
	enqueueCommands `group:"Enqueue:"`
	monitorCommands `group:"Monitor:"`
	jobCommands     `group:"Jobs:"`
	queueCommands   `group:"Queues and workers:"`
}

type enqueueCommands struct {
	Enqueue  enqueueCmd  `cmd:"" help:"Enqueue a job."`
	Schedule scheduleCmd `cmd:"" help:"Schedule a job for later."`
	Delay    delayCmd    `cmd:"" help:"Delay a message for any exchange."`
	Import   importCmd   `cmd:"" help:"Enter many jobs from a file with a JSON object a line. Repeating it doubles nothing."`
	Export   exportCmd   `cmd:"" help:"Print all jobs that wait, as millrace import reads them."`
}

type monitorCommands struct {
	Status    statusCmd    `cmd:"" help:"Show a summary on one screen."`
	Top       topCmd       `cmd:"" help:"Show a summary, queues and workers, refreshed every two seconds."`
	Attention attentionCmd `cmd:"" aliases:"alerts" help:"Show current problems, the most severe first."`
	Health    healthCmd    `cmd:"" help:"Run the health checks, or ask whether the sidecar is ready. The exit code is 1 if one fails."`
	Metrics   metricsCmd   `cmd:"" help:"Show counts and durations by class, queue or time."`
	Events    eventsCmd    `cmd:"" set:"output=ndjson" help:"Print changes as they happen."`
	Journal   journalCmd   `cmd:"" help:"Show who did what to jobs and queues, and why."`
}

type jobCommands struct {
	Scheduled  scheduledCmd  `cmd:"" set:"one=scheduled job" help:"List and change scheduled jobs."`
	Retries    retriesCmd    `cmd:"" set:"one=retry" help:"List and change jobs that wait for a retry."`
	Gated      gatedCmd      `cmd:"" set:"one=gated job" help:"List and change jobs that wait until their queue can be used."`
	Dead       deadCmd       `cmd:"" set:"one=dead job" help:"List dead jobs, retry or delete them."`
	Job        jobCmd        `cmd:"" help:"Show where one job is and its history, cancel or delete it."`
	Jobs       jobsCmd       `cmd:"" help:"List recent attempts, as workers reported them."`
	Errors     errorsCmd     `cmd:"" help:"Show failures, grouped by error."`
	Due        dueCmd        `cmd:"" help:"Show how many jobs are due when."`
	Messages   messagesCmd   `cmd:"" help:"Show how many delayed messages wait for each exchange."`
	Periodic   periodicCmd   `cmd:"" set:"defined=the periodic job" help:"List periodic jobs, pause, run and skip them."`
	Limits     limitsCmd     `cmd:"" set:"defined=the limit" help:"List limits, what they count, and why a job waits."`
	Unique     uniqueCmd     `cmd:"" help:"List the keys of unique jobs, and free them."`
	Define     defineCmd     `cmd:"" help:"Set the periodic jobs, limits and governed queues that a file or a program defines."`
	Operations operationsCmd `cmd:"" help:"Run and follow bulk actions (retry, delete, change …)."`
	Rejected   rejectedCmd   `cmd:"" help:"List records that could not be read."`
}

type queueCommands struct {
	Queues      queuesCmd      `cmd:"" help:"List, pause, move, purge and delete queues."`
	Governed    governedCmd    `cmd:"" set:"defined=the queue, without queue" help:"Govern queues, so that limits count all of their jobs."`
	Definitions definitionsCmd `cmd:"" help:"Export and import the queues, and which of them are paused."`
	Processes   processesCmd   `cmd:"" aliases:"workers" help:"List worker processes, and stop them."`
	Deploys     deploysCmd     `cmd:"" help:"List deploys, and mark them in all charts."`
	Release     releaseCmd     `cmd:"" help:"Release jobs that are held because the journal lost records."`
	Whoami      whoamiCmd      `cmd:"" help:"Show your user and what it may do."`
}
