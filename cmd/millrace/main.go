package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/internal/cli"
	"github.com/millrace-jobs/millrace/internal/cli/help"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends what does not end by itself
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute is main without the process around it.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return program().Execute(ctx, args, stdout, stderr)
}

func program() cli.Program {
	return cli.Program{
		Root: func() any { return &commands{} },
		Vars: kong.Vars{"hide_args": httpapi.DefaultHideArgs, "version": versionLine(), "release": versionText()},
	}
}

// commands is the whole command line. Flags with an environment variable are settings: the
// configuration file may set them too.
type commands struct {
	Config      kong.ConfigFlag  `group:"Global flags:" help:"Read settings from this YAML file. A flag's name is its key; flags and environment variables win over the file." env:"MILLRACE_CONFIG" placeholder:"FILE"`
	ShowVersion kong.VersionFlag `group:"Global flags:" name:"version" short:"v" help:"Print the version."`

	Up       upCmd     `cmd:"" group:"Run:" help:"Try Millrace out: a private local broker, the sidecar, a demo worker and traffic."`
	Serve    serveCmd  `cmd:"" group:"Run:" help:"Run the sidecar beside a broker."`
	Worker   workerCmd `cmd:"" group:"Run:" help:"Run jobs as shell commands."`
	Bridge   bridgeCmd `cmd:"" group:"Run:" help:"Move jobs between Millrace and another job system while both run."`
	Doctor   doctorCmd `cmd:"" group:"Run:" help:"Check the broker, and say how to fix what is wrong."`
	Settings configCmd `cmd:"" name:"config" group:"Run:" help:"Print the settings in effect, with passwords masked."`

	cli.Commands

	Help       help.Command    `cmd:"" group:"Help:" help:"Show the help of a command."`
	Completion help.Completion `cmd:"" group:"Help:" help:"Print the completion script for a shell: bash, zsh or fish."`
	Man        help.Man        `cmd:"" group:"Help:" help:"Print a man page, or write one for each command."`
	Version    versionCmd      `cmd:"" group:"Help:" help:"Print the version."`
	Complete   help.Complete   `cmd:"" name:"__complete" hidden:"" passthrough:""`
}
