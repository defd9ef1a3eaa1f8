package scheduler_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// The undo of a "delete all" survives a leader that dies in the middle. The next leader continues
// from the journal, and restores nothing twice.
func TestOperationUndoSurvivesFailover(t *testing.T) {
	v := brokertest.New(t)
	const n = 1000
	first := start(t, v, options{identity: "a", native: true}).leads(t)
	schedule(t, v, time.Now().Add(time.Hour), "q", names("many", n)...)
	schedule(t, v, time.Now().Add(time.Hour), "q", "undone by hand")
	first.reads(t, wire.ScheduledJobs, "undone by hand")
	first.operates(t, 202, "wrong", wire.Operation{Action: wire.CommandDelete, Stream: wire.ScheduledJobs, Filter: &wire.Filter{}})
	require.EqualValues(t, n+1, first.ends(t, "wrong").Done)
	require.Zero(t, first.entries.Total(wire.ScheduledJobs))
	first.does(t, 200, wire.CommandUndo, wire.ScheduledJobs, "undone by hand", "")
	first.does(t, 204, wire.CommandTrigger, wire.ScheduledJobs, "undone by hand", "")

	first.operates(t, 202, "undo", wire.Operation{Action: wire.CommandUndo, Undoes: "wrong", Rate: 500})
	first.operates(t, 409, "again", wire.Operation{Action: wire.CommandUndo, Undoes: "wrong"})
	brokertest.Eventually(t, func() bool { return first.entries.Total(wire.ScheduledJobs) > 200 }, "it is under way")
	first.stop()

	second := start(t, v, options{identity: "b"}).leads(t)
	op := second.ends(t, "undo")
	require.Equal(t, []any{wire.OperationDone, int64(n + 1), int64(n), int64(0)}, []any{op.State, op.Total, op.Done, op.Failed}, "%+v", op)
	require.Equal(t, []wire.Skip{{Reason: "it was undone already", Count: 1}}, op.Skips)
	jids := map[string]int{}
	require.NoError(t, second.entries.List(wire.ScheduledJobs, tracker.Cursor{}, func(r tracker.Row) bool { jids[r.JID]++; return true }))
	require.Len(t, jids, n)
	for jid, times := range jids {
		require.Equal(t, 1, times, jid)
	}
	require.Equal(t, n+1, journal(t, v)[wire.TypeUndone], "each once")
	second.operates(t, 409, "again", wire.Operation{Action: wire.CommandUndo, Undoes: "wrong"})
	second.operates(t, 404, "never", wire.Operation{Action: wire.CommandUndo, Undoes: "never"})
}
