package httpapi

import (
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// Keys by which a list can be sorted.
const (
	sortAt       = "at"
	sortClass    = "class"
	sortQueue    = "queue"
	sortAttempt  = "attempt"
	sortError    = "error"
	sortFailedAt = "failed_at"
)

// sortKeys are the keys of each list: those that its items have.
var sortKeys = map[string][]string{
	wire.ScheduledJobs: {sortAt, sortClass, sortQueue, sortAttempt},
	wire.Retries:       {sortAt, sortClass, sortQueue, sortAttempt, sortError, sortFailedAt},
	wire.DeadJobs:      {sortAt, sortClass, sortQueue, sortAttempt, sortError},
	wire.Gated:         {sortAt, sortClass, sortQueue},
}

// sorting is the order of a list. The zero value is the order of the index.
type sorting struct {
	key      string
	reversed bool
}

func readSorting(in *problem.Request, stream string) (s sorting) {
	text := in.Text("sort")
	if text == "" {
		return s
	}
	s.key, s.reversed = strings.CutPrefix(text, "-")
	if !slices.Contains(sortKeys[stream], s.key) {
		in.BadRequest("parameter sort is %q: it must be one of %s, with a - in front for the reverse order",
			problem.Shorten(text), strings.Join(sortKeys[stream], ", "))
	}
	if s.key == sortAt && s.reversed == (stream == wire.DeadJobs) {
		return sorting{}
	}
	in.Without("sort: use page or offset", "next")
	return s
}
