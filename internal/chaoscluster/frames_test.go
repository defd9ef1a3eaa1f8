package main

import (
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// wireFrame returns an encoded frame.
func wireFrame(kind byte, channel uint16, payload ...byte) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16([]byte{kind}, channel), uint32(len(payload)))
	return append(append(head, payload...), frameEnd)
}

func shortstr(s string) []byte { return append([]byte{byte(len(s))}, s...) }

func longstr(s string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(s))), s...)
}

// headerFrame returns a content header with a content type and headers.
func headerFrame(channel uint16, headers ...byte) []byte {
	payload := make([]byte, 12)
	payload = append(payload, 0xA0, 0) // content type and headers
	payload = append(payload, shortstr("application/json")...)
	payload = append(payload, longstr(string(headers))...)
	return wireFrame(frameHeader, channel, payload...)
}

// fireHeaders returns the headers of a fire.
func fireHeaders(op string, epoch, seq int64) (t []byte) {
	t = append(append(t, shortstr("millrace-op")...), 'S')
	t = append(t, longstr(op)...)
	t = append(append(t, shortstr("skipped")...), 'V')
	t = append(append(t, shortstr("millrace-epoch")...), 'l')
	t = binary.BigEndian.AppendUint64(t, uint64(epoch))
	t = append(append(t, shortstr("millrace-seq")...), 'I')
	return binary.BigEndian.AppendUint32(t, uint32(seq))
}

func method(channel uint16, class, id uint16, args ...byte) []byte {
	payload := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, class), id)
	return wireFrame(frameMethod, channel, append(payload, args...)...)
}

func publish(channel uint16, key string) []byte {
	return method(channel, 60, 40, append(append([]byte{0, 0}, shortstr("jobs.fire")...), append(shortstr(key), 0)...)...)
}

func answer(id uint16, channel uint16, tag uint64, flags byte) []byte {
	return method(channel, 60, id, append(binary.BigEndian.AppendUint64(nil, tag), flags)...)
}

// What a leader repeats when it begins counts for all queues together, and not for one.
func TestRepeatedFiresHaveNoLimitOfTheirQueue(t *testing.T) {
	truth := newTruth()
	c := truth.connection(0, 0, new(atomic.Bool))
	up := append([]byte("AMQP\x00\x00\x09\x01"), append(method(1, 20, 10, 0), method(1, 85, 10, 0)...)...)
	for i, op := range []string{"refired", "fired", "refired"} {
		up = append(append(up, publish(1, "a")...), headerFrame(1, fireHeaders(op, 3, int64(i))...)...)
	}
	write(&frames{preface: 8, handle: c.fromSidecar}, up, 1<<20)
	require.Equal(t, openFires{total: 3, of: map[string]int{"a": 1}}, truth.open())
}

// A tap decodes a conversation, no matter how it is split into pieces.
func TestTapDecodesFiresAndAnswers(t *testing.T) {
	for _, size := range []int{1, 7, 1 << 20} {
		truth := newTruth()
		c := truth.connection(2, 1, new(atomic.Bool))
		sent := &frames{preface: 8, handle: c.fromSidecar}
		got := &frames{handle: c.fromBroker}

		var up []byte
		up = append(up, "AMQP\x00\x00\x09\x01"...)
		up = append(up, method(1, 20, 10, 0)...)
		up = append(up, publish(1, "before-confirms")...)
		up = append(up, headerFrame(1, fireHeaders("fired", 3, 99)...)...)
		up = append(up, method(1, 85, 10, 0)...)
		for i, key := range []string{"a", "b", "c", "d"} {
			up = append(up, publish(1, key)...)
			up = append(up, headerFrame(1, fireHeaders("fired", 3, int64(i+1))...)...)
		}
		up = append(up, publish(1, "probe")...)
		up = append(up, headerFrame(1, fireHeaders("probe", 3, 1)...)...)
		write(sent, up, size)
		require.Equal(t, 4, truth.open().total)
		write(got, append(append(answer(80, 1, 2, 1), answer(120, 1, 3, 0)...), answer(80, 2, 4, 0)...), size)

		require.Len(t, truth.fires, 4, "probes, and what is published without confirms, are no fires")
		require.Equal(t, 1, truth.open().total)
		require.False(t, truth.fires[fire{3, 1}].acked.IsZero(), "one answer for several")
		require.False(t, truth.fires[fire{3, 2}].acked.IsZero())
		require.False(t, truth.fires[fire{3, 3}].nacked.IsZero())
		require.False(t, truth.fires[fire{3, 4}].answered())
		require.Equal(t, truth.fires[fire{3, 2}].sent, c.proven)
		require.Equal(t, "d", truth.fires[fire{3, 4}].queue)
		sidecar, node, ok := truth.leader()
		require.True(t, ok)
		require.Equal(t, []int{2, 1}, []int{sidecar, node})
		c.end()
		require.Zero(t, truth.open().total)
	}
}

// What a leader left open does not count for the next one on the same connection.
func TestClosedChannelHasNoOpenFires(t *testing.T) {
	const close, closeOk = 40, 41
	fires := func(channel uint16, epoch int64, keys ...string) (up []byte) {
		up = append(method(channel, 20, 10, 0), method(channel, 85, 10, 0)...)
		for i, key := range keys {
			up = append(append(up, publish(channel, key)...), headerFrame(channel, fireHeaders("fired", epoch, int64(i))...)...)
		}
		return up
	}
	for _, closedBy := range []string{"the sidecar", "the broker"} {
		t.Run(closedBy, func(t *testing.T) {
			truth := newTruth()
			c := truth.connection(0, 0, new(atomic.Bool))
			sidecar, broker := &frames{preface: 8, handle: c.fromSidecar}, &frames{handle: c.fromBroker}
			first, second := sidecar, broker
			if closedBy == "the broker" {
				first, second = broker, sidecar
			}
			write(sidecar, append([]byte("AMQP\x00\x00\x09\x01"), fires(1, 3, "a", "a")...), 1<<20)
			write(sidecar, fires(2, 4, "a"), 1<<20)
			require.Equal(t, map[string]int{"a": 3}, truth.open().of)
			write(first, method(1, 20, close), 1<<20)
			write(broker, answer(80, 1, 1, 0), 1<<20)
			require.False(t, truth.fires[fire{3, 0}].acked.IsZero(), "a channel that closes still has answers")
			write(second, method(1, 20, closeOk), 1<<20)
			require.Equal(t, map[string]int{"a": 1}, truth.open().of)
		})
	}
}

func write(f *frames, all []byte, size int) {
	for len(all) > 0 {
		n := min(size, len(all))
		_, _ = f.Write(all[:n])
		all = all[n:]
	}
}

// Data that is not AMQP is passed on, and not decoded any more.
func TestTapIgnoresInvalidFrames(t *testing.T) {
	seen := 0
	f := &frames{handle: func(frame) { seen++ }}
	bad := wireFrame(frameMethod, 1, 1, 2, 3)
	bad[len(bad)-1] = 0
	n, err := f.Write(bad)
	require.NoError(t, err)
	require.Equal(t, len(bad), n)
	_, _ = f.Write(wireFrame(frameMethod, 1, 1))
	require.Zero(t, seen)

	short := frame{kind: frameHeader, payload: []byte{0, 60}}
	_, err = short.properties()
	require.ErrorIs(t, err, errShort)
}
