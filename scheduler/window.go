package scheduler

import (
	"slices"

	"github.com/millrace-jobs/millrace/wire"
)

// What may be unconfirmed at once.
const (
	maxFlight      = 1024
	maxFlightBytes = 32 << 20
)

// window is what was published and not confirmed yet, and how far everything is.
type window struct {
	seq       int64 // the newest number
	watermark int64 // everything up to here is confirmed, or known to have come back
	flight    map[uint64]*item
	bytes     int

	above      wire.Ranges // the numbers above the watermark that are, too
	aboveText  string      // as the header names them; stale if aboveMoved
	aboveMoved bool
	passes     int // how many numbers passed
	announced  int // how many had when a record of its own last said so
}

func newWindow() window {
	return window{flight: map[uint64]*item{}}
}

func (w *window) room(s silence) bool {
	return len(w.flight)-s.open < maxFlight && w.bytes-s.bytes < maxFlightBytes && s.open < maxSilent
}

// idle reports whether fewer than so many publishes are open, so that background work may add some. What is set aside does not count.
func (c *core) idle(most int) bool {
	return len(c.flight)-c.silence.open < most && c.bytes-c.silence.bytes < maxFlightBytes/2
}

func (w *window) add(tag uint64, it *item) {
	w.flight[tag] = it
	w.bytes += it.size
}

func (w *window) remove(tag uint64) *item {
	it := w.flight[tag]
	if it != nil {
		delete(w.flight, tag)
		w.bytes -= it.size
	}
	return it
}

// oldest is the tag of what was published first and is not confirmed, but for what is set aside.
func (w *window) oldest() (tag uint64, any bool) {
	for t, it := range w.flight {
		if it.aside {
			continue
		}
		if !any || t < tag {
			tag, any = t, true
		}
	}
	return tag, any
}

// passed notes that nothing more is open about a number, and moves the watermark.
func (w *window) passed(seq int64) {
	if seq == 0 {
		return
	}
	w.passes, w.aboveMoved = w.passes+1, true
	if seq != w.watermark+1 {
		w.above = w.above.Add(seq)
	} else if w.watermark = seq; len(w.above) > 0 && w.above[0].First == seq+1 {
		w.watermark = w.above[0].Last
		w.above = w.above[1:]
	}
}

// hasPassed reports whether nothing more is open about a number.
func (w *window) hasPassed(seq int64) bool {
	return seq <= w.watermark || slices.ContainsFunc(w.above, func(r wire.Range) bool { return r.First <= seq && seq <= r.Last })
}

// aboveHeader is what a header says of the numbers above the watermark; empty if there are none.
func (w *window) aboveHeader() string {
	if w.aboveMoved {
		w.aboveText, w.aboveMoved = w.above[:min(len(w.above), maxRanges)].String(), false
	}
	return w.aboveText
}

// maxRanges is how many ranges a header names. A record of its own names all of them.
const maxRanges = 8

// confirmedNow is what this epoch knows to be confirmed.
func (c *core) confirmedNow() *wire.Confirmed {
	if c.epoch < 0 {
		return c.setup.known
	}
	return &wire.Confirmed{Epoch: c.epoch, Through: c.watermark, Above: slices.Clone(c.above)}
}

// inFlight lists the entries whose fires or burials are unconfirmed: if the connection dies, one of them may be why.
func (c *core) inFlight() []spot {
	var all []spot
	for _, it := range c.flight {
		if it.deed {
			all = append(all, it.spot)
		}
	}
	return all
}
