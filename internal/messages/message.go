package messages

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

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

// fromJSON returns a value of a header as AMQP has it: integers have 64 bits, and other numbers are
// doubles.
func fromJSON(value any) (any, error) {
	switch v := value.(type) {
	case map[string]any:
		table := make(amqp.Table, len(v))
		for name, member := range v {
			if len(name) > wire.MaxShort {
				return nil, fmt.Errorf("the name of a header has %d bytes: at most %d fit", len(name), wire.MaxShort)
			}
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

// check refuses what only Millrace publishes, and what the broker would answer with the end of the
// channel or connection, which other messages use too.
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
	case m.ours():
		return fmt.Errorf("only Millrace publishes to exchange %q with routing key %q", m.exchange, m.key)
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
