package messages

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	amqp "github.com/rabbitmq/amqp091-go"
)

// form is a message as the argument of a job has it.
type form struct {
	Exchange         *string    `json:"exchange"`
	Key              string     `json:"routing_key"`
	Body             *string    `json:"body"`
	BodyBase64       *string    `json:"body_base64"`
	Properties       properties `json:"properties"`
	PropertiesBase64 *string    `json:"properties_base64"`
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
	var all []json.RawMessage
	if err := json.Unmarshal(args, &all); err != nil {
		return m, fmt.Errorf("the arguments are no list: %w", err)
	}
	if len(all) != 1 {
		return m, fmt.Errorf("there are %d arguments: the message is the only one", len(all))
	}
	if m, err = read(all[0]); err != nil {
		return m, err
	}
	if m.Headers == nil {
		m.Headers = amqp.Table{}
	}
	m.Headers[headerJID] = jid
	return m, nil
}

// Check returns why nothing delivers a message, as the argument of a job has it. It is stricter
// than the delivery: names of members must be written in lower case.
func Check(argument json.RawMessage) error {
	if err := checkNames(argument); err != nil {
		return err
	}
	_, err := read(argument)
	return err
}

// checkNames refuses names that encoding/json takes for those of other members.
func checkNames(argument json.RawMessage) error {
	var members, properties map[string]json.RawMessage
	_ = json.Unmarshal(argument, &members) // read says what is wrong
	_ = json.Unmarshal(members["properties"], &properties)
	for _, names := range []map[string]json.RawMessage{members, properties} {
		for name := range names {
			if strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsUpper(r) }) {
				return fmt.Errorf("the message has an unknown member %q", name)
			}
		}
	}
	return nil
}

// read reads a message.
func read(argument json.RawMessage) (m message, err error) {
	var f form
	d := json.NewDecoder(bytes.NewReader(argument))
	d.DisallowUnknownFields()
	d.UseNumber()
	switch err = d.Decode(&f); {
	case err != nil:
		return m, unreadable(err)
	case f.Exchange == nil:
		return m, errors.New("the message has no exchange (\"\" is the default exchange)")
	case f.Body != nil && f.BodyBase64 != nil:
		return m, errors.New("the message has body and body_base64: one of them is enough")
	}
	if f.PropertiesBase64 == nil {
		m.Publishing, err = f.Properties.publishing()
	} else if block, fault := fromBase64("properties_base64", *f.PropertiesBase64); fault != nil {
		err = fault
	} else {
		m.Publishing, err = fromBlock(block)
	}
	if err != nil {
		return m, err
	}
	m.exchange, m.key = *f.Exchange, f.Key
	switch {
	case f.Body != nil:
		m.Body = []byte(*f.Body)
	case f.BodyBase64 != nil:
		m.Body, err = fromBase64("body_base64", *f.BodyBase64)
	}
	return m, cmp.Or(err, m.check())
}

// unreadable says why a message cannot be decoded, in the words of its form.
func unreadable(err error) error {
	var wrong *json.UnmarshalTypeError
	switch {
	case !errors.As(err, &wrong):
		return fmt.Errorf("the message cannot be read: %s", strings.TrimPrefix(err.Error(), "json: "))
	case wrong.Field == "":
		return fmt.Errorf("the message is a JSON %s: it must be an object", wrong.Value)
	}
	return fmt.Errorf("%s has the wrong type or is out of range: it is a JSON %s", wrong.Field, wrong.Value)
}

func fromBase64(name, text string) ([]byte, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

func (p *properties) publishing() (amqp.Publishing, error) {
	m := amqp.Publishing{
		ContentType: p.ContentType, ContentEncoding: p.ContentEncoding, CorrelationId: p.CorrelationID, ReplyTo: p.ReplyTo,
		MessageId: p.MessageID, Type: p.Type, AppId: p.AppID, Expiration: p.Expiration, DeliveryMode: amqp.Persistent, Priority: p.Priority,
	}
	if p.DeliveryMode != nil {
		if m.DeliveryMode = *p.DeliveryMode; m.DeliveryMode == 0 {
			return m, errors.New("delivery_mode is 0: write 1 or 2")
		}
	}
	if p.Timestamp < 0 {
		return m, fmt.Errorf("timestamp is %d: write seconds since 1970", p.Timestamp)
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
