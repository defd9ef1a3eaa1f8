package tracker

import (
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// recent has the newest pending entries of each stream, with what the fold of a fire needs. To find
// an entry in the store takes longer than the rest of that fold.
type recent struct {
	streams map[code][]recentEntry // at the entry's offset modulo maxRecent
}

// recentEntry is an entry without its record.
type recentEntry struct {
	offset       int64
	at           time.Time // zero: there is no entry here
	size         int64
	jid, leased  string
	queue, class string
}

// maxRecent entries take about 10 MB.
const maxRecent = 1 << 16

func (r *recent) forget() { r.streams = map[code][]recentEntry{} }

func (r *recent) slot(id entryID) *recentEntry {
	if all := r.streams[id.stream]; all != nil {
		return &all[uint64(id.offset)%maxRecent]
	}
	return nil
}

// add keeps an entry that became pending. One for a delayed message is not kept: its exchange is in
// its record. Nor is one that is gated: there are never so many fires of these.
func (r *recent) add(s *Stored) {
	id := s.id()
	if !fires(s) || s.Gated || s.Class == wire.MessageClass || s.At.IsZero() {
		return
	}
	if r.streams[id.stream] == nil {
		r.streams[id.stream] = make([]recentEntry, maxRecent)
	}
	// Clones, because a text may be a part of the record. Most entries share two of them.
	e, before := r.slot(id), r.slot(entryID{id.stream, id.offset - 1})
	*e = recentEntry{id.offset, s.At, s.Size, strings.Clone(s.JID), strings.Clone(s.Leased), shared(before.queue, s.Queue), shared(before.class, s.Class)}
}

// shared returns the text that equals another, or a copy.
func shared(kept, text string) string {
	if kept == text {
		return kept
	}
	return strings.Clone(text)
}

// get returns an entry without its record, nil if it is not here.
func (r *recent) get(id entryID) *Stored {
	e := r.slot(id)
	if e == nil || e.offset != id.offset || e.at.IsZero() {
		return nil
	}
	return &Stored{Stream: id.name(), Offset: id.offset, At: e.at, JID: e.jid, Queue: e.queue, Class: e.class, Leased: e.leased, content: content{Size: e.size}}
}

// remove forgets an entry that is no longer pending. Its place keeps the texts that others share.
func (r *recent) remove(id entryID) {
	if e := r.slot(id); e != nil && e.offset == id.offset {
		e.at, e.jid, e.leased = time.Time{}, "", ""
	}
}
