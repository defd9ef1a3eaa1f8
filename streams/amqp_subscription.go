package streams

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ackInterval is how long a record is left unacknowledged at most. Acknowledging is but a request for more; yet a broker gives up a
// consumer that does not (RabbitMQ after half an hour).
const ackInterval = 10 * time.Second

// subscription reads on one channel.
type subscription struct {
	*amqpReader
	ch      *amqpChannel
	pace    *pace
	careful bool // the broker is about to fail
	acks    acker
	idle    *time.Timer
	heard   int64 // next, when it was last looked whether the broker has fallen silent
}

// subscription subscribes, and reads until that ends.
func (r *amqpReader) subscription(ctx context.Context, c *amqpConn, pace *pace) error {
	s := subscription{amqpReader: r, pace: pace, careful: r.step.near(r.next), heard: r.next}
	prefetch := pace.prefetch
	if s.careful {
		prefetch = 1 // so that all that is readable has come before the broker looks at what is not
	}
	var err error
	if s.ch, err = c.consume(r.stream, where(r.next), prefetch); err != nil {
		return err
	}
	r.cfg.Log.Debug("streams: reading", "stream", r.stream, "offset", r.next, "prefetch", prefetch)
	s.acks = acker{ch: s.ch, every: max(1, min(prefetch/4, 250))}
	s.idle = r.idleTimer()
	defer s.idle.Stop()
	err = s.run(ctx)
	if errors.Is(err, errRepace) { // else the whole connection is closed
		s.ch.end()
	}
	return err
}

func (s *subscription) run(ctx context.Context) error {
	tick := time.NewTicker(ackInterval)
	defer tick.Stop()
	quiet := time.NewTicker(s.cfg.Quiet)
	defer quiet.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.idle.C:
			return errProbe
		case <-tick.C:
			err = s.acks.flush()
		case <-quiet.C:
			err = s.listen()
		case d, ok := <-s.ch.deliveries:
			if !ok {
				return s.ch.ended()
			}
			err = s.take(d)
		}
		if err != nil {
			return err
		}
	}
}

// listen subscribes anew where nothing has come for a while. RabbitMQ may forget a reader that retention overtakes: one that looks for the
// next segment in the moment in which that was deleted and the stream's new beginning is not known yet is told of no record any more.
func (s *subscription) listen() error {
	if s.next == s.heard && !s.stepped && s.out.hasRoom() {
		return errRepace
	}
	s.heard = s.next
	return nil
}

func (s *subscription) take(d amqp.Delivery) error {
	offset, err := s.ch.offsetOf(d)
	if err != nil {
		return err
	}
	if s.stepped && offset < s.next {
		return errProbe // what was taken for unreadable was not there yet, and is now
	}
	s.idle.Stop()
	s.receive(offset, d)
	if s.pace.observe(len(d.Body)) && !s.careful || s.careful != s.step.near(s.next) {
		return errRepace
	}
	return s.acks.add(d.DeliveryTag)
}

// acker acknowledges now and then.
type acker struct {
	ch      *amqpChannel
	every   int
	pending int
	tag     uint64
}

func (a *acker) add(tag uint64) error {
	a.tag, a.pending = tag, a.pending+1
	if a.pending < a.every {
		return nil
	}
	return a.flush()
}

func (a *acker) flush() error {
	if a.pending == 0 {
		return nil
	}
	a.pending = 0
	if a.ch.Ack(a.tag, true) != nil {
		return a.ch.ended()
	}
	return nil
}
