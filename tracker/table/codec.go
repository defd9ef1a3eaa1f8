package table

import "encoding/binary"

// AppendText appends a text and its length.
func AppendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// Decoder reads numbers of binary.AppendVarint and texts of AppendText.
type Decoder struct {
	B   []byte // what is left
	Bad bool   // something was cut off
}

// Int reads a number.
func (d *Decoder) Int() int64 {
	n, size := binary.Varint(d.B)
	if size <= 0 {
		d.B, d.Bad = nil, true
		return 0
	}
	d.B = d.B[size:]
	return n
}

// Bytes reads a text without copying it.
func (d *Decoder) Bytes() []byte {
	n, size := binary.Uvarint(d.B)
	if size <= 0 || uint64(len(d.B)-size) < n {
		d.B, d.Bad = nil, true
		return nil
	}
	text := d.B[size : size+int(n)]
	d.B = d.B[size+int(n):]
	return text
}

// Text reads a text.
func (d *Decoder) Text() string { return string(d.Bytes()) }
