//go:build schemathesis

package schematest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// fill publishes jobs of every kind, and garbage, and performs the actions of the API on them. It
// returns the environment variables that hooks.py needs.
func fill(t *testing.T, v *brokertest.Vhost, url string) (known []string) {
	t.Helper()
	fillStreams(t, v)
	beat(t, v)
	brokertest.Eventually(t, func() bool { return strings.Contains(get(t, v, url+"/api/overview"), `"dead-jobs":{"total":210,`) }, "all are read")
	f := &filler{t, v, url}
	leases := f.leases()
	operations := f.operations()
	f.do(http.MethodPut, "/api/job-queues/q1/pause", `{"reason":"a look"}`)
	f.do(http.MethodPost, "/api/deploys", `{"label":"v2"}`)
	f.do(http.MethodPost, "/api/definitions", `{"source":"fill","periodic_jobs":[{"name":"nightly","cron":"0 3 * * *","job":{"class":"Class0","args":[{"token":"x"}],"queue":"q0"}},
		{"name":"often","every":1,"job":{"class":"Class0","queue":"q1","retry":0}}],
		"limits":[{"name":"one-each","queues":["q0"],"per":["key"],"concurrency":1}]}`)
	f.do(http.MethodPut, "/api/periodic-jobs/nightly/pause", `{"reason":"a look"}`)
	f.do(http.MethodPut, "/api/processes/*/quiet", `{"reason":"a deploy"}`)
	v.Publish(t, wire.Unrouted, "no\nqueue", amqp.Publishing{Body: []byte("no job")})
	v.Publish(t, wire.ExchangeDead, "q0", amqp.Publishing{Body: []byte("no job either")})
	for _, op := range []string{"made", "purged", "paused", "operation", "deleted", "undone"} {
		brokertest.Eventually(t, func() bool { return gjson.Get(get(t, v, url+"/api/journal?op="+op), "items.0.record").Exists() }, "the journal has %s", op)
	}
	for _, from := range []string{wire.Gated, wire.DeadLetters} {
		brokertest.Eventually(t, func() bool { return strings.Contains(get(t, v, url+"/api/rejected"), `"stream":"`+from+`"`) }, "what %s had is rejected", from)
	}
	return []string{"LEASES=" + strings.Join(leases, " "), "OPERATIONS=" + strings.Join(operations, " "), "REJECTED=" + strings.Join(f.rejected(), " ")}
}

// filler makes API calls that must succeed.
type filler struct {
	t   *testing.T
	v   *brokertest.Vhost
	url string
}

func (f *filler) do(method, path, body string, headers ...string) gjson.Result {
	f.t.Helper()
	answer := ask(f.t, f.v, method, f.url+path, body, headers...)
	require.NotContains(f.t, answer, `"request_id"`, "%s %s", method, path)
	return gjson.Parse(answer)
}

// leases leases jobs. Some leases have ended, in each possible way; the others last.
func (f *filler) leases() (ids []string) {
	for _, queue := range []string{"q0", "q1", "leased"} {
		f.do(http.MethodPut, "/api/job-queues/"+queue, "")
	}
	for i := range 20 {
		f.do(http.MethodPut, fmt.Sprint("/api/job-queues/gone-", i), "")
	}
	var jobs []string
	for i := range 12 {
		jobs = append(jobs, fmt.Sprintf(`{"jid":"leased-%d","class":"Class0","queue":"leased","args":[{"token":"x"}]}`, i))
	}
	f.do(http.MethodPost, "/api/jobs", "["+strings.Join(jobs, ",")+"]")
	f.do(http.MethodPost, "/api/jobs", `{"class":"Class1","queue":"q0","args":[1]}`, "Idempotency-Key", "once")
	for len(ids) < 8 {
		for _, l := range f.do(http.MethodPost, "/api/job-queues/leased/lease", `{"max":8,"wait_ms":5000,"lease_ms":86400000}`).Array() {
			ids = append(ids, l.Get("id").Str)
		}
	}
	f.do(http.MethodPost, "/api/leases/"+ids[0]+"/ack", "")
	f.do(http.MethodPost, "/api/leases/"+ids[1]+"/fail", `{"error_class":"E","retry_in":1e8}`)
	f.do(http.MethodPost, "/api/leases/"+ids[2]+"/fail", `{"error_class":"E","kill":true}`)
	f.do(http.MethodDelete, "/api/job-queues/q1/jobs", `{"reason":"nothing in it"}`)
	return ids
}

// operations begins operations: one is done, one undone, one cancelled, and one runs as long as the
// test.
func (f *filler) operations() (ids []string) {
	begin := func(path, body string) string {
		id := f.do(http.MethodPost, path, body).Get("id").Str
		ids = append(ids, id)
		return id
	}
	ended := func(id string) {
		brokertest.Eventually(f.t, func() bool {
			state := gjson.Get(get(f.t, f.v, f.url+"/api/operations/"+id), "state").Str
			return state != "" && state != wire.OperationRunning
		}, "%s has ended", id)
	}
	gone := begin("/api/operations", `{"action":"delete","set":"retries","filter":{"error":"E1","text":"7 times"},"reason":"these are wrong"}`)
	ended(gone)
	ended(begin("/api/operations/"+gone+"/undo", `{"reason":"they were not"}`))
	ended(begin("/api/operations", `{"action":"kill","set":"scheduled-jobs","jids":["1","none"]}`))
	slow := begin("/api/operations", `{"action":"change","set":"scheduled-jobs","filter":{},"at":4.1e9,"rate":0.001}`)
	f.do(http.MethodDelete, "/api/operations/"+slow, "")
	begin("/api/operations", `{"action":"change","set":"scheduled-jobs","filter":{},"at":4.1e9,"rate":0.001}`)
	f.do(http.MethodDelete, "/api/retries/0", `{"reason":"one alone"}`)
	return ids
}

// rejected returns the offsets of unreadable records in the stream of retries.
func (f *filler) rejected() (offsets []string) {
	for _, record := range f.do(http.MethodGet, "/api/rejected?stream=retries&limit=500", "").Array() {
		offsets = append(offsets, record.Get("offset").Raw)
	}
	require.Greater(f.t, len(offsets), 50)
	return offsets
}

// fillStreams publishes records of every kind.
func fillStreams(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	publish := func(stream, body string) { v.Publish(t, "", stream, amqp.Publishing{Body: []byte(body)}) }
	for i := range 60 {
		publish(wire.Retries, fmt.Sprint("garbage ", i))
	}
	for i := range 200 { // enough, so that some remain after all actions
		job := fmt.Sprintf(`"jid":"more-%d","job":{"jid":"more-%[1]d","class":"More","queue":"q%d","args":[]}`, i, i%2)
		publish(wire.ScheduledJobs, fmt.Sprintf(`{"type":"scheduled_job","scheduled_at":%d,%s}`, 4_000_000_000+i, job))
		publish(wire.Retries, fmt.Sprintf(`{"type":"retry","retry_at":%d,"retry_count":1,"error_class":"More","error_message":"m",%s}`, 4_000_000_000+i, job))
		publish(wire.DeadJobs, fmt.Sprintf(`{"type":"dead_job","died_at":%d,"error_class":"More","error_message":"m",%s}`, time.Now().Unix()-int64(i), job))
	}
	for i, jid := range []string{"a", "b", "same", "same", "a/b", "é", "0", "1", "%2F", strings.Repeat("x", 300)} {
		args := `[1,{"password":"hidden","é":[1e3,null]}]`
		if i == 1 {
			args = `["` + strings.Repeat("x", 70<<10) + `"]`
		}
		name, err := json.Marshal(jid)
		require.NoError(t, err)
		job := fmt.Sprintf(`{"jid":%s,"class":"Class%d","queue":"q%d","args":%s,"tags":["t"],"extra":{"n":%d}}`, name, i%3, i%2, args, i)
		publish(wire.ScheduledJobs, fmt.Sprintf(`{"type":"scheduled_job","jid":%s,"scheduled_at":%d,"job":%s}`, name, 4_000_000_000+i, job))
		publish(wire.Retries, fmt.Sprintf(`{"type":"retry","jid":%s,"retry_at":%d,"retry_count":%d,"error_class":"E%d","error_message":"it broke %d times","job":%s}`, name, 4_000_000_000+i, i, i%2, i, job))
		publish(wire.DeadJobs, fmt.Sprintf(`{"type":"dead_job","jid":%s,"died_at":%d,"error_class":"E","error_message":"m","job":%s}`, name, 1_000_000_000+i, job))
	}
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Heartbeats, wire.JobMetrics} {
		publish(stream, "garbage")
		publish(stream, "\xff\xfe")
	}
	for i, status := range []string{"success", "failed", "dead", "discarded", "expired"} {
		at := time.Now().Add(-time.Duration(i) * time.Minute).Unix()
		publish(wire.JobMetrics, fmt.Sprintf(`{"type":"job_metric","timestamp":%d,"job_class":"Class%d","queue":"q%d","duration_ms":%d,"wait_ms":3,"status":%q,"worker_identity":"host:1:w","jid":"a","attempt":1,"error_class":"E%d"}`, at, i%3, i%2, i*100, status, i%2))
	}
}

// beat simulates two worker processes that live as long as the test and consume the control
// commands.
func beat(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	ch, err := v.Owner.Dial(t).Channel()
	require.NoError(t, err)
	control, err := ch.QueueDeclare("", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind(control.Name, "", wire.Control, false, nil))
	_, err = ch.Consume(control.Name, "", true, true, false, false, nil)
	require.NoError(t, err)
	tick := time.NewTicker(5 * time.Second)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			for _, identity := range []string{"host:1:w", "höst:2:a/b"} {
				// A heartbeat that fails does no harm: the next one follows.
				_ = ch.Publish("", wire.Heartbeats, false, false, amqp.Publishing{Body: []byte(heartbeat(identity))})
			}
			select {
			case <-tick.C:
			case <-t.Context().Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		tick.Stop()
		<-done
	})
}

func heartbeat(identity string) string {
	now := wire.Seconds(time.Now())
	return fmt.Sprintf(`{"type":"heartbeat","identity":%q,"hostname":"host","pid":1,"tag":"w","queues":["q0"],"concurrency":5,"busy":1,"beat":%f,"version":"1","state":"running","work":[{"jid":"a","class":"C","queue":"q0","started_at":%f}],"labels":{"zone":"a"},"weights":{"q0":2},"lanes":[{"name":"l","queues":["q0"],"concurrency":2,"busy":1}]}`, identity, now, now)
}
