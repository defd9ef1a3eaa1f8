package millrace

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// An answer that comes after the time limit is dropped.
func TestLateAnswerIsForgotten(t *testing.T) {
	p := &publisher{asked: map[string]chan []byte{}, silent: make(chan struct{}), unheard: errLost, listening: make(chan struct{})}
	close(p.listening)
	ask := func(id string) *answer {
		reply, err := p.expect(t.Context(), id)
		require.NoError(t, err)
		return &answer{p: p, id: id, reply: reply}
	}
	first, second := ask("1"), ask("2")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := first.answered(over)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, p.forget("1"))
	p.forget("2") <- []byte("run")
	body, err := second.answered(t.Context())
	require.NoError(t, err)
	require.Equal(t, "run", string(body))
	require.Empty(t, p.asked)

	third := ask("3")
	close(p.silent)
	_, err = third.answered(t.Context())
	require.ErrorIs(t, err, errLost)
	require.Empty(t, p.asked)
}
