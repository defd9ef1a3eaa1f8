package view

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// ends are where a view says that streams end.
func ends(v *following, stream string) *End {
	for _, s := range v.Status() {
		if s.Stream == stream {
			return s.End
		}
	}
	return nil
}

func TestWhatIsLeftOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.append(jobs, "a", "b", "c", "d", "e")
		source.upTo = map[string]int64{jobs: 2}
		store := memoryStore(t)
		v := follow(t, store, source, &counting{}, journal, jobs)
		synctest.Wait()
		require.Equal(t, &End{Written: -1}, ends(v, journal), "an empty stream")
		require.Equal(t, &End{Written: 4, Left: 2}, ends(v, jobs), "as it was when the reader began")

		source.append(jobs, "f")
		time.Sleep(askEndsEvery + time.Second)
		require.Equal(t, &End{Written: 5, Left: 3}, ends(v, jobs), "the reader is stuck, and does not know of it")

		source.change(func() { source.upTo = nil })
		source.append(jobs, "g")
		synctest.Wait()
		require.Equal(t, &End{Written: 6}, ends(v, jobs), "what is folded was written, whatever the broker said before")

		source.change(func() { source.lastErr = errors.New("no answer") })
		time.Sleep(askEndsEvery)
		require.Nil(t, ends(v, jobs))
		source.change(func() { source.lastErr = nil })
		time.Sleep(askEndsEvery)
		require.Equal(t, &End{Written: 6}, ends(v, jobs))
		require.NoError(t, v.stop())
		require.Nil(t, ends(v, jobs), "nobody reads it")
	})
}

func TestWhatRetentionTookIsNotLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newMemory(journal, jobs)
		source.append(jobs, "a", "b", "c", "d", "e")
		source.forget(jobs, 3)
		source.upTo = map[string]int64{jobs: 2}
		v := follow(t, memoryStore(t), source, &counting{}, journal, jobs)
		synctest.Wait()
		require.Nil(t, ends(v, jobs), "it begins somewhere")
		source.change(func() { source.upTo[jobs] = 3 })
		synctest.Wait()
		require.Equal(t, &End{Written: 4, Left: 1}, ends(v, jobs))
		source.append(journal, "rewind "+jobs)
		synctest.Wait()
		require.Nil(t, ends(v, jobs), "it is not read yet")
		source.change(func() { source.upTo = nil })
		time.Sleep(time.Second)
		require.Equal(t, &End{Written: 4}, ends(v, jobs))
		require.NoError(t, v.stop())
	})
}

func TestNothingIsLeftBelowTheStart(t *testing.T) {
	at := &tail{connected: true, lastKnown: true, start: 7, last: 9, position: none}
	require.Equal(t, &End{Written: 9, Left: 3}, at.end())
	at.last = 6
	require.Equal(t, &End{Written: 6}, at.end(), "all that there is was settled long ago")
	at.start, at.last = 0, 1
	require.Equal(t, &End{Written: 1, Left: 2}, at.end())
	at.rewind()
	require.Nil(t, at.end(), "it may be another stream")
}

func TestEndsAreNotAskedForWhereThatIsCostly(t *testing.T) {
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
