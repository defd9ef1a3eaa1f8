package streams

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// wholeChunk is the largest chunk that is read in one go, with a check of its checksum. Larger
// chunks are read record by record, so that memory stays bounded: a body may have 15 MiB, and a
// chunk may have thousands of records.
const wholeChunk = 4 << 20

// chunk is the unit in which the broker stores and delivers records. Their offsets are consecutive.
type chunk struct {
	first   int64 // the offset of its first record
	records uint32
	entries uint16
	stored  time.Time
	crc     uint32
	size    uint32
}

// last returns the offset of the chunk's last record.
func (c chunk) last() int64 { return c.first + int64(c.records) - 1 }

// readChunkHeader reads the fields before the entries.
func readChunkHeader(c *content) (chunk, error) {
	c.u8() // magic and version
	c.u8() // type: the broker delivers only chunks of messages
	h := chunk{entries: c.u16(), records: c.u32()}
	h.stored = time.UnixMilli(int64(c.u64())).UTC()
	c.u64() // epoch
	h.first = int64(c.u64())
	h.crc, h.size = c.u32(), c.u32()
	c.u32() // length of the trailer, which is not sent
	c.u32() // reserved
	if c.err != nil {
		return chunk{}, lost("reading a chunk: %w", c.err)
	}
	return h, nil
}

// chunkReader passes the records of one chunk to emit, one by one. It stops when emit fails.
type chunkReader struct {
	chunk
	stream string
	from   int64
	emit   func(wire.Record) error

	in     io.Reader
	offset int64
	word   [4]byte
}

// read reads the whole chunk. Even if the content is damaged, it emits a record or a Fault for each
// of its offsets.
func (r *chunkReader) read(c *content) error {
	r.in, r.offset = c, r.first
	if r.size <= wholeChunk {
		whole := make([]byte, r.size)
		if !c.full(whole) {
			return lost("reading a chunk: %w", c.err)
		}
		if crc32.ChecksumIEEE(whole) != r.crc {
			return r.fault(r.last(), "the broker's storage gave back other bytes than were stored (checksum)")
		}
		r.in = bytes.NewBuffer(whole)
	}
	for range r.entries {
		switch err := r.entry(); {
		case err == nil:
		case c.err != nil:
			return lost("reading a chunk: %w", c.err)
		case errors.Is(err, errFrame) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return r.fault(r.last(), "the chunk is shorter than what it holds")
		default:
			return err
		}
	}
	return r.fault(r.last(), "the chunk holds fewer records than it says")
}

// entry reads a record, or a sub-batch of records if the highest bit is set.
func (r *chunkReader) entry() error {
	if err := r.fill(r.word[:]); err != nil {
		return err
	}
	if r.word[0]&0x80 != 0 {
		return r.subBatch()
	}
	size := binary.BigEndian.Uint32(r.word[:])
	if r.offset < r.from {
		r.offset++
		return r.discard(int64(size))
	}
	b, err := r.bytes(size)
	if err != nil {
		return err
	}
	return r.record(b)
}

// record emits the record in one message.
func (r *chunkReader) record(b []byte) error {
	offset := r.offset
	r.offset++
	if offset < r.from {
		return nil
	}
	m, err := parseMessage(b)
	if err != nil {
		return r.emit(wire.Record{Stream: r.stream, Offset: offset, Through: offset, Time: r.stored, Fault: "unreadable: " + err.Error()})
	}
	out := wire.Record{Stream: r.stream, Offset: offset, Time: r.stored, UserID: m.userID, Headers: m.headers, Body: m.body}
	if wire.Routed(r.stream) {
		route := m.envelope.route()
		out.Exchange, out.Key, out.Priority = route.exchange, route.key, route.priority
		out.ReplyTo, out.CorrelationID = route.replyTo, route.correlationID
	}
	return r.emit(out)
}

// fault emits one Fault for the offsets up to through that were not emitted yet, if there are any.
func (r *chunkReader) fault(through int64, reason string) error {
	first := max(r.offset, r.from)
	r.offset = through + 1
	if first > through {
		return nil
	}
	return r.emit(wire.Record{Stream: r.stream, Offset: first, Through: through, Time: r.stored, Fault: "unreadable: " + reason})
}

func (r *chunkReader) subBatch() error {
	compression := r.word[0] >> 4 & 7
	records := binary.BigEndian.Uint16(r.word[1:3])
	var rest [8]byte
	rest[0] = r.word[3]
	if err := r.fill(rest[1:]); err != nil {
		return err
	}
	plain, size := binary.BigEndian.Uint32(rest[:4]), binary.BigEndian.Uint32(rest[4:])
	through := r.offset + int64(records) - 1
	if through < r.from {
		r.offset = through + 1
		return r.discard(int64(size))
	}
	packed, err := r.bytes(size)
	if err != nil {
		return err
	}
	unpacked, err := unpack(compression, packed, plain, maxUnpacked)
	if err != nil {
		return r.fault(through, fmt.Sprintf("sub-batch: %v", err))
	}
	for r.offset <= through && len(unpacked) >= 4 {
		n := binary.BigEndian.Uint32(unpacked)
		unpacked = unpacked[4:]
		if uint64(n) > uint64(len(unpacked)) {
			break
		}
		if err := r.record(unpacked[:n:n]); err != nil {
			return err
		}
		unpacked = unpacked[n:]
	}
	return r.fault(through, "sub-batch: holds fewer records than it says")
}

// bytes reads n bytes. It does not copy them if the chunk is in memory.
func (r *chunkReader) bytes(n uint32) ([]byte, error) {
	if whole, ok := r.in.(*bytes.Buffer); ok {
		b := whole.Next(int(n))
		if len(b) < int(n) {
			return nil, errFrame
		}
		return b, nil
	}
	if c, ok := r.in.(*content); ok && int64(n) > c.left {
		return nil, errFrame
	}
	b := make([]byte, n)
	return b, r.fill(b)
}

func (r *chunkReader) fill(b []byte) error {
	_, err := io.ReadFull(r.in, b)
	return err
}

func (r *chunkReader) discard(n int64) error {
	_, err := io.CopyN(io.Discard, r.in, n)
	return err
}
