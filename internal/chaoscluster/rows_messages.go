package main

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// In the rows of delayed messages, the jobs are messages to an application's exchange. Sidecars
// take the jobs from one queue, and publish the messages to the application's queues.
const (
	messageClass    = "millrace.Message"
	messageQueue    = "millrace.messages"
	messageExchange = "app"
)

// inFlight is how many messages a sidecar delivers at the same time.
const inFlight = 100

// declareMessages declares the application's exchange, and the queue of the jobs: on RabbitMQ as a
// quorum queue, which has no home that a fault could take away.
func declareMessages(w *world) error {
	var args amqp.Table
	if w.nodes.kind != lavinMQ {
		args = amqp.Table{"x-queue-type": "quorum"}
	}
	if err := w.declareOn(0, "queue."+messageQueue, args); err != nil {
		return err
	}
	conn, err := w.dial(0)
	if err != nil {
		return err
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if err := ch.ExchangeDeclare(messageExchange, "direct", true, false, false, false, nil); err != nil {
		return err
	}
	for _, q := range w.queues {
		if err := ch.QueueBind(w.jobs.named(q), q, messageExchange, false, nil); err != nil {
			return err
		}
	}
	return nil
}

// named returns the name that a queue has at the broker.
func (j *jobs) named(queue string) string {
	if j.messages {
		return messageExchange + "." + queue
	}
	return "queue." + queue
}

// message returns the entry as a delayed message for its queue.
func (e entry) message() []byte {
	return fmt.Appendf(nil, `{"type":"scheduled_job","jid":%[1]q,"scheduled_at":%[2]f,`+
		`"job":{"jid":%[1]q,"class":%[3]q,"queue":%[4]q,"args":[{"exchange":%[5]q,"routing_key":%[6]q,"body":%[1]q}]}}`,
		e.jid, float64(e.due.UnixMicro())/1e6, messageClass, messageQueue, messageExchange, e.queue)
}

// boundMessages compares the doubled messages with what may be in flight: in the killed sidecar, or
// in all of them if a node goes away; and with what the next leader may fire again.
func boundMessages(w *world, r row, res *result, must func(bool, string, ...any)) {
	limit := 0
	for _, f := range w.faults {
		limit += w.windowOf(r, messageQueue) + inFlight
		if !f.back.IsZero() {
			limit += (len(w.slots) - 1) * inFlight
		}
	}
	must(res.Doubled.Total <= limit, "%d messages doubled: more than %d", res.Doubled.Total, limit)
}
