//go:build plugin

package plugintest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// testTopics makes and removes random bindings of a delayed exchange and of one of the type topic.
// Both must lead each message to the same queues.
func testTopics(t *testing.T, n *node) {
	const queues, bindings, keys = 6, 60, 150
	random := rand.New(rand.NewPCG(1, 2))
	a := n.application(t)
	n.awaitIndex(t)
	a.declare(t, "topics.delayed", "topic")
	require.NoError(t, a.ExchangeDeclare("topics.plain", "topic", true, false, false, false, nil))
	kinds := []string{"delayed", "plain"}
	for q := range queues {
		for _, kind := range kinds {
			_, err := a.QueueDeclare(fmt.Sprint(kind, q), true, false, false, false, nil)
			require.NoError(t, err)
		}
	}
	text := func(words ...string) string {
		key := make([]string, random.IntN(5))
		for i := range key {
			key[i] = words[random.IntN(len(words))]
		}
		return strings.Join(key, ".")
	}
	type binding struct {
		queue int
		key   string
	}
	var all []binding
	for range bindings {
		b := binding{random.IntN(queues), text("a", "b", "ü", "", "*", "#")}
		if strings.Count(b.key, "#") > 2 { // RabbitMQ 4.3 allows no more
			continue
		}
		for _, kind := range kinds {
			args := amqp.Table{"n": int32(random.IntN(2))} // two bindings may differ in their arguments only
			require.NoError(t, a.QueueBind(fmt.Sprint(kind, b.queue), b.key, "topics."+kind, false, args))
			if !slices.Contains(all, b) {
				require.NoError(t, a.QueueBind(fmt.Sprint(kind, b.queue), b.key, "topics."+kind, false, nil))
			}
		}
		all = append(all, b)
	}
	compare := func() {
		t.Helper()
		for i := range keys {
			key := text("a", "b", "ü", "", "*", "#")
			for _, kind := range kinds {
				a.send(t, "topics."+kind, key, 0, amqp.Publishing{Body: []byte(fmt.Sprint(i, " ", key))})
			}
		}
		for len(a.returned) > 0 {
			<-a.returned
		}
		for q := range queues {
			require.Equal(t, a.drain(t, fmt.Sprint("plain", q)), a.drain(t, fmt.Sprint("delayed", q)))
		}
	}
	compare()
	for _, b := range all[:len(all)/2] {
		for _, kind := range kinds {
			require.NoError(t, a.QueueUnbind(fmt.Sprint(kind, b.queue), b.key, "topics."+kind, nil))
		}
	}
	compare()
	for _, kind := range kinds { // which removes all bindings of a queue
		_, err := a.QueueDelete(kind+"0", false, false, false)
		require.NoError(t, err)
		a.queue(t, kind+"0", "topics."+kind, "a.#", nil)
	}
	compare()
	require.NoError(t, a.ExchangeDelete("topics.delayed", false, false))
	a.declare(t, "topics.delayed", "topic")
	a.send(t, "topics.delayed", "a", 0, amqp.Publishing{})
	require.Equal(t, uint16(amqp.NoRoute), (<-a.returned).ReplyCode, "a new exchange has no bindings")
}

// awaitIndex waits until the node has the plugin's index of topic bindings, where it has one.
func (n *node) awaitIndex(t *testing.T) {
	t.Helper()
	n.eventually(t, func() bool {
		usable, err := n.Eval(t.Context(), `rabbit_misc:version_compare(rabbit_misc:version(), "4.2.0", lt) orelse persistent_term:get(rabbit_millrace_topic, false).`)
		require.NoError(t, err)
		return usable == "true"
	}, "the index")
}

// drain takes all messages from a queue, and returns their bodies.
func (a *application) drain(t *testing.T, queue string) (bodies []string) {
	t.Helper()
	for {
		d, ok, err := a.Get(queue, true)
		require.NoError(t, err)
		if !ok {
			return bodies
		}
		bodies = append(bodies, string(d.Body))
	}
}
