package cli

import (
	"cmp"
	"context"

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

// journalRow is something that was done.
type journalRow struct {
	At      float64 `json:"at"`
	Op      string  `json:"op"`
	Set     string  `json:"set"`
	Stream  string  `json:"stream"`
	JID     string  `json:"jid"`
	Queue   string  `json:"queue"`
	To      string  `json:"to"`
	Process string  `json:"identity"`
	Count   int64   `json:"count"`
	Actor   string  `json:"actor"`
	Reason  string  `json:"reason"`
	Action  string  `json:"action"`
	State   string  `json:"state"`
	Bulk    string  `json:"operation"`
}

func (a *journalRow) cells() []any {
	what := a.Op
	if a.State != "" {
		what = a.Op + " " + a.State + ": " + a.Action
	}
	return []any{humantime.Unix(a.At), cmp.Or(a.Actor, "(millrace)"), what, cmp.Or(a.Set, a.Stream), a.about(), a.Reason}
}

// about returns what it was done to.
func (a *journalRow) about() string {
	about := cmp.Or(a.JID, a.Queue, a.Process, a.Bulk)
	if a.To != "" {
		about += " to " + a.To
	}
	if a.Queue != "" && a.Count > 0 {
		about += " (" + wire.Counted(a.Count, "job") + ")"
	}
	return about
}

var journalRows = rows[journalRow]{[]output.Column{output.Time("WHEN"), output.Name("WHO"), output.Plain("WHAT"), output.Plain("SET"), output.ID("ABOUT"),
	output.Text("REASON")}, (*journalRow).cells}

// Run lists what was done.
func (c *journalCmd) Run(ctx context.Context, out output.Streams) error {
	return journalRows.getHistory(ctx, out, &c.historyFlags, "/api/journal", given("actor", c.Actor, "jid", c.JID, "op", c.Op))
}
