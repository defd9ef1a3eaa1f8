package view

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// losses are the ways in which a lost end can look. Each begins with five records, and the last two
// are lost.
var losses = map[string]func(m *memory, stream string){
	"it ends below":       func(m *memory, s string) { m.lose(s, 2) },
	"it ends at the same": func(m *memory, s string) { m.lose(s, 2); m.append(s, "new", "new") },
	"it is longer":        func(m *memory, s string) { m.lose(s, 2); m.append(s, "new", "new", "new", "new") },
	"little is left":      func(m *memory, s string) { m.lose(s, 4) },
	"its beginning went too": func(m *memory, s string) {
		m.forget(s, 2)
		m.lose(s, 2)
	},
}

// A stream that lost its newest records does not count as another stream. The view is rolled back
// by those that are not known to be confirmed, and reads on. If the journal lost a confirmed
// record, the view is rebuilt, and the error says so. The order in which the streams are checked
// does not matter.
func TestTruncatedStreamRollsViewBack(t *testing.T) {
	for name, lose := range losses {
		for _, live := range []bool{false, true} {
			for _, lost := range [][]string{{jobs}, {journal}, {journal, jobs}} {
				for _, confirmed := range []int{-1, 0, 2, 3} {
					if confirmed == 0 && name == "its beginning went too" {
						continue // this record is lost with the beginning
					}
					t.Run(fmt.Sprintf("%s, live=%v, of %v, %d is confirmed", name, live, lost, confirmed), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							lostEnd{lose, live, lost, confirmed}.check(t)
						})
					})
				}
			}
		}
	}
}

type lostEnd struct {
	lose      func(m *memory, stream string)
	live      bool
	lost      []string
	confirmed int // a record of the journal, or -1 for none
}

func (l lostEnd) check(t *testing.T) {
	source := newMemory(journal, jobs)
	store, fold := memoryStore(t), &forgetting{}
	store.checkpoints.every = 0
	v := follow(t, store, source, fold, journal, jobs)
	source.append(jobs, "a", "b", "c", "d", "e")
	source.append(journal, "a", "b", "c", "d")
	if l.confirmed < 0 {
		source.append(journal, "e")
	} else {
		source.append(journal, fmt.Sprint("confirmed ", l.confirmed))
	}
	read := func() bool { return v.CaughtUp(journal, jobs) && l.equal(t, source, store) }
	v.until(t, "all is read", read)
	if !l.live {
		require.NoError(t, v.stop())
	}
	for _, stream := range l.lost {
		l.lose(source, stream)
	}
	if !l.live {
		v = follow(t, store, source, fold, journal, jobs)
	}
	if l.lost[0] == journal && l.confirmed > l.kept(source) {
		err := v.ended()
		require.ErrorIs(t, err, ErrRebuild)
		short := new(LostEndError)
		require.ErrorAs(t, err, &short)
		require.Less(t, short.End, int64(l.confirmed))
		require.Error(t, store.claim(Config{}), "the store is marked for a rebuild")
		return
	}
	v.until(t, "the view reads on", read)
	require.NoError(t, v.stop())
	require.Positive(t, v.RolledBack())
	require.Empty(t, v.Recreated())
	require.Empty(t, fold.forgotten)
}

// kept returns the offset of the last old record that the journal still has.
func (l lostEnd) kept(source *memory) (at int) {
	for _, r := range source.streams[journal].records {
		if string(r.Body) != "new" {
			at = int(r.Offset)
		}
	}
	return at
}

// equal reports whether the view has all records of the streams, each once, and none behind them.
func (l lostEnd) equal(t *testing.T, source *memory, store *Store) bool {
	source.mu.Lock()
	defer source.mu.Unlock()
	for name, stream := range source.streams {
		var want []string
		for _, r := range stream.records {
			want = append(want, fmt.Sprintf("%s×1", r.Body))
		}
		have := folded(t, store, name)
		if len(have) < len(want) {
			return false
		}
		for i, line := range have[len(have)-len(want):] {
			if !strings.HasSuffix(line, " "+want[i]) {
				return false
			}
		}
	}
	return true
}

// While the broker does not answer, the view decides nothing.
func TestViewWaitsForAnswerAboutStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.append(jobs, "a", "b", "c")
		store := memoryStore(t)
		v := follow(t, store, source, &forgetting{}, journal, jobs)
		v.untilFolded(t, jobs, " a×1", "1 b×1", "2 c×1")
		require.NoError(t, v.stop())
		source.lose(jobs, 1)
		source.fetchErr = errors.New("not now")
		v = follow(t, store, source, &forgetting{}, journal, jobs)
		time.Sleep(2 * rebuildAfter)
		require.Empty(t, v.Recreated())
		require.Contains(t, v.Status()[1].Fault, "not now")
		source.change(func() { source.fetchErr = nil })
		v.untilFolded(t, jobs, " a×1", "1 b×1")
	})
}

// history is a stream that was read in batches of any size and then changed.
type history struct {
	*rapid.T
	source *memory
	tail   *tail
	bodies int
}

func (h *history) some(label string, from, to int) int {
	return rapid.IntRange(from, to).Draw(h.T, label)
}

func (h *history) append(n int) {
	for range n {
		h.bodies++
		h.source.append(jobs, fmt.Sprint(h.bodies))
	}
}

func (h *history) read() {
	records := h.source.streams[jobs].records
	for len(records) > 0 {
		n := min(h.some("batch", 1, 40), len(records))
		err := h.tail.view.store.Apply(h.tail.view.fold, jobs, records[:n], func() error { return nil }, func([]string) {})
		require.NoError(h, err)
		records = records[n:]
	}
}

func (h *history) identified() (verdict, int64) {
	h.tail.belowSince = time.Now().Add(-patience) // it has been short for a while
	f, err := h.tail.identify(h.Context())
	require.NoError(h, err)
	return f.verdict, f.end
}

// A stream that lost its end, and may have grown again, is distinguished from one that was created
// again. The sizes of the batches in which it was read make no difference.
func TestTruncatedAndRecreatedStreamsAreDistinguished(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := memoryStore(t)
		source := newMemory(journal, jobs)
		h := &history{T: rt, source: source, tail: New(store, source, &counting{}, logTo(t), journal, jobs).streams[1]}
		if rapid.Bool().Draw(rt, "holes") {
			source.hole(jobs, int64(h.some("hole", 0, 500)))
		}
		h.append(h.some("records", 1, 300))
		source.forget(jobs, h.some("forgotten before", 0, source.count(jobs)-1))
		h.read()
		old := source.streams[jobs]
		verdict, _ := h.identified()
		require.Equal(rt, streamIntact, verdict)

		switch rapid.SampledFrom([]string{"lost", "lost and grown", "forgotten and lost", "recreated", "recreated and equal", "empty"}).Draw(rt, "then") {
		case "lost":
			n := h.some("lost", 1, len(old.records))
			source.lose(jobs, n)
			verdict, end := h.identified()
			if n == len(old.records) {
				require.Equal(rt, streamEmpty, verdict, "no record is left")
				return
			}
			require.Equal(rt, streamTruncated, verdict)
			require.Equal(rt, source.streams[jobs].next-1-h.gapAtEnd(), end)
		case "lost and grown":
			source.lose(jobs, h.some("lost", 1, len(old.records)-min(1, len(old.records)-1)))
			if source.count(jobs) == 0 {
				return
			}
			h.append(h.some("grown", 1, 400))
			verdict, _ := h.identified()
			require.Equal(rt, streamTruncated, verdict)
		case "forgotten and lost":
			source.forget(jobs, h.some("forgotten", 0, len(old.records)-1))
			if source.streams[jobs].records[0].Offset == firstOffset {
				return // a stream of LavinMQ begins there
			}
			if n := source.count(jobs); n > 1 {
				source.lose(jobs, h.some("lost", 1, n-1))
				verdict, _ := h.identified()
				require.Equal(rt, streamTruncated, verdict)
			}
		case "recreated":
			source.recreate(jobs, "u")
			h.append(h.some("new", 1, 400))
			verdict, _ := h.identified()
			require.Equal(rt, streamReplaced, verdict)
		// A new stream that repeats all old records so far looks like one that lost its end there.
		case "recreated and equal":
			if old.records[0].Offset > 0 {
				return
			}
			equal := h.some("equal", 1, len(old.records))
			source.recreate(jobs, "u")
			for _, r := range old.records[:equal] {
				source.append(jobs, string(r.Body))
			}
			h.append(h.some("new", 0, 400))
			verdict, _ := h.identified()
			require.Equal(rt, equal == len(old.records), verdict == streamIntact)
			require.NotEqual(rt, streamReplaced, verdict)
		case "empty":
			source.recreate(jobs, "u")
			verdict, _ := h.identified()
			require.Equal(rt, streamEmpty, verdict)
		}
	})
}

// gapAtEnd returns how many offsets behind the last record are used up.
func (h *history) gapAtEnd() int64 {
	s := h.source.streams[jobs]
	return s.next - 1 - s.records[len(s.records)-1].Offset
}
