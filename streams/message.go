package streams

import (
	"errors"
	"fmt"
	"strings"
)

// maxHeaders limits the headers that are kept from one message. Millrace itself sets about a dozen.
const maxHeaders = 64

var (
	errNoBody = errors.New("has no body")
	errValue  = errors.New("its body is an AMQP 1.0 value, not bytes")
)

// message is the part of an AMQP 1.0 message that Millrace uses.
type message struct {
	userID   string
	headers  map[string]any
	body     []byte
	envelope envelope
}

// parseMessage reads an AMQP 1.0 message without copying: the body aliases b unless it comes in
// several sections.
//
// Any client may have published these bytes. So parseMessage takes linear time, allocates only the
// headers that it keeps, and never recurses: AMQP 1.0 gives the size of each value that can be
// nested.
func parseMessage(b []byte) (message, error) {
	var m message
	d := decoder{b}
	pieces := 0
	for len(d.rest) > 0 {
		section, err := d.section()
		if err != nil {
			return message{}, fmt.Errorf("not AMQP 1.0: %w", err)
		}
		switch section {
		case sectionHeader:
			m.envelope.header, err = d.raw()
		case sectionAnnotations:
			m.envelope.annotations, err = d.raw()
		case sectionProperties:
			if m.envelope.properties, err = d.raw(); err == nil {
				m.userID, err = (&decoder{m.envelope.properties}).properties()
			}
		case sectionAppProps:
			m.headers, err = d.applicationProperties()
		case sectionData:
			err = d.data(&m, pieces)
			pieces++
		case sectionValue, sectionSequence:
			return message{}, errValue
		default:
			err = d.skip()
		}
		if err != nil {
			return message{}, fmt.Errorf("not AMQP 1.0: section %#x: %w", section, err)
		}
	}
	if pieces == 0 {
		return message{}, errNoBody
	}
	return m, nil
}

// keepHeader adds a header to headers if a client may set it to this value.
func keepHeader(headers map[string]any, name string, value any) map[string]any {
	switch v := value.(type) {
	case string:
		if name == traceparent && !isTraceparent(v) {
			return headers
		}
	case int64:
		if name == traceparent {
			return headers
		}
	default:
		return headers
	}
	if len(headers) >= maxHeaders {
		return headers
	}
	if headers == nil {
		headers = make(map[string]any, 8)
	}
	headers[name] = value
	return headers
}

const traceparent = "traceparent"

func wantHeader(name string) bool {
	return strings.HasPrefix(name, "millrace-") || name == traceparent
}

func isTraceparent(v string) bool {
	if len(v) > 255 {
		return false
	}
	for i := range len(v) {
		if v[i] < ' ' || v[i] > '~' {
			return false
		}
	}
	return true
}

func (d *decoder) data(m *message, before int) error {
	code, payload, err := d.value()
	if err != nil {
		return err
	}
	if !isBytes(code) {
		return fmt.Errorf("type %#x where bytes must be", code)
	}
	if before == 0 {
		m.body = payload[:len(payload):len(payload)]
	} else {
		m.body = append(m.body, payload...)
	}
	return nil
}

// properties returns the user id, which is the second of the message's properties.
func (d *decoder) properties() (string, error) {
	items, count, err := d.compound(0xc0, 0xd0)
	if err != nil || count < 2 {
		return "", err
	}
	if err := items.skip(); err != nil {
		return "", err
	}
	code, payload, err := items.value()
	if err != nil || !isBytes(code) {
		return "", err
	}
	return string(payload), nil
}

func (d *decoder) applicationProperties() (headers map[string]any, err error) {
	items, count, err := d.compound(0xc1, 0xd1)
	if err != nil {
		return nil, err
	}
	for ; count >= 2; count -= 2 {
		code, name, err := items.value()
		if err != nil {
			return nil, err
		}
		if !isString(code) || !wantHeader(string(name)) {
			err = items.skip()
		} else {
			headers, err = items.header(headers, string(name))
		}
		if err != nil {
			return nil, err
		}
	}
	return headers, nil
}

func (d *decoder) header(headers map[string]any, name string) (map[string]any, error) {
	if len(d.rest) > 0 && d.rest[0] == 0 {
		return headers, d.skip()
	}
	code, payload, err := d.value()
	if err != nil {
		return nil, err
	}
	// RabbitMQ 4 sends a string as bytes if it is longer than 4 KiB or not UTF-8.
	if isString(code) || isBytes(code) {
		return keepHeader(headers, name, string(payload)), nil
	}
	if n, ok := integer(code, payload); ok {
		return keepHeader(headers, name, n), nil
	}
	return headers, nil
}
