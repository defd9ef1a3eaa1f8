package tracker

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/millrace-jobs/millrace/tracker/table"
)

// mark is what the journal says of an entry. It is kept while the entry is in doubt, or has not
// been read yet. That of a replaced entry is kept too: what the journal says of it, read later, was
// before it was replaced.
type mark struct {
	state   markState
	tag     string // wire.JIDTag of the entry
	epoch   int64  // in doubt: the fire; below zero: of a journal that is gone
	seq     int64  // replaced: the entry that stands for it
	late    int64  // in doubt: where the journal has the fire, if its leader had been followed already; else 0
	op      string
	reason  string // parked
	command string // in doubt: the id of the command that asked for it
	actor   string // in doubt: the user who did
	bulk    string // in doubt: the operation that it is part of
	body    []byte // in doubt and without an entry: the job as it was fired

	returned bool // in doubt and without an entry: it is known that the fire did not arrive
}

type markState byte

const (
	settled markState = iota + 1
	inDoubt
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
		b = table.AppendText(b, t)
	}
	return append(b, m.body...)
}

var errEmptyMark = errors.New("tracker: empty mark")

// stateOf returns the state of an encoded mark.
func stateOf(b []byte) (markState, error) {
	if len(b) == 0 {
		return 0, errEmptyMark
	}
	return markState(b[0] &^ isReturned), nil
}

func decodeMark(b []byte) (*mark, error) {
	state, err := stateOf(b)
	if err != nil {
		return nil, err
	}
	m := &mark{state: state, returned: b[0]&isReturned != 0}
	d := table.Decoder{B: b[1:]}
	m.epoch, m.seq, m.late = d.Int(), d.Int(), d.Int()
	m.tag, m.op, m.reason, m.command, m.actor, m.bulk = d.Text(), d.Text(), d.Text(), d.Text(), d.Text(), d.Text()
	if d.Bad {
		return nil, fmt.Errorf("tracker: mark is damaged")
	}
	m.body = d.B
	return m, nil
}
