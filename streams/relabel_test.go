package streams

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// LavinMQ gives a wrong offset to the first record of a stream if its reader subscribed while the
// stream was empty. The reader avoids that without starting again.
func TestReaderOfEmptyStreamHasRightOffsets(t *testing.T) {
	b := newTestBroker(t)
	for _, c := range b.transports() {
		t.Run(c.name, func(t *testing.T) {
			stream := b.stream(t)
			log, reading := watchLog(t)
			r := startReading(t, c.open(t, b, Config{Log: log}), stream, First)
			await(t, reading)
			b.publish(t, stream, b.numbered(0, 2)...)
			for i := range int64(2) {
				require.Equal(t, b.first+i, r.next(t).Offset)
			}
		})
	}
}

// On LavinMQ, a reader that subscribes to an empty stream costs a whole core, and gets the first
// record seconds late. So no reader subscribes before there is a record.
func TestNoReaderWaitsAtEmptyStreamOfLavinMQ(t *testing.T) {
	b := newTestBroker(t)
	if !b.features.StreamOffsetsDrift {
		t.Skip("only LavinMQ is like that")
	}
	stream := b.stream(t)
	log, reading := watchLog(t)
	r := startReading(t, transportCases[1].open(t, b, Config{Log: log}), stream, First)
	await(t, reading)
	pause := time.After(3 * depthAtLeast)
	for waiting := true; waiting; {
		select {
		case <-pause:
			waiting = false
		case <-time.After(50 * time.Millisecond):
		}
		queue, err := b.ch.QueueDeclarePassive(stream, true, false, false, false, nil)
		require.NoError(t, err)
		require.Zero(t, queue.Consumers)
	}
	b.publish(t, stream, b.numbered(0, 1)...)
	begun := time.Now()
	require.Equal(t, b.first, r.next(t).Offset)
	t.Logf("the first record came %v after its confirm", time.Since(begun))
}

func TestRelabelledRecordsAreDetected(t *testing.T) {
	stands := map[int64]string{7: "seven", 8: "eight"}
	asked := 0
	fetch := func(_ context.Context, stream string, offset int64) (wire.Record, error) {
		asked++
		body, ok := stands[offset]
		if !ok {
			return wire.Record{}, ErrNotFound
		}
		return wire.Record{Stream: stream, Offset: offset, Body: []byte(body)}, nil
	}
	for name, c := range map[string]struct {
		given []wire.Record
		asked int
		err   error
	}{
		"the end is not reached":   {[]wire.Record{{Offset: 6, Body: []byte("wrong")}}, 0, nil},
		"the end is as it stands":  {[]wire.Record{{Offset: 7, Body: []byte("seven")}, {Offset: 8, Body: []byte("eight")}}, 1, nil},
		"another stands there":     {[]wire.Record{{Offset: 8, Body: []byte("eighty-one")}}, 1, ErrRelabelled},
		"nothing stands there":     {[]wire.Record{{Offset: 9, Body: []byte("nine")}}, 1, ErrRelabelled},
		"it could not be read":     {[]wire.Record{{Offset: 9, Fault: "unreadable"}}, 0, nil},
		"what follows is no worry": {[]wire.Record{{Offset: 7, Body: []byte("seven")}}, 1, nil},
	} {
		asked = 0
		check := &relabelCheck{stream: "s", end: 7, fetch: fetch}
		delivered := 0
		deliver := check.over(t.Context(), func(records []wire.Record) error {
			delivered += len(records)
			return nil
		})
		err := deliver(c.given)
		require.ErrorIs(t, err, c.err, name)
		require.Equal(t, c.asked, asked, name)
		if c.err != nil {
			require.Zero(t, delivered, name)
			continue
		}
		require.Equal(t, len(c.given), delivered, name)
		require.NoError(t, deliver([]wire.Record{{Offset: 8, Body: []byte("eight")}}), name)
		require.Equal(t, 1, asked, "%s: that was just now", name)
		check.bytes = relabelBytes
		require.NoError(t, deliver([]wire.Record{{Offset: 8, Body: []byte("eight")}}), name)
		require.Equal(t, 2, asked, "%s: much has come", name)
		check.looked = check.looked.Add(-relabelAge)
		require.ErrorIs(t, deliver([]wire.Record{{Offset: 8, Body: []byte("nine")}}), ErrRelabelled, name)
	}
}
