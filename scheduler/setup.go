package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// setup is what a core is told at its start.
type setup struct {
	identity     string // unique to this epoch
	onGap        string // hold, fire or discard
	base         int64  // the offset at which streams begin on this broker
	known        *wire.Confirmed
	suspects     map[ledger.EntryID]int
	deadMax      int64                    // dead jobs that are kept at most
	deadAge      time.Duration            // and how long
	pace         pace                     // of operations
	isBound      func(queue string) bool  // whether a queue is known to be there and bound
	bind         func(queue string) error // has a queue made and bound; core.bound is told of it, unless there is an error
	fetch        func(stream string, offset int64) ([]byte, error)
	journal      func(from, below int64, each func(*wire.Record) error) error // reads the journal again
	readLater    func(from int64, each func(*wire.Record) error) *reading     // the same in the background, until each gives errRead
	window       func(queue string) int                                       // how many fires a queue may have open
	probeTimeout func() time.Duration                                         // with a probe
	probeQueue   string                                                       // the queue to which probes are sent
	follow       func(probe int64)                                            // has a probe followed by one to no queue
}
