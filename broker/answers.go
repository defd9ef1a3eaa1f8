package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// answersPrefetch is how many answers the broker sends ahead of their acknowledgement.
const answersPrefetch = 256

// DirectReply is the reply_to of a message whose answer comes to the publisher of an Asker.
const DirectReply = "amq.rabbitmq.reply-to"

// Asker opens a Publisher, and returns the answers to its messages with the reply_to DirectReply.
// It needs the permissions of a producer. The answers end with the channel.
func (c *Conn) Asker(ctx context.Context) (p *Publisher, answers <-chan wire.Delivery, err error) {
	var in <-chan amqp.Delivery
	p, err = c.publisher(ctx, false, func(ch *amqp.Channel) (err error) {
		in, err = ch.Consume(DirectReply, "", true, false, false, false, nil)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	out := make(chan wire.Delivery)
	go func() {
		defer close(out)
		for d := range in {
			select {
			case out <- delivery(d):
			case <-p.ended:
				return
			}
		}
	}()
	return p, out, nil
}

// Answers declares a queue for the answers to commands, with a name that the broker generates, and
// consumes it. The broker deletes the queue with the connection.
func (c *Conn) Answers(ctx context.Context) (name string, answers *Consumer, err error) {
	const lastDeclared = "" // the empty name means the queue that was declared last on the channel
	var q amqp.Queue
	answers, err = c.consume(ctx, lastDeclared, answersPrefetch, true, func(ch *amqp.Channel) (err error) {
		q, err = ch.QueueDeclare("", false, true, true, false, nil)
		return err
	}, nil)
	if err != nil {
		return "", nil, fmt.Errorf("broker: make a queue for answers: %w", err)
	}
	return q.Name, answers, nil
}
