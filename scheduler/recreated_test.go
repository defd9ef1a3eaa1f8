package scheduler_test

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// remake deletes a stream and creates it again, as an operator empties one: no broker can purge a
// stream.
func remake(t *testing.T, v *brokertest.Vhost, stream string) {
	t.Helper()
	_, err := v.Channel(t).QueueDelete(stream, false, false, false)
	require.NoError(t, err)
	v.DeclareStream(t, stream)
}

// fill puts a client's record where the first leader's barrier was, so that later records get the
// offsets of old entries.
func fill(t *testing.T, v *brokertest.Vhost, stream string) {
	t.Helper()
	v.Publish(t, "", stream, amqp.Publishing{Body: []byte(`{"no":"entry"}`)})
}

// history has a sidecar fire some entries, and leaves some pending. Later entries share only the
// jid with them. What is pending is gone with its stream.
func history(t *testing.T, v *brokertest.Vhost, s *sidecar, w *worker) {
	t.Helper()
	ensure(t, v, "q") // a job that passes through jobs.unrouted may come twice when the leader stops
	schedule(t, v, time.Now(), "q", names("nightly", 3)...)
	schedule(t, v, time.Now().Add(time.Hour), "q", names("old", 3)...)
	w.gets(t, names("nightly", 3)...)
	brokertest.Eventually(t, func() bool {
		doubts, err := s.entries.Doubts()
		require.NoError(t, err)
		return len(doubts) == 0 && s.entries.Total(wire.ScheduledJobs) == 3
	}, "they are settled")
}

// rises requires that the entries of the new stream come, once, and that no old entry does.
func rises(t *testing.T, v *brokertest.Vhost, w *worker, newest string, views ...*sidecar) {
	t.Helper()
	for _, jid := range names("nightly", 3) {
		brokertest.Eventually(t, func() bool { return w.times(jid) == 2 }, "%s comes once more", jid)
	}
	schedule(t, v, time.Now(), "q", newest)
	w.gets(t, newest, "new-0", "new-1")
	for _, s := range views {
		brokertest.Eventually(t, func() bool { return s.entries.Total(wire.ScheduledJobs) == 1 && pending(t, s, "kept") }, "all but one is settled")
		require.False(t, pending(t, s, "old-0"), "it was deleted with its stream")
	}
	require.Equal(t, 1, journal(t, v)[wire.TypeRecreated])
}

func pending(t *testing.T, s *sidecar, jid string) bool {
	t.Helper()
	found, err := s.entries.Find(wire.ScheduledJobs, jid)
	require.NoError(t, err)
	return len(found) > 0
}

// refill is what clients publish to the new stream.
func refill(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	remake(t, v, wire.ScheduledJobs)
	fill(t, v, wire.ScheduledJobs)
	schedule(t, v, time.Now(), "q", append(names("nightly", 3), names("new", 2)...)...)
	schedule(t, v, time.Now().Add(time.Hour), "q", "kept")
}

func TestStreamRecreatedUnderSidecar(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	leader := start(t, v, options{identity: "leader", native: true}).leads(t)
	standby := start(t, v, options{identity: "standby"})
	history(t, v, leader, w)
	brokertest.Eventually(t, func() bool { return standby.entries.Total(wire.ScheduledJobs) == 3 }, "the standby follows")

	refill(t, v)
	rises(t, v, w, "late", leader, standby)
	for _, s := range []*sidecar{leader, standby} {
		if s.Status().Leader {
			s.stop()
		}
	}
	rises(t, v, w, "last")
}

func TestStreamRecreatedWhileStopped(t *testing.T) {
	t.Parallel()
	for name, dir := range map[string]func(*testing.T) string{
		"state dir":    (*testing.T).TempDir,
		"no state dir": func(*testing.T) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			w := work(t, v, "q", nil)
			o := options{identity: "first", dir: dir(t)}
			first := start(t, v, o).leads(t)
			history(t, v, first, w)
			first.stop()

			refill(t, v)
			o.identity = "second"
			second := start(t, v, o).leads(t)
			rises(t, v, w, "late", second)
			require.Empty(t, second.Status().Gap)
			second.stop()

			third := start(t, v, options{identity: "third"}).leads(t) // reads all of it again
			rises(t, v, w, "last", third)
		})
	}
}

// A stream that comes back empty, or shorter, delivers nothing to a consumer that asks for later
// offsets, and no error.
func TestStreamRecreatedShorter(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	w := work(t, v, "q", nil)
	dir := t.TempDir()
	first := start(t, v, options{identity: "first", dir: dir}).leads(t)
	history(t, v, first, w)
	body := []byte(`{"jid":"dead","died_at":1,"job":{"class":"C"}}`)
	v.Publish(t, "", wire.DeadJobs, amqp.Publishing{Body: body}, amqp.Publishing{Body: body}, amqp.Publishing{Body: body})
	brokertest.Eventually(t, func() bool { return first.entries.Total(wire.DeadJobs) == 3 }, "the dead jobs are listed")
	first.stop()
	remake(t, v, wire.ScheduledJobs)
	remake(t, v, wire.DeadJobs)
	schedule(t, v, time.Now(), "q", "new-0")

	second := start(t, v, options{identity: "second", dir: dir}).leads(t)
	w.gets(t, "new-0", "nightly-0", "nightly-1", "nightly-2")
	require.Zero(t, second.entries.Total(wire.DeadJobs))
	v.Publish(t, "", wire.DeadJobs, amqp.Publishing{Body: body})
	brokertest.Eventually(t, func() bool { return second.entries.Total(wire.DeadJobs) == 1 }, "the new stream is followed")
	require.Equal(t, 2, journal(t, v)[wire.TypeRecreated])
}
