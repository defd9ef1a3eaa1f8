package broker

import (
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// exchange and queue describe a declaration. An own one belongs to Millrace alone, and must be
// exactly as declared.
type exchange struct {
	name, kind string
	args       amqp.Table
	own        bool
}

type queue struct {
	name   string
	args   amqp.Table
	own    bool
	stream bool
}

type binding struct {
	source, destination string
	queue               bool // destination is a queue
}

func (b binding) bind(ch *amqp.Channel) error {
	err := func() error {
		if b.queue {
			return ch.QueueBind(b.destination, "", b.source, false, nil)
		}
		return ch.ExchangeBind(b.destination, "", b.source, false, nil)
	}()
	if err != nil {
		return fmt.Errorf("broker: bind %s to %s: %w", b.destination, b.source, err)
	}
	return nil
}

func (e exchange) declare(ch *amqp.Channel) error {
	return ch.ExchangeDeclare(e.name, e.kind, true, false, false, false, e.args)
}

func (e exchange) exists(ch *amqp.Channel) error {
	return ch.ExchangeDeclarePassive(e.name, e.kind, true, false, false, false, nil)
}

func (q queue) declare(ch *amqp.Channel) error {
	return q.answered(ch, func() error {
		_, err := ch.QueueDeclare(q.name, true, false, false, q.stream, q.args)
		return err
	})
}

func (q queue) exists(ch *amqp.Channel) error {
	return q.answered(ch, func() error {
		_, err := ch.QueueDeclarePassive(q.name, true, false, false, q.stream, nil)
		return err
	})
}

// answered declares a queue and returns the broker's answer. It asks for no answer about a stream,
// because that would contain the stream's length. RabbitMQ asks the stream's leader for the length,
// and waits for seconds while the leader's node is frozen.
func (q queue) answered(ch *amqp.Channel, declare func() error) error {
	if q.stream {
		return unanswered(ch, declare)
	}
	return declare()
}

// direct is the exchange to which clients publish jobs.
var direct = exchange{name: wire.ExchangeDirect, kind: amqp.ExchangeDirect}

func stream(name string, own bool) queue {
	return queue{name: name, args: amqp.Table{"x-queue-type": "stream"}, own: own, stream: true}
}
