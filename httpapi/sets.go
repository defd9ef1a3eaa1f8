package httpapi

import (
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// entrySets are the sets of pending entries, as paths name them.
var entrySets = []struct{ path, stream string }{
	{"scheduled-jobs", wire.ScheduledJobs}, {"retries", wire.Retries}, {"dead-jobs", wire.DeadJobs}, {"gated-jobs", wire.Gated},
}

// setOf returns the set of a stream; empty for other streams.
func setOf(stream string) string {
	for _, set := range entrySets {
		if set.stream == stream {
			return set.path
		}
	}
	return ""
}

// outcome says what happened to an entry.
func outcome(h *wire.Happened) string {
	switch h.What {
	case wire.UniqueDuplicate:
		return "a duplicate of job " + h.Other
	case wire.UniqueReplaced:
		return "replaced by job " + h.Other
	}
	return h.What
}

// describe says what became of an entry, in words.
func describe(h *wire.Happened) string {
	text := fmt.Sprintf("the one at offset %d was %s", h.Offset, outcome(h))
	if h.Actor != "" {
		text += " by " + h.Actor
	}
	if h.At != 0 {
		text += " at " + time.UnixMicro(int64(h.At*1e6)).UTC().Format(time.RFC3339)
	}
	return text
}
