package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/wire"
)

// Damaged entries of the audit log cause errors. A search does not skip them, and a new entry that
// must be ordered after them is not folded.
func TestDamagedAuditLogIsReported(t *testing.T) {
	h := newHistory()
	h.hole(wire.Journal, 40)
	h.open()
	by := wire.JournalRecord{Type: wire.TypeDeleted, At: 50, Stream: sched, Offset: 1, JID: "a", Actor: "ann"}
	h.record(by)
	begun := len(h.of(wire.Journal, 0))
	h.dispatch(wire.OpTriggered, sched, 2, "b") // the transport reports no time of this record
	h.record(by)
	list := h.of(wire.Journal, 0)
	o := newOne(t)
	o.fold(list[:begun]...)
	require.Equal(t, 1, o.scribble(audit.Table))

	_, err := o.Audit.Search(audit.Query{Limit: 9, Most: 9})
	require.ErrorIs(t, err, audit.ErrDamaged)
	_, err = o.Audit.Search(audit.Query{Limit: 9, Most: 9, Below: 41, From: 45})
	require.ErrorIs(t, err, audit.ErrDamaged, "the time of the oldest entry decides whether older ones are missing")
	_, err = o.try(list[begun])
	require.ErrorIs(t, err, audit.ErrDamaged, "a new entry is ordered after the newest one")
	o.Entries.fold.audit.Max = 1
	_, err = o.try(list[begun+1])
	require.ErrorIs(t, err, audit.ErrDamaged, "the oldest entry is read to forget it")
}
