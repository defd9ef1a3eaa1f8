package cli

import (
	"cmp"
	"context"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type journalCmd struct {
	historyFlags

	Actor string `placeholder:"USER" help:"Only actions of this user."`
	JID   string `name:"jid" placeholder:"JID" help:"Only actions on this job."`
	Op    string `placeholder:"OP" help:"Only actions of this kind: deleted, killed, changed, undone, triggered, retried, operation, paused, purged, stopped and so on."`
}

func journalCells(e *answer.JournalEntry) []any {
	what := e.Op
	if e.State != "" {
		what = e.Op + " " + e.State + ": " + e.Action
	}
	return []any{humantime.Unix(e.At), cmp.Or(e.Actor, "(millrace)"), what, cmp.Or(e.Set, e.Stream), subject(e), e.Reason}
}

// subject returns what something was done to.
func subject(e *answer.JournalEntry) string {
	about := cmp.Or(e.JID, e.Queue, e.Periodic, e.Limit, e.Identity, e.Operation)
	if e.To != "" {
		about += " to " + e.To
	}
	if e.Queue != "" && e.Count > 0 {
		about += " (" + wire.Counted(e.Count, "job") + ")"
	}
	return about
}

var journalRows = rows[answer.JournalEntry]{[]output.Column{output.Time("WHEN"), output.Name("WHO"), output.Plain("WHAT"), output.Plain("SET"), output.ID("ABOUT"),
	output.Text("REASON")}, journalCells}

// Run lists what was done.
func (c *journalCmd) Run(ctx context.Context, out output.Streams) error {
	return journalRows.getHistory(ctx, out, &c.historyFlags, "/api/journal", given("actor", c.Actor, "jid", c.JID, "op", c.Op))
}
