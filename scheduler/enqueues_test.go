package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func enqueueCmd(key, job string) wire.Command {
	return wire.Command{ID: random(), Command: wire.CommandEnqueue, Key: key, Job: []byte(job)}
}

func TestKeyEnqueuesOneJob(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	first := sc.ask(s, enqueueCmd("k", `{"class":"C","queue":"q"}`))
	require.Equal(t, wire.StatusOK, first.Status)
	again := sc.ask(s, enqueueCmd("k", `{"class":"C","queue":"q"}`))
	require.Equal(t, []any{wire.StatusOK, first.JID}, []any{again.Status, again.JID})
	require.Equal(t, wire.StatusConflict, sc.ask(s, enqueueCmd("k", `{"class":"D","queue":"q"}`)).Status)
	require.Equal(t, wire.StatusBad, sc.ask(s, enqueueCmd("l", `{"args":[]}`)).Status)
	sc.rounds(s, 6, nil)
	require.Equal(t, map[string]int{first.JID: 1}, sc.copies())

	// Other leaders know the key, even those that have read only what low water leaves. It is
	// forgotten a day later.
	s.disconnect()
	s = sc.leader("b")
	require.Equal(t, first.JID, sc.ask(s, enqueueCmd("k", `{"class":"C","queue":"q"}`)).JID)
	require.NoError(t, s.core.beginCarry(0))
	sc.rounds(s, 20, nil)
	journal := sc.broker.streams[wire.Journal]
	require.Positive(t, journal.spent)
	journal.records, journal.base = journal.records[journal.spent:], journal.spent
	s.disconnect()
	s = sc.leader("c")
	require.Equal(t, first.JID, sc.ask(s, enqueueCmd("k", `{"class":"C","queue":"q"}`)).JID)
	sc.now = sc.now.Add(day)
	sc.rounds(s, 2, nil)
	other := sc.ask(s, enqueueCmd("k", `{"class":"C","queue":"q"}`))
	require.Equal(t, wire.StatusOK, other.Status)
	require.NotEqual(t, first.JID, other.JID)
}

// Two requests at the same time get one job. A request with another job under the same key is
// refused.
func TestConcurrentEnqueuesWithOneKey(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	var got []wire.Reply
	for _, job := range []string{`{"class":"C"}`, `{"class":"C"}`, `{"class":"D"}`} {
		require.NoError(t, s.core.command(sc.now, enqueueCmd("k", job), func(r wire.Reply) { got = append(got, r) }))
	}
	sc.rounds(s, 10, nil)
	require.Len(t, got, 3)
	require.Equal(t, wire.StatusConflict, got[0].Status)
	require.Equal(t, got[1].JID, got[2].JID)
	require.NotEmpty(t, got[1].JID)
}

// A leader dies after the stream has the job, and before the journal has the key. The next leader
// journals it.
func TestNextLeaderJournalsUnjournaledEnqueue(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	require.NoError(t, s.core.command(sc.now, enqueueCmd("k", `{"class":"C","jid":"mine"}`), func(wire.Reply) { t.Error("it is not known yet") }))
	sc.take(s) // the stream has it, and the leader dies
	s.disconnect()
	s = sc.leader("b")
	require.Equal(t, "mine", sc.ask(s, enqueueCmd("k", `{"class":"C","jid":"mine"}`)).JID)
	require.Equal(t, wire.StatusConflict, sc.ask(s, enqueueCmd("k", `{"class":"D"}`)).Status)
	require.Equal(t, map[string]int{"mine": 1}, sc.copies())
}

// Any client may write to scheduled_jobs, but only Millrace can set the key of an entry there.
func TestForgedKeyIsIgnored(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	a := wire.Announcement{What: wire.OpEnqueued, Key: "k", Sum: "s"}
	body := []byte(`{"jid":"forged","scheduled_at":1,"job":{"class":"C","queue":"q"}}`)
	sc.broker.append(wire.ScheduledJobs, "client", wire.Message{Headers: a.Headers(s.core.ledger.Epoch()), Body: body})
	sc.rounds(s, 6, nil)
	reply := sc.ask(s, enqueueCmd("k", `{"class":"C"}`))
	require.Equal(t, wire.StatusOK, reply.Status)
	require.NotEqual(t, "forged", reply.JID)
}
