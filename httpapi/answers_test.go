package httpapi

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSlowAnswersAreComputedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answerCache
		made := 0
		ask := func(key string, takes time.Duration) any {
			answer, err := a.get(t.Context(), key, 0, func(context.Context) (any, error) {
				made++
				time.Sleep(takes)
				return made, nil
			})
			require.NoError(t, err)
			return answer
		}
		var viewers sync.WaitGroup
		for range 10 {
			viewers.Go(func() { require.Equal(t, 1, ask("dear", time.Second)) })
		}
		viewers.Wait()
		require.Equal(t, 1, ask("dear", time.Second), "for a while")
		require.Equal(t, 2, ask("other", time.Second))
		time.Sleep(keepFactor * time.Second)
		require.Equal(t, 3, ask("dear", time.Second))
		require.Equal(t, 4, ask("cheap", time.Millisecond))
		require.Equal(t, 5, ask("cheap", time.Millisecond))
		for range 2 {
			answer, err := a.get(t.Context(), "least", time.Minute, func(context.Context) (any, error) { made++; return made, nil })
			require.NoError(t, err)
			require.Equal(t, 6, answer, "cheap, and still cached")
		}
		_, err := a.get(t.Context(), "x", 0, func(context.Context) (any, error) { return nil, errors.New("no") })
		require.Error(t, err)
		for i := range 3 * maxAnswers {
			ask(string(rune('a'+i)), 20*time.Millisecond)
			require.LessOrEqual(t, len(a.kept), maxAnswers)
		}
	})
}
