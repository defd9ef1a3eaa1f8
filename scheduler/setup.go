package scheduler

import (
	"time"

	"github.com/millrace-jobs/millrace/scheduler/ledger"
	"github.com/millrace-jobs/millrace/wire"
)

// setup is the configuration of a core.
type setup struct {
	identity string // unique to this epoch
	onGap    string // hold, fire or discard
	base     int64  // the offset at which streams begin on this broker
	known    *wire.Confirmed
	suspects map[ledger.EntryID]int
	deadMax  int64         // how many dead jobs are kept at most
	deadAge  time.Duration // and for how long
	pace     pace          // of operations

	isBound func(queue string) bool  // reports whether a queue is known to exist and to be bound
	bind    func(queue string) error // declares and binds a queue; dueQueues.bound gets the result
	window  func(queue string) int   // returns how many fires a queue may have unconfirmed

	// fetch returns a record from its stream, nil if retention removed it.
	fetch func(stream string, offset int64) ([]byte, error)
	// journal reads a part of the journal again, readLater does so in the background until each
	// returns errRead.
	journal   func(from, below int64, each func(*wire.Record) error) error
	readLater func(from int64, each func(*wire.Record) error) *reading

	probeQueue   string               // where probes arrive
	probeTimeout func() time.Duration // how long a confirmed probe may take to arrive
	follow       func(probe int64)    // sends an unroutable probe after a probe
}
