package scheduler

import "github.com/millrace-jobs/millrace/wire"

// What may be unconfirmed at once.
const (
	maxFlight      = 1024
	maxFlightBytes = 32 << 20
)

// window is what was published and not confirmed yet, and how far everything is.
type window struct {
	seq       int64 // the newest number
	watermark int64 // everything up to here is confirmed, or known to have come back
	announced int64 // the watermark that the journal was told when the window was empty
	flight    map[uint64]*item
	bytes     int
	ahead     map[int64]bool // numbers above the watermark that have passed
}

func newWindow() window {
	return window{flight: map[uint64]*item{}, ahead: map[int64]bool{}}
}

func (w *window) room() bool { return len(w.flight) < maxFlight && w.bytes < maxFlightBytes }

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

// oldest is the tag of what was published first and is not confirmed.
func (w *window) oldest() (tag uint64, any bool) {
	for t := range w.flight {
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
	w.ahead[seq] = true
	for w.ahead[w.watermark+1] {
		w.watermark++
		delete(w.ahead, w.watermark)
	}
}

// through is what this epoch knows to be confirmed.
func (c *core) through() *wire.Through {
	if c.epoch < 0 {
		return c.setup.known
	}
	return &wire.Through{Epoch: c.epoch, Through: c.watermark}
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
