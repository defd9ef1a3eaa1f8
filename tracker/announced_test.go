package tracker

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// announcing is a table of announcements, and what should be in it.
type announcing struct {
	*rapid.T
	store  *view.Store
	table  *announcements
	reader Announcements
	rows   map[entryID]announcedRow // as they were written last
}

type announcedRow struct {
	tag       string
	journaled bool
}

// Readers find exactly the announcements that are written: while a batch is being made, from the
// moment in which it is written, and after a batch that was not written.
func TestAnnouncementsAreFoundWhenTheyAreWritten(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		store, err := view.Open(view.Config{Cache: 1 << 20, Log: slog.New(slog.DiscardHandler)})
		require.NoError(rt, err)
		defer func() { require.NoError(rt, store.Close()) }()
		first := &firstAnnounced{at: map[code]int64{}}
		w := &announcing{T: rt, store: store, table: newAnnouncements(first), reader: Announcements{store, first}, rows: map[entryID]announcedRow{}}
		require.NoError(rt, w.table.load(store))
		for range rapid.IntRange(1, 30).Draw(rt, "batches") {
			w.write()
			w.finds(w.rows)
			if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
				require.NoError(rt, w.table.load(store))
				w.finds(w.rows)
			}
		}
	})
}

var errNotWritten = errors.New("it is not written")

func (w *announcing) write() {
	next := maps.Clone(w.rows)
	err := w.store.Update(func(tx *view.Tx) error {
		tx.AfterCommit(func() { w.finds(next) }) // a reader may run before the table shows the batch
		for range rapid.IntRange(1, 4).Draw(w.T, "rows") {
			w.change(tx, next)
			w.finds(w.rows)
		}
		require.NoError(w.T, w.table.save(tx))
		if rapid.IntRange(0, 4).Draw(w.T, "fails") == 0 {
			return errNotWritten
		}
		return nil
	})
	if errors.Is(err, errNotWritten) {
		return
	}
	require.NoError(w.T, err)
	w.rows = next
}

func (w *announcing) change(tx *view.Tx, rows map[entryID]announcedRow) {
	id := entryID{code(rapid.IntRange(1, len(names)).Draw(w.T, "stream")), int64(rapid.IntRange(0, 9).Draw(w.T, "offset"))}
	tag := rapid.SampledFrom([]string{"a", "b"}).Draw(w.T, "jid")
	row, known := rows[id]
	switch rapid.IntRange(0, 4).Draw(w.T, "change") {
	case 0, 1:
		require.NoError(w.T, w.table.add(tx, wire.Announcement{Stream: id.name(), Offset: id.offset, JIDTag: tag}))
		if rows[id] = (announcedRow{tag: tag}); known && row.journaled && row.tag == tag {
			delete(rows, id)
		}
	case 2, 3:
		require.NoError(w.T, w.table.journaled(tx, id, tag))
		switch {
		case !known || row.journaled:
			rows[id] = announcedRow{tag, true}
		case row.tag == tag:
			delete(rows, id)
		}
	case 4:
		require.NoError(w.T, w.table.forgetBelow(tx, id))
		maps.DeleteFunc(rows, func(other entryID, _ announcedRow) bool { return other.stream == id.stream && other.offset < id.offset })
	}
}

func (w *announcing) finds(rows map[entryID]announcedRow) {
	want := []wire.Announcement{}
	for id, row := range rows {
		if !row.journaled {
			want = append(want, wire.Announcement{Stream: id.name(), Offset: id.offset, JIDTag: row.tag})
		}
	}
	slices.SortFunc(want, func(a, b wire.Announcement) int {
		return cmp.Or(cmp.Compare(codes[a.Stream], codes[b.Stream]), cmp.Compare(a.Offset, b.Offset))
	})
	all, err := w.reader.Announced()
	require.NoError(w.T, err)
	require.Equal(w.T, want, append([]wire.Announcement{}, all...))
}

// A stream loses a replacement that is in the journal, and the broker uses its offset again. The
// journal says nothing of the replacement that is there now.
func TestReusedOffsetIsAnnounced(t *testing.T) {
	for _, again := range []string{"changed", "enqueued"} {
		h := newHistory()
		a := h.entry(sched, "a", 1)
		h.open()
		lost := wire.Announcement{What: wire.TypeChanged, Stream: sched, Offset: h.streams[sched] + 1, Replaces: a, JIDTag: "gone"}
		h.journal(lost)
		h.open()
		var next wire.Announcement
		if again == "changed" {
			next = h.change(sched, a, "a", 9)
		} else {
			next = h.enqueue("b", "order 1", 9)
		}
		require.Equal(t, lost.Offset, next.Offset)
		for _, order := range []string{sched, wire.Journal} {
			o := newOne(t)
			r := o.read(h, true)
			r.next(order, 100)
			r.finish()
			all, err := o.Announced()
			require.NoError(t, err)
			require.Equal(t, []wire.Announcement{next}, all, "%s, %s first", again, order)
		}
		h.journal(next)
		for _, order := range []string{sched, wire.Journal} {
			o := newOne(t)
			r := o.read(h, true)
			r.next(order, 100)
			r.finish()
			require.Zero(t, o.table(tableAnnounced), "%s, %s first", again, order)
		}
	}
}
