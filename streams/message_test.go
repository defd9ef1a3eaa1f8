package streams

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/rabbitmq/rabbitmq-stream-go-client/pkg/amqp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A message that RabbitMQ's own client library encodes is decoded to the same values.
func TestParseMessageOfStreamClient(t *testing.T) {
	m := &amqp.Message{Data: [][]byte{[]byte("body")}}
	m.Header = &amqp.MessageHeader{Durable: true, Priority: 3}
	m.Annotations = amqp.Annotations{"x-a": "b", "x-map": map[string]any{"x": []byte("y")}}
	m.Properties = &amqp.MessageProperties{MessageID: "id", UserID: []byte("millrace"), Subject: "s", CorrelationID: uint64(5)}
	m.ApplicationProperties = map[string]any{
		"millrace-s": "s", "millrace-i8": int8(-1), "millrace-u8": uint8(255), "millrace-i16": int16(-2), "millrace-u16": uint16(65535),
		"millrace-i32": int32(-300), "millrace-small-i32": int32(-3), "millrace-u32": uint32(math.MaxUint32), "millrace-small-u32": uint32(9),
		"millrace-zero-u32": uint32(0), "millrace-i64": int64(math.MinInt64), "millrace-small-i64": int64(-4),
		"millrace-u64": uint64(math.MaxInt64), "millrace-small-u64": uint64(7), "millrace-zero-u64": uint64(0),
		"millrace-too-large": uint64(math.MaxUint64), "millrace-bool": true, "millrace-float": 1.5, "millrace-null": nil,
		"millrace-binary": []byte("b"), "millrace-list": []any{int32(1), "x"},
		"other": "x", "": "x",
	}
	b, err := m.MarshalBinary()
	require.NoError(t, err)
	got, err := parseMessage(b)
	require.NoError(t, err)
	require.Equal(t, route{priority: 3}, got.envelope.route())
	got.envelope = envelope{}
	require.Equal(t, message{userID: "millrace", body: []byte("body"), headers: map[string]any{
		"millrace-s": "s", "millrace-i8": int64(-1), "millrace-u8": int64(255), "millrace-i16": int64(-2), "millrace-u16": int64(65535),
		"millrace-i32": int64(-300), "millrace-small-i32": int64(-3), "millrace-u32": int64(math.MaxUint32), "millrace-small-u32": int64(9),
		"millrace-zero-u32": int64(0), "millrace-i64": int64(math.MinInt64), "millrace-small-i64": int64(-4),
		"millrace-u64": int64(math.MaxInt64), "millrace-small-u64": int64(7), "millrace-zero-u64": int64(0), "millrace-binary": "b",
	}}, got)
}

func TestParseMessageBody(t *testing.T) {
	data := func(body string) []byte { return append([]byte{0, 0x53, sectionData, 0xa0, byte(len(body))}, body...) }
	for name, c := range map[string]struct {
		b    []byte
		body string
		err  string
	}{
		"one piece":          {b: data("x"), body: "x"},
		"several pieces":     {b: slicesConcat(data("x"), data(""), data("yz")), body: "xyz"},
		"large":              {b: dataMessage(strings.Repeat("x", 300)), body: strings.Repeat("x", 300)},
		"long descriptor":    {b: append([]byte{0, 0x80, 0, 0, 0, 0, 0, 0, 0, sectionData}, 0xa0, 1, 'x'), body: "x"},
		"footer behind":      {b: slicesConcat(data("x"), []byte{0, 0x53, sectionFooter, 0xc1, 1, 0}), body: "x"},
		"empty properties":   {b: slicesConcat([]byte{0, 0x53, sectionProperties, 0x45}, data("x")), body: "x"},
		"no user":            {b: slicesConcat([]byte{0, 0x53, sectionProperties, 0xc0, 3, 2, 0x40, 0x40}, data("x")), body: "x"},
		"described property": {b: slicesConcat([]byte{0, 0x53, sectionProperties, 0xc0, 6, 2, 0, 0x44, 0x44, 0xa0, 0}, data("x")), body: "x"},
		"nothing":            {err: "no body"},
		"only a header":      {b: []byte{0, 0x53, sectionHeader, 0x45}, err: "no body"},
		"value":              {b: valueMessage("x"), err: "value"},
		"sequence":           {b: []byte{0, 0x53, sectionSequence, 0x45}, err: "value"},
		"json":               {b: []byte(`{"a": 1}`), err: "not AMQP 1.0"},
		"unknown section":    {b: []byte{0, 0x53, 0x20, 0x45}, err: "unknown section"},
		"symbolic section":   {b: []byte{0, 0xa3, 1, 'x', 0x45}, err: "unknown section"},
		"bodiless section":   {b: []byte{0, 0x53, sectionData}, err: "too early"},
		"data as string":     {b: []byte{0, 0x53, sectionData, 0xa1, 1, 'x'}, err: "type 0xa1"},
		"unknown type":       {b: []byte{0, 0x53, sectionHeader, 0x10}, err: "type 0x10"},
		"too long":           {b: []byte{0, 0x53, sectionData, 0xb0, 0xff, 0xff, 0xff, 0xff, 'x'}, err: "too early"},
		"properties as map":  {b: []byte{0, 0x53, sectionProperties, 0xc1, 1, 0}, err: "list or map"},
		"too few headers":    {b: []byte{0, 0x53, sectionAppProps, 0xd1, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff}, err: "too early"},
		"header cut":         {b: []byte{0, 0x53, sectionAppProps, 0xc1, 4, 2, 0xa1, 9, 'x'}, err: "too early"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := parseMessage(c.b)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.body, string(m.body))
		})
	}
}

func slicesConcat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// A body in several sections must not be joined in the input: the bytes behind the first section
// belong to the next record.
func TestParseMessageLeavesInputUnchanged(t *testing.T) {
	b := slicesConcat(dataMessage("one"), dataMessage("two"))
	original := bytes.Clone(b)
	m, err := parseMessage(b)
	require.NoError(t, err)
	require.Equal(t, "onetwo", string(m.body))
	require.Equal(t, original, b)
}

// Millions of nested values need no deeper stack, and no more time, than other bytes of the same
// length.
func TestParseMessageNesting(t *testing.T) {
	const depth = 16 << 20
	described := append([]byte{0, 0x53, sectionHeader}, make([]byte, depth)...)
	_, err := parseMessage(described)
	require.ErrorContains(t, err, "too early")

	var lists []byte
	for range 1000 {
		lists = binary.BigEndian.AppendUint32([]byte{0xd0}, uint32(len(lists)+4))
		lists = append(lists, 0, 0, 0, 1)
	}
	_, err = parseMessage(append([]byte{0, 0x53, sectionHeader}, lists...))
	require.Error(t, err)
}

func TestParseMessageKeepsFewHeaders(t *testing.T) {
	m := &amqp.Message{Data: [][]byte{[]byte("x")}}
	m.ApplicationProperties = map[string]any{}
	for i := range 1000 {
		m.ApplicationProperties["millrace-"+strings.Repeat("x", i)] = "y"
	}
	b, err := m.MarshalBinary()
	require.NoError(t, err)
	got, err := parseMessage(b)
	require.NoError(t, err)
	require.Len(t, got.headers, maxHeaders)
}

// Any bytes are either decoded or refused.
func TestParseMessageAnyBytes(t *testing.T) {
	m := &amqp.Message{Data: [][]byte{[]byte("body")}}
	m.Properties = &amqp.MessageProperties{UserID: []byte("user")}
	m.ApplicationProperties = map[string]any{"millrace-a": "b", "millrace-c": int64(1 << 40), "x": true}
	good, err := m.MarshalBinary()
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(good)
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			b[rapid.IntRange(0, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "to")
		}
		b = b[:rapid.IntRange(0, len(b)).Draw(t, "length")]
		if m, err := parseMessage(b); err == nil {
			require.LessOrEqual(t, len(m.body)+len(m.userID), len(b))
		}
	})
}

func FuzzParseMessage(f *testing.F) {
	f.Add(dataMessage("x"))
	f.Add(valueMessage("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parseMessage(b)
		if err == nil && len(m.body) > len(b) {
			t.Fatal("more body than bytes")
		}
	})
}

// The envelope is decoded as RabbitMQ 3 and 4 write it, and ignored in any other form.
func TestEnvelope(t *testing.T) {
	for name, c := range map[string]struct {
		annotations amqp.Annotations
		priority    uint8
		properties  *amqp.MessageProperties
		want        route
	}{
		"RabbitMQ 3":   {annotations: amqp.Annotations{"x-exchange": "jobs.direct", "x-routing-key": "mail", "x-basic-priority": uint8(7)}, want: route{exchange: "jobs.direct", key: "mail", priority: 7}},
		"RabbitMQ 4":   {annotations: amqp.Annotations{"x-exchange": "jobs.fire", "x-routing-key": "mail"}, priority: 9, want: route{exchange: "jobs.fire", key: "mail", priority: 9}},
		"answer":       {properties: &amqp.MessageProperties{ReplyTo: "amq.rabbitmq.reply-to.x", CorrelationID: "c"}, want: route{replyTo: "amq.rabbitmq.reply-to.x", correlationID: "c"}},
		"address":      {properties: &amqp.MessageProperties{ReplyTo: "/queues/amq.rabbitmq.reply-to.a%2Fb%3D"}, want: route{replyTo: "amq.rabbitmq.reply-to.a/b="}},
		"nothing":      {},
		"other things": {annotations: amqp.Annotations{"x-exchange": int64(5), "x-routing-key": map[string]any{"x": "y"}, "x-basic-priority": "high", "x-else": "z"}},
		"too high":     {annotations: amqp.Annotations{"x-basic-priority": int64(1000)}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &amqp.Message{Data: [][]byte{[]byte("x")}, Annotations: c.annotations, Properties: c.properties}
			if c.priority > 0 {
				m.Header = &amqp.MessageHeader{Priority: c.priority}
			}
			b, err := m.MarshalBinary()
			require.NoError(t, err)
			got, err := parseMessage(b)
			require.NoError(t, err)
			require.Equal(t, c.want, got.envelope.route())
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		e := envelope{header: rapid.SliceOf(rapid.Byte()).Draw(t, "header"), annotations: rapid.SliceOf(rapid.Byte()).Draw(t, "annotations"), properties: rapid.SliceOf(rapid.Byte()).Draw(t, "properties")}
		r := e.route()
		require.LessOrEqual(t, len(r.exchange)+len(r.key), 2*len(e.annotations))
	})
}
