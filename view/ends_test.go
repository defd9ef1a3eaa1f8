package view

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// ends returns where the view says that a stream ends.
func ends(v *following, stream string) *End {
	for _, s := range v.Status() {
		if s.Stream == stream {
			return s.End
		}
	}
	return nil
}

func TestEndsOfStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.append(jobs, "a", "b", "c", "d", "e")
		source.upTo = map[string]int64{jobs: 2}
		store := memoryStore(t)
		v := follow(t, store, source, &counting{}, journal, jobs)
		synctest.Wait()
		require.Equal(t, &End{Written: -1}, ends(v, journal), "an empty stream")
		require.Equal(t, &End{Written: 4, Left: 2}, ends(v, jobs), "the end when the reader began")

		source.append(jobs, "f")
		time.Sleep(askEndsEvery + time.Second)
		require.Equal(t, &End{Written: 5, Left: 3}, ends(v, jobs), "the reader is stuck below the new record")
		require.Empty(t, source.movedReaders())

		source.change(func() { source.upTo = nil })
		source.append(jobs, "g")
		synctest.Wait()
		require.Equal(t, &End{Written: 6}, ends(v, jobs), "a folded record counts as written, even if the broker's answer was older")

		source.change(func() { source.lastErr = errors.New("no answer") })
		time.Sleep(askEndsEvery)
		require.Nil(t, ends(v, jobs))
		source.change(func() { source.lastErr = nil })
		time.Sleep(askEndsEvery)
		require.Equal(t, &End{Written: 6}, ends(v, jobs))
		require.NoError(t, v.stop())
		require.Nil(t, ends(v, jobs), "no reader is left")
	})
}

// Only a question that is asked later than a record was confirmed shows that a stream lacks it.
func TestHasReadToEndThatWasAskedForSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.append(jobs, "a", "b")
		v := follow(t, memoryStore(t), source, &counting{}, journal, jobs)
		synctest.Wait()
		since := time.Now()
		ask := func() {
			time.Sleep(time.Second)
			v.AskEnds(t.Context(), jobs)
		}
		require.False(t, v.HasRead(jobs, since), "nothing was asked since")
		ask()
		require.True(t, v.HasRead(jobs, since))
		require.False(t, v.HasRead(jobs, time.Now()))
		require.False(t, v.HasRead(journal, since), "it was asked for another stream")

		source.change(func() { source.upTo = map[string]int64{jobs: 1} })
		source.append(jobs, "c")
		ask()
		require.False(t, v.HasRead(jobs, since), "it is behind")
		source.change(func() { source.upTo = nil })
		source.append(jobs, "d")
		synctest.Wait()
		require.True(t, v.HasRead(jobs, since), "it has read further than the answer")
		source.change(func() { source.lastErr = errors.New("no answer") })
		ask()
		require.False(t, v.HasRead(jobs, since), "the end is not known now")
		require.NoError(t, v.stop())
	})
}

// A replica that is cut off from its stream's leader sends nothing more, and gives no reason. Its
// readers move to another node.
func TestReadersLeaveReplicaThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.others = true
		source.append(jobs, "a", "b", "c")
		source.append(journal, "j")
		source.upTo = map[string]int64{jobs: 2}
		store := memoryStore(t)
		v := follow(t, store, source, &counting{}, journal, jobs)
		synctest.Wait()
		time.Sleep(settlesIn)
		ask := func() {
			v.AskEnds(t.Context(), journal, jobs)
			time.Sleep(time.Second)
		}
		ask()
		ask()
		require.Empty(t, source.movedReaders(), "the reader is at the end")
		source.append(jobs, "d")
		ask()
		require.Empty(t, source.movedReaders(), "the record may still arrive")
		source.change(func() { source.upTo[jobs] = 3 })
		synctest.Wait()
		source.append(jobs, "e")
		ask()
		require.Empty(t, source.movedReaders(), "a record arrived since the last question")
		source.change(func() { source.lastErr = errors.New("no answer") })
		ask()
		ask()
		require.Empty(t, source.movedReaders())
		source.change(func() { source.lastErr = nil })
		ask()
		ask()
		require.Equal(t, []string{jobs}, source.movedReaders())
		require.Equal(t, []string{" a×1", "1 b×1", "2 c×1", "3 d×1", "4 e×1"}, folded(t, store, jobs))

		source.hole(jobs, 2)
		source.change(func() { source.upTo = map[string]int64{jobs: 6} })
		source.append(jobs, "f")
		for range 5 {
			ask()
		}
		require.Len(t, source.movedReaders(), 2)
		source.change(func() { source.upTo, source.others = map[string]int64{jobs: 7}, false })
		source.append(jobs, "g")
		for range 10 {
			ask()
		}
		require.Len(t, source.movedReaders(), 3, "one move for each end: the new reader may get nothing either")
		require.NoError(t, v.stop())
	})
}

// A reader is not moved too early when answers come late, or several arrive together.
func TestReadersAreNotMovedTooEarly(t *testing.T) {
	begun := time.Now()
	at := &streamEnd{known: true, start: none, last: 9, stall: newStall(), connectedAt: begun}
	position, moved := int64(5), 0
	noteBehind := func(now time.Time) {
		if at.stalled(position, now) {
			moved++
		}
	}
	noteBehind(begun)
	noteBehind(begun.Add(settlesIn / 2))
	require.Zero(t, moved, "the reader has just begun")
	position = 6
	noteBehind(begun.Add(settlesIn))
	noteBehind(begun.Add(settlesIn + behindFor/2))
	require.Zero(t, moved, "a record has just arrived")
	noteBehind(begun.Add(settlesIn + behindFor))
	require.Equal(t, 1, moved)
	position, at.start, at.movedFor = none, 10, none
	noteBehind(begun.Add(time.Minute))
	noteBehind(begun.Add(time.Hour))
	require.Equal(t, 1, moved, "the reader starts behind the end")

	position, at.start, at.stall = 5, none, newStall()
	for after := range moveAgain {
		noteBehind(begun.Add(2*time.Hour + after*time.Second))
		if after*time.Second >= moveAgain {
			break
		}
	}
	require.Equal(t, 2, moved, "the offsets that are left may be a hole")
	noteBehind(begun.Add(2*time.Hour + moveAgain + 2*time.Second))
	noteBehind(begun.Add(2*time.Hour + moveAgain + 3*time.Second))
	require.Equal(t, 3, moved, "the other node may be cut off too")
}

// Readers are also moved while there is no leader that asks more often.
func TestReadersAreMovedWithoutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.others = true
		source.append(jobs, "a", "b")
		source.upTo = map[string]int64{jobs: 0}
		v := follow(t, memoryStore(t), source, &counting{}, journal, jobs)
		time.Sleep(2*askEndsEvery + time.Second)
		require.Equal(t, []string{jobs}, source.movedReaders())
		require.Equal(t, &End{Written: 1}, ends(v, jobs))
		require.NoError(t, v.stop())
	})
}

func TestRecordsDeletedByRetentionAreNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.append(jobs, "a", "b", "c", "d", "e")
		source.forget(jobs, 3)
		source.upTo = map[string]int64{jobs: 2}
		v := follow(t, memoryStore(t), source, &counting{}, journal, jobs)
		synctest.Wait()
		require.Nil(t, ends(v, jobs), "the first offset is unknown")
		source.change(func() { source.upTo[jobs] = 3 })
		synctest.Wait()
		require.Equal(t, &End{Written: 4, Left: 1}, ends(v, jobs))
		source.append(journal, "rewind "+jobs)
		synctest.Wait()
		require.Nil(t, ends(v, jobs), "the stream is not read again yet")
		source.change(func() { source.upTo = nil })
		time.Sleep(time.Second)
		require.Equal(t, &End{Written: 4}, ends(v, jobs))
		require.NoError(t, v.stop())
	})
}

func TestNothingIsLeftBelowStart(t *testing.T) {
	at := &tail{progress: progress{state: stateCatchingUp, position: none, end: streamEnd{known: true, start: 7, last: 9}}}
	end := func() *End { return at.status(time.Now()).End }
	require.Equal(t, &End{Written: 9, Left: 3}, end())
	at.end.last = 6
	require.Equal(t, &End{Written: 6}, end(), "the start is behind the end, so nothing is left")
	at.end.start, at.end.last = 0, 1
	require.Equal(t, &End{Written: 1, Left: 2}, end())
	at.rewind()
	require.Nil(t, end(), "the end may be that of another stream")
}

func TestCostlyEndsAreNotAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.costly = true
		source.append(jobs, "a")
		v := follow(t, memoryStore(t), source, &counting{}, journal, jobs)
		synctest.Wait()
		asked := source.asked()
		time.Sleep(10 * askEndsEvery)
		require.Equal(t, asked, source.asked())
		require.Nil(t, ends(v, jobs))
		require.NoError(t, v.stop())
	})
}
