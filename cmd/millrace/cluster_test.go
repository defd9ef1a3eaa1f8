package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/flags"
	"github.com/millrace-jobs/millrace/internal/localbroker"
	"github.com/millrace-jobs/millrace/wire"
)

// A sidecar that knows all nodes of a cluster, with their AMQP hosts and management API, loses the
// one that it is connected to.
func TestSidecarSurvivesLossOfItsNode(t *testing.T) {
	if err := localbroker.Available(); err != nil {
		t.Skip(err)
	}
	c, err := localbroker.StartCluster(t.Context(), localbroker.ClusterConfig{Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	var amqpURLs, managementURLs []string
	for _, n := range c.Nodes {
		amqpURLs, managementURLs = append(amqpURLs, n.AMQPURL()), append(managementURLs, n.ManagementURL())
	}
	settings := sidecarSettings{Broker: flags.Broker{AMQP: flags.AMQP{AMQPURL: strings.Join(amqpURLs, ",")},
		ManagementURL: strings.Join(managementURLs, ",")}}
	settings.Auth = "none"
	m, err := broker.OpenManagement(t.Context(), managementURLs[0], "/", nil)
	require.NoError(t, err)
	defer m.Close()
	misplaced := broker.WitnessQueue("millrace2@localhost")
	require.NoError(t, m.DeclareQueueOn(t.Context(), misplaced, "millrace1@localhost"))

	s := start(t, settings)
	s.leads(t)
	s.ready(t)
	q, there := queueNamed(t, m, misplaced)
	require.True(t, there)
	require.Equal(t, "millrace2@localhost", q.Node, "a witness on another node would not end with its own")
	require.Contains(t, s.log.String(), "protocol=native")

	for i, node := range c.Nodes { // one after the other: the sidecar has had something on each of them
		require.NoError(t, node.Kill())
		begun := time.Now()
		var jid string
		brokertest.Eventually(t, func() bool {
			r := millrace(t, "schedule", "Mail", "--in", "1h", "--amqp-url", settings.AMQPURL)
			jid = strings.TrimSpace(r.out)
			return r.code == 0
		}, "a job is scheduled through a node that lives")
		brokertest.Eventually(t, func() bool {
			return millrace(t, append([]string{"scheduled", "show", jid}, s.flags...)...).code == 0
		}, "the sidecar has read it")
		s.ready(t)
		t.Logf("read after %s", time.Since(begun))
		name := fmt.Sprintf("millrace%d@localhost", i+1)
		s.names(t, name)
		require.NoError(t, node.Restart(t.Context()))
		s.leads(t)
		s.namesNo(t, name)
	}
	t.Run("a node that is new", func(t *testing.T) { nodeIsNew(t, c, m, s, settings) })
}

// nodeIsNew removes the members of the lock and of the dead letters from a node, as if it were new,
// and adds the witness of a node that is gone.
func nodeIsNew(t *testing.T, c *localbroker.Cluster, m *broker.Management, s *running, settings sidecarSettings) {
	first, last := c.Nodes[0], c.Nodes[2]
	gone := broker.WitnessQueue("rabbit@gone")
	require.NoError(t, m.DeclareQueueOn(t.Context(), gone, "millrace1@localhost"))
	require.NoError(t, last.Kill())
	for _, queue := range []string{wire.LeaderInbox, wire.DeadLetters} {
		_, err := first.Eval(t.Context(), fmt.Sprintf(`ok = rabbit_quorum_queue:delete_member(<<"/">>, <<"%s">>, 'millrace3@localhost').`, queue))
		require.NoError(t, err)
	}
	s.names(t, "millrace3@localhost")
	require.NoError(t, last.Restart(t.Context()))
	brokertest.Eventually(t, func() bool {
		lock, _ := queueNamed(t, m, wire.LeaderInbox)
		return len(lock.Members) == 3
	}, "the leader makes the lock again")
	s.leads(t)
	brokertest.Eventually(t, func() bool {
		_, there := queueNamed(t, m, gone)
		return !there
	}, "it deletes a witness that has no node")

	command := "rabbitmq-queues add_member --vhost '/' 'jobs.letters' millrace3@localhost"
	brokertest.Eventually(t, func() bool { return strings.Contains(s.attention(t), command) }, "what holds messages is left to the operator")
	require.Contains(t, millrace(t, "doctor", "--amqp-url", settings.AMQPURL, "--management-url", settings.ManagementURL).out, command)
	require.Equal(t, 1, strings.Count(s.log.String(), "deleted jobs.leader"), "it is one change of leader")
}

func queueNamed(t *testing.T, m *broker.Management, name string) (q broker.QueueInfo, there bool) {
	t.Helper()
	queues, err := m.Queues(t.Context())
	require.NoError(t, err)
	at := slices.IndexFunc(queues, func(q broker.QueueInfo) bool { return q.Name == name })
	if at < 0 {
		return q, false
	}
	return queues[at], true
}

func (r *running) attention(t *testing.T) string {
	t.Helper()
	return millrace(t, append([]string{"attention"}, r.flags...)...).out
}

// names requires that the sidecar names an unavailable node in each of its answers.
func (r *running) names(t *testing.T, node string) {
	t.Helper()
	brokertest.Eventually(t, func() bool { return strings.Contains(r.body(t, "/readyz"), `"node":"`+node+`"`) }, "/readyz names %s", node)
	brokertest.Eventually(t, func() bool { return strings.Contains(r.attention(t), "while node "+node+" is away") }, "attention names it")
	require.Contains(t, r.log.String(), "node="+node)
}

// namesNo requires that the sidecar names it no longer.
func (r *running) namesNo(t *testing.T, node string) {
	t.Helper()
	brokertest.Eventually(t, func() bool { return !strings.Contains(r.body(t, "/readyz"), node) }, "/readyz does not name %s any more", node)
	brokertest.Eventually(t, func() bool { return !strings.Contains(r.attention(t), "while node "+node+" is away") }, "nor does attention")
	require.Contains(t, r.log.String(), `no longer degraded" subject="node `+node)
}
