package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// A standby leads soon after the leader ends, both after a stop and after a lost connection.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	proxy := brokertest.NewProxy(t, v.AMQPURL())
	first := start(t, v, options{identity: "first", amqpURL: proxy.URL()}).leads(t)
	second := start(t, v, options{identity: "second"})
	brokertest.Eventually(t, func() bool { return second.Status().Phase == "waiting" }, "the second stands by")

	proxy.Cut(t)
	cut := time.Now()
	second.leads(t)
	t.Logf("took over %s after the leader lost its connection", time.Since(cut).Round(time.Millisecond))

	proxy.Heal(t)
	brokertest.Eventually(t, func() bool { return first.Status().Phase == "waiting" }, "the first stands by")
	stopped := time.Now()
	second.stop()
	first.leads(t)
	t.Logf("took over %s after the leader was stopped", time.Since(stopped).Round(time.Millisecond))
}

// The leader of a journal that has lost records leads on, in another epoch. Nothing is repeated.
func TestLeaderLeadsOnAfterLostRecord(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	first := start(t, v, options{identity: "first"}).leads(t)
	second := start(t, v, options{identity: "second"})
	brokertest.Eventually(t, func() bool { return second.Status().Phase == "waiting" }, "the second stands by")
	w := work(t, v, "q", nil)
	schedule(t, v, time.Now(), "q", "before")
	w.gets(t, "before")

	epoch := first.Status().Epoch
	far := wire.JournalRecord{Type: wire.TypeConfirmed, Epoch: epoch}.Append(wire.Journal, 1000, 0) // numbers before it seem to be lost
	conn, err := broker.Dial(t.Context(), broker.Config{AMQPURL: v.AMQPURL()})
	require.NoError(t, err)
	defer conn.Close()
	pub, err := conn.Publisher(t.Context())
	require.NoError(t, err)
	require.NoError(t, pub.Send(t.Context(), far))
	brokertest.Eventually(t, func() bool { return first.entries.State().FoldedSeq == 1000 }, "it reads that")
	schedule(t, v, time.Now(), "q", "between")
	brokertest.Eventually(t, func() bool { return first.Status().Epoch > epoch && first.Status().Leader }, "the first leads again")
	require.Equal(t, "waiting", second.Status().Phase)
	w.gets(t, "between")
	require.Equal(t, wire.StatusOK, first.ask(t, wire.Command{Command: wire.CommandState}).Status)
	jids := names("after", 50)
	schedule(t, v, time.Now(), "q", jids...)
	w.gets(t, jids...)
	require.EqualValues(t, 2, first.Status().Counters.Epochs)
}

// A sidecar waits for a leader of an older version. The old leader does not get the lock back.
func TestUpgradeWaitsForOldLeader(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	old := v.Dial(t)
	ch, err := old.Channel()
	require.NoError(t, err)
	_, err = ch.QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
	require.NoError(t, err)
	s := start(t, v, options{identity: "new"})
	brokertest.Eventually(t, func() bool { return s.Status().Phase == "waiting" }, "it stands by")
	require.Never(t, func() bool { return s.Status().Leader }, 3*time.Second, 50*time.Millisecond)
	require.NoError(t, old.Close())
	s.leads(t)
	_, err = v.Channel(t).QueueDeclare(wire.LeaderInbox, false, false, true, false, nil)
	var refused *amqp.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, amqp.ResourceLocked, refused.Code)
}

// A leader stops firing when its pings do not come back, and fires again when one does.
func TestLeaderStopsFiringWithoutPings(t *testing.T) {
	t.Parallel()
	const silence = 6 * time.Second
	v := brokertest.Erlang(t)
	w := work(t, v, "q", nil)
	s := start(t, v, options{identity: "a"}).leads(t)
	epoch := s.Status().Epoch
	schedule(t, v, time.Now(), "q", "before")
	w.gets(t, "before")
	for n := 0; ; n++ {
		began := v.SuspendQueue(t, wire.LeaderInbox, silence)
		due, jid := began.Add(3*time.Second), fmt.Sprintf("meanwhile-%d", n)
		late := time.Now().After(due)
		schedule(t, v, due, "q", jid)
		w.gets(t, jid)
		if late { // the shell took too long to start: the job may have come after the silence
			continue
		}
		require.Greater(t, time.Since(began), silence-pingEvery, "it was fired while no ping came back")
		break
	}
	require.Equal(t, epoch, s.Status().Epoch, "it is still the same leader")
}

// pingEvery is how often pings are sent.
const pingEvery = 500 * time.Millisecond

func TestLeaderResignsWithoutPings(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	s := start(t, v, options{identity: "a"}).leads(t)
	epoch := s.Status().Epoch
	v.SuspendQueue(t, wire.LeaderInbox, 20*time.Second)
	brokertest.Eventually(t, func() bool { return strings.Contains(s.Status().LastError, "no ping came back") }, "it resigns")
	brokertest.Eventually(t, func() bool { return s.Status().Leader && s.Status().Epoch > epoch }, "it leads again")
}

// A client that deletes the lock queue ends the epoch, and nothing more. A sidecar declares the
// queue again.
func TestDeletedLockIsDeclaredAgain(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	w := work(t, v, "q", nil)
	first, second := start(t, v, options{identity: "first"}).leads(t), start(t, v, options{identity: "second"})
	epoch := first.Status().Epoch
	_, err := v.Channel(t).QueueDelete(wire.LeaderInbox, false, false, false)
	require.NoError(t, err)
	leading := func() int64 {
		for _, s := range []*sidecar{first, second} {
			if st := s.Status(); st.Leader {
				return st.Epoch
			}
		}
		return -1
	}
	brokertest.Eventually(t, func() bool { return leading() > epoch }, "one of them leads")
	schedule(t, v, time.Now(), "q", "after")
	w.gets(t, "after")
}
