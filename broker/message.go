package broker

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

const (
	appID       = "millrace"
	contentType = "application/json"
	fixedSize   = 3072 // more than all properties but the headers can take
)

// publishing converts a message for amqp091-go. It returns ErrUnpublishable, or leaves out a
// property, where the message would end the connection:
//
//   - The library closes it over an over-long string or a header of an unknown type.
//   - The broker closes it over a header frame beyond the frame limit.
//   - RabbitMQ 4 answers the type "amqp-1.0" with 541, after it has queued the job.
//   - RabbitMQ closes it over text that is not UTF-8, in a property that it converts for a stream.
func publishing(m wire.Message, user string, frameMax int) (amqp.Publishing, error) {
	headers, err := headerTable(m.Headers)
	if err != nil {
		return amqp.Publishing{}, err
	}
	for _, f := range []struct{ name, value string }{
		{"exchange", m.Exchange}, {"routing key", m.Key}, {"reply_to", m.ReplyTo}, {"correlation_id", m.CorrelationID}, {"user_id", user},
	} {
		if len(f.value) > wire.MaxShort {
			return amqp.Publishing{}, fmt.Errorf("broker: publish: %w: %s has %d bytes, at most %d fit", ErrUnpublishable, f.name, len(f.value), wire.MaxShort)
		}
	}
	if !utf8.ValidString(m.ReplyTo) {
		return amqp.Publishing{}, fmt.Errorf("broker: publish: %w: reply_to is not valid UTF-8", ErrUnpublishable)
	}
	if err := fits(headers, frameMax); err != nil {
		return amqp.Publishing{}, err
	}
	p := amqp.Publishing{
		Headers:       headers,
		ContentType:   contentType,
		DeliveryMode:  amqp.Persistent,
		Priority:      m.Priority,
		CorrelationId: m.CorrelationID,
		ReplyTo:       m.ReplyTo,
		UserId:        user,
		AppId:         appID,
		Body:          m.Body,
	}
	if m.Transient {
		p.DeliveryMode = amqp.Transient
	}
	if m.Timestamp.After(time.Unix(0, 0)) {
		p.Timestamp = m.Timestamp
	}
	if safeProperty(m.MessageID) {
		p.MessageId = m.MessageID
	}
	if safeProperty(m.Type) {
		p.Type = m.Type
	}
	return p, nil
}

func safeProperty(s string) bool {
	return len(s) <= wire.MaxShort && s != "amqp-1.0" && utf8.ValidString(s)
}

// headerTable accepts only values that every broker and every transport returns unchanged: strings,
// int64 and booleans.
func headerTable(headers map[string]any) (amqp.Table, error) {
	if len(headers) == 0 {
		return nil, nil
	}
	for name, value := range headers {
		if !headerName(name) {
			return nil, fmt.Errorf("broker: publish: %w: header name %.64q", ErrUnpublishable, name)
		}
		switch v := value.(type) {
		case string:
			if !utf8.ValidString(v) {
				return nil, fmt.Errorf("broker: publish: %w: header %s is not valid UTF-8", ErrUnpublishable, name)
			}
		case int64, bool:
		default:
			return nil, fmt.Errorf("broker: publish: %w: header %s is a %T", ErrUnpublishable, name, value)
		}
	}
	return amqp.Table(headers), nil
}

// fits returns an error if a message's headers do not fit a frame.
func fits(headers amqp.Table, frameMax int) error {
	if size := sizeOf(headers); frameMax > 0 && size+fixedSize > frameMax {
		return fmt.Errorf("broker: publish: %w: headers take %d bytes", ErrUnpublishable, size)
	}
	return nil
}

// sizeOf returns an upper bound of the size of a header's value.
func sizeOf(value any) int {
	size := 1 + 8
	switch v := value.(type) {
	case amqp.Table:
		for name, member := range v {
			size += 1 + len(name) + sizeOf(member)
		}
	case []any:
		for _, member := range v {
			size += sizeOf(member)
		}
	case string:
		size += len(v)
	case []byte:
		size += len(v)
	}
	return size
}

// headerName rejects names that RabbitMQ 4 turns into annotations (x-…) or acts upon (CC, BCC).
func headerName(name string) bool {
	if name == "" || len(name) > wire.MaxShort || strings.HasPrefix(strings.ToLower(name), "x-") || name == "CC" || name == "BCC" {
		return false
	}
	for i := range len(name) {
		if name[i] <= ' ' || name[i] > '~' {
			return false
		}
	}
	return true
}

func delivery(d amqp.Delivery) wire.Delivery {
	return wire.Delivery{
		Tag:           d.DeliveryTag,
		Exchange:      d.Exchange,
		Key:           d.RoutingKey,
		MessageID:     d.MessageId,
		UserID:        d.UserId,
		ReplyTo:       d.ReplyTo,
		CorrelationID: d.CorrelationId,
		Timestamp:     d.Timestamp,
		Priority:      d.Priority,
		Redelivered:   d.Redelivered,
		Headers:       plainMap(d.Headers),
		Body:          d.Body,
	}
}

// plain converts the library's tables, such as those in x-death, to maps. They can be read without
// the library.
func plain(value any) any {
	switch v := value.(type) {
	case amqp.Table:
		return plainMap(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	}
	return value
}

func plainMap(table amqp.Table) map[string]any {
	if table == nil {
		return nil
	}
	m := make(map[string]any, len(table))
	for k, v := range table {
		m[k] = plain(v)
	}
	return m
}
