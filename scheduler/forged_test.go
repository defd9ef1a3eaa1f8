package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// forger is a client with a user of its own. It may write to every queue through the default
// exchange: no permission narrows that.
type forger struct {
	t    *testing.T
	ch   *amqp.Channel
	user string
	n    map[string]int // forged records by stream
}

func newForger(t *testing.T, v *brokertest.Vhost) *forger {
	t.Helper()
	u := v.AddUser(t, "forger", brokertest.Permissions{Configure: "^amq\\.gen.*"})
	ch, err := u.Dial(t).Channel()
	require.NoError(t, err)
	require.NoError(t, ch.Confirm(false))
	return &forger{t: t, ch: ch, user: u.Name, n: map[string]int{}}
}

func (f *forger) publish(key string, p amqp.Publishing) {
	f.t.Helper()
	c, err := f.ch.PublishWithDeferredConfirmWithContext(f.t.Context(), "", key, true, false, p)
	require.NoError(f.t, err)
	ok, err := c.WaitContext(f.t.Context())
	require.NoError(f.t, err)
	require.True(f.t, ok)
}

// forge writes what only Millrace may write, once with the forger's name, which the broker checks,
// and once without a name.
func (f *forger) forge(stream string, m wire.Message) {
	f.t.Helper()
	for _, user := range []string{f.user, ""} {
		f.publish(stream, amqp.Publishing{Headers: amqp.Table(m.Headers), Body: m.Body, UserId: user, DeliveryMode: amqp.Persistent})
		f.n[stream]++
	}
}

func TestForgedRecordsAreIgnored(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	first := start(t, v, options{identity: "first"}).leads(t)
	due := time.Now().Add(4 * time.Second)
	schedule(t, v, due, "q", names("j", 4)...)
	brokertest.Eventually(t, func() bool { return first.entries.Total(wire.ScheduledJobs) == 4 }, "they are pending")
	epoch, _ := first.entries.Progress()
	at := func(i int) int64 { return offsetOf(t, v, wire.ScheduledJobs, fmt.Sprint("j-", i)) }

	f := newForger(t, v)
	journal := func(r wire.JournalRecord) { f.forge(wire.Journal, r.Append(wire.Journal, 1, 1<<40)) }
	journal(wire.JournalRecord{Type: wire.TypeLowWater, Epoch: epoch, LowWater: map[string]int64{wire.ScheduledJobs: 1 << 62}})
	journal(wire.JournalRecord{Type: wire.TypeDeleted, Epoch: epoch, Stream: wire.ScheduledJobs, Offset: at(0), JID: "j-0"})
	journal(wire.JournalRecord{Type: wire.TypeOpened, Identity: "forger", Format: wire.Format, Held: map[string]int64{wire.ScheduledJobs: 1 << 62}})
	journal(wire.JournalRecord{Type: wire.TypeOpened, Identity: "forger", Format: wire.Format + 1})
	journal(wire.JournalRecord{Type: wire.TypeRecreated, Epoch: epoch, Stream: wire.ScheduledJobs})
	headers := wire.Dispatch{Op: wire.OpFired, Stream: wire.ScheduledJobs, Offset: at(1), JIDTag: "j-1", Epoch: epoch, Seq: 1, Confirmed: 1 << 40}
	f.forge(wire.Journal, wire.Fire(&wire.Job{JID: "j-1", Queue: "q"}, headers, []byte(`{"class":"C"}`), time.Now()))
	for _, stream := range wire.EntryStreams {
		f.forge(stream, wire.JournalRecord{Type: wire.TypeBarrier, Epoch: 1 << 40}.Append(stream, 0, 0))
	}
	f.forge(wire.ScheduledJobs, wire.Message{
		Headers: map[string]any{wire.HeaderReplaces: at(2), wire.HeaderFirst: at(2), wire.HeaderEpoch: epoch},
		Body:    fmt.Appendf(nil, `{"jid":"j-2","scheduled_at":%d,"job":{"class":"Forged","queue":"q"}}`, 1<<32),
	})

	second := start(t, v, options{identity: "second"})
	for _, s := range []*sidecar{first, second} {
		for stream, n := range f.n {
			var got []tracker.Reject
			brokertest.Eventually(t, func() bool {
				got = nil
				require.NoError(t, s.entries.Rejects(stream, func(r tracker.Reject) bool { got = append(got, r); return true }))
				return len(got) == n
			}, "all that was forged in %s is listed", stream)
			for _, r := range got {
				require.NotEmpty(t, r.Reason)
			}
			require.EqualValues(t, n, s.entries.State().Rejected[stream])
		}
		require.Empty(t, s.entries.State().LowWater)
		require.Empty(t, s.entries.State().Held)
	}
	w.gets(t, names("j", 4)...)
	require.False(t, time.Now().Before(due))
	require.Equal(t, int64(1), first.Status().Counters.Epochs)
	first.stop()
	second.leads(t)
	schedule(t, v, time.Now(), "q", "last")
	w.gets(t, append(names("j", 4), "last")...)
}

// The broker rejects a publish in another user's name. The trust in Millrace's own records depends
// on that.
func TestBrokerRejectsForgedUserID(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	start(t, v, options{identity: "a"}).leads(t)
	f := newForger(t, v)
	r := wire.JournalRecord{Type: wire.TypeLowWater, LowWater: map[string]int64{wire.ScheduledJobs: 1 << 62}}
	m := r.Append(wire.Journal, 1, 1)
	closed := f.ch.NotifyClose(make(chan *amqp.Error, 1))
	require.NoError(t, f.ch.PublishWithContext(t.Context(), "", wire.Journal, false, false,
		amqp.Publishing{Headers: amqp.Table(m.Headers), Body: m.Body, UserId: v.Owner.Name}))
	require.ErrorContains(t, <-closed, "user_id")
}

// The leader answers commands in its own name, which the journal trusts. So a reply must never be
// routed to the journal.
func TestRepliesOnlyGoToAnswerQueues(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	f := newForger(t, v)
	for _, target := range []string{wire.Journal, wire.ScheduledJobs, "queue.q", wire.LeaderInbox} {
		f.publish(wire.LeaderInbox, amqp.Publishing{ReplyTo: target, CorrelationId: `{"type":"released"}`,
			Headers: amqp.Table{wire.HeaderOp: wire.OpFired}, Body: []byte(`{"command":"no such"}`)})
	}
	reply := s.ask(t, wire.Command{Command: wire.CommandDelete, Stream: wire.ScheduledJobs, JID: "none"})
	require.Equal(t, wire.StatusNotFound, reply.Status, "commands are answered in turn: the others were before")
	for _, target := range []string{wire.Journal, wire.ScheduledJobs} {
		for _, d := range v.ReadStream(t, target) {
			if _, probe := wire.ProbeOf(d.Headers); probe && d.UserId == v.Owner.Name {
				continue
			}
			r, err := wire.ParseJournal(d.Body)
			require.NoError(t, err)
			require.Contains(t, []string{wire.TypeOpened, wire.TypeWitness, wire.TypeConfirmed, wire.TypeBarrier}, r.Type)
		}
	}
}

// Only a sidecar may have the journal record actions that bypass the leader. Any other user could
// record actions that never happened.
func TestOnlySidecarsMayJournalNotes(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	f := newForger(t, v)
	f.publish(wire.LeaderInbox, amqp.Publishing{Body: []byte(`{"command":"note","noted":{"op":"purged","queue":"q"},"actor":"ann"}`)})
	reply := s.ask(t, wire.Command{ID: "n", Command: wire.CommandNote, Noted: &wire.Noted{Op: wire.NotedStopped, Identity: "*"}, Actor: "bob", Reason: "deploy"})
	require.Equal(t, wire.StatusDone, reply.Status)
	var noted []wire.JournalRecord
	for _, d := range v.ReadStream(t, wire.Journal) {
		if r, err := wire.ParseJournal(d.Body); err == nil && r.Type == wire.TypeNoted {
			noted = append(noted, r)
		}
	}
	require.Len(t, noted, 1)
	require.Equal(t, []string{"stopped", "*", "bob", "deploy", "n"}, []string{noted[0].Noted.Op, noted[0].Noted.Identity, noted[0].Actor, noted[0].Reason, noted[0].Command})
	brokertest.Eventually(t, func() bool {
		return s.ask(t, wire.Command{ID: "n", Command: wire.CommandNote, Noted: noted[0].Noted}).Repeated
	}, "what has been noted is not noted again")
}
