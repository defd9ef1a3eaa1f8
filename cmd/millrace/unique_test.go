package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	millraceclient "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// uniqueJobs sends requests about unique jobs.
type uniqueJobs struct {
	t *testing.T
	s *running
}

// post enqueues a job, and returns the status and the answer.
func (u *uniqueJobs) post(jid, unique string) (status int, answer gjson.Result) {
	body := fmt.Sprintf(`{"jid":%q,"class":"Import","args":[1],"queue":"imports","gate":{"unique":%s}}`, jid, unique)
	return u.request(http.MethodPost, "/api/jobs", body)
}

func (u *uniqueJobs) request(method, path, body string) (status int, answer gjson.Result) {
	u.t.Helper()
	r, err := http.NewRequestWithContext(u.t.Context(), method, u.s.api.Address()+path, bytes.NewBufferString(body))
	require.NoError(u.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(u.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(u.t, err)
	return response.StatusCode, gjson.ParseBytes(raw)
}

// is posts a job and requires which job has its key.
func (u *uniqueJobs) is(jid, unique string, status int, stays string) {
	u.t.Helper()
	got, answer := u.post(jid, unique)
	require.Equal(u.t, status, got, answer.Raw)
	require.Equal(u.t, stays, answer.Get("jid").String())
	require.Equal(u.t, status == http.StatusOK, answer.Get("duplicate_of").Exists())
}

func (u *uniqueJobs) keys(query string) gjson.Result {
	u.t.Helper()
	status, answer := u.request(http.MethodGet, "/api/unique-keys"+query, "")
	require.Equal(u.t, http.StatusOK, status)
	return answer
}

func newUniqueJobs(t *testing.T) (*uniqueJobs, *brokertest.Vhost) {
	t.Parallel()
	v := brokertest.New(t)
	settings := beside(v)
	settings.Auth = "none"
	s := start(t, settings)
	s.leads(t)
	u := &uniqueJobs{t, s}
	u.request(http.MethodPut, "/api/job-queues/imports", "")
	return u, v
}

func TestDuplicateIsRejectedUntilJobHasEnded(t *testing.T) {
	u, v := newUniqueJobs(t)
	u.is("a", `{"key":"k"}`, http.StatusCreated, "a")
	u.is("b", `{"key":"k"}`, http.StatusOK, "a")
	u.is("a", `{"key":"k"}`, http.StatusCreated, "a") // its publish is repeated
	u.is("c", `{}`, http.StatusCreated, "c")
	u.is("d", `{"by":["queue","args","class"]}`, http.StatusOK, "c")
	u.is("e", `{"by":["args.0"]}`, http.StatusCreated, "e")
	brokertest.Eventually(t, func() bool { return u.keys("?key=k").Get("0.state").String() == "delivered" }, "it is delivered")
	require.Equal(t, "a", u.keys("?key=k").Get("0.jid").String())
	status, answer := u.request(http.MethodDelete, "/api/unique-keys/"+u.keys("?key=k").Get("0.hash").String(), "")
	require.Equal(t, http.StatusConflict, status, answer.Raw)
	_, timeline := u.request(http.MethodGet, "/api/jobs/b", "")
	require.Equal(t, "duplicate", timeline.Get("events.0.what").String(), timeline.Raw)
	require.Equal(t, "a", timeline.Get("events.0.other").String())

	var runs atomic.Int64
	work(t, v.AMQPURL(), "imports", 1, func(_ context.Context, job *millraceclient.RawJob) error {
		if runs.Add(1); job.JID == "a" && job.RetryCount == 0 {
			return errors.New("fails once")
		}
		return nil
	})
	brokertest.Eventually(t, func() bool { return u.keys("?jid=a").Get("#.state").Raw == `["retry"]` }, "its retry has the key")
	u.is("f", `{"key":"k"}`, http.StatusOK, "a")
	status, _ = u.request(http.MethodDelete, "/api/retries/a", "")
	require.Equal(t, http.StatusNoContent, status)
	u.is("g", `{"key":"k"}`, http.StatusCreated, "g")
	brokertest.Eventually(t, func() bool { return u.keys("").Raw == "[]\n" || u.keys("").Get("#").Int() == 0 }, "no key is taken when all have ended")
	require.EqualValues(t, 4, runs.Load())
}

func TestInvalidUniqueJobIsRejected(t *testing.T) {
	u, v := newUniqueJobs(t)
	status, answer := u.post("a", `{"by":["colour"]}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, answer.Get("reason").String(), `use class, queue, args, jid or a path`)
	ch := v.Channel(t)
	require.NoError(t, ch.PublishWithContext(t.Context(), "", wire.Gated, false, false,
		amqp.Publishing{Body: []byte(`{"jid":"b","class":"C","gate":{"unique":{"while":"never"}}}`)}))
	brokertest.Eventually(t, func() bool {
		_, all := u.request(http.MethodGet, "/api/rejected?stream="+wire.Gated, "")
		return bytes.Contains([]byte(all.Raw), []byte(`\"while\" must be`))
	}, "the stream lists it as rejected")
}

func TestUniqueKeyForATime(t *testing.T) {
	u, v := newUniqueJobs(t)
	work(t, v.AMQPURL(), "imports", 1, func(context.Context, *millraceclient.RawJob) error { return nil })
	u.is("a", `{"key":"k","for":3600}`, http.StatusCreated, "a")
	brokertest.Eventually(t, func() bool { return u.keys("?key=k").Get("#").Int() == 1 }, "the job has ended, and its key is taken")
	u.is("b", `{"key":"k"}`, http.StatusOK, "a")
	hash := u.keys("?key=k").Get("0.hash").String()
	require.Equal(t, "period", u.keys("?hash="+hash).Get("0.state").String())
	status, _ := u.request(http.MethodDelete, "/api/unique-keys/"+hash, "")
	require.Equal(t, http.StatusNoContent, status)
	u.is("c", `{"key":"k"}`, http.StatusCreated, "c")
	status, _ = u.request(http.MethodDelete, "/api/unique-keys/"+wire.UniqueKey("other").Hash(), "")
	require.Equal(t, http.StatusNotFound, status)
}

func TestLaterJobReplacesOneThatWaits(t *testing.T) {
	u, v := newUniqueJobs(t)
	begun := time.Now()
	u.is("a", `{"key":"k","on":"replace","wait":2}`, http.StatusCreated, "a")
	u.is("b", `{"key":"k","on":"replace","wait":2}`, http.StatusCreated, "b")
	_, timeline := u.request(http.MethodGet, "/api/jobs/a", "")
	require.Equal(t, "replaced", timeline.Get("events.0.what").String(), timeline.Raw)
	require.Equal(t, "b", timeline.Get("events.0.other").String())
	u.is("c", `{"key":"k","wait":3}`, http.StatusOK, "b") // puts b off
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.imports") == 1 }, "one is delivered")
	require.Greater(t, time.Since(begun), 2500*time.Millisecond)
	d, _ := v.Get(t, "queue.imports")
	require.Equal(t, "b", gjson.GetBytes(d.Body, "jid").String())
	u.is("d", `{"key":"k","on":"replace"}`, http.StatusOK, "b") // it does not wait any more
}

func TestDeadJobComesBackOnlyIfItsKeyIsFree(t *testing.T) {
	u, _ := newUniqueJobs(t)
	status, _ := u.request(http.MethodPut, "/api/limits/none", `{"concurrency":1,"paused":true}`)
	require.Equal(t, http.StatusNoContent, status)
	u.is("a", `{"key":"k"}`, http.StatusCreated, "a")
	status, answer := u.request(http.MethodPost, "/api/gated-jobs/a/kill", "")
	require.Equal(t, http.StatusNoContent, status, answer.Raw)
	u.is("b", `{"key":"k"}`, http.StatusCreated, "b")
	status, answer = u.request(http.MethodPost, "/api/dead-jobs/a/retry", "")
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, answer.Get("reason").String(), "job b has the key")
	status, _ = u.request(http.MethodDelete, "/api/gated-jobs/b", "")
	require.Equal(t, http.StatusNoContent, status)
	status, answer = u.request(http.MethodPost, "/api/dead-jobs/a/retry", "")
	require.Equal(t, http.StatusNoContent, status, answer.Raw)
	u.is("c", `{"key":"k"}`, http.StatusOK, "a")
	status, answer = u.request(http.MethodPost, "/api/gated-jobs/b/undo", "")
	require.Equal(t, http.StatusConflict, status, answer.Raw)
}

func TestPublisherHearsWhichJobHasTheKey(t *testing.T) {
	_, v := newUniqueJobs(t)
	ch := v.Channel(t)
	answers, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
	require.NoError(t, err)
	for _, jid := range []string{"a", "b"} {
		require.NoError(t, ch.PublishWithContext(t.Context(), "", wire.Gated, false, false, amqp.Publishing{ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: "about " + jid,
			Body: fmt.Appendf(nil, `{"jid":%q,"class":"Import","queue":"imports","gate":{"unique":{"key":"k"}}}`, jid)}))
		select {
		case d := <-answers:
			require.Equal(t, "about "+jid, d.CorrelationId)
			want := map[string]string{"a": `{"status":201,"jid":"a"}`, "b": `{"status":200,"jid":"a","duplicate_of":"a"}`}
			require.JSONEq(t, want[jid], string(d.Body))
		case <-time.After(10 * time.Second):
			require.Fail(t, "no answer")
		}
	}
}
