package millrace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// Message is any AMQP message, to be delayed with [Client.PublishIn] or [Client.PublishAt]. As it
// is JobArgs, EnqueueBulk takes messages too.
type Message struct {
	Exchange   string // "" is the default exchange
	RoutingKey string
	Body       []byte
	Properties MessageProperties
}

// MessageProperties are the properties of a Message. The zero value sets none.
type MessageProperties struct {
	ContentType     string    `json:"content_type,omitempty"`
	ContentEncoding string    `json:"content_encoding,omitempty"`
	CorrelationID   string    `json:"correlation_id,omitempty"`
	ReplyTo         string    `json:"reply_to,omitempty"`
	MessageID       string    `json:"message_id,omitempty"`
	Type            string    `json:"type,omitempty"`
	AppID           string    `json:"app_id,omitempty"`
	Expiration      string    `json:"expiration,omitempty"`    // milliseconds after the delivery
	DeliveryMode    uint8     `json:"delivery_mode,omitempty"` // 1 is transient; 2, persistent, if zero
	Priority        uint8     `json:"priority,omitempty"`
	Timestamp       time.Time `json:"-"` // in whole seconds
	// Headers have only values that JSON has: nil, bool, string, numbers of up to 64 bits, []any
	// and map[string]any. Bytes, decimals and times are refused.
	Headers map[string]any `json:"headers,omitempty"`
}

// Kind returns the class of the jobs that deliver messages.
func (Message) Kind() string { return wire.MessageClass }

// EnqueueOptions returns the queue of the jobs that deliver messages.
func (Message) EnqueueOptions() EnqueueOptions { return EnqueueOptions{Queue: wire.MessageQueue} }

// PublishAt delays a message until a time, and returns the jid of the job that delivers it. options
// may be nil.
//
// At that time a sidecar publishes the message to its exchange, with one more header, millrace-jid.
// Its setting --deliver-to must match the name of the exchange. The options are those of the job,
// and its queue cannot be changed. Errors and deadline are those of [Client.EnqueueAt].
func (c *Client) PublishAt(ctx context.Context, at time.Time, message Message, options *EnqueueOptions) (jid string, err error) {
	return c.EnqueueAt(ctx, at, message, options)
}

// PublishIn delays a message for a duration. See [Client.PublishAt].
func (c *Client) PublishIn(ctx context.Context, after time.Duration, message Message, options *EnqueueOptions) (jid string, err error) {
	return c.EnqueueIn(ctx, after, message, options)
}

// encodedMessage is the JSON of a Message.
type encodedMessage struct {
	Exchange   string            `json:"exchange"`
	RoutingKey string            `json:"routing_key"`
	Body       *string           `json:"body,omitempty"`
	BodyBase64 []byte            `json:"body_base64,omitempty"`
	Properties encodedProperties `json:"properties,omitzero"`
}

type encodedProperties struct {
	MessageProperties
	Timestamp *int64 `json:"timestamp,omitempty"`
}

// MarshalJSON returns the arg of the job that delivers the message, or an error if the message
// breaks a rule.
func (m Message) MarshalJSON() ([]byte, error) {
	e := encodedMessage{Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: encodedProperties{MessageProperties: m.Properties}}
	if err := m.check(); err != nil {
		return nil, err
	}
	if utf8.Valid(m.Body) {
		text := string(m.Body)
		e.Body = &text
	} else {
		e.BodyBase64 = m.Body
	}
	if at := m.Properties.Timestamp; !at.IsZero() {
		seconds := at.Unix()
		e.Properties.Timestamp = &seconds
	}
	if m.Properties.Headers != nil {
		headers, err := headerTable(m.Properties.Headers, 0)
		if err != nil {
			return nil, err
		}
		e.Properties.Headers = headers
	}
	return marshal(e)
}

// UnmarshalJSON decodes what MarshalJSON returns. Numbers in headers become json.Number.
func (m *Message) UnmarshalJSON(text []byte) error {
	var e encodedMessage
	if err := decode(text, &e); err != nil {
		return err
	}
	*m = Message{Exchange: e.Exchange, RoutingKey: e.RoutingKey, Body: e.BodyBase64, Properties: e.Properties.MessageProperties}
	if e.Body != nil {
		m.Body = []byte(*e.Body)
	}
	if at := e.Properties.Timestamp; at != nil {
		m.Properties.Timestamp = time.Unix(*at, 0)
	}
	return nil
}

func (m Message) check() error {
	p := m.Properties
	for name, text := range map[string]string{
		"exchange": m.Exchange, "routing_key": m.RoutingKey, "content_type": p.ContentType, "content_encoding": p.ContentEncoding,
		"correlation_id": p.CorrelationID, "reply_to": p.ReplyTo, "message_id": p.MessageID, "type": p.Type, "app_id": p.AppID,
	} {
		if err := checkShort(name, text); err != nil {
			return err
		}
	}
	if strings.Trim(p.Expiration, "0123456789") != "" || len(p.Expiration) > wire.MaxShort {
		return fmt.Errorf("expiration is %.40q, which is not a number of milliseconds", p.Expiration)
	}
	if p.DeliveryMode > 2 {
		return fmt.Errorf("delivery_mode is %d, 1 and 2 are allowed", p.DeliveryMode)
	}
	if !p.Timestamp.IsZero() && p.Timestamp.Unix() < 0 {
		return fmt.Errorf("timestamp is %v, which is before 1970", p.Timestamp)
	}
	return nil
}

// checkShort returns an error if a text is not an AMQP short string.
func checkShort(name, text string) error {
	if len(text) > wire.MaxShort {
		return fmt.Errorf("%s is %d bytes long, at most %d are allowed", name, len(text), wire.MaxShort)
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("%s is not UTF-8", name)
	}
	return nil
}

// maxHeaderDepth is how deep headers may be nested.
const maxHeaderDepth = 100

// headerTable returns headers as they are encoded.
func headerTable(headers map[string]any, depth int) (map[string]any, error) {
	if depth > maxHeaderDepth {
		return nil, fmt.Errorf("headers are nested deeper than %d levels", maxHeaderDepth)
	}
	table := make(map[string]any, len(headers))
	for name, value := range headers {
		if err := checkShort("the name of a header", name); err != nil {
			return nil, err
		}
		encoded, err := headerValue(value, depth+1)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		table[name] = encoded
	}
	return table, nil
}

// headerValue returns the value of a header as it is encoded, or an error if JSON does not have
// exactly this value.
func headerValue(value any, depth int) (any, error) {
	switch v := value.(type) {
	case nil, bool, int, int8, int16, int32, int64, uint8, uint16, uint32:
		return v, nil
	case uint, uint64:
		return headerValue(json.Number(fmt.Sprint(v)), depth)
	case json.Number:
		if !strings.ContainsAny(string(v), ".eE") {
			_, err := v.Int64()
			return v, err
		}
		return v, nil
	case float32:
		return headerValue(float64(v), depth)
	case float64:
		return headerFloat(v)
	case string:
		return v, badText(v)
	case map[string]any:
		return headerTable(v, depth)
	case []any:
		return headerList(v, depth)
	}
	return nil, fmt.Errorf("JSON has no %T: set a string or a number", value)
}

func headerList(list []any, depth int) ([]any, error) {
	if depth > maxHeaderDepth {
		return nil, fmt.Errorf("headers are nested deeper than %d levels", maxHeaderDepth)
	}
	encoded := make([]any, len(list))
	for i, value := range list {
		var err error
		if encoded[i], err = headerValue(value, depth+1); err != nil {
			return nil, err
		}
	}
	return encoded, nil
}

// headerFloat returns a float that does not become an integer in JSON.
func headerFloat(f float64) (json.Number, error) {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return "", errors.New("JSON has no " + text)
	}
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return json.Number(text), nil
}
