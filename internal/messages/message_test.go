package messages

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMessageFromJSON(t *testing.T) {
	m, err := parse(json.RawMessage(`[{"exchange":"orders","routing_key":"order.created","body":"hé",
		"properties":{"content_type":"text/plain","content_encoding":"identity","correlation_id":"c","reply_to":"r","message_id":"m","type":"t","app_id":"a",
		"expiration":"60000","delivery_mode":1,"priority":5,"timestamp":1795000000,
		"headers":{"n":9007199254740993,"f":1.5,"e":1e3,"s":"é","b":true,"z":null,"list":[1,"x",{"y":2.5}],"table":{"k":-1}}}}]`), "j1")
	require.NoError(t, err)
	require.Equal(t, message{"orders", "order.created", amqp.Publishing{
		ContentType: "text/plain", ContentEncoding: "identity", CorrelationId: "c", ReplyTo: "r", MessageId: "m", Type: "t", AppId: "a",
		Expiration: "60000", DeliveryMode: 1, Priority: 5, Timestamp: time.Unix(1795000000, 0), Body: []byte("hé"),
		Headers: amqp.Table{
			"n": int64(9007199254740993), "f": 1.5, "e": 1000.0, "s": "é", "b": true, "z": nil, "list": []any{int64(1), "x", amqp.Table{"y": 2.5}},
			"table": amqp.Table{"k": int64(-1)}, "millrace-jid": "j1",
		},
	}}, m)

	m, err = parse(json.RawMessage(`[{"exchange":"","routing_key":"q","body_base64":"AP8="}]`), "j2")
	require.NoError(t, err)
	require.Equal(t, message{"", "q", amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{"millrace-jid": "j2"}, Body: []byte{0, 255}}}, m)
}

func TestUnreadableMessages(t *testing.T) {
	for args, why := range map[string]string{
		``:                               "the arguments are no list",
		`[]`:                             "there are 0 arguments",
		`[{"exchange":"e"},{}]`:          "there are 2 arguments",
		`["text"]`:                       "the message is a JSON string: it must be an object",
		`[{"routing_key":"k"}]`:          "has no exchange",
		`[{"exchange":"e","topic":"k"}]`: `unknown field "topic"`,
		`[{"exchange":"e","body":"","body_base64":"AA=="}]`:   "one of them is enough",
		`[{"exchange":"e","body_base64":"é"}]`:                "body_base64: illegal base64",
		`[{"exchange":"e","properties_base64":"é"}]`:          "properties_base64: illegal base64",
		`[{"exchange":"e","properties":{"user_id":"root"}}]`:  `unknown field "user_id"`,
		`[{"exchange":"e","properties":{"priority":256}}]`:    "properties.priority has the wrong type or is out of range: it is a JSON number 256",
		`[{"exchange":"e","properties":{"timestamp":-1}}]`:    "timestamp is -1",
		`[{"exchange":"e","properties":{"delivery_mode":0}}]`: "delivery_mode is 0",
		`[{"exchange":5}]`:                              "exchange has the wrong type",
		`[{"exchange":"jobs.direct"}]`:                  "only Millrace publishes to exchange",
		`[{"exchange":"","routing_key":"job_journal"}]`: "only Millrace publishes to exchange",
		`[{"exchange":"e","properties":{"headers":{"a":{"` + strings.Repeat("h", 256) + `":1}}}}]`: "name of a header has 256 bytes",
		`[{"exchange":"e","properties":{"delivery_mode":3}}]`:                                      "delivery_mode is 3",
		`[{"exchange":"e","properties":{"expiration":"1s"}}]`:                                      "expiration",
		`[{"exchange":"e","properties":{"expiration":"99999999999"}}]`:                             "expiration",
		`[{"exchange":"e","properties":{"type":"amqp-1.0"}}]`:                                      "refuses the type",
		`[{"exchange":"e","properties":{"headers":{"CC":"q"}}}]`:                                   "header CC is no list",
		`[{"exchange":"e","properties":{"headers":{"BCC":[1]}}}]`:                                  "header BCC is no list",
		`[{"exchange":"e","properties":{"headers":{"n":99999999999999999999}}}]`:                   "too large",
		`[{"exchange":"e","properties_base64":"AAE="}]`:                                            "more than the properties",
		`[{"exchange":"e","properties_base64":"gAAF"}]`:                                            "it ends too early",
		`[{"exchange":"e","routing_key":"` + strings.Repeat("k", 256) + `"}]`:                      "routing_key has 256 bytes",
	} {
		_, err := parse(json.RawMessage(args), "j")
		require.ErrorContains(t, err, why, args)
	}
}

func TestCheckIsStricterThanDelivery(t *testing.T) {
	require.NoError(t, Check(json.RawMessage(`{"exchange":"e","properties":{"priority":255,"headers":{"X":1}}}`)))
	require.ErrorContains(t, Check(json.RawMessage(`{"exchange":"e","topic":"k"}`)), `unknown field "topic"`)
	for _, message := range []string{`{"Exchange":"e"}`, `{"exchange":"e","properties":{"Priority":1}}`, `{"exchange":"e","routing_\u212Aey":"k"}`} {
		require.ErrorContains(t, Check(json.RawMessage(message)), "unknown member", message)
	}
}

func TestOwnNamesAreRecognised(t *testing.T) {
	for place, ours := range map[[2]string]bool{
		{"orders", "x"}: false, {"", "queue.default"}: false, {"", "mine"}: false, {"jobs", "x"}: false,
		{"jobs.direct", "default"}: true, {"jobs.control", ""}: true, {"", "job_journal"}: true, {"", "scheduled_jobs"}: true, {"", "jobs.gated"}: true,
	} {
		m := message{exchange: place[0], key: place[1]}
		require.Equal(t, ours, m.ours(), "%q", place)
	}
}

// Properties come back as they were, but for x-delay.
func TestPropertyBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := amqp.Publishing{
			ContentType: short(t, "content_type"), ContentEncoding: short(t, "content_encoding"), Headers: tables(2).Draw(t, "headers"),
			DeliveryMode: rapid.Uint8Range(0, 2).Draw(t, "mode"), Priority: rapid.Uint8().Draw(t, "priority"), CorrelationId: short(t, "correlation_id"),
			ReplyTo: short(t, "reply_to"), Expiration: short(t, "expiration"), MessageId: short(t, "message_id"),
			Timestamp: time.Unix(rapid.Int64Range(1, 1<<40).Draw(t, "timestamp"), 0), Type: short(t, "type"), AppId: short(t, "app_id"),
		}
		got, err := fromBlock(block(want))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestCutBlocksAreRefused(t *testing.T) {
	whole := block(amqp.Publishing{ContentType: "t", Headers: amqp.Table{"a": []any{int64(1), amqp.Table{"b": "c"}}}, MessageId: "m"})
	for n := range whole {
		_, err := fromBlock(whole[:n])
		require.Error(t, err, n)
	}
}

func FuzzPropertyBlock(f *testing.F) {
	f.Add(block(amqp.Publishing{ContentType: "t", Headers: amqp.Table{"x-delay": int32(5), "l": []any{nil}}}))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = fromBlock(b) })
}

func TestDeepHeadersAreRefused(t *testing.T) {
	headers := amqp.Table{}
	for range maxDepth + 1 {
		headers = amqp.Table{"in": headers}
	}
	_, err := fromBlock(block(amqp.Publishing{Headers: headers}))
	require.ErrorContains(t, err, "nested too deep")
}

func TestDelayIsNegated(t *testing.T) {
	for was, is := range map[any]any{
		byte(200): int16(-200), int8(5): int8(-5), int8(math.MinInt8): int8(math.MaxInt8), int16(-300): int16(300), int32(30000): int32(-30000), int64(1 << 40): int64(-(1 << 40)),
		int64(math.MinInt64): int64(math.MaxInt64), 2.5: -2.5, float32(2.5): float32(-2.5), "30000": int64(-30000), "soon": "soon",
	} {
		m, err := fromBlock(block(amqp.Publishing{Headers: amqp.Table{"x-delay": was, "y": was}}))
		require.NoError(t, err)
		require.Equal(t, amqp.Table{"x-delay": is, "y": was}, m.Headers)
	}
}

func short(t *rapid.T, name string) string { return rapid.StringN(0, 40, 200).Draw(t, name) }

func tables(depth int) *rapid.Generator[amqp.Table] {
	return rapid.Custom(func(t *rapid.T) amqp.Table {
		return amqp.Table(rapid.MapOfN(rapid.StringMatching(`[a-z]{1,8}`), values(depth), 0, 5).Draw(t, "table"))
	})
}

func values(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int8().AsAny(), rapid.Uint8().AsAny(), rapid.Int16().AsAny(), rapid.Int32().AsAny(), rapid.Int64().AsAny(),
		rapid.Float64Range(-1e9, 1e9).AsAny(), rapid.Float32Range(-1e9, 1e9).AsAny(), rapid.String().AsAny(), rapid.SliceOf(rapid.Byte()).AsAny(),
		rapid.Custom(func(t *rapid.T) any { return time.Unix(rapid.Int64Range(0, 1<<40).Draw(t, "time"), 0) }),
		rapid.Custom(func(t *rapid.T) any {
			return amqp.Decimal{Scale: rapid.Uint8().Draw(t, "scale"), Value: rapid.Int32().Draw(t, "value")}
		}),
	}
	if depth > 0 {
		kinds = append(kinds, tables(depth-1).AsAny(), rapid.SliceOfN(values(depth-1), 0, 4).AsAny())
	}
	return rapid.OneOf(kinds...)
}

// block returns properties as AMQP 0-9-1 has them on the wire.
func block(p amqp.Publishing) []byte {
	var flags uint16
	var rest bytes.Buffer
	set := func(bit int, is bool, value ...byte) {
		if is {
			flags |= 1 << bit
			rest.Write(value)
		}
	}
	text := func(bit int, s string) { set(bit, s != "", append([]byte{byte(len(s))}, s...)...) }
	text(15, p.ContentType)
	text(14, p.ContentEncoding)
	set(13, p.Headers != nil, tableBytes(p.Headers)...)
	set(12, p.DeliveryMode != 0, p.DeliveryMode)
	set(11, p.Priority != 0, p.Priority)
	text(10, p.CorrelationId)
	text(9, p.ReplyTo)
	text(8, p.Expiration)
	text(7, p.MessageId)
	set(6, !p.Timestamp.IsZero(), binary.BigEndian.AppendUint64(nil, uint64(p.Timestamp.Unix()))...)
	text(5, p.Type)
	text(4, p.UserId)
	text(3, p.AppId)
	return append(binary.BigEndian.AppendUint16(nil, flags), rest.Bytes()...)
}

func long(b []byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }

func tableBytes(table amqp.Table) []byte {
	var b []byte
	for _, name := range slices.Sorted(maps.Keys(table)) {
		b = append(append(b, byte(len(name))), name...)
		b = append(b, valueBytes(table[name])...)
	}
	return long(b)
}

func valueBytes(value any) []byte {
	be := binary.BigEndian
	switch v := value.(type) {
	case nil:
		return []byte{'V'}
	case bool:
		if v {
			return []byte{'t', 1}
		}
		return []byte{'t', 0}
	case int8:
		return []byte{'b', byte(v)}
	case byte:
		return []byte{'B', v}
	case int16:
		return be.AppendUint16([]byte{'s'}, uint16(v))
	case int32:
		return be.AppendUint32([]byte{'I'}, uint32(v))
	case int64:
		return be.AppendUint64([]byte{'l'}, uint64(v))
	case float32:
		return be.AppendUint32([]byte{'f'}, math.Float32bits(v))
	case float64:
		return be.AppendUint64([]byte{'d'}, math.Float64bits(v))
	case string:
		return append([]byte{'S'}, long([]byte(v))...)
	case []byte:
		return append([]byte{'x'}, long(v)...)
	case time.Time:
		return be.AppendUint64([]byte{'T'}, uint64(v.Unix()))
	case amqp.Decimal:
		return be.AppendUint32([]byte{'D', v.Scale}, uint32(v.Value))
	case amqp.Table:
		return append([]byte{'F'}, tableBytes(v)...)
	case []any:
		var b []byte
		for _, member := range v {
			b = append(b, valueBytes(member)...)
		}
		return append([]byte{'A'}, long(b)...)
	}
	panic(fmt.Sprintf("%T", value))
}

func inBase64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
