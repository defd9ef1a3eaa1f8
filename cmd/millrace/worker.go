package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	lib "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/clients/go/execjobs"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

type workerCmd struct {
	flags.AMQP `group:"Connection flags:"`

	Exec     string `required:"" placeholder:"FILE" type:"existingfile" help:"YAML file that names the command for each class of jobs."`
	Check    bool   `help:"Only check the file."`
	LogLevel string `enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`
}

// logJobs logs when each job starts and when it is done. The worker itself logs failures.
func logJobs(log *slog.Logger) lib.Middleware {
	return func(next lib.Handler) lib.Handler {
		return func(ctx context.Context, job *lib.RawJob) error {
			about := log.With("class", job.Class, "jid", job.JID, "queue", job.Queue, "attempt", job.Attempt)
			about.Info("millrace: job started")
			begun := time.Now()
			err := next(ctx, job)
			if err == nil {
				about.Info("millrace: job done", "took", time.Since(begun).Round(time.Millisecond))
			}
			return err
		}
	}
}

// Run runs commands for jobs until it is stopped.
func (c *workerCmd) Run(ctx context.Context, out output.Streams) error {
	file, err := os.Open(c.Exec)
	if err != nil {
		return err
	}
	defer file.Close()
	plan, err := execjobs.Read(file)
	if err != nil {
		return usage.Errorf("%s: %w", c.Exec, err)
	}
	log := newLog(out.Err, c.LogLevel, "text")
	worker, err := plan.Worker(c.AMQPURL, log)
	if err != nil {
		return usage.Errorf("%s: %w", c.Exec, err)
	}
	worker.Use(logJobs(log))
	if c.Check {
		_, err := fmt.Fprintf(out.Out, "%s: %d classes\n", c.Exec, len(plan.Classes))
		return err
	}
	quiet := make(chan os.Signal, 1)
	notifyQuiet(quiet)
	defer close(quiet)
	defer signal.Stop(quiet)
	go func() {
		for range quiet {
			worker.Quiet()
		}
	}()
	log.Info("working", slog.String("identity", worker.Identity()), slog.Int("classes", len(plan.Classes)))
	return worker.Run(ctx)
}
