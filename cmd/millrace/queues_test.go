package main

import (
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestQueuesWithRealBroker(t *testing.T) {
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
			require.Equal(t, "queue \"default\" exists\n", says("make", "default"))
			v.Publish(t, wire.ExchangeDirect, "default", amqp.Publishing{Body: []byte(`{"class":"C","jid":"a"}`)}, amqp.Publishing{Body: []byte(`{"class":"C","jid":"b"}`)})
			brokertest.Eventually(t, func() bool { return strings.Contains(says(), "no_consumers  2 ") }, "two jobs wait")
			require.Contains(t, says("show", "default", "-o", "json"), `"ready": 2`)
			require.Regexp(t, `(?m)^ready +2$`, says("show", "default"))
			require.Contains(t, says("peek", "default", "--count", "1"), `{"class":"C","jid":"a"}`)
			require.Equal(t, "queue \"default\" paused\n", says("pause", "default", "--reason", "a look"))
			brokertest.Eventually(t, func() bool { return regexpMatch(`paused.reason +a look\n`, says("show", "default")) }, "it is paused")
			require.Contains(t, says("--state", "paused"), "default")
			require.Contains(t, says("pause", "nowhere"), `there is no queue "nowhere"`)
			require.Equal(t, "queue \"default\" resumed\n", says("resume", "default"))
			brokertest.Eventually(t, func() bool { return !strings.Contains(says("show", "default"), "paused.") }, "it resumes")
			require.Contains(t, says("move", "default", "other"), `there is no queue "other"`)
			require.Equal(t, "queue \"other\" exists\n", says("make", "other"))
			require.Equal(t, "2 jobs moved from queue \"default\" to queue \"other\"\n", says("move", "default", "other", "--reason", "too slow"))
			require.Contains(t, says("peek", "other", "-n", "1"), `{"class":"C","jid":"a","queue":"other"}`)
			require.Equal(t, "2 jobs moved from queue \"other\" to queue \"default\"\n", says("move", "other", "default"))
			require.Contains(t, says("purge", "default"), `Delete 2 jobs that wait in queue "default"? There is no terminal to ask on: add --yes`)
			require.Equal(t, 2, v.QueueLength(t, "queue.default"))
			require.Equal(t, "queue \"default\" purged: 2 jobs deleted\n", says("purge", "default", "--yes"))
			brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.default") == 0 }, "it is empty")
			require.Contains(t, says("delete", "default"), "There is no terminal to ask on: add --yes")
			require.Regexp(t, `^queue "default" deleted, with \d jobs in it\n$`, says("rm", "default", "--yes"))
			require.Contains(t, says("purge", "default"), `queue "default"`)
			require.Contains(t, says("delete", "default"), `queue "default"`)

			// Each action is in the journal, except the refused ones.
			var done []string
			brokertest.Eventually(t, func() bool {
				done = nil
				for line := range strings.Lines(millrace(t, append([]string{"journal"}, s.flags...)...).out) {
					if f := strings.Fields(line); len(f) > 4 && f[0] != "WHEN" { // date, time, user, action, subject, reason
						done = append([]string{strings.Join(f[3:], " ")}, done...)
					}
				}
				return len(done) == 8
			}, "all of it is in the journal")
			require.Equal(t, []string{"made default", "paused default a look", "resumed default", "made other", "moved default to other (2 jobs) too slow",
				"moved other to default (2 jobs)", "purged default (2 jobs)", "removed default"}, done)
		})
	}
}
