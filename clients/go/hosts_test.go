package millrace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The error about a malformed URL does not have its password.
func TestInvalidURLs(t *testing.T) {
	for _, u := range []string{"amqp://ann:sec%ret@a", "amqp://ann:sec/ret@a", "amqp://ann:secret@a/%zz", "amqp://ann:secret@a:x"} {
		_, err := NewClient(ClientConfig{URL: u})
		require.Error(t, err, u)
		require.NotContains(t, err.Error(), "sec", u)
		require.Equal(t, err, NewWorker(WorkerConfig{URLs: []string{u}}).Run(t.Context()))
	}
}

func TestDefaultURL(t *testing.T) {
	t.Parallel()
	c, err := NewClient(ClientConfig{})
	require.NoError(t, err)
	require.Equal(t, []string{"amqp://guest:guest@127.0.0.1:5672/"}, c.hosts.urls)
	require.Equal(t, c.hosts.urls, NewWorker(WorkerConfig{}).hosts.urls)
	require.NoError(t, WorkerConfig{}.Check())
}
