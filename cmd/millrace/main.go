package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const (
	exitFailed = 1
	exitUsage  = 2
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
		fmt.Fprintf(stderr, "millrace: %v\n", err)
		return exitUsage
	}
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(); err != nil {
		if !errors.Is(err, errSaid) {
			fmt.Fprintf(stderr, "millrace: %v\n", err)
		}
		return exitFailed
	}
	return 0
}

// errSaid is the error of a command that has already told what is wrong.
var errSaid = errors.New("said")
