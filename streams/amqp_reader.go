package streams

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// amqpReader reads one stream, over one connection after another.
type amqpReader struct {
	cfg    Config
	hosts  *amqpHosts
	stream string
	from   int64 // the offset that the caller asked for
	next   int64 // the offset to read next
	out    *ahead

	step     *step
	stepped  bool          // next is directly behind an unreadable record
	idleness time.Duration // how long the reader last waited for a record behind an unreadable one

	check *relabelCheck // nil if the offsets of this broker are reliable
	last  wire.Record   // the record that came last, for check
}

var (
	errRepace = errors.New("subscribe again")
	errProbe  = errors.New("see whether what was stepped over is readable now")
)

// session reads over one connection.
func (r *amqpReader) session(ctx context.Context) (err error) {
	c, err := r.hosts.dial(ctx, r.cfg, "reads "+r.stream, r.out)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.leave)
	defer func() {
		if errors.Is(err, ErrLost) && !isPoison(err) && ctx.Err() == nil {
			r.hosts.lost(c)
		}
		stop()
		c.close()
	}()
	pace := newPace(r.cfg.Ahead)
	for {
		if err := r.subscription(ctx, c, pace); !errors.Is(err, errRepace) {
			return err
		}
		// Check now: the next subscription has right offsets again, even if this one had wrong
		// ones.
		if err := r.checkLast(ctx); err != nil {
			return err
		}
	}
}

func (r *amqpReader) checkLast(ctx context.Context) error {
	if r.check == nil || r.last.Stream == "" || r.last.Fault != "" {
		return nil
	}
	return r.check.check(ctx, r.last)
}

// idleTimer returns a timer that fires if nothing comes from behind a record that was stepped over.
// That record may not exist at all. Then the next record gets its offset.
func (r *amqpReader) idleTimer() *time.Timer {
	if !r.stepped {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return t
	}
	r.idleness = min(max(2*r.idleness, time.Second), time.Minute)
	return time.NewTimer(r.idleness)
}

// receive queues a delivery. If records were stepped over, it queues their Fault first.
func (r *amqpReader) receive(offset int64, d amqp.Delivery) {
	if offset < r.next {
		return
	}
	if r.stepped {
		r.out.put(unreadable(r.stream, max(r.step.first(), r.from), r.step.last()))
		r.stepped, r.idleness = false, 0
	}
	r.step.read(offset)
	r.next = offset + 1
	record := amqpRecord(r.stream, offset, d)
	if r.check != nil {
		r.last = record
	}
	r.out.put(record)
}

func unreadable(stream string, first, through int64) wire.Record {
	return wire.Record{Stream: stream, Offset: first, Through: through, Fault: "unreadable over AMQP 0-9-1"}
}

func amqpRecord(stream string, offset int64, d amqp.Delivery) wire.Record {
	// RabbitMQ 4 sets this type on a message that it cannot convert and delivers unchanged.
	if d.Type == "amqp-1.0" {
		if _, err := parseMessage(d.Body); errors.Is(err, errValue) {
			return wire.Record{Stream: stream, Offset: offset, Through: offset, Fault: "unreadable: " + err.Error()}
		}
	}
	r := wire.Record{Stream: stream, Offset: offset, UserID: d.UserId, Headers: amqpHeaders(d.Headers), Body: d.Body}
	if wire.Routed(stream) {
		r.Exchange, r.Key, r.Priority = d.Exchange, d.RoutingKey, d.Priority
	}
	return r
}

func amqpHeaders(table amqp.Table) (headers map[string]any) {
	for name, value := range table {
		if !wantHeader(name) {
			continue
		}
		if b, ok := value.([]byte); ok {
			value = string(b)
		} else if n, ok := amqpInteger(value); ok {
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

// where returns an offset in the form that a subscription uses.
func where(from int64) any {
	if from < 0 {
		return "first"
	}
	return from
}
