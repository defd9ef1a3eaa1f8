package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/help"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// Exit codes. 0 means that the command did what it was asked for.
const (
	ExitFailed = 1 // it could not, or a check found something wrong
	ExitUsage  = 2 // the command line or the configuration is at fault: nothing was tried
)

// Program is a command line to be run.
type Program struct {
	Root func() any // returns a new struct of all commands
	Vars kong.Vars  // for the tags of the commands; version is required
}

// Execute runs a command line and returns the exit code.
func (p Program) Execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	command, done, err := p.parse(args, stdout, stderr)
	if done {
		return 0
	}
	if err == nil {
		command.BindTo(ctx, (*context.Context)(nil))
		err = command.Run()
	} else {
		err = usage.Fault(err)
	}
	return report(stderr, err)
}

// report prints an error, and returns the exit code.
func report(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if !errors.Is(err, output.ErrReported) {
		fmt.Fprintf(stderr, "millrace: %v\n", err)
	}
	if usage.Is(err) {
		return ExitUsage
	}
	return ExitFailed
}

// parse reads the command line, the environment and the configuration file. done says that there is
// nothing to run, because help was printed.
func (p Program) parse(args []string, stdout, stderr io.Writer) (command *kong.Context, done bool, err error) {
	parser, err := p.Parser(p.Root(), stdout, stderr, kong.Exit(func(int) { done = true }))
	if err != nil {
		return nil, false, fmt.Errorf("the command line's own definition: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	command, err = parser.Parse(args)
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && !done {
		path := "millrace"
		if selected := wrong.Context.Selected(); selected != nil {
			path = help.Path(selected)
		}
		err = fmt.Errorf("%w (see %s --help)", err, path)
	}
	return command, done, err
}

// Parser returns a parser that fills a struct of commands.
func (p Program) Parser(root any, stdout, stderr io.Writer, more ...kong.Option) (*kong.Kong, error) {
	vars := kong.Vars{"output": "table", "limit": "100"}.CloneWith(p.Vars)
	parser, err := kong.New(root, append(more,
		flags.URLsMapper,
		kong.Name("millrace"),
		kong.Description("Background jobs on RabbitMQ and LavinMQ, for workers in any language."),
		kong.Help(help.Print),
		kong.Configuration(flags.ReadFile),
		vars,
		kong.Writers(stdout, stderr),
		kong.Bind(output.Streams{In: os.Stdin, Out: stdout, Err: stderr}, help.Executor(p.Execute)),
	)...)
	if err != nil {
		return nil, err
	}
	parser.Model.HelpFlag.Help = "Show this help."
	return parser, nil
}
