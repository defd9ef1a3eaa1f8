package httpapi

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// export streams all entries that a filter matches.
func (a *entriesAPI) export(in *problem.Request, q *query) error {
	ctx := in.Request().Context()
	write := a.writeNDJSON
	if q.format == formatCSV {
		write = a.writeCSV
	}
	q.size = maxSize
	name := strings.ReplaceAll(q.stream, "_", "-")
	return export(in, name, q.format, csvColumns, func(w io.Writer) (bool, error) {
		f, err := a.finder.find(ctx, q, false)
		if err != nil {
			return false, err
		}
		q.behind = f.next
		return f.next.Set, write(ctx, w, q.filter.hide, f.entries)
	})
}

// writeNDJSON writes an item a line.
func (a *entriesAPI) writeNDJSON(ctx context.Context, w io.Writer, h *redactor, entries []*tracker.Stored) error {
	var out bytes.Buffer
	for _, e := range entries {
		out.Write(oneLine(a.records.item(ctx, h, e)))
		out.WriteByte('\n')
		if out.Len() > 1<<20 {
			if _, err := out.WriteTo(w); err != nil {
				return err
			}
		}
	}
	_, err := out.WriteTo(w)
	return err
}

// oneLine removes line ends from valid JSON, where they are only between tokens.
func oneLine(b []byte) []byte {
	for i, c := range b {
		if c == '\n' || c == '\r' {
			b[i] = ' '
		}
	}
	return b
}

var csvColumns = []string{"jid", "queue", "class", "at", "attempt", "error_class", "error_message", "tags", "offset", "first_offset", "record"}

// writeCSV writes an entry a line, for spreadsheets.
func (a *entriesAPI) writeCSV(ctx context.Context, w io.Writer, h *redactor, entries []*tracker.Stored) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	for _, stored := range entries {
		raw, err := a.records.of(ctx, stored)
		e := wire.Entry{}
		if err == nil {
			e, err = stored.Entry(raw)
		}
		if err != nil {
			raw = nil
		}
		raw, _ = h.record(raw)
		_ = out.Write([]string{ // Error returns its error below
			cell(stored.JID), cell(stored.Queue), cell(stored.Class), stored.At.Format(time.RFC3339Nano), strconv.Itoa(stored.Attempt),
			cell(e.ErrorClass), cell(e.ErrorMessage), cell(strings.Join(e.Job.Tags, " ")),
			strconv.FormatInt(stored.Offset, 10), strconv.FormatInt(stored.First, 10), string(raw),
		})
	}
	out.Flush()
	return out.Error()
}
