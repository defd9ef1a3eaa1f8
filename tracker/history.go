package tracker

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// The history has enough of the past to report the outcome of an entry that a user asks for, and to
// answer a repeated command.
const (
	maxOutcomes = 100_000
	maxCommands = 20_000
)

// History reads the outcomes of entries and commands.
type History struct{ store *view.Store }

// LastOutcome returns the last outcome of the entry that had a jid, nil if it is not known, or no
// longer.
func (h History) LastOutcome(stream, jid string) (*wire.Happened, error) {
	return lastOutcome(h.store, codes[stream], wire.JIDTag(jid))
}

func lastOutcome(r view.Reader, stream code, tag string) (*wire.Happened, error) {
	raw, ok, err := r.Get(keyOutcome(stream, tag))
	if err != nil || !ok {
		return nil, err
	}
	var h wire.Happened
	if err := json.Unmarshal(raw[8:], &h); err != nil {
		return nil, fmt.Errorf("tracker: history is damaged: %w", err)
	}
	h.Record = int64(binary.BigEndian.Uint64(raw))
	return &h, nil
}

// CarriedOut reports whether the journal has a command.
func (h History) CarriedOut(id string) (bool, error) {
	_, ok, err := h.store.Get(keyCommand(id))
	return ok, err
}

func keyCommand(id string) []byte { return append([]byte{tableCommand}, id...) }

// record is a JSON record of the journal.
type record struct {
	tx *view.Tx
	*wire.Record
	j *wire.JournalRecord
}

// outcomes writes the history.
type outcomes struct {
	entries  table.Bounded // by stream and jid
	commands table.Bounded // by id
}

func (o *outcomes) load(r view.Reader) (err error) {
	if o.entries, err = table.LoadBounded(r, tableOutcomes); err != nil {
		return err
	}
	o.commands, err = table.LoadBounded(r, tableCommands)
	return err
}

func (o *outcomes) save(tx *view.Tx) error {
	return cmp.Or(o.entries.Save(tx), o.commands.Save(tx))
}

// remember keeps the outcome of the entry with a jid, in place of an earlier one.
func (o *outcomes) remember(tx *view.Tx, journal int64, stream code, tag string, what wire.Happened) error {
	value, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("tracker: remember: %w", err)
	}
	return o.entries.Keep(tx, uint64(journal), keyOutcome(stream, tag), value, maxOutcomes)
}

// rememberRecord keeps the outcome that a record of the journal is.
func (o *outcomes) rememberRecord(r record) error {
	return o.remember(r.tx, r.Offset, codes[r.j.Stream], r.j.JID, wire.Happened{What: r.j.Type, At: r.j.At, Offset: r.j.Offset, Actor: r.j.Actor})
}

// answer keeps that a command was carried out.
func (o *outcomes) answer(tx *view.Tx, journal int64, command string) error {
	if command == "" {
		return nil
	}
	return o.commands.Keep(tx, uint64(journal), keyCommand(command), []byte{1}, maxCommands)
}

// takeBack forgets that something was done to an entry: it was not.
func (o *outcomes) takeBack(tx *view.Tx, j *wire.JournalRecord) error {
	if j.TookBack != "" {
		if err := o.commands.Forget(tx, keyCommand(j.TookBack)); err != nil {
			return err
		}
	}
	return o.entries.Forget(tx, keyOutcome(codes[j.Stream], j.JID))
}

// forget forgets all of it.
func (o *outcomes) forget(tx *view.Tx) error {
	o.entries.Reset()
	o.commands.Reset()
	return cmp.Or(table.Clear(tx, tableOutcome), table.Clear(tx, tableOutcomes), table.Clear(tx, tableCommand), table.Clear(tx, tableCommands))
}
