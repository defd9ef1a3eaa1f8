package millrace

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

func TestMessageRefusesHeaders(t *testing.T) {
	deep := map[string]any{}
	deep["deeper"] = []any{deep}
	for value, reason := range map[any]string{
		time.Unix(1, 0):           "header a: JSON has no time.Time",
		amqp.Decimal{Value: 1}:    "header a: JSON has no amqp091.Decimal",
		uint64(math.MaxInt64 + 1): "value out of range",
		math.NaN():                "header a: JSON has no NaN",
		math.Inf(-1):              "header a: JSON has no -Inf",
		"\xff":                    "is not UTF-8",
	} {
		requireInvalid(t, Message{Properties: MessageProperties{Headers: map[string]any{"a": value}}}, reason)
	}
	requireInvalid(t, Message{Properties: MessageProperties{Headers: map[string]any{"a": []any{[]byte("b")}}}}, "header a: JSON has no []uint8")
	requireInvalid(t, Message{Properties: MessageProperties{Headers: map[string]any{"\xff": 1}}}, "the name of a header is not UTF-8")
	requireInvalid(t, Message{Properties: MessageProperties{Headers: deep}}, "nested deeper than 100 levels")
}

func requireInvalid(t *testing.T, m Message, reason string) {
	t.Helper()
	_, _, err := EnqueueParams{Args: m}.Message(time.Now())
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, reason)
}

// In JSON, an integer stays an integer, and a float a float.
func TestMessageHeaders(t *testing.T) {
	m := Message{Properties: MessageProperties{Headers: amqp.Table{
		"least": int64(math.MinInt64), "most": uint64(math.MaxInt64), "byte": byte(7), "whole": 2.0, "large": 1e300, "half": float32(0.5),
		"list": []any{nil, true, uint(1)}, "table": map[string]any{"<a>": "b"},
	}}}
	text, err := json.Marshal(m)
	require.NoError(t, err)
	headers := gjson.GetBytes(text, "properties.headers")
	for name, want := range map[string]string{
		"least": "-9223372036854775808", "most": "9223372036854775807", "byte": "7", "whole": "2.0", "large": "1e+300", "half": "0.5",
		"list": "[null,true,1]",
	} {
		require.Equal(t, want, headers.Get(name).Raw)
	}
	require.Equal(t, "b", headers.Get("table.<a>").String())
}

func TestMessageOptions(t *testing.T) {
	now := time.Now()
	_, body, err := EnqueueParams{Args: &Message{Exchange: "orders"}, Options: EnqueueOptions{Tags: []string{"web"}}}.Message(now)
	require.NoError(t, err)
	require.Equal(t, "millrace.messages", gjson.GetBytes(body, "queue").String())
	require.Equal(t, `["web"]`, gjson.GetBytes(body, "tags").Raw)

	c, err := NewClient(ClientConfig{URL: "amqp://guest:guest@127.0.0.1:1/"})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.PublishIn(context.Background(), time.Hour, Message{}, &EnqueueOptions{Queue: "low"})
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, `a message waits in the queue millrace.messages, not in "low"`)
	_, err = c.PublishAt(context.Background(), now, Message{Exchange: strings.Repeat("x", 256)}, nil)
	require.ErrorContains(t, err, "exchange is 256 bytes long, at most 255 are allowed")
}
