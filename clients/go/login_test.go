package millrace

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A call that has not returned is not repeated, even if several attempts to connect give up on it.
func TestHangingCredentialsAreCalledOnce(t *testing.T) {
	var calls atomic.Int32
	answer := make(chan struct{})
	hosts, err := newHosts([]string{"amqp://127.0.0.1:1"}, login{credentials: func(context.Context) (string, string, error) {
		calls.Add(1)
		<-answer
		return "ann", "secret", nil
	}})
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		_, err = hosts.dial(over, "test")
		require.ErrorContains(t, err, "credentials: no answer")
	}
	require.Eventually(t, func() bool { return calls.Load() > 0 }, time.Minute, time.Millisecond)
	require.EqualValues(t, 1, calls.Load())

	close(answer)
	auth, err := hosts.ask(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ann secret", auth.Username+" "+auth.Password)
}
