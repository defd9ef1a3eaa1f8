package main

import (
	"encoding/binary"
	"errors"
)

// frames splits one direction of an AMQP 0-9-1 connection into frames.
type frames struct {
	buffer  []byte
	preface int // bytes before the first frame: a client's protocol header
	handle  func(frame)
	broken  bool // the rest cannot be split
}

type frame struct {
	kind    byte
	channel uint16
	payload []byte
}

const (
	frameMethod = 1
	frameHeader = 2
	frameEnd    = 0xCE
	frameHead   = 7
)

// Write never fails, so that data passes even if it cannot be decoded.
func (f *frames) Write(p []byte) (int, error) {
	if f.broken {
		return len(p), nil
	}
	f.buffer = append(f.buffer, p...)
	if f.preface > 0 {
		skip := min(f.preface, len(f.buffer))
		f.preface -= skip
		f.buffer = f.buffer[skip:]
	}
	for len(f.buffer) >= frameHead {
		size := int(binary.BigEndian.Uint32(f.buffer[3:]))
		if len(f.buffer) < frameHead+size+1 {
			break
		}
		if f.buffer[frameHead+size] != frameEnd {
			f.broken = true
			return len(p), nil
		}
		f.handle(frame{f.buffer[0], binary.BigEndian.Uint16(f.buffer[1:]), f.buffer[frameHead : frameHead+size]})
		f.buffer = f.buffer[frameHead+size+1:]
	}
	if len(f.buffer) == 0 {
		f.buffer = nil
	}
	return len(p), nil
}

// method returns the class and method of a method frame, and its arguments.
func (f frame) method() (id uint32, args *reader) {
	r := &reader{rest: f.payload}
	return uint32(r.short())<<16 | uint32(r.short()), r
}

func methodID(class, method uint32) uint32 { return class<<16 | method }

// The methods that the tap decodes.
var (
	channelCloseOk = methodID(20, 41)
	confirmSelect  = methodID(85, 10)
	basicPublish   = methodID(60, 40)
	basicAck       = methodID(60, 80)
	basicNack      = methodID(60, 120)
)

// properties returns the headers table of a content header frame.
func (f frame) properties() (map[string]any, error) {
	const hasType, hasEncoding, hasHeaders = 1 << 15, 1 << 14, 1 << 13
	r := &reader{rest: f.payload}
	r.take(12) // class, weight, size of the body
	flags := r.short()
	if flags&hasType != 0 {
		r.shortString()
	}
	if flags&hasEncoding != 0 {
		r.shortString()
	}
	if flags&hasHeaders == 0 {
		return nil, r.err
	}
	t := r.table()
	return t, r.err
}

var errShort = errors.New("the frame ends too early")

// reader reads AMQP's types from a frame. After an error it returns zero values.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.err = errShort
		r.rest = nil
		return make([]byte, min(max(n, 0), 16))
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) octet() byte         { return r.take(1)[0] }
func (r *reader) short() uint16       { return binary.BigEndian.Uint16(r.take(2)) }
func (r *reader) long() uint32        { return binary.BigEndian.Uint32(r.take(4)) }
func (r *reader) longLong() uint64    { return binary.BigEndian.Uint64(r.take(8)) }
func (r *reader) shortString() string { return string(r.take(int(r.octet()))) }
func (r *reader) longString() string  { return string(r.take(int(r.long()))) }

func (r *reader) table() map[string]any {
	inner := &reader{rest: r.take(int(r.long())), err: r.err}
	t := map[string]any{}
	for len(inner.rest) > 0 && inner.err == nil {
		name := inner.shortString()
		t[name] = inner.value()
	}
	if r.err == nil {
		r.err = inner.err
	}
	return t
}

// value reads a field of a table. It returns integers as int64, and skips types that the tap does
// not need.
func (r *reader) value() any {
	switch kind := r.octet(); kind {
	case 't':
		return r.octet() != 0
	case 'b':
		return int64(int8(r.octet())) //nolint:gosec // the bits are meant
	case 'B':
		return int64(r.octet())
	case 's':
		return int64(int16(r.short())) //nolint:gosec // the bits are meant
	case 'u':
		return int64(r.short())
	case 'I':
		return int64(int32(r.long())) //nolint:gosec // the bits are meant
	case 'i':
		return int64(r.long())
	case 'l', 'T':
		return int64(r.longLong()) //nolint:gosec // the bits are meant
	case 'S':
		return r.longString()
	case 'x', 'A':
		r.take(int(r.long()))
	case 'F':
		return r.table()
	case 'f':
		r.take(4)
	case 'd':
		r.take(8)
	case 'D':
		r.take(5)
	case 'V':
	default:
		r.err = errors.New("a field of a type that AMQP does not have")
		r.rest = nil
	}
	return nil
}
