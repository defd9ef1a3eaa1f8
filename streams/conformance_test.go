package streams

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func TestReadInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		b.publish(t, stream, b.numbered(0, 3000)...)
		last := b.first + 2999
		for _, from := range []int64{First, b.first, b.first + 1, b.first + 1234, last} {
			records := readUntil(t, tr, stream, from, func(r wire.Record) bool { return r.Offset == last })
			require.Len(t, records, int(last-max(from, b.first)+1))
			for i, r := range records {
				require.Equal(t, max(from, b.first)+int64(i), r.Offset)
				require.Equal(t, fmt.Sprint(r.Offset), string(r.Body))
				require.Empty(t, r.Fault)
			}
		}
	})
}

func TestReadTails(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		r := startReading(t, tr, stream, First)
		for i := range 5 {
			b.publish(t, stream, b.numbered(i, 1)...)
			require.Equal(t, fmt.Sprint(b.first+int64(i)), string(r.next(t).Body))
		}
	})
}

// A reader that starts behind the end waits there. It ignores records that are written below its
// offset.
func TestReadFromAfterTheEnd(t *testing.T) {
	b := newTestBroker(t)
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			stream := b.stream(t)
			b.publish(t, stream, b.numbered(0, 10)...)
			log, reading := watchLog(t)
			r := startReading(t, c.open(t, b, Config{Log: log}), stream, b.first+12)
			await(t, reading)
			b.publish(t, stream, b.numbered(10, 3)...)
			require.Equal(t, b.first+12, r.next(t).Offset)
		})
	}
}

func TestReadManyRecords(t *testing.T) {
	const n = 200_000
	b := newTestBroker(t)
	stream := b.stream(t)
	b.publish(t, stream, b.numbered(0, n)...)
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			tr := c.open(t, b, Config{})
			next := b.first
			err := tr.Read(t.Context(), stream, First, func(batch []wire.Record) error {
				for _, r := range batch {
					if r.Offset != next || string(r.Body) != fmt.Sprint(next) {
						return fmt.Errorf("offset %d with %q where %d must be", r.Offset, r.Body, next)
					}
					next++
				}
				if next == b.first+n {
					return errEnough
				}
				return nil
			})
			require.ErrorIs(t, err, errEnough)
		})
	}
}

// With the largest bodies, many of them in one chunk, and a slow deliver, a reader does not read
// further ahead than its budget.
func TestReadBigBodies(t *testing.T) {
	const n, size, ahead = 16, 15 << 20, 32 << 20
	b := newTestBroker(t)
	stream := b.stream(t)
	body := make([]byte, size)
	for i := range n {
		body[0] = byte(i)
		b.publish(t, stream, amqp.Publishing{Body: body})
	}
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			tr := c.open(t, b, Config{Ahead: ahead})
			before := heap()
			seen, most := 0, uint64(0)
			err := tr.Read(t.Context(), stream, First, func(batch []wire.Record) error {
				require.Len(t, batch, 1)
				require.Len(t, batch[0].Body, size)
				require.Equal(t, byte(seen), batch[0].Body[0])
				most = max(most, settledHeap())
				if seen++; seen == n {
					return errEnough
				}
				return nil
			})
			require.ErrorIs(t, err, errEnough)
			// Four things come on top of the budget: the record that exceeds it, the record that is
			// half read (twice, while its buffer grows), the record that is being delivered, and
			// the records that the AMQP client has not handed over yet.
			require.Less(t, most-min(before, most), uint64(ahead+8*size))
		})
	}
}

// settledHeap waits until nothing more is read, and returns the size of the live heap.
func settledHeap() uint64 {
	last := heap()
	for same := 0; same < 3; {
		timer := time.NewTimer(20 * time.Millisecond)
		<-timer.C
		now := heap()
		if now <= last+1<<20 {
			same++
		} else {
			same = 0
		}
		last = max(last, now)
	}
	return last
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestReadHeadersAndUser(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		b.publish(t, stream, amqp.Publishing{
			UserId:    b.Owner.Name,
			Timestamp: time.Unix(1, 0),
			Headers: amqp.Table{
				"millrace-string": "x", "millrace-empty": "", "millrace-long": strings.Repeat("y", 7000), "millrace-bytes": []byte("\x00\xff"),
				"millrace-i8": int8(-8), "millrace-u8": uint8(200), "millrace-i16": int16(-1600), "millrace-u16": uint16(60000),
				"millrace-i32": int32(-320000), "millrace-u32": uint32(4000000000), "millrace-i64": int64(math.MinInt64),
				"millrace-float": 1.5, "millrace-bool": true, "millrace-nil": nil, "millrace-time": time.Unix(5, 0),
				"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
				"other":       "z", "Millrace-other": "z",
			},
			Body: []byte("b"),
		}, amqp.Publishing{Headers: amqp.Table{"traceparent": strings.Repeat("a", 256)}},
			amqp.Publishing{Headers: amqp.Table{"traceparent": "é"}},
			amqp.Publishing{Headers: amqp.Table{"traceparent": int64(1)}})
		records := readUntil(t, tr, stream, First, func(r wire.Record) bool { return r.Offset == b.first+3 })
		require.Equal(t, b.Owner.Name, records[0].UserID)
		require.Equal(t, map[string]any{
			"millrace-string": "x", "millrace-empty": "", "millrace-long": strings.Repeat("y", 7000), "millrace-bytes": "\x00\xff",
			"millrace-i8": int64(-8), "millrace-u8": int64(200), "millrace-i16": int64(-1600), "millrace-u16": int64(60000),
			"millrace-i32": int64(-320000), "millrace-u32": int64(4000000000), "millrace-i64": int64(math.MinInt64),
			"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		}, records[0].Headers)
		require.Equal(t, "b", string(records[0].Body))
		for _, r := range records[1:] {
			require.Empty(t, r.Headers)
			require.Empty(t, r.UserID)
		}
		if tr.Name() == "native" {
			require.WithinDuration(t, time.Now(), records[0].Time, time.Minute)
		} else {
			require.Zero(t, records[0].Time)
		}
	})
}

// If an exchange leads to a stream, its records say how they were published.
func TestReadRoute(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		_, err := b.ch.QueueDeclare(wire.Gated, true, false, false, false, amqp.Table{"x-queue-type": "stream"})
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = b.ch.QueueDelete(wire.Gated, false, false, false) })
		require.NoError(t, b.ch.ExchangeDeclare(wire.Unrouted, "fanout", true, false, false, false, nil))
		require.NoError(t, b.ch.ExchangeDeclare(wire.ExchangeRoute, "direct", true, false, false, false, amqp.Table{"alternate-exchange": wire.Unrouted}))
		require.NoError(t, b.ch.ExchangeDeclare(wire.ExchangeFire, "fanout", true, false, false, false, nil))
		require.NoError(t, b.ch.ExchangeBind(wire.ExchangeRoute, "", wire.ExchangeFire, false, nil))
		require.NoError(t, b.ch.QueueBind(wire.Gated, "", wire.Unrouted, false, nil))
		for _, exchange := range []string{wire.ExchangeRoute, wire.ExchangeFire} {
			b.Publish(t, exchange, "a queue", amqp.Publishing{Priority: 7, Body: []byte("x"), Headers: amqp.Table{"millrace-op": "fired"}})
		}
		b.publish(t, wire.Gated, amqp.Publishing{Body: []byte("x"), ReplyTo: "amq.rabbitmq.reply-to.x", CorrelationId: "c"})
		records := readUntil(t, tr, wire.Gated, First, func(r wire.Record) bool { return r.Offset == b.first+2 })
		for i, want := range []route{{exchange: wire.ExchangeRoute, key: "a queue", priority: 7}, {exchange: wire.ExchangeFire, key: "a queue", priority: 7}, {key: wire.Gated, replyTo: "amq.rabbitmq.reply-to.x", correlationID: "c"}} {
			require.Equal(t, want, route{records[i].Exchange, records[i].Key, records[i].Priority, records[i].ReplyTo, records[i].CorrelationID})
		}
		require.Equal(t, map[string]any{"millrace-op": "fired"}, records[1].Headers)
		fetched, err := tr.Fetch(t.Context(), wire.Gated, b.first)
		require.NoError(t, err)
		require.Equal(t, records[0].Key, fetched.Key)
	})
}

// A client may declare its message to be AMQP 1.0 and then send no body.
func TestReadEmptyAMQP10(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		b.publish(t, stream, amqp.Publishing{Type: "amqp-1.0"}, amqp.Publishing{Body: []byte("end")})
		records := readUntil(t, tr, stream, First, func(r wire.Record) bool { return string(r.Body) == "end" })
		covered := b.first
		for _, r := range records {
			require.Equal(t, covered, r.Offset)
			covered = max(r.Offset, r.Through) + 1
		}
		require.Equal(t, b.first+2, covered)
		require.Empty(t, records[0].Body)
	})
}

func TestReadMissingStream(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		require.ErrorIs(t, tr.Read(t.Context(), "missing", First, nil), ErrNoStream)
		_, _, err := tr.Last(t.Context(), "missing")
		require.ErrorIs(t, err, ErrNoStream)
		_, err = tr.Fetch(t.Context(), "missing", 0)
		require.ErrorIs(t, err, ErrNoStream)
	})
}

// A reader must not remove messages from an ordinary queue.
func TestReadOfOrdinaryQueue(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		queue := strings.ReplaceAll(t.Name(), "/", "-")
		_, err := b.ch.QueueDeclare(queue, true, false, false, false, nil)
		require.NoError(t, err)
		b.publish(t, queue, b.numbered(0, 3)...)
		require.ErrorIs(t, tr.Read(t.Context(), queue, First, nil), ErrNoStream)
		_, err = tr.Fetch(t.Context(), queue, 0)
		require.ErrorIs(t, err, ErrNoStream)
		require.Eventually(t, func() bool {
			q, err := b.ch.QueueDeclarePassive(queue, true, false, false, false, nil)
			require.NoError(t, err)
			return q.Messages == 3
		}, time.Minute, 10*time.Millisecond)
	})
}

func TestReadOfDeletedStream(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		b.publish(t, stream, b.numbered(0, 10)...)
		r := startReading(t, tr, stream, First)
		r.next(t)
		_, err := b.ch.QueueDelete(stream, false, false, false)
		require.NoError(t, err)
		if err = r.end(t); b.features.StreamOffsetsDrift && errors.Is(err, ErrNoStream) {
			return // the reader was about to check its offsets
		}
		require.ErrorIs(t, err, ErrCancelled)
	})
}

func TestReadDeliverError(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		b.publish(t, stream, b.numbered(0, 2000)...)
		want := errors.New("disk full")
		calls := 0
		err := tr.Read(t.Context(), stream, First, func([]wire.Record) error {
			calls++
			return want
		})
		require.Equal(t, want, err)
		require.Equal(t, 1, calls)
	})
}

func TestReadCancelled(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		b.publish(t, stream, b.numbered(0, 10)...)
		r := startReading(t, tr, stream, First)
		r.next(t)
		r.cancel()
		require.NoError(t, r.end(t))
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		require.NoError(t, tr.Read(cancelled, stream, First, nil))
		_, _, err := tr.Last(cancelled, stream)
		require.ErrorIs(t, err, context.Canceled)
		_, err = tr.Fetch(cancelled, stream, 0)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A reader that is far behind ends as soon as its context does.
func TestReadCancelledWhileBehind(t *testing.T) {
	b := newTestBroker(t)
	stream := b.stream(t)
	for range 20 {
		b.publish(t, stream, amqp.Publishing{Body: make([]byte, 1<<20)})
	}
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			tr := c.open(t, b, Config{Ahead: 2 << 20})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := tr.Read(ctx, stream, First, func([]wire.Record) error {
				settledHeap()
				cancel()
				return nil
			})
			require.NoError(t, err)
		})
	}
}

func TestClosedTransport(t *testing.T) {
	b := newTestBroker(t)
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			stream := b.stream(t)
			b.publish(t, stream, b.numbered(0, 1)...)
			tr := c.open(t, b, Config{})
			r := startReading(t, tr, stream, First)
			r.next(t)
			require.NoError(t, tr.Close())
			require.ErrorIs(t, r.end(t), ErrLost)
			_, _, err := tr.Last(t.Context(), stream)
			require.ErrorIs(t, err, ErrLost)
			_, err = tr.Fetch(t.Context(), stream, 0)
			require.ErrorIs(t, err, ErrLost)
		})
	}
}

func TestFirstAndLast(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		for _, end := range []func(context.Context, string) (int64, bool, error){tr.First, tr.Last} {
			_, ok, err := end(t.Context(), stream)
			require.NoError(t, err)
			require.False(t, ok)
		}
		for _, n := range []int{1, 1, 1000, 1} {
			b.publish(t, stream, b.numbered(0, n)...)
		}
		last, ok, err := tr.Last(t.Context(), stream)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, b.first+1002, last)
		first, ok, err := tr.First(t.Context(), stream)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, b.first, first)
	})
}

// Last returns while records are being published all the time.
func TestLastDuringPublishes(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		b.publish(t, stream, b.numbered(0, 1000)...)
		ctx, stop := context.WithCancel(t.Context())
		var published atomic.Int64
		var writing sync.WaitGroup
		writing.Go(func() {
			for ctx.Err() == nil {
				b.publish(t, stream, b.numbered(0, 1)...)
				published.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
		})
		defer writing.Wait()
		defer stop()
		for range 3 {
			before := published.Load()
			last, ok, err := tr.Last(t.Context(), stream)
			require.NoError(t, err)
			require.True(t, ok)
			require.GreaterOrEqual(t, last, b.first+999+before)
		}
	})
}

// Where Last is cheap, it does not lose its connection to an unreadable record at the end.
func TestCheapLastOfGarbage(t *testing.T) {
	b := newTestBroker(t)
	if !b.hasNative(t) {
		return // no other client can publish garbage
	}
	stream := b.stream(t)
	p := newNativePublisher(t, b, stream)
	p.publish(single(dataMessage("first")))
	p.publish(single([]byte("garbage")))
	require.False(t, openTransport(t, b, Config{}).LastIsCheap(), "the broker closes the connection over AMQP 0-9-1")
	tr := transportCases[0].open(t, b, Config{}).(*choice).native
	require.True(t, tr.LastIsCheap())
	var kept *link
	for range 3 {
		last, ok, err := tr.Last(t.Context(), stream)
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, 1, last)
		require.Len(t, tr.links.idle, 1)
		require.True(t, kept == nil || kept == tr.links.idle[0])
		kept = tr.links.idle[0]
	}
}

// A consumer that stores its offset adds a chunk to the stream. No reader gets this chunk, and Last
// ignores it.
func TestLastIgnoresTracking(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		storeOffset(t, b, stream)
		_, ok, err := tr.Last(t.Context(), stream)
		require.NoError(t, err)
		require.False(t, ok)
		b.publish(t, stream, b.numbered(0, 5)...)
		want := readUntil(t, tr, stream, First, func(r wire.Record) bool { return string(r.Body) == fmt.Sprint(b.first+4) })
		storeOffset(t, b, stream)
		last, ok, err := tr.Last(t.Context(), stream)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, want[4].Offset, last)
	})
}

func TestFetch(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := b.stream(t)
		b.publish(t, stream, b.numbered(0, 2000)...)
		for _, offset := range []int64{b.first, b.first + 1, b.first + 999, b.first + 1999} {
			r, err := tr.Fetch(t.Context(), stream, offset)
			require.NoError(t, err)
			require.Equal(t, offset, r.Offset)
			require.Equal(t, fmt.Sprint(offset), string(r.Body))
			next, err := tr.Next(t.Context(), stream, offset)
			require.NoError(t, err)
			require.Equal(t, offset, next)
		}
		for _, offset := range []int64{b.first + 2000, 1 << 40} {
			_, err := tr.Fetch(t.Context(), stream, offset)
			require.ErrorIs(t, err, ErrNotFound)
			_, err = tr.Next(t.Context(), stream, offset)
			require.ErrorIs(t, err, ErrNotFound)
		}
	})
}

// Fetch does not find records that retention has deleted, and a reader begins at the first record
// that is left.
func TestRetention(t *testing.T) {
	onBoth(t, func(t *testing.T, b *testBroker, tr Transport) {
		stream := strings.ReplaceAll(t.Name(), "/", "-")
		_, err := b.ch.QueueDeclare(stream, true, false, false, false, amqp.Table{
			"x-queue-type": "stream", "x-max-length-bytes": int64(2 << 20), "x-stream-max-segment-size-bytes": int64(500_000)})
		require.NoError(t, err)
		body := make([]byte, 100_000)
		for i := range 100 {
			body[0] = byte(i)
			b.publish(t, stream, amqp.Publishing{Body: body})
		}
		require.Eventually(t, func() bool {
			_, err := tr.Fetch(t.Context(), stream, b.first)
			return errors.Is(err, ErrNotFound)
		}, time.Minute, 50*time.Millisecond)
		var records []wire.Record
		require.Eventually(t, func() bool { // retention takes some time
			records = readUntil(t, tr, stream, b.first, func(r wire.Record) bool { return r.Body[0] == 99 })
			first, ok, err := tr.First(t.Context(), stream)
			require.NoError(t, err)
			return ok && records[0].Offset == first
		}, time.Minute, 50*time.Millisecond)
		require.Greater(t, records[0].Body[0], byte(1))
		for i, r := range records[1:] {
			require.Equal(t, records[i].Body[0]+1, r.Body[0])
			// Newer brokers begin each segment with a chunk of their own, which leaves a hole.
			require.Greater(t, r.Offset, records[i].Offset)
			next, err := tr.Next(t.Context(), stream, records[i].Offset+1)
			require.NoError(t, err)
			require.Equal(t, r.Offset, next, "Next finds the record behind a hole")
		}
	})
}
