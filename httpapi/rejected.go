package httpapi

import (
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// rejectedAPI shows records that could not be taken in, and takes corrected ones.
type rejectedAPI struct {
	rejects tracker.RejectedRecords
	leader  *leader
	fetch   func(ctx context.Context, stream string, offset int64) (wire.Record, error)
	publish func(ctx context.Context, m wire.Message) error
	hide    *redactor
	now     func() time.Time
}

// maxPreview is how much of a rejected record a list shows, in bytes.
const maxPreview = 1024

func newRejected(hide *redactor, j *tracker.Reject, most int) answer.RejectedRecord {
	r := answer.RejectedRecord{Stream: j.Stream, Offset: j.Offset, Reason: j.Reason, Size: j.Size}
	var body []byte
	body, r.Redacted = hide.anything(j.Body)
	r.Body, r.Encoding, r.Truncated = preview(body, most, int64(len(j.Body)) < j.Size)
	return r
}

// preview returns the beginning of a body as a text that JSON can hold: without a character that is
// cut in two, or in base64. The body itself may be cut.
func preview(body []byte, most int, cut bool) (text, encoding string, truncated bool) {
	shown := body[:min(len(body), most)]
	truncated = cut || len(shown) < len(body)
	if whole := trimRune(shown); truncated && utf8.Valid(whole) {
		shown = whole
	}
	if utf8.Valid(shown) {
		return string(shown), "utf-8", truncated
	}
	return base64.StdEncoding.EncodeToString(shown), "base64", truncated
}

func trimRune(b []byte) []byte {
	for i := 1; i <= min(len(b), utf8.UTFMax); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// list lists rejected records by stream, the newest of each first.
func (a *rejectedAPI) list(in *problem.Request) (any, error) {
	in.Query("page", "page_size", "limit", "offset", "stream")
	page := readPaging(in)
	kept, err := a.rejects.RejectedKept()
	if err != nil {
		return nil, err
	}
	total := sum(kept)
	if stream := in.Text("stream"); stream != "" {
		kept = map[string]int64{stream: kept[stream]}
	}
	items, err := a.read(page, a.hide.of(in), kept)
	return pageWith(page, total, sum(kept), items), err
}

func (a *rejectedAPI) read(page paging, hide *redactor, kept map[string]int64) ([]answer.RejectedRecord, error) {
	items, skip := []answer.RejectedRecord{}, page.skip
	for _, stream := range slices.Sorted(maps.Keys(kept)) {
		if skip >= kept[stream] {
			skip -= kept[stream]
			continue
		}
		err := a.rejects.Rejects(stream, func(j tracker.Reject) bool {
			if skip > 0 {
				skip--
				return true
			}
			if len(items) < page.size {
				items = append(items, newRejected(hide, &j, maxPreview))
			}
			return len(items) < page.size
		})
		if err != nil {
			return nil, err
		}
	}
	return items, nil
}

func sum(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

func (a *rejectedAPI) pick(in *problem.Request) (*tracker.Reject, error) {
	stream := in.PathParam("stream")
	offset := in.Offset(in.PathParam("offset"))
	in.Query()
	if in.Err() != nil {
		return nil, in.Err()
	}
	j, ok, err := a.rejects.Rejected(stream, offset)
	if err != nil {
		return nil, err
	}
	if !ok || j.Stream != stream || j.Offset != offset {
		return nil, problem.New(http.StatusNotFound, "no rejected record of %q is kept at offset %d", problem.Shorten(stream), offset)
	}
	return &j, nil
}

// show shows one rejected record: all of it, if its stream still has it.
func (a *rejectedAPI) show(in *problem.Request) (any, error) {
	j, err := a.pick(in)
	if err != nil {
		return nil, err
	}
	if int64(len(j.Body)) < j.Size && hasStream(j.Stream) {
		ctx, cancel := context.WithTimeout(in.Request().Context(), fetchTimeout)
		defer cancel()
		r, err := a.fetch(ctx, j.Stream, j.Offset)
		if err == nil && r.Offset == j.Offset && int64(len(r.Body)) == j.Size {
			j.Body = r.Body
		}
	}
	return newRejected(a.hide.of(in), j, maxBody), nil
}

// hasStream reports whether the rejected records of a name are in a stream, to be read again.
func hasStream(name string) bool {
	switch name {
	case wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated, wire.Heartbeats, wire.JobMetrics, wire.Journal:
		return true
	}
	return false
}

// dismiss removes a rejected record from the list.
func (a *rejectedAPI) dismiss(in *problem.Request) error {
	j, err := a.pick(in)
	if err != nil {
		return err
	}
	return a.leader.do(in, wire.Command{Command: wire.CommandDismiss, Stream: j.Stream, Offset: &j.Offset, Reason: readReason(in)})
}

// resubmit publishes a corrected record to where the rejected one was, and then removes that from
// the list. A crash in between leaves both: an entry that comes twice is recognised by its bytes.
func (a *rejectedAPI) resubmit(in *problem.Request) error {
	j, err := a.pick(in)
	if err != nil {
		return err
	}
	body := in.Raw()
	if in.Err() != nil {
		return in.Err()
	}
	m, err := a.corrected(j.Stream, body)
	if err != nil {
		return err
	}
	dismiss := sign(in, wire.Command{Command: wire.CommandDismiss, Stream: j.Stream, Offset: &j.Offset, Reason: "resubmitted"})
	if in.Err() != nil {
		return in.Err()
	}
	ctx, cancel := context.WithTimeout(in.Request().Context(), commandBudget)
	defer cancel()
	switch err := a.publish(ctx, m); {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		p := problem.New(http.StatusGatewayTimeout, "the broker did not confirm the record in time: it may have it")
		p.Cause = err
		return p
	case err != nil:
		return problem.Unavailable(err, "the record was not published, and the rejected one is still listed")
	}
	if _, p := a.leader.send(in, dismiss); p != nil {
		p.Reason = "the record was published, but the old one is still listed: DELETE it. " + p.Reason
		return p
	}
	return nil
}

// corrected returns a record as a message to where it is taken in. It is published as Millrace, so
// what only Millrace may write (barriers, the journal) is refused.
func (a *rejectedAPI) corrected(stream string, body []byte) (wire.Message, error) {
	m := wire.Message{Key: stream, Timestamp: a.now(), Body: body}
	var job wire.Job
	var err error
	switch stream {
	case wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated:
		var e wire.Entry
		e, err = wire.ParseEntry(stream, 0, body)
		job = e.Job
	case wire.Heartbeats:
		err = wire.CheckHeartbeat(body)
	case wire.JobMetrics:
		err = wire.CheckMetrics(body)
	case wire.Unrouted:
		job, err = wire.ParseJob(body)
		m.Exchange, m.Key = wire.ExchangeRoute, job.Queue
	case wire.DeadLetters, wire.OldDeadLetters:
		m.Key = wire.DeadLetters
		if job, err = wire.ParseJob(body); err != nil {
			_, err = wire.ParseEntry(wire.DeadJobs, 0, body) // the other form that is taken there
		}
	case wire.JobEnds:
		return m, problem.New(http.StatusConflict, "records of %s cannot be resubmitted: free the slots that are still held", stream)
	default:
		return m, problem.New(http.StatusConflict, "records of %s cannot be resubmitted: only Millrace writes there", stream)
	}
	if err != nil {
		return m, problem.BadRequest("this record would be rejected again: %s", err)
	}
	m.MessageID, m.Type = wire.Property(job.JID), wire.Property(job.Class)
	return m, nil
}
