//go:build plugin

package plugintest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// testOtherExchanges publishes delayed messages to an exchange that is bound to a delayed one. They
// are delayed there, and nowhere else.
func testOtherExchanges(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "second", "topic")
	require.NoError(t, a.ExchangeDeclare("first", "direct", true, false, false, false, nil))
	require.NoError(t, a.ExchangeBind("second", "key", "first", false, nil))
	a.queue(t, "second", "second", "#", nil)
	p := amqp.Publishing{Headers: headers(), CorrelationId: "c", Body: []byte("through another exchange")}
	a.send(t, "first", "key", hour, p)
	require.Empty(t, a.returned)
	r := n.recordOf(t, "through another exchange")
	require.Equal(t, "second", r.Job.Args[0].Exchange)
	require.Equal(t, "key", r.Job.Args[0].RoutingKey)
	decoded := decode(t, r.Job.Args[0].PropertiesBase64)
	require.Equal(t, "c", decoded.CorrelationId)
	require.Equal(t, p.Headers, decoded.Headers)

	a.queue(t, "first", "first", "key", nil)
	a.send(t, "first", "key", hour, amqp.Publishing{Body: []byte("also to a queue")})
	require.Equal(t, "also to a queue", string(a.receive(t, "first").Body))
	require.Equal(t, "second", n.recordOf(t, "also to a queue").Job.Args[0].Exchange)
	a.send(t, "first", "key", -hour, amqp.Publishing{Body: []byte("at once")})
	require.Equal(t, "at once", string(a.receive(t, "second").Body))
	require.Contains(t, n.refused(t, "first", "key", amqp.Publishing{Body: make([]byte, 13<<20)}), "must be smaller than 16 MiB")

	// Only the channel knows the address of direct replies.
	replies, err := a.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
	require.NoError(t, err)
	require.NotNil(t, replies)
	a.send(t, "second", "key", hour, amqp.Publishing{ReplyTo: "amq.rabbitmq.reply-to", Body: []byte("request")})
	to := decode(t, n.recordOf(t, "request").Job.Args[0].PropertiesBase64).ReplyTo
	require.Greater(t, len(to), len("amq.rabbitmq.reply-to."))
	require.Empty(t, a.returned)
	_, ok, err := a.Get("second", true)
	require.NoError(t, err)
	require.False(t, ok, "nothing that waits is routed")
}

// testDeadLetters rejects messages in queues whose dead letters go to a delayed exchange. Each is
// stored once.
func testDeadLetters(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "letters", "direct")
	quorum := amqp.Table{"x-queue-type": "quorum"}
	for name, args := range map[string]amqp.Table{"classic": {}, "quorum": quorum,
		"at-least-once": {"x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish"}} {
		t.Run(name, func(t *testing.T) {
			args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"] = "letters", "key"
			_, err := a.QueueDeclare(name, true, false, false, false, args)
			require.NoError(t, err)
			const count = 20
			for i := range count {
				p := amqp.Publishing{Body: []byte(name + strings.Repeat("i", i)), DeliveryMode: amqp.Persistent}
				a.send(t, "", name, hour, p)
			}
			for range count {
				d, ok, err := a.Get(name, false)
				require.NoError(t, err)
				require.True(t, ok)
				require.NoError(t, d.Reject(false))
			}
			seen := map[string]int{}
			n.recordOf(t, name+strings.Repeat("i", count-1))
			a.send(t, "letters", "", hour, amqp.Publishing{Body: []byte("end of " + name)})
			n.eachRecord(t, func(r record) bool {
				if seen[r.body()]++; strings.HasPrefix(r.body(), name) {
					require.Equal(t, "letters", r.Job.Args[0].Exchange)
					require.Equal(t, "key", r.Job.Args[0].RoutingKey)
					require.Contains(t, decode(t, r.Job.Args[0].PropertiesBase64).Headers, "x-death")
				}
				return r.body() != "end of "+name
			})
			for i := range count {
				require.Equal(t, 1, seen[name+strings.Repeat("i", i)])
			}
			left, err := n.Eval(t.Context(), fmt.Sprintf(`{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"%s">>)), `+
				`proplists:get_value(messages, rabbit_amqqueue:info(Q, [messages])).`, name))
			require.NoError(t, err)
			require.Equal(t, "0", left, "the queue has given them away")
		})
	}
}

// sendAMQP10 is a program that sends a delayed message over AMQP 1.0, and returns the outcome.
const sendAMQP10 = `
	{ok, _} = application:ensure_all_started(amqp10_client),
	{ok, C} = amqp10_client:open_connection(#{address => "127.0.0.1", port => %s, container_id => <<"test">>, sasl => {plain, <<"guest">>, <<"guest">>}}),
	{ok, S} = amqp10_client:begin_session_sync(C),
	{ok, L} = amqp10_client:attach_sender_link_sync(S, <<"test">>, <<"/exchanges/protocols/key">>, unsettled),
	receive {amqp10_event, {link, L, credited}} -> ok end,
	M = amqp10_msg:set_message_annotations(#{<<"x-delay">> => 3600000},
		amqp10_msg:set_application_properties(#{<<"a">> => <<"b">>}, amqp10_msg:new(<<"tag">>, <<"over AMQP 1.0">>, false))),
	ok = amqp10_client:send_msg(L, M),
	receive {amqp10_disposition, Disposition} -> Disposition after 30000 -> none end.`

// testAMQP10 sends a delayed message over AMQP 1.0.
func testAMQP10(t *testing.T, n *node) {
	native, err := n.Eval(t.Context(), "code:which(rabbit_amqp_session) =/= non_existing.")
	require.NoError(t, err)
	if native == "false" {
		t.Skip("until RabbitMQ 3.13, AMQP 1.0 is a plugin that makes no headers of annotations")
	}
	a := n.application(t)
	a.declare(t, "protocols", "direct")
	a.queue(t, "protocols", "protocols", "key", nil)
	require.NoError(t, n.SetPlugins(t.Context(), plugin, "rabbitmq_shovel")) // which has a client
	u, err := url.Parse(n.AMQPURL())
	require.NoError(t, err)
	outcome, err := n.Eval(t.Context(), fmt.Sprintf(sendAMQP10, u.Port()))
	require.NoError(t, err)
	require.Equal(t, `{accepted,<<"tag">>}`, outcome)
	r := n.recordOf(t, "over AMQP 1.0")
	require.Equal(t, "protocols", r.Job.Args[0].Exchange)
	require.Equal(t, "key", r.Job.Args[0].RoutingKey)
	require.Equal(t, "b", decode(t, r.Job.Args[0].PropertiesBase64).Headers["a"])
	_, ok, err := a.Get("protocols", true)
	require.NoError(t, err)
	require.False(t, ok)
}
