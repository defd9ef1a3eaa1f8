package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// leftovers are what an epoch leaves to the next one of the same claim.
type leftovers struct {
	unanswered map[uint64]bool // the tags of what the broker has not answered
	unrouted   map[dispatch]*unroutedFire
}

// unroutedFire is a fire that came back.
type unroutedFire struct {
	message wire.Message
	headers wire.Dispatch
	since   time.Duration // when it came back, or its copy was published again
	behind  int64         // the number of a probe that was sent after the fire was confirmed, 0 if none
}

// dispatch identifies a fire or burial. Its number alone does not: a new journal begins with epoch
// 0 again, and the streams may still hold records of the old one.
type dispatch struct {
	number wire.Through
	jid    string // its tag
}

// dispatchOf returns what identifies a fire or burial, such as the Burial of a dead job or a copy.
func dispatchOf(d wire.Dispatch) dispatch {
	return dispatch{wire.Through{Epoch: d.Epoch, Through: d.Seq}, d.JIDTag}
}
