package audit

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// Entry is a record of the journal that says what was done.
type Entry struct {
	Record    int64 // its offset in the journal
	At        float64
	Op        string
	Stream    string
	Offset    int64  // of the entry
	JID       string // as in headers: wire.JIDTag
	Queue     string // paused, resumed, and what is noted of queues
	To        string // moved: the other queue
	Periodic  string // of a periodic job: its name
	Limit     string // of a limit: its name
	Identity  string // quieted, stopped, cancelled: of the worker process; "*": all
	Actor     string // empty: no user asked for it
	Reason    string // why, or what the broker said
	Operation string // the id of the bulk operation that it is, or is part of
	Action    string // of an operation
	State     string // of an operation: running when it begins, then how it ended
	Count     int64  // trimmed: how many; of a queue, how many jobs waited
}

// Ops that are not also types of records.
const (
	OpPaused  = "paused"
	OpResumed = "resumed"

	OpDefined   = "defined"   // a layer of a definition was set
	OpForgotten = "forgotten" // a layer of a definition was removed
	OpRun       = "run"       // the job of a periodic job was enqueued by hand
	OpSkipped   = "skipped"   // a coming tick is skipped
	OpMissed    = "missed"    // ticks were too late
)

// Table is the first byte of the keys: list, offset of the journal's record → entry.
const Table = 'y'

// The lists.
const (
	single = 'A'
	many   = 'B' // parts of operations, jobs enqueued under a key, and what no user asked for
)

var lists = []byte{single, many}

// list returns the list of an entry.
func (e *Entry) list() byte {
	if e.Op == wire.TypeOperation || e.Actor != "" && e.Operation == "" && e.Op != wire.OpEnqueued {
		return single
	}
	return many
}

func keyList(list byte) []byte { return []byte{Table, list} }

func keyEntry(list byte, record int64) []byte { return table.AppendInt(keyList(list), record) }

// keyForgotten is where the time of the newest entry is that was forgotten.
func keyForgotten(list byte) []byte { return []byte{table.Meta, list, 't'} }

func recordOf(key []byte) int64 { return table.Int(key[2:]) }

// maxReason is how many bytes of a reason are kept. The journal has all of it.
const maxReason = 1000

// texts returns the short texts in the order in which they are kept.
func (e *Entry) texts() []*string {
	return []*string{&e.Op, &e.Stream, &e.JID, &e.Queue, &e.To, &e.Identity, &e.Actor, &e.Operation, &e.Action, &e.State, &e.Periodic, &e.Limit}
}

func (e *Entry) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 128), math.Float64bits(e.At))
	b = binary.AppendVarint(binary.AppendVarint(b, e.Offset), e.Count)
	for _, s := range e.texts() {
		b = table.AppendText(b, *s)
	}
	return append(b, wire.Shorten(e.Reason, maxReason)...)
}

func decode(key, b []byte) (*Entry, error) {
	if len(key) != 2+table.IntLen || len(b) < 8 {
		return nil, ErrDamaged
	}
	e := &Entry{Record: recordOf(key), At: math.Float64frombits(binary.BigEndian.Uint64(b))}
	d := table.Decoder{B: b[8:]}
	e.Offset, e.Count = d.Int(), d.Int()
	for _, s := range e.texts() {
		*s = d.Text()
	}
	if d.Bad {
		return nil, ErrDamaged
	}
	e.Reason = string(d.B)
	return e, nil
}

// ErrDamaged is returned when an entry cannot be decoded.
var ErrDamaged = errors.New("tracker: what was done is damaged")
