package view

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// losses are the ways in which a stream that lost its end shows. All begin with five records, of which the last two go.
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

// A stream that lost its newest records is no other one: its view is built anew, and nobody is told that it was made anew. That the
// journal lost some is said too, whichever stream is looked at first: nothing else tells of it.
func TestViewOfAStreamThatLostItsEnd(t *testing.T) {
	for name, lose := range losses {
		for _, live := range []bool{false, true} {
			for _, lost := range [][]string{{jobs}, {journal}, {journal, jobs}} {
				t.Run(fmt.Sprintf("%s, live=%v, of %v", name, live, lost), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						source := newMemory(journal, jobs)
						store, fold := memoryStore(t), &forgetting{}
						v := follow(t, store, source, fold, journal, jobs)
						want := []string{" a×1", "1 b×1", "2 c×1", "3 d×1", "4 e×1"}
						for _, stream := range []string{journal, jobs} {
							source.append(stream, "a", "b", "c", "d", "e")
							v.untilFolded(t, stream, want...)
						}
						if !live {
							require.NoError(t, v.stop())
						}
						for _, stream := range lost {
							lose(source, stream)
						}
						if !live {
							v = follow(t, store, source, fold, journal, jobs)
						}
						err := v.ended()
						require.ErrorIs(t, err, ErrRebuild)
						short := new(LostEndError)
						require.Equal(t, lost[0] == journal, errors.As(err, &short))
						if lost[0] == journal && source.count(journal) < 4 {
							require.EqualValues(t, source.streams[journal].next-1, short.End)
						}
						require.Empty(t, v.Recreated())
						require.NotContains(t, fold.forgotten, journal)
						require.Equal(t, want, folded(t, store, jobs), "nothing was read of it")
						require.Error(t, store.claim(Config{}), "the store is condemned")
					})
				})
			}
		}
	}
}

// Where the broker cannot be asked, nothing is decided.
func TestViewThatCannotAskWhatBecameOfAStream(t *testing.T) {
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
		require.ErrorIs(t, v.ended(), ErrRebuild)
	})
}

// history is a stream that was read in batches of any size, and what then became of it.
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

func (h *history) judged() (verdict, int64) {
	v, end, err := h.tail.judge(h.Context())
	require.NoError(h, err)
	return v, end
}

// Whatever was read of a stream, and however: one that lost its end, and may have grown again, is told from one that was made anew.
func TestStreamsThatLostTheirEndsAreToldFromThoseMadeAnew(t *testing.T) {
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
		verdict, _ := h.judged()
		require.Equal(rt, whole, verdict)

		switch rapid.SampledFrom([]string{"lost", "lost and grown", "forgotten and lost", "anew", "anew and equal", "empty"}).Draw(rt, "then") {
		case "lost":
			n := h.some("lost", 1, len(old.records))
			source.lose(jobs, n)
			verdict, end := h.judged()
			if n == len(old.records) {
				require.Equal(rt, anew, verdict, "nothing is left of it")
				return
			}
			require.Equal(rt, short, verdict)
			require.Equal(rt, source.streams[jobs].next-1-h.gapAtEnd(), end)
		case "lost and grown":
			source.lose(jobs, h.some("lost", 1, len(old.records)-min(1, len(old.records)-1)))
			if source.count(jobs) == 0 {
				return
			}
			h.append(h.some("grown", 1, 400))
			verdict, _ := h.judged()
			require.Equal(rt, short, verdict)
		case "forgotten and lost":
			source.forget(jobs, h.some("forgotten", 0, len(old.records)-1))
			if source.streams[jobs].records[0].Offset == firstOffset {
				return // a stream of LavinMQ begins there
			}
			if n := source.count(jobs); n > 1 {
				source.lose(jobs, h.some("lost", 1, n-1))
				verdict, _ := h.judged()
				require.Equal(rt, short, verdict)
			}
		case "anew":
			source.recreate(jobs, "u")
			h.append(h.some("new", 1, 400))
			verdict, _ := h.judged()
			require.Equal(rt, anew, verdict)
		case "anew and equal": // as far as it is: there is no telling it from one that lost its end there
			if old.records[0].Offset > 0 {
				return
			}
			equal := h.some("equal", 1, len(old.records))
			source.recreate(jobs, "u")
			for _, r := range old.records[:equal] {
				source.append(jobs, string(r.Body))
			}
			h.append(h.some("new", 0, 400))
			verdict, _ := h.judged()
			require.Equal(rt, equal == len(old.records), verdict == whole)
			require.NotEqual(rt, anew, verdict)
		case "empty":
			source.recreate(jobs, "u")
			verdict, _ := h.judged()
			require.Equal(rt, anew, verdict)
		}
	})
}

// gapAtEnd is how many offsets behind the last record are taken.
func (h *history) gapAtEnd() int64 {
	s := h.source.streams[jobs]
	return s.next - 1 - s.records[len(s.records)-1].Offset
}
