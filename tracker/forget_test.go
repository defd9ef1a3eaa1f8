package tracker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func (q *queried) write(stream string, offset int64, m wire.Message) {
	require.NoError(q.t, q.store.Update(func(tx *view.Tx) error {
		r := wire.Record{Stream: stream, Offset: offset, UserID: "millrace", Headers: m.Headers, Body: m.Body}
		if err := q.Fold(tx, &r); err != nil {
			return err
		}
		return q.Commit(tx)
	}))
}

func (q *queried) forget(stream string) (forgotten bool) {
	require.NoError(q.t, q.store.Update(func(tx *view.Tx) (err error) {
		if forgotten, err = q.Forget(tx, stream); err != nil {
			return err
		}
		return q.Commit(tx)
	}))
	return forgotten
}

func (q *queried) record(offset int64, r wire.JournalRecord) {
	q.write(wire.Journal, offset, r.Append(wire.Journal, offset, 0))
}

func (q *queried) fire(offset, epoch, seq, entry int64, jid string) {
	dispatch := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: entry, JIDTag: jid, Epoch: epoch, Seq: seq}
	q.write(wire.Journal, offset, wire.Fire(&wire.Job{JID: jid, Queue: "q"}, dispatch, []byte(`{"class":"C"}`), time.Now()))
}

func (q *queried) listDoubts() (jids []string) {
	all, err := q.Doubts()
	require.NoError(q.t, err)
	for _, d := range all {
		jids = append(jids, d.JID)
	}
	return jids
}

const due = `{"jid":"a","scheduled_at":1,"job":{"class":"C","queue":"q"}}`

// Epochs are offsets of the journal, so a journal that was created again repeats the numbers of the
// old one. The confirms of a new leader must not settle doubts of an old one, and barriers of the
// old epochs must not count as those of new ones.
func TestRecreatedJournalHasNewEpochs(t *testing.T) {
	q := newQueried(t)
	q.fold(wire.ScheduledJobs, 0, `{"type":"barrier","epoch":0}`)
	q.fold(wire.ScheduledJobs, 1, due)
	q.record(0, wire.JournalRecord{Type: wire.TypeOpened, Format: 1, Held: map[string]int64{wire.Retries: 3}})
	q.record(1, wire.JournalRecord{Type: wire.TypeWitness, Queue: "w"})
	q.fire(2, 0, 2, 1, "a")
	q.fire(3, 0, 3, 9, "unread")
	require.Equal(t, []string{"a", "unread"}, q.listDoubts())

	require.True(t, q.forget(wire.Journal))
	require.Equal(t, []string{"a", "unread"}, q.listDoubts())
	state := q.State()
	require.Contains(t, state.Gap(0), "it was deleted")
	require.Equal(t, map[string]int64{wire.Retries: 3}, state.Held)
	require.Equal(t, "w", state.Witness)
	require.Equal(t, 1, state.Journals)

	q.record(0, wire.JournalRecord{Type: wire.TypeOpened, Format: 1})
	q.record(1, wire.JournalRecord{Type: wire.TypeConfirmed, Through: 100})
	require.Equal(t, []string{"a", "unread"}, q.listDoubts())
	require.NotEqual(t, int64(0), q.State().Barriers[wire.ScheduledJobs].Epoch)
	require.False(t, q.State().Foreign(wire.ScheduledJobs, 0))
	q.fire(2, 0, 101, 9, "unread") // the same job is fired again
	require.Equal(t, []string{"a", "unread"}, q.listDoubts())
	q.record(3, wire.JournalRecord{Type: wire.TypeConfirmed, Through: 101})
	require.Equal(t, []string{"a"}, q.listDoubts())

	require.True(t, q.forget(wire.Journal), "the journal is lost again")
	all, err := q.Doubts()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NotNil(t, all[0].Entry)
	q.record(0, wire.JournalRecord{Type: wire.TypeOpened, Format: 1})
	q.record(1, wire.JournalRecord{Type: wire.TypeDelivered, Stream: wire.ScheduledJobs, Offset: 1, JID: "a", FiredEpoch: all[0].Epoch, Seq: all[0].Seq})
	require.Empty(t, q.listDoubts())
	require.Zero(t, q.Total(wire.ScheduledJobs))
}

// If the journal is forgotten, so is everything that is stored by offsets of the journal.
func TestForgottenStreams(t *testing.T) {
	q := newQueried(t)
	q.record(0, wire.JournalRecord{Type: wire.TypeOpened, Format: 1})
	q.record(1, wire.JournalRecord{Type: wire.TypeRejected, Queue: wire.Unrouted, Reason: "bad"})
	q.record(2, wire.JournalRecord{Type: wire.TypeDismissed, Stream: wire.Unrouted, Offset: 1, Command: "c"})
	q.record(3, wire.JournalRecord{Type: wire.TypeDeleted, Stream: wire.Retries, Offset: 1, JID: "gone"})
	q.fold(wire.Heartbeats, 0, "garbage")
	q.fold(wire.Retries, 0, "garbage")
	require.False(t, q.forget(wire.Retries), "the leader decides about an entry stream")
	require.True(t, q.forget(wire.Heartbeats))
	require.Equal(t, map[string]int64{wire.Unrouted: 1, wire.Retries: 1}, q.State().Rejected)

	require.True(t, q.forget(wire.Journal))
	require.Equal(t, map[string]int64{wire.Retries: 1}, q.State().Rejected)
	done, err := q.CarriedOut("c")
	require.NoError(t, err)
	require.False(t, done)
	happened, err := q.LastOutcome(wire.Retries, "gone")
	require.NoError(t, err)
	require.Nil(t, happened)
	q.record(0, wire.JournalRecord{Type: wire.TypeOpened, Format: 1})
	q.record(1, wire.JournalRecord{Type: wire.TypeRejected, Queue: wire.Unrouted, Reason: "bad"})
	_, listed, err := q.Rejected(wire.Unrouted, 1)
	require.NoError(t, err)
	require.True(t, listed, "this is not the record that was dismissed")
}

// If the journal is created again under a leader, its records have an epoch that is not in it. That
// is a gap, even if the journal begins at offset 0.
func TestJournalOfUnknownEpochIsAGap(t *testing.T) {
	for _, first := range []int64{0, 1, 40} {
		q := newQueried(t)
		q.fold(wire.ScheduledJobs, 0, `{"type":"barrier","epoch":30}`)
		q.record(first, wire.JournalRecord{Type: wire.TypeConfirmed, Epoch: 30, Through: 7})
		require.NotEmpty(t, q.State().Gap(0))
		q.record(first+1, wire.JournalRecord{Type: wire.TypeLowWater, Epoch: 30, Needs: first, LowWater: map[string]int64{wire.ScheduledJobs: 5}})
		require.Empty(t, q.State().Gap(0))
	}
}

// A view that lacks records of the journal needs none of them below low water.
func TestLowWaterEndsGap(t *testing.T) {
	q := newQueried(t)
	q.fold(wire.ScheduledJobs, 0, `{"type":"barrier","epoch":1}`)
	q.fold(wire.ScheduledJobs, 1, due)
	q.record(1, wire.JournalRecord{Type: wire.TypeOpened, Format: 1})
	q.fire(2, 1, 1, 1, "a")
	q.fire(3, 1, 2, 9, "unread")
	require.Empty(t, q.State().Gap(1))
	require.NoError(t, q.store.Update(func(tx *view.Tx) error {
		if err := q.Overtaken(tx, wire.Retries); err != nil {
			return err
		}
		return q.Overtaken(tx, wire.Journal)
	}))
	q.record(40, wire.JournalRecord{Type: wire.TypeOpened, Format: 1, Needs: 30})
	require.Equal(t, "the journal begins at 40, it is needed from 30 on", q.State().Gap(1))
	require.Equal(t, []string{"unread"}, q.listDoubts())
	require.EqualValues(t, 1, q.Total(wire.ScheduledJobs), "the unread records may have returned the fire")
	q.record(41, wire.JournalRecord{Type: wire.TypeLowWater, Epoch: 40, Needs: 39, LowWater: map[string]int64{wire.ScheduledJobs: 20}})
	require.NotEmpty(t, q.State().Gap(1))
	require.Empty(t, q.listDoubts(), "the leader that moved low water had settled them")
	q.record(42, wire.JournalRecord{Type: wire.TypeLowWater, Epoch: 40, Needs: 40, LowWater: map[string]int64{wire.ScheduledJobs: 20}})
	require.Empty(t, q.State().Gap(1))
	require.Zero(t, q.Total(wire.ScheduledJobs))
}

// A leader that finds a gap holds everything, and journals later where the hold ends. A view that
// reads this has no gap of its own.
func TestHoldIsNarrowed(t *testing.T) {
	q := newQueried(t)
	held := map[string]int64{wire.ScheduledJobs: wire.Everything, wire.Retries: wire.Everything, wire.DeadJobs: wire.Everything}
	q.record(40, wire.JournalRecord{Type: wire.TypeOpened, Format: 1, Needs: 30, Held: held, Reason: "why"}) // its leader knew no jobs.gated
	require.Empty(t, q.State().Gap(0))
	require.Equal(t, "why", q.State().Why)
	require.True(t, q.IsHeld(wire.ScheduledJobs, 1<<40))
	q.record(41, wire.JournalRecord{Type: wire.TypeReleased, Epoch: 40, Held: map[string]int64{wire.ScheduledJobs: 9, wire.Retries: 9}})
	require.True(t, q.IsHeld(wire.ScheduledJobs, 9))
	require.False(t, q.IsHeld(wire.ScheduledJobs, 10))
	require.False(t, q.IsHeld(wire.DeadJobs, 1))
	require.Equal(t, "why", q.State().Why)
	q.record(42, wire.JournalRecord{Type: wire.TypeReleased, Epoch: 40})
	require.False(t, q.IsHeld(wire.ScheduledJobs, 9))
	require.Empty(t, q.State().Why)
	require.Empty(t, q.State().Gap(0))
}

// A stream whose beginning was deleted shows, like a barrier, that there was a leader before.
func TestTrimmedEntryStreamShowsLostJournal(t *testing.T) {
	q := newQueried(t)
	q.fold(wire.ScheduledJobs, 1, due)
	require.Empty(t, q.State().Gap(1))
	q.fold(wire.Retries, 7, `{"jid":"b","retry_at":1,"job":{"class":"C","queue":"q"}}`)
	require.Contains(t, q.State().Gap(1), "it was deleted")
}
