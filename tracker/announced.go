package tracker

import (
	"encoding/json"
	"fmt"
	"maps"
	"sync"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A replacement that a user asked for is written twice: to its stream, which alone decides what is
// pending, and then to the journal, for the audit log. In between there is a row here, so that the
// next leader can journal it if the leader died. A view that reads the journal first leaves a row
// with the jid until it has read the replacement too. So the order does not matter. A row about
// another jid is of a replacement that the stream has lost: the broker used the offset again.

// isJournaled begins a row of a replacement that only the journal has so far. The jid's tag
// follows. All other rows are announcements as JSON.
const isJournaled = '='

// journaledAs returns the tag in a row of a replacement that only the journal has.
func journaledAs(row []byte) (tag string, journaled bool) {
	if len(row) == 0 || row[0] != isJournaled {
		return "", false
	}
	return string(row[1:]), true
}

func announcementOf(row []byte) (a wire.Announcement, err error) {
	if err := json.Unmarshal(row, &a); err != nil {
		return a, fmt.Errorf("tracker: announcement is damaged: %w", err)
	}
	return a, nil
}

// announcements is the fold's side of the table. It knows where the rows of each stream begin: rows
// mostly leave in the order in which they came, and a scan from the very beginning would step over
// the tombstones of all deleted rows.
type announcements struct {
	first map[code]int64 // a stream has no row before it; noOffset if it has none
	left  map[code]bool  // streams whose first row may have left in this batch
	shown *firstAnnounced
	batch table.Batch
}

func newAnnouncements(shown *firstAnnounced) *announcements {
	return &announcements{first: map[code]int64{}, left: map[code]bool{}, shown: shown}
}

func (t *announcements) load(r view.Reader) error {
	clear(t.left)
	for c := range names {
		if err := t.seek(r, entryID{c, minOffset}); err != nil {
			return err
		}
	}
	t.show()
	return nil
}

// seek finds the first row of a stream. There is none before id.
func (t *announcements) seek(r view.Reader, id entryID) error {
	t.first[id.stream] = noOffset
	return r.Scan(keyAnnounced(id), table.After([]byte{tableAnnounced, byte(id.stream)}), false, func(key, _ []byte) bool {
		t.first[id.stream] = entryIDOf(key[1:]).offset
		return false
	})
}

// begin begins a batch with what the last one that was written has shown.
func (t *announcements) begin(tx *view.Tx) {
	if t.batch.Begins(tx) {
		t.first = t.shown.all()
		clear(t.left)
		tx.AfterCommit(t.show)
	}
}

// save finds the first rows again where they have left.
func (t *announcements) save(tx *view.Tx) error {
	for c := range t.left {
		if err := t.seek(tx, entryID{c, t.first[c]}); err != nil {
			return err
		}
	}
	clear(t.left)
	return nil
}

func (t *announcements) show() {
	t.batch = table.Batch{}
	t.shown.set(t.first)
}

// add notes a replacement that is not in the journal yet.
func (t *announcements) add(tx *view.Tx, a wire.Announcement) error {
	id := entryID{codes[a.Stream], a.Offset}
	row, _, err := tx.Get(keyAnnounced(id))
	if err != nil {
		return err
	}
	if tag, journaled := journaledAs(row); journaled && tag == a.JIDTag {
		return t.remove(tx, id)
	}
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("tracker: announce: %w", err)
	}
	return t.set(tx, id, value)
}

// journaled notes that the journal has a replacement of a jid.
func (t *announcements) journaled(tx *view.Tx, id entryID, tag string) error {
	row, known, err := tx.Get(keyAnnounced(id))
	if err != nil {
		return err
	}
	if _, journaled := journaledAs(row); known && !journaled {
		a, err := announcementOf(row)
		if err != nil || a.JIDTag != tag { // the record is of an earlier one
			return err
		}
		return t.remove(tx, id)
	}
	if passed, err := passed(tx, id); err != nil || passed {
		return err
	}
	return t.set(tx, id, append([]byte{isJournaled}, tag...))
}

func (t *announcements) set(tx *view.Tx, id entryID, value []byte) error {
	t.begin(tx)
	if id.offset < t.first[id.stream] {
		t.first[id.stream] = id.offset
		t.shown.lower(id.stream, id.offset)
	}
	return tx.Set(keyAnnounced(id), value)
}

func (t *announcements) remove(tx *view.Tx, id entryID) error {
	t.begin(tx)
	if id.offset == t.first[id.stream] {
		t.left[id.stream] = true
	}
	return tx.Delete(keyAnnounced(id))
}

// forgetBelow removes the rows of a stream that are before id.
func (t *announcements) forgetBelow(tx *view.Tx, id entryID) error {
	t.begin(tx)
	t.left[id.stream] = true
	return tx.DeleteRange(keyAnnounced(entryID{id.stream, minOffset}), keyAnnounced(id))
}

// firstAnnounced has, by stream, an offset before which the store has no row. It is lowered before
// a row can be seen, and raised when the rows are gone. A rollback of the store shows earlier rows
// before it is lowered, so readers run under view.Steadily.
type firstAnnounced struct {
	mu sync.Mutex
	at map[code]int64
}

func (f *firstAnnounced) set(at map[code]int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at = maps.Clone(at)
}

func (f *firstAnnounced) lower(c code, offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[c] = min(f.at[c], offset)
}

func (f *firstAnnounced) all() map[code]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.at)
}

// Announcements reads the replacements that are not in the journal yet.
type Announcements struct {
	store *view.Store
	first *firstAnnounced
}

// Announced returns the replacements that are not in the journal yet, by stream and offset.
func (r Announcements) Announced() ([]wire.Announcement, error) {
	var all []wire.Announcement
	first := r.first.all()
	for _, stream := range wire.EntryStreams {
		c := codes[stream]
		if first[c] == noOffset {
			continue
		}
		err := table.Scan(r.store, keyAnnounced(entryID{c, first[c]}), table.After([]byte{tableAnnounced, byte(c)}), false, func(_, row []byte) (bool, error) {
			if _, journaled := journaledAs(row); journaled {
				return true, nil
			}
			a, err := announcementOf(row)
			all = append(all, a)
			return true, err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
