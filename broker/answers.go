package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// answersPrefetch is how many answers the broker sends ahead of their acknowledgement.
const answersPrefetch = 256

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
