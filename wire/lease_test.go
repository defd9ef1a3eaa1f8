package wire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeasedJob(t *testing.T) {
	for body, want := range map[string]string{
		`{"class":"C"}`: `{"class":"C","jid":"m","queue":"q","priority":7}`,
		`{ "jid":"j", "class":"C","queue":"r","priority":0,"args":[1e400]}`: `{ "jid":"j", "class":"C","queue":"r","priority":0,"args":[1e400]}`,
	} {
		job, err := LeasedJob(&Delivery{Body: []byte(body), MessageID: "m", Priority: 7}, "q")
		require.NoError(t, err)
		require.Equal(t, want, string(job.Raw))
	}
	job, err := LeasedJob(&Delivery{Body: []byte(`{"class":"C"}`)}, "q")
	require.NoError(t, err)
	require.Len(t, job.JID, 24, "as workers name a job without a name")
	for _, body := range []string{"\xff", `x`, `{}`, `{"class":"C","jid":1}`} {
		_, err := LeasedJob(&Delivery{Body: []byte(body)}, "q")
		require.Error(t, err, body)
	}
}

func TestLeaseIDs(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	id := NewLeaseID(Lease{RanOut: 2, At: at})
	l, ok := ParseLeaseID(id)
	require.True(t, ok)
	require.Equal(t, Lease{2, at}, l)
	for _, other := range []string{"", "lease", "lease-2-x", "lease--1-ABCDEFGHIJKLMNOP", "lease-70000-1-ABCDEFGHIJKLMNOP", "job-1-1-ABCDEFGHIJKLMNOP", id + "é", "lease-1-!-ABCDEFGHIJKLMNOP"} {
		_, ok := ParseLeaseID(other)
		require.False(t, ok, other)
	}
	came := func(op, stream, jid string) int {
		d := Dispatch{Op: op, Stream: stream, JIDTag: jid}
		return RanOut(&Delivery{Headers: d.Headers()})
	}
	require.Equal(t, []int{3, 3, 0, 0, 0, 0}, []int{came(OpFired, ScheduledJobs, id), came(OpRefired, ScheduledJobs, id), came(OpTriggered, ScheduledJobs, id),
		came(OpFired, Retries, id), came(OpFired, ScheduledJobs, "j"), RanOut(&Delivery{})})
	job := Job{Class: "C", Raw: []byte(`{"class":"C","jid":"j"}`)}
	m, err := LeaseMessage(id, at, &job, "trace", "")
	require.NoError(t, err)
	require.Equal(t, []any{ScheduledJobs, id, int64(1), "trace"}, []any{m.Key, m.MessageID, m.Headers[HeaderLease], m.Headers[HeaderTraceparent]})
	e, err := ParseEntry(ScheduledJobs, 0, m.Body)
	require.NoError(t, err)
	require.Equal(t, []string{id, "j"}, []string{e.JID, e.Job.JID})
	require.True(t, SettlesLease(LeaseAck+id))
	require.False(t, SettlesLease(id))
}
