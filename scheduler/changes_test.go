package scheduler_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func (s *sidecar) reads(t *testing.T, stream, jid string) {
	t.Helper()
	brokertest.Eventually(t, func() bool {
		found, err := s.entries.Find(stream, jid)
		require.NoError(t, err)
		return len(found) == 1
	}, "%s reads %s", stream, jid)
}

func (s *sidecar) does(t *testing.T, status int, command, stream, jid, changes string) wire.Reply {
	t.Helper()
	reply := s.ask(t, wire.Command{ID: command + jid, Command: command, Stream: stream, JID: jid, Changes: json.RawMessage(changes)})
	require.Equal(t, status, reply.Status, "%s %s: %+v", command, jid, reply)
	return reply
}

// A changed job fires with its new content, at its new time. A deleted or killed job comes back
// when that is undone.
func TestChangeAndUndo(t *testing.T) {
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	other := work(t, v, "other", nil)
	s := start(t, v, options{identity: "a"}).leads(t)
	soon, late := time.Now().Add(4*time.Second), time.Now().Add(time.Hour)
	schedule(t, v, soon, "q", "put off", "sentinel")
	schedule(t, v, late, "q", "now", "deleted", "killed", "kept dead")
	for _, jid := range []string{"put off", "sentinel", "now", "deleted", "killed", "kept dead"} {
		s.reads(t, wire.ScheduledJobs, jid)
	}
	reply := s.does(t, 200, wire.CommandChange, wire.ScheduledJobs, "put off", `{"at":`+string(mustJSON(t, wire.Seconds(late)))+`}`)
	changed, err := s.entries.Get(wire.ScheduledJobs, *reply.Entry)
	require.NoError(t, err)
	require.Equal(t, []any{late.UnixMicro(), *reply.Entry}, []any{changed.At.UnixMicro(), changed.First})

	s.does(t, 200, wire.CommandChange, wire.ScheduledJobs, "now", `{"at":1,"queue":"other"}`)
	other.gets(t, "now")
	s.does(t, 409, wire.CommandUndo, wire.ScheduledJobs, "now", "")

	s.does(t, 204, wire.CommandDelete, wire.ScheduledJobs, "deleted", "")
	s.does(t, 200, wire.CommandUndo, wire.ScheduledJobs, "deleted", "")
	s.reads(t, wire.ScheduledJobs, "deleted")
	for _, jid := range []string{"killed", "kept dead"} {
		s.does(t, 204, wire.CommandKill, wire.ScheduledJobs, jid, "")
		s.reads(t, wire.DeadJobs, jid)
	}
	s.does(t, 200, wire.CommandUndo, wire.ScheduledJobs, "killed", "")
	s.reads(t, wire.ScheduledJobs, "killed")
	brokertest.Eventually(t, func() bool { return s.entries.Total(wire.DeadJobs) == 1 }, "the dead job goes")
	s.does(t, 404, wire.CommandUndo, wire.ScheduledJobs, "sentinel", "")
	s.does(t, 400, wire.CommandChange, wire.ScheduledJobs, "sentinel", `{"at":"soon"}`)

	w.gets(t, "sentinel")
	require.Zero(t, w.times("put off"), "it was postponed")
	s.does(t, 200, wire.CommandUndo, wire.ScheduledJobs, "put off", "") // it is past due by now
	w.gets(t, "put off")
	found := journal(t, v)
	require.Equal(t, []int{2, 3, 1, 2}, []int{found[wire.TypeChanged], found[wire.TypeUndone], found[wire.TypeDeleted], found[wire.TypeKilled]})
}

func mustJSON(t *testing.T, value any) []byte {
	t.Helper()
	body, err := json.Marshal(value)
	require.NoError(t, err)
	return body
}
