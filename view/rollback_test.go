package view

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
	"github.com/millrace-jobs/millrace/wire"
)

// summing is a fold with a sum in memory that it writes only now and then.
type summing struct {
	counting
	store *Store
	sum   int64 // of the lengths of all bodies
}

func (s *summing) Fold(tx *Tx, r *wire.Record) error {
	s.sum += int64(len(r.Body))
	return s.counting.Fold(tx, r)
}

func (s *summing) Commit(tx *Tx) error {
	if err := s.counting.Commit(tx); err != nil {
		return err
	}
	return tx.Set([]byte("sum"), fmt.Append(nil, s.sum))
}

func (s *summing) Reload() error {
	raw, _, err := s.store.Get([]byte("sum"))
	if err != nil {
		return err
	}
	s.sum, s.pending, s.confirmed = 0, 0, nil
	_, _ = fmt.Sscan(string(raw), &s.sum)
	return nil
}

// failovers is a broker that loses unconfirmed records in failovers, with a view of its streams.
// The test runs the readers step by step.
type failovers struct {
	*rapid.T
	test      *testing.T
	source    *memory
	store     *Store
	fold      *summing
	view      *View
	bodies    int
	confirmed map[string]int // records of each stream that the broker has confirmed
	ended     error          // why the view must be rebuilt
}

func newFailovers(test *testing.T, t *rapid.T) *failovers {
	f := &failovers{T: t, test: test, source: newMemory(journal, jobs), confirmed: map[string]int{}}
	f.source.once = true
	// Each leader appends a barrier to each stream before it does anything else.
	for _, stream := range []string{journal, jobs} {
		f.source.append(stream, "barrier")
		f.confirmed[stream] = 1
	}
	f.store = openStore(test, Config{Identity: "x"})
	f.store.checkpoints.every = 0
	f.start()
	return f
}

// start starts a process, which continues with the store.
func (f *failovers) start() {
	f.fold = &summing{store: f.store}
	require.NoError(f, f.fold.Reload())
	f.view = New(f.store, f.source, f.fold, slog.New(slog.DiscardHandler), journal, jobs)
}

func (f *failovers) append(*rapid.T) {
	stream := rapid.SampledFrom([]string{journal, jobs}).Draw(f.T, "stream")
	for range rapid.IntRange(1, 6).Draw(f.T, "records") {
		f.bodies++
		body := fmt.Sprint("record ", f.bodies)
		if n := f.confirmed[journal]; stream == journal && n > 0 && rapid.Bool().Draw(f.T, "has the confirmed number") {
			body = fmt.Sprintf("confirmed %d %d", f.source.streams[journal].records[n-1].Offset, f.bodies)
		}
		f.source.append(stream, body)
	}
}

// confirm makes the broker confirm some of the records that it has shown.
func (f *failovers) confirm(*rapid.T) {
	for _, stream := range []string{journal, jobs} {
		f.confirmed[stream] = rapid.IntRange(f.confirmed[stream], f.source.count(stream)).Draw(f.T, "confirmed of "+stream)
	}
}

// read connects to a stream and reads some of its records.
func (f *failovers) read(*rapid.T) {
	f.source.batch = rapid.IntRange(1, 4).Draw(f.T, "batch")
	stream := f.view.streams[rapid.IntRange(0, 1).Draw(f.T, "reads")]
	f.source.upTo = map[string]int64{}
	if rapid.Bool().Draw(f.T, "behind") {
		f.source.upTo[stream.stream] = rapid.Int64Range(0, f.source.streams[stream.stream].next).Draw(f.T, "up to")
	}
	f.follow(stream)
	f.source.upTo = nil
}

// follow reads one stream to its end.
func (f *failovers) follow(t *tail) {
	if f.ended != nil {
		return
	}
	err := t.follow(f.test.Context())
	var fatal *fatalError
	if errors.As(err, &fatal) {
		f.ended = fatal.err
		return
	}
	t.disconnected(err)
	require.Empty(f, f.view.Recreated(), "%v", err)
}

// failover loses some unconfirmed records, and gives their offsets to others.
func (f *failovers) failover(*rapid.T) {
	for _, stream := range []string{journal, jobs} {
		most := f.source.count(stream) - f.confirmed[stream]
		f.source.lose(stream, rapid.IntRange(0, most).Draw(f.T, "lost of "+stream))
		for range rapid.IntRange(0, most+1).Draw(f.T, "new in "+stream) {
			f.bodies++
			f.source.append(stream, fmt.Sprint("record ", f.bodies))
		}
	}
	if rapid.Bool().Draw(f.T, "they look empty") {
		f.source.hidden = map[string]bool{journal: rapid.Bool().Draw(f.T, journal), jobs: rapid.Bool().Draw(f.T, jobs)}
	}
	if rapid.Bool().Draw(f.T, "they look short") {
		f.source.short = map[string]int{journal: rapid.IntRange(0, 9).Draw(f.T, journal), jobs: rapid.IntRange(0, 9).Draw(f.T, jobs)}
	}
}

// show ends a failover: the streams show all their records.
func (f *failovers) show(*rapid.T) {
	f.source.hidden, f.source.short = nil, nil
}

func (f *failovers) restart(*rapid.T) { f.start() }

func contents(t require.TestingT, s *Store) (all []string) {
	require.NoError(t, s.Scan([]byte{1}, []byte{255}, false, func(k, v []byte) bool {
		all = append(all, fmt.Sprintf("%q=%q", k, v))
		return true
	}))
	return all
}

// check reads all records, and compares the view with one that is built from the same streams.
func (f *failovers) check() {
	f.show(nil)
	f.source.upTo, f.source.batch = nil, 3
	f.readAll(f.view, f.store)
	require.NoError(f, f.ended)
	store := openStore(f.test, Config{Identity: "x"})
	defer func() { require.NoError(f, store.Close()) }()
	fresh := New(store, f.source, &summing{store: store}, slog.New(slog.DiscardHandler), journal, jobs)
	f.readAll(fresh, store)
	require.Equal(f, contents(f, store), contents(f, f.store))
	for _, stream := range []string{journal, jobs} {
		want, err := readPosition(store, stream)
		require.NoError(f, err)
		have, err := readPosition(f.store, stream)
		require.NoError(f, err)
		require.Equal(f, want, have)
	}
}

func (f *failovers) readAll(v *View, store *Store) {
	for range 200 {
		behind := false
		for _, t := range v.streams {
			f.follow(t)
			at, err := store.Position(t.stream)
			require.NoError(f, err)
			last, ok, err := f.source.Last(f.test.Context(), t.stream)
			require.NoError(f, err)
			behind = behind || ok && at != last || !t.reached(at)
		}
		if !behind || f.ended != nil {
			return
		}
	}
	require.Fail(f, "it does not read on", "%+v", v.Status())
}

// reached reports whether the last reader read up to the offset at.
func (t *tail) reached(at int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.position == at && t.belowSince.IsZero()
}

// After any failovers, the view equals one that is built from the streams as they are. It does not
// matter which lost records it had read, or how the streams looked meanwhile. The view is not
// rebuilt, and no stream is taken for another one.
func TestLostUnconfirmedRecordsAreRolledBack(t *testing.T) {
	rolledBack := 0
	rapid.Check(t, func(rt *rapid.T) {
		f := newFailovers(t, rt)
		defer func() { _ = f.store.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"append": f.append, "append2": f.append, "confirm": f.confirm, "read": f.read, "read2": f.read,
			"failover": f.failover, "show": f.show, "restart": f.restart,
		})
		f.check()
		rolledBack += f.view.RolledBack()
	})
	require.Positive(t, rolledBack)
}

// The journal has a gap if, and only if, it lost a record that is known to be confirmed.
func TestLostConfirmedRecordsAreAGap(t *testing.T) {
	gaps := map[bool]int{}
	rapid.Check(t, func(rt *rapid.T) {
		f := newFailovers(t, rt)
		defer func() { _ = f.store.Close() }()
		rt.Repeat(map[string]func(*rapid.T){"append": f.append, "append2": f.append, "confirm": f.confirm, "read": f.read})
		f.source.upTo = nil
		f.readAll(f.view, f.store)
		known, err := f.store.Confirmed(journal)
		require.NoError(rt, err)
		count := f.source.count(journal)
		lost := rapid.IntRange(0, max(0, count-1)).Draw(rt, "lost")
		f.source.lose(journal, lost)
		for range rapid.IntRange(0, 2*lost).Draw(rt, "new") {
			f.bodies++
			f.source.append(journal, fmt.Sprint("record ", f.bodies))
		}
		for range 200 {
			for _, s := range f.view.streams {
				s.mu.Lock()
				if !s.belowSince.IsZero() {
					s.belowSince = s.belowSince.Add(-patience) // time passes
				}
				s.mu.Unlock()
				f.follow(s)
			}
		}
		short := new(LostEndError)
		gap := errors.As(f.ended, &short)
		gaps[gap]++
		require.Equal(rt, known >= int64(count-lost), gap, "%d was confirmed, %d are left of %d: %v", known, count-lost, count, f.ended)
		if !gap {
			f.check()
		}
	})
	require.Positive(t, gaps[true])
	require.Positive(t, gaps[false])
}

// If no checkpoint is old enough, the view is rebuilt, and no gap is reported.
func TestViewWithoutOldCheckpointIsRebuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.append(jobs, "a", "b", "c")
		dir := t.TempDir()
		store := openStore(t, Config{Dir: dir})
		v := follow(t, store, source, &counting{}, journal, jobs)
		v.untilFolded(t, jobs, " a×1", "1 b×1", "2 c×1")
		require.NoError(t, v.stop())
		require.NoError(t, store.Close())
		source.lose(jobs, 1)
		store = openStore(t, Config{Dir: dir})
		v = follow(t, store, source, &counting{}, journal, jobs)
		begun := time.Now()
		err := v.ended()
		require.ErrorIs(t, err, ErrRebuild)
		require.NotErrorAs(t, err, new(*LostEndError))
		require.GreaterOrEqual(t, time.Since(begun), patience, "the view waits, because the end may appear again")
		require.NoError(t, store.Close())
	})
}

// An action that depends on the view happens before a rollback, or not at all.
func TestSteadyActionPrecedesRollback(t *testing.T) {
	store := memoryStore(t)
	v := New(store, newMemory(journal, jobs), &counting{}, logTo(t), journal, jobs)
	put(t, store, "a", "1")
	store.checkpoints.every = 0
	put(t, store, "a", "2")
	pasts, err := store.pasts(jobs)
	require.NoError(t, err)
	at := v.RolledBack()
	began, ended := make(chan struct{}), make(chan error)
	require.NoError(t, v.Steadily(at, func() error {
		go func() {
			close(began)
			ended <- v.rollBack(pasts[0].number)
		}()
		<-began
		select {
		case err := <-ended:
			require.Fail(t, "it did not wait", "%v", err)
		case <-time.After(20 * time.Millisecond):
		}
		return nil
	}))
	require.NoError(t, <-ended)
	value, _ := has(t, store, "a")
	require.Equal(t, "1", value)
	require.ErrorIs(t, v.Steadily(at, func() error { panic("the view was rolled back before") }), ErrRolledBack)
}

// A rollback of the store restores keys that were overwritten, deleted one by one, or deleted as a
// range.
func TestStoresAreRolledBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store := memoryStore(t)
		key := rapid.Custom(func(t *rapid.T) []byte { return fmt.Appendf(nil, "k%02d", rapid.IntRange(0, 30).Draw(t, "key")) })
		was := map[int64][]string{}
		for range rapid.IntRange(1, 20).Draw(rt, "transactions") {
			store.checkpoints.every = time.Duration(rapid.SampledFrom([]int64{0, int64(time.Hour)}).Draw(rt, "checkpoint"))
			before := contents(rt, store)
			count := store.checkpoints.count
			require.NoError(rt, store.Update(func(tx *Tx) error {
				for range rapid.IntRange(0, 6).Draw(rt, "writes") {
					var err error
					switch rapid.IntRange(0, 3).Draw(rt, "write") {
					case 0:
						err = tx.Delete(key.Draw(rt, "deleted"))
					case 1:
						from, to := key.Draw(rt, "from"), key.Draw(rt, "to")
						if strings.Compare(string(from), string(to)) > 0 {
							from, to = to, from
						}
						err = tx.DeleteRange(from, to)
					default:
						err = tx.Set(key.Draw(rt, "set"), fmt.Append(nil, rapid.IntRange(0, 99).Draw(rt, "value")))
					}
					if err != nil {
						return err
					}
				}
				return nil
			}))
			if store.checkpoints.count > count {
				was[store.checkpoints.count] = before
			}
			if rapid.IntRange(0, 4).Draw(rt, "rolled back") == 0 {
				pasts, err := store.pasts(jobs)
				require.NoError(rt, err)
				to := rapid.SampledFrom(pasts).Draw(rt, "to").number
				require.NoError(rt, store.rollBack(to, func() error { return nil }))
				require.Equal(rt, was[to], contents(rt, store))
				if store.checkpoints.count > count {
					was[store.checkpoints.count] = contents(rt, store)
				}
			}
		}
	})
}

// The number of checkpoints, and the bytes that they keep, are bounded.
func TestCheckpointsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t, Config{})
		big := strings.Repeat("x", 1<<20)
		for range 100 {
			put(t, store, big, "v")
		}
		require.LessOrEqual(t, store.checkpoints.bytes, checkpointBytes+checkpointBytes/2)
		for range 300 {
			time.Sleep(time.Second)
			put(t, store, "k", "small")
		}
		require.Less(t, store.checkpoints.bytes, 100_000)
		require.LessOrEqual(t, len(store.checkpoints.all), int(checkpointAge/checkpointEvery)+2)
		first := slices.MinFunc(store.checkpoints.all, func(a, b *checkpoint) int { return a.taken.Compare(b.taken) })
		require.GreaterOrEqual(t, time.Since(first.taken), checkpointAge-checkpointEvery)
		require.NoError(t, store.Close())
	})
}

// A store that is to be emptied stays so, even if the reader of another stream rolls it back in
// that moment.
func TestStoreMarkedForRebuildStaysMarked(t *testing.T) {
	store, err := Open(Config{Identity: "x", Cache: 1 << 20})
	require.NoError(t, err)
	defer func() { require.NoError(t, store.Close()) }()
	set := func(value string) {
		require.NoError(t, store.Update(func(tx *Tx) error { return tx.Set([]byte("k"), []byte(value)) }))
	}
	set("before")
	newest := store.checkpoints.count
	set("after")
	require.NoError(t, store.MarkForRebuild())
	require.NoError(t, store.rollBack(newest, func() error { return nil }))
	_, kept, err := store.Get([]byte("k"))
	require.NoError(t, err)
	require.False(t, kept)
	identity, _, err := store.Get(keyIdentity)
	require.NoError(t, err)
	require.Equal(t, "condemned", string(identity))
}
