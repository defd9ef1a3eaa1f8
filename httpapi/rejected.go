package httpapi

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
)

// maxPreview is how much of a rejected record a list shows, in bytes.
const maxPreview = 1024

// rejectedRecord is a record that could not be taken in, as clients see it.
type rejectedRecord struct {
	Stream    string `json:"stream"` // or the classic queue that held it
	Offset    int64  `json:"offset"` // for a classic queue, of the journal's record about it
	Reason    string `json:"reason"`
	Size      int64  `json:"size"` // in bytes
	Body      string `json:"body"`
	Encoding  string `json:"encoding"`            // of body: utf-8, or base64 for what is not that
	Truncated bool   `json:"truncated,omitempty"` // body is only the beginning
	Redacted  bool   `json:"redacted,omitempty"`  // something in it, or all of it, is not shown
}

func newRejected(h *redactor, j *tracker.Reject, most int) rejectedRecord {
	r := rejectedRecord{Stream: j.Stream, Offset: j.Offset, Reason: j.Reason, Size: j.Size, Encoding: "utf-8"}
	var all []byte
	all, r.Redacted = h.anything(j.Body)
	body := all[:min(len(all), most)]
	r.Truncated = len(body) < len(all) || int64(len(j.Body)) < j.Size
	if whole := trimRune(body); r.Truncated && utf8.Valid(whole) {
		body = whole
	}
	r.Body, r.Encoding = textOrBase64(body)
	return r
}

// textOrBase64 writes bytes so that JSON can hold them.
func textOrBase64(b []byte) (text, encoding string) {
	if utf8.Valid(b) {
		return string(b), "utf-8"
	}
	return base64.StdEncoding.EncodeToString(b), "base64"
}

// trimRune takes off a last character that was cut in two.
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

// listRejected lists rejected records by stream, the newest of each first.
func (s *Server) listRejected(c echo.Context) error {
	p, err := problem.ParseParams(c.Request(), "page", "page_size", "limit", "offset", "stream")
	if err != nil {
		return err
	}
	q := &query{}
	if err := q.readPaging(p); err != nil {
		return err
	}
	kept, err := s.cfg.Entries.RejectedKept()
	if err != nil {
		return err
	}
	total := sum(kept)
	if stream := p["stream"]; stream != "" {
		kept = map[string]int64{stream: kept[stream]}
	}
	items, err := s.rejected(q, s.hide.of(c), kept)
	if err != nil {
		return err
	}
	if !q.paged {
		return c.JSON(http.StatusOK, items)
	}
	count := sum(kept)
	pages := (count + int64(q.size) - 1) / int64(q.size)
	return c.JSON(http.StatusOK, struct {
		envelope
		Items []rejectedRecord `json:"items"`
	}{envelope{Total: total, Filtered: &count, ItemCount: len(items), Page: q.page, PageSize: q.size, PageCount: &pages}, items})
}

// rejected reads a page of the streams' rejected records.
func (s *Server) rejected(q *query, h *redactor, kept map[string]int64) ([]rejectedRecord, error) {
	items, skip := []rejectedRecord{}, q.skip
	for _, stream := range slices.Sorted(maps.Keys(kept)) {
		if skip >= kept[stream] {
			skip -= kept[stream]
			continue
		}
		err := s.cfg.Entries.Rejects(stream, func(j tracker.Reject) bool {
			if skip > 0 {
				skip--
				return true
			}
			if len(items) < q.size {
				items = append(items, newRejected(h, &j, maxPreview))
			}
			return len(items) < q.size
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

// rejectedOf finds the rejected record that a request is about.
func (s *Server) rejectedOf(c echo.Context) (*tracker.Reject, error) {
	stream, err := problem.PathParam(c, "stream")
	if err != nil {
		return nil, err
	}
	text, err := problem.PathParam(c, "offset")
	if err != nil {
		return nil, err
	}
	offset, err := problem.ParseOffset(text)
	if err != nil {
		return nil, err
	}
	if err := problem.NoParams(c); err != nil {
		return nil, err
	}
	j, ok, err := s.cfg.Entries.Rejected(stream, offset)
	if err != nil {
		return nil, err
	}
	if !ok || j.Stream != stream || j.Offset != offset {
		return nil, problem.New(http.StatusNotFound, "no rejected record of %q is kept at offset %d", problem.Shorten(stream), offset)
	}
	return &j, nil
}

// showRejected gives one rejected record, whole if its stream still has it.
func (s *Server) showRejected(c echo.Context) error {
	j, err := s.rejectedOf(c)
	if err != nil {
		return err
	}
	s.complete(c.Request().Context(), j)
	return c.JSON(http.StatusOK, newRejected(s.hide.of(c), j, maxBody))
}

// complete reads the rest of a large record from its stream. Without it, what is kept must do.
func (s *Server) complete(ctx context.Context, j *tracker.Reject) {
	if int64(len(j.Body)) >= j.Size || !isStream(j.Stream) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := s.cfg.Fetch(ctx, j.Stream, j.Offset)
	if err == nil && r.Offset == j.Offset && int64(len(r.Body)) == j.Size {
		j.Body = r.Body
	}
}
