package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// runner is a scheduler that does not run: the tests call its parts one by one.
func runner(t *testing.T, v *brokertest.Vhost) (*Scheduler, *broker.Conn) {
	t.Helper()
	cfg := broker.Config{AMQPURL: v.AMQPURL()}
	conn, err := broker.Dial(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	store, err := view.Open(view.Config{Identity: "runner", Cache: 1 << 20})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	entries, err := tracker.NewEntries(store, v.Owner.Name)
	require.NoError(t, err)
	return New(Config{Broker: cfg, Log: slog.New(slog.DiscardHandler)}, &view.View{}, store, entries.Reader, nil, nil), conn
}

// management returns the management API of the broker.
func management(t *testing.T, s *Scheduler, v *brokertest.Vhost) *broker.Management {
	t.Helper()
	mgmt, err := broker.OpenManagement(t.Context(), v.ManagementURL(), v.Name, s.log)
	require.NoError(t, err)
	t.Cleanup(mgmt.Close)
	return mgmt
}

// fold returns what writes the view that the scheduler reads.
func (s *Scheduler) fold() *tracker.Entries {
	entries, err := tracker.NewEntries(s.store, slices.Collect(maps.Keys(s.entries.Trust))...)
	if err != nil {
		panic(err)
	}
	s.entries = entries.Reader
	return entries
}

// Queues that Millrace created are deleted when they were unused for long, and no others.
func TestUnusedQueuesAreDeleted(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	ch := v.Channel(t)
	quorum := amqp.Table{"x-queue-type": "quorum"} // which RabbitMQ does not delete on conditions
	for name, arguments := range map[string]amqp.Table{"idle": nil, "full": nil, "consumed": nil, "theirs": nil, "new": nil, "quorum": quorum} {
		_, err := ch.QueueDeclare(wire.QueuePrefix+name, true, false, false, false, arguments)
		require.NoError(t, err)
		if name != "theirs" {
			s.noteMade(name)
		}
	}
	s.noteMade("gone")
	v.Publish(t, "", wire.QueuePrefix+"full", amqp.Publishing{Body: []byte("x")})
	_, err := ch.Consume(wire.QueuePrefix+"consumed", "", true, false, false, false, nil)
	require.NoError(t, err)
	later := time.Now().Add(unusedFor + time.Minute)
	s.made["new"] = later
	require.NoError(t, s.deleteUnused(t.Context(), conn, later))
	for name, stands := range map[string]bool{"idle": false, "full": true, "consumed": true, "theirs": true, "new": true, "quorum": conn.Features().QuorumQueues} {
		there, err := conn.Queues().Exists(t.Context(), wire.QueuePrefix+name)
		require.NoError(t, err)
		require.Equal(t, stands, there, name)
	}
	require.Len(t, s.made, 3, "a queue that is gone is forgotten")
	require.NoError(t, conn.Err())

	require.NoError(t, conn.Close())
	require.Error(t, s.deleteUnused(t.Context(), conn, later))
}

// A client that takes the lock keeps every sidecar from leading. A command to the lock's holder
// shows that, and the answer names the remedy.
func TestClientHoldsLock(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*testing.T, *amqp.Channel, *broker.Conn){
		"as its exclusive queue": func(t *testing.T, ch *amqp.Channel, _ *broker.Conn) {
			_, err := ch.QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
			require.NoError(t, err)
		},
		"as a queue of its own": func(t *testing.T, ch *amqp.Channel, _ *broker.Conn) {
			_, err := ch.QueueDeclare(wire.LeaderInbox, true, false, false, false, nil)
			require.NoError(t, err)
		},
		"as its consumer": func(t *testing.T, ch *amqp.Channel, conn *broker.Conn) {
			lock, err := conn.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, lock.Inbox.Close())
			_, err = ch.Consume(wire.LeaderInbox, "", false, conn.Features().ExclusiveLock, false, false, nil)
			if conn.Features().ExclusiveLock {
				require.Error(t, err, "it is exclusive")
				t.SkipNow()
			}
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			s, conn := runner(t, v)
			take(t, v.Channel(t), conn)
			claim, refused := conn.Lock(t.Context())
			s.lookForLeader(t.Context(), conn, refused)
			st := s.Status()
			require.True(t, st.Orphaned)
			require.Contains(t, st.OrphanCause, wire.LeaderInbox)
			switch {
			case claim != nil:
				require.Contains(t, st.OrphanCause, "consumes")
				require.Contains(t, st.OrphanCure, "list_consumers")
			case errors.Is(refused, broker.ErrForeignLock):
				require.Contains(t, st.OrphanCause, "declared")
				require.Contains(t, st.OrphanCure, "delete_queue --vhost "+v.Name+" "+wire.LeaderInbox)
			case conn.Features().ExclusiveLock:
				require.Contains(t, st.OrphanCure, "close its connection")
			default:
				require.Contains(t, st.OrphanCause, "exclusive")
				require.Contains(t, st.OrphanCure, "owner_pid")
			}
		})
	}
}

// A sidecar that waits behind a client, which consumes its pings and answers none, reports that
// until the client is gone.
func TestClientConsumesLock(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	if conn.Features().ExclusiveLock {
		t.Skip("this broker's lock is consumed exclusively")
	}
	first, err := conn.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, first.Inbox.Close())
	client := v.Channel(t)
	taken, err := client.Consume(wire.LeaderInbox, "", true, false, false, false, nil)
	require.NoError(t, err)
	claim, err := conn.Lock(t.Context())
	require.NoError(t, err)
	lock := newCandidate(claim, conn.User(), newResponder(s.cfg.Broker, s.log), s.log)
	ctx, cancel := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	parts.Go(func() { lock.run(ctx) })
	s.orphanAfter = time.Second
	waited := make(chan error, 1)
	parts.Go(func() { waited <- s.waitInLine(ctx, conn, lock) })

	brokertest.Eventually(t, func() bool { return s.Status().Orphaned }, "no leader answers pings")
	require.Contains(t, s.Status().OrphanCause, "a client consumes jobs.leader")
	require.NotEmpty(t, <-taken, "the client gets the pings")
	require.Empty(t, waited)
	require.NoError(t, client.Close())
	require.NoError(t, <-waited, "the sidecar is the next in line")
	require.False(t, s.Status().Orphaned)
}

func TestWaitForLockEnds(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	_, err := v.Channel(t).QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.claim(ended, conn)
	require.ErrorIs(t, err, context.Canceled)
	go func() { _ = conn.Close() }()
	_, err = s.claim(t.Context(), conn)
	require.Error(t, err)
}

// A leader waits for its predecessor where the broker cannot say that it has ended, and only there.
func TestLeaderWaitsForPredecessor(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	waits := func(since time.Duration) bool {
		active := time.Now().Add(-since)
		require.NoError(t, s.waitForPredecessor(t.Context(), conn, active))
		return time.Since(active) >= wire.LeaderWait
	}
	require.False(t, waits(0), "no sidecar led before")

	offset := int64(-1)
	journal := func(r wire.JournalRecord) {
		offset++
		m := r.Append(wire.Journal, 0, 0)
		record := wire.Record{Stream: wire.Journal, Offset: offset, UserID: v.Owner.Name, Headers: m.Headers, Body: m.Body}
		require.NoError(t, s.store.Apply(s.fold(), wire.Journal, []wire.Record{record}, func() error { return nil }, func([]string) {}))
	}
	follow := func(probes string) {
		journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format, Identity: "before", Probe: probes})
	}
	follow("jobs.probe.x")
	nodesUnknown := !conn.Features().ExclusiveLock && !conn.Features().DelaysNodeLoss
	require.Equal(t, nodesUnknown, waits(wire.LeaderWait-500*time.Millisecond), "the number of nodes is unknown")

	streamed, err := streams.Open(t.Context(), streams.Config{AMQPURL: v.AMQPURL(), Log: s.log})
	require.NoError(t, err)
	defer streamed.Close()
	s.records = streamed
	require.NoError(t, s.prepare(t.Context(), conn))
	journal(lastWords(time.Now(), &wire.Confirmed{Epoch: offset}, "before"))
	require.Equal(t, nodesUnknown, waits(wire.LeaderWait-500*time.Millisecond), "the stream looks empty")
	for range offset + 1 {
		v.Publish(t, "", wire.Journal, amqp.Publishing{Body: []byte("{}")})
	}
	require.False(t, waits(0), "it says that it has ended")
	v.Publish(t, "", wire.Journal, amqp.Publishing{Body: []byte("{}")})
	require.Equal(t, nodesUnknown, waits(wire.LeaderWait-500*time.Millisecond), "another may have followed, which the view has not read")
	s.records = nil
	follow("jobs.probe.x")
	require.Equal(t, nodesUnknown, waits(wire.LeaderWait-500*time.Millisecond), "the next one has not ended")

	s.cfg.SingleNode = true
	require.False(t, waits(0))
	s.cfg.SingleNode = false
	s.mgmt, err = broker.OpenManagement(t.Context(), v.ManagementURL(), v.Name, s.log)
	require.NoError(t, err)
	defer s.mgmt.Close()
	require.False(t, waits(0), "the broker reports one node")
	s.mgmt = nil
	follow("")
	require.False(t, waits(0), "an older version had the lock exclusively")

	follow("jobs.probe.x")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if nodesUnknown {
		require.ErrorIs(t, s.waitForPredecessor(ended, conn, time.Now()), context.Canceled)
	}
}

func TestFreeLock(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	s.lookForLeader(t.Context(), conn, nil)
	require.False(t, s.Status().Orphaned, "there is no leader, and nothing prevents one")
}

func TestAskerWithoutLeader(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	a := NewAsker(broker.Config{AMQPURL: v.AMQPURL()})
	product, version := a.Broker()
	require.Empty(t, product+version)
	require.Equal(t, wire.StatusUnavailable, a.Ask(t.Context(), wire.Command{Command: wire.CommandPing}).Status)
	require.Error(t, a.Publish(t.Context(), wire.Message{Key: "x"}))

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- a.Run(ctx) }()
	brokertest.Eventually(t, a.Connected, "it reaches the broker")
	product, _ = a.Broker()
	require.NotEmpty(t, product)
	require.Equal(t, "no_leader", a.Ask(t.Context(), wire.Command{Command: wire.CommandPing}).Error)
	require.ErrorIs(t, a.Publish(t.Context(), wire.Message{Key: "nowhere"}), broker.ErrReturned)

	var silent atomic.Bool
	inbox := v.Channel(t) // a leader that answers pings, and sends garbage for everything else
	_, err := inbox.QueueDeclare(wire.LeaderInbox, false, true, false, false, nil)
	require.NoError(t, err)
	commands, err := inbox.Consume(wire.LeaderInbox, "", true, false, false, false, nil)
	require.NoError(t, err)
	go func() {
		for d := range commands {
			if silent.Load() {
				continue
			}
			if cmd, err := wire.ParseCommand(d.Body); err == nil && cmd.Command == wire.CommandPing {
				_ = inbox.Publish("", d.ReplyTo, false, false, amqp.Publishing{CorrelationId: d.CorrelationId, Body: []byte(`{"status":204}`)})
				continue
			}
			_ = inbox.Publish("", d.ReplyTo, false, false, amqp.Publishing{CorrelationId: d.CorrelationId, Body: []byte("garbage")})
			_ = inbox.Publish("", d.ReplyTo, false, false, amqp.Publishing{CorrelationId: "another", Body: []byte(`{"status":204}`)})
		}
	}()
	ask := func() string { return a.Ask(t.Context(), wire.Command{Command: wire.CommandState}).Error }
	brokertest.Eventually(t, func() bool { return ask() == "outcome_unknown" }, "it is waited for an answer")

	silent.Store(true)
	if v.Features(t).ExclusiveLock {
		require.Equal(t, "outcome_unknown", ask(), "there is a queue, so there is a leader")
	} else {
		brokertest.Eventually(t, func() bool { return ask() == "no_leader" }, "no leader answers pings")
		asked := time.Now()
		require.Equal(t, "no_leader", ask())
		require.Less(t, time.Since(asked), time.Second, "it does not wait for long")
	}
	cancel()
	require.NoError(t, <-done)
	require.False(t, a.Connected())
}

// Without a management API nothing is known of queues, and no policy is set.
func TestSchedulerWithoutManagementAPI(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	s.setPolicies(t.Context())
	require.NoError(t, s.prepare(t.Context(), conn))
	require.True(t, s.readProof(t.Context(), true, listQueuesWithin).of("q"), "of one node")
	require.False(t, s.readProof(t.Context(), false, listQueuesWithin).of("q"), "of one that may be a cluster")
	require.True(t, s.carryDue(time.Now()), "of a retention that is not known")
}

// If retention is short, low water moves soon, also when that has just become known.
func TestLingerIsBoundedByRetention(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, _ := runner(t, v)
	now := time.Now()
	require.Equal(t, onDisk, s.linger(now), "nothing is known")
	s.kept = map[string]broker.Retention{wire.ScheduledJobs: {Age: 4 * time.Second}}
	require.True(t, s.carryDue(now))
	require.Less(t, s.linger(now), time.Second)
}

func TestFailingManagementAPI(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, _ := runner(t, v)
	mgmt, err := broker.OpenManagement(t.Context(), v.ManagementURL(), v.Name, s.log)
	require.NoError(t, err)
	s.mgmt = mgmt
	mgmt.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.readQueues(ended)
	require.Nil(t, s.kept)
	_, failing := s.policed(ended)
	require.Len(t, failing, 1)
	require.Equal(t, ManagementAPI, failing[0].Subject)
}

// A management API that does not answer, such as that of a frozen node, delays only a sidecar that
// knows no queues yet.
func TestHangingManagementAPI(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	proxy := brokertest.NewProxy(t, v.ManagementURL())
	mgmt, err := broker.OpenManagement(t.Context(), proxy.URL(), v.Name, s.log)
	require.NoError(t, err)
	defer mgmt.Close()
	s.mgmt = mgmt
	var beside sync.WaitGroup
	s.refreshQueues(t.Context(), &beside)
	require.NotNil(t, s.kept, "nothing was known, so it waited")

	proxy.Freeze(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := time.Now()
	s.refreshQueues(ctx, &beside)
	require.Less(t, time.Since(begun), listQueuesWithin, "it does not wait")
	cancel()
	beside.Wait()
	require.NotNil(t, s.kept, "the known policies stay")

	begun = time.Now()
	require.False(t, s.readProof(t.Context(), true, listQueuesWithin).of("q"), "nothing is proven")
	s.readBindings(t.Context())
	w := &witness{conn: conn, mgmt: mgmt, log: s.log}
	found, err := w.check(t.Context(), "rabbit@elsewhere=1234")
	require.NoError(t, err)
	require.Equal(t, undecided, found, "it may answer again")
	require.Less(t, time.Since(begun), maxStuck, "a takeover does not wait longer")

	healed := make(chan struct{})
	time.AfterFunc(time.Second, func() {
		defer close(healed)
		proxy.Heal(t)
	})
	found, err = w.wait(t.Context(), "rabbit@elsewhere=1234")
	require.NoError(t, err)
	require.Equal(t, gone, found)
	<-healed
}

// The broker says who acted. The sidecar's own account may act on behalf of another user.
func TestActorOfCommand(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	_, conn := runner(t, v)
	l := &leadership{conn: conn}
	for _, c := range []struct{ user, says, want string }{
		{"", "anna", "unverified"},
		{"client", "anna", "client"},
		{conn.User(), "anna", "anna"},
		{conn.User(), "", conn.User()},
	} {
		require.Equal(t, c.want, l.actor(wire.Delivery{UserID: c.user}, wire.Command{Actor: c.says}))
	}
}

func TestReasonsOfDeadLetters(t *testing.T) {
	for reason, says := range map[string]string{
		"rejected": "a worker rejected", "expired": "expired in queue", "maxlen": "was full", "delivery_limit": "too often", "other": "(other)",
	} {
		d := wire.Delivery{Body: []byte(`{"class":"C","jid":"j"}`), Headers: map[string]any{
			"x-death": []any{map[string]any{"reason": reason, "queue": "queue.mail", "time": time.Unix(1_700_000_000, 0)}}}}
		record, jid, err := deadRecord(d, time.Now())
		require.NoError(t, err)
		require.Equal(t, "j", jid)
		require.Contains(t, string(record), says)
		require.Contains(t, string(record), "1700000000")
	}
	record, jid, err := deadRecord(wire.Delivery{Body: []byte(`{"class":"C"}`), Redelivered: true}, time.Unix(1_600_000_000, 0))
	require.NoError(t, err)
	require.NotEmpty(t, jid)
	require.Contains(t, string(record), "1600000000", "its time of death is unknown")
	envelope := []byte(`{"jid":"theirs","died_at":5,"job":{"class":"C"}}`)
	record, jid, err = deadRecord(wire.Delivery{Body: envelope}, time.Now())
	require.NoError(t, err)
	require.Equal(t, "theirs", jid)
	require.Equal(t, envelope, record, "a client's own envelope is kept unchanged")
	long := fmt.Sprintf(`{"class":"C","jid":%q}`, strings.Repeat("j", maxDeadJID+1))
	_, jid, err = deadRecord(wire.Delivery{Body: []byte(long)}, time.Now())
	require.NoError(t, err)
	require.Less(t, len(jid), 100)
}

// A dead letter that comes again after its leader died is recognized by its bytes.
func TestRepeatedDeadLetterIsRecognized(t *testing.T) {
	sc := newScene(t)
	sidecar := sc.sidecar("a")
	s := &Scheduler{services: &services{entries: sidecar.entries.Reader}}
	d := wire.Delivery{Body: []byte(`{"class":"C","jid":"j"}`), Redelivered: true, Timestamp: time.Unix(1_700_000_000, 0)}
	record, _, err := deadRecord(d, time.Now())
	require.NoError(t, err)
	known, err := s.isBuried(d)
	require.NoError(t, err)
	require.False(t, known)
	sc.broker.append(wire.DeadJobs, millrace, wire.Message{Body: record})
	require.NoError(t, sidecar.readAll())
	known, err = s.isBuried(d)
	require.NoError(t, err)
	require.True(t, known)
}

// pieces are metrics to roll up that are never read back.
type pieces struct {
	asked atomic.Int32
	fails atomic.Bool
}

func (p *pieces) Segments(int) ([]wire.Rollup, error) {
	p.asked.Add(1)
	if p.fails.Load() {
		return nil, errors.New("the view is damaged")
	}
	return []wire.Rollup{{Type: "rollup", To: 5}}, nil
}

// A roll-up is published once, while it may still be read back.
func TestRollUpsArePublishedOnce(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	require.NoError(t, s.rollUp(t.Context(), conn), "without metrics there is nothing to do")
	s.assertWanted(t.Context())
	metrics := &pieces{}
	s.cfg.Rollups = metrics
	done := make(chan error)
	go func() { done <- s.rollUp(t.Context(), conn) }()
	brokertest.Eventually(t, func() bool { return metrics.asked.Load() >= 3 }, "it looks again and again")
	require.Len(t, v.ReadStream(t, wire.Rollups), 1)
	metrics.fails.Store(true)
	require.ErrorContains(t, <-done, "the view is damaged")

	require.NoError(t, conn.Close())
	require.NoError(t, s.rollUp(t.Context(), conn), "the leader of this connection ends")
}
