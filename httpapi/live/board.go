package live

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	maxJobs   = 250 // events of jobs in a frame
	firstJobs = 100 // earlier events of jobs in a new viewer's first frame
)

// Source computes what the topics show.
type Source interface {
	// Topic returns what a topic shows. essence, if not nil, is without what only a clock moves.
	Topic(ctx context.Context, t Topic) (shown, essence any, err error)
	// Changed returns a channel that is closed at the next change of the view.
	Changed() <-chan struct{}
	Now() time.Time
	// Happened returns what happened to jobs; see feed.Since.
	Happened(from int64, most int) (items any, count int, next, missed int64)
	// KeepHappened keeps what happens until then, at least.
	KeepHappened(until time.Time)
}

// board holds what the topics show, and the frames that were made of it.
type board struct {
	run    string // ids begin with it: they mean nothing to another process
	seq    int64  // of the newest change
	topics map[Topic]*shown
	next   int64 // of the feed, as of seq
	news   chan struct{}
	frames map[place]*frame
}

type shown struct {
	since   int64  // the change with which it came
	essence []byte // what is compared
	data    []byte
	stale   bool // the topic had no viewers for a while
}

// same reports whether two states differ only in what a clock moves.
func (s *shown) same(other *shown) bool { return bytes.Equal(s.essence, other.essence) }

// place is how far a viewer has seen what it watches.
type place struct {
	topics Topic
	seq    int64
	next   int64 // of the feed; -1 before the first frame
}

func (p place) String() string { return fmt.Sprintf("%d.%d", p.seq, p.next) }

type frame struct {
	data []byte
	to   place
}

func newBoard() board {
	return board{run: rand.Text()[:8], topics: map[Topic]*shown{}, news: make(chan struct{}), frames: map[place]*frame{}}
}

// update takes in what was computed, and how far the feed is.
func (b *board) update(fresh map[Topic]*shown, next int64) {
	changed := next != b.next
	b.next = next
	for t, s := range fresh {
		if old := b.topics[t]; old != nil && old.same(s) {
			changed = changed || old.stale
			old.stale = false
			continue
		}
		s.since, b.topics[t], changed = b.seq+1, s, true
	}
	if changed {
		b.seq++
		clear(b.frames)
		close(b.news)
		b.news = make(chan struct{})
	}
}

// frame returns what has changed since a place, for all viewers that are there.
func (b *board) frame(source Source, at place) *frame {
	if f := b.frames[at]; f != nil {
		return f
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `{"now":%s`, strconv.FormatFloat(float64(source.Now().UnixMicro())/1e6, 'f', -1, 64))
	to, empty := place{at.topics, b.seq, at.next}, true
	for _, t := range at.topics.split() {
		s := b.topics[t]
		if t == Jobs || s != nil && s.since <= at.seq && !s.stale {
			continue
		}
		if s == nil || s.stale { // it will be computed in a moment
			to.seq = at.seq
			continue
		}
		fmt.Fprintf(&out, `,%q:%s`, t.name(), s.data)
		empty = false
	}
	if to.seq == at.seq && !empty { // a topic is missing: the others must come again with it
		return nil
	}
	if at.topics&Jobs != 0 {
		empty = !addJobs(&out, source, &to) && empty
	}
	if empty {
		return nil
	}
	out.WriteByte('}')
	f := &frame{data: out.Bytes(), to: to}
	b.frames[at] = f
	return f
}

// addJobs adds what happened to jobs, and reports whether anything did.
func addJobs(out *bytes.Buffer, source Source, to *place) bool {
	first := to.next < 0
	from, most := to.next, maxJobs
	if first {
		from, most = 0, firstJobs
	}
	items, count, next, missed := source.Happened(from, most)
	if first {
		missed = 0
	}
	if to.next = next; count == 0 && missed == 0 {
		return false
	}
	data, err := json.Marshal(items)
	if err != nil {
		return false
	}
	fmt.Fprintf(out, `,%q:{"items":%s,"missed":%d}`, Jobs.name(), data, missed)
	return true
}

// parse returns the place and the viewer of an id: the beginning, and none, if of another run.
func (b *board) parse(t Topic, id string) (at place, viewer string) {
	at = place{t, 0, -1}
	parts := strings.Split(id, ".")
	if len(parts) != 4 || parts[0] != b.run {
		return at, ""
	}
	seq, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || seq < 0 || seq > b.seq {
		return at, parts[3]
	}
	next, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || next < -1 {
		return at, parts[3]
	}
	return place{t, seq, next}, parts[3]
}
