package broker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func management(t *testing.T, v *brokertest.Vhost) *broker.Management {
	t.Helper()
	return open(t, v.ManagementURL()+"/", v.Name)
}

// queueWith waits until the broker reports a queue as expected. Its figures are up to five seconds
// old.
func queueWith(t *testing.T, m *broker.Management, name string, is func(broker.QueueInfo) bool) broker.QueueInfo {
	t.Helper()
	var found broker.QueueInfo
	require.Eventually(t, func() bool {
		queues, err := m.Queues(soon(t))
		require.NoError(t, err)
		for _, q := range queues {
			if q.Name == name && is(q) {
				found = q
				return true
			}
		}
		return false
	}, time.Minute, 50*time.Millisecond)
	return found
}

func TestPoliciesAreSetAndCorrected(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	m := management(t, v)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	require.NoError(t, conn.Queues().Ensure(soon(t), "a"))
	findings, err := m.Policies(soon(t))
	require.NoError(t, err)
	require.Empty(t, findings)
	ofQueues := map[string]any{"dead-letter-exchange": "jobs.dead"}
	if m.Features().ConsumerTimeoutPolicy {
		ofQueues["consumer-timeout"] = 86_400_000.0
	}
	for name, want := range map[string]map[string]any{
		"queue.a":          ofQueues,
		wire.ScheduledJobs: {"max-age": "30D", "stream-max-segment-size-bytes": 64e6},
		wire.Retries:       {"max-age": "30D", "stream-max-segment-size-bytes": 64e6},
		wire.Journal:       {"max-age": "7D", "max-length-bytes": 20e9, "stream-max-segment-size-bytes": 64e6},
		wire.DeadJobs:      {"max-age": "180D", "max-length-bytes": 10e9, "stream-max-segment-size-bytes": 64e6},
		wire.Heartbeats:    {"max-age": "5m", "stream-max-segment-size-bytes": 16e6},
		wire.JobMetrics:    {"max-age": "90D", "stream-max-segment-size-bytes": 64e6},
	} {
		q := queueWith(t, m, name, func(q broker.QueueInfo) bool { return q.Policy != "" })
		if !m.Features().StreamSegmentPolicy {
			delete(want, "stream-max-segment-size-bytes") // the broker accepts and ignores it
		}
		require.Equal(t, want, q.Definition, name)
	}
	// The policy on jobs.direct keeps jobs that clients publish for a queue that does not exist
	// yet.
	require.NoError(t, publisher(t, conn).SendMandatory(soon(t), wire.Message{Exchange: wire.ExchangeDirect, Key: "unknown"}))

	put(t, v, "/api/policies/"+v.Name+"/millrace-queues", `{"pattern":"^nothing$","definition":{"max-length":1},"priority":5}`)
	v.Do(t, "DELETE", "/api/policies/"+v.Name+"/millrace-stream-retries", nil, nil)
	_, err = m.Policies(soon(t))
	require.NoError(t, err)
	queueWith(t, m, "queue.a", func(q broker.QueueInfo) bool { return q.DeadLetterTo == "jobs.dead" })
	queueWith(t, m, wire.Retries, func(q broker.QueueInfo) bool { return q.Policy == "millrace-stream-retries" })
}

func TestUnchangedPoliciesAreNotWritten(t *testing.T) {
	v := brokertest.New(t)
	var puts int
	backend, err := url.Parse(v.ManagementURL())
	require.NoError(t, err)
	counting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			puts++
		}
		forward(t, w, r, backend)
	}))
	defer counting.Close()
	m := open(t, at(t, counting.URL, v), v.Name)
	for range 3 {
		_, err := m.Policies(soon(t))
		require.NoError(t, err)
	}
	want := 11
	if m.Features().QuorumPriorities {
		want++ // the policy of quorum queues
	}
	require.Equal(t, want, puts)
}

func TestOverridingPolicyIsReported(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	m := management(t, v)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	require.NoError(t, conn.Queues().Ensure(soon(t), "a"))
	require.NoError(t, conn.Queues().Ensure(soon(t), "b"))
	put(t, v, "/api/policies/"+v.Name+"/limits", `{"pattern":"^queue\\.a$","apply-to":"queues","definition":{"max-length":5,"overflow":"reject-publish"}}`)
	put(t, v, "/api/policies/"+v.Name+"/short", `{"pattern":"^job_journal$","apply-to":"queues","priority":3,"definition":{"max-length-bytes":1000000}}`)
	put(t, v, "/api/policies/"+v.Name+"/own-age", `{"pattern":"^retries$","apply-to":"queues","definition":{"max-age":"1h"}}`)
	full := queueWith(t, m, "queue.a", func(q broker.QueueInfo) bool { return q.Policy == "limits" })
	require.True(t, full.MayRefuse())
	require.EqualValues(t, 5, full.MaxLength)
	require.Empty(t, full.DeadLetterTo)
	queueWith(t, m, wire.Journal, func(q broker.QueueInfo) bool { return q.Policy == "short" })
	queueWith(t, m, wire.Retries, func(q broker.QueueInfo) bool { return q.Policy == "own-age" })

	findings, err := m.Policies(soon(t))
	require.NoError(t, err)
	require.Len(t, findings, 2, "a stream may have an age of its own")
	require.Equal(t, "policy limits", findings[0].Subject)
	require.Equal(t, "wins over millrace-queues for queue.a: jobs that their workers reject are lost", findings[0].Problem)
	require.Contains(t, findings[0].Remedy, `"dead-letter-exchange":"jobs.dead","max-length":5,"overflow":"reject-publish"}`)
	require.Equal(t, m.Features().ConsumerTimeoutPolicy, strings.Contains(findings[0].Remedy, `{"consumer-timeout":86400000,`))
	require.Equal(t, "policy short", findings[1].Subject)
	require.Contains(t, findings[1].Remedy, `"max-age":"7D"`)
	require.Contains(t, findings[1].Remedy, `"max-length-bytes":1000000`)

	// The remedy works: set the policy that it shows, over the API.
	put(t, v, "/api/policies/"+v.Name+"/millrace-queues-merged",
		`{"pattern":"^(queue\\.a)$","apply-to":"queues","priority":1,"definition":{"dead-letter-exchange":"jobs.dead","max-length":5,"overflow":"reject-publish"}}`)
	require.Contains(t, findings[0].Remedy, `--priority=1 --apply-to queues 'millrace-queues-merged' '^(queue\.a)$'`)
	queueWith(t, m, "queue.a", func(q broker.QueueInfo) bool { return q.DeadLetterTo == "jobs.dead" && q.MayRefuse() })
	findings, err = m.Policies(soon(t))
	require.NoError(t, err)
	require.Len(t, findings, 1)
}

func TestPolicyCommandsAreQuotedForShell(t *testing.T) {
	commands := broker.PolicyCommands(broker.FeaturesOf(broker.RabbitMQ, "3.12.0"), "it's a vhost")
	require.Len(t, commands, 11)
	require.Len(t, broker.PolicyCommands(broker.FeaturesOf(broker.RabbitMQ, "4.3.0"), "v"), 12)
	out, err := exec.Command("sh", "-c", "set -- "+commands[0]+`; printf '%s\n' "$@"`).Output()
	require.NoError(t, err)
	require.Equal(t, []string{"rabbitmqctl", "set_policy", "--vhost", "it's a vhost", "--priority=-10", "--apply-to", "queues", "millrace-queues", `^queue\.`,
		`{"consumer-timeout":86400000,"dead-letter-exchange":"jobs.dead"}`}, strings.Split(strings.TrimSpace(string(out)), "\n"))
	require.Contains(t, broker.PolicyCommands(broker.FeaturesOf(broker.LavinMQ, "2.9.1"), "/")[0], "lavinmqctl set_policy --vhost '/'")
}

func TestPropertiesOfQueues(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	m := management(t, v)
	conn := dial(t, v.AMQPURL())
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("q", true, false, false, false, amqp.Table{"x-max-length": 100, "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "d"})
	require.NoError(t, err)
	_, err = ch.QueueDeclare("s", true, false, false, false, streamArgs)
	require.NoError(t, err)
	put(t, v, "/api/policies/"+v.Name+"/p", `{"pattern":"^q$","definition":{"max-length":7,"max-length-bytes":5000,"overflow":"drop-head"}}`)
	p := publisher(t, conn)
	for range 3 {
		require.NoError(t, p.Send(soon(t), wire.Message{Key: "q", Body: []byte("12345"), Timestamp: time.Unix(1_800_000_000, 0)}))
	}
	c := consumer(t, conn, "q", 1)
	next(t, c)
	q := queueWith(t, m, "q", func(q broker.QueueInfo) bool {
		return q.Unacked == 1 && q.Policy == "p" && q.HeadTimestamp.IsZero() != m.Features().HeadTimestamps
	})
	require.EqualValues(t, []int64{3, 2, 1, 1}, []int64{q.Messages, q.Ready, q.Unacked, q.Consumers})
	require.Equal(t, "classic", q.Type)
	require.Equal(t, "running", q.State)
	require.True(t, q.Durable)
	if m.Features().BodyBytes {
		require.EqualValues(t, 15, q.MessageBytes)
	} else {
		require.Greater(t, q.MessageBytes, int64(15))
	}
	require.Equal(t, m.Features().QueueMemory, q.MemoryBytes > 0)
	require.Equal(t, "reject-publish-dlx", q.Overflow, "the argument overrides the policy")
	require.Equal(t, !m.Features().RejectPublishDLXDrops, q.MayRefuse())
	require.EqualValues(t, 7, q.MaxLength, "the smaller limit applies")
	require.EqualValues(t, 5000, q.MaxLengthBytes)
	require.Equal(t, "d", q.DeadLetterTo)
	if m.Features().HeadTimestamps {
		require.EqualValues(t, 1_800_000_000, q.HeadTimestamp.Unix())
	}
	s := queueWith(t, m, "s", func(broker.QueueInfo) bool { return true })
	require.Equal(t, "stream", s.Type)
	require.False(t, s.MayRefuse())
}

func TestOverview(t *testing.T) {
	v := brokertest.New(t)
	m, conn := management(t, v), dial(t, v.AMQPURL())
	overview, err := m.Overview(soon(t))
	require.NoError(t, err)
	require.Equal(t, []string{conn.Product(), conn.Version()}, []string{overview.Product, overview.Version})
	require.Equal(t, conn.Features(), m.Features())
	// A node that has just started reports its uptime a moment later.
	brokertest.Eventually(t, func() bool {
		nodes, err := m.Nodes(soon(t))
		require.NoError(t, err)
		require.Len(t, nodes, 1)
		require.True(t, nodes[0].Running)
		return nodes[0].Uptime > 0
	}, "the node reports its uptime")
	alarms, err := m.Alarms(soon(t))
	require.NoError(t, err)
	require.Empty(t, alarms)
}

func TestUsers(t *testing.T) {
	v := brokertest.New(t)
	m := management(t, v)
	me, err := m.WhoAmI(soon(t))
	require.NoError(t, err)
	require.Equal(t, v.Owner.Name, me.Name)
	require.ElementsMatch(t, []string{"policymaker", "monitoring"}, me.Tags)
	may, err := m.MayUseVHost(soon(t))
	require.NoError(t, err)
	require.True(t, may)
	_, err = m.Permissions(soon(t))
	require.True(t, broker.Unauthorized(err), "only administrators may ask: %v", err)

	admin := v.AddUser(t, "admin", brokertest.Permissions{Tags: "administrator", Configure: "^$"})
	permissions, err := m.As(admin.Name, admin.Password).Permissions(soon(t))
	require.NoError(t, err)
	require.Contains(t, permissions, broker.Permission{User: v.Owner.Name, Configure: ".*", Write: ".*", Read: ".*"})
	require.Contains(t, permissions, broker.Permission{User: admin.Name, Configure: "^$", Write: ".*", Read: ".*"})

	_, err = m.As(v.Owner.Name, "wrong").WhoAmI(soon(t))
	require.True(t, broker.Unauthorized(err), err)
	may, err = m.As(v.Owner.Name, "wrong").MayUseVHost(soon(t))
	require.NoError(t, err)
	require.False(t, may)
	stranger := brokertest.New(t).Owner
	may, err = m.As(stranger.Name, stranger.Password).MayUseVHost(soon(t))
	require.NoError(t, err)
	require.False(t, may, "no permission in this virtual host")
}

func TestConnectionsOfUser(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	m := management(t, v)
	dial(t, v.AMQPURL())
	dial(t, v.AddUser(t, "other", brokertest.Permissions{}).AMQPURL())
	var mine []broker.Connection
	brokertest.Eventually(t, func() bool {
		var err error
		mine, err = m.ConnectionsOf(soon(t), v.Owner.Name)
		require.NoError(t, err)
		return len(mine) == 1 && mine[0].Given != ""
	}, "the connection is shown")
	require.Equal(t, t.Name(), mine[0].Given)
	require.Equal(t, []string{"127.0.0.1", "Millrace"}, []string{mine[0].PeerHost, mine[0].Product})
	none, err := m.ConnectionsOf(soon(t), "unknown")
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestStreamListeners(t *testing.T) {
	v := brokertest.New(t)
	m := management(t, v)
	addresses, err := m.StreamListeners(soon(t))
	require.NoError(t, err)
	require.Equal(t, m.Features().NativeStreamProtocol, len(addresses) == 1, addresses)
	for _, address := range addresses {
		require.Regexp(t, `^127\.0\.0\.1:\d+$`, address)
	}
}

func TestStreamListenersOfCluster(t *testing.T) {
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`{"rabbitmq_version":"4.3.6","node":"rabbit@b","listeners":[
			{"node":"rabbit@a","protocol":"stream","ip_address":"::","port":5552},
			{"node":"rabbit@a","protocol":"amqp","ip_address":"::","port":5672},
			{"node":"rabbit@b","protocol":"stream","ip_address":"::","port":5553},
			{"node":"rabbit@c","protocol":"stream","ip_address":"10.0.0.3","port":5554},
			{"node":"rabbit@c","protocol":"stream","ip_address":"10.0.0.3","port":0},
			{"node":"odd","protocol":"stream","ip_address":"0.0.0.0","port":5555}]}`))
	}))
	defer cluster.Close()
	addresses, err := open(t, cluster.URL, "/").StreamListeners(soon(t))
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:5553", "a:5552", "10.0.0.3:5554", "127.0.0.1:5555"}, addresses)
}

func TestManagementOfLavinMQ(t *testing.T) {
	lavin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := map[string]string{
			"/api/overview": `{"lavinmq_version":"2.9.1","product_name":"LavinMQ","node":"n","listeners":[{"ip_address":"::","port":5672,"protocol":"amqp"}]}`,
			"/api/whoami":   `{"name":"u","tags":"management,monitoring","password_hash":"x"}`,
			"/api/nodes":    `[{"name":"n","running":true,"uptime":5000,"partitions":[]}]`,
			"/api/queues/v": `[{"name":"s","arguments":{"x-queue-type":"stream"},"effective_policy_definition":[],"state":"closed","message_stats":{}},
				{"name":"queue.a","arguments":{"x-overflow":"reject-publish-dlx"},"messages":3,"messages_ready":2,"messages_unacknowledged":1,"total_bytes":9}]`,
		}[r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error":"not_found","reason":"Not Found"}`
		}
		w.Write([]byte(answer))
	}))
	defer lavin.Close()
	m := open(t, lavin.URL, "v")
	require.Equal(t, broker.LavinMQ, m.Features().Product)
	require.EqualValues(t, 1, m.Features().StreamOffsetBase)
	me, err := m.WhoAmI(soon(t))
	require.NoError(t, err)
	require.Equal(t, []string{"management", "monitoring"}, me.Tags)
	addresses, err := m.StreamListeners(soon(t))
	require.NoError(t, err)
	require.Empty(t, addresses)
	queues, err := m.Queues(soon(t))
	require.NoError(t, err)
	require.Equal(t, []string{"stream", "classic"}, []string{queues[0].Type, queues[1].Type})
	require.Equal(t, "closed", queues[0].State)
	require.False(t, queues[1].MayRefuse(), "LavinMQ drops the head instead")
	require.EqualValues(t, 9, queues[1].MessageBytes)
	_, err = m.Permissions(soon(t))
	require.ErrorContains(t, err, "404 Not Found")
}

func TestManagementErrorsHidePassword(t *testing.T) {
	for _, bad := range []string{"", "ftp://x", "http://u:se%cret@h", "http://u:secret@127.0.0.1:1", "127.0.0.1:15672"} {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := broker.OpenManagement(ctx, bad, "/", nil)
		cancel()
		require.Error(t, err, bad)
		require.NotContains(t, err.Error(), "cret")
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	_, err := broker.OpenManagement(soon(t), other.URL, "/", nil)
	require.ErrorContains(t, err, "404")
	some := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("{}")) }))
	defer some.Close()
	_, err = broker.OpenManagement(soon(t), some.URL, "/", nil)
	require.ErrorContains(t, err, "neither RabbitMQ nor LavinMQ")
}

// A broker may refuse consumer-timeout although its version should accept it. It gets the policy
// without that key.
func TestRefusedConsumerTimeoutIsLeftOut(t *testing.T) {
	v := brokertest.New(t) // behind a front that calls it RabbitMQ 3.13
	backend, err := url.Parse(v.ManagementURL())
	require.NoError(t, err)
	var refused int
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/overview" {
			w.Write([]byte(`{"rabbitmq_version":"3.13.0"}`))
			return
		}
		if forward(t, w, r, backend) == http.StatusBadRequest {
			refused++
		}
	}))
	defer front.Close()
	m := open(t, at(t, front.URL, v), v.Name)
	for range 2 {
		_, err = m.Policies(soon(t))
		require.NoError(t, err)
	}
	if v.Features(t).ConsumerTimeoutPolicy {
		require.Zero(t, refused)
	} else {
		require.Equal(t, 1, refused)
	}
}
