//go:build plugin

package plugintest

import (
	"flag"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	kills    = flag.Int("kills", 0, "kill sidecars and nodes so often while delayed messages fall due. TestKills is left out if this is 0")
	messages = flag.Int("messages", 20_000, "how many messages TestKills publishes")
)

const (
	delivering = 100 // messages that a sidecar publishes at the same time

	// In this time the broker writes acknowledgements, on a slow machine. RabbitMQ writes those of
	// a classic queue every 0.2 seconds. Killed before that, it delivers what was acknowledged
	// again.
	unwritten = 500 * time.Millisecond
)

// TestKills kills sidecars, and then nodes, while an application publishes to a delayed exchange,
// and receives. It counts by names that the application gives its messages.
func TestKills(t *testing.T) {
	if *kills == 0 {
		t.Skip("-kills kills")
	}
	t.Run("one node", func(t *testing.T) { testKills(t, []*node{start(t, "millrace.vhosts.1 = /\n")}) })
	t.Run("three nodes", func(t *testing.T) { testKills(t, startCluster(t)) })
}

func testKills(t *testing.T, nodes []*node) {
	t.Helper()
	for _, n := range nodes {
		n.await(t, "/")
	}
	l := &delayedLoad{count: *messages, over: time.Minute, longest: 2 * time.Minute}
	l.start(t, nodes)
	open := 0 // messages that may come again
	for range *kills {
		l.comes(t)
		for _, pid := range nodes[rand.IntN(len(nodes))].sidecars(t) {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		open += delivering
	}
	for range *kills {
		l.comes(t)
		n := nodes[rand.IntN(len(nodes))]
		since := time.Now().Add(-unwritten)
		require.NoError(t, n.Kill())
		open += len(nodes)*delivering + prefetched + l.since(since)
		time.Sleep(rand.N(time.Second))
		require.NoError(t, n.Restart(t.Context()))
	}
	l.publisher.Wait()
	require.LessOrEqual(t, l.arrive(t), open)
}
