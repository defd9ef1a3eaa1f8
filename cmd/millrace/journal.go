package main

import (
	"cmp"
	"context"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

type journalCmd struct {
	pastSettings

	Actor string `placeholder:"USER" help:"Only what this user did."`
	JID   string `name:"jid" placeholder:"JID" help:"Only what was done to this job."`
	Op    string `placeholder:"OP" help:"Only this: deleted, killed, changed, undone, triggered, retried, operation, paused, purged, stopped and so on."`
}

// actRow is something that was done, as the API gives it.
type actRow struct {
	At     float64 `json:"at"`
	Op     string  `json:"op"`
	Set    string  `json:"set"`
	Stream string  `json:"stream"`
	JID    string  `json:"jid"`
	Queue  string  `json:"queue"`
	To     string  `json:"to"`
	Told   string  `json:"identity"`
	Count  int64   `json:"count"`
	Actor  string  `json:"actor"`
	Reason string  `json:"reason"`
	Action string  `json:"action"`
	State  string  `json:"state"`
	Bulk   string  `json:"operation"`
}

func (a *actRow) cells() []string {
	what := a.Op
	if a.State != "" {
		what = a.Op + " " + a.State + ": " + a.Action
	}
	return []string{moment(a.At).Format(time.DateTime), cmp.Or(a.Actor, "(millrace)"), what, cmp.Or(a.Set, a.Stream), a.about(), short(a.Reason)}
}

// about is what it was done to.
func (a *actRow) about() string {
	about := cmp.Or(a.JID, a.Queue, a.Told, a.Bulk)
	if a.To != "" {
		about += " to " + a.To
	}
	if a.Queue != "" && a.Count > 0 {
		about += " (" + wire.Counted(a.Count, "job") + ")"
	}
	return about
}

// Run shows what was done.
func (c *journalCmd) Run(ctx context.Context, out output) error {
	chosen := map[string]string{"actor": c.Actor, "jid": c.JID, "op": c.Op}
	return listPast(ctx, out, &c.pastSettings, "/api/journal", chosen, []string{"WHEN", "WHO", "WHAT", "SET", "ABOUT", "REASON"}, (*actRow).cells)
}
