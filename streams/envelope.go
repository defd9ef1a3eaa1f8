package streams

import (
	"math"
	"net/url"
	"strings"
)

// envelope is the part of an AMQP 1.0 message that says how it was published. It is decoded on
// demand, because most streams do not need it.
type envelope struct {
	header, annotations, properties []byte // parts of the message, not copied; nil if it has none
}

// route says how a message was published.
type route struct {
	exchange, key string
	priority      uint8

	replyTo, correlationID string
}

// route decodes the envelope. It ignores values in a form that the broker does not write.
func (e envelope) route() (r route) {
	header := decoder{e.header}
	// The first field is durable, the second the priority (RabbitMQ 4).
	if fields, count, err := header.compound(0xc0, 0xd0); err == nil && count >= 2 && fields.skip() == nil {
		_ = r.setPriority(&fields)
	}
	annotations := decoder{e.annotations}
	pairs, count, err := annotations.compound(0xc1, 0xd1)
	for ; err == nil && count >= 2; count -= 2 {
		err = r.annotation(&pairs)
	}
	r.readProperties(decoder{e.properties})
	return r
}

// readProperties reads where an answer is awaited: behind the id, the user, the address and the
// subject.
func (r *route) readProperties(d decoder) {
	fields, count, err := d.compound(0xc0, 0xd0)
	for range min(count, 4) {
		if err == nil {
			err = fields.skip()
		}
	}
	if err != nil || count < 5 || setText(&fields, &r.replyTo) != nil {
		return
	}
	if queue, is := strings.CutPrefix(r.replyTo, "/queues/"); is { // RabbitMQ 4 may write an address
		if name, err := url.PathUnescape(queue); err == nil {
			r.replyTo = name
		}
	}
	if count > 5 {
		_ = setText(&fields, &r.correlationID)
	}
}

// annotation reads one name and its value.
func (r *route) annotation(d *decoder) error {
	code, name, err := d.value()
	if err != nil || !isString(code) {
		return d.skip()
	}
	switch string(name) {
	case "x-exchange":
		return setText(d, &r.exchange)
	case "x-routing-key":
		return setText(d, &r.key)
	case "x-basic-priority": // RabbitMQ 3
		return r.setPriority(d)
	}
	return d.skip()
}

func setText(d *decoder, to *string) error {
	value, err := d.raw()
	if err != nil {
		return err
	}
	inner := decoder{value}
	if code, text, err := inner.value(); err == nil && (isString(code) || isBytes(code)) {
		*to = string(text)
	}
	return nil
}

func (r *route) setPriority(d *decoder) error {
	value, err := d.raw()
	if err != nil {
		return err
	}
	inner := decoder{value}
	if code, payload, err := inner.value(); err == nil {
		if n, ok := integer(code, payload); ok && 0 <= n && n <= math.MaxUint8 {
			r.priority = uint8(n)
		}
	}
	return nil
}

// raw returns the next value in its encoded form.
func (d *decoder) raw() ([]byte, error) {
	before := d.rest
	err := d.skip()
	return before[:len(before)-len(d.rest)], err
}
