package cli

import (
	"cmp"
	"context"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
	"github.com/millrace-jobs/millrace/wire"
)

type jobsCmd struct {
	historyFlags

	Queue  string `short:"q" placeholder:"QUEUE" help:"Only attempts in this queue."`
	Class  string `placeholder:"CLASS" help:"Only jobs of this class."`
	JID    string `name:"jid" placeholder:"JID" help:"Only this job."`
	Error  string `placeholder:"CLASS" help:"Only attempts that failed with an error of this class."`
	Worker string `placeholder:"PROCESS" help:"Only attempts by this worker process: host:pid or host:pid:tag."`
	Status string `placeholder:"STATUS" enum:",success,failed,dead,discarded,expired" default:"" help:"Only this outcome: success, failed, dead, discarded or expired."`
	Failed bool   `help:"Only attempts that failed, with or without retries left."`
}

var runRows = rows[answer.Run]{[]output.Column{output.Time("ENDED"), output.ID("JID"), output.Name("CLASS"), output.Name("QUEUE"), output.State("STATUS"),
	output.Plain("TOOK"), output.Plain("ATTEMPT"), output.Text("ERROR"), output.Name("WORKER")}, func(r *answer.Run) []any {
	return []any{humantime.Unix(r.At), r.JID, r.Class, r.Queue, r.Status, took(r), r.Attempt, r.Error, cmp.Or(r.Worker, "-")}
}}

func took(r *answer.Run) string {
	if r.Duration == nil {
		return ""
	}
	return millis(*r.Duration)
}

var errFingerprint = usage.Errorf("invalid --error: a fingerprint stands for a class and message of errors, and workers report no message; use an error class")

// Run lists recent attempts.
func (c *jobsCmd) Run(ctx context.Context, out output.Streams) error {
	if wire.IsFingerprint(c.Error) {
		return errFingerprint
	}
	query := given("queue", c.Queue, "class", c.Class, "jid", c.JID, "error", c.Error, "worker", c.Worker, "status", c.Status)
	if c.Failed {
		query.Set("failed", "true")
	}
	return runRows.getHistory(ctx, out, &c.historyFlags, jobsPath, query)
}
