package streams

import (
	"encoding/binary"
	"errors"
	"io"
)

// The commands of the stream protocol that a reader needs. A response has the highest bit set.
const (
	cmdSubscribe        = 7
	cmdDeliver          = 8
	cmdCredit           = 9
	cmdUnsubscribe      = 12
	cmdMetadata         = 15
	cmdMetadataUpdate   = 16
	cmdPeerProperties   = 17
	cmdSaslHandshake    = 18
	cmdSaslAuthenticate = 19
	cmdTune             = 20
	cmdOpen             = 21
	cmdClose            = 22
	cmdHeartbeat        = 23

	response = 0x8000
)

// frame is a frame from the broker: a command and its unread content. The content must be read or
// skipped before the next frame.
type frame struct {
	command uint16
	content *content
}

// content reads the rest of a frame. It keeps the first error, so that a caller can read a whole
// response and check err once.
type content struct {
	from io.Reader
	left int64
	err  error
	word [8]byte
}

var errFrame = errors.New("frame ends too early")

func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.left <= 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.from.Read(p)
	c.left -= int64(n)
	if err != nil {
		c.err = err
	}
	return n, err
}

func (c *content) full(p []byte) bool {
	if c.err == nil && int64(len(p)) > c.left {
		c.err = errFrame
	}
	if c.err != nil {
		return false
	}
	if _, err := io.ReadFull(c, p); err != nil {
		c.err = err
		return false
	}
	return true
}

func (c *content) u8() byte {
	c.full(c.word[:1])
	return c.word[0]
}

func (c *content) u16() uint16 {
	c.full(c.word[:2])
	return binary.BigEndian.Uint16(c.word[:2])
}

func (c *content) u32() uint32 {
	c.full(c.word[:4])
	return binary.BigEndian.Uint32(c.word[:4])
}

func (c *content) u64() uint64 {
	c.full(c.word[:8])
	return binary.BigEndian.Uint64(c.word[:8])
}

func (c *content) str() string {
	b := make([]byte, c.u16())
	if c.err != nil || !c.full(b) {
		return ""
	}
	return string(b)
}

// request builds a frame.
type request struct {
	command uint16
	b       []byte
}

func newRequest(command uint16) *request {
	r := &request{command: command, b: make([]byte, 4, 64)}
	return r.u16(command).u16(1)
}

// withID inserts the correlation id behind the version.
func (r *request) withID(id uint32) *request {
	rest := append([]byte(nil), r.b[8:]...)
	r.b = append(binary.BigEndian.AppendUint32(r.b[:8], id), rest...)
	return r
}

func (r *request) u8(v byte) *request {
	r.b = append(r.b, v)
	return r
}

func (r *request) u16(v uint16) *request {
	r.b = binary.BigEndian.AppendUint16(r.b, v)
	return r
}

func (r *request) u32(v uint32) *request {
	r.b = binary.BigEndian.AppendUint32(r.b, v)
	return r
}

func (r *request) u64(v uint64) *request {
	r.b = binary.BigEndian.AppendUint64(r.b, v)
	return r
}

func (r *request) str(s string) *request {
	r.u16(uint16(len(s)))
	r.b = append(r.b, s...)
	return r
}

func (r *request) bytes(s string) *request {
	r.u32(uint32(len(s)))
	r.b = append(r.b, s...)
	return r
}

func (r *request) pairs(keysAndValues ...string) *request {
	r.u32(uint32(len(keysAndValues) / 2))
	for _, s := range keysAndValues {
		r.str(s)
	}
	return r
}

func (r *request) frame() []byte {
	binary.BigEndian.PutUint32(r.b, uint32(len(r.b)-4))
	return r.b
}

const (
	codeOK                 = 1
	codeNoStream           = 2
	codeStreamNotAvailable = 6
	codeSaslFailure        = 8
	codeLoopbackOnly       = 11
	codeVhostRefused       = 12
	codeAccessRefused      = 16
)
