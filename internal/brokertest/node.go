package brokertest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// CanKill reports whether the broker is a node that this process started. Tests should kill one
// from Own, and not one that other tests share.
func (v *Vhost) CanKill() bool { return v.server.node != nil }

// Node returns the node, to stop, start, kill and query it. It skips the test if this process has
// not started the node.
func (v *Vhost) Node(t testing.TB) *localbroker.Broker {
	t.Helper()
	if !v.CanKill() {
		t.Skip("this test needs a broker that it may kill: install the RabbitMQ package")
	}
	return v.server.node
}

// Kill kills the broker (SIGKILL). Confirmed persistent messages survive.
func (v *Vhost) Kill(t testing.TB) {
	t.Helper()
	require.NoError(t, v.Node(t).Kill())
}

// Stop stops the broker in an orderly way.
func (v *Vhost) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, v.Node(t).Stop(t.Context()))
}

// Restart starts the broker again after Kill or Stop, and waits until it can be used.
func (v *Vhost) Restart(t testing.TB) {
	t.Helper()
	require.NoError(t, v.Node(t).Restart(t.Context()))
}

// Sync makes the broker write to disk which streams and quorum queues exist. A RabbitMQ 3.10 that
// is killed within half a second of declaring one forgets how to start it: the queue exists, but
// never gets a leader.
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

// SetQueueState makes RabbitMQ treat a queue as being in that state. With "crashed" it answers as
// for a queue with a process that is permanently gone; "live" ends that. The queue's process keeps
// running.
func (v *Vhost) SetQueueState(t testing.TB, queue, state string) {
	t.Helper()
	v.Eval(t, fmt.Sprintf(`begin N = rabbit_misc:r(<<"%s">>, queue, <<"%s">>), F = fun(Q) -> amqqueue:set_state(Q, %s) end,
		case code:ensure_loaded(rabbit_db_queue) of
			{module, _} -> rabbit_db_queue:update(N, F);
			_ -> rabbit_misc:execute_mnesia_transaction(fun() -> rabbit_amqqueue:update(N, F) end)
		end end.`, v.Name, queue, state))
}

// SuspendQueue suspends the process of a queue for a while, and returns when that began.
func (v *Vhost) SuspendQueue(t testing.TB, queue string, d time.Duration) time.Time {
	t.Helper()
	said := v.Eval(t, fmt.Sprintf(`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"%s">>, queue, <<"%s">>)), Pid = amqqueue:get_pid(Q),
		spawn(fun() -> sys:suspend(Pid), timer:sleep(%d), sys:resume(Pid) end), erlang:system_time(millisecond).`,
		v.Name, queue, d.Milliseconds()))
	at, err := strconv.ParseInt(said, 10, 64)
	require.NoError(t, err)
	return time.UnixMilli(at)
}
