//go:build plugin

package plugintest

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// block reads a property block of AMQP 0-9-1: flags and values. It panics where the block is too
// short.
type block []byte

func (b *block) take(n int) []byte {
	taken := (*b)[:n]
	*b = (*b)[n:]
	return taken
}

func (b *block) byte() byte     { return b.take(1)[0] }
func (b *block) uint16() uint16 { return binary.BigEndian.Uint16(b.take(2)) }
func (b *block) uint32() uint32 { return binary.BigEndian.Uint32(b.take(4)) }
func (b *block) uint64() uint64 { return binary.BigEndian.Uint64(b.take(8)) }
func (b *block) short() string  { return string(b.take(int(b.byte()))) }
func (b *block) long() []byte   { return b.take(int(b.uint32())) }

// unsigned reads an unsigned integer of 16, 32 or 64 bits.
func (b *block) unsigned(kind byte) uint64 {
	switch kind {
	case 'u':
		return uint64(b.uint16())
	case 'i':
		return uint64(b.uint32())
	default:
		return b.uint64()
	}
}

func (b *block) time() time.Time { return time.Unix(int64(b.uint64()), 0).UTC() }

func (b *block) table() amqp.Table {
	inner, table := block(b.long()), amqp.Table{}
	for len(inner) > 0 {
		key := inner.short()
		table[key] = inner.value()
	}
	return table
}

func (b *block) array() (array []any) {
	for inner := block(b.long()); len(inner) > 0; {
		array = append(array, inner.value())
	}
	return array
}

func (b *block) value() any {
	switch kind := b.byte(); kind {
	case 't':
		return b.byte() != 0
	case 'b':
		return int8(b.byte())
	case 'B':
		return b.byte()
	case 's':
		return int16(b.uint16())
	case 'I':
		return int32(b.uint32())
	case 'u', 'i', 'L': // RabbitMQ 4.0 makes such headers of annotations of AMQP 1.0
		return int64(b.unsigned(kind))
	case 'l':
		return int64(b.uint64())
	case 'f':
		return math.Float32frombits(b.uint32())
	case 'd':
		return math.Float64frombits(b.uint64())
	case 'D':
		return amqp.Decimal{Scale: b.byte(), Value: int32(b.uint32())}
	case 'S':
		return string(b.long())
	case 'x':
		return append([]byte{}, b.long()...)
	case 'T':
		return b.time()
	case 'F':
		return b.table()
	case 'A':
		return b.array()
	case 'V':
		return nil
	default:
		panic(fmt.Sprintf("a value of the type %q", kind))
	}
}

// decode returns the properties in a block.
func decode(t *testing.T, bytes []byte) (p amqp.Publishing) {
	t.Helper()
	b := block(bytes)
	flags := b.uint16()
	for bit, read := range []func(){
		func() { p.ContentType = b.short() },
		func() { p.ContentEncoding = b.short() },
		func() { p.Headers = b.table() },
		func() { p.DeliveryMode = b.byte() },
		func() { p.Priority = b.byte() },
		func() { p.CorrelationId = b.short() },
		func() { p.ReplyTo = b.short() },
		func() { p.Expiration = b.short() },
		func() { p.MessageId = b.short() },
		func() { p.Timestamp = b.time() },
		func() { p.Type = b.short() },
		func() { p.UserId = b.short() },
		func() { p.AppId = b.short() },
	} {
		if flags&(1<<(15-bit)) != 0 {
			read()
		}
	}
	require.Empty(t, b)
	return p
}
