package broker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func requireReason(t *testing.T, err error, reason string) {
	t.Helper()
	var refusal *broker.QueueError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, reason, refusal.Reason, err)
}

func TestEnsureQueueRefusals(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	for _, bad := range []string{"", "q\xff", "a\nb", strings.Repeat("x", 201)} {
		requireReason(t, conn.Queues().Ensure(soon(t), bad), broker.ReasonName)
	}
	_, err := client(t, v.AMQPURL()).QueueDeclare("queue.mine", false, false, true, false, nil)
	require.NoError(t, err)
	requireReason(t, conn.Queues().Ensure(soon(t), "mine"), broker.ReasonExclusive)
	exists, err := conn.Queues().Exists(soon(t), "queue.mine")
	require.NoError(t, err)
	require.True(t, exists)

	put(t, v, "/api/vhost-limits/"+v.Name+"/max-queues", `{"value":1}`)
	require.Eventually(t, func() bool {
		err = conn.Queues().Ensure(soon(t), "one-too-many")
		return err != nil
	}, time.Minute, 10*time.Millisecond)
	requireReason(t, err, broker.ReasonLimit)
	require.NoError(t, conn.Err(), "no refusal ends the connection")
}

func TestQueueTypesOfBrokers(t *testing.T) {
	for _, c := range []struct {
		product, version string
		quorum           bool
	}{
		{broker.RabbitMQ, "3.10.8", false}, {broker.RabbitMQ, "3.13.7", false}, {broker.RabbitMQ, "4.2.1", false},
		{broker.RabbitMQ, "4.3.0", true}, {broker.RabbitMQ, "5.0.0", true}, {broker.LavinMQ, "2.9.1", false},
	} {
		f := broker.FeaturesOf(c.product, c.version)
		for _, always := range []broker.QueueType{"", broker.QueueAuto, broker.QueueClassic} {
			require.NoError(t, f.CheckQueueType(always))
		}
		err := f.CheckQueueType(broker.QueueQuorum)
		if c.quorum {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.product+" "+c.version)
		require.ErrorContains(t, err, "use --queue-type auto or classic, or RabbitMQ 4.3")
	}
}

// typeOf declares a job queue under a setting, and returns its type.
func typeOf(t *testing.T, v *brokertest.Vhost, setting broker.QueueType, name string) (made broker.QueueInfo, err error) {
	t.Helper()
	conn, err := broker.Dial(soon(t), broker.Config{AMQPURL: v.AMQPURL(), QueueType: setting})
	require.NoError(t, err)
	defer conn.Close()
	makeAll(t, v.AMQPURL(), conn)
	if err := conn.Queues().Ensure(soon(t), name); err != nil {
		require.NoError(t, conn.Err(), "a refusal does not end the connection")
		return made, err
	}
	require.NoError(t, conn.Queues().Ensure(soon(t), name), "Ensure accepts the queue as it is")
	return queueWith(t, management(t, v), wire.QueuePrefix+name, func(q broker.QueueInfo) bool { return q.Type != "" }), nil
}

func TestTypesOfJobQueues(t *testing.T) {
	for setting, asked := range map[broker.QueueType]string{broker.QueueAuto: "classic", broker.QueueClassic: "classic", broker.QueueQuorum: "quorum"} {
		t.Run(string(setting), func(t *testing.T) {
			v := brokertest.New(t)
			made, err := typeOf(t, v, setting, "a")
			if asked == "quorum" && !v.Features(t).QuorumPriorities {
				requireReason(t, err, broker.ReasonRefused)
				require.ErrorContains(t, err, "--queue-type")
				return
			}
			require.NoError(t, err)
			require.Equal(t, asked, made.Type)
			_, priorities := made.Arguments["x-max-priority"]
			require.Equal(t, asked == "classic", priorities)
		})
	}
}

// Where quorum queues are the virtual host's default, RabbitMQ refuses a plain declaration with
// priorities.
func TestTypesOfJobQueuesWhenQuorumIsDefault(t *testing.T) {
	for _, setting := range []broker.QueueType{broker.QueueAuto, broker.QueueClassic} {
		t.Run(string(setting), func(t *testing.T) {
			v := quorumVhost(t)
			want := "classic"
			if setting == broker.QueueAuto && v.Features(t).QuorumPriorities {
				want = "quorum"
			}
			made, err := typeOf(t, v, setting, "a")
			require.NoError(t, err)
			require.Equal(t, want, made.Type)
			if want == "quorum" {
				_, err := client(t, v.AMQPURL()).QueueDeclare("queue.a", true, false, false, false, nil)
				require.NoError(t, err, "a client that gives no type declares the same queue")
				m := management(t, v)
				findings, err := m.Policies(soon(t))
				require.NoError(t, err)
				require.Empty(t, findings)
				q := queueWith(t, m, "queue.a", func(q broker.QueueInfo) bool { return q.Policy == "millrace-quorum" })
				require.Equal(t, "jobs.dead", q.DeadLetterTo)
				require.Equal(t, "at-least-once", q.Definition["dead-letter-strategy"])
			}
		})
	}
}

// quorumVhost returns a virtual host whose default queue type is quorum.
func quorumVhost(t *testing.T) *brokertest.Vhost {
	t.Helper()
	v := brokertest.New(t)
	put(t, v, "/api/vhosts/"+v.Name, `{"default_queue_type":"quorum"}`)
	ch := client(t, v.AMQPURL())
	if _, err := ch.QueueDeclare("probe", true, false, false, false, amqp.Table{"x-max-priority": 10}); err == nil {
		t.Skip("this broker's virtual hosts have no default type of queues")
	}
	return v
}

func TestEnsureQueueAcceptsQueueOfClient(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDeclare("queue.plain", true, false, false, false, nil)
	require.NoError(t, err)
	_, err = ch.QueueDeclare("queue.quorum", true, false, false, false, amqp.Table{"x-queue-type": "quorum"})
	require.NoError(t, err)
	p := publisher(t, conn)
	names := []string{"plain", "quorum", "e b/%2F"}
	if conn.Features().ASCIINamesOnly {
		requireReason(t, conn.Queues().Ensure(soon(t), "é"), broker.ReasonName)
		require.NoError(t, conn.Err())
	} else {
		names = append(names, "é")
	}
	for _, name := range names {
		require.NoError(t, conn.Queues().Ensure(soon(t), name))
		require.NoError(t, p.Send(soon(t), wire.Message{Exchange: wire.ExchangeFire, Key: name}))
		require.NoError(t, p.SendMandatory(soon(t), wire.Message{Exchange: wire.ExchangeDirect, Key: name}))
		messages, consumers, err := conn.Queues().Depth(soon(t), "queue."+name)
		require.NoError(t, err)
		require.Equal(t, []int{2, 0}, []int{messages, consumers})
	}
}

// A bad name, or a fault of one queue, affects only the jobs of that queue. RabbitMQ 4 may want to
// say more about a queue than fits into an answer.
func TestBadQueueNameKeepsConnectionOpen(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	owner := v.Channel(t)
	for _, name := range []string{strings.Repeat("q", wire.MaxQueueName), strings.Repeat("é", wire.MaxQueueName/2), strings.Repeat("é", 60)} {
		_, err := conn.Queues().Exists(soon(t), "queue."+name)
		if err != nil {
			requireReason(t, err, broker.ReasonName)
		}
		if !conn.Features().ASCIINamesOnly || name[0] == 'q' {
			_, err = owner.QueueDeclare("queue."+name, false, false, true, false, nil)
			require.NoError(t, err)
		}
		require.Error(t, conn.Queues().Ensure(soon(t), name), "the queue is exclusive to another connection, or its name is invalid")
		require.NoError(t, conn.Err())
	}
}

func TestEnsureQueueRecreatesJobsDirect(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	require.NoError(t, client(t, v.AMQPURL()).ExchangeDelete("jobs.direct", false, false))
	require.NoError(t, conn.Queues().Ensure(soon(t), "a"))
	require.NoError(t, publisher(t, conn).SendMandatory(soon(t), wire.Message{Exchange: wire.ExchangeDirect, Key: "a"}))
}

// The broker must not confirm a fire that only the journal took because its queue is gone.
func TestFiresForMissingQueuesAreKept(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	require.NoError(t, conn.Queues().Ensure(soon(t), "a"))
	p := publisher(t, conn)
	fire := func(key string, n int) {
		for range n {
			require.NoError(t, p.Send(soon(t), wire.Message{Exchange: wire.ExchangeFire, Key: key}))
		}
	}
	gated := func() int { return len(v.ReadStream(t, wire.Gated)) }
	fire("a", 3)
	fire("never-declared", 4)
	require.Equal(t, 3, v.QueueLength(t, "queue.a"))
	require.Equal(t, 4, gated())

	ch := client(t, v.AMQPURL())
	_, err := ch.QueueDelete("queue.a", false, false, false)
	require.NoError(t, err)
	require.NoError(t, ch.ExchangeDelete("jobs.direct", false, false))
	require.NoError(t, ch.ExchangeDeclare("jobs.direct", "direct", true, false, false, false, nil))
	fire("a", 5)
	require.Equal(t, 9, gated())
	require.NoError(t, conn.Topology().EnsureRouting(soon(t)))
	fire("a", 1)
	require.Equal(t, 10, gated())
}

func TestWitness(t *testing.T) {
	v := brokertest.New(t)
	first := dial(t, v.AMQPURL())
	name := wire.WitnessPrefix + "abc"
	exists, err := first.Queues().Exists(soon(t), name)
	require.NoError(t, err)
	require.False(t, exists)
	require.NoError(t, first.Witnesses().DeclareTransient(soon(t), name))
	require.NoError(t, first.Close())

	second := dial(t, v.AMQPURL())
	exists, err = second.Queues().Exists(soon(t), name)
	require.NoError(t, err)
	require.True(t, exists, "the witness outlives the connection")
	require.NoError(t, second.Queues().Delete(soon(t), name, true, true))
	require.NoError(t, second.Queues().Delete(soon(t), name, true, true), "the second delete changes nothing")

	_, err = client(t, v.AMQPURL()).QueueDeclare(name, true, false, false, false, nil)
	require.NoError(t, err)
	require.ErrorIs(t, second.Witnesses().DeclareTransient(soon(t), name), broker.ErrRefused)
	require.NoError(t, second.Err())
}

func TestDeleteQueueKeepsQueueInUse(t *testing.T) {
	v := brokertest.New(t)
	conn := dial(t, v.AMQPURL())
	makeAll(t, v.AMQPURL(), conn)
	require.NoError(t, conn.Queues().Ensure(soon(t), "a"))
	require.NoError(t, publisher(t, conn).Send(soon(t), wire.Message{Exchange: wire.ExchangeRoute, Key: "a"}))
	requireReason(t, conn.Queues().Delete(soon(t), "queue.a", true, true), broker.ReasonNotEmpty)
	consumer, err := conn.Consume(soon(t), "queue.a", 1, false)
	require.NoError(t, err)
	requireReason(t, conn.Queues().Delete(soon(t), "queue.a", true, true), broker.ReasonInUse)
	require.NoError(t, consumer.Close())
	require.NoError(t, conn.Queues().Delete(soon(t), "queue.a", true, false))
	_, _, err = conn.Queues().Depth(soon(t), "queue.a")
	requireReason(t, err, broker.ReasonMissing)
	_, err = conn.Consume(soon(t), "queue.a", 1, false)
	requireReason(t, err, broker.ReasonMissing)
	require.False(t, errors.Is(err, broker.ErrLost))
}
