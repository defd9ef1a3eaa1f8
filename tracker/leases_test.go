package tracker

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/tracker/audit"
	"github.com/millrace-jobs/millrace/wire"
)

// A lease is an entry that fires when it is due. It is not listed or counted as a scheduled job,
// even after it was replaced. Only Millrace's own user can create a lease.
func TestLeasesAreNotListed(t *testing.T) {
	h := newHistory()
	h.entry(sched, "a", 1)
	h.open()
	lease := func(user, jid string, replaces int64) int64 {
		job := wire.Job{Class: "C", Raw: []byte(`{"class":"C","jid":"` + jid + `","queue":"q"}`)}
		m, err := wire.LeaseMessage("lease-"+jid, time.Unix(1000+replaces, 0), &job, "", "")
		require.NoError(t, err)
		if replaces > 0 {
			m.Headers[wire.HeaderReplaces], m.Headers[wire.HeaderEpoch] = replaces, h.epoch
		}
		return h.append(sched, user, m.Headers, string(m.Body))
	}
	one := lease(millrace, "x", 0)
	foreign := lease("another", "y", 0)
	o := newOne(t).inOrder(h)
	require.Equal(t, []string{"0:a", "2:lease-y"}[0], o.pending(sched)[0])
	require.Len(t, o.pending(sched), 2, "an entry of another user is listed")
	require.EqualValues(t, []int64{2, 1}, []int64{o.Total(sched), o.LeasedOf("q")})
	held, err := o.Leases("x")
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.Equal(t, []any{one, "lease-x", "x"}, []any{held[0].Offset, held[0].JID, held[0].Leased})
	pending, err := o.Pending(held[0])
	require.NoError(t, err)
	require.True(t, pending)
	require.Contains(t, o.due(), "q/scheduled_jobs:"+strconv.FormatInt(one, 10))

	two := lease(millrace, "x", one)
	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: foreign, JID: "lease-y"})
	o = newOne(t).inOrder(h)
	require.Len(t, o.pending(sched), 1)
	held, err = o.Leases("x")
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.Equal(t, two, held[0].Offset)
	o.restart()
	require.EqualValues(t, 1, o.LeasedOf("q"))

	h.record(wire.JournalRecord{Type: wire.TypeDeleted, Stream: sched, Offset: two, JID: "lease-x", Actor: "ann", Command: wire.LeaseAck + "lease-x"})
	o = newOne(t).inOrder(h)
	held, err = o.Leases("x")
	require.NoError(t, err)
	require.Empty(t, held)
	require.Zero(t, o.LeasedOf("q"))
	require.NotContains(t, o.due(), "q/scheduled_jobs:"+strconv.FormatInt(two, 10))
	ops, _ := o.auditEntries(audit.Query{Actor: "ann"})
	require.Empty(t, ops, "workers settle leases, and are not in the audit log")
	requireSound(t, o)
}
