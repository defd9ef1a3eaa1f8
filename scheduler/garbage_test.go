package scheduler_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// garbage is what nobody should publish to a stream, with a part of the reason that is given for refusing it.
func garbage() map[string][]byte {
	return map[string][]byte{
		"is not valid JSON":            []byte(`{"jid":`),
		"is not valid JSON ":           bytes.Repeat([]byte("["), 10_000_000),
		"at most 16777216 are read":    append([]byte(`{"jid":"`), append(bytes.Repeat([]byte("x"), wire.MaxRecord), `"}`...)...),
		"is not a JSON object":         []byte(`[1,2,3]`),
		"is not valid JSON  ":          {0, 1, 2, 0xff},
		"is not valid JSON   ":         {},
		"stands twice":                 []byte(`{"type":"x","type":"y","jid":"a","jid":"b","identity":"i","identity":"j","job_class":"a","job_class":"b"}`),
		"is written with escapes":      []byte(`{"\u0074ype":"scheduled_job","\u006aid":"a","\u0069dentity":"i","job_\u0063lass":"C"}`),
		"is not valid Unicode|missing": []byte(`{"jid":"\ud800","identity":"\ud800","job_class":"\ud800","job":{"class":"\ud800"}}`),
	}
}

// TestGarbageStopsNothing writes garbage into every stream that is read, over and over, and good jobs in between.
func TestGarbageStopsNothing(t *testing.T) {
	t.Parallel()
	for _, native := range []bool{true, false} {
		t.Run(fmt.Sprintf("native=%v", native), func(t *testing.T) {
			t.Parallel()
			v := brokertest.New(t)
			s := start(t, v, options{identity: "a", native: native}).leads(t)
			streams := append([]string{wire.Journal, wire.Heartbeats, wire.JobMetrics}, wire.EntryStreams...)
			good := 0
			for _, body := range garbage() {
				for _, stream := range streams {
					v.Publish(t, "", stream, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body})
				}
				good++
				v.Publish(t, "", wire.ScheduledJobs, scheduled(fmt.Sprintf("good-%d", good), time.Now(), job("C", "work")))
			}
			brokertest.EventuallyWithin(t, time.Minute, func() bool { return s.Status().Counters.Fired == int64(good) }, "every good job is fired")
			for _, stream := range streams {
				var listed []tracker.Reject
				brokertest.EventuallyWithin(t, time.Minute, func() bool {
					listed = nil
					require.NoError(t, s.entries.Rejects(stream, func(r tracker.Reject) bool {
						listed = append(listed, r)
						return true
					}))
					return len(listed) == len(garbage())
				}, "all garbage of %s is listed", stream)
				for _, r := range listed {
					require.NotEmpty(t, r.Reason)
					require.LessOrEqual(t, len(r.Body), 64<<10)
				}
				requireReasons(t, stream, listed)
			}
			require.True(t, s.Status().Leader)
			require.Equal(t, int64(1), s.Status().Counters.Epochs, "no epoch ended over it")
		})
	}
}

// requireReasons looks for each kind of garbage's reason among those listed. The journal refuses all of it because of who wrote it.
func requireReasons(t *testing.T, stream string, listed []tracker.Reject) {
	t.Helper()
	var all strings.Builder
	for _, r := range listed {
		fmt.Fprintln(&all, r.Reason)
	}
	if stream == wire.Journal {
		require.Equal(t, len(listed), strings.Count(all.String(), "the journal is Millrace's own"))
		return
	}
	for reason := range garbage() {
		found := false
		for _, alternative := range strings.Split(strings.TrimSpace(reason), "|") {
			found = found || strings.Contains(all.String(), alternative)
		}
		require.True(t, found, "%s: %q is no reason in\n%s", stream, reason, all.String())
	}
}
