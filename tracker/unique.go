package tracker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// The key of a unique job is taken while something holds it: a pending entry, a slot, or a period.
// A hold is a row that comes and goes with what it belongs to. So a job that is deleted, killed,
// dead or trimmed holds no key, and nothing has to remember to free it.
//
// An entry of jobs.gated is undecided until the journal says whether it has its key. Until then it
// has no place among the entries that may fire. The journal may be read first. Then the decision
// waits for the entry.

// KeyHold is one hold of a key.
type KeyHold struct {
	Key    wire.UniqueID `json:"key"`
	JID    string        `json:"jid"`
	Stream string        `json:"stream,omitempty"` // of the entry or the slot; empty: a period
	Offset int64         `json:"offset,omitempty"`
	Slot   bool          `json:"slot,omitempty"`
	Since  int64         `json:"since,omitempty"` // in microseconds since 1970; of a retry 0
	Until  int64         `json:"until,omitempty"` // of a period
}

// IsPeriod reports whether a key is held for a time.
func (h *KeyHold) IsPeriod() bool { return h.Stream == "" }

// Kinds of holds, in their keys.
const (
	holdEntry  = 'e'
	holdSlot   = 's'
	holdPeriod = 'p'
)

func keyHolds(hash string) []byte { return append([]byte{tableUnique}, hash...) }

func keyHold(k wire.UniqueID, kind byte, id entryID) []byte {
	b := append(keyHolds(k.Hash()), kind)
	if kind == holdPeriod {
		return b
	}
	return id.append(b)
}

func keyPeriodEnd(until int64, k wire.UniqueID) []byte {
	return append(table.AppendInt([]byte{tablePeriodEnd}, until), k.Hash()...)
}

func keyUndecided(offset int64) []byte { return table.AppendInt([]byte{tableUndecided}, offset) }

func keyDecision(offset int64) []byte { return table.AppendInt([]byte{tableDecision}, offset) }

// uniqueKeys writes the holds of keys.
type uniqueKeys struct {
	shown *shownUnique

	entries   int64 // how many entries hold keys
	unread    int64 // how many decisions wait for their entries
	undecided int64 // entries

	batch   table.Batch
	freed   map[wire.UniqueID]bool // in this batch
	decided []wire.Decision        // in this batch
}

func (t *uniqueKeys) load(r view.Reader) error {
	*t = uniqueKeys{shown: t.shown}
	count := func(prefix byte, of func(key []byte) *int64) error {
		return r.Scan([]byte{prefix}, table.After([]byte{prefix}), false, func(key, _ []byte) bool {
			if n := of(key); n != nil {
				*n++
			}
			return true
		})
	}
	err := cmp.Or(
		count(tableUnique, func(key []byte) *int64 {
			if key[len(keyHolds(""))+2*16] != holdEntry {
				return nil
			}
			return &t.entries
		}),
		count(tableDecision, func([]byte) *int64 { return &t.unread }),
		count(tableUndecided, func([]byte) *int64 { return &t.undecided }))
	t.shown.showUndecided(t.undecided, false)
	return err
}

func (t *uniqueKeys) begin(tx *view.Tx) {
	if t.batch.Begins(tx) {
		t.freed, t.decided = nil, nil
	}
}

// save shows what a batch has changed, once it is written. Which keys it frees is shown before: a
// leader that finds a key free must know that it was held.
func (t *uniqueKeys) save(tx *view.Tx) error {
	if !t.batch.Begins(tx) {
		undecided, decided := t.undecided, t.decided
		t.shown.showFreed(t.freed)
		tx.AfterCommit(func() { t.shown.showDecided(undecided, decided) })
	}
	t.batch, t.freed, t.decided = table.Batch{}, nil, nil
	return nil
}

func (t *uniqueKeys) set(tx *view.Tx, key []byte, h *KeyHold) error {
	t.begin(tx)
	raw, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("tracker: save key: %w", err)
	}
	return tx.Set(key, raw)
}

// remove removes the hold of an entry or a slot. The key is free now, unless something else holds
// it.
func (t *uniqueKeys) remove(tx *view.Tx, k wire.UniqueID, kind byte, id entryID) error {
	t.begin(tx)
	if t.freed == nil {
		t.freed = map[wire.UniqueID]bool{}
	}
	t.freed[k] = true
	return tx.Delete(keyHold(k, kind, id))
}

// entered takes in that an entry is stored.
func (t *uniqueKeys) entered(tx *view.Tx, s *Stored) error {
	if !s.holdsKey() {
		return nil
	}
	key := keyHold(s.Unique, holdEntry, s.id())
	if _, known, err := tx.Get(key); err != nil || known {
		return err
	}
	t.entries++
	return t.set(tx, key, &KeyHold{Key: s.Unique, JID: s.JID, Stream: s.Stream, Offset: s.Offset, Since: s.PutOffSince})
}

// left takes in that an entry is not stored any more.
func (t *uniqueKeys) left(tx *view.Tx, id entryID) error {
	if t.entries == 0 || id.stream != codes[wire.Gated] && id.stream != codes[wire.Retries] {
		return nil
	}
	s, err := storedAt(tx, id)
	if err != nil || s == nil || !s.holdsKey() {
		return err
	}
	t.entries--
	return t.remove(tx, s.Unique, holdEntry, id)
}

// slotTaken takes in that a slot is held.
func (t *uniqueKeys) slotTaken(tx *view.Tx, id entryID, h *wire.HeldSlot) error {
	if h.Unique == "" {
		return nil
	}
	return t.set(tx, keyHold(h.Unique, holdSlot, id), &KeyHold{Key: h.Unique, JID: h.JID, Stream: h.Stream, Offset: h.Offset, Slot: true, Since: int64(micros(h.At))})
}

// slotFreed takes in that a slot is not held any more.
func (t *uniqueKeys) slotFreed(tx *view.Tx, id entryID, h *wire.HeldSlot) error {
	if h.Unique == "" {
		return nil
	}
	return t.remove(tx, h.Unique, holdSlot, id)
}

// count counts an undecided entry that became pending, or is no longer.
func (t *uniqueKeys) count(tx *view.Tx, s *Stored, n int64) {
	if s.Undecided && fires(s) {
		t.begin(tx)
		t.undecided += n
	}
}

// take takes in that a key is taken for a time.
func (t *uniqueKeys) take(tx *view.Tx, p *wire.UniquePeriod) error {
	if err := t.endPeriod(tx, p.Key); err != nil {
		return err
	}
	hold := &KeyHold{Key: p.Key, JID: p.JID, Since: p.Since, Until: p.Until}
	return cmp.Or(t.set(tx, keyHold(p.Key, holdPeriod, entryID{}), hold), tx.Set(keyPeriodEnd(p.Until, p.Key), []byte(p.Key)))
}

// endPeriod takes in that a key is not taken for a time any more.
func (t *uniqueKeys) endPeriod(tx *view.Tx, k wire.UniqueID) error {
	key := keyHold(k, holdPeriod, entryID{})
	raw, held, err := tx.Get(key)
	if err != nil || !held {
		return err
	}
	h, err := decodeHold(raw)
	if err != nil {
		return err
	}
	return cmp.Or(tx.Delete(key), tx.Delete(keyPeriodEnd(h.Until, k)))
}

// expire forgets the periods that are over. The time is that of a record of the journal, so all
// views keep the same ones.
func (t *uniqueKeys) expire(tx *view.Tx, at float64) error {
	return t.endPeriods(tx, table.AppendInt([]byte{tablePeriodEnd}, int64(micros(at))+1))
}

// forgetPeriods forgets all periods.
func (t *uniqueKeys) forgetPeriods(tx *view.Tx) error {
	return t.endPeriods(tx, table.After([]byte{tablePeriodEnd}))
}

func (t *uniqueKeys) endPeriods(tx *view.Tx, below []byte) error {
	var over []wire.UniqueID
	err := tx.Scan([]byte{tablePeriodEnd}, below, false, func(_, value []byte) bool {
		over = append(over, wire.UniqueID(value))
		return true
	})
	if err != nil {
		return err
	}
	for _, k := range over {
		if err := t.endPeriod(tx, k); err != nil {
			return err
		}
	}
	return nil
}

// admission is a decision that waits for its entry.
type admission struct {
	JID   string `json:"jid"` // a JIDTag
	Due   int64  `json:"due,omitempty"`
	First int64  `json:"first,omitempty"`
}

// admitted changes an entry to one that has its key.
func (a *admission) admitted(s *Stored) {
	s.Undecided, s.ReplyTo, s.CorrelationID = false, "", ""
	if a.Due != 0 {
		s.At = time.UnixMicro(a.Due).UTC()
	}
	s.PutOffSince = cmp.Or(a.First, s.PutOffSince)
}

// await keeps a decision until its entry is read.
func (t *uniqueKeys) await(tx *view.Tx, offset int64, a *admission) error {
	old, err := t.awaiting(tx, offset)
	if err != nil {
		return err
	}
	if old == nil {
		t.unread++
	} else if old.JID == a.JID {
		a.Due, a.First = cmp.Or(a.Due, old.Due), cmp.Or(a.First, old.First)
	}
	raw, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("tracker: save decision: %w", err)
	}
	return tx.Set(keyDecision(offset), raw)
}

func (t *uniqueKeys) awaiting(tx *view.Tx, offset int64) (*admission, error) {
	if t.unread == 0 {
		return nil, nil
	}
	raw, known, err := tx.Get(keyDecision(offset))
	if err != nil || !known {
		return nil, err
	}
	a := &admission{}
	if err := json.Unmarshal(raw, a); err != nil {
		return nil, fmt.Errorf("tracker: decision is damaged: %w", err)
	}
	return a, nil
}

// arrived takes in the decision that waited for an entry.
func (t *uniqueKeys) arrived(tx *view.Tx, s *Stored) error {
	if s.Stream != wire.Gated {
		return nil
	}
	a, err := t.awaiting(tx, s.Offset)
	if err != nil || a == nil {
		return err
	}
	if a.JID == s.tag() && s.Unique != "" {
		a.admitted(s)
	}
	t.unread--
	return tx.Delete(keyDecision(s.Offset))
}

// forgetBelow forgets the decisions that wait for entries below an offset.
func (t *uniqueKeys) forgetBelow(tx *view.Tx, below int64) error {
	if t.unread == 0 {
		return nil
	}
	var gone [][]byte
	err := tx.Scan([]byte{tableDecision}, keyDecision(below), false, func(key, _ []byte) bool {
		gone = append(gone, append([]byte(nil), key...))
		return true
	})
	for _, key := range gone {
		t.unread--
		err = cmp.Or(err, tx.Delete(key))
	}
	return err
}

func decodeHold(raw []byte) (*KeyHold, error) {
	h := &KeyHold{}
	if err := json.Unmarshal(raw, h); err != nil {
		return nil, fmt.Errorf("tracker: a hold of a key is damaged: %w", err)
	}
	return h, nil
}
