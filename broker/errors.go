package broker

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

var (
	// ErrClosed is why something ended that was closed on purpose.
	ErrClosed = errors.New("closed")
	// ErrLost says that the channel or connection ended before the answer: the message may or may not have arrived.
	ErrLost = errors.New("connection or channel lost")
	// ErrNacked says that the broker refused a message, or could not store it in every queue it was routed to.
	ErrNacked = errors.New("refused by the broker (nack)")
	// ErrReturned says that a mandatory message had no queue to go to.
	ErrReturned = errors.New("returned: no queue takes it")
	// ErrUnpublishable says that a message was not sent because no broker could take it.
	ErrUnpublishable = errors.New("cannot be published")
	// ErrCancelled says that the broker ended a consumer, for instance because its queue was deleted.
	ErrCancelled = errors.New("consumer cancelled by the broker")
	// ErrLocked says that another connection has jobs.leader, the leader's lock, as its exclusive queue.
	ErrLocked = errors.New("locked by another connection")
	// ErrForeignLock says that jobs.leader exists, and is a queue that no sidecar has declared.
	ErrForeignLock = errors.New("declared by another program")
	// ErrNoConditions says that the broker does not delete a queue on condition that it is idle: a quorum queue.
	ErrNoConditions = errors.New("a quorum queue is not deleted on conditions")
	// ErrAlarm says that a channel ended because the broker is out of disk space. LavinMQ answers so; RabbitMQ blocks (see Conn.Blocked).
	ErrAlarm = errors.New("the broker is out of disk space")
	// ErrRefused says that the broker does not make queues of this kind.
	ErrRefused = errors.New("refused by the broker")
)

// Reasons in a QueueError.
const (
	ReasonName      = "name"      // no queue can have this name
	ReasonExclusive = "exclusive" // another connection's exclusive queue
	ReasonLimit     = "limit"     // the virtual host's queue limit is reached
	ReasonDown      = "down"      // the node that has the queue is down, or still starting
	ReasonMissing   = "missing"   // there is no such queue
	ReasonAccess    = "access"    // a permission is missing
	ReasonInUse     = "in use"    // it has consumers
	ReasonNotEmpty  = "not empty" // it has messages
	ReasonRefused   = "refused"   // anything else; Err has the broker's words
)

// QueueError is the broker's refusal of a request about one queue. It never ends the connection.
type QueueError struct {
	Queue  string // full name on the broker
	Reason string // one of the Reason constants
	Err    error
}

func (e *QueueError) Error() string {
	return fmt.Sprintf("broker: queue %q: %s: %v", e.Queue, e.Reason, e.Err)
}

func (e *QueueError) Unwrap() error { return e.Err }

// queueError sorts what the broker answered to a request about one queue. What ended more than a channel is not the queue's fault.
func queueError(queue string, err error) error {
	var answer *amqp.Error
	if err == nil || errors.Is(err, ErrLost) || !errors.As(err, &answer) {
		return err
	}
	return &QueueError{Queue: queue, Reason: reason(answer), Err: err}
}

func reason(answer *amqp.Error) string {
	text := strings.ToLower(answer.Reason)
	switch {
	case answer.Code == amqp.ResourceLocked:
		return ReasonExclusive
	case IsMissing(answer):
		return ReasonMissing
	case answer.Code == amqp.NotFound:
		return ReasonDown
	case strings.Contains(text, "queue limit") || strings.Contains(text, "limit in vhost"):
		return ReasonLimit // RabbitMQ answers 406, LavinMQ 403
	case answer.Code == amqp.AccessRefused:
		return ReasonAccess
	case strings.Contains(text, "name isn't valid"):
		return ReasonName // LavinMQ: it is not ASCII
	case strings.Contains(text, "in use"):
		return ReasonInUse
	case strings.Contains(text, "not empty"):
		return ReasonNotEmpty
	}
	return ReasonRefused
}

// IsMissing tells a thing that does not exist from one that the broker cannot reach just now: RabbitMQ answers 404 to both, the second
// with "home node … is down or inaccessible". A text that is in neither list is not taken for missing.
func IsMissing(err error) bool {
	var answer *amqp.Error
	if !errors.As(err, &answer) || answer.Code != amqp.NotFound {
		return false
	}
	text := strings.ToLower(answer.Reason)
	if strings.Contains(text, "inaccessible") || strings.Contains(text, "home node") {
		return false
	}
	for _, words := range []string{"no queue ", "no exchange ", "doesn't exist", "not found", "not declared"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// IsAway reports whether err says that a thing cannot be reached now: its node is down, its process has stopped, or nothing answered in
// time. It is neither missing nor refused, and may be back at any moment.
func IsAway(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var answer *amqp.Error
	return !errors.Is(err, ErrLost) && errors.As(err, &answer) && answer.Code == amqp.NotFound && !IsMissing(err)
}

var homeNode = regexp.MustCompile(`home node '([^']+)'`)

// AwayNode is the node that is away according to err; empty where err names none.
func AwayNode(err error) string {
	var answer *amqp.Error
	if !errors.As(err, &answer) {
		return ""
	}
	if named := homeNode.FindStringSubmatch(answer.Reason); named != nil {
		return named[1]
	}
	return ""
}

func hasCode(err error, code int) bool {
	var answer *amqp.Error
	return errors.As(err, &answer) && answer.Code == code
}
