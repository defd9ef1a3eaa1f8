package streams

import (
	"errors"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

func unreadable(stream string, first, through int64) wire.Record {
	return wire.Record{Stream: stream, Offset: first, Through: through, Fault: "unreadable over AMQP 0-9-1"}
}

func amqpRecord(stream string, offset int64, d amqp.Delivery) wire.Record {
	// RabbitMQ 4 sets this type on a message that it cannot convert and delivers unchanged.
	if d.Type == "amqp-1.0" {
		if _, err := parseMessage(d.Body); errors.Is(err, errValue) {
			return wire.Record{Stream: stream, Offset: offset, Through: offset, Fault: "unreadable: " + err.Error()}
		}
	}
	r := wire.Record{Stream: stream, Offset: offset, UserID: d.UserId, Headers: amqpHeaders(d.Headers), Body: d.Body}
	if wire.Routed(stream) {
		r.Exchange, r.Key, r.Priority = d.Exchange, d.RoutingKey, d.Priority
		r.ReplyTo, r.CorrelationID = d.ReplyTo, d.CorrelationId
	}
	return r
}

func amqpHeaders(table amqp.Table) (headers map[string]any) {
	for name, value := range table {
		if !wantHeader(name) {
			continue
		}
		if b, ok := value.([]byte); ok {
			value = string(b)
		} else if n, ok := amqpInteger(value); ok {
			value = n
		}
		headers = keepHeader(headers, name, value)
	}
	return headers
}

func amqpInteger(value any) (int64, bool) {
	switch n := value.(type) {
	case int8:
		return int64(n), true
	case uint8:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint16:
		return int64(n), true
	case int32:
		return int64(n), true
	case uint32:
		return int64(n), true
	case int64:
		return n, true
	default:
		return 0, false
	}
}
