package main

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestQueuesOfARealBroker(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]func(*brokertest.Vhost) sidecarSettings{
		"with the management API": beside,
		"without": func(v *brokertest.Vhost) sidecarSettings {
			s := beside(v)
			s.ManagementURL = "http://127.0.0.1:1"
			s.Auth = "none"
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			s := start(t, settings(v))
			s.leads(t)
			says := func(args ...string) string {
				r := millrace(t, append(append([]string{"queues"}, args...), s.flags...)...)
				return r.out + r.err
			}
			require.Equal(t, "default: it is there\n", says("make", "default"))
			v.Publish(t, wire.ExchangeDirect, "default", amqp.Publishing{Body: []byte(`{"class":"C","jid":"a"}`)}, amqp.Publishing{Body: []byte(`{"class":"C","jid":"b"}`)})
			brokertest.Eventually(t, func() bool { return strings.Contains(says(), "no_consumers  2 ") }, "two jobs wait")
			require.Contains(t, says("show", "default"), `"ready": 2`)
			require.Contains(t, says("peek", "default", "--count", "1"), `"body": "{\"class\":\"C\",\"jid\":\"a\"}"`)
			require.Equal(t, "default: paused\n", says("pause", "default", "--reason", "a look"))
			brokertest.Eventually(t, func() bool { return strings.Contains(says("show", "default"), `"reason": "a look"`) }, "it is paused")
			require.Contains(t, says("--state", "paused"), "default")
			require.Contains(t, says("pause", "nowhere"), `there is no queue "nowhere"`)
			require.Equal(t, "default: goes on\n", says("resume", "default"))
			brokertest.Eventually(t, func() bool { return !strings.Contains(says("show", "default"), `"paused"`) }, "it goes on")
			require.Contains(t, says("move", "default", "other"), `there is no queue "other"`)
			require.Equal(t, "other: it is there\n", says("make", "other"))
			require.Equal(t, "default: 2 jobs moved to other\n", says("move", "default", "other", "--reason", "too slow"))
			require.Contains(t, says("peek", "other", "--count", "1"), `"body": "{\"class\":\"C\",\"jid\":\"a\",\"queue\":\"other\"}"`)
			require.Equal(t, "other: 2 jobs moved to default\n", says("move", "other", "default"))
			require.Equal(t, "default: purged\n", says("purge", "default"))
			brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") == 0 }, "it is empty")
			require.Equal(t, "default: deleted\n", says("delete", "default"))
			require.Contains(t, says("purge", "default"), `there is no queue "default"`)
			require.Contains(t, says("delete", "default"), `there is no queue "default"`)

			// Each stands in the journal; what was refused does not.
			var done []string
			brokertest.Eventually(t, func() bool {
				done = nil
				for line := range strings.Lines(millrace(t, append([]string{"journal"}, s.flags...)...).out) {
					if f := strings.Fields(line); len(f) > 4 && f[0] != "WHEN" { // date, time, who, what, about, why
						done = append([]string{strings.Join(f[3:], " ")}, done...)
					}
				}
				return len(done) == 8
			}, "all stands in the journal")
			require.Equal(t, []string{"made default", "paused default a look", "resumed default", "made other", "moved default to other (2 jobs) too slow",
				"moved other to default (2 jobs)", "purged default (2 jobs)", "removed default"}, done)
		})
	}
}
