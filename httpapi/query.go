package httpapi

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// Bounds of a list.
const (
	defaultSize = 100
	maxSize     = 500
	maxPage     = 1_000_000_000
)

// query is what a list was asked for.
type query struct {
	stream  string
	paged   bool // with page: the answer is an envelope, else a bare array
	page    int64
	size    int            // items at most
	skip    int64          // entries of the list ahead of the first item
	behind  tracker.Cursor // where the list begins; page and offset do not count then
	format  string         // csv or ndjson: all of it
	filter  filter
	sorting sorting
}

var (
	filterParams = []string{"queue", "class", "error", "tag", "jid", "text", "from", "to"}
	listParams   = append([]string{"page", "page_size", "limit", "offset", "next", "sort", "format"}, filterParams...)
)

func parseQuery(r *http.Request, stream string, now time.Time) (*query, error) {
	p, err := problem.ParseParams(r, listParams...)
	if err != nil {
		return nil, err
	}
	q := &query{stream: stream}
	if q.filter, err = filterOf(p, now); err != nil {
		return nil, err
	}
	if q.format = p["format"]; q.format != "" {
		return q, checkExport(p)
	}
	if q.sorting, err = sortingOf(p, stream); err != nil {
		return nil, err
	}
	if q.behind, err = nextOf(p); err != nil {
		return nil, err
	}
	return q, q.readPaging(p)
}

// readPaging reads page and page_size, or limit and offset: the brokers' way, or the specification's.
func (q *query) readPaging(p problem.Params) (err error) {
	var size int64
	if q.paged = p["page"] != ""; q.paged {
		if err := p.Without("page", "limit", "offset"); err != nil {
			return err
		}
		if q.page, err = p.Number("page", 1, 1, maxPage); err != nil {
			return err
		}
		if size, err = p.Number("page_size", defaultSize, 1, maxSize); err != nil {
			return err
		}
		q.skip = (q.page - 1) * size
	} else {
		if p["page_size"] != "" {
			return problem.BadRequest("parameter page_size needs page: without it, use limit")
		}
		if size, err = p.Number("limit", defaultSize, 1, maxSize); err != nil {
			return err
		}
		if q.skip, err = p.Number("offset", 0, 0, maxPage*maxSize); err != nil {
			return err
		}
	}
	if q.size = int(size); q.behind.Set {
		q.skip = 0
		if p["offset"] != "" {
			return problem.BadRequest("parameter offset does not go with next")
		}
	}
	return nil
}

func checkExport(p problem.Params) error {
	if p["format"] != formatCSV && p["format"] != formatNDJSON {
		return problem.BadRequest("parameter format is %q: it must be csv or ndjson", problem.Shorten(p["format"]))
	}
	return p.Without("format, which gives the whole list", "page", "page_size", "limit", "offset", "next", "sort")
}

// next reads a cursor: the time in microseconds and the offset of the last entry that was seen.
func nextOf(p problem.Params) (c tracker.Cursor, err error) {
	text, given := p["next"]
	if !given {
		return c, nil
	}
	micros, offset, found := strings.Cut(text, ",")
	at, err1 := strconv.ParseInt(micros, 10, 64)
	o, err2 := strconv.ParseInt(offset, 10, 64)
	if !found || err1 != nil || err2 != nil || at < problem.Earliest*1e6 || at > (problem.Latest+1)*1e6 {
		return c, problem.BadRequest("parameter next is %q: it must be what an answer gave as next", problem.Shorten(text))
	}
	return tracker.Cursor{At: time.UnixMicro(at).UTC(), Offset: o, Set: true}, nil
}

func cursorText(c tracker.Cursor) string { return fmt.Sprintf("%d,%d", c.At.UnixMicro(), c.Offset) }

// start is where the list must be read from: the cursor, or the time that the filter begins with, whichever is later in the list.
func (q *query) start() tracker.Cursor {
	bound := tracker.Cursor{At: q.filter.from, Offset: math.MinInt64, Set: !q.filter.from.IsZero()}
	newestFirst := q.stream == wire.DeadJobs
	if newestFirst {
		bound = tracker.Cursor{At: q.filter.to, Offset: math.MinInt64, Set: !q.filter.to.IsZero()}
	}
	switch {
	case !bound.Set:
		return q.behind
	case !q.behind.Set:
		return bound
	case q.behind.At.Before(bound.At) == newestFirst:
		return q.behind
	}
	return bound
}

// past tells whether an entry at a time, and all behind it, lie outside the filter's times.
func (q *query) past(at time.Time) bool {
	if q.stream == wire.DeadJobs {
		return !q.filter.from.IsZero() && at.Before(q.filter.from)
	}
	return !q.filter.to.IsZero() && !at.Before(q.filter.to)
}
