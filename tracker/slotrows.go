package tracker

import (
	"encoding/json"
	"fmt"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func keySlot(id entryID) []byte { return id.append([]byte{tableSlot}) }

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
