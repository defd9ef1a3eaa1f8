//go:build plugin

package plugintest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// testEnablingUnderChannels disables the plugin while a client has a channel, and enables it again.
// Until RabbitMQ 4.3.5, that channel has no interceptor then. A binding that is made meanwhile must
// route.
func testEnablingUnderChannels(t *testing.T, n *node) {
	a := n.application(t)
	a.declare(t, "enabled", "direct")
	require.NoError(t, n.SetPlugins(t.Context()))
	opened := n.application(t)
	n.application(t).queue(t, "late", "at-once.topic", "late.*", nil)
	require.NoError(t, n.SetPlugins(t.Context(), plugin))
	for i, a := range []*application{a, opened, n.application(t)} {
		body := fmt.Sprintf("channel %d", i)
		a.send(t, "enabled", "", hour, amqp.Publishing{Body: []byte(body)})
		require.Equal(t, "enabled", n.recordOf(t, body).Job.Args[0].Exchange)
		require.Empty(t, a.returned)
	}
	opened.send(t, "at-once.topic", "late.key", 0, amqp.Publishing{Body: []byte("late")})
	require.Equal(t, "late", string(opened.receive(t, "late").Body))
	route(t, opened)
}

// otherType is a module of the exchange type x-delayed-message, as that of the archived plugin.
const otherType = `-module(test_type).
-behaviour(rabbit_exchange_type).
-export([route/2, route/3]).
route(_, _) -> [].
route(_, _, _) -> [].
`

// testOtherType publishes on a channel that knows the type's module of another plugin. RabbitMQ
// lets an open channel keep that module, and adds the interceptor to it.
func testOtherType(t *testing.T, n *node) {
	declaring := n.application(t)
	declaring.declare(t, "other type", "fanout")
	declaring.queue(t, "other type", "other type", "", nil)
	file := filepath.Join(n.dir, "test_type.erl")
	require.NoError(t, os.WriteFile(file, []byte(otherType), 0o600))
	_, err := n.Eval(t.Context(), fmt.Sprintf(`{ok, M, Code} = compile:file(%q, [binary]), {module, M} = code:load_binary(M, "test", Code), `+
		`ok = sys:suspend(rabbit_millrace_exchanges), ok = rabbit_registry:register(exchange, <<"x-delayed-message">>, M).`, file))
	require.NoError(t, err)
	a := n.application(t) // which has no module of the type yet
	a.send(t, "other type", "", 0, amqp.Publishing{Body: []byte("undelayed")})
	require.Equal(t, "undelayed", string((<-a.returned).Body))
	_, err = n.Eval(t.Context(), `sys:resume(rabbit_millrace_exchanges).`)
	require.NoError(t, err)
	a.send(t, "other type", "", hour, amqp.Publishing{Body: []byte("with another type")})
	require.Equal(t, "other type", n.recordOf(t, "with another type").Job.Args[0].Exchange)
	_, ok, err := a.Get("other type", true)
	require.NoError(t, err)
	require.False(t, ok)
}

// testRestart restarts the node. The bindings of all types must route as before, and the exchange's
// type must come back if another plugin takes it away.
func testRestart(t *testing.T, n *node) {
	require.NoError(t, n.Stop(t.Context()))
	require.NoError(t, n.Restart(t.Context()))
	a := n.application(t)
	route(t, a)
	a.send(t, "at-once.topic", "order", hour, amqp.Publishing{Body: []byte("after the restart")})
	n.recordOf(t, "after the restart")
	require.NoError(t, a.QueueUnbind("word", "order", "at-once.topic", nil))
	a.send(t, "at-once.topic", "order", 0, amqp.Publishing{Body: []byte("unbound")})
	require.Equal(t, "unbound", string(a.receive(t, "hash").Body))
	_, ok, err := a.Get("word", true)
	require.NoError(t, err)
	require.False(t, ok)
	a.queue(t, "word", "at-once.topic", "order", nil)

	_, err = n.Eval(t.Context(), `rabbit_registry:unregister(exchange, <<"x-delayed-message">>).`)
	require.NoError(t, err)
	n.eventually(t, func() bool {
		found, err := n.Eval(t.Context(), "rabbit_registry:lookup_module(exchange, 'x-delayed-message').")
		require.NoError(t, err)
		return found == "{ok,rabbit_millrace_delayed}"
	}, "the type is registered again")
	route(t, n.application(t))
}

// testKilledAfterConfirms kills the node while a client publishes delayed messages, and publishes
// again as soon as the node accepts connections. Each message that was confirmed must be there.
func testKilledAfterConfirms(t *testing.T, n *node) {
	confirmed := map[string]bool{}
	publish := func(name string, count int, kill bool) {
		conn, ch, err := channel(n)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, ch.Confirm(false))
		var confirms []*amqp.DeferredConfirmation
		for i := range count {
			p := amqp.Publishing{Headers: amqp.Table{"x-delay": hour}, Body: []byte(fmt.Sprint(name, i)), DeliveryMode: amqp.Persistent}
			confirm, err := ch.PublishWithDeferredConfirm("at-once.direct", "one", false, false, p)
			require.NoError(t, err)
			confirms = append(confirms, confirm)
		}
		for i, confirm := range confirms {
			if kill && i == count/2 {
				require.NoError(t, n.Kill())
			}
			if ok, _ := confirm.WaitContext(t.Context()); ok {
				confirmed[fmt.Sprint(name, i)] = true
			}
		}
	}
	publish("killed-", 5000, true)
	atKill := len(confirmed)
	require.GreaterOrEqual(t, atKill, 2500)
	require.NoError(t, n.Restart(t.Context()))
	publish("restarted-", 500, false)
	require.Greater(t, len(confirmed), atKill)
	t.Logf("%d messages were confirmed before the node was killed", atKill)

	time.Sleep(time.Second)
	publish("end-", 1, false)
	stored := map[string]int{}
	n.eachRecord(t, func(r record) bool {
		stored[r.body()]++
		return r.body() != "end-0"
	})
	for body := range confirmed {
		require.Equal(t, 1, stored[body], body)
	}
	route(t, n.application(t))
}
