package tracker

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// A replacement that a user asked for is written twice: to its stream, which alone decides what is
// pending, and then to the journal, for the audit log. In between there is a row here, so that the
// next leader can journal it if the leader died. A view that reads the journal first leaves an
// empty row until it has read the replacement too. So the order does not matter.

// announcements is the fold's side of the table of announcements. It knows the first row of each
// stream: rows mostly leave in the order in which they came, and a scan from the very beginning
// would step over the tombstones of all that ever were.
type announcements struct {
	first map[code]int64 // noOffset if there is no row
	shown *firstAnnounced
	batch table.Batch
}

func (t *announcements) load(r view.Reader) error {
	for c := range names {
		if err := t.seek(r, entryID{c, minOffset}); err != nil {
			return err
		}
	}
	t.batch = table.Batch{}
	t.show()
	return nil
}

// seek finds the first row of a stream, which has none before id.
func (t *announcements) seek(r view.Reader, id entryID) error {
	t.first[id.stream] = noOffset
	return r.Scan(keyAnnounced(id), table.After([]byte{tableAnnounced, byte(id.stream)}), false, func(key, _ []byte) bool {
		t.first[id.stream] = entryIDOf(key[1:]).offset
		return false
	})
}

// begin makes the first rows be shown when the batch is written.
func (t *announcements) begin(tx *view.Tx) {
	if t.batch.Begins(tx) {
		tx.AfterCommit(t.show)
	}
}

func (t *announcements) show() {
	for c, offset := range t.first {
		t.shown.set(c, offset)
	}
}

// add notes a replacement that is not in the journal yet.
func (t *announcements) add(tx *view.Tx, a wire.Announcement) error {
	id := entryID{codes[a.Stream], a.Offset}
	_, journaled, err := tx.Get(keyAnnounced(id))
	if err != nil {
		return err
	}
	if journaled {
		return t.remove(tx, id)
	}
	value, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("tracker: announce: %w", err)
	}
	return t.set(tx, id, value)
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
	if err := tx.Delete(keyAnnounced(id)); err != nil || id.offset != t.first[id.stream] {
		return err
	}
	return t.seek(tx, id)
}

// forgetBelow removes the rows of a stream that are before id.
func (t *announcements) forgetBelow(tx *view.Tx, id entryID) error {
	t.begin(tx)
	if err := tx.DeleteRange(keyAnnounced(entryID{id.stream, minOffset}), keyAnnounced(id)); err != nil {
		return err
	}
	return t.seek(tx, id)
}

// firstAnnounced has, by stream, an offset before which no reader finds an announcement. It is
// lowered before a row can be seen, and raised when rows are gone.
type firstAnnounced struct {
	mu sync.Mutex
	at map[code]int64
}

func (f *firstAnnounced) set(c code, offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[c] = offset
}

func (f *firstAnnounced) lower(c code, offset int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at[c] = min(f.at[c], offset)
}

func (f *firstAnnounced) from(c code) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at[c]
}

// Announcements reads the replacements that are not in the journal yet.
type Announcements struct {
	store *view.Store
	first *firstAnnounced
}

// Announced returns the replacements that are not in the journal yet, by stream and offset.
func (r Announcements) Announced() ([]wire.Announcement, error) {
	var all []wire.Announcement
	for _, stream := range wire.EntryStreams {
		c := codes[stream]
		err := table.Scan(r.store, keyAnnounced(entryID{c, r.first.from(c)}), table.After([]byte{tableAnnounced, byte(c)}), false, func(_, value []byte) (bool, error) {
			if len(value) == 0 {
				return true, nil
			}
			var a wire.Announcement
			if err := json.Unmarshal(value, &a); err != nil {
				return false, fmt.Errorf("tracker: announcement is damaged: %w", err)
			}
			all = append(all, a)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
