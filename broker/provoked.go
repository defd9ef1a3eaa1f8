package broker

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Provoked tells whether the broker ended a connection or channel over something that was sent on it; not because the broker, or the
// network, went away, and not because the broker takes nothing at all for want of disk space.
func Provoked(err error) bool {
	var answer *amqp.Error
	return errors.As(err, &answer) && answer.Server && answer.Code != amqp.ConnectionForced && !errors.Is(err, ErrAlarm)
}
