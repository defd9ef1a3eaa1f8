package broker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
)

// A node that is down gets no member. A member on a node that has left the cluster does not count.
func TestMembers(t *testing.T) {
	nodes := []broker.Node{{Name: "a", Running: true}, {Name: "b"}, {Name: "c", Running: true}, {Name: "d", Running: true}}
	lock := broker.QueueInfo{Name: "jobs.leader", Type: "quorum", Members: []string{"a", "gone"}, Online: []string{"a"}}
	require.True(t, lock.OfMillrace())
	require.Equal(t, 2, lock.MissingMembers(nodes))
	require.Equal(t, []string{"gone"}, lock.StrayMembers(nodes))
	require.Equal(t, []string{"rabbitmq-queues add_member --vhost 'v' 'jobs.leader' c", "rabbitmq-queues add_member --vhost 'v' 'jobs.leader' d",
		"rabbitmq-queues delete_member --vhost 'v' 'jobs.leader' gone"}, lock.MemberCommands("v", nodes))

	stream := broker.QueueInfo{Name: "retries", Type: "stream", Members: []string{"a", "c", "d", "gone"}, Online: []string{"a", "c"}}
	require.Zero(t, stream.MissingMembers(nodes))
	require.Equal(t, 1, stream.MissingOnline(nodes))
	require.Equal(t, []string{"rabbitmq-streams delete_replica --vhost 'v' 'retries' gone (once a node of this name has joined again)"},
		stream.MemberCommands("v", nodes))

	require.Zero(t, broker.QueueInfo{Name: "queue.q", Type: "classic"}.MissingMembers(nodes))
	require.False(t, broker.QueueInfo{Name: "theirs"}.OfMillrace())
}
