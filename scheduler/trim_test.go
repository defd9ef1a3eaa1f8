package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func deadJobs(n int, since time.Time) (all []amqp.Publishing) {
	for i := range n {
		all = append(all, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Appendf(nil,
			`{"jid":"dead-%d","died_at":%d,"error_class":"E","job":{"class":"C","queue":"q"}}`, i, since.Unix()+int64(i))})
	}
	return all
}

// The newest dead jobs are kept, regardless of how many jobs a full queue drops beside them, and
// how old others are.
func TestDeadJobsAreTrimmed(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, v, options{identity: "a", deadMax: 10}).leads(t)
	v.Publish(t, "", wire.DeadJobs, deadJobs(25, time.Now().Add(-200*24*time.Hour))...)
	v.Publish(t, "", wire.DeadJobs, deadJobs(15, time.Now().Add(-time.Hour))...)
	brokertest.Eventually(t, func() bool { return s.entries.Dead(false) == 10 }, "the newest 10 are kept")
	ensure(t, v, "short")
	policy(t, v, "short", `^queue\.short$`, "queues", map[string]any{"max-length": 1, "dead-letter-exchange": wire.ExchangeDead})
	for i := range 8 {
		v.Publish(t, wire.ExchangeDirect, "short", amqp.Publishing{Body: fmt.Appendf(nil, `{"jid":"dropped-%d","class":"C","queue":"short"}`, i)})
	}
	brokertest.Eventually(t, func() bool { return s.Status().Counters.DeadLettered >= 5 && s.entries.Dead(true) == 1 }, "of what the queue dropped, one is kept")
	require.EqualValues(t, 10, s.entries.Dead(false))
	for i := 5; i < 15; i++ {
		found, err := s.entries.Find(wire.DeadJobs, fmt.Sprint("dead-", i))
		require.NoError(t, err)
		require.Len(t, found, 1)
	}
	require.Positive(t, journal(t, v)[wire.TypeTrimmed])
}
