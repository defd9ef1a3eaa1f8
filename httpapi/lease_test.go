package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

// leased folds a lease, and returns its id and path.
func (w *world) leased(job string) (id, path string) {
	w.t.Helper()
	id = wire.NewLeaseID(wire.Lease{At: time.Now().Add(-time.Minute)})
	return id, w.readLease(id, job)
}

// readLease has the view read a lease.
func (w *world) readLease(id, job string) (path string) {
	w.t.Helper()
	parsed, err := wire.LeasedJob(&wire.Delivery{Body: []byte(job)}, "q")
	require.NoError(w.t, err)
	m, err := wire.LeaseMessage(id, time.Now().Add(time.Hour), &parsed, "", "")
	require.NoError(w.t, err)
	w.fold(wire.Record{Stream: wire.ScheduledJobs, UserID: user, Headers: m.Headers, Body: m.Body, Time: time.Unix(1_700_000_000, 0)})
	return "/api/leases/" + id
}

// A sidecar that has just started waits until its view has what it counts.
func TestLeaseThatIsReadLate(t *testing.T) {
	w, id := newWorld(t), wire.NewLeaseID(wire.Lease{At: time.Now().Add(-time.Minute)})
	answered := make(chan int, 1)
	go func() { answered <- w.do(http.MethodPost, "/api/leases/"+id+"/ack", "").StatusCode }()
	time.Sleep(100 * time.Millisecond) // it has looked for it
	w.readLease(id, `{"jid":"j1","class":"Mail"}`)
	defer w.catchUp()()
	require.Equal(t, http.StatusNoContent, <-answered)
	require.Len(t, w.published, 1)
	require.Equal(t, "j1", gjson.GetBytes(w.published[0].Body, "jid").Str)
}

func TestLeasesAreSettled(t *testing.T) {
	w := newWorld(t)
	id, path := w.leased(`{"jid":"j1","class":"Mail","args":[1]}`)
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPost, path+"/ack", "").StatusCode)
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPost, path+"/extend", `{"lease_ms":5000}`).StatusCode)
	require.Len(t, w.commands, 2)
	require.Equal(t, []string{wire.LeaseAck + id, wire.CommandDelete, wire.ScheduledJobs, id}, []string{w.commands[0].ID, w.commands[0].Command, w.commands[0].Stream, w.commands[0].JID})
	require.Equal(t, wire.CommandChange, w.commands[1].Command)
	require.InDelta(t, float64(time.Now().UnixMilli())/1000+5, gjson.GetBytes(w.commands[1].Changes, "at").Float(), 60)
	require.True(t, wire.SettlesLease(w.commands[1].ID))
	require.Len(t, w.published, 1)
	m := string(w.published[0].Body)
	require.Equal(t, wire.JobMetrics, w.published[0].Key)
	require.NoError(t, wire.CheckMetrics(w.published[0].Body))
	require.Equal(t, []string{"success", "j1", "Mail", "q"}, []string{gjson.Get(m, "status").Str, gjson.Get(m, "jid").Str, gjson.Get(m, "job_class").Str, gjson.Get(m, "queue").Str})

	// A command that the journal has is not executed and counted twice.
	w.journal(wire.JournalRecord{Type: wire.TypeOpened, Format: wire.Format})
	w.journal(wire.JournalRecord{Type: wire.TypeDeleted, Stream: wire.ScheduledJobs, JID: id, Command: wire.LeaseAck + id})
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPost, path+"/ack", "").StatusCode)
	require.Len(t, w.commands, 2)
	require.Len(t, w.published, 1)
	w.do(http.MethodPost, path+"/fail", `{}`).problem(t, http.StatusConflict, "conflict")
	w.reply.Repeated = true // the leader has executed what this sidecar has not read yet
	_, path = w.leased(`{"jid":"j2","class":"Mail"}`)
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPost, path+"/ack", "").StatusCode)
	require.Len(t, w.published, 1)
	require.Empty(t, w.past("/api/journal").Items, "a worker that settles leases is no operator")
}

func TestLeasesAreListedWithState(t *testing.T) {
	w := newWorld(t)
	id, _ := w.leased(`{"jid":"j1","class":"Mail","args":[1]}`)
	require.Empty(t, w.jids("/api/scheduled-jobs"))
	require.Zero(t, w.page("/api/scheduled-jobs?page=1").Total)
	body := w.get("/api/jobs/j1").body
	require.Equal(t, []string{id, "q", "Mail"}, []string{gjson.Get(body, "leases.0.id").Str, gjson.Get(body, "leases.0.queue").Str, gjson.Get(body, "leases.0.class").Str})
	w.do(http.MethodDelete, "/api/jobs/j1", "").problem(t, http.StatusConflict, "conflict")
	require.Equal(t, http.StatusOK, w.get("/api/scheduled-jobs/"+id).StatusCode, "by its own id an operator finds it")
}

func TestFailedLeases(t *testing.T) {
	for name, c := range map[string]struct {
		job, body string
		stream    string // that gets a record, or ""
		status    string // of the metric
		has       map[string]any
	}{
		"a retry": {`{"jid":"j","class":"C","retry_count":2}`, `{"error_class":"E","error_message":"m","backtrace":"a\nb","retry_in":100}`, wire.Retries, "failed",
			map[string]any{"retry_count": 3.0, "error_class": "E", "error_message": "m", "backtrace": "a\nb", "jid": "j"}},
		"the last retry":       {`{"jid":"j","class":"C","retry_count":3,"retry":3}`, `{"error_class":"E"}`, wire.DeadJobs, "dead", map[string]any{"reason": "exhausted", "retry_count": 3.0}},
		"never to be retried":  {`{"jid":"j","class":"C","retry":false}`, `{}`, wire.DeadJobs, "dead", map[string]any{"reason": "exhausted"}},
		"never to be buried":   {`{"jid":"j","class":"C","retry":0,"dead":false}`, `{}`, "", "discarded", nil},
		"killed":               {`{"jid":"j","class":"C","dead":false}`, `{"kill":true,"error_class":"Killed"}`, wire.DeadJobs, "dead", map[string]any{"reason": "killed", "error_class": "Killed"}},
		"with its own backoff": {`{"jid":"j","class":"C"}`, ``, wire.Retries, "failed", map[string]any{"retry_count": 1.0}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id, path := w.leased(c.job)
			require.Equal(t, http.StatusNoContent, w.do(http.MethodPost, path+"/fail", c.body).StatusCode)
			require.Len(t, w.commands, 2)
			require.Equal(t, []string{wire.CommandChange, wire.CommandDelete, wire.LeaseFail + id}, []string{w.commands[0].Command, w.commands[1].Command, w.commands[1].ID})
			last := w.published[len(w.published)-1]
			require.Equal(t, wire.JobMetrics, last.Key)
			require.Equal(t, c.status, gjson.GetBytes(last.Body, "status").Str)
			if c.stream == "" {
				require.Len(t, w.published, 1)
				return
			}
			require.Len(t, w.published, 2)
			require.Equal(t, c.stream, w.published[0].Key)
			e, err := wire.ParseEntry(c.stream, 0, w.published[0].Body)
			require.NoError(t, err)
			require.Equal(t, "q", e.Job.Queue)
			for member, want := range c.has {
				require.Equal(t, want, gjson.GetBytes(w.published[0].Body, member).Value(), member)
			}
			if name == "a retry" {
				require.InDelta(t, 100, e.At.Sub(time.UnixMicro(int64(gjson.GetBytes(e.Raw, "failed_at").Float()*1e6))).Seconds(), 0.01)
			}
		})
	}
}

// A failed settlement leaves the lease, which expires later. An answer names what has ended.
func TestFailedSettlementLeavesLease(t *testing.T) {
	w := newWorld(t)
	id, path := w.leased(`{"jid":"j1","class":"Mail"}`)
	for _, verb := range []string{"/ack", "/extend", "/fail"} {
		w.reply = wire.Reply{Status: wire.StatusNotFound, Error: "not_found", Reason: "r", Happened: &wire.Happened{What: wire.OpFired}}
		require.Contains(t, w.do(http.MethodPost, path+verb, "").problem(t, http.StatusConflict, "conflict").Reason, "ran out")
		w.reply.Happened.What = wire.TypeDeleted
		require.Contains(t, w.do(http.MethodPost, path+verb, "").problem(t, http.StatusConflict, "conflict").Reason, "deleted")
		w.reply.Happened.What = wire.OpExpired
		require.Contains(t, w.do(http.MethodPost, path+verb, "").problem(t, http.StatusConflict, "conflict").Reason, "ran out")
		w.reply = wire.Reply{Status: wire.StatusUnavailable, Error: "no_leader", Reason: "r"}
		w.do(http.MethodPost, path+verb, "").problem(t, http.StatusServiceUnavailable, "no_leader")
	}
	require.Empty(t, w.published)
	w.reply, w.publish, w.commands = wire.Reply{Status: wire.StatusDone}, errors.New("nacked"), nil
	w.do(http.MethodPost, path+"/fail", "").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	for _, c := range w.commands {
		require.NotEqual(t, wire.LeaseFail+id, c.ID, "nothing was recorded")
	}
	require.Equal(t, http.StatusNoContent, w.do(http.MethodPost, path+"/ack", "").StatusCode, "a lost metric is not an error")
	require.Contains(t, w.log.String(), "metric of a leased job is lost")

	for _, unknown := range []string{"x", "lease-1-1", "lease-x-1-ABCDEFGHIJKLMNOPQRSTUVWXYZ", "lease-0-*-ABCDEFGHIJKLMNOPQRSTUVWXYZ", "lease-0-1-A", strings.Repeat("lease-", 50)} {
		w.do(http.MethodPost, "/api/leases/"+unknown+"/ack", "").problem(t, http.StatusNotFound, "not_found")
	}
	begins := newWorld(t)
	begins.do(http.MethodPost, "/api/leases/"+someLease+"/fail", "").problem(t, http.StatusServiceUnavailable, "service_unavailable") // it may be there
	defer begins.catchUp()()
	begins.do(http.MethodPost, "/api/leases/"+someLease+"/fail", "").problem(t, http.StatusNotFound, "not_found")
	w.reply = wire.Reply{Status: wire.StatusNotFound, Error: "not_found", Reason: "r"}
	w.do(http.MethodPost, "/api/leases/"+someLease+"/ack", "").problem(t, http.StatusNotFound, "not_found")
	for verb, bodies := range map[string][]string{
		"/ack": {`{"x":1}`, `[]`}, "/extend": {`{"lease_ms":999}`, `{"lease_ms":86400001}`, `{"lease_ms":"1"}`},
		"/fail": {`{"retry_in":-1}`, `{"retry_in":1e300}`, `{"kill":"yes"}`, `{"error":"E"}`},
	} {
		for _, body := range bodies {
			w.do(http.MethodPost, path+verb, body).problem(t, http.StatusBadRequest, "bad_request")
		}
	}
	w.do(http.MethodPost, path+"/ack?x=1", "").problem(t, http.StatusBadRequest, "bad_request")
}

func TestLeasesAreLimited(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{`{"max":0}`, `{"max":101}`, `{"wait_ms":-1}`, `{"wait_ms":20001}`, `{"lease_ms":0}`, `{"max":1.5}`, `{"n":1}`, `[]`} {
		w.do(http.MethodPost, "/api/job-queues/q/lease", body).problem(t, http.StatusBadRequest, "bad_request")
	}
	w.do(http.MethodPost, "/api/job-queues/q/lease?max=1", "").problem(t, http.StatusBadRequest, "bad_request")
	w.do(http.MethodPost, "/api/job-queues/q/lease", "").problem(t, http.StatusServiceUnavailable, "service_unavailable")
	leaderless := newWorld(t)
	leaderless.reply = wire.Reply{Status: wire.StatusUnavailable, Error: "no_leader", Reason: "r"}
	leaderless.do(http.MethodPost, "/api/job-queues/q/lease", "").problem(t, http.StatusServiceUnavailable, "no_leader")
	require.Equal(t, fmt.Sprint(wire.Lease{RanOut: 2, At: time.UnixMilli(5)}), func() string {
		l, ok := wire.ParseLeaseID(wire.NewLeaseID(wire.Lease{RanOut: 2, At: time.UnixMilli(5)}))
		require.True(t, ok)
		return fmt.Sprint(l)
	}())
}
