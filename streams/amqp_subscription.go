package streams

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// ackInterval is the longest time that a record stays unacknowledged. In a stream, an
// acknowledgement only requests more records. But a broker closes a consumer that does not
// acknowledge (RabbitMQ after half an hour).
const ackInterval = 10 * time.Second

// subscription reads on one channel.
type subscription struct {
	*amqpReader
	ch      *amqpChannel
	pace    *pace
	careful bool // a record that the broker cannot convert may be close
	acks    acker
	idle    *time.Timer
	heard   int64 // value of next when listen last checked for silence
}

// subscription subscribes, and reads until the subscription ends.
func (r *amqpReader) subscription(ctx context.Context, c *amqpConn, pace *pace) error {
	s := subscription{amqpReader: r, pace: pace, careful: r.step.near(r.next), heard: r.next}
	prefetch := pace.prefetch
	if s.careful {
		// All readable records must arrive before the broker converts the unreadable one.
		prefetch = 1
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
	if errors.Is(err, errRepace) { // otherwise the whole connection is closed
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

// listen subscribes again if nothing has come for a while. RabbitMQ may forget a reader that
// retention overtakes. That happens if the reader looks for its next segment just after that was
// deleted, while the new beginning of the stream is not known yet. Such a reader gets no records
// any more.
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
		return errProbe // the record that seemed unreadable did not exist yet; now it does
	}
	s.idle.Stop()
	s.receive(offset, d)
	if s.pace.observe(len(d.Body)) && !s.careful || s.careful != s.step.near(s.next) {
		return errRepace
	}
	return s.acks.add(d.DeliveryTag)
}

// acker acknowledges deliveries in batches.
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
