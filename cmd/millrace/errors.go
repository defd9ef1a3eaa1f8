package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strconv"

	"github.com/millrace-jobs/millrace/wire"
)

type errorsCmd struct {
	lookSettings
	span

	Set   string `placeholder:"SET" enum:",retries,dead-jobs" default:"" help:"Only of retries, or of dead-jobs."`
	Queue string `placeholder:"QUEUE" help:"Only this queue's."`
	Class string `placeholder:"CLASS" help:"Only of jobs of this class."`
}

// errorGroups are what failed, as the API gives it.
type errorGroups struct {
	Items    []errorGroup `json:"items"`
	Unread   int64        `json:"unsearched"`
	Complete bool         `json:"complete"`
}

type errorGroup struct {
	Fingerprint string `json:"fingerprint"`
	Class       string `json:"class"`
	ErrorClass  string `json:"error_class"`
	Message     string `json:"message"`
	Count       int64  `json:"count"`
	Retries     int64  `json:"retries"`
	Dead        int64  `json:"dead"`
	JID         string `json:"jid"`
}

func (g *errorGroup) cells() []string {
	row := []string{}
	for _, n := range []int64{g.Count, g.Retries, g.Dead} {
		row = append(row, strconv.FormatInt(n, 10))
	}
	return append(row, g.Class, short(failure(g.ErrorClass, g.Message)), g.Fingerprint, g.JID)
}

// end says how many failed, and what is left out.
func (g *errorGroups) end() string {
	var failed int64
	for i := range g.Items {
		failed += g.Items[i].Count
	}
	said := "none"
	if failed > 0 {
		said = fmt.Sprintf("%s in %s", wire.Counted(failed, "job"), wire.Counted(int64(len(g.Items)), "group"))
	}
	if g.Unread > 0 {
		said += fmt.Sprintf("; %s too large to be looked into", wire.Counted(g.Unread, "job"))
	}
	if !g.Complete {
		said += "; there are more than could be looked at: ask again, or narrow it down"
	}
	return said
}

// Run shows what failed, in groups.
func (c *errorsCmd) Run(ctx context.Context, out output) error {
	query := url.Values{}
	setGiven(query, map[string]string{"set": c.Set, "queue": c.Queue, "class": c.Class})
	if err := c.set(query); err != nil {
		return err
	}
	return look(ctx, out, &c.lookSettings, "/api/errors", query, func(w io.Writer, g *errorGroups) error {
		titles := []string{"JOBS", "RETRIES", "DEAD", "CLASS", "ERROR", "FINGERPRINT", "JID"}
		if err := printTable(w, titles, rowsOf(g.Items, (*errorGroup).cells)); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w, g.end())
		return err
	})
}
