package broker

import (
	"context"
	"fmt"

	amqp "github.com/rabbitmq/amqp091-go"
)

// answersPrefetch is how many answers may be at hand that nobody has taken yet.
const answersPrefetch = 256

// Answers makes a queue for the answers to commands, with a name of the broker's own making, and consumes it. It goes with the
// connection.
func (c *Conn) Answers(ctx context.Context) (name string, answers *Consumer, err error) {
	const lastDeclared = "" // on this channel
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
