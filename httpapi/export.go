package httpapi

import (
	"bytes"
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// Formats of exports.
const (
	formatCSV    = "csv"
	formatNDJSON = "ndjson"
)

// exportTimeout is how long a batch of an export may take to be sent.
const exportTimeout = time.Minute

// export streams all entries that a filter matches. It reads them in batches, so that a slow client holds nothing up.
func (s *Server) export(c echo.Context, q *query) error {
	w, ctx := c.Response(), c.Request().Context()
	name := strings.ReplaceAll(q.stream, "_", "-") + "." + q.format
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	w.Header().Set("Content-Type", exportTypes[q.format])
	if c.Request().Method == http.MethodHead {
		return nil
	}
	write := s.writeNDJSON
	if q.format == formatCSV {
		write = s.writeCSV
		_, _ = io.WriteString(w, strings.Join(csvColumns, ",")+"\r\n")
	}
	q.size = maxSize
	control := http.NewResponseController(w)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(exportTimeout)) // not every writer has one
		f, err := s.search(ctx, q, false)
		if err != nil {
			return err
		}
		if err := write(ctx, w, q.filter.hide, f.entries); err != nil {
			return err
		}
		if q.behind = f.next; !f.next.Set {
			return nil
		}
	}
}

var exportTypes = map[string]string{formatCSV: "text/csv; charset=utf-8", formatNDJSON: "application/x-ndjson"}

// writeNDJSON writes an item a line.
func (s *Server) writeNDJSON(ctx context.Context, w io.Writer, h *redactor, entries []*tracker.Stored) error {
	var out bytes.Buffer
	for _, e := range entries {
		out.Write(oneLine(s.wholeItem(ctx, h, e)))
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

// oneLine takes line ends out of valid JSON, where they can only stand between tokens.
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
func (s *Server) writeCSV(ctx context.Context, w io.Writer, h *redactor, entries []*tracker.Stored) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	for _, stored := range entries {
		raw, err := s.record(ctx, stored)
		e := wire.Entry{}
		if err == nil {
			e, err = stored.Entry(raw)
		}
		if err != nil {
			raw = nil
		}
		raw, _ = h.record(raw)
		_ = out.Write([]string{ // its error stays, and Error gives it below
			cell(stored.JID), cell(stored.Queue), cell(stored.Class), stored.At.Format(time.RFC3339Nano), strconv.Itoa(stored.Attempt),
			cell(e.ErrorClass), cell(e.ErrorMessage), cell(strings.Join(e.Job.Tags, " ")),
			strconv.FormatInt(stored.Offset, 10), strconv.FormatInt(stored.First, 10), string(raw),
		})
	}
	out.Flush()
	return out.Error()
}

// cell keeps spreadsheets from running a text as a formula.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
