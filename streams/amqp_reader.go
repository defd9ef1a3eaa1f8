package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// ackInterval is how long a record is left unacknowledged at most. Acknowledging is but a request for more; yet a broker gives up a
// consumer that does not (RabbitMQ after half an hour).
const ackInterval = 10 * time.Second

// amqpReader reads one stream, over one connection after the other.
type amqpReader struct {
	cfg    Config
	stream string
	from   int64 // what was asked for
	next   int64 // what to read next
	out    *ahead

	step     *step
	probing  bool // reading from where an unreadable record was, to see whether it still is
	idleness time.Duration
}

var (
	errRepace = errors.New("subscribe again with another prefetch")
	errProbe  = errors.New("see whether what was stepped over is readable now")
)

// session reads over one connection.
func (r *amqpReader) session(ctx context.Context) (err error) {
	c, err := dialAMQP(ctx, r.cfg, r.out)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.leave)
	defer func() {
		stop()
		c.close()
	}()
	if !r.probing {
		r.next = r.step.start(r.next)
	}
	pace := newPace(r.cfg.Ahead)
	for {
		if err := r.subscription(ctx, c, pace); err != errRepace {
			return err
		}
	}
}

// subscription consumes on one channel.
func (r *amqpReader) subscription(ctx context.Context, c *amqpConn, pace *pace) error {
	ch, err := c.conn.Channel()
	if err != nil {
		return amqpError(r.stream, err)
	}
	defer ch.Close()
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	cancels := ch.NotifyCancel(make(chan string, 1))
	prefetch := pace.prefetch
	if r.step.near(r.next) {
		prefetch = 1 // so that all that is readable has come before the broker looks at what is not
	}
	deliveries, err := consume(ch, r.stream, r.next, prefetch)
	if err != nil {
		return amqpError(r.stream, err)
	}
	acks := acker{ch: ch, every: max(1, min(prefetch/4, 250))}
	tick := time.NewTicker(ackInterval)
	defer tick.Stop()
	idle := r.idleTimer()
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-idle.C:
			return errProbe
		case <-tick.C:
			err = acks.flush()
		case d, ok := <-deliveries:
			if !ok {
				return whyClosed(r.stream, closed, cancels)
			}
			if err = r.receive(d); err != nil {
				return err
			}
			idle.Stop()
			err = acks.add(d.DeliveryTag)
			if pace.observe(len(d.Body)) || prefetch == 1 && !r.step.near(r.next) && pace.prefetch > 1 {
				return errRepace
			}
		}
		if err != nil {
			return whyClosed(r.stream, closed, cancels)
		}
	}
}

// idleTimer fires while nothing comes from behind a record that was stepped over: for all we know it is not there at all, and the next
// record will be written at its very offset.
func (r *amqpReader) idleTimer() *time.Timer {
	if !r.step.covers(r.next - 1) {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	r.idleness = min(max(2*r.idleness, time.Second), time.Minute)
	return time.NewTimer(r.idleness)
}

// receive puts a delivery into line, behind the fault for what was stepped over.
func (r *amqpReader) receive(d amqp.Delivery) error {
	offset, ok := d.Headers["x-stream-offset"].(int64)
	if !ok {
		return fmt.Errorf("streams: %w: %s is a queue, not a stream", ErrNoStream, r.stream)
	}
	if offset < r.next {
		return nil
	}
	if first, last, stepped := r.step.passed(r.next, offset); stepped && last >= r.from {
		r.out.put(wire.Record{Stream: r.stream, Offset: max(first, r.from, 0), Through: last, Fault: "unreadable over AMQP 0-9-1"})
	}
	r.next = offset + 1
	r.out.put(amqpRecord(r.stream, offset, d))
	return nil
}

func amqpRecord(stream string, offset int64, d amqp.Delivery) wire.Record {
	return wire.Record{Stream: stream, Offset: offset, UserID: d.UserId, Headers: amqpHeaders(d.Headers), Body: d.Body}
}

func amqpHeaders(table amqp.Table) (headers map[string]any) {
	for name, value := range table {
		if !wantHeader(name) {
			continue
		}
		if n, ok := amqpInteger(value); ok {
			value = n
		}
		headers = keepHeader(headers, name, value)
	}
	return headers
}

func amqpInteger(value any) (int64, bool) {
	switch n := value.(type) {
	case int8:
		return int64(n), true
	case uint8:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint16:
		return int64(n), true
	case int32:
		return int64(n), true
	case uint32:
		return int64(n), true
	case int64:
		return n, true
	default:
		return 0, false
	}
}

func consume(ch *amqp.Channel, stream string, from int64, prefetch int) (<-chan amqp.Delivery, error) {
	if err := ch.Qos(prefetch, 0, false); err != nil {
		return nil, err
	}
	var offset any = from
	if from < 0 {
		offset = "first"
	}
	return ch.Consume(stream, "", false, false, false, false, amqp.Table{"x-stream-offset": offset})
}

// acker acknowledges now and then.
type acker struct {
	ch      *amqp.Channel
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
	return a.ch.Ack(a.tag, true)
}
