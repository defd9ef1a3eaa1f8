package tracker

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func keySlot(id entryID) []byte { return id.append([]byte{tableSlot}) }

func slotAt(r view.Reader, id entryID) (*wire.HeldSlot, error) {
	raw, ok, err := r.Get(keySlot(id))
	if err != nil || !ok {
		return nil, err
	}
	return decodeSlot(id, raw)
}

// slotOf returns the slot that an entry holds, nil if the entry with this jid holds none.
func slotOf(r view.Reader, id entryID, jid string) (*wire.HeldSlot, error) {
	h, err := slotAt(r, id)
	if err != nil || h == nil || h.JID != jid {
		return nil, err
	}
	return h, nil
}

// encodeSlot returns a row of the table of slots, without the entry, which is its key.
func encodeSlot(h *wire.HeldSlot) (b []byte) {
	for _, text := range []string{h.JID, h.Queue, h.Class, h.Key, string(h.Unique)} {
		b = table.AppendText(b, text)
	}
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(h.At))
	for _, f := range h.Fires {
		b = binary.AppendVarint(binary.AppendVarint(b, f.Epoch), f.Through)
	}
	return b
}

func decodeSlot(id entryID, raw []byte) (*wire.HeldSlot, error) {
	d := table.Decoder{B: raw}
	h := &wire.HeldSlot{Stream: id.name(), Offset: id.offset, JID: d.Text(),
		Group: wire.Group{Queue: d.Text(), Class: d.Text(), Key: d.Text()}, Unique: wire.UniqueID(d.Text())}
	if d.Bad || len(d.B) < 8 {
		return nil, errSlotDamaged
	}
	h.At = math.Float64frombits(binary.LittleEndian.Uint64(d.B))
	for d.B = d.B[8:]; len(d.B) > 0; {
		h.Fires = append(h.Fires, wire.Through{Epoch: d.Int(), Through: d.Int()})
	}
	if d.Bad {
		return nil, errSlotDamaged
	}
	return h, nil
}

var errSlotDamaged = errors.New("tracker: a slot is damaged")
