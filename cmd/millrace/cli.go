package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// cli is the whole command line. Flags with an environment variable are settings: the configuration file may set them too.
type cli struct {
	Config      kong.ConfigFlag  `group:"Global flags:" help:"Read settings from this YAML file. A flag's name is its key; flags and environment variables win over the file." env:"MILLRACE_CONFIG" placeholder:"FILE"`
	ShowVersion kong.VersionFlag `group:"Global flags:" name:"version" short:"v" help:"Print the version."`

	Up       upCmd     `cmd:"" group:"Run:" help:"Try Millrace out: a private local broker, the sidecar, a demo worker and traffic."`
	Serve    serveCmd  `cmd:"" group:"Run:" help:"Run the sidecar beside a broker."`
	Worker   workerCmd `cmd:"" group:"Run:" help:"Run jobs as shell commands."`
	Doctor   doctorCmd `cmd:"" group:"Run:" help:"Check the broker, and say how to fix what is wrong."`
	Settings configCmd `cmd:"" name:"config" group:"Run:" help:"Print the settings in effect, with passwords masked."`

	Enqueue  enqueueCmd  `cmd:"" group:"Enqueue:" help:"Enqueue a job."`
	Schedule scheduleCmd `cmd:"" group:"Enqueue:" help:"Schedule a job for later."`

	Status    statusCmd    `cmd:"" group:"Monitor:" help:"Show a summary on one screen."`
	Top       topCmd       `cmd:"" group:"Monitor:" help:"Show a summary, queues and workers, refreshed every two seconds."`
	Attention attentionCmd `cmd:"" group:"Monitor:" help:"Show current problems, the most severe first."`
	Health    healthCmd    `cmd:"" group:"Monitor:" help:"Run the health checks. The exit code is 1 if one fails."`
	Metrics   metricsCmd   `cmd:"" group:"Monitor:" help:"Show counts and durations by class, queue or time."`
	Events    eventsCmd    `cmd:"" group:"Monitor:" set:"output=ndjson" help:"Print changes as they happen."`
	Journal   journalCmd   `cmd:"" group:"Monitor:" help:"Show who did what to jobs and queues, and why."`

	Scheduled  scheduledCmd  `cmd:"" group:"Jobs:" help:"List and change scheduled jobs."`
	Retries    retriesCmd    `cmd:"" group:"Jobs:" help:"List and change jobs that wait for a retry."`
	Gated      gatedCmd      `cmd:"" group:"Jobs:" help:"List and change jobs that wait until their queue can be used."`
	Dead       deadCmd       `cmd:"" group:"Jobs:" help:"List dead jobs, retry or delete them."`
	Job        jobCmd        `cmd:"" group:"Jobs:" help:"Show where one job is and its history, cancel or delete it."`
	Jobs       jobsCmd       `cmd:"" group:"Jobs:" help:"List recent attempts, as workers reported them."`
	Errors     errorsCmd     `cmd:"" group:"Jobs:" help:"Show failures, grouped by error."`
	Due        dueCmd        `cmd:"" group:"Jobs:" help:"Show how many jobs are due when."`
	Operations operationsCmd `cmd:"" group:"Jobs:" help:"Run and follow bulk actions (retry, delete, change …)."`
	Rejected   rejectedCmd   `cmd:"" group:"Jobs:" help:"List records that could not be read."`

	Queues    queuesCmd    `cmd:"" group:"Queues and workers:" help:"List, pause, move, purge and delete queues."`
	Processes processesCmd `cmd:"" group:"Queues and workers:" help:"List worker processes, and stop them."`
	Deploys   deploysCmd   `cmd:"" group:"Queues and workers:" help:"List deploys, and mark them in all charts."`
	Release   releaseCmd   `cmd:"" group:"Queues and workers:" help:"Release jobs that are held because the journal lost records."`
	Whoami    whoamiCmd    `cmd:"" group:"Queues and workers:" help:"Show your user and what it may do."`

	Help       helpCmd       `cmd:"" group:"Help:" help:"Show the help of a command."`
	Completion completionCmd `cmd:"" group:"Help:" help:"Print the completion script for a shell: bash, zsh or fish."`
	Man        manCmd        `cmd:"" group:"Help:" help:"Print a man page, or write one for each command."`
	Version    versionCmd    `cmd:"" group:"Help:" help:"Print the version."`
	Complete   completeCmd   `cmd:"" name:"__complete" hidden:"" passthrough:""`
}

// parse reads the command line, the environment and the configuration file. done says that there is nothing to run: help was printed.
func parse(args []string, stdout, stderr io.Writer) (command *kong.Context, done bool, err error) {
	var root cli
	parser, err := newParser(&root, stdout, stderr, kong.Exit(func(int) { done = true }))
	if err != nil {
		return nil, false, fmt.Errorf("the command line's own definition: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err = parser.Parse(args)
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && !done {
		err = withHint(err, wrong.Context)
	}
	return command, done, err
}

// withHint says in an error which help there is.
func withHint(err error, command *kong.Context) error {
	path := "millrace"
	if selected := command.Selected(); selected != nil {
		path = pathOf(selected)
	}
	return fmt.Errorf("%w (see %s --help)", err, path)
}

func newParser(root *cli, stdout, stderr io.Writer, more ...kong.Option) (*kong.Kong, error) {
	parser, err := kong.New(root, append(more,
		flags.URLsMapper,
		kong.Name("millrace"),
		kong.Description("Background jobs on RabbitMQ and LavinMQ, for workers in any language."),
		kong.Help(printHelp),
		kong.Configuration(flags.ReadFile),
		kong.Vars{"hide_args": httpapi.DefaultHideArgs, "output": "table", "version": versionLine()},
		kong.Writers(stdout, stderr),
		kong.Bind(output.Streams{In: os.Stdin, Out: stdout, Err: stderr}),
	)...)
	if err != nil {
		return nil, err
	}
	parser.Model.HelpFlag.Help = "Show this help."
	return parser, nil
}
