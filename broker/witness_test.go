package broker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// patience is how long a node may take to return its witness.
const patience = 2 * time.Second

// The queue of a witness outlives a restart of its node, and the witness in it does not, however
// the node ends. Other connections do not affect it.
func TestWitnessEndsWithItsNode(t *testing.T) {
	t.Parallel()
	v := brokertest.Own(t)
	if v.Features(t).OneNodeServes {
		t.Skip("this broker's witness is a queue")
	}
	const node = "rabbit@node"
	conn := dial(t, v.AMQPURL())
	id, err := conn.Witnesses().ID(soon(t), node, 0, patience)
	require.NoError(t, err)
	require.Empty(t, id, "there is no queue yet")
	for name, end := range map[string]func(testing.TB){"killed": v.Kill, "stopped": v.Stop} {
		require.NoError(t, conn.Witnesses().DeclareQueue(soon(t), node))
		id, err = conn.Witnesses().ID(soon(t), node, 0, patience)
		require.NoError(t, err)
		require.Empty(t, id, name)
		require.NoError(t, conn.Witnesses().Make(soon(t), node, "first"))
		require.NoError(t, conn.Witnesses().Make(soon(t), node, "second"))
		require.NoError(t, conn.Close())
		for range 3 {
			conn = dial(t, v.AMQPURL())
			id, err = conn.Witnesses().ID(soon(t), node, 0, patience)
			require.NoError(t, err)
			require.Equal(t, "second", id)
		}
		exists, err := conn.Queues().Exists(soon(t), broker.WitnessQueue(node))
		require.NoError(t, err)
		require.True(t, exists)

		v.Sync(t)
		end(t)
		v.Restart(t)
		conn = dial(t, v.AMQPURL())
		id, err = conn.Witnesses().ID(soon(t), node, 0, patience)
		require.NoError(t, err)
		require.Empty(t, id, "its node was %s", name)
	}
}

// Another sidecar may hold a witness for a moment. A queue that does not answer is no lost witness.
func TestWitnessThatIsNotSeen(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	const node = "rabbit@held"
	conn := dial(t, v.AMQPURL())
	require.NoError(t, conn.Witnesses().DeclareQueue(soon(t), node))
	require.NoError(t, conn.Witnesses().Make(soon(t), node, "x"))
	holds := v.Channel(t)
	d, found, err := holds.Get(broker.WitnessQueue(node), false)
	require.NoError(t, err)
	require.True(t, found)
	id, err := conn.Witnesses().ID(soon(t), node, 0, patience)
	require.NoError(t, err)
	require.Empty(t, id)
	time.AfterFunc(300*time.Millisecond, func() { _ = d.Reject(true) })
	id, err = conn.Witnesses().ID(soon(t), node, time.Minute, patience)
	require.NoError(t, err)
	require.Equal(t, "x", id)

	v.SuspendQueue(t, broker.WitnessQueue(node), 5*time.Second)
	_, err = conn.Witnesses().ID(soon(t), node, time.Minute, patience)
	require.ErrorIs(t, err, broker.ErrSilent)
	brokertest.Eventually(t, func() bool {
		id, err := conn.Witnesses().ID(soon(t), node, 0, patience)
		return err == nil && id == "x"
	}, "it answers again")
}

func TestQueueOnNode(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	mgmt, err := broker.OpenManagement(t.Context(), v.ManagementURL(), v.Name, nil)
	require.NoError(t, err)
	defer mgmt.Close()
	if mgmt.Features().OneNodeServes {
		t.Skip("this broker works as one node")
	}
	nodes, err := mgmt.Nodes(t.Context())
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	name := broker.WitnessQueue(nodes[0].Name)
	require.NoError(t, mgmt.DeclareQueueOn(t.Context(), name, nodes[0].Name))
	require.NoError(t, mgmt.DeclareQueueOn(t.Context(), name, nodes[0].Name), "the second declaration changes nothing")
	queueWith(t, mgmt, name, func(q broker.QueueInfo) bool { return q.Durable && q.Type == "classic" && q.Node == nodes[0].Name })
	require.NoError(t, dial(t, v.AMQPURL()).Witnesses().DeclareQueue(soon(t), nodes[0].Name), "AMQP and the API declare the same queue")
}
