package main

import (
	"fmt"
	"io"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/httpapi"
)

// cli is the whole command line. Flags with an environment variable are settings: they can also stand in the configuration file.
type cli struct {
	Config kong.ConfigFlag `help:"Read settings from this YAML file. A flag's name is its key; flags and environment variables win over the file." env:"MILLRACE_CONFIG" placeholder:"FILE"`

	Serve      serveCmd      `cmd:"" help:"Run the sidecar beside a broker."`
	Up         upCmd         `cmd:"" help:"Try it all out: a private local broker, the sidecar, a demo worker and traffic."`
	Status     statusCmd     `cmd:"" help:"Show how everything is, on one screen."`
	Attention  attentionCmd  `cmd:"" help:"Show what needs a look, the gravest first."`
	Health     healthCmd     `cmd:"" help:"Check whether all is well: it fails where something is not."`
	Enqueue    enqueueCmd    `cmd:"" help:"Enqueue a job."`
	Schedule   scheduleCmd   `cmd:"" help:"Schedule a job for later."`
	Scheduled  scheduledCmd  `cmd:"" help:"List scheduled jobs, and act on them."`
	Retries    retriesCmd    `cmd:"" help:"List jobs that wait for a retry, and act on them."`
	Dead       deadCmd       `cmd:"" help:"List dead jobs, and act on them."`
	Errors     errorsCmd     `cmd:"" help:"Show what failed, in groups of the same error."`
	Due        dueCmd        `cmd:"" help:"Show how many jobs are due when."`
	Rejected   rejectedCmd   `cmd:"" help:"List records that could not be understood."`
	Operations operationsCmd `cmd:"" help:"Do the same to many jobs, and see how far that is."`
	Job        jobCmd        `cmd:"" help:"Show where one job is and what happened to it, cancel it, or forget it."`
	Jobs       jobsCmd       `cmd:"" help:"Show what ran lately, as workers reported it."`
	Events     eventsCmd     `cmd:"" help:"Print what changes, as it does: JSON, an update a line."`
	Journal    journalCmd    `cmd:"" help:"Show what was done to jobs and queues, by whom and why."`
	Queues     queuesCmd     `cmd:"" help:"List job queues, make, pause, move, purge and delete them."`
	Processes  processesCmd  `cmd:"" help:"List worker processes, and tell them to stop."`
	Metrics    metricsCmd    `cmd:"" help:"Show what was done, by class or queue or time."`
	Deploys    deploysCmd    `cmd:"" help:"List deploys, and mark them in all charts."`
	Release    releaseCmd    `cmd:"" help:"Let fire what is held since the journal had a gap."`
	Whoami     whoamiCmd     `cmd:"" help:"Show who you are to a sidecar, and what you may do."`
	Worker     workerCmd     `cmd:"" help:"Work on jobs by running commands."`
	Doctor     doctorCmd     `cmd:"" help:"Check the broker and say how to mend what is wrong."`
	Settings   configCmd     `cmd:"" name:"config" help:"Print the settings in effect, with passwords masked."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
}

// output is where a command writes; Out is its result, Err what is said about it.
type output struct {
	Out, Err io.Writer
}

// parse reads the command line, the environment and the configuration file. done says that there is nothing to run: help was printed.
func parse(args []string, stdout, stderr io.Writer) (command *kong.Context, done bool, err error) {
	var root cli
	parser, err := newParser(&root, stdout, stderr, kong.Exit(func(int) { done = true }))
	if err != nil {
		return nil, false, fmt.Errorf("the command line's own definition: %w", err)
	}
	command, err = parser.Parse(args)
	return command, done, err
}

func newParser(root *cli, stdout, stderr io.Writer, more ...kong.Option) (*kong.Kong, error) {
	return kong.New(root, append(more,
		kong.NamedMapper(urlsType, kong.MapperFunc(decodeURLs)),
		kong.Name("millrace"),
		kong.Description("Background jobs on RabbitMQ and LavinMQ, for workers in any language."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.Configuration(readConfigFile),
		kong.Vars{"hide_args": httpapi.DefaultHideArgs},
		kong.Writers(stdout, stderr),
		kong.Bind(output{stdout, stderr}),
	)...)
}
