package messages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// headerDelay is how long a message was to wait, in milliseconds. It is negative in what is
// delivered.
const headerDelay = "x-delay"

// fromBlock reads the properties of a message from the bytes in which AMQP 0-9-1 has them: flags,
// and the values whose flags are set. Unsigned integers in headers become signed ones with twice
// the bits.
func fromBlock(block []byte) (m amqp.Publishing, err error) {
	r := reader{rest: block}
	flags := r.uint16()
	text := func(bit int, to *string) {
		if flags>>bit&1 != 0 {
			*to = r.short()
		}
	}
	text(15, &m.ContentType)
	text(14, &m.ContentEncoding)
	if flags>>13&1 != 0 {
		m.Headers = r.table()
	}
	if flags>>12&1 != 0 {
		m.DeliveryMode = r.byte()
	}
	if flags>>11&1 != 0 {
		m.Priority = r.byte()
	}
	text(10, &m.CorrelationId)
	text(9, &m.ReplyTo)
	text(8, &m.Expiration)
	text(7, &m.MessageId)
	if flags>>6&1 != 0 {
		m.Timestamp = r.time()
	}
	text(5, &m.Type)
	text(4, new(string)) // user_id: only a header says it, which cannot be forged
	text(3, &m.AppId)
	text(2, new(string)) // cluster_id, which is reserved
	switch {
	case r.err != nil:
		return m, fmt.Errorf("properties_base64: %w", r.err)
	case flags&3 != 0 || len(r.rest) > 0:
		return m, errors.New("properties_base64 has more than the properties of AMQP 0-9-1")
	}
	negateDelay(m.Headers)
	return m, nil
}

// negateDelay keeps the type where it can. Some clients, such as pika 1.2, read a negative integer
// of 64 bits as a large positive one.
func negateDelay(headers amqp.Table) {
	switch v := headers[headerDelay].(type) {
	case byte:
		headers[headerDelay] = -int16(v)
	case int8:
		headers[headerDelay] = -max(v, -math.MaxInt8)
	case int16:
		headers[headerDelay] = -max(v, -math.MaxInt16)
	case int32:
		headers[headerDelay] = -max(v, -math.MaxInt32)
	case int64:
		headers[headerDelay] = -max(v, -math.MaxInt64)
	case float32:
		headers[headerDelay] = -v
	case float64:
		headers[headerDelay] = -v
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			headers[headerDelay] = -max(n, -math.MaxInt64)
		}
	}
}

// reader reads the values of AMQP 0-9-1. After an error it returns zeros.
type reader struct {
	rest  []byte
	depth int
	err   error
}

var errShort = errors.New("it ends too early")

// maxDepth is how deep tables and lists may be nested.
const maxDepth = 32

func (r *reader) take(n uint32) []byte {
	if r.err == nil && uint64(n) > uint64(len(r.rest)) {
		r.err = errShort
	}
	if r.err != nil {
		return make([]byte, min(n, 8))
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte     { return r.take(1)[0] }
func (r *reader) uint16() uint16 { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) uint32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) uint64() uint64 { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) short() string  { return string(r.take(uint32(r.byte()))) }
func (r *reader) long() []byte   { return r.take(r.uint32()) }

func (r *reader) time() time.Time { return time.Unix(int64(r.uint64()), 0) }

// inside reads all of a table or list with another reader.
func (r *reader) inside(one func(*reader)) {
	in := reader{rest: r.long(), depth: r.depth + 1, err: r.err}
	if in.err == nil && in.depth > maxDepth {
		in.err = errors.New("its headers are nested too deep")
	}
	for in.err == nil && len(in.rest) > 0 {
		one(&in)
	}
	r.err = in.err
}

func (r *reader) table() amqp.Table {
	table := amqp.Table{}
	r.inside(func(in *reader) {
		name := in.short()
		table[name] = in.value()
	})
	return table
}

func (r *reader) list() []any {
	list := []any{}
	r.inside(func(in *reader) { list = append(list, in.value()) })
	return list
}

func (r *reader) value() any {
	switch kind := r.byte(); kind {
	case 't':
		return r.byte() != 0
	case 'b':
		return int8(r.byte())
	case 'B':
		return r.byte()
	case 's':
		return int16(r.uint16())
	case 'u':
		return int32(r.uint16())
	case 'I':
		return int32(r.uint32())
	case 'i':
		return int64(r.uint32())
	case 'l', 'L':
		return int64(r.uint64())
	case 'f':
		return math.Float32frombits(r.uint32())
	case 'd':
		return math.Float64frombits(r.uint64())
	case 'D':
		return amqp.Decimal{Scale: r.byte(), Value: int32(r.uint32())}
	case 'S':
		return string(r.long())
	case 'x':
		return r.long()
	case 'T':
		return r.time()
	case 'A':
		return r.list()
	case 'F':
		return r.table()
	case 'V':
		return nil
	default:
		if r.err == nil {
			r.err = fmt.Errorf("a header has the unknown type %q", kind)
		}
		return nil
	}
}
