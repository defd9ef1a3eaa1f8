package tracker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// endFacts are what jobs.ends says of one fire.
type endFacts struct {
	ended   bool
	claimed int64 // offset of the record that says so first, plus 1; 0: it is not claimed
}

func keySlot(id entryID) []byte { return id.append([]byte{tableSlot}) }

func keyEndsOf(s *wire.Slot) []byte {
	return table.AppendText(entryID{codes[s.Stream], s.Offset}.append([]byte{tableEnds}), s.JIDTag)
}

func keyEnds(s *wire.Slot) []byte {
	return table.AppendInt(table.AppendInt(keyEndsOf(s), s.Epoch), s.Seq)
}

func slotAt(r view.Reader, id entryID) (*wire.HeldSlot, error) {
	raw, ok, err := r.Get(keySlot(id))
	if err != nil || !ok {
		return nil, err
	}
	return decodeSlot(raw)
}

// slotOf returns the slot that an entry holds, nil if the entry with this jid holds none.
func slotOf(r view.Reader, id entryID, jid string) (*wire.HeldSlot, error) {
	h, err := slotAt(r, id)
	if err != nil || h == nil || h.JID != jid {
		return nil, err
	}
	return h, nil
}

func decodeSlot(raw []byte) (*wire.HeldSlot, error) {
	h := &wire.HeldSlot{}
	if err := json.Unmarshal(raw, h); err != nil {
		return nil, fmt.Errorf("tracker: slot is damaged: %w", err)
	}
	return h, nil
}

func decodeFacts(raw []byte) (f endFacts, known bool, err error) {
	if len(raw) != 17 { // the table puts the age before it
		return f, false, errors.New("tracker: a record of an end is damaged")
	}
	return endFacts{raw[8] == 1, int64(binary.BigEndian.Uint64(raw[9:]))}, true, nil
}

func (f endFacts) encode() []byte {
	b := []byte{0}
	if f.ended {
		b[0] = 1
	}
	return binary.BigEndian.AppendUint64(b, uint64(f.claimed))
}

// Claim says which fire of an entry runs.
type Claim struct {
	Ended  bool // a fire of the entry has ended
	Winner wire.Through
	Any    bool // there is a winner
}

// Runs reports whether a fire is the winner.
func (c Claim) Runs(fire wire.Through) bool { return c.Any && c.Winner == fire }

func claimed(r view.Reader, slot wire.Slot) (c Claim, err error) {
	prefix, first := keyEndsOf(&slot), int64(0)
	err = table.Scan(r, prefix, table.After(prefix), false, func(key, raw []byte) (bool, error) {
		f, _, err := decodeFacts(raw)
		if err != nil {
			return false, err
		}
		c.Ended = c.Ended || f.ended
		if f.claimed > 0 && (first == 0 || f.claimed < first) {
			first, c.Any = f.claimed, true
			at := key[len(prefix):]
			c.Winner = wire.Through{Epoch: table.Int(at), Through: table.Int(at[table.IntLen:])}
		}
		return true, nil
	})
	return c, err
}
