package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// scene is a ledger whose broker and view are the test's.
type scene struct {
	*Ledger
	t        *testing.T
	sent     []wire.Message
	folded   int64          // what the view has folded of epoch 7
	lacks    map[int64]bool // the numbers below that which the journal does not have
	unusable bool           // the port refuses every message
	took     int            // how many confirms were timed
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t}
	s.Ledger = New(Config{Port: s, View: s, Room: func() bool { return true }, Took: func(time.Duration) { s.took++ }})
	s.Begin(7)
	s.Tick(time.Unix(1_800_000_000, 0))
	return s
}

var errUnusable = errors.New("unusable")

func (s *scene) Publish(m wire.Message) (uint64, error) {
	if s.unusable {
		return 0, errUnusable
	}
	s.sent = append(s.sent, m)
	return uint64(len(s.sent)), nil
}

func (s *scene) Progress() (epoch, folded int64) { return 7, s.folded }

func (s *scene) Lacks(_, seq int64) bool { return s.lacks[seq] }

// record sends a record about an entry.
func (s *scene) record(about EntryID) *Publish {
	p := s.NewRecord(s.Now(), wire.JournalRecord{Type: wire.TypeDeleted}, about)
	require.NoError(s.t, s.Send(p))
	return p
}

func (s *scene) confirm(tag uint64, ack bool) { require.NoError(s.t, s.Confirmed(s.Now(), tag, ack)) }

// steps has the view fold so much, and takes that in some time later.
func (s *scene) steps(folded int64) {
	s.folded = folded
	s.Tick(s.Now().Add(time.Second))
	require.NoError(s.t, s.Step(folded))
}

func TestWatermarkWaitsForOpenNumbers(t *testing.T) {
	s := newScene(t)
	for range 4 {
		s.record(EntryID{})
	}
	s.confirm(2, true)
	s.confirm(4, true)
	require.Zero(t, s.Watermark())
	require.True(t, s.HasPassed(2))
	require.False(t, s.HasPassed(3))
	s.record(EntryID{})
	require.Equal(t, "2,4", s.sent[4].Headers[wire.HeaderAbove])
	s.confirm(1, true)
	require.EqualValues(t, 2, s.Watermark())
	s.confirm(3, true)
	require.EqualValues(t, 4, s.Watermark())
	require.Equal(t, 4, s.took)
	require.EqualValues(t, 4, s.Known().Through)
}

func TestRefusedRecordGetsNewNumber(t *testing.T) {
	s := newScene(t)
	at := ID(wire.Retries, 3)
	p := s.record(at)
	s.confirm(1, false)
	s.steps(1)
	require.NotNil(t, s.Busy(at), "the record is not confirmed yet")
	require.Len(t, s.sent, 2)
	require.EqualValues(t, 2, p.Seq())
	s.confirm(2, true)
	require.EqualValues(t, 2, s.Watermark())
	s.steps(2)
	require.Nil(t, s.Busy(at))
}

func TestEntryIsBusyUntilRecordIsFolded(t *testing.T) {
	s := newScene(t)
	one, other := ID(wire.Retries, 1), ID(wire.Retries, 2)
	p := s.record(one)
	s.Hold(p, other)
	s.steps(1)
	require.NotNil(t, s.Busy(one), "it may be refused yet")
	s.confirm(1, true)
	s.steps(1)
	require.Zero(t, s.AllBusy())
}

func TestTakenBackEntryIsFreeAfterFold(t *testing.T) {
	s := newScene(t)
	at, freed := ID(wire.Retries, 1), false
	fire := s.NewRecord(s.Now(), wire.JournalRecord{}, at)
	fire.Freed = func() { freed = true }
	fire.Returned = func(now time.Time, why string, journaled bool) error {
		require.Equal(t, Nack, why)
		return s.TakeBack(now, fire, wire.JournalRecord{Type: wire.TypeReturned})
	}
	require.NoError(t, s.Send(fire))
	s.confirm(1, false)
	s.steps(1)
	require.NotNil(t, s.Busy(at))
	s.confirm(2, true)
	s.steps(2)
	require.Nil(t, s.Busy(at))
	require.True(t, freed)
	require.EqualValues(t, 2, s.Watermark())
}

func TestContinuationsRunAfterFold(t *testing.T) {
	s := newScene(t)
	var done []string
	note := func(what string) func() error {
		return func() error {
			done = append(done, what)
			return nil
		}
	}
	require.NoError(t, s.RecordThen(s.Now(), wire.JournalRecord{}, EntryID{}, note("record")))
	require.NoError(t, s.AfterFold(1, note("number")))
	s.NextStep(note("step"))
	s.confirm(1, true)
	s.steps(0)
	require.Equal(t, []string{"step"}, done)
	s.steps(1)
	require.Equal(t, []string{"step", "number", "record"}, done, "in the order in which they began to wait")
	require.NoError(t, s.AfterFold(1, note("folded")))
	require.Equal(t, "folded", done[3])
}

func TestUnpublishableRecordUsesNoNumber(t *testing.T) {
	s := newScene(t)
	s.unusable = true
	at := ID(wire.Retries, 1)
	require.ErrorIs(t, s.Record(s.Now(), wire.JournalRecord{}, at), errUnusable)
	require.Zero(t, s.Seq())
	require.Nil(t, s.Busy(at))
	s.unusable = false
	s.record(at)
	require.EqualValues(t, 1, s.Seq())
}
