package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
)

func node(name, version string, running bool) broker.Node {
	return broker.Node{Name: name, Version: version, Running: running, NetTickTime: 15}
}

// three is a healthy cluster of a version.
func three(version string) []broker.Node {
	return []broker.Node{node("rabbit@a", version, true), node("rabbit@b", version, true), node("rabbit@c", version, true)}
}

func TestFindingsAboutClusters(t *testing.T) {
	all := []string{"rabbit@a", "rabbit@b", "rabbit@c"}
	stream := func(members, online []string) broker.QueueInfo {
		return broker.QueueInfo{Name: "job_journal", Type: "stream", Members: members, Online: online}
	}
	partitions := "note partitions"
	for name, c := range map[string]struct {
		version string
		nodes   []broker.Node
		queues  []broker.QueueInfo
		byType  string
		want    []string // severity and subject, in order
		says    string   // in the first text or remedy
	}{
		"one node":     {"3.10.8", three("3.10.8")[:1], []broker.QueueInfo{stream(all[:1], all[:1])}, "", nil, ""},
		"one node, 4":  {"4.3.6", three("4.3.6")[:1], nil, "classic", nil, ""},
		"fine, 3.10":   {"3.10.8", three("3.10.8"), []broker.QueueInfo{stream(all, all)}, "", []string{partitions}, "rabbitmqctl eval 'application:get_env(rabbit, cluster_partition_handling).'"},
		"fine, 4.3":    {"4.3.6", three("4.3.6"), []broker.QueueInfo{stream(all, all)}, "quorum", []string{"note queue types"}, "x-max-priority are refused"},
		"classic, 4.3": {"4.3.6", three("4.3.6"), nil, "classic", []string{"note queue types"}, "rabbitmqctl update_vhost_metadata '/' --default-queue-type quorum"},
		"quorum is the default, without priorities": {"4.0.1", three("4.0.1")[:1], nil, "quorum", []string{"note queue types"},
			"rabbitmqctl update_vhost_metadata '/' --default-queue-type classic"},
		"two nodes": {"4.3.6", three("4.3.6")[:2], []broker.QueueInfo{stream(all[:2], all[:2])}, "quorum", []string{"note queue types", "note cluster"}, ""},
		"a node is down": {"4.3.6", []broker.Node{node("rabbit@a", "4.3.6", true), node("rabbit@b", "", false), node("rabbit@c", "4.3.6", true)},
			[]broker.QueueInfo{stream(all, []string{"rabbit@a", "rabbit@c"})}, "quorum", []string{"note queue types", "FAIL node rabbit@b", "note job_journal"}, ""},
		"no majority": {"4.3.6", three("4.3.6"), []broker.QueueInfo{stream(all, all[:1])}, "quorum", []string{"note queue types", "FAIL job_journal"}, ""},
		"two of four are no majority": {"4.3.6", append(three("4.3.6"), node("rabbit@d", "4.3.6", true)), []broker.QueueInfo{stream(append(all, "rabbit@d"), all[:2])}, "quorum",
			[]string{"note queue types", "FAIL job_journal"}, ""},
		"upgrading":           {"4.3.6", append(three("4.3.6")[:2], node("rabbit@c", "4.3.5", true)), nil, "quorum", []string{"note queue types", "note versions"}, ""},
		"theirs":              {"4.3.6", three("4.3.6"), []broker.QueueInfo{{Name: "theirs", Type: "stream", Members: all[:1], Online: all[:1]}}, "quorum", []string{"note queue types"}, ""},
		"no figures yet":      {"4.3.6", three("4.3.6"), []broker.QueueInfo{stream(nil, nil)}, "quorum", []string{"note queue types"}, ""},
		"a cluster that grew": {"3.10.8", three("3.10.8"), []broker.QueueInfo{stream(all[:1], all[:1])}, "", []string{partitions, "FAIL job_journal"}, ""},
		"homes": {"3.10.8", three("3.10.8"), []broker.QueueInfo{
			{Name: "queue.b", Type: "classic", Node: "rabbit@b"}, {Name: "queue.a", Type: "classic", Node: "rabbit@b"}, {Name: "queue.c", Type: "classic", Node: "rabbit@a"}}, "",
			[]string{partitions, "note node rabbit@a", "note node rabbit@b"}, ""},
		"mirrored": {"3.10.8", three("3.10.8"), []broker.QueueInfo{
			{Name: "queue.a", Type: "classic", Node: "rabbit@a", Policy: "ha", Mirrored: true}}, "",
			[]string{partitions, "FAIL queue.a", "note node rabbit@a"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			visit := cluster{features: broker.FeaturesOf(broker.RabbitMQ, c.version), vhost: "/", defaultType: c.byType, nodes: c.nodes, queues: c.queues}
			found := visit.findings()
			var got []string
			for _, f := range found {
				got = append(got, string(f.severity)+" "+f.subject)
			}
			require.Equal(t, c.want, got)
			if c.says != "" {
				require.Contains(t, found[0].text+found[0].remedy, c.says)
			}
		})
	}
}

// Each finding names the command that fixes it.
func TestFindingsAboutReplicas(t *testing.T) {
	c := cluster{features: broker.FeaturesOf(broker.RabbitMQ, "4.3.6"), vhost: "v", nodes: append(three("4.3.6"), node("rabbit@d", "4.3.6", true))}
	c.nodes[1].Running = false
	one := []string{"rabbit@a"}
	found := c.replicas(&broker.QueueInfo{Name: "retries", Type: "stream", Members: one, Online: one})
	require.Len(t, found, 1)
	require.Equal(t, "has 1 replica on a cluster of 4 nodes: rabbit@a", found[0].text)
	require.Equal(t, "rabbitmq-streams add_replica --vhost 'v' 'retries' rabbit@c\nrabbitmq-streams add_replica --vhost 'v' 'retries' rabbit@d", found[0].remedy,
		"a node that is down gets none")
	found = c.replicas(&broker.QueueInfo{Name: "queue.it's", Type: "quorum", Members: []string{"rabbit@a", "rabbit@c"}, Online: one})
	require.Len(t, found, 2)
	require.Equal(t, `rabbitmq-queues add_member --vhost 'v' 'queue.it'\''s' rabbit@d`, found[0].remedy)
	require.Equal(t, finding{failure, "queue.it's", "has no majority: its replicas on rabbit@c are not online", "start these nodes"}, found[1])
	require.Empty(t, c.replicas(&broker.QueueInfo{Name: "queue.c", Type: "classic"}))

	found = c.replicas(&broker.QueueInfo{Name: "jobs.leader", Type: "quorum", Members: one, Online: one})
	require.Equal(t, note, found[0].severity, "the leader fixes it")
	require.NotContains(t, found[0].remedy, "add_member")
	found = c.replicas(&broker.QueueInfo{Name: "jobs.letters", Type: "quorum", Members: []string{"rabbit@a", "rabbit@c", "rabbit@d", "rabbit@x"},
		Online: []string{"rabbit@a", "rabbit@c", "rabbit@d"}})
	require.Contains(t, found[0].text, "no node of the cluster: rabbit@x")
	require.Equal(t, "rabbitmq-queues delete_member --vhost 'v' 'jobs.letters' rabbit@x", found[0].remedy)

	c.nodes[0].NetTickTime = 60
	found = c.members()
	require.Equal(t, "net_ticktime", found[len(found)-1].subject)
	require.Contains(t, found[len(found)-1].text, "after up to 75 seconds")
}

// The time for which the lock stays with a lost node is an argument of its queue, or of a policy.
func TestFindingsAboutLock(t *testing.T) {
	lock := func(argument, policy any) *broker.QueueInfo {
		q := &broker.QueueInfo{Name: "jobs.leader", Type: "quorum", Arguments: map[string]any{}, Definition: map[string]any{}}
		if argument != nil {
			q.Arguments["x-consumer-disconnected-timeout"] = argument
		}
		if policy != nil {
			q.Definition["consumer-disconnected-timeout"] = policy
		}
		return q
	}
	c := cluster{features: broker.FeaturesOf(broker.RabbitMQ, "4.3.6"), vhost: "v", nodes: three("4.3.6")}
	require.Empty(t, c.disconnected(lock(3500.0, nil)))
	require.Empty(t, c.disconnected(lock(nil, 3500.0)))
	require.Empty(t, c.disconnected(&broker.QueueInfo{Name: "jobs.letters", Type: "quorum"}))
	found := c.disconnected(lock(nil, nil))
	require.Contains(t, found[0].text, "no jobs are delivered for 1m0s")
	require.Equal(t, `rabbitmqctl set_policy --vhost 'v' --priority 10 --apply-to quorum_queues millrace-leader '^jobs\.leader$' '{"consumer-disconnected-timeout":3500}'`,
		found[0].remedy)
	require.Contains(t, c.disconnected(lock(nil, 1000.0))[0].text, "two sidecars may deliver jobs")
	require.Contains(t, c.disconnected(lock(60000.0, nil))[0].remedy, "delete_queue --vhost 'v' jobs.leader")
	c.features = broker.FeaturesOf(broker.RabbitMQ, "4.2.0")
	require.Empty(t, c.disconnected(lock(nil, nil)), "older brokers have no such setting")
}

func TestDoctorNamesNodeOfLeader(t *testing.T) {
	c := cluster{queues: []broker.QueueInfo{
		{Name: "retries", Type: "stream", Node: "rabbit@b", Members: []string{"rabbit@b"}}, {Name: "jobs.leader", Type: "quorum", Node: "rabbit@a", Members: []string{"rabbit@a"}},
		{Name: "job_journal", Type: "stream", Node: "rabbit@b", Members: []string{"rabbit@b"}}, {Name: "queue.q", Type: "quorum", Node: "rabbit@a", Members: []string{"rabbit@a"}}}}
	require.Equal(t, []finding{{ok, "leaders", "rabbit@a: jobs.leader; rabbit@b: job_journal, retries", ""}}, c.leaders())
}

// In a cluster, a reader needs the native protocol to notice a node that gets no new records.
func TestFindingAboutReadingOverAMQP(t *testing.T) {
	require.Equal(t, note, overAMQP(false, "").severity)
	in := overAMQP(true, "rabbitmq-plugins enable rabbitmq_stream")
	require.Equal(t, failure, in.severity)
	require.Contains(t, in.text, "in a cluster")
	require.Equal(t, "rabbitmq-plugins enable rabbitmq_stream", in.remedy)
}
