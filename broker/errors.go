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
	// ErrClosed is the reason of an end that the caller requested.
	ErrClosed = errors.New("closed")
	// ErrLost is returned when the channel or connection ended before the answer. The message may
	// or may not have arrived.
	ErrLost = errors.New("connection or channel lost")
	// ErrNacked is returned when the broker refused a message, or could not store it in every queue
	// to which it was routed.
	ErrNacked = errors.New("refused by the broker (nack)")
	// ErrReturned is returned when no queue took a mandatory message.
	ErrReturned = errors.New("returned: no queue takes it")
	// ErrUnpublishable is returned when a message was not sent because no broker could take it.
	ErrUnpublishable = errors.New("cannot be published")
	// ErrCancelled is the reason of a consumer that the broker ended, for example because its queue
	// was deleted.
	ErrCancelled = errors.New("consumer cancelled by the broker")
	// ErrLocked is returned when another connection has jobs.leader, the leader's lock, as its
	// exclusive queue.
	ErrLocked = errors.New("locked by another connection")
	// ErrForeignLock is returned when jobs.leader is a queue that no sidecar declared.
	ErrForeignLock = errors.New("declared by another program")
	// ErrNoConditions is returned when the broker cannot delete a queue on the condition that it is
	// idle. A quorum queue is such a queue.
	ErrNoConditions = errors.New("a quorum queue is not deleted on conditions")
	// ErrAlarm is the reason of a channel that ended because the broker is out of disk space.
	// LavinMQ closes channels then, and RabbitMQ blocks connections: see Conn.Blocked.
	ErrAlarm = errors.New("the broker is out of disk space")
	// ErrRefused is returned when the broker does not allow queues of this kind.
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

// queueError turns the broker's refusal of a request about one queue into a QueueError. It returns
// other errors unchanged: the end of a connection is not the fault of the queue.
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

// IsMissing reports whether a thing does not exist. RabbitMQ answers 404 also if it cannot reach
// the thing now, with "home node … is down or inaccessible". A text that is in neither list does
// not count as missing.
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

// IsAway reports whether a thing cannot be reached now: its node is down, its process has stopped,
// or there was no answer in time. Such a thing is neither missing nor refused, and may be back at
// any moment.
func IsAway(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	var answer *amqp.Error
	return !errors.Is(err, ErrLost) && errors.As(err, &answer) && answer.Code == amqp.NotFound && !IsMissing(err)
}

var homeNode = regexp.MustCompile(`home node '([^']+)'`)

// AwayNode returns the node that is away according to err, or "" if err names none.
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

// CausedByClient reports whether the broker ended a connection or channel because of something that
// was sent on it. It returns false if the broker or the network went away, or if the broker accepts
// nothing for lack of disk space.
func CausedByClient(err error) bool {
	var answer *amqp.Error
	return errors.As(err, &answer) && answer.Server && answer.Code != amqp.ConnectionForced && !errors.Is(err, ErrAlarm)
}

func hasCode(err error, code int) bool {
	var answer *amqp.Error
	return errors.As(err, &answer) && answer.Code == code
}
