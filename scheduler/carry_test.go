package scheduler_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// TestEntrySurvivesRetention schedules a job ten years ahead in a stream whose retention is a few
// seconds.
func TestEntrySurvivesRetention(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	v.Do(t, http.MethodPut, "/api/policies/"+v.Name+"/short", map[string]any{"pattern": "^scheduled_jobs$", "apply-to": "queues", "priority": 10,
		"definition": map[string]any{"max-age": "4s", "stream-max-segment-size-bytes": 20_000}}, nil)
	away := options{identity: "away", dir: t.TempDir(), native: true}
	s := start(t, v, away).leads(t)
	due := time.Now().AddDate(10, 0, 0).Truncate(time.Second)
	v.Publish(t, "", wire.ScheduledJobs, scheduled("far", due, job("Mail", "mails")))
	var found []*tracker.Stored
	var err error
	brokertest.Eventually(t, func() bool { // it may be moving to another offset
		found, err = s.entries.Find(wire.ScheduledJobs, "far")
		return err != nil || len(found) == 1
	}, "it is pending")
	require.NoError(t, err)
	original := found[0].First
	s.stop()

	s = start(t, v, options{identity: "a", native: true}).leads(t)
	brokertest.EventuallyWithin(t, 3*time.Minute, func() bool { // the broker may show the policy late; it is asked again a minute later
		return s.entries.State().LowWater[wire.ScheduledJobs] > original
	}, "it is carried over")
	filler := make([]byte, 4000)
	if !v.Features(t).StreamSegmentPolicy {
		filler = make([]byte, 1_000_000) // ten of them are a segment
	}
	brokertest.EventuallyWithin(t, time.Minute, func() bool {
		for range 10 { // retention takes whole segments, and only when the stream begins another
			v.Publish(t, "", wire.ScheduledJobs, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: filler})
		}
		time.Sleep(200 * time.Millisecond) // retention is by age
		return v.ReadStream(t, wire.ScheduledJobs)[0].Headers["x-stream-offset"].(int64) > original
	}, "retention took the original")
	s.stop()

	pending := func(o options) *sidecar {
		s := start(t, v, o).leads(t)
		brokertest.Eventually(t, func() bool { // it may be moving to another offset again
			found, err = s.entries.Find(wire.ScheduledJobs, "far")
			return err != nil || len(found) == 1
		}, "it is still pending in the view of %s", o.identity)
		require.NoError(t, err)
		require.Equal(t, original, found[0].First)
		require.Equal(t, due.UTC(), found[0].At)
		require.Empty(t, s.Status().Gap)
		return s
	}
	pending(away).stop() // it had read the original, and nothing behind it
	fresh := pending(options{identity: "b", native: true})
	brokertest.Eventually(t, func() bool { // it may be moving to another offset again
		return fresh.ask(t, wire.Command{ID: rand.Text(), Command: wire.CommandTrigger, Stream: wire.ScheduledJobs, JID: "far"}).Status == wire.StatusDone
	}, "it can be triggered")
	brokertest.Eventually(t, func() bool { return fresh.Status().Counters.Fired == 1 }, "it can be fired: %s", fmt.Sprint(fresh.Status()))
}
