package tracker

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func TestRejectedRecordsAreBounded(t *testing.T) {
	o := newOneWith(t, 64<<20)
	garbage := func(from, n int64, body string) {
		batch := make([]wire.Record, 0, n)
		for i := range n {
			batch = append(batch, wire.Record{Stream: retry, Offset: from + i, Body: []byte(body)})
		}
		for len(batch) > 0 {
			k := min(500, len(batch))
			o.fold(batch[:k]...)
			batch = batch[k:]
		}
	}
	kept := func() (first, last int64, n int) {
		require.NoError(t, o.Rejects(retry, func(j Reject) bool {
			if n == 0 {
				last = j.Offset
			}
			first = j.Offset
			n++
			return true
		}))
		return first, last, n
	}
	garbage(0, maxRejects+30, "garbage")
	first, last, n := kept()
	require.Equal(t, []int64{30, maxRejects + 29, maxRejects}, []int64{first, last, int64(n)}, "the newest are kept")
	require.EqualValues(t, maxRejects+30, o.State().Rejected[retry], "all are counted")
	counts, err := o.RejectedKept()
	require.NoError(t, err)
	require.Equal(t, map[string]int64{retry: maxRejects}, counts)
	requireRejects(t, o)

	garbage(20_000, 1000, strings.Repeat("x", 100_000))
	requireRejects(t, o)
	size, err := readRejectSize(o.store, retry)
	require.NoError(t, err)
	require.LessOrEqual(t, size.bytes, int64(maxRejectBytes))
	_, last, n = kept()
	require.EqualValues(t, 20_999, last)
	require.Greater(t, n, 700)
	j, ok, err := o.Rejected(retry, 20_999)
	require.NoError(t, err)
	require.True(t, ok)
	require.EqualValues(t, 100_000, j.Size)
	require.Len(t, j.Body, maxRejectBody)
	require.Equal(t, "record is not valid JSON", j.Reason)
	_, ok, err = o.Rejected(retry, 5)
	require.NoError(t, err)
	require.False(t, ok)
}

func TestRejectedRecords(t *testing.T) {
	h := newHistory()
	h.open()
	h.append(sched, client, nil, "garbage")
	h.append(wire.Heartbeats, client, nil, `{"identity":"a"}`)
	h.append(wire.Heartbeats, client, nil, `{"identity":"a","beat":1}`)
	h.append(wire.JobMetrics, client, nil, `{}`)
	h.append(wire.Journal, "", nil, `{"type":"opened"}`)
	h.append(wire.Journal, "André", nil, `{"type":"opened"}`)
	h.append(wire.Journal, millrace, nil, `{"type":"`)
	h.append(retry, client, map[string]any{wire.HeaderReplaces: int64(1)}, body(retry, "a", 1))
	h.append(dead, client, nil, `{"type":"barrier","epoch":99}`)
	h.record(wire.JournalRecord{Type: wire.TypeRejected, Queue: wire.Unrouted, Reason: "no job", Body: []byte("\x00"), Count: 70_000})
	for _, stream := range []string{sched, wire.Heartbeats, wire.JobMetrics, wire.Journal} {
		h.append(stream, "", nil, "")
		h.all[len(h.all)-1].Fault = "it cannot be read"
	}
	o := newOne(t).inOrder(h)
	for stream, want := range map[string][]string{
		sched:           {"2: it cannot be read", "1: record is not valid JSON"},
		wire.Heartbeats: {"2: it cannot be read", `0: member "beat" is missing`},
		wire.JobMetrics: {"1: it cannot be read", `0: member "job_class" is missing`},
		wire.Journal: {"5: it cannot be read", "3: record is not valid JSON", "2: the journal is Millrace's own: it came from user Andr?",
			"1: the journal is Millrace's own: it came from user (none)"},
		retry: {"1: it replaces another entry, which only Millrace's own user may do: it came from user client"},
		dead: {`1: member "job" is missing or no object: the form is ` +
			`{"type":"dead_job","jid":…,"died_at":seconds,"error_class":…,"error_message":…,"job":{…}}`},
		wire.Unrouted: {"4: no job"},
	} {
		require.Equal(t, want, o.rejected(stream), stream)
		require.EqualValues(t, len(want), o.State().Rejected[stream])
	}
	j, ok, err := o.Rejected(wire.Unrouted, 4)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, Reject{Stream: wire.Unrouted, Offset: 4, Reason: "no job", Size: 70_000, Body: []byte{0}}, j)
	stopped := 0
	require.NoError(t, o.Rejects(wire.Journal, func(Reject) bool {
		stopped++
		return false
	}))
	require.Equal(t, 1, stopped)
}
