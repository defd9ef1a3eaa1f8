package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	millraceclient "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// importArgs are the args of a job that limits count.
type importArgs struct {
	N int `json:"n"`
}

func (importArgs) Kind() string { return "Import" }

// counting counts what runs at once, by key.
type counting struct {
	mu      sync.Mutex
	running map[string]int
	most    map[string]int
	runs    map[string]int // by jid
}

func newCounting() *counting {
	return &counting{running: map[string]int{}, most: map[string]int{}, runs: map[string]int{}}
}

func (c *counting) begin(key, jid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[key]++
	c.most[key] = max(c.most[key], c.running[key])
	c.runs[jid]++
}

func (c *counting) end(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[key]--
}

func (c *counting) ran() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runs)
}

// keyOf returns the limit key of a job.
func keyOf(job *millraceclient.RawJob) string {
	var j struct {
		Gate struct{ Key string }
	}
	_ = json.Unmarshal(job.Raw, &j)
	return j.Gate.Key
}

// work runs a worker of the Go client until the test ends.
func work(t *testing.T, url, queue string, concurrency int, handler millraceclient.Handler) {
	t.Helper()
	w := millraceclient.NewWorker(millraceclient.WorkerConfig{URL: url, Queues: []string{queue}, Concurrency: concurrency})
	w.Handle("Import", handler, nil)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
}

func TestLimitPerKey(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	put := func(path, body string) {
		_, err := s.api.Do(t.Context(), apiclient.Request{Method: http.MethodPut, Path: path, Body: []byte(body)})
		require.NoError(t, err)
	}
	put("/api/limits/imports-each", `{"queues":["imports"],"per":["key"],"concurrency":2}`)
	put("/api/job-queues/imports", "")

	const keys, each = 3, 12
	c := newCounting()
	block := make(chan struct{})
	work(t, v.AMQPURL(), "imports", 20, func(_ context.Context, job *millraceclient.RawJob) error {
		key := keyOf(job)
		c.begin(key, job.JID)
		defer c.end(key)
		select {
		case <-block:
			time.Sleep(5 * time.Millisecond)
		case <-t.Context().Done():
		}
		if job.RetryCount == 0 && job.JID == "k0-1" {
			return fmt.Errorf("fails once")
		}
		return nil
	})
	client, err := millraceclient.NewClient(millraceclient.ClientConfig{URL: v.AMQPURL()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	var jobs []millraceclient.EnqueueParams
	for n := range each {
		for k := range keys {
			jobs = append(jobs, millraceclient.EnqueueParams{Args: importArgs{n}, Options: millraceclient.EnqueueOptions{
				Queue: "imports", LimitKey: fmt.Sprint("k", k), JID: fmt.Sprintf("k%d-%d", k, n)}})
		}
	}
	_, err = client.EnqueueBulk(t.Context(), jobs)
	require.NoError(t, err)

	brokertest.Eventually(t, func() bool { return c.ran() == 2*keys }, "two of each key run")
	limit, err := apiclient.Get[answer.Limit](t.Context(), s.api, "/api/limits/imports-each", nil)
	require.NoError(t, err)
	require.Equal(t, []int{2 * keys, keys * (each - 2), keys}, []int{limit.Used, limit.Waiting, limit.Full})
	require.Equal(t, answer.LimitPart{Group: limit.Parts[0].Group, Concurrency: 2, Used: 2, Waiting: each - 2}, limit.Parts[0])
	why, err := apiclient.Get[answer.WhyWaits](t.Context(), s.api, "/api/jobs/k1-11/limits", nil)
	require.NoError(t, err)
	require.Equal(t, each-3, why.Ahead)
	require.Len(t, why.Limits, 1)
	require.True(t, why.Limits[0].Blocks)
	require.Len(t, why.Limits[0].HeldBy, 2)

	close(block)
	brokertest.Eventually(t, func() bool { return c.ran() == keys*each }, "all have run")
	for k := range keys {
		require.Equal(t, 2, c.most[fmt.Sprint("k", k)])
	}
	for jid, runs := range c.runs {
		require.Equal(t, 1, runs, jid)
	}
	brokertest.Eventually(t, func() bool {
		slots, err := apiclient.Get[[]answer.Slot](t.Context(), s.api, "/api/slots", nil)
		return err == nil && len(*slots) == 0
	}, "all slots are free")
}

func TestSlotIsFreedByHand(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	settings := beside(v)
	settings.Auth = "none"
	s := start(t, settings)
	s.leads(t)
	do := func(method, path, body string) string {
		answer, err := s.api.Do(t.Context(), apiclient.Request{Method: method, Path: path, Body: []byte(body)})
		require.NoError(t, err)
		return string(answer)
	}
	do(http.MethodPost, "/api/definitions", `{"source":"test","limits":[{"name":"one","classes":["Import"],"concurrency":1}]}`)
	do(http.MethodPut, "/api/job-queues/imports", "")
	for _, jid := range []string{"a", "b"} {
		do(http.MethodPost, "/api/jobs", fmt.Sprintf(`{"jid":%q,"class":"Import","queue":"imports","gate":{}}`, jid))
	}
	var slots []answer.Slot
	brokertest.Eventually(t, func() bool {
		require.NoError(t, json.Unmarshal([]byte(do(http.MethodGet, "/api/slots?limit=one", "")), &slots))
		return len(slots) == 1
	}, "one job holds the slot")
	require.Equal(t, 1, v.QueueLength(t, "queue.imports"))
	do(http.MethodPost, "/api/slots/free", fmt.Sprintf(`{"slot":%q,"reason":"a test"}`, slots[0].Slot))
	brokertest.Eventually(t, func() bool { return v.QueueLength(t, "queue.imports") == 2 }, "the other begins")
	brokertest.Eventually(t, func() bool {
		act := gjson.Get(do(http.MethodGet, "/api/journal?op=freed", ""), "items.0")
		return act.Get("jid").String() == slots[0].JID && act.Get("reason").String() == "a test"
	}, "the audit log has it")
	do(http.MethodPut, "/api/limits/one/pause", "")
	require.Equal(t, "paused", gjson.Get(do(http.MethodGet, "/api/limits/one", ""), "state").String())
	require.Equal(t, "one", gjson.Get(do(http.MethodGet, "/api/journal?op=paused", ""), "items.0.limit").String())
	do(http.MethodDelete, "/api/limits/one", "")
	require.Equal(t, "[]\n", do(http.MethodGet, "/api/limits", ""))
}

func TestLeasedJobKeepsItsSlot(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	l := &leasing{s, t, v}
	_, err := l.post("/api/definitions", `{"source":"test","limits":[{"name":"one","concurrency":1}]}`)
	require.NoError(t, err)
	for _, jid := range []string{"a", "b", "c"} {
		_, err := l.post("/api/jobs", fmt.Sprintf(`{"jid":%q,"class":"Mail","queue":"imports","retry":1,"gate":{}}`, jid))
		require.NoError(t, err)
	}
	brokertest.Eventually(t, func() bool { return v.HasQueue(t, "queue.imports") && v.QueueLength(t, "queue.imports") == 1 }, "one job begins")
	seen := map[string]bool{}
	for _, settle := range []struct{ verb, body string }{{"ack", ""}, {"fail", `{"error_class":"E","kill":true}`}, {"fail", `{"error_class":"E","retry_in":0}`}, {"ack", ""}} {
		job := l.take("imports", patiently)
		require.Zero(t, v.QueueLength(t, "queue.imports"), "the lease holds the slot")
		require.Equal(t, "1", gjson.Get(l.get("/api/slots"), "#").String())
		require.NoError(t, l.settle(job, settle.verb, settle.body))
		seen[job.JID] = true
	}
	require.Len(t, seen, 3)
	brokertest.Eventually(t, func() bool { return l.get("/api/slots") == "[]\n" }, "all slots are free")
}
