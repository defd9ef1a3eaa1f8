package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// shorten does to a stream what a power failure does: the newest records are gone, and those before
// are unchanged.
func shorten(t *testing.T, v *brokertest.Vhost, stream string, n int) {
	t.Helper()
	kept := v.ReadStream(t, stream)
	kept = kept[:len(kept)-n]
	_, err := v.Channel(t).QueueDelete(stream, false, false, false)
	require.NoError(t, err)
	v.DeclareStream(t, stream)
	for _, d := range kept {
		headers := amqp.Table{}
		for name, value := range d.Headers {
			if name != "x-stream-offset" {
				headers[name] = value
			}
		}
		v.Publish(t, "", stream, amqp.Publishing{Headers: headers, UserId: d.UserId, Type: d.Type, MessageId: d.MessageId, Body: d.Body})
	}
}

func schedule(t *testing.T, v *brokertest.Vhost, in time.Duration, jids ...string) {
	t.Helper()
	for _, jid := range jids {
		body := fmt.Appendf(nil, `{"jid":%q,"scheduled_at":%f,"job":{"class":"C","queue":"low"}}`, jid, wire.Seconds(time.Now().Add(in)))
		v.Publish(t, "", wire.ScheduledJobs, amqp.Publishing{Body: body})
	}
}

// sinceFired returns how many records the journal has from the first fire on. The number depends on
// how fast the broker confirms.
func sinceFired(t *testing.T, v *brokertest.Vhost) int {
	t.Helper()
	records := v.ReadStream(t, wire.Journal)
	first := slices.IndexFunc(records, func(d amqp.Delivery) bool {
		_, fired := wire.DispatchOf(d.Headers)
		return fired
	})
	require.NotEqual(t, -1, first, "something was fired")
	return len(records) - first
}

// came takes all messages of the queue.
func came(t *testing.T, v *brokertest.Vhost) (jids []string) {
	t.Helper()
	for {
		d, ok := v.Get(t, "queue.low")
		if !ok {
			return jids
		}
		jids = append(jids, gjson.GetBytes(d.Body, "jid").String())
	}
}

func (r *running) overview(t *testing.T, member string) string {
	t.Helper()
	body, err := r.api.Do(t.Context(), apiclient.Request{Path: "/api/overview"})
	if err != nil {
		return ""
	}
	return gjson.GetBytes(body, member).String()
}

func (r *running) untilScheduled(t *testing.T, n int) {
	t.Helper()
	brokertest.Eventually(t, func() bool { return r.overview(t, "sets.scheduled-jobs.total") == fmt.Sprint(n) }, "%d are scheduled", n)
}

// A power failure took the newest records of a stream. The rest is unchanged: nothing of it happens
// again, and new jobs are done. If the journal lost records too, it is unknown what was done:
// everything is held.
func TestStreamsThatLostTheirEnds(t *testing.T) {
	for name, c := range map[string]struct {
		journal bool
		native  bool
	}{"entries, native": {false, true}, "entries, amqp": {false, false}, "the journal too": {true, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			settings := beside(v)
			settings.StateDir = t.TempDir()
			if !c.native {
				settings.StreamURL = ""
			}
			_, err := v.Channel(t).QueueDeclare("queue.low", true, false, false, false, amqp.Table{"x-max-priority": int32(10)})
			require.NoError(t, err)
			first := start(t, settings)
			first.leads(t)
			schedule(t, v, 0, "done-0", "done-1")
			brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.low") == 2 }, "they come")
			require.ElementsMatch(t, []string{"done-0", "done-1"}, came(t, v))
			schedule(t, v, time.Hour, "kept", "lost")
			first.untilScheduled(t, 2)
			require.NoError(t, first.end())

			shorten(t, v, wire.ScheduledJobs, 1)
			lost := 0
			if c.journal {
				lost = sinceFired(t, v)
			}
			shorten(t, v, wire.Journal, lost)
			second := start(t, settings)
			brokertest.Eventually(t, func() bool { return strings.Contains(second.log.String(), "the view is rebuilt") }, "it finds out")
			second.leads(t)
			schedule(t, v, 0, "new")
			brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.low") > 0 }, "what comes now is fired")
			if c.journal {
				require.Contains(t, second.overview(t, "scheduler.gap"), "lost its newest records")
				second.untilScheduled(t, 1+2)
			} else {
				require.Empty(t, second.overview(t, "scheduler.gap"))
				second.untilScheduled(t, 1)
			}
			require.Equal(t, []string{"new"}, came(t, v))
			for _, d := range v.ReadStream(t, wire.Journal) {
				r, err := wire.ParseJournal(d.Body)
				require.True(t, err != nil || r.Type != wire.TypeRecreated, "no stream was created again")
			}
		})
	}
}
