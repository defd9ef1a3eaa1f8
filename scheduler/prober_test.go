package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// A probe comes back while jobs.gated cannot be reached. That does not show that the routing is
// broken, so no job is fired again for it. A probe that comes back otherwise does show that.
func TestProbeThatComesBackWhileGatedIsAway(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	s, conn := runner(t, v)
	_, err := conn.Topology().Assert(t.Context())
	require.NoError(t, err)
	require.NoError(t, conn.Topology().EnsureRouting(t.Context()))
	claim, err := conn.Lock(t.Context())
	require.NoError(t, err)
	l := newLeadership(s, conn, newCandidate(claim, conn.User(), newResponder(s.cfg.Broker, s.log), s.log))
	l.core = newCore(s.entries, l.pub, l.setup(t.Context()))
	l.core.unrouted.on = true // this test needs no fires that found no queue

	broken, err := l.prober.check(t.Context())
	require.NoError(t, err)
	require.NoError(t, broken, "the routing is intact")

	require.NoError(t, v.Channel(t).QueueUnbind(wire.Gated, "", wire.Unrouted, nil))
	v.SetQueueState(t, wire.Gated, "crashed")
	broken, err = l.prober.check(t.Context())
	require.NoError(t, broken, "jobs.gated is away")
	require.True(t, broker.IsAway(err), "%v", err)

	v.SetQueueState(t, wire.Gated, "live")
	broken, err = l.prober.check(t.Context())
	require.NoError(t, err)
	require.True(t, broker.IsUnroutable(broken), "%v", broken)
}
