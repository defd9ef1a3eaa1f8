package streams

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var errShort = errors.New("ends too early")

// decoder reads AMQP 1.0 values from the front of rest.
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

// section reads the descriptor of a section.
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

// value reads one value that has no descriptor. It returns the type code and the content, without
// the size field that some types begin with.
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

// skip reads past one value, with or without a descriptor. A value with a descriptor is a zero byte
// and two values, each of which may have a descriptor in turn.
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

// compound reads a list or a map. It returns the encoded items and their number.
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

// The sections of an AMQP 1.0 message, by descriptor.
const (
	sectionHeader      = 0x70
	sectionAnnotations = 0x72 // of the message; the broker notes there how it was published
	sectionProperties  = 0x73
	sectionAppProps    = 0x74
	sectionData        = 0x75
	sectionSequence    = 0x76
	sectionValue       = 0x77
	sectionFooter      = 0x78
)
