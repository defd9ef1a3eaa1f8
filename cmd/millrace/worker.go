package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/millrace-jobs/millrace/clients/go/execjobs"
)

type workerCmd struct {
	AMQPURL  string `name:"amqp-url" env:"MILLRACE_AMQP_URL" type:"urls" default:"amqp://guest:guest@localhost:5672/" help:"The broker and virtual host."`
	Exec     string `required:"" placeholder:"FILE" type:"existingfile" help:"A YAML file that says which command runs the jobs of which class."`
	Check    bool   `help:"Only check the file."`
	LogLevel string `enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
}

// Run works on jobs by running commands, until it is told to stop.
func (c *workerCmd) Run(ctx context.Context, out output) error {
	file, err := os.Open(c.Exec)
	if err != nil {
		return err
	}
	defer file.Close()
	plan, err := execjobs.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Exec, err)
	}
	log := newLog(out.Err, c.LogLevel, "text")
	worker, err := plan.Worker(c.AMQPURL, log)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Exec, err)
	}
	if c.Check {
		_, err := fmt.Fprintf(out.Out, "%s: %d classes\n", c.Exec, len(plan.Classes))
		return err
	}
	quiet := make(chan os.Signal, 1)
	signal.Notify(quiet, syscall.SIGTSTP)
	defer signal.Stop(quiet)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case <-quiet:
				worker.Quiet()
			case <-ended:
				return
			}
		}
	}()
	log.Info("working", slog.String("identity", worker.Identity()), slog.Int("classes", len(plan.Classes)))
	return worker.Run(ctx)
}
