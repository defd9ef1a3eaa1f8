package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// loseRecord loses a record of Millrace that the broker had confirmed. RabbitMQ 3.10 does so
// shortly after another node leads the stream.
func (b *modelBroker) loseRecord(stream string, offset int64) {
	m := wire.JournalRecord{Type: wire.TypeConfirmed}.Append(stream, 0, 0)
	r := b.streams[stream].get(offset)
	r.Headers, r.Body = m.Headers, m.Body
	if stream == wire.Journal {
		b.forgetEpochs()
	}
}

// unread returns where the records of a type stand that no sidecar has read yet.
func (b *modelBroker) unread(stream, typ string, sidecars ...*modelSidecar) (offsets []int64) {
	s := b.streams[stream]
	from := s.base
	for _, one := range sidecars {
		from = max(from, one.at[stream])
	}
	for offset := int64(from); offset < int64(s.end()); offset++ {
		if r := s.get(offset); r.UserID == millrace && recordOfType(typ)(r) {
			offsets = append(offsets, offset)
		}
	}
	return offsets
}

// loseOpening loses records with which a leader begins its epoch.
func (w *world) loseOpening(t *rapid.T) {
	s := w.leader()
	if s == nil || s.conn != w.broker.conn || s.core.phase > phaseCatchingUp {
		return
	}
	for stream, typ := range map[string]string{wire.Journal: wire.TypeOpened, wire.Retries: wire.TypeBarrier, wire.DeadJobs: wire.TypeBarrier} {
		for _, offset := range w.broker.unread(stream, typ, w.sidecars...) {
			if rapid.Bool().Draw(t, "lost "+stream) {
				w.broker.loseRecord(stream, offset)
			}
		}
	}
}

// opens has a leader begin while a stream loses the records of that, up to so many. It returns how
// many it lost, and how the leader ended.
func (sc *scene) opens(s *modelSidecar, stream string, most int) (losses int, err error) {
	sc.t.Helper()
	typ := wire.TypeBarrier
	if stream == wire.Journal {
		typ = wire.TypeOpened
	}
	for range 20 {
		if err := s.step(sc.now); err != nil || losses == most {
			return losses, err
		}
		sc.answer(s)
		for _, offset := range sc.broker.unread(stream, typ, s) {
			sc.broker.loseRecord(stream, offset)
			losses++
		}
		require.NoError(sc.t, s.readAll())
		require.LessOrEqual(sc.t, s.core.phase, phaseCatchingUp)
		sc.now = sc.now.Add(100 * time.Millisecond)
	}
	return losses, nil
}

// A stream loses the record of an epoch's beginning that the broker has confirmed. The leader
// writes it again, and leads. If that happens again and again, it resigns: on another connection it
// may not happen.
func TestRecordThatBeginsEpochIsWrittenAgain(t *testing.T) {
	for _, lost := range append([]string{wire.Journal}, wire.EntryStreams...) {
		t.Run(lost, func(t *testing.T) {
			sc := newScene(t)
			before := sc.leader("a")
			sc.fires(before, "j", "q")
			sc.exchange(before)
			before.disconnect()
			s := sc.sidecar("b")
			sc.elect(s, never)
			losses, err := sc.opens(s, lost, mostLosses+1)
			require.Equal(t, mostLosses+1, losses, "each is lost")
			require.ErrorIs(t, err, errResigned)
			s.disconnect()

			sc.elect(s, never)
			losses, err = sc.opens(s, lost, mostLosses)
			require.NoError(t, err)
			require.Equal(t, mostLosses, losses, "it is written again")
			sc.rounds(s, 8, nil)
			require.Equal(t, phaseLeading, s.core.phase)
			require.EqualValues(t, 1, sc.copies()["j"])
		})
	}
}
