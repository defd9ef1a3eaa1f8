package scheduler

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

func nodesOf(running ...string) (nodes []broker.Node) {
	for _, name := range running {
		nodes = append(nodes, broker.Node{Name: name, Running: true})
	}
	return nodes
}

func TestCostOfMissingNode(t *testing.T) {
	nodes := append(nodesOf("rabbit@a", "rabbit@b"), broker.Node{Name: "rabbit@c"})
	queues := []broker.QueueInfo{{Name: "queue.a", Type: "classic", Node: "rabbit@a"}, {Name: "jobs.boot.1", Type: "classic", Node: "rabbit@c"}}
	away := awayNodes(nodes, queues)
	require.Equal(t, []Degraded{{Subject: "node rabbit@c", Node: "rabbit@c", Problem: "the broker says that it does not run",
		Costs: "streams and quorum queues have one replica less"}}, away)
	for _, name := range []string{"f", "e", "d", "c", "b", "a"} {
		queues = append(queues, broker.QueueInfo{Name: wire.QueuePrefix + name, Type: "classic", Node: "rabbit@c"})
	}
	away = awayNodes(nodes, queues)
	require.Equal(t, "jobs for 6 classic queues wait", away[0].Costs, "their names are not public")
	require.Equal(t, "the broker says that it does not run; it has queue.a, queue.b, queue.c, queue.d, queue.e and 1 more", away[0].Problem)
	require.Empty(t, awayNodes(nodesOf("rabbit@a"), queues))
	for _, d := range awayNodes(append(nodesOf("rabbit@a"), broker.Node{Name: "rabbit@b"}, broker.Node{Name: "rabbit@c"}), queues) {
		require.Equal(t, "the nodes that run are no majority, and no jobs are delivered", d.Costs)
	}
}

// A RabbitMQ with a stream that has no leader may not list its queues. The node that is away is
// reported nevertheless.
func TestNodeIsNamedWithoutQueues(t *testing.T) {
	lists, down := true, false
	rabbit := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/api/overview":
			_, _ = w.Write([]byte(`{"rabbitmq_version":"3.10.8","node":"rabbit@a"}`))
		case r.URL.Path == "/api/nodes":
			_, _ = fmt.Fprintf(w, `[{"name":"rabbit@a","running":true},{"name":"rabbit@b","running":%t},{"name":"rabbit@c","running":true}]`, !down)
		case lists:
			_, _ = w.Write([]byte(`[{"name":"queue.mail","type":"classic","node":"rabbit@b","durable":true}]`))
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer rabbit.Close()
	log := slog.New(slog.DiscardHandler)
	mgmt, err := broker.OpenManagement(t.Context(), rabbit.URL, "/", log)
	require.NoError(t, err)
	defer mgmt.Close()
	s := New(Config{Log: log}, nil, nil, nil, mgmt, nil)
	var w clusterWatch
	require.NoError(t, s.lookAtNodes(t.Context(), &w, time.Unix(1, 0)))
	require.Empty(t, s.degraded.list())

	lists, down = false, true
	require.Error(t, s.lookAtNodes(t.Context(), &w, time.Unix(2, 0)))
	require.Equal(t, []Degraded{{Subject: "node rabbit@b", Node: "rabbit@b", Since: time.Unix(2, 0), Costs: "jobs for 1 classic queue wait",
		Problem: "the broker says that it does not run; it has queue.mail"}}, s.degraded.list())
	down = false
	require.Error(t, s.lookAtNodes(t.Context(), &w, time.Unix(3, 0)))
	require.NotContains(t, fmt.Sprint(s.degraded.list()), "rabbit@b")
}

func TestSilentHostsAreNamed(t *testing.T) {
	require.Equal(t, []Degraded{{Subject: "node 127.0.0.12:15672", Node: "127.0.0.12:15672",
		Problem: "its management API does not answer", Costs: "everything has one copy less"}}, silentHosts([]string{"127.0.0.12:15672"}))
}

// The lock is created again only while a new queue gets a member on each node.
func TestClusterIsWhole(t *testing.T) {
	require.True(t, wholeCluster(nodesOf("a", "b", "c")))
	require.False(t, wholeCluster(nodesOf("a")), "it is no cluster")
	for _, third := range []broker.Node{{}, {Running: true, Drained: true}, {Running: true, Partitions: []string{"a"}}} {
		require.False(t, wholeCluster(append(nodesOf("a", "b"), third)), "%+v", third)
	}
}

func TestTwoNodesAreWorseThanOne(t *testing.T) {
	rabbit := broker.FeaturesOf(broker.RabbitMQ, "4.3.6")
	found := clusterFaults(rabbit, "v", nodesOf("a", "b"), nil)
	require.Len(t, found, 1)
	require.Equal(t, "cluster of two nodes", found[0].Subject)
	for _, fine := range [][]Degraded{clusterFaults(rabbit, "v", nodesOf("a"), nil), clusterFaults(rabbit, "v", nodesOf("a", "b", "c"), nil),
		clusterFaults(broker.FeaturesOf(broker.LavinMQ, "2.9.1"), "v", nodesOf("a", "b"), nil)} {
		require.Empty(t, fine)
	}
}

func TestQueuesWithFewMembers(t *testing.T) {
	nodes := nodesOf("a", "b", "c")
	one, all := []string{"a"}, []string{"a", "b", "c"}
	queues := []broker.QueueInfo{
		{Name: wire.Journal, Type: "stream", Members: one, Online: one}, {Name: wire.Retries, Type: "stream", Members: all, Online: one},
		{Name: wire.LeaderInbox, Type: "quorum", Members: one, Online: one}, {Name: "theirs", Type: "quorum", Members: one, Online: one},
		{Name: wire.DeadLetters, Type: "quorum", Members: []string{"a", "b", "gone"}, Online: []string{"a", "b"}},
	}
	found := fewMembers("v", nodes, queues)
	require.Len(t, found, 2)
	require.Equal(t, "replicas of job_journal", found[0].Subject)
	require.Equal(t, "1 replica on 3 nodes; run rabbitmq-streams add_replica --vhost 'v' 'job_journal' b; "+
		"rabbitmq-streams add_replica --vhost 'v' 'job_journal' c", found[0].Problem)
	require.Equal(t, "3 replicas on 3 nodes; run rabbitmq-queues add_member --vhost 'v' 'jobs.letters' c; "+
		"rabbitmq-queues delete_member --vhost 'v' 'jobs.letters' gone", found[1].Problem)
	require.Equal(t, 2, queues[1].MissingOnline(nodes))
	require.Zero(t, queues[1].MissingMembers(nodes))
}

func TestWitnessWithoutItsNode(t *testing.T) {
	stays := []broker.QueueInfo{{Name: broker.WitnessQueue("rabbit@a"), Durable: true},
		{Name: wire.WitnessPrefix + "0123456789abcdef", Durable: true}, {Name: "queue.0badcafe"}}
	left := broker.QueueInfo{Name: wire.WitnessPrefix + "0badcafe", Durable: true}
	older := broker.QueueInfo{Name: wire.WitnessPrefix + "fedcba9876543210"}
	require.Equal(t, []string{left.Name, older.Name}, strayWitnesses(nodesOf("rabbit@a"), append(stays, left, older)))
}

// A sidecar leaves a node without a majority if it has another host. A leader does so only while no
// ping comes back.
func TestSidecarLeavesNodeThatIsCutOff(t *testing.T) {
	require.True(t, isMajority(nodesOf("a", "b")))
	require.False(t, isMajority(append(nodesOf("a"), broker.Node{Name: "b"})))
	s := &Scheduler{services: &services{cfg: Config{Broker: broker.Config{AMQPURL: "amqp://a,b/v"}}}}
	require.False(t, s.leaveNode(), "it has no connection")
	var left error
	s.inTerm(func(why error) { left = why })
	held := newLease(time.Now)
	held.Back(held.Send())
	s.inEpoch(held, nil)
	require.False(t, s.leaveNode(), "the lock is there")
	s.inEpoch(newLease(time.Now), nil)
	require.True(t, s.leaveNode())
	require.ErrorIs(t, left, errResigned)
	s.cfg.Broker.AMQPURL = "amqp://a/v"
	require.False(t, s.leaveNode(), "there is no other host")
}

func TestOnlyLeaderResigns(t *testing.T) {
	var s Scheduler
	require.False(t, s.resignFor(errSmallLock))
	var got error
	s.inEpoch(nil, func(why error) { got = why })
	require.True(t, s.resignFor(errSmallLock))
	require.Equal(t, errSmallLock, got)
}
