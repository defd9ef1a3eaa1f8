package spectest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// hardArgs are changed by most libraries when they decode and encode JSON.
const hardArgs = `[9007199254740993, 1e400, "\u0000é", {"b":1,"a":2}]`

// unknown are members of a job that Millrace does not know.
var unknown = map[string]string{
	"deadline":     `12345678901234567890.123456789`,
	"trace":        `{ "z" : [1.0, 1E+2, -0, 0.10],` + "\n\t" + `"a":"\/\ud83d\ude00\ud800", "z": 2 }`,
	"\u006eote\"é": `"\u00e9 <&> \u2028"`,
	"empty":        `""`,
}

// jobOf returns a job with the content that Millrace must not change.
func jobOf(more string) string {
	return `{ "args" : ` + hardArgs + ` ,
		"deadline":` + unknown["deadline"] + `, "trace" :` + unknown["trace"] + `, "\u006eote\"é":` + unknown[`note"é`] + `,"empty":` + unknown["empty"] + more + `}`
}

// unchanged checks that the members of a job's body, and the bytes between them, are unchanged. It
// returns the retry_count.
func unchanged(t *testing.T, body string) string {
	t.Helper()
	untouched := strings.TrimSuffix(jobOf(""), "}")
	require.Contains(t, body, untouched)
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal([]byte(body), &members))
	require.Equal(t, hardArgs, string(members["args"]))
	for name, value := range unknown {
		require.Equal(t, value, string(members[name]), name)
	}
	require.Equal(t, `"b-1"`, string(members["jid"]))
	return string(members["retry_count"])
}

func TestBytesOfJobsAreUnchanged(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := serve(t, v)
	c := python.client(t, v, "")
	send := func(stream, format string, args ...any) { publish(t, c, "", stream, fmt.Sprintf(format, args...)) }
	at := func(in time.Duration) float64 { return float64(time.Now().Add(in).UnixMilli()) / 1000 }
	more := `, "class":"HardJob","queue":"hard"}`

	// Through the schedule, by time and by command.
	scheduled := `{"type":"scheduled_job", "jid":"b-1","scheduled_at":%.3f,"mine" : 1e999, "job":%s}`
	send("scheduled_jobs", scheduled, at(time.Second), jobOf(strings.TrimSuffix(more, "}")))
	job := take(t, c, "queue.hard")
	unchanged(t, job)
	send("scheduled_jobs", scheduled, at(time.Hour), jobOf(strings.TrimSuffix(more, "}")))
	require.Contains(t, s.holds(t, "scheduled-jobs", "b-1"), fmt.Sprintf(`"mine" : 1e999, "job":%s`, jobOf(strings.TrimSuffix(more, "}"))))
	s.post(t, "/api/scheduled-jobs/b-1/trigger")
	require.Equal(t, job, take(t, c, "queue.hard"))

	// Through a retry, by time and by command.
	retry := `{"type":"retry","jid":"b-1","retry_at":%.3f,"retry_count":%d,"failed_at":%.3f,"error_message":"\u0000é","error_class":"E","job":%s, "mine":1e999}`
	send("retries", retry, at(time.Second), 1, at(0), job)
	job = take(t, c, "queue.hard")
	require.Equal(t, "1", unchanged(t, job))
	send("retries", retry, at(time.Hour), 2, at(0), job)
	require.Contains(t, s.holds(t, "retries", "b-1"), `"error_message":"\u0000é","error_class":"E","job":`+job+`, "mine":1e999`)
	s.post(t, "/api/retries/b-1/retry")

	// Through the dead set: rejected, killed, and buried by the worker.
	job = reject(t, c, "queue.hard")
	require.Equal(t, "2", unchanged(t, job))
	revive := func() {
		t.Helper()
		require.Contains(t, s.holds(t, "dead-jobs", "b-1"), job)
		s.post(t, "/api/dead-jobs/b-1/retry")
		job = take(t, c, "queue.hard")
		require.Equal(t, "0", unchanged(t, job))
	}
	revive()
	for _, stream := range []string{"scheduled_jobs", "retries"} {
		set := strings.Replace(stream, "_", "-", 1)
		if stream == "retries" {
			send(stream, retry, at(time.Hour), 1, at(0), job)
		} else {
			send(stream, scheduled, at(time.Hour), job)
		}
		s.holds(t, set, "b-1")
		s.post(t, "/api/%s/b-1/kill", set)
		revive()
	}
	send("dead_jobs", `{"type":"dead_job","jid":"b-1","died_at":%.3f,"retry_count":25,"error_message":"m","error_class":"E","backtrace":"a\nb","job":%s}`, at(0), job)
	revive()

	// Through a retry again.
	send("retries", retry, at(0), 1, at(0), job)
	require.Equal(t, "1", unchanged(t, take(t, c, "queue.hard")))
}
