package messages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// headerJID has the jid of the job. It is the same if the message is delivered again.
const headerJID = "millrace-jid"

// message is a message and where it goes.
type message struct {
	exchange, key string
	amqp.Publishing
}

// form is a message as the argument of a job has it.
type form struct {
	Exchange         *string    `json:"exchange"`
	Key              string     `json:"routing_key"`
	Body             *string    `json:"body"`
	BodyBase64       []byte     `json:"body_base64"`
	Properties       properties `json:"properties"`
	PropertiesBase64 []byte     `json:"properties_base64"`
}

type properties struct {
	ContentType     string         `json:"content_type"`
	ContentEncoding string         `json:"content_encoding"`
	CorrelationID   string         `json:"correlation_id"`
	ReplyTo         string         `json:"reply_to"`
	MessageID       string         `json:"message_id"`
	Type            string         `json:"type"`
	AppID           string         `json:"app_id"`
	Expiration      string         `json:"expiration"`
	DeliveryMode    *uint8         `json:"delivery_mode"`
	Priority        uint8          `json:"priority"`
	Timestamp       int64          `json:"timestamp"`
	Headers         map[string]any `json:"headers"`
}

// parse reads the message from the arguments of a job.
func parse(args json.RawMessage, jid string) (m message, err error) {
	var forms []form
	d := json.NewDecoder(bytes.NewReader(args))
	d.DisallowUnknownFields()
	d.UseNumber()
	switch err = d.Decode(&forms); {
	case err != nil:
		return m, fmt.Errorf("the argument is no message: %w", err)
	case len(forms) != 1:
		return m, fmt.Errorf("there are %d arguments: the message is the only one", len(forms))
	case forms[0].Exchange == nil:
		return m, errors.New("the message has no exchange (\"\" is the default exchange)")
	case forms[0].Body != nil && forms[0].BodyBase64 != nil:
		return m, errors.New("the message has body and body_base64: one of them is enough")
	}
	f := &forms[0]
	m.exchange, m.key = *f.Exchange, f.Key
	if f.PropertiesBase64 != nil {
		m.Publishing, err = fromBlock(f.PropertiesBase64)
	} else {
		m.Publishing, err = f.Properties.publishing()
	}
	if err != nil {
		return m, err
	}
	if m.Body = f.BodyBase64; f.Body != nil {
		m.Body = []byte(*f.Body)
	}
	if m.Headers == nil {
		m.Headers = amqp.Table{}
	}
	m.Headers[headerJID] = jid
	return m, m.check()
}

func (p *properties) publishing() (amqp.Publishing, error) {
	m := amqp.Publishing{
		ContentType: p.ContentType, ContentEncoding: p.ContentEncoding, CorrelationId: p.CorrelationID, ReplyTo: p.ReplyTo,
		MessageId: p.MessageID, Type: p.Type, AppId: p.AppID, Expiration: p.Expiration, DeliveryMode: amqp.Persistent, Priority: p.Priority,
	}
	if p.DeliveryMode != nil {
		m.DeliveryMode = *p.DeliveryMode
	}
	if p.Timestamp != 0 {
		m.Timestamp = time.Unix(p.Timestamp, 0)
	}
	headers, err := fromJSON(p.Headers)
	if err != nil {
		return m, err
	}
	m.Headers, _ = headers.(amqp.Table)
	return m, nil
}

// fromJSON returns a value of a header as AMQP has it: integers have 64 bits, and other numbers are
// doubles.
func fromJSON(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		table := make(amqp.Table, len(v))
		for name, member := range v {
			converted, err := fromJSON(member)
			if err != nil {
				return nil, err
			}
			table[name] = converted
		}
		return table, nil
	case []any:
		list := make([]any, len(v))
		for i, member := range v {
			converted, err := fromJSON(member)
			if err != nil {
				return nil, err
			}
			list[i] = converted
		}
		return list, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil || !strings.ContainsAny(v.String(), ".eE") && math.Abs(f) >= 1<<63 {
			return nil, fmt.Errorf("the number %s in a header is too large", v)
		}
		return f, nil
	}
	return value, nil // a text, a boolean or null
}

// check finds what the broker would answer with the end of the channel or connection, which other
// messages use too.
func (m *message) check() error {
	for _, p := range []struct{ name, value string }{
		{"exchange", m.exchange}, {"routing_key", m.key}, {"content_type", m.ContentType}, {"content_encoding", m.ContentEncoding},
		{"correlation_id", m.CorrelationId}, {"reply_to", m.ReplyTo}, {"expiration", m.Expiration}, {"message_id", m.MessageId},
		{"type", m.Type}, {"app_id", m.AppId},
	} {
		if len(p.value) > wire.MaxShort {
			return fmt.Errorf("%s has %d bytes: at most %d fit", p.name, len(p.value), wire.MaxShort)
		}
	}
	switch {
	case strings.Trim(m.Expiration, "0123456789") != "" || len(m.Expiration) > 10:
		return fmt.Errorf("expiration is %q: write milliseconds in digits", m.Expiration)
	case m.DeliveryMode > amqp.Persistent:
		return fmt.Errorf("delivery_mode is %d: write 1 or 2", m.DeliveryMode)
	case m.Type == "amqp-1.0":
		return errors.New("RabbitMQ refuses the type amqp-1.0")
	}
	for _, name := range []string{"CC", "BCC"} {
		if value, set := m.Headers[name]; set && !texts(value) {
			return fmt.Errorf("the header %s is no list of texts", name)
		}
	}
	return nil
}

func texts(value any) bool {
	list, ok := value.([]any)
	for _, member := range list {
		_, text := member.(string)
		ok = ok && text
	}
	return ok
}

// ours reports whether only Millrace publishes where a message goes.
func (m *message) ours() bool {
	if m.exchange != "" {
		return strings.HasPrefix(m.exchange, "jobs.")
	}
	return strings.HasPrefix(m.key, "jobs.") || ownStreams[m.key]
}
