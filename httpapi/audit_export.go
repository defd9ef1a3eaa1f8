package httpapi

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// export streams all that was done and is asked for.
func (a *auditAPI) export(in *problem.Request, q auditQuery) error {
	write := writeAuditNDJSON
	if q.format == formatCSV {
		write = writeAuditCSV
	}
	q.Limit = maxSize
	return export(in, "journal", q.format, auditColumns, func(w io.Writer) (bool, error) {
		if err := in.Request().Context().Err(); err != nil {
			return false, err
		}
		found, err := a.find(q)
		if err != nil {
			return false, err
		}
		if found.Next != nil {
			q.Below, q.shown, _ = parseAuditCursor(*found.Next)
		}
		return found.Next != nil, write(w, found.Items)
	})
}

// writeAuditNDJSON writes an entry a line.
func writeAuditNDJSON(w io.Writer, entries []answer.JournalEntry) error {
	out := json.NewEncoder(w)
	for i := range entries {
		if err := out.Encode(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

var auditColumns = []string{
	"record", "at", "op", "set", "stream", "offset", "jid", "queue", "to", "identity", "actor", "reason",
	"operation", "action", "state", "count",
}

// writeAuditCSV writes an entry a line, for spreadsheets.
func writeAuditCSV(w io.Writer, entries []answer.JournalEntry) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	for i := range entries {
		e := &entries[i]
		offset, count := "", ""
		if e.Offset != nil {
			offset = strconv.FormatInt(*e.Offset, 10)
		}
		if e.Count > 0 {
			count = strconv.FormatInt(e.Count, 10)
		}
		_ = out.Write([]string{ // Error returns its error below
			strconv.FormatInt(e.Record, 10), wire.FromSeconds(e.At).Format(time.RFC3339Nano),
			e.Op, e.Set, e.Stream, offset, cell(e.JID), cell(e.Queue), cell(e.To), cell(e.Identity), cell(e.Actor),
			cell(e.Reason), e.Operation, e.Action, e.State, count,
		})
	}
	out.Flush()
	return out.Error()
}
