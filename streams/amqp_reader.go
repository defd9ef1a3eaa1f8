package streams

import (
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

// where returns an offset in the form that a subscription uses.
func where(from int64) any {
	if from < 0 {
		return "first"
	}
	return from
}
