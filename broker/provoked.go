package broker

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"
)

// Provoked reports whether the broker ended a connection or channel because of something that was
// sent on it. It returns false if the broker or the network went away, or if the broker accepts
// nothing for lack of disk space.
func Provoked(err error) bool {
	var answer *amqp.Error
	return errors.As(err, &answer) && answer.Server && answer.Code != amqp.ConnectionForced && !errors.Is(err, ErrAlarm)
}
