package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	journal = "journal"
	jobs    = "jobs"
	beats   = "beats"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestViewFollowsStreams(t *testing.T) {
	source := newMemory(journal, jobs)
	source.append(journal, "a", "b", "c", "d")
	store := memoryStore(t)
	v := follow(t, store, source, &counting{}, journal, jobs)
	<-v.Ready()
	require.True(t, v.CaughtUp(journal, jobs))
	require.Equal(t, []string{" a×1", "1 b×1", "2 c×1", "3 d×1"}, folded(t, store, journal))
	position, err := store.Position(journal)
	require.NoError(t, err)
	require.EqualValues(t, 3, position)
	position, err = store.Position(jobs)
	require.NoError(t, err)
	require.EqualValues(t, -1, position)
	require.Equal(t, []Status{
		{Stream: journal, Position: 3, CaughtUp: true, End: &End{Written: 3}}, {Stream: jobs, Position: -1, CaughtUp: true, End: &End{Written: -1}},
	}, v.Status())

	changed := v.Changed()
	require.False(t, isClosed(changed))
	source.append(jobs, "x")
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		require.FailNow(t, "Changed reports no change")
	}
	require.Equal(t, []string{" x×1"}, folded(t, store, jobs), "a reported change can be read")
	require.NoError(t, v.stop())
}

func TestViewIsReadyWhenAllIsFolded(t *testing.T) {
	source := newMemory(journal, jobs)
	source.batch = 1
	source.append(jobs, "a", "b", "c")
	store := memoryStore(t)
	gate := make(chan struct{})
	source.pass = func([]wire.Record) { <-gate }
	v := follow(t, store, source, &counting{}, journal, jobs)
	for range 3 {
		require.False(t, isClosed(v.Ready()))
		require.False(t, v.CaughtUp(jobs))
		gate <- struct{}{}
	}
	close(gate)
	<-v.Ready()
	require.Equal(t, []string{" a×1", "1 b×1", "2 c×1"}, folded(t, store, jobs))
}

func TestViewReadsAroundHolesAndFaults(t *testing.T) {
	source := newMemory(journal, jobs)
	source.append(jobs, "a")
	source.hole(jobs, 5)
	source.append(jobs, "b")
	source.fault(jobs, 4)
	store := memoryStore(t)
	v := follow(t, store, source, &counting{}, journal, jobs)
	v.untilFolded(t, jobs, " a×1", "6 b×1", "7 ×1")
	position, err := store.Position(jobs)
	require.NoError(t, err)
	require.EqualValues(t, 10, position, "the position is the end of the fault")
	require.NoError(t, v.stop())
	v = follow(t, store, source, &counting{}, journal, jobs)
	<-v.Ready()
	source.append(jobs, "c")
	v.untilFolded(t, jobs, " a×1", "6 b×1", "7 ×1", "11 c×1")
	require.Empty(t, v.Recreated())
}

// The last record may be readable with only one of two transports that are used in turn. The stream
// counts as the same.
func TestViewResumesAtUnreadableRecord(t *testing.T) {
	for name, tc := range map[string][2]string{"can then": {"", "b"}, "can no more": {"b", ""}} {
		t.Run(name, func(t *testing.T) {
			source := newMemory(journal, jobs)
			write := func(body string) {
				if body == "" {
					source.fault(jobs, 1)
				} else {
					source.append(jobs, body)
				}
			}
			source.append(jobs, "a")
			write(tc[0])
			store := memoryStore(t)
			v := follow(t, store, source, &counting{}, journal, jobs)
			v.untilFolded(t, jobs, " a×1", "1 "+tc[0]+"×1")
			require.NoError(t, v.stop())
			source.recreate(jobs, "u", "a")
			write(tc[1])
			source.append(jobs, "c")
			v = follow(t, store, source, &counting{}, journal, jobs)
			v.untilFolded(t, jobs, " a×1", "1 "+tc[0]+"×1", "2 c×1")
			require.Empty(t, v.Recreated())
		})
	}
}

// If retention deleted unread records, the fold is informed, and the view reads on behind them.
func TestViewAfterRetention(t *testing.T) {
	for _, stream := range []string{journal, jobs} {
		t.Run(stream, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newMemory(journal, jobs)
				source.append(stream, "a", "b")
				store := memoryStore(t)
				v := follow(t, store, source, &counting{}, journal, jobs)
				v.untilFolded(t, stream, " a×1", "1 b×1")
				require.NoError(t, v.stop())
				source.append(stream, "c", "d", "e")
				source.forget(stream, 3)
				fold := &forgetting{}
				v = follow(t, store, source, fold, journal, jobs)
				v.untilFolded(t, stream, " a×1", "1 b×1", "3 d×1", "4 e×1")
				<-v.Ready()
				require.NoError(t, v.stop())
				require.Equal(t, []string{stream}, fold.overtaken)
			})
		})
	}
}

// A reader that stays connected finds out too that retention has overtaken it.
func TestConnectedViewAfterRetention(t *testing.T) {
	for _, stream := range []string{journal, jobs} {
		t.Run(stream, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newMemory(journal, jobs)
				source.append(stream, "a", "b")
				fold := &forgetting{}
				v := follow(t, memoryStore(t), source, fold, journal, jobs)
				v.untilFolded(t, stream, " a×1", "1 b×1")
				source.change(func() { source.upTo = map[string]int64{stream: 1} })
				source.append(stream, "c", "d", "e")
				source.forget(stream, 3)
				source.change(func() { source.upTo = nil })
				v.untilFolded(t, stream, " a×1", "1 b×1", "3 d×1", "4 e×1")
				require.NoError(t, v.stop())
				require.Equal(t, []string{stream}, fold.overtaken)
			})
		})
	}
}

// A connected reader that gets no record for an offset reads on if the stream has none there. If
// its replica lacks the record, it connects again.
func TestConnectedViewAtUnusedOffsets(t *testing.T) {
	for name, lacks := range map[string]int64{"unused": 0, "replica": 4} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newMemory(journal, jobs)
				source.append(jobs, "a")
				fold := &forgetting{}
				v := follow(t, memoryStore(t), source, fold, journal, jobs)
				v.untilFolded(t, jobs, " a×1")
				source.change(func() { source.lacks = map[string]int64{jobs: lacks} })
				source.hole(jobs, 2)
				source.append(jobs, "b", "c")
				if lacks > 0 {
					time.Sleep(10 * time.Second)
					require.Equal(t, []string{" a×1"}, folded(t, v.store, jobs))
					source.change(func() { source.lacks = nil })
				}
				v.untilFolded(t, jobs, " a×1", "3 b×1", "4 c×1")
				require.NoError(t, v.stop())
				require.Empty(t, fold.overtaken)
			})
		})
	}
}

// An unreadable record at the offset of the last folded one proves nothing. If it is behind that
// offset, it proves that the record is gone.
func TestViewAfterRetentionBeforeFault(t *testing.T) {
	source := newMemory(journal, jobs)
	source.append(journal, "a", "b")
	store := memoryStore(t)
	v := follow(t, store, source, &counting{}, journal, jobs)
	v.untilFolded(t, journal, " a×1", "1 b×1")
	require.NoError(t, v.stop())
	source.append(journal, "c")
	source.fault(journal, 1)
	source.forget(journal, 3)
	fold := &forgetting{}
	v = follow(t, store, source, fold, journal, jobs)
	v.untilFolded(t, journal, " a×1", "1 b×1", "3 ×1")
	require.NoError(t, v.stop())
	require.Equal(t, []string{journal}, fold.overtaken)
}

// recreations are the ways in which a stream that was created again can look. Each begins with two
// records.
var recreations = map[string]func(m *memory, stream string){
	"it ends below":       func(m *memory, s string) { m.recreate(s, "u", "new") },
	"it is empty":         func(m *memory, s string) { m.recreate(s, "u") },
	"it ends at the same": func(m *memory, s string) { m.recreate(s, "u", "new", "new") },
	"it is longer":        func(m *memory, s string) { m.recreate(s, "u", "new", "new", "new", "new", "new") },
	"by another user":     func(m *memory, s string) { m.recreate(s, "other", "a", "b") },
}

// barrier appends to an empty stream, as a leader does. Only then can the view find out whether it
// is another stream.
func barrier(t *testing.T, v *following, source *memory, stream string) {
	t.Helper()
	if source.count(stream) > 0 {
		return
	}
	begun := time.Now()
	v.until(t, "the stream is empty", func() bool { return slices.Equal(v.Emptied(), []string{stream}) })
	require.GreaterOrEqual(t, time.Since(begun), patience)
	v.until(t, "the view has caught up as far as possible", func() bool { return v.CaughtUp(journal, stream) })
	require.Less(t, v.LagOf(journal, stream), time.Second)
	time.Sleep(10 * rebuildAfter)
	require.Empty(t, v.Recreated(), "an empty stream proves nothing")
	require.Equal(t, []string{stream}, v.Emptied())
	source.append(stream, "barrier")
}

func TestRecreatedStreamIsReadAfterDecision(t *testing.T) {
	for name, recreate := range recreations {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, live=%v", name, live), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newMemory(journal, jobs)
					source.append(jobs, "a", "b")
					store := memoryStore(t)
					v := follow(t, store, source, &counting{}, journal, jobs)
					v.untilFolded(t, jobs, " a×1", "1 b×1")
					if !live {
						require.NoError(t, v.stop())
					}
					recreate(source, jobs)
					if !live {
						v = follow(t, store, source, &counting{}, journal, jobs)
					}
					barrier(t, v, source, jobs)
					v.until(t, "the new stream is noticed", func() bool { return len(v.Recreated()) == 1 && v.Recreated()[0] == jobs })
					require.Empty(t, v.Emptied())
					require.Equal(t, []string{" a×1", "1 b×1"}, folded(t, store, jobs), "the new stream is not read before the decision")
					v.until(t, "the view has caught up as far as possible", func() bool { return v.CaughtUp(journal, jobs) })
					require.Less(t, v.LagOf(journal, jobs), time.Second)
					source.append(journal, "rewind jobs")
					want := []string{}
					for i, r := range source.streams[jobs].records {
						offset := fmt.Sprint(i)
						if i == 0 {
							offset = ""
						}
						want = append(want, fmt.Sprintf("%s %s×1", offset, r.Body))
					}
					v.until(t, "the new stream is read", func() bool {
						return fmt.Sprint(folded(t, store, jobs)) == fmt.Sprint(want) && len(v.Recreated()) == 0 && v.CaughtUp(jobs)
					})
					<-v.Ready()
					source.append(jobs, "more")
					v.until(t, "the view reads on", func() bool { return len(folded(t, store, jobs)) == len(want)+1 })
				})
			})
		}
	}
}

func TestRecreatedJournalIsReadImmediately(t *testing.T) {
	for name, recreate := range recreations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newMemory(journal, jobs)
				source.append(journal, "a", "b")
				store := memoryStore(t)
				fold := &forgetting{}
				v := follow(t, store, source, fold, journal, jobs)
				v.untilFolded(t, journal, " a×1", "1 b×1")
				recreate(source, journal)
				barrier(t, v, source, journal)
				v.until(t, "the new one is read", func() bool {
					_, forgot, err := store.Get(keyForgot(journal))
					require.NoError(t, err)
					return forgot && len(folded(t, store, journal)) == source.count(journal) && v.CaughtUp(journal)
				})
				require.NoError(t, v.stop())
				require.Contains(t, fold.forgotten, journal)
				require.Empty(t, v.Recreated(), "no decision is needed")
			})
		})
	}
}

// If the fold can forget a stream by itself, a new stream of the same name is read immediately.
func TestForgottenStreamIsReadImmediately(t *testing.T) {
	for name, recreate := range recreations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newMemory(journal, beats)
				source.append(beats, "a", "b")
				store := memoryStore(t)
				v := follow(t, store, source, &forgetting{counting: counting{forgets: map[string]bool{beats: true}}}, journal, beats)
				v.untilFolded(t, beats, " a×1", "1 b×1")
				recreate(source, beats)
				source.append(beats, "more")
				v.until(t, "the new stream is read", func() bool {
					all := folded(t, store, beats)
					return len(all) == source.count(beats) && len(v.Recreated()) == 0 && v.CaughtUp(beats)
				})
			})
		})
	}
}

// A leader that never knew the old stream has nothing to journal. The view is then rebuilt, but not
// before the leader had time to journal it.
func TestViewIsRebuiltWithoutDecision(t *testing.T) {
	for name, recreate := range recreations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newMemory(journal, jobs)
				source.append(jobs, "a", "b")
				dir := t.TempDir()
				store := openStore(t, Config{Dir: dir})
				v := New(store, source, &counting{}, logTo(t), journal, jobs)
				ended := make(chan error, 1)
				go func() { ended <- v.Run(t.Context()) }()
				<-v.Ready()
				recreate(source, jobs)
				// No leader appends a barrier either.
				if source.count(jobs) == 0 {
					time.Sleep(10 * rebuildAfter)
					require.Empty(t, ended)
					source.append(jobs, "client's")
				}
				begun := time.Now()
				require.ErrorIs(t, <-ended, ErrRebuild)
				require.GreaterOrEqual(t, time.Since(begun), rebuildAfter)
				require.Less(t, time.Since(begun), rebuildAfter+20*time.Second)
				require.NoError(t, store.Close())
				store = openStore(t, Config{Dir: dir})
				require.Empty(t, folded(t, store, jobs))
				require.NoError(t, store.Close())
			})
		})
	}
}

func TestViewReconnects(t *testing.T) {
	source := newMemory(journal, jobs)
	source.append(jobs, "a", "b")
	source.lastErr = errors.New("no connection")
	store := memoryStore(t)
	v := follow(t, store, source, &counting{}, journal, jobs)
	v.until(t, "the fault shows", func() bool { return v.Status()[1].Fault == "view: end of jobs: no connection" })
	require.False(t, isClosed(v.Ready()))
	require.Positive(t, v.Lag())
	source.change(func() { source.lastErr = nil })
	v.untilFolded(t, jobs, " a×1", "1 b×1")
	<-v.Ready()
	require.Empty(t, v.Status()[1].Fault)

	source.change(func() { source.readErr = errors.New("cut off") })
	v.until(t, "the fault shows", func() bool { return v.Status()[1].Fault == "cut off" })
	require.False(t, v.CaughtUp(jobs))
	source.change(func() { source.readErr = nil })
	source.append(jobs, "c")
	v.untilFolded(t, jobs, " a×1", "1 b×1", "2 c×1")
	v.until(t, "the view has caught up", func() bool { return v.CaughtUp(journal, jobs) && v.Status()[1].Fault == "" })
}

func TestViewEndsWithPermanentError(t *testing.T) {
	for name, failing := range map[string]error{"a halt": fmt.Errorf("%w: upgrade", ErrHalt), "a fold that fails": errors.New("disk full")} {
		t.Run(name, func(t *testing.T) {
			source := newMemory(journal, jobs)
			source.append(jobs, "a")
			v := New(memoryStore(t), source, &counting{failing: failing}, logTo(t), journal, jobs)
			err := v.Run(t.Context())
			require.ErrorIs(t, err, failing)
			require.ErrorContains(t, err, "view: fold jobs@0: ")
			require.False(t, isClosed(v.Ready()))
		})
	}
}

func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.append(journal, "a")
		source.append(jobs, "a")
		store := openStore(t, Config{})
		v := New(store, source, &counting{}, logTo(t), journal, jobs)
		require.Zero(t, v.Lag())
		time.Sleep(time.Second)
		require.Equal(t, time.Second, v.Lag(), "the view has not begun")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- v.Run(ctx) }()
		<-v.Ready()
		synctest.Wait()
		require.Zero(t, v.Lag())
		time.Sleep(time.Hour)
		require.Zero(t, v.Lag(), "no record arrived, so none is missing")

		source.change(func() { source.readErr = errors.New("cut off") })
		synctest.Wait()
		time.Sleep(30 * time.Second)
		require.InDelta(t, 30, v.Lag().Seconds(), 1)
		require.Equal(t, v.Lag(), v.LagOf(journal, jobs))
		require.Equal(t, v.Lag(), v.StalledFor(journal, jobs))
		source.change(func() { source.readErr = nil })
		time.Sleep(10 * time.Second)
		require.Zero(t, v.Lag())

		stored := func(at time.Time) {
			source.change(func() {
				s := source.streams[jobs]
				s.records = append(s.records, wire.Record{Stream: jobs, Offset: s.next, Time: at, Body: []byte("x")})
				s.next++
			})
			synctest.Wait()
		}
		stored(time.Now().Add(-time.Minute))
		require.Zero(t, v.LagOf(jobs), "a slow clock of the broker is no lag")
		time.Sleep(10 * time.Second) // records must be in the order in which they were stored
		stored(time.Now().Add(-time.Minute - 3*time.Second))
		require.Equal(t, 3*time.Second, v.LagOf(jobs))
		require.Zero(t, v.LagOf(journal))
		require.Zero(t, v.StalledFor(jobs), "the view lags, but reads on")
		time.Sleep(2 * time.Second)
		require.Zero(t, v.Lag())
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, store.Close())
	})
}

// late is a Source with a stream that is created again right after its end was asked for. Its
// reader silently gets nothing.
type late struct {
	*memory
	asked bool
}

func (l *late) Last(ctx context.Context, stream string) (int64, bool, error) {
	if stream == jobs && !l.asked {
		l.asked = true
		return 1, true, nil
	}
	return l.memory.Last(ctx, stream)
}

func TestSilentReaderOfRecreatedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.append(jobs, "a", "b")
		store := memoryStore(t)
		v := follow(t, store, source, &counting{}, journal, jobs)
		v.untilFolded(t, jobs, " a×1", "1 b×1")
		require.NoError(t, v.stop())
		source.recreate(jobs, "u", "new")
		begun := time.Now()
		v = follow(t, store, &late{memory: source}, &counting{}, journal, jobs)
		v.until(t, "the new stream is noticed", func() bool { return len(v.Recreated()) == 1 })
		require.InDelta(t, probeAfter.Seconds(), time.Since(begun).Seconds(), 1)
		require.Equal(t, []string{" a×1", "1 b×1"}, folded(t, store, jobs))
	})
}

func TestMissingStreamIsWaitedFor(t *testing.T) {
	source := newMemory(journal, jobs)
	source.append(jobs, "a")
	source.readErr = fmt.Errorf("reading: %w", streams.ErrNoStream)
	store := memoryStore(t)
	v := follow(t, store, source, &counting{}, journal, jobs)
	v.until(t, "both streams are missing", func() bool { return len(v.Missing()) == 2 })
	require.False(t, v.CaughtUp(jobs))
	source.change(func() { source.readErr = nil })
	v.untilFolded(t, jobs, " a×1")
	v.until(t, "nothing is missing", func() bool { return len(v.Missing()) == 0 })
}

// If a reader finds that its offsets were wrong, the whole view is rebuilt.
func TestWrongOffsetsRebuildView(t *testing.T) {
	source := newMemory(journal, jobs)
	source.append(jobs, "a")
	source.readErr = fmt.Errorf("reading: %w", streams.ErrRelabelled)
	dir := t.TempDir()
	store := openStore(t, Config{Dir: dir})
	put(t, store, "old", "1")
	require.ErrorIs(t, New(store, source, &counting{}, logTo(t), journal, jobs).Run(t.Context()), ErrRebuild)
	require.NoError(t, store.Close())
	store = openStore(t, Config{Dir: dir})
	_, kept := has(t, store, "old")
	require.False(t, kept)
	require.NoError(t, store.Close())
}

// Right after a failover, a stream may look empty, or shorter than it is. This has no consequences,
// neither before nor after the view believes it.
func TestStreamThatLooksShortKeepsView(t *testing.T) {
	for _, stream := range []string{journal, jobs} {
		for _, long := range []time.Duration{time.Second, patience - 5*time.Second, 5 * patience} {
			for _, hidden := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, for %v, hidden=%v", stream, long, hidden), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						source := newMemory(journal, jobs)
						source.append(stream, "a", "b", "c", "d", "e", "confirmed 3")
						store, fold := memoryStore(t), &forgetting{}
						v := follow(t, store, source, fold, journal, jobs)
						v.until(t, "it is read", func() bool { return len(folded(t, store, stream)) == 6 })
						before := folded(t, store, stream)
						source.change(func() {
							source.hidden = map[string]bool{stream: hidden}
							source.short = map[string]int{stream: 1}
							source.streams[stream].generation++ // readers end
						})
						time.Sleep(long)
						require.Empty(t, v.Recreated())
						require.Equal(t, hidden && long > patience, len(v.Emptied()) > 0)
						require.Equal(t, !hidden || long > patience, v.CaughtUp(stream), "%+v", v.Status())
						source.change(func() { source.hidden, source.short = nil, nil })
						source.append(stream, "barrier")
						v.until(t, "the view reads on", func() bool {
							return v.CaughtUp(stream) && len(folded(t, store, stream)) == 7 && len(v.Emptied()) == 0
						})
						require.Equal(t, before, folded(t, store, stream)[:6])
						require.Empty(t, fold.forgotten)
						require.NoError(t, v.stop())
					})
				})
			}
		}
	}
}

// A reader's replica may lag behind the one that was read before, or may have deleted records that
// the stream's leader still has. The reader waits, and reads on when the replica has the records.
func TestLaggingReplicaIsWaitedFor(t *testing.T) {
	for name, behind := range map[string]func(m *memory){
		"it is behind":                  func(m *memory) { m.upTo = map[string]int64{jobs: 1} },
		"it has nothing":                func(m *memory) { m.upTo = map[string]int64{jobs: -1} },
		"its retention is further":      func(m *memory) { m.lacks = map[string]int64{jobs: 4} },
		"its retention took everything": func(m *memory) { m.lacks = map[string]int64{jobs: 9} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newMemory(journal, jobs)
				source.append(jobs, "a", "b", "c")
				store, fold := memoryStore(t), &forgetting{}
				v := follow(t, store, source, fold, journal, jobs)
				v.untilFolded(t, jobs, " a×1", "1 b×1", "2 c×1")
				require.NoError(t, v.stop())
				source.append(jobs, "d", "e")
				source.change(func() { behind(source) })
				v = follow(t, store, source, fold, journal, jobs)
				time.Sleep(10 * rebuildAfter)
				require.Empty(t, v.Recreated())
				require.Empty(t, v.Emptied())
				require.False(t, v.CaughtUp(jobs))
				source.change(func() { source.upTo, source.lacks = nil, nil })
				v.untilFolded(t, jobs, " a×1", "1 b×1", "2 c×1", "3 d×1", "4 e×1")
				require.Empty(t, fold.overtaken, "retention took nothing")
				require.Empty(t, fold.forgotten)
				require.NoError(t, v.stop())
			})
		})
	}
}
