package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// Exit codes. 0 means that the command did what it was asked for.
const (
	exitFailed = 1 // it could not, or a check found something wrong
	exitUsage  = 2 // the command line or the configuration is at fault: nothing was tried
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
	command, done, err := parse(args, stdout, stderr)
	if done {
		return 0
	}
	if err != nil {
		return fail(stderr, usage.Fault(err))
	}
	command.BindTo(ctx, (*context.Context)(nil))
	return fail(stderr, command.Run())
}

// fail says what went wrong, if anything did, and gives the exit code.
func fail(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	if !errors.Is(err, output.ErrReported) {
		fmt.Fprintf(stderr, "millrace: %v\n", err)
	}
	if usage.Is(err) {
		return exitUsage
	}
	return exitFailed
}
