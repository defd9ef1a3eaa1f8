package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/url"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// export writes the jobs that match as they come. All of them may be more than memory holds.
func (c *listCmd) export(ctx context.Context, out output.Streams, l *list, query url.Values) error {
	if c.Page != 1 {
		return usage.Errorf("-o %s has no pages: leave out --page, or set --limit", c.Output)
	}
	query.Del("page")
	query.Del("page_size")
	query.Set("format", c.Output)
	api := c.APIClient()
	defer api.HTTP.CloseIdleConnections()
	file, err := api.Stream(ctx, apiclient.Request{Path: l.path(), Query: query})
	if err != nil {
		return err
	}
	defer file.Close()
	switch {
	case c.Limit == nil:
		_, err = io.Copy(out.Out, file)
	case c.Output == output.FormCSV:
		err = copyRecords(out.Out, file, *c.Limit)
	default:
		err = copyLines(out.Out, file, *c.Limit)
	}
	return named("the list is incomplete", err)
}

// copyRecords copies the titles of a CSV file and at most so many records.
func copyRecords(to io.Writer, from io.Reader, limit int) error {
	r, w := csv.NewReader(from), csv.NewWriter(to)
	w.UseCRLF = true // as the API does
	for range limit + 1 {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

func copyLines(to io.Writer, from io.Reader, limit int) error {
	r := bufio.NewReader(from)
	for range limit {
		line, err := r.ReadBytes('\n')
		if _, failed := to.Write(line); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
