package httpapi

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// query is what a list of entries was asked for.
type query struct {
	paging
	stream  string
	behind  tracker.Cursor // where the list begins; page and offset do not count then
	format  string         // csv or ndjson: all of it
	filter  filter
	sorting sorting
}

var (
	filterParams = []string{"queue", "class", "error", "tag", "jid", "text", "args", "from", "to"}
	listParams   = append([]string{"page", "page_size", "limit", "offset", "next", "sort", "format"}, filterParams...)
)

func readQuery(in *problem.Request, stream string, now time.Time) *query {
	in.Query(listParams...)
	q := &query{stream: stream, filter: readFilter(in, now)}
	if q.format = readFormat(in, "page", "page_size", "limit", "offset", "next", "sort"); q.format != "" {
		return q
	}
	q.sorting = readSorting(in, stream)
	q.behind = readCursor(in)
	if q.paging = readPaging(in); q.behind.Set {
		q.skip = 0
		in.Without("next", "offset")
	}
	return q
}

// readCursor reads next: the time in microseconds and the offset of the last entry that was seen.
func readCursor(in *problem.Request) tracker.Cursor {
	text := in.Text("next")
	if text == "" {
		return tracker.Cursor{}
	}
	micros, offset, found := strings.Cut(text, ",")
	at, err1 := strconv.ParseInt(micros, 10, 64)
	o, err2 := strconv.ParseInt(offset, 10, 64)
	if !found || err1 != nil || err2 != nil || at < problem.Earliest*1e6 || at > (problem.Latest+1)*1e6 {
		badCursor(in)
	}
	return tracker.Cursor{At: time.UnixMicro(at).UTC(), Offset: o, Set: true}
}

// newestFirst reports whether the list has its newest entries first.
func (q *query) newestFirst() bool { return q.stream == wire.DeadJobs }

// start returns where the list is read from: the cursor or the filter's first time, the later one.
func (q *query) start() tracker.Cursor {
	first := q.filter.From
	if q.newestFirst() {
		first = q.filter.To
	}
	bound := tracker.Cursor{At: first, Offset: math.MinInt64, Set: !first.IsZero()}
	switch {
	case !bound.Set:
		return q.behind
	case !q.behind.Set:
		return bound
	case q.behind.At.Before(bound.At) == q.newestFirst():
		return q.behind
	}
	return bound
}

// past reports whether an entry at a time, and all after it, lie outside the filter's times.
func (q *query) past(at time.Time) bool {
	if q.newestFirst() {
		return !q.filter.From.IsZero() && at.Before(q.filter.From)
	}
	return !q.filter.To.IsZero() && !at.Before(q.filter.To)
}

// filter says which entries a list shows.
type filter struct {
	tracker.Matcher
	hide *redactor // what is hidden is not found either
}

func readFilter(in *problem.Request, now time.Time) filter {
	f := filter{Matcher: tracker.Matcher{Queue: in.Text("queue"), Class: in.Text("class"), JID: in.Text("jid")}}
	if args := in.Text("args"); args != "" {
		if _, _, err := wire.SplitArgs(args); err != nil {
			in.BadRequest("parameter args: %s", err)
		}
	}
	f.Contents = tracker.NewContents(in.Text("error"), in.Text("tag"), in.Text("text"), in.Text("args"))
	f.From, f.To = in.Period(now)
	return f
}

// countable reports whether the view has counted the entries that match.
func (f *filter) countable() bool {
	return f.unset() || f.set() == 1 && (f.Queue != "" || f.Class != "")
}

// count returns how many entries of a stream match a countable filter.
func (f *filter) count(c *tracker.Counts, stream string) int64 {
	switch {
	case f.Queue != "":
		return c.InQueue(stream, f.Queue)
	case f.Class != "":
		return c.OfClass(stream, f.Class)
	}
	return c.Total(stream)
}

func (f *filter) unset() bool { return f.set() == 0 }

func (f *filter) set() (n int) {
	for _, set := range []bool{f.Queue != "", f.Class != "", f.JID != "", f.Error != "", f.Tag != "", f.Text != "", f.Args != "", !f.From.IsZero(), !f.To.IsZero()} {
		if set {
			n++
		}
	}
	return n
}

// record reports whether an entry matches whose row does. scratch is a buffer for reuse.
func (f *filter) record(s *tracker.Stored, scratch *[]byte) bool {
	shown := s.Raw
	if f.Searches() {
		shown, _ = f.hide.record(s.Raw)
	}
	return f.Contents.Match(s, shown, scratch)
}
