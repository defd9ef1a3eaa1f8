package broker

import "fmt"

// QueueType is the type of queue that Millrace declares for jobs. A queue that exists is used as it
// is.
type QueueType string

// Types of queues.
const (
	// Quorum if that is the virtual host's default and has priorities. Otherwise classic.
	QueueAuto    QueueType = "auto"
	QueueClassic QueueType = "classic"
	QueueQuorum  QueueType = "quorum"
)

// CheckQueueType returns an error if this broker cannot have job queues of a type.
func (f Features) CheckQueueType(t QueueType) error {
	if t != QueueQuorum || f.QuorumPriorities {
		return nil
	}
	return fmt.Errorf("%s %s has no quorum queues with priorities, so jobs cannot be in quorum queues: use --queue-type auto or classic, "+
		"or RabbitMQ 4.3 or later", f.Product, f.Version)
}
