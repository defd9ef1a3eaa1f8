package streams

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

// nativePublisher publishes given bytes over the stream protocol, even those that no correct client
// would send.
type nativePublisher struct {
	t    testing.TB
	link *link
	id   uint64
}

const (
	cmdDeclarePublisher = 1
	cmdPublish          = 2
	cmdPublishConfirm   = 3
	cmdPublishError     = 4
)

func newNativePublisher(t testing.TB, b *testBroker, stream string) *nativePublisher {
	to, err := parseStreamURL(b.streamURL)
	require.NoError(t, err)
	// nativePublisher sends no heartbeats, and large messages take long on a busy machine.
	l, err := dial(context.Background(), Config{Heartbeat: time.Minute}.withDefaults(), to, "publishes")
	require.NoError(t, err)
	t.Cleanup(l.close)
	_, err = l.ask(newRequest(cmdDeclarePublisher).u8(0).str("").str(stream))
	require.NoError(t, err)
	return &nativePublisher{t: t, link: l}
}

// publish sends the entries in one frame, and waits for their confirms.
func (p *nativePublisher) publish(entries ...[]byte) {
	p.t.Helper()
	p.send(entries...)
	require.Equal(p.t, len(entries), p.wait(len(entries)), "refused by the broker")
}

// try reports whether the broker accepts an entry. Newer brokers check the header of a sub-batch.
func (p *nativePublisher) try(entry []byte) bool {
	p.t.Helper()
	p.send(entry)
	return p.wait(1) == 1
}

func (p *nativePublisher) send(entries ...[]byte) {
	p.t.Helper()
	r := newRequest(cmdPublish).u8(0).u32(uint32(len(entries)))
	for _, entry := range entries {
		p.id++
		r.u64(p.id)
		r.b = append(r.b, entry...)
	}
	require.NoError(p.t, p.link.send(r))
}

// wait waits until n entries were confirmed or refused.
func (p *nativePublisher) wait(n int) (confirmed int) {
	p.t.Helper()
	for n > 0 {
		f, err := p.link.read()
		require.NoError(p.t, err)
		require.Contains(p.t, []uint16{cmdPublishConfirm, cmdPublishError}, f.command)
		f.content.u8()
		answered := int(f.content.u32())
		n -= answered
		if f.command == cmdPublishConfirm {
			confirmed += answered
		}
		require.NoError(p.t, p.link.skip(f))
	}
	return confirmed
}

// single returns an entry with one message.
func single(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...)
}

// subBatch returns an entry with several messages.
func subBatch(compression byte, messages ...[]byte) []byte {
	var plain []byte
	for _, m := range messages {
		plain = append(plain, single(m)...)
	}
	return rawSubBatch(compression, uint16(len(messages)), uint32(len(plain)), compress(compression, plain))
}

// rawSubBatch returns a sub-batch with a header that may state anything.
func rawSubBatch(compression byte, records uint16, plain uint32, packed []byte) []byte {
	b := []byte{0x80 | compression<<4}
	b = binary.BigEndian.AppendUint16(b, records)
	b = binary.BigEndian.AppendUint32(b, plain)
	b = binary.BigEndian.AppendUint32(b, uint32(len(packed)))
	return append(b, packed...)
}

func compress(compression byte, plain []byte) []byte {
	var out bytes.Buffer
	var w io.WriteCloser
	switch compression {
	case 1:
		w = gzip.NewWriter(&out)
	case 2:
		w = snappy.NewBufferedWriter(&out)
	case 3:
		w = lz4.NewWriter(&out)
	case 4:
		w, _ = zstd.NewWriter(&out)
	default:
		return plain
	}
	if _, err := w.Write(plain); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// dataMessage returns an AMQP 1.0 message with one data section.
func dataMessage(body string) []byte {
	b := []byte{0, 0x53, sectionData, 0xb0}
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	return append(b, body...)
}

// valueMessage returns an AMQP 1.0 message with a string as its body.
func valueMessage(body string) []byte {
	return append([]byte{0, 0x53, sectionValue, 0xa1, byte(len(body))}, body...)
}

func bodies(prefix string, n int) (messages [][]byte) {
	for i := range n {
		messages = append(messages, dataMessage(fmt.Sprintf("%s%d", prefix, i)))
	}
	return messages
}
