package streams

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

const overtakenBody = 100_000

// keptShort declares a stream that keeps only a few of its records. It returns a number of records
// that the stream never holds. LavinMQ ignores the arguments and deletes segments of 8 MiB.
func (b *testBroker) keptShort(t testing.TB) (stream string, many int) {
	t.Helper()
	limit := int64(2 << 20)
	if !b.features.StreamSegmentPolicy {
		limit = 10 << 20
	}
	// A new name each time: docs/brokers.md says why.
	stream = "overtaken-" + rand.Text()
	_, err := b.ch.QueueDeclare(stream, true, false, false, false, amqp.Table{
		"x-queue-type": "stream", "x-max-length-bytes": limit, "x-stream-max-segment-size-bytes": int64(500_000)})
	require.NoError(t, err)
	return stream, 5 * int(limit) / overtakenBody
}

// write publishes numbered records.
func (b *testBroker) write(t testing.TB, stream string, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		body := make([]byte, overtakenBody)
		binary.BigEndian.PutUint64(body, uint64(i))
		b.publish(t, stream, amqp.Publishing{Body: body})
	}
}

func numberIn(r wire.Record) int { return int(binary.BigEndian.Uint64(r.Body)) }

// A reader pauses until retention has overtaken it. From then on, either each record is the one at
// its offset, or the reader gets ErrRelabelled. It never continues with wrong offsets.
func TestOvertakenReaderHasRightOffsets(t *testing.T) {
	b := newTestBroker(t)
	for _, c := range b.transports() {
		for name, had := range map[string]int{"at the end": 1, "on its way": 10} {
			t.Run(c.name+" "+name, func(t *testing.T) { b.overtake(t, c, had) })
		}
	}
}

// overtake reads a stream of had records. As soon as the first one is delivered, it writes more
// than the stream keeps.
func (b *testBroker) overtake(t *testing.T, c transportCase, had int) {
	stream, many := b.keptShort(t)
	b.write(t, stream, 0, had)
	tr := c.open(t, b, Config{Ahead: 4 * overtakenBody, Quiet: time.Second})
	isLast := func(r wire.Record) bool { return numberIn(r) == had+many-1 }
	given := map[int64]int{}
	written := false
	err := tr.Read(t.Context(), stream, First, func(batch []wire.Record) error {
		if !written {
			written = true
			b.write(t, stream, had, many)
		}
		for _, r := range batch {
			given[r.Offset] = numberIn(r)
			if isLast(r) {
				return errEnough
			}
		}
		return nil
	})
	switch {
	case errors.Is(err, ErrRelabelled):
		require.True(t, b.features.StreamOffsetsDrift)
		clear(given)
		for _, r := range readUntil(t, tr, stream, First, isLast) {
			given[r.Offset] = numberIn(r)
		}
	case !errors.Is(err, ErrLost): // a broker may also drop such a reader
		require.ErrorIs(t, err, errEnough)
	}
	b.requireStands(t, tr, stream, given)
}

// requireStands fetches the records in given that the stream still has, and compares them.
func (b *testBroker) requireStands(t testing.TB, tr Transport, stream string, given map[int64]int) {
	t.Helper()
	first, ok, err := tr.First(t.Context(), stream)
	require.NoError(t, err)
	require.True(t, ok)
	for offset, number := range given {
		if offset < first {
			require.LessOrEqual(t, number, int(offset-b.first), "offsets have holes, and no offset has two records")
			continue
		}
		r, err := tr.Fetch(t.Context(), stream, offset)
		if errors.Is(err, ErrNotFound) { // retention has deleted more meanwhile
			first, _, err = tr.First(t.Context(), stream)
			require.NoError(t, err)
			require.Less(t, offset, first)
			continue
		}
		require.NoError(t, err, "offset %d", offset)
		require.Equal(t, numberIn(r), number, "offset %d", offset)
	}
}
