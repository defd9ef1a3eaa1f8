package ledger

import (
	"iter"
	"maps"
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
