package streams

import (
	"context"
	"sync"

	"github.com/millrace-jobs/millrace/wire"
)

// recordOverhead is the memory that a record needs besides its body: the struct, its headers and
// its place in a slice.
const recordOverhead = 256

// ahead is a queue of records that were read and are not delivered yet. One goroutine puts, another
// takes. Both transports read no further while the queue has reached its limit in bytes.
type ahead struct {
	limit int64

	mu     sync.Mutex
	queue  []wire.Record
	bytes  int64 // of the records in queue and of those being delivered
	ended  bool
	reason error

	more chan struct{} // signals a put, or the end
	room chan struct{} // signals a delivery, or the end
}

func newAhead(limit int64) *ahead {
	return &ahead{limit: limit, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// put never blocks. Callers check hasRoom or waitRoom before they read more.
func (a *ahead) put(records ...wire.Record) {
	if len(records) == 0 {
		return
	}
	var size int64
	for i := range records {
		size += weight(&records[i])
	}
	a.mu.Lock()
	a.queue = append(a.queue, records...)
	a.bytes += size
	a.mu.Unlock()
	signal(a.more)
}

// weight counts the capacity of a body: the AMQP client lets the buffer grow to up to a quarter
// more than its content.
func weight(r *wire.Record) int64 { return int64(cap(r.Body)) + recordOverhead }

// end declares that nothing more will be put, and why.
func (a *ahead) end(reason error) {
	a.mu.Lock()
	if !a.ended {
		a.ended, a.reason = true, reason
	}
	a.mu.Unlock()
	signal(a.more)
	signal(a.room)
}

func (a *ahead) size() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes
}

func (a *ahead) hasRoom() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bytes < a.limit || a.ended
}

// waitRoom blocks while deliver is a full limit behind.
func (a *ahead) waitRoom(ctx context.Context) error {
	for !a.hasRoom() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.room:
		}
	}
	return nil
}

// take returns the next batch, and waits while there is none. After the last batch it returns the
// reason that was given to end.
func (a *ahead) take(ctx context.Context) ([]wire.Record, error) {
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if batch, reason, ended := a.next(); len(batch) > 0 || ended {
			return batch, reason
		}
		select {
		case <-ctx.Done():
		case <-a.more:
		}
	}
}

func (a *ahead) next() (batch []wire.Record, reason error, ended bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 {
		return nil, a.reason, a.ended
	}
	n, size := 0, int64(0)
	for n < len(a.queue) && n < maxBatch {
		size += int64(len(a.queue[n].Body))
		if n > 0 && size > maxBatchBytes {
			break
		}
		n++
	}
	batch = a.queue[:n:n]
	if a.queue = a.queue[n:]; len(a.queue) == 0 {
		a.queue = nil // it would keep the batch in memory
	}
	return batch, nil, false
}

// delivered frees the room that a batch took.
func (a *ahead) delivered(batch []wire.Record) {
	var size int64
	for i := range batch {
		size += weight(&batch[i])
	}
	a.mu.Lock()
	a.bytes -= size
	a.mu.Unlock()
	signal(a.room)
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
