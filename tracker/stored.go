package tracker

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// Stored is an entry as the view keeps it.
type Stored struct {
	Stream  string
	Offset  int64
	First   int64 // the first offset of all, where this entry stands for an older one
	At      time.Time
	Attempt int
	JID     string
	Queue   string
	Class   string
	Burial  wire.Dispatch // of a dead job that Millrace buried: what was done, and to which entry. Of a copy: the fire; if it was carried over, its op alone
	Parked  string        // not empty: the broker cannot take it; the reason
	Dropped bool          // a dead job that a queue dropped
	Trace   string        // the traceparent that came with it
	Leased  string        // of a lease: the jid of the job, whose entry's own jid is the lease's id
	Size    int64         // of the record, in bytes
	Raw     []byte        // the record; nil if it is large and stays in the stream
}

// maxInline is the largest record that the view keeps itself; larger ones stay in the stream.
const maxInline = 64 << 10

// Origin names the burial that a dead job came of; no burial has the number 0.
func (s *Stored) Origin() wire.Through {
	return wire.Through{Epoch: s.Burial.Epoch, Through: s.Burial.Seq}
}

func (s *Stored) place() place { return place{codes[s.Stream], s.Offset} }

// Entry is the stored record read again. raw is the record where the view does not keep it.
func (s *Stored) Entry(raw []byte) (wire.Entry, error) {
	e, err := func() (wire.Entry, error) {
		if s.Raw != nil {
			return wire.RereadEntry(s.Stream, s.Offset, s.Raw)
		}
		return wire.ParseEntry(s.Stream, s.Offset, raw)
	}()
	if s.Stream == wire.Gated {
		e.At = s.At
	}
	return e, err
}

func newStored(e *wire.Entry) *Stored {
	s := &Stored{Stream: e.Stream, Offset: e.Offset, First: e.Offset, At: e.At, Attempt: e.Attempt,
		JID: e.JID, Queue: e.Job.Queue, Class: e.Job.Class, Size: int64(len(e.Raw)), Raw: e.Raw}
	if len(e.Raw) > maxInline {
		s.Raw = nil
	}
	return s
}

func (s *Stored) encode() []byte {
	b := make([]byte, 0, 64+len(s.JID)+len(s.Queue)+len(s.Class)+len(s.Raw))
	for _, n := range []int64{s.First, s.At.UnixMicro(), int64(s.Attempt), flag(s.Dropped), s.Size} {
		b = binary.AppendVarint(b, n)
	}
	for _, t := range []string{s.JID, s.Queue, s.Class, s.Parked, s.Trace, s.Leased} {
		b = appendText(b, t)
	}
	return append(appendBurial(b, &s.Burial), s.Raw...)
}

func appendBurial(b []byte, d *wire.Dispatch) []byte {
	b = appendText(b, d.Op)
	if d.Op == "" {
		return b
	}
	for _, n := range []int64{int64(codes[d.Stream]), d.Offset, d.Epoch, d.Seq} {
		b = binary.AppendVarint(b, n)
	}
	for _, t := range []string{d.JIDTag, d.Actor, d.Command, d.Operation} {
		b = appendText(b, t)
	}
	return b
}

func (d *decoder) burial() (b wire.Dispatch) {
	if b.Op = d.text(); b.Op == "" {
		return b
	}
	b.Stream, b.Offset, b.Epoch, b.Seq = names[code(d.int())], d.int(), d.int(), d.int()
	b.JIDTag, b.Actor, b.Command, b.Operation = d.text(), d.text(), d.text(), d.text()
	return b
}

func flag(set bool) int64 {
	if set {
		return 1
	}
	return 0
}

func decodeStored(p place, b []byte) (*Stored, error) {
	s := &Stored{Stream: p.name(), Offset: p.offset}
	d := decoder{b: b}
	s.First, s.At = d.int(), time.UnixMicro(d.int()).UTC()
	s.Attempt, s.Dropped, s.Size = int(d.int()), d.int() != 0, d.int()
	s.JID, s.Queue, s.Class, s.Parked, s.Trace, s.Leased = d.text(), d.text(), d.text(), d.text(), d.text(), d.text()
	s.Burial = d.burial()
	if d.bad {
		return nil, fmt.Errorf("tracker: stored entry %s@%d is damaged", s.Stream, s.Offset)
	}
	if len(d.b) > 0 {
		s.Raw = d.b
	}
	return s, nil
}

// mark is what is known of an entry beside itself, kept while the entry is doubtful, has not been read yet, or was replaced: whatever the
// journal, read later, says of it was before that.
type mark struct {
	state   markState
	tag     string // wire.JIDTag of the entry
	epoch   int64  // doubtful: the fire; below zero: of a journal that is gone
	seq     int64  // replaced: the entry that stands for it
	late    int64  // doubtful: where the journal has the fire, if its leader had been followed already; else 0
	op      string
	reason  string // parked
	command string // doubtful: the id of the command that asked for it
	actor   string // doubtful: who did
	bulk    string // doubtful: the operation that it is part of
	body    []byte // doubtful and without an entry: the job as it was fired

	returned bool // doubtful and without an entry: it is known that the fire did not arrive
}

type markState byte

const (
	settled markState = iota + 1
	doubtful
	parked
	replaced // by a later entry; kept until low water passes
)

// isReturned is added to the state in the store.
const isReturned = 0x80

func (m *mark) encode() []byte {
	b := []byte{byte(m.state)}
	if m.returned {
		b[0] |= isReturned
	}
	b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, m.epoch), m.seq), m.late)
	for _, t := range []string{m.tag, m.op, m.reason, m.command, m.actor, m.bulk} {
		b = appendText(b, t)
	}
	return append(b, m.body...)
}

func decodeMark(b []byte) (*mark, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("tracker: empty mark")
	}
	m := &mark{state: markState(b[0] &^ isReturned), returned: b[0]&isReturned != 0}
	d := decoder{b: b[1:]}
	m.epoch, m.seq, m.late = d.int(), d.int(), d.int()
	m.tag, m.op, m.reason, m.command, m.actor, m.bulk = d.text(), d.text(), d.text(), d.text(), d.text(), d.text()
	if d.bad {
		return nil, fmt.Errorf("tracker: mark is damaged")
	}
	m.body = d.b
	return m, nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// decoder reads what the encoders wrote; bad tells that something was cut off.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) text() string {
	n, size := binary.Uvarint(d.b)
	if size <= 0 || uint64(len(d.b)-size) < n {
		d.bad = true
		return ""
	}
	s := string(d.b[size : size+int(n)])
	d.b = d.b[size+int(n):]
	return s
}
