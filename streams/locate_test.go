package streams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNodesWithRole(t *testing.T) {
	at := located{leader: "a:1", replicas: []string{"b:1", "c:1"}}
	require.Equal(t, []string{"b:1", "c:1", "a:1"}, at.nodes(anyReplica))
	require.Equal(t, []string{"a:1"}, at.nodes(leader))
	alone, headless := located{leader: "a:1"}, located{replicas: []string{"b:1"}}
	for _, test := range []struct {
		at           located
		node         string
		reads, leads bool
	}{
		{at, "a:1", true, true},
		{at, "b:1", true, false},
		{at, "d:1", false, false},
		{at, "", false, false},
		{alone, "", true, true},
		{headless, "b:1", true, false},
		{located{}, "", false, false},
	} {
		require.Equal(t, test.reads, test.at.suits(test.node, anyReplica), test)
		require.Equal(t, test.leads, test.at.suits(test.node, leader), test)
	}
}

func TestLeaderIsAsked(t *testing.T) {
	b := newTestBroker(t)
	if !b.hasNative(t) {
		return
	}
	stream := b.stream(t)
	tr := transportCases[0].open(t, b, Config{}).(*choice).native
	for range 2 { // on a new connection, and on the one that was kept
		require.NoError(t, tr.askLeader(t.Context(), stream, func(l *link) error {
			at, err := l.locate(stream)
			require.NoError(t, err)
			require.NotEmpty(t, l.node, "the broker says which node this is")
			require.Equal(t, located{leader: l.node}, at)
			return nil
		}))
	}
	require.Len(t, tr.links.idle, 1)
	require.ErrorIs(t, tr.askLeader(t.Context(), "none", func(*link) error { return nil }), ErrNoStream)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, tr.askLeader(ctx, stream, func(*link) error { return nil }), context.Canceled)
	require.NoError(t, tr.Close())
	require.ErrorIs(t, tr.askLeader(t.Context(), stream, func(*link) error { return nil }), ErrLost)
}
