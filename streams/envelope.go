package streams

import "math"

// envelope is what an AMQP 1.0 message says of how it was published. It is read where it is wanted: most streams do not need it.
type envelope struct {
	header, annotations []byte // aliases of the message; nil where it has none
}

// route is how a message was published.
type route struct {
	exchange, key string
	priority      uint8
}

// route reads the envelope. What is not as the broker writes it counts as not said.
func (e envelope) route() (r route) {
	header := decoder{e.header}
	if fields, count, err := header.compound(0xc0, 0xd0); err == nil && count >= 2 && fields.skip() == nil { // the first is durable
		_ = r.setPriority(&fields) // RabbitMQ 4
	}
	annotations := decoder{e.annotations}
	pairs, count, err := annotations.compound(0xc1, 0xd1)
	for ; err == nil && count >= 2; count -= 2 {
		err = r.annotation(&pairs)
	}
	return r
}

// annotation reads a name and its value.
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

// raw returns the next value as it stands.
func (d *decoder) raw() ([]byte, error) {
	before := d.rest
	err := d.skip()
	return before[:len(before)-len(d.rest)], err
}
