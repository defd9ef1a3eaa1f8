package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/cli/importer"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type exportCmd struct {
	flags.Client
	filter

	Set string `arg:"" optional:"" enum:"all,scheduled,retries,dead,gated" default:"all" help:"scheduled, retries, dead, gated or all (${default})."`
}

// exported are the lists that are exported, by what the command calls them.
var exported = []string{"scheduled", "retries", "dead", "gated"}

// Run prints the records of all jobs that match, a line each.
func (c *exportCmd) Run(ctx context.Context, out output.Streams) error {
	_, query, err := c.request(time.Now())
	if err != nil {
		return err
	}
	query.Del("page")
	query.Del("page_size")
	query.Set("format", output.FormNDJSON)
	e := export{out: bufio.NewWriter(out.Out), err: out.Err}
	api := c.APIClient()
	defer api.HTTP.CloseIdleConnections()
	for _, set := range exported {
		if c.Set != "all" && c.Set != set {
			continue
		}
		l := lists[set]
		items, err := api.Stream(ctx, apiclient.Request{Path: l.path(), Query: query})
		if err != nil {
			return err
		}
		err = e.copy(items)
		items.Close()
		if err != nil {
			return errors.Join(named("the export is incomplete", err), e.out.Flush())
		}
	}
	if err := e.out.Flush(); err != nil {
		return err
	}
	if e.incomplete > 0 {
		return fmt.Errorf("%s not exported", wire.Counted(e.incomplete, "job"))
	}
	_, err = fmt.Fprintf(out.Err, "%s exported\n", wire.Counted(e.jobs, "job"))
	return err
}

// export writes the items of lists as they were published.
type export struct {
	out              *bufio.Writer
	err              io.Writer
	jobs, incomplete int64
}

func (e *export) copy(items io.Reader) error {
	from := bufio.NewReader(items)
	for {
		item, err := from.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(item) == 0 {
			return nil
		}
		if err != nil {
			return apiclient.Interrupted(err)
		}
		if err := e.write(item[:len(item)-1]); err != nil {
			return err
		}
	}
}

func (e *export) write(item []byte) error {
	record, incomplete, err := importer.WithoutPlace(item)
	if err != nil {
		return err
	}
	if incomplete != "" {
		e.incomplete++
		_, err := fmt.Fprintf(e.err, "millrace: a job is not exported: %s: %s\n", incomplete, wire.Shorten(string(item), 200))
		return err
	}
	e.jobs++
	_, _ = e.out.Write(record) // WriteByte returns its error
	return e.out.WriteByte('\n')
}
