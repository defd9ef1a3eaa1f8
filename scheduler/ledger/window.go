package ledger

import (
	"iter"
	"maps"

	"github.com/millrace-jobs/millrace/wire"
)

// What may be open at once.
const (
	MaxOpen      = 1024
	MaxOpenBytes = 32 << 20
	MaxAside     = 4096 // while so much is set aside, nothing more is sent
)

// window is what was published and has no answer yet.
type window struct {
	open       map[uint64]*Publish // by tag
	bytes      int
	aside      int // how much of it is set aside
	asideBytes int
}

func newWindow() window { return window{open: map[uint64]*Publish{}} }

func (w *window) room() bool {
	return len(w.open)-w.aside < MaxOpen && w.bytes-w.asideBytes < MaxOpenBytes && w.aside < MaxAside
}

// Idle reports whether fewer than so many publishes are open, so that background work may add
// some. What is set aside does not count.
func (w *window) Idle(most int) bool {
	return len(w.open)-w.aside < most && w.bytes-w.asideBytes < MaxOpenBytes/2
}

// Drained reports whether nothing is open but what is set aside.
func (w *window) Drained() bool { return len(w.open) == w.aside }

// Open returns how many publishes have no answer.
func (w *window) Open() int { return len(w.open) }

// Aside returns how many of them are set aside.
func (w *window) Aside() int { return w.aside }

// AsideBytes returns how much of the window that takes.
func (w *window) AsideBytes() int { return w.asideBytes }

// All returns what has no answer, by tag.
func (w *window) All() iter.Seq2[uint64, *Publish] { return maps.All(w.open) }

func (w *window) add(tag uint64, p *Publish) {
	w.open[tag] = p
	w.bytes += p.Size
}

// takeOut takes a publish out of the window, and out of what is set aside; nil if it is not there.
func (w *window) takeOut(tag uint64) *Publish {
	p := w.open[tag]
	if p == nil {
		return nil
	}
	delete(w.open, tag)
	w.bytes -= p.Size
	if p.aside {
		p.Queue.Aside--
		w.aside--
		w.asideBytes -= p.Size
	}
	return p
}

// Oldest returns the tag of the oldest publish that is open and not set aside.
func (w *window) Oldest() (tag uint64, any bool) {
	for t, p := range w.open {
		if !p.aside && (!any || t < tag) {
			tag, any = t, true
		}
	}
	return tag, any
}

// Dispatched returns the entries whose fires or burials are open.
func (w *window) Dispatched() (all []EntryID) {
	for _, p := range w.open {
		if p.Dispatch {
			all = append(all, p.Entry)
		}
	}
	return all
}

// MaxRanges is how many ranges a header names. A record of its own names all of them.
const MaxRanges = 8

// numbers is how far the numbers of an epoch are confirmed.
type numbers struct {
	seq       int64 // the newest
	watermark int64 // nothing is open up to here

	above  wire.Ranges // the numbers above the watermark that are not open
	header string      // what a header says of them; stale if moved
	moved  bool
	passes int // how many numbers were closed
}

// Seq returns the newest number.
func (n *numbers) Seq() int64 { return n.seq }

// Watermark returns the number up to which nothing is open.
func (n *numbers) Watermark() int64 { return n.watermark }

// Above returns the numbers above the watermark that are not open.
func (n *numbers) Above() wire.Ranges { return n.above }

// Passes returns how many numbers were closed. It changes whenever there is something to say.
func (n *numbers) Passes() int { return n.passes }

// HasPassed reports whether nothing is open about a number.
func (n *numbers) HasPassed(seq int64) bool {
	return seq <= n.watermark || n.above.Has(seq)
}

// pass closes a number, and moves the watermark.
func (n *numbers) pass(seq int64) {
	if seq == 0 {
		return
	}
	n.passes++
	n.moved = true
	if seq != n.watermark+1 {
		n.above = n.above.Add(seq)
		return
	}
	n.watermark = seq
	if len(n.above) > 0 && n.above[0].First == seq+1 {
		n.watermark = n.above[0].Last
		n.above = n.above[1:]
	}
}

// sayAbove adds the numbers above the watermark to a message that says what is confirmed.
func (n *numbers) sayAbove(m wire.Message) {
	if _, says := m.Headers[wire.HeaderConfirmed]; !says {
		return
	}
	if n.moved {
		n.header, n.moved = n.above[:min(len(n.above), MaxRanges)].String(), false
	}
	if n.header != "" {
		m.Headers[wire.HeaderAbove] = n.header
	}
}
