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
	deed := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: entry, JIDTag: jid, Epoch: epoch, Seq: seq}
	q.write(wire.Journal, offset, wire.Fire(&wire.Job{JID: jid, Queue: "q"}, deed, []byte(`{"class":"C"}`), time.Now()))
}

func (q *queried) doubtful() (jids []string) {
	all, err := q.Doubts()
	require.NoError(q.t, err)
	for _, d := range all {
		jids = append(jids, d.JID)
	}
	return jids
}

const due = `{"jid":"a","scheduled_at":1,"job":{"class":"C","queue":"q"}}`

// Epochs are offsets of the journal. A journal that was made anew begins with the numbers of the
// old one: what a new leader confirms must not settle what an old one left in doubt, nor its
// barriers pass for those of the new.
func TestJournalMadeAnewHasEpochsOfItsOwn(t *testing.T) {
	q := newQueried(t)
	q.fold(wire.ScheduledJobs, 0, `{"type":"barrier","epoch":0}`)
	q.fold(wire.ScheduledJobs, 1, due)
	q.record(0, wire.JournalRecord{Type: wire.TypeOpened, Format: 1, Held: map[string]int64{wire.Retries: 3}})
	q.record(1, wire.JournalRecord{Type: wire.TypeWitness, Queue: "w"})
	q.fire(2, 0, 2, 1, "a")
	q.fire(3, 0, 3, 9, "unread")
	require.Equal(t, []string{"a", "unread"}, q.doubtful())

	require.True(t, q.forget(wire.Journal))
	require.Equal(t, []string{"a", "unread"}, q.doubtful())
	state := q.State()
	require.Contains(t, state.Gap(0), "it was deleted")
	require.Equal(t, map[string]int64{wire.Retries: 3}, state.Held)
	require.Equal(t, "w", state.Witness)
	require.Equal(t, 1, state.Journals)

	q.record(0, wire.JournalRecord{Type: wire.TypeOpened, Format: 1})
	q.record(1, wire.JournalRecord{Type: wire.TypeConfirmed, Through: 100})
	require.Equal(t, []string{"a", "unread"}, q.doubtful())
	require.NotEqual(t, int64(0), q.State().Barriers[wire.ScheduledJobs].Epoch)
	require.False(t, q.State().Foreign(wire.ScheduledJobs, 0))
	q.fire(2, 0, 101, 9, "unread") // fired again
	require.Equal(t, []string{"a", "unread"}, q.doubtful())
	q.record(3, wire.JournalRecord{Type: wire.TypeConfirmed, Through: 101})
	require.Equal(t, []string{"a"}, q.doubtful())

	require.True(t, q.forget(wire.Journal), "it is lost again")
	all, err := q.Doubts()
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NotNil(t, all[0].Entry)
	q.record(0, wire.JournalRecord{Type: wire.TypeOpened, Format: 1})
	q.record(1, wire.JournalRecord{Type: wire.TypeDelivered, Stream: wire.ScheduledJobs, Offset: 1, JID: "a", FiredEpoch: all[0].Epoch, Seq: all[0].Seq})
	require.Empty(t, q.doubtful())
	require.Zero(t, q.Total(wire.ScheduledJobs))
}

// What is told by offsets of the journal is told by none any more.
func TestForgetting(t *testing.T) {
	q := newQueried(t)
	q.record(0, wire.JournalRecord{Type: wire.TypeOpened, Format: 1})
	q.record(1, wire.JournalRecord{Type: wire.TypeRejected, Queue: wire.Unrouted, Reason: "bad"})
	q.record(2, wire.JournalRecord{Type: wire.TypeDismissed, Stream: wire.Unrouted, Offset: 1, Command: "c"})
	q.record(3, wire.JournalRecord{Type: wire.TypeDeleted, Stream: wire.Retries, Offset: 1, JID: "gone"})
	q.fold(wire.Heartbeats, 0, "garbage")
	q.fold(wire.Retries, 0, "garbage")
	require.False(t, q.forget(wire.Retries), "the leader decides about it")
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
	require.True(t, listed, "another than the one that was dismissed")
}

// A journal that was made anew under a leader speaks of an epoch that it does not have. Even where
// it begins at its very beginning it does not tell what was done.
func TestJournalThatBeginsWithAnEpochThatItDoesNotHave(t *testing.T) {
	for _, first := range []int64{0, 1, 40} {
		q := newQueried(t)
		q.fold(wire.ScheduledJobs, 0, `{"type":"barrier","epoch":30}`)
		q.record(first, wire.JournalRecord{Type: wire.TypeConfirmed, Epoch: 30, Through: 7})
		require.NotEmpty(t, q.State().Gap(0))
		q.record(first+1, wire.JournalRecord{Type: wire.TypeLowWater, Epoch: 30, Needs: first, LowWater: map[string]int64{wire.ScheduledJobs: 5}})
		require.Empty(t, q.State().Gap(0))
	}
}

// Low water tells a view that lacks records of the journal all that they could have told it.
func TestLowWaterEndsAGap(t *testing.T) {
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
	require.Equal(t, []string{"unread"}, q.doubtful())
	require.EqualValues(t, 1, q.Total(wire.ScheduledJobs), "it may have come back where nothing was read")
	q.record(41, wire.JournalRecord{Type: wire.TypeLowWater, Epoch: 40, Needs: 39, LowWater: map[string]int64{wire.ScheduledJobs: 20}})
	require.NotEmpty(t, q.State().Gap(1))
	require.Empty(t, q.doubtful(), "whoever moved low water had settled them")
	q.record(42, wire.JournalRecord{Type: wire.TypeLowWater, Epoch: 40, Needs: 40, LowWater: map[string]int64{wire.ScheduledJobs: 20}})
	require.Empty(t, q.State().Gap(1))
	require.Zero(t, q.Total(wire.ScheduledJobs))
}

// Whoever finds a gap holds everything, and says later where that ends. A view that reads it has no
// gap of its own.
func TestHoldThatIsNarrowed(t *testing.T) {
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

// Streams that have forgotten their beginning show as well as barriers that a leader was here.
func TestJournalThatIsMissingThoughEntriesHaveAged(t *testing.T) {
	q := newQueried(t)
	q.fold(wire.ScheduledJobs, 1, due)
	require.Empty(t, q.State().Gap(1))
	q.fold(wire.Retries, 7, `{"jid":"b","retry_at":1,"job":{"class":"C","queue":"q"}}`)
	require.Contains(t, q.State().Gap(1), "it was deleted")
}
