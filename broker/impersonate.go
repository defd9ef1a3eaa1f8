package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// askAgain is how long an answer about the rights of a user is taken for true.
const askAgain = time.Minute

// Impersonates reports whether the user may publish messages with the user_id of other users. It
// needs the tag impersonator for that. Impersonates publishes a message that no queue gets, because
// a broker that refuses a user_id closes the channel.
func (c *Conn) Impersonates(ctx context.Context) (bool, error) {
	c.impersonation.Lock()
	defer c.impersonation.Unlock()
	if time.Since(c.impersonation.asked) < askAgain {
		return c.impersonation.allowed, nil
	}
	p, err := c.Publisher(ctx)
	if err != nil {
		return false, err
	}
	defer func() { go func() { _ = p.Close() }() }() // not awaited: the broker may be away
	other := "other"
	if c.user == other {
		other = "another"
	}
	err = p.Deliver(ctx, "", "millrace."+rand.Text(), amqp.Publishing{UserId: other})
	var refusal *amqp.Error
	switch {
	case err == nil, errors.Is(err, ErrReturned):
		c.impersonation.allowed = true
	case CausedByClient(err) && errors.As(err, &refusal) && refusal.Code == amqp.PreconditionFailed:
		c.impersonation.allowed = false
	default:
		return false, err
	}
	c.impersonation.asked = time.Now()
	return c.impersonation.allowed, nil
}
