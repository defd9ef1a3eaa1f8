package brokertest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// CanKill says whether the broker is a node that this process started. One that others in this
// process share can be killed too, but rather use Own.
func (v *Vhost) CanKill() bool { return v.server.node != nil }

// Node is the node itself, to stop, start, kill and ask. The test is skipped if it is not ours.
func (v *Vhost) Node(t testing.TB) *localbroker.Broker {
	t.Helper()
	if !v.CanKill() {
		t.Skip("this test needs a broker that it may kill: install the RabbitMQ package")
	}
	return v.server.node
}

// Kill kills the broker (SIGKILL). Confirmed persistent messages stay.
func (v *Vhost) Kill(t testing.TB) {
	t.Helper()
	require.NoError(t, v.Node(t).Kill())
}

// Stop stops the broker in an orderly way.
func (v *Vhost) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, v.Node(t).Stop(t.Context()))
}

// Restart starts the broker again after Kill or Stop and waits until it can be used.
func (v *Vhost) Restart(t testing.TB) {
	t.Helper()
	require.NoError(t, v.Node(t).Restart(t.Context()))
}

// Sync has the broker put on disk which streams and quorum queues there are. RabbitMQ 3.10 that is
// killed within half a second of making one forgets how to start it: the queue stands, and never
// gets a leader.
func (v *Vhost) Sync(t testing.TB) {
	t.Helper()
	if v.Node(t).HasErlang() {
		v.Eval(t, "[dets:sync(T) || T <- dets:all()].")
	}
}

// Eval evaluates an Erlang expression on the broker.
func (v *Vhost) Eval(t testing.TB, expr string) string {
	t.Helper()
	out, err := v.Node(t).Eval(t.Context(), expr)
	require.NoError(t, err)
	return out
}

// SetQueueState has RabbitMQ take a queue for one in that state: "crashed" makes it answer as a queue whose process is gone for good, "live"
// ends that. Its process runs on.
func (v *Vhost) SetQueueState(t testing.TB, queue, state string) {
	t.Helper()
	v.Eval(t, fmt.Sprintf(`begin N = rabbit_misc:r(<<"%s">>, queue, <<"%s">>), F = fun(Q) -> amqqueue:set_state(Q, %s) end,
		case code:ensure_loaded(rabbit_db_queue) of
			{module, _} -> rabbit_db_queue:update(N, F);
			_ -> rabbit_misc:execute_mnesia_transaction(fun() -> rabbit_amqqueue:update(N, F) end)
		end end.`, v.Name, queue, state))
}
