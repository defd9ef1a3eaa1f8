package scheduler

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// merges returns every order in which streams of some lengths can be read.
func merges(left map[string]int) iter.Seq[[]string] {
	return func(yield func([]string) bool) { merge(left, nil, yield) }
}

func merge(left map[string]int, read []string, yield func([]string) bool) bool {
	over := true
	for _, stream := range slices.Sorted(mapKeys(left)) {
		if left[stream] == 0 {
			continue
		}
		over = false
		left[stream]--
		more := merge(left, append(read, stream), yield)
		left[stream]++
		if !more {
			return false
		}
	}
	return !over || yield(slices.Clone(read))
}

// tale is what the journal and the entry streams contain, as if leaders had written it.
type tale struct{ *modelBroker }

func (b tale) journal(epoch int64, r wire.JournalRecord) int64 {
	r.Epoch = epoch
	return b.append(wire.Journal, millrace, r.Append(wire.Journal, 0, 0))
}

func (b tale) opened() int64 {
	return b.journal(0, wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
}

func (b tale) settled(epoch int64, what string, offset int64) {
	b.journal(epoch, wire.JournalRecord{Type: what, Stream: wire.ScheduledJobs, Offset: offset, JID: "a"})
}

func (b tale) fired(epoch, seq, offset int64) {
	headers := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: offset, JIDTag: "a", Epoch: epoch, Seq: seq}
	b.append(wire.Journal, millrace, wire.Fire(&wire.Job{JID: "a", Queue: "q"}, headers, []byte(entryA), time.Unix(1, 0)))
}

func (b tale) confirmed(epoch, through int64) {
	b.journal(epoch, wire.JournalRecord{Type: wire.TypeConfirmed, Through: through})
}

const entryA = `{"jid":"a","scheduled_at":1,"job":{"class":"C","queue":"q"}}`

func (b tale) entry() int64 {
	return b.append(wire.ScheduledJobs, "client", wire.Message{Body: []byte(entryA)})
}

func (b tale) barrier(epoch int64) {
	b.append(wire.ScheduledJobs, millrace, wire.JournalRecord{Type: wire.TypeBarrier, Epoch: epoch}.Append(wire.ScheduledJobs, 0, 0))
}

// lateBarrier is a barrier of a leader that had read the stream up to an offset.
func (b tale) lateBarrier(epoch, read int64) {
	r := wire.JournalRecord{Type: wire.TypeBarrier, Epoch: epoch, Read: &read}
	b.append(wire.ScheduledJobs, millrace, r.Append(wire.ScheduledJobs, 0, 0))
}

func (b tale) replacement(epoch, of int64) int64 {
	headers := map[string]any{wire.HeaderReplaces: of, wire.HeaderFirst: of, wire.HeaderEpoch: epoch}
	return b.append(wire.ScheduledJobs, millrace, wire.Carry(wire.ScheduledJobs, "a", []byte(entryA), headers))
}

// interleaved are records of the journal and of an entry stream, with the entries that are pending
// after all of them.
var interleaved = map[string]struct {
	write   func(tale)
	pending []int64
}{
	"a repeated publish is two entries until the leader says otherwise": {func(b tale) {
		b.opened()
		b.entry()
		b.entry()
	}, []int64{0, 1}},
	"the first is deleted, and the repeated one does not rise": {func(b tale) {
		e := b.opened()
		b.settled(e, wire.TypeDuplicate, 1)
		b.settled(e, wire.TypeDeleted, 0)
		b.entry()
		b.entry()
	}, nil},
	"the first has fired, and the repeated one does not rise": {func(b tale) {
		e := b.opened()
		b.settled(e, wire.TypeDuplicate, 1)
		b.fired(e, 2, 0)
		b.confirmed(e, 2)
		b.entry()
		b.entry()
	}, nil},
	"what came too late to be a repetition stays": {func(b tale) {
		e := b.opened()
		b.fired(e, 1, 0)
		b.confirmed(e, 1)
		b.entry()
		b.entry()
	}, []int64{1}},
	"replaced": {func(b tale) {
		b.barrier(b.opened())
		b.entry()
		b.replacement(0, 1)
	}, []int64{2}},
	"replaced, and the replacement has fired": {func(b tale) {
		e := b.opened()
		b.barrier(e)
		b.entry()
		b.replacement(e, 1)
		b.fired(e, 1, 2)
		b.confirmed(e, 1)
	}, nil},
	"replaced, and the replacement came back": {func(b tale) {
		e := b.opened()
		b.barrier(e)
		b.entry()
		b.replacement(e, 1)
		b.fired(e, 1, 2)
		b.journal(e, wire.JournalRecord{Type: wire.TypeReturned, Seq: 1})
	}, []int64{2}},
	"replaced by a leader that had been followed": {func(b tale) {
		old := b.opened()
		b.barrier(old)
		b.entry()
		b.barrier(b.opened())
		b.replacement(old, 1)
	}, []int64{1}},
	"replaced by a leader whose barrier comes late": {func(b tale) {
		old, next := b.opened(), b.opened()
		b.lateBarrier(next, -1)
		b.entry()
		b.lateBarrier(old, -1)
		b.replacement(old, 1)
	}, []int64{1}},
	"replaced by the leader in whose reign a late barrier came": {func(b tale) {
		old, next := b.opened(), b.opened()
		b.lateBarrier(next, -1)
		b.entry()
		b.lateBarrier(old, -1)
		b.replacement(next, 1)
	}, []int64{3}},
	"replaced by a leader whose journal was created again": {func(b tale) {
		b.lateBarrier(1000, -1)
		e := b.opened()
		b.entry()
		b.lateBarrier(e, 1)
		b.replacement(e, 1)
	}, []int64{3}},
	"settled by a leader that had been followed": {func(b tale) {
		old := b.opened()
		b.opened()
		b.settled(old, wire.TypeDeleted, 0)
		b.entry()
	}, []int64{0}},
	"fired by a leader that had been followed": {func(b tale) {
		old := b.opened()
		b.opened()
		b.fired(old, 9, 0)
		b.entry()
	}, nil}, // it is in doubt
	"said of entries of a stream that is gone": {func(b tale) {
		e := b.opened()
		b.journal(e, wire.JournalRecord{Type: wire.TypeDeleted, Stream: wire.ScheduledJobs, Offset: 0, JID: "other"})
		b.journal(e, wire.JournalRecord{Type: wire.TypeRefused, Stream: wire.ScheduledJobs, Offset: 1, JID: "other", Error: "x"})
		b.entry()
		b.entry()
	}, []int64{0, 1}},
	"fired by one leader, and settled by the next": {func(b tale) {
		old := b.opened()
		b.fired(old, 1, 0)
		e := b.opened()
		b.journal(e, wire.JournalRecord{Type: wire.TypeDelivered, Stream: wire.ScheduledJobs, Offset: 0, JID: "a", FiredEpoch: old, Seq: 1})
		b.entry()
	}, nil},
	"what the journal said of a stream that is gone": {func(b tale) {
		old := b.opened()
		b.settled(old, wire.TypeDeleted, 1)
		b.settled(old, wire.TypeDeleted, 2)
		e := b.opened()
		b.journal(e, wire.JournalRecord{Type: wire.TypeRecreated, Stream: wire.ScheduledJobs})
		b.entry()
		b.entry()
		b.barrier(e)
		b.entry()
	}, []int64{0, 1, 3}},
}

// A view reads several streams, each in its own order, and interleaves them in any order. The
// result is the same for every interleaving.
func TestViewIsSameForEveryInterleaving(t *testing.T) {
	for name, c := range interleaved {
		t.Run(name, func(t *testing.T) {
			b := newModelBroker()
			c.write(tale{b})
			var want map[string]string
			orders := 0
			for order := range merges(map[string]int{
				wire.Journal:       len(b.streams[wire.Journal].records),
				wire.ScheduledJobs: len(b.streams[wire.ScheduledJobs].records),
			}) {
				orders++
				s, err := newModelSidecar(b, fmt.Sprint(order))
				require.NoError(t, err)
				for _, stream := range order {
					require.NoError(t, s.read(stream, 1))
				}
				require.NoError(t, s.readAll())
				var pending []int64
				for _, e := range mustFind(t, s, "a") {
					pending = append(pending, e.Offset)
				}
				require.Equal(t, c.pending, pending, "read in the order %v", order)
				got := content(t, s.store)
				if want == nil {
					want = got
				}
				require.Equal(t, want, got, "read in the order %v", order)
				require.NoError(t, s.store.Close())
			}
			require.Greater(t, orders, 1)
		})
	}
}

// content is what a view knows of entries.
func content(t *testing.T, store *view.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, store.Scan([]byte{1}, []byte{255}, false, func(k, v []byte) bool {
		if k[0] != 'm' { // when something was read first
			all[fmt.Sprintf("%q", k)] = fmt.Sprintf("%q", v)
		}
		return true
	}))
	return all
}

func mustFind(t *testing.T, s *modelSidecar, jid string) []*tracker.Stored {
	t.Helper()
	found, err := s.entries.Find(wire.ScheduledJobs, jid)
	require.NoError(t, err)
	return found
}

// A crash loop: the broker loses fires in a crash, and each new leader, or the broker again, dies
// before all of them are reconciled. A fire that the first leader left in doubt is in doubt until
// it is settled, after any number of epochs.
func TestDoubtSurvivesSeveralLeaders(t *testing.T) {
	sc := newScene(t)
	first := sc.sidecar("first")
	sc.elect(first, never)
	sc.rounds(first, 5, nil)
	const jobs = 5
	for i := range jobs {
		sc.due(fmt.Sprint("j", i), "q")
	}
	require.NoError(t, first.readAll())
	require.NoError(t, first.step(sc.now))
	for len(first.conn.out) > 0 {
		sc.broker.process(first.conn, sc.now)
	}
	require.Len(t, sc.broker.copies, jobs)
	sc.crash(first, 0, 3) // with two of the five

	for i := range 3 { // each gets a little further than the one before
		s := sc.sidecar(fmt.Sprint("doomed", i))
		sc.elect(s, never)
		for s.core.phase < phaseReconciled {
			sc.advance(s)
		}
		require.NotEmpty(t, s.conn.out, "it has begun to fire again")
		for range i {
			sc.broker.process(s.conn, sc.now) // and no leader learns of it
		}
		sc.crash(s, len(sc.broker.copies)-i, len(sc.broker.copies))
	}
	last := sc.sidecar("last")
	sc.elect(last, never)
	sc.rounds(last, 50, nil)
	require.Equal(t, phaseLeading, last.core.phase)
	got := sc.copies()
	for i := range jobs {
		require.Positive(t, got[fmt.Sprint("j", i)], "j%d is lost", i)
	}
	doubts, err := last.entries.Doubts()
	require.NoError(t, err)
	require.Empty(t, doubts)
	require.Zero(t, last.entries.Total(wire.ScheduledJobs))
}

// crash ends the broker, which loses some copies, and the leader.
func (sc *scene) crash(s *modelSidecar, from, to int) {
	for i, c := range sc.broker.copies {
		c.gone = c.gone || i >= from && i < to
		c.confirmed = true
	}
	sc.broker.witness = ""
	s.lose()
}

// advance lets a leader take one step, and the broker process everything but fires.
func (sc *scene) advance(s *modelSidecar) {
	require.NoError(sc.t, s.step(sc.now))
	for len(s.conn.out) > 0 && s.conn.out[0].message.Exchange != wire.ExchangeFire {
		sc.broker.process(s.conn, sc.now)
	}
	for len(s.conn.answers) > 0 {
		require.NoError(sc.t, s.answer(sc.now))
	}
	require.NoError(sc.t, s.readAll())
}

// A leader reschedules an entry and dies. The next one has read the journal, and the entry's stream
// only up to the entry. It must fire nothing until it has read its own barrier there.
func TestLeaderWaitsForBarrierOfEntryStream(t *testing.T) {
	sc := newScene(t)
	first := sc.sidecar("first")
	sc.elect(first, never)
	sc.rounds(first, 5, nil)
	old := sc.due("a", "q")
	next := sc.sidecar("next")
	require.NoError(t, next.readAll())
	later := sc.now.Add(time.Hour)
	headers := map[string]any{wire.HeaderReplaces: old, wire.HeaderFirst: old, wire.HeaderEpoch: first.core.ledger.Epoch()}
	body := fmt.Sprintf(`{"jid":"a","scheduled_at":%d,"job":{"class":"C","queue":"q"}}`, later.Unix())
	sc.broker.append(wire.ScheduledJobs, millrace, wire.Carry(wire.ScheduledJobs, "a", []byte(body), headers))
	first.lose()

	next.stand(never)
	for range 20 {
		require.NoError(t, next.step(sc.now))
		for len(next.conn.out) > 0 {
			sc.broker.process(next.conn, sc.now)
		}
		for len(next.conn.answers) > 0 {
			require.NoError(t, next.answer(sc.now))
		}
		for _, stream := range []string{wire.Journal, wire.Retries, wire.DeadJobs} {
			require.NoError(t, next.read(stream, 100))
		}
	}
	require.Equal(t, phaseCatchingUp, next.core.phase)
	require.Empty(t, sc.copies())
	require.NoError(t, next.readAll())
	sc.rounds(next, 20, nil)
	require.Equal(t, phaseLeading, next.core.phase)
	require.Empty(t, sc.copies(), "it is not due any more")
	sc.now = later
	sc.rounds(next, 20, nil)
	require.Equal(t, map[string]int{"a": 1}, sc.copies())
}

// A leader that has not read all of the journal when it begins its epoch still repeats the state in
// force: a view that begins to read there knows nothing else.
func TestLaggingLeaderRepeatsStateInForce(t *testing.T) {
	sc := newScene(t)
	b := tale{sc.broker}
	in := wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Held: map[string]int64{wire.ScheduledJobs: 1}}
	b.opened()
	e := b.journal(0, in)
	for _, stream := range wire.EntryStreams {
		b.append(stream, millrace, wire.JournalRecord{Type: wire.TypeBarrier, Epoch: e}.Append(stream, 0, 0))
	}
	b.journal(e, wire.JournalRecord{Type: wire.TypeLowWater, LowWater: map[string]int64{wire.Retries: 1}, Needs: e})
	b.journal(e, wire.JournalRecord{Type: wire.TypeWitness, Witness: sc.broker.renew()})
	sc.due("held", "q")

	s := sc.sidecar("behind")
	s.stand(never)
	sc.rounds(s, 20, nil)
	require.Equal(t, phaseLeading, s.core.phase)
	require.Empty(t, sc.copies(), "it is held")
	var said wire.JournalRecord
	for _, r := range sc.broker.streams[wire.Journal].records {
		if j, err := wire.ParseJournal(r.Body); err == nil && j.Type == wire.TypeOpened {
			said = j
		}
	}
	require.Equal(t, map[string]int64{wire.ScheduledJobs: 1}, said.Held)
	require.Equal(t, map[string]int64{wire.Retries: 1}, said.LowWater)
	require.Equal(t, e, said.Needs)
	require.Equal(t, sc.broker.renew(), said.Witness)
	require.Equal(t, s.core.ledger.Epoch(), s.entries.State().Epoch)
}
