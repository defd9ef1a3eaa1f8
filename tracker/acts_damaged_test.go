package tracker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/wire"
)

// Damaged acts are told of, not passed over: not when they are looked for, nor when what is new has
// to be put behind them.
func TestDamagedActs(t *testing.T) {
	h := newHistory()
	h.hole(wire.Journal, 40)
	h.open()
	by := wire.JournalRecord{Type: wire.TypeDeleted, At: 50, Stream: sched, Offset: 1, JID: "a", Actor: "ann"}
	h.record(by)
	begun := len(h.of(wire.Journal, 0))
	h.deed(wire.OpTriggered, sched, 2, "b") // of which the transport does not tell when it was
	h.record(by)
	list := h.of(wire.Journal, 0)
	o := newOne(t)
	o.fold(list[:begun]...)
	require.Equal(t, 1, o.scribble(audit.Table))

	_, err := o.Audit.Search(audit.Query{Limit: 9, Most: 9})
	require.ErrorIs(t, err, audit.ErrDamaged)
	_, err = o.Audit.Search(audit.Query{Limit: 9, Most: 9, Below: 41, From: 45})
	require.ErrorIs(t, err, audit.ErrDamaged, "whether older ones are kept depends on when the first was")
	_, err = o.try(list[begun])
	require.ErrorIs(t, err, audit.ErrDamaged, "it is put behind the newest")
	o.Entries.fold.audit.Max = 1
	_, err = o.try(list[begun+1])
	require.ErrorIs(t, err, audit.ErrDamaged, "the oldest is forgotten")
}
