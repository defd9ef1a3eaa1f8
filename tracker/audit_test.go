package tracker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

func (o *one) auditEntries(q audit.Query) (ops []string, f audit.Found) {
	if q.Limit == 0 {
		q.Limit = 100
	}
	if q.Most == 0 {
		q.Most = 100_000
	}
	f, err := o.Audit.Search(q)
	require.NoError(o.t, err)
	for i := range f.Entries {
		a := &f.Entries[i]
		ops = append(ops, strings.TrimSpace(fmt.Sprintf("%s %s%s %s", a.Op, a.JID, a.Queue, a.Actor)))
	}
	return ops, f
}

// Actions of users are listed, the newest first. Fires of due jobs are not listed, nor is the
// progress of operations.
func TestAuditLog(t *testing.T) {
	h := newHistory()
	a, b, c := h.entry(sched, "a", 1), h.entry(sched, "b", 1), h.entry(sched, "c", 1)
	h.open()
	by := func(actor, operation string) func(*wire.Dispatch) {
		return func(d *wire.Dispatch) { d.Actor, d.Operation = actor, operation }
	}
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, At: 10, Stream: sched, Offset: a, JID: "a", Actor: "ann", Reason: strings.Repeat("é", 600)})
	h.dispatch(wire.OpTriggered, sched, b, "b", by("bob", ""))
	h.dispatch(wire.OpFired, sched, c, "c")
	h.all[len(h.all)-1].Time = time.Unix(11, 0)
	h.operation(wire.Operation{ID: "op", Action: wire.CommandRetry, Stream: retry, Filter: &wire.Filter{}, State: wire.OperationRunning, Actor: "ann", Reason: "up"})
	h.dispatch(wire.OpRetried, retry, 9, "r", by("ann", "op"))
	h.all[len(h.all)-1].Time = time.Unix(12, 0)
	h.operation(wire.Operation{ID: "op", State: wire.OperationRunning, Cursor: 5})
	h.record(wire.JournalRecord{Type: wire.TypeOperation, At: 20, Operation: &wire.Operation{ID: "op", State: wire.OperationDone}})
	paused := map[string]wire.Pause{"low": {At: 30}}
	h.record(wire.JournalRecord{Type: wire.TypeState, At: 30, Queue: "low", Paused: &paused, Actor: "bob"})
	h.record(wire.JournalRecord{Type: wire.TypeState, At: 31, Queue: "low", Paused: &map[string]wire.Pause{}, Actor: "bob"})
	h.record(wire.JournalRecord{Type: wire.TypeState, At: 31, Paused: &paused}) // carried over
	h.record(wire.JournalRecord{Type: wire.TypeRefused, At: 32, Stream: sched, Offset: c, JID: "c", Error: "too large"})

	h.record(wire.JournalRecord{Type: wire.TypeNoted, At: 33, Noted: &wire.Noted{Op: wire.NotedMoved, Queue: "low", To: "high", Count: 3}, Actor: "cyn", Reason: "r"})
	h.record(wire.JournalRecord{Type: wire.TypeNoted, At: 34, Noted: &wire.Noted{Op: wire.NotedStopped, Identity: "*"}, Actor: "cyn"})
	h.record(wire.JournalRecord{Type: wire.TypeNoted, At: 35})
	h.record(wire.JournalRecord{Type: wire.TypeNoted, At: 36, Noted: &wire.Noted{Op: wire.NotedCancelled, Identity: "h:1:x", JID: "é"}, Actor: "cyn"})

	o := newOne(t).inOrder(h)
	for range 2 {
		ops, f := o.auditEntries(audit.Query{})
		require.Equal(t, audit.Entry{Record: f.Entries[0].Record, At: 36, Op: "cancelled", Identity: "h:1:x", JID: wire.JIDTag("é"), Actor: "cyn"}, f.Entries[0])
		ops, f.Entries = ops[1:], f.Entries[1:]
		require.Equal(t, []string{"stopped  cyn", "moved low cyn"}, ops[:2])
		require.Equal(t, audit.Entry{Record: f.Entries[0].Record, At: 34, Op: "stopped", Identity: "*", Actor: "cyn"}, f.Entries[0])
		require.Equal(t, audit.Entry{Record: f.Entries[1].Record, At: 33, Op: "moved", Queue: "low", To: "high", Count: 3, Actor: "cyn", Reason: "r"}, f.Entries[1])
		ops, f.Entries = ops[2:], f.Entries[2:]
		require.Equal(t, []string{"refused c", "resumed low bob", "paused low bob", "operation  ann", "retried r ann", "operation  ann", "triggered b bob", "deleted a ann"}, ops)
		require.Equal(t, []any{int64(0), false, 11}, []any{f.Next, f.Older, f.Searched})
		require.Equal(t, audit.Entry{Record: f.Entries[3].Record, At: 20, Op: wire.TypeOperation, Stream: retry, Actor: "ann", Reason: "up", Operation: "op",
			Action: wire.CommandRetry, State: wire.OperationDone}, f.Entries[3])
		require.Equal(t, 10.0, f.Entries[6].At, "an entry of unknown time gets the time of the previous one")
		require.Equal(t, "too large", f.Entries[0].Reason)
		require.Equal(t, strings.Repeat("é", 500)+"…", f.Entries[7].Reason)
		o.restart()
	}
	for want, q := range map[string]audit.Query{
		"resumed low bob, paused low bob, triggered b bob": {Actor: "bob"},
		"triggered b bob": {JID: "b"},
		"paused low bob":  {Op: audit.OpPaused},
		"resumed low bob, paused low bob, operation  ann": {From: 20, To: 32},
	} {
		ops, _ := o.auditEntries(q)
		require.Equal(t, want, strings.Join(ops, ", "))
	}
	var all []string
	for _, most := range []int{100, 4, 2} { // all limits of a search give the same pages
		q := audit.Query{Limit: 3, Most: most}
		for all = nil; ; {
			ops, f := o.auditEntries(q)
			require.LessOrEqual(t, len(ops), 3)
			all = append(all, ops...)
			if q.Below = f.Next; f.Next == 0 {
				break
			}
		}
		ops, _ := o.auditEntries(audit.Query{})
		require.Equal(t, ops, all)
	}
}

// If the log is full, an operation on many entries displaces entries of operations. It displaces no
// action of a user on one job.
func TestAuditLogIsBounded(t *testing.T) {
	h := newHistory()
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, At: 1, Stream: sched, Offset: 1, JID: "a", Actor: "ann"})
	o := newOne(t).inOrder(h)
	const most, more = 640, 300
	o.Entries.fold.audit.Max = most
	for i := range most + more {
		m := wire.JournalRecord{Type: wire.TypeDeleted, At: float64(i + 2), Stream: sched, Offset: int64(i), JID: "m", Actor: "ann", InOperation: "op"}.Append(wire.Journal, int64(i+2), 0)
		o.fold(wire.Record{Stream: wire.Journal, Offset: int64(i + 10), UserID: millrace, Headers: m.Headers, Body: m.Body})
	}
	kept := o.table(audit.Table)
	require.LessOrEqual(t, kept, most+1)
	require.Greater(t, kept, most-most/64-1)
	ops, f := o.auditEntries(audit.Query{JID: "a"})
	require.Equal(t, []string{"deleted a ann"}, ops)
	require.True(t, f.Older)
	forgotten := float64(2 + most + more + 1 - kept)
	for from, older := range map[float64]bool{forgotten - 1: true, forgotten: false} {
		_, f = o.auditEntries(audit.Query{From: from, Actor: "unknown"})
		require.Equal(t, older, f.Older, from)
	}
	require.NoError(t, o.store.Update(func(tx *view.Tx) error {
		_, err := o.Forget(tx, wire.Journal)
		return err
	}))
	require.Zero(t, o.table(audit.Table))
	_, f = o.auditEntries(audit.Query{})
	require.False(t, f.Older)
}

// If retention has deleted the journal's beginning, older actions are unknown.
func TestAuditLogOfTrimmedJournal(t *testing.T) {
	h := newHistory()
	h.hole(wire.Journal, 40)
	h.open()
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, At: 50, Stream: sched, Offset: 1, JID: "a", Actor: "ann"})
	o := newOne(t).inOrder(h)
	for from, older := range map[float64]bool{0: true, 49: true, 50: false} {
		_, f := o.auditEntries(audit.Query{From: from})
		require.Equal(t, older, f.Older, from)
	}
	h = newHistory()
	h.hole(wire.Journal, 40)
	h.open(func(r *wire.JournalRecord) { r.At = 45 })
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, At: 50, Stream: sched, Offset: 1, JID: "a", Actor: "ann"})
	o = newOne(t).inOrder(h)
	for from, older := range map[float64]bool{0: true, 44: true, 45: false, 50: false} {
		_, f := o.auditEntries(audit.Query{From: from})
		require.Equal(t, older, f.Older, "%v: the journal was read from the epoch on", from)
	}
}
