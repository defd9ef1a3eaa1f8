package streams

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// maxHeaders bounds what one message can make us keep; Millrace itself sets about a dozen.
const maxHeaders = 64

// message is what Millrace wants of an AMQP 1.0 message.
type message struct {
	userID  string
	headers map[string]any
	body    []byte
}

// The sections of an AMQP 1.0 message, by descriptor.
const (
	sectionHeader     = 0x70
	sectionProperties = 0x73
	sectionAppProps   = 0x74
	sectionData       = 0x75
	sectionSequence   = 0x76
	sectionValue      = 0x77
	sectionFooter     = 0x78
)

var (
	errShort  = errors.New("ends too early")
	errNoBody = errors.New("has no body")
)

// parseMessage reads an AMQP 1.0 message without copying: the body aliases b unless it comes in several pieces.
//
// It is written for bytes that anyone may have published: it takes linear time, never recurses (AMQP 1.0 carries the size of whatever
// can be nested) and allocates nothing but the headers it keeps.
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
		case sectionProperties:
			m.userID, err = d.properties()
		case sectionAppProps:
			m.headers, err = d.applicationProperties()
		case sectionData:
			err = d.data(&m, pieces)
			pieces++
		case sectionValue, sectionSequence:
			return message{}, errors.New("its body is an AMQP 1.0 value, not bytes")
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

// keepHeader decides which of a client's headers anyone may see, and as what.
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

// decoder reads AMQP 1.0 values off the front of rest.
type decoder struct{ rest []byte }

func (d *decoder) take(n int) ([]byte, error) {
	if n < 0 || n > len(d.rest) {
		return nil, errShort
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b, nil
}

func (d *decoder) byte() (byte, error) {
	b, err := d.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// section reads a section's descriptor.
func (d *decoder) section() (byte, error) {
	if marker, err := d.byte(); err != nil || marker != 0 {
		return 0, errors.New("no section where one must begin")
	}
	code, payload, err := d.value()
	if err != nil {
		return 0, err
	}
	descriptor, ok := unsigned(code, payload)
	if !ok || descriptor < sectionHeader || descriptor > sectionFooter {
		return 0, errors.New("an unknown section")
	}
	return byte(descriptor), nil
}

// value reads one undescribed value: its code and the bytes behind it (for what is sized, without the size).
func (d *decoder) value() (code byte, payload []byte, err error) {
	if code, err = d.byte(); err != nil {
		return 0, nil, err
	}
	n := 0
	switch code >> 4 {
	case 0x4:
	case 0x5:
		n = 1
	case 0x6:
		n = 2
	case 0x7:
		n = 4
	case 0x8:
		n = 8
	case 0x9:
		n = 16
	case 0xa, 0xc, 0xe:
		size, err := d.byte()
		if err != nil {
			return 0, nil, err
		}
		n = int(size)
	case 0xb, 0xd, 0xf:
		size, err := d.take(4)
		if err != nil {
			return 0, nil, err
		}
		n = int(binary.BigEndian.Uint32(size))
	default:
		return 0, nil, fmt.Errorf("type %#x is unknown", code)
	}
	payload, err = d.take(n)
	return code, payload, err
}

// skip reads past one value, described or not. A described value is a zero and two values, of which each may be described in turn.
func (d *decoder) skip() error {
	for pending := 1; pending > 0; pending-- {
		if len(d.rest) > 0 && d.rest[0] == 0 {
			d.rest = d.rest[1:]
			pending += 2
			continue
		}
		if _, _, err := d.value(); err != nil {
			return err
		}
	}
	return nil
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

// properties gives the second of the message's properties, the user id.
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
	if isString(code) || isBytes(code) { // RabbitMQ 4 makes bytes of a string that is over 4 KiB long or not UTF-8
		return keepHeader(headers, name, string(payload)), nil
	}
	if n, ok := integer(code, payload); ok {
		return keepHeader(headers, name, n), nil
	}
	return headers, nil
}

// compound reads a list or map: its items and how many they are.
func (d *decoder) compound(small, large byte) (items decoder, count uint32, err error) {
	code, payload, err := d.value()
	if err != nil {
		return decoder{}, 0, err
	}
	items = decoder{payload}
	switch code {
	case 0x45: // the empty list
		return items, 0, nil
	case small:
		n, err := items.byte()
		return items, uint32(n), err
	case large:
		n, err := items.take(4)
		if err != nil {
			return items, 0, err
		}
		return items, binary.BigEndian.Uint32(n), nil
	default:
		return items, 0, fmt.Errorf("type %#x where a list or map must be", code)
	}
}

func isBytes(code byte) bool { return code&0xef == 0xa0 }

func isString(code byte) bool { return code&0xef == 0xa1 || code&0xef == 0xa3 }

func unsigned(code byte, payload []byte) (uint64, bool) {
	switch code {
	case 0x43, 0x44: // zero, as uint and ulong
		return 0, true
	case 0x50, 0x52, 0x53: // ubyte, and uint and ulong in one byte
		return uint64(payload[0]), true
	case 0x60:
		return uint64(binary.BigEndian.Uint16(payload)), true
	case 0x70:
		return uint64(binary.BigEndian.Uint32(payload)), true
	case 0x80:
		return binary.BigEndian.Uint64(payload), true
	default:
		return 0, false
	}
}

func integer(code byte, payload []byte) (int64, bool) {
	if n, ok := unsigned(code, payload); ok {
		return int64(n), n <= math.MaxInt64
	}
	switch code {
	case 0x51, 0x54, 0x55: // byte, and int and long in one byte
		return int64(int8(payload[0])), true
	case 0x61:
		return int64(int16(binary.BigEndian.Uint16(payload))), true
	case 0x71:
		return int64(int32(binary.BigEndian.Uint32(payload))), true
	case 0x81:
		return int64(binary.BigEndian.Uint64(payload)), true
	default:
		return 0, false
	}
}
