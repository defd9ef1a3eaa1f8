package brokertest

import (
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

// Sync has the broker put on disk which streams there are. RabbitMQ 3.10 that is killed within moments of its very first stream forgets
// how to start that stream.
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
