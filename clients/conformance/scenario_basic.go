package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

func now() float64 { return wire.Seconds(time.Now()) }

func happy(t *trial) {
	t.serve()
	w := t.worker(settings{Queues: []string{"mail", "default"}, Concurrency: 3, Tag: "happy"}).ready("mail")
	t.usesDriver()
	commands := []map[string]any{
		with(map[string]any{"queue": "mail", "tags": []string{"a"}, "fields": map[string]any{"customer": 7}, "jid": "my-own-jid", "priority": 4}, "Append", "own"),
		with(map[string]any{"queue": "mail", "traceparent": traceparent}, "Trace", "x"),
		{"op": "enqueue_in", "in": 1.5, "class": "Append", "args": []any{"in"}},
		{"op": "enqueue_at", "at": now() - 5, "class": "Append", "args": []any{"at"}},
		enqueue("Args", "x", 1, 2.5, "three é😀", nil, true, []any{}, map[string]any{"four": []any{4}}),
		{"op": "bulk", "class": "Append", "queue": "default", "prefix": "bulk-", "count": 30},
	}
	results := t.produce(commands...)
	require.Equal(t, "my-own-jid", results[0].jid(t))
	for _, r := range results[1:5] {
		r.jid(t)
	}
	require.Len(t, results[5].JIDs, 30)
	for _, text := range []string{"own", "in", "at", "bulk-0", "bulk-29"} {
		w.did("ran", text)
	}
	w.did("trace", traceparent)
	w.did("args", "")
	for _, e := range w.effects() {
		switch {
		case e.what == "args":
			require.JSONEq(t, `[1,2.5,"three é😀",null,true,[],{"four":[4]}]`, e.text)
		case e.text == "in":
			require.Equal(t, results[2].jid(t), e.jid)
			require.Equal(t, 1, e.attempt)
		}
	}
	require.Equal(t, 1, w.count("startup", "-"))
	t.eventually(func() bool { return w.count("ran", "") == 33 }, "each job runs")
	for _, r := range results {
		for _, jid := range r.JIDs {
			m := t.metric(*jid)
			require.Equal(t, "success", m.Get("status").String())
			require.EqualValues(t, 1, m.Get("attempt").Int())
			require.NotEmpty(t, m.Get("job_class").String())
		}
	}
	t.heartbeat("happy", 3)
	w.stop(t, 20*time.Second)
	require.Equal(t, 33, w.count("ran", ""), "each job once")
	require.Equal(t, 1, w.count("shutdown", "-"), "the hook shutdown is called once")
	require.Zero(t, t.ready("mail")+t.ready("default"))
	t.understood()
}

// heartbeat checks the last heartbeat of a worker.
func (s *streams) heartbeat(tag string, concurrency int64) {
	var h wire.Heartbeat
	s.eventually(func() bool {
		for _, body := range s.seen(wire.Heartbeats) {
			if parsed, err := wire.ParseHeartbeat(body); err == nil && parsed.Tag == tag {
				h = parsed
			}
		}
		return h.Identity != ""
	}, "a heartbeat")
	require.Equal(s, fmt.Sprintf("%s:%d:%s", h.Hostname, h.PID, tag), h.Identity)
	require.Equal(s, concurrency, h.Concurrency)
	require.NotEmpty(s, h.Queues)
	require.NotEmpty(s, h.Version)
	require.Equal(s, wire.StateRunning, h.State)
	require.Positive(s, h.RSSKB)
	require.False(s, h.StartedAt.IsZero())
	require.NotEmpty(s, h.Lanes)
}

func producerErrors(t *trial) {
	early := t.produce(enqueue("Append", "no sidecar has been here"))
	require.Equal(t, "Refused", early[0].Error)
	require.Contains(t, early[0].Message, "404")
	require.NoError(t, t.channel(func(ch *amqp.Channel) error {
		if err := ch.ExchangeDeclare(wire.ExchangeDirect, "direct", true, false, false, false, nil); err != nil {
			return err
		}
		args := amqp.Table{"x-max-priority": 10, "x-max-length": 1, "x-overflow": "reject-publish"}
		if _, err := ch.QueueDeclare("queue.full", true, false, false, false, args); err != nil {
			return err
		}
		return ch.QueueBind("queue.full", "full", wire.ExchangeDirect, false, nil)
	}))
	full := map[string]any{"queue": "full"}
	got := t.produce(
		with(full, "Append", "fits"), withTimeout(2, with(full, "Append", "does not")), withTimeout(2, with(map[string]any{"queue": "nowhere"}, "Append", "x")),
		with(map[string]any{"queue": "a\nb"}, "Append", "x"), with(map[string]any{"priority": 11}, "Append", "x"), enqueue("", "x"),
		with(map[string]any{"fields": map[string]any{"retry_count": 1}}, "Append", "x"),
	)
	var errs []string
	for _, r := range got {
		errs = append(errs, r.Error)
	}
	require.Equal(t, []string{"", "Refused", "Refused", "Invalid", "Invalid", "Invalid", "Invalid"}, errs)
	require.Contains(t, got[2].Message, "312")
	require.Equal(t, 1, t.ready("full"))
	t.returned()

	url := t.room.amqpURL
	t.room.amqpURL = "amqp://guest:guest@127.0.0.1:1/"
	r := t.produce(withTimeout(1, with(nil, "Append", "x")))
	t.room.amqpURL = url
	require.Equal(t, "Unreachable", r[0].Error)
}

// returned makes the broker return a job whose queue is declared late.
func (t *trial) returned() {
	h := t.host(t.brokerHost(), nil)
	var p *producer
	t.by(h.addr, func() { p = t.startProducer(t.client, with(map[string]any{"queue": "later"}, "Append", "x")) })
	t.eventually(h.returned.Load, "the broker returns the job")
	t.declare("later")
	require.NoError(t, t.channel(func(ch *amqp.Channel) error {
		return ch.QueueBind("queue.later", "later", wire.ExchangeDirect, false, nil)
	}))
	r := p.results(t)[0]
	require.Empty(t, r.Error, "a job that the broker returned is published again: %s", r.Message)
	require.Equal(t, 1, t.ready("later"))
}

func priority(t *trial) {
	t.declare("first")
	var jobs []amqp.Publishing
	for i := range 10 {
		jobs = append(jobs, job("Append", (i*7)%10, fmt.Sprint((i*7)%10)))
	}
	t.put("first", jobs...)
	t.serve()
	w := t.worker(settings{Queues: []string{"first"}, Concurrency: 1})
	t.eventually(func() bool { return w.count("ran", "") == 10 }, "all run")
	require.Equal(t, "9 8 7 6 5 4 3 2 1 0", w.order())
	w.stop(t, 20*time.Second)
}

// order returns the jobs that ran, in order.
func (w *worker) order() string {
	var texts []string
	for _, e := range w.effects() {
		if e.what == "ran" {
			texts = append(texts, e.text)
		}
	}
	return strings.Join(texts, " ")
}

// moment is how long the jobs of these lanes take. That is longer than a busy broker takes to send
// the next one, so that the lane has a choice.
const moment = 0.1

func lanes(t *trial) {
	t.serve()
	t.declare("slow", "quick", "a", "b", "heavy", "light")
	for queue, n := range map[string]int{"a": 30, "b": 30, "heavy": 60, "light": 60} {
		var jobs []amqp.Publishing
		for i := range n {
			jobs = append(jobs, job("Sleep", 0, fmt.Sprint(queue, "-", i), moment))
		}
		t.put(queue, jobs...)
	}
	t.put("slow", job("Wait", 0, "slow1", 600), job("Wait", 0, "slow2", 600))
	w := t.worker(settings{Lanes: []laneSet{
		{"slow", []string{"slow"}, 1}, {"quick", []string{"quick"}, 2}, {"strict", []string{"a", "b"}, 1},
		{"weighted", map[string]int{"heavy": 3, "light": 1}, 1},
	}}).ready("quick")
	w.did("began", "slow1")
	for i := range 10 {
		t.put("quick", job("Append", 0, fmt.Sprint("quick", i)))
	}
	t.eventually(func() bool { return len(w.ranLike("quick")) == 10 }, "the quick ones run, while a slow one does")
	require.Zero(t, w.count("began", "slow2"), "a slow one waits for the other")
	t.eventually(func() bool { return len(w.ranLike("a-"))+len(w.ranLike("b-")) == 60 }, "the strict lane works its queues off")
	t.eventually(func() bool { return len(w.ranLike("heavy-"))+len(w.ranLike("light-")) == 120 }, "the weighted lane works its queues off")
	early := w.first(30, "a-", "b-")
	require.GreaterOrEqual(t, early, 26, "of the first 30 of a strict lane, so many are of its first queue: %s", w.order())
	// 45 are expected. Fewer than 31, or all 60, come by chance in one of 20,000 runs.
	share := w.first(60, "heavy-", "light-")
	require.Greater(t, share, 30, "of the first 60 of a lane with weights 3 and 1")
	require.Less(t, share, 60, "of the first 60 of a lane with weights 3 and 1")
	for _, slow := range []string{"slow1", "slow2"} {
		w.did("began", slow)
		t.control(map[string]any{"id": slow, "op": "cancel", "identity": "*", "jid": "raw-Wait-" + slow})
		w.did("stopped", slow)
	}
	w.stop(t, 20*time.Second)
}

func (w *worker) ranLike(prefix string) (texts []string) {
	for _, e := range w.effects() {
		if e.what == "ran" && strings.HasPrefix(e.text, prefix) {
			texts = append(texts, e.text)
		}
	}
	return texts
}

// first returns how many of the first n jobs of two kinds are of the first kind.
func (w *worker) first(n int, one, other string) (count int) {
	for _, e := range w.effects() {
		if e.what != "ran" || n == 0 || !strings.HasPrefix(e.text, one) && !strings.HasPrefix(e.text, other) {
			continue
		}
		n--
		if strings.HasPrefix(e.text, one) {
			count++
		}
	}
	return count
}

func clocks(t *trial) {
	t.serve()
	t.declare("default")
	body := func(jid string, more string) amqp.Publishing {
		return amqp.Publishing{Body: fmt.Appendf(nil, `{"jid":%q,"class":"Append","args":[%q]%s}`, jid, jid, more)}
	}
	t.put("default",
		body("ahead", fmt.Sprintf(`,"enqueued_at":%f`, now()+3600)), body("behind", `,"enqueued_at":1.5`),
		body("millis", fmt.Sprintf(`,"enqueued_at":%d`, time.Now().UnixMilli())), body("text", `,"enqueued_at":"yesterday"`),
		body("huge", `,"enqueued_at":1e300`), body("soon", fmt.Sprintf(`,"expires_at":%f`, now()+3600)),
		body("expired", fmt.Sprintf(`,"expires_at":%d`, time.Now().Add(-time.Hour).UnixMilli())))
	w := t.worker(settings{Queues: []string{"default"}})
	for _, jid := range []string{"ahead", "behind", "millis", "text", "huge", "soon"} {
		w.did("ran", jid)
		wait := t.metric(jid).Get("wait_ms")
		require.True(t, wait.Float() >= 0 && wait.Float() <= 1e12, "%s waited %s ms", jid, wait.Raw)
	}
	require.Less(t, t.metric("millis").Get("wait_ms").Float(), 600_000.0)
	require.Equal(t, "expired", gjson.GetBytes(t.record(wire.DeadJobs, "expired"), "reason").String())
	require.Zero(t, w.count("ran", "expired"))
	w.stop(t, 20*time.Second)
}

func large(t *trial) {
	t.serve()
	text := strings.Repeat("0123456789abcdef", 1<<16)
	w := t.worker(settings{Queues: []string{"default"}}).ready("default")
	t.produce(enqueue("Args", "x", text), enqueue("Fail", "large", text))
	w.did("args", "")
	for _, e := range w.effects() {
		if e.what == "args" {
			require.Equal(t, `["`+text+`"]`, strings.ReplaceAll(e.text, " ", ""))
		}
	}
	t.eventually(func() bool { return len(t.seen(wire.Retries)) == 1 }, "the retry is there")
	require.True(t, text == gjson.GetBytes(t.seen(wire.Retries)[0], "job.args.1").String(), "a retry has the whole job")
	w.stop(t, 20*time.Second)
	t.understood()
}

// vectors returns the vectors of a file.
func (t *trial) vectors(file string) []gjson.Result {
	text, err := os.ReadFile("clients/conformance/vectors/" + file)
	require.NoError(t, err)
	return gjson.ParseBytes(text).Array()
}

func hostile(t *trial) {
	t.serve()
	t.declare("hostile")
	want := map[string]string{}
	for i, v := range t.vectors("splice.json") {
		queue := v.Get("queue").String()
		if strings.ContainsAny(queue, `"\`) {
			continue // its name is hostile, which the unit tests check
		}
		// The jobs have the bytes of the case, but other jids and a class that fails.
		swap := strings.NewReplacer(`"class":"A"`, `"class":"Fail"`, `"jid":"j1"`, fmt.Sprintf(`"jid":"h%d"`, i), `"queue":"q"`, `"queue":"hostile"`,
			`"queue" : "q"`, `"queue" : "hostile"`, `"queue":"low"`, `"queue":"hostile"`, `"queue" : "low"`, `"queue" : "hostile"`)
		body, job := swap.Replace(v.Get("body").String()), swap.Replace(v.Get("job").String())
		want[strings.TrimSpace(job)] = v.Get("name").String()
		t.put("hostile", amqp.Publishing{Body: []byte(body)})
	}
	for i, v := range t.vectors("undecodable.json") {
		if !v.Get("decodable").Bool() && v.Get("body").Exists() {
			t.put("hostile", amqp.Publishing{Body: []byte(v.Get("body").String()), MessageId: fmt.Sprint("bad", i)})
		}
	}
	w := t.worker(settings{Queues: []string{"hostile"}})
	t.eventually(func() bool { return t.consumed("hostile") && t.ready("hostile") == 0 }, "everything is taken")
	t.runs(w.program)
	t.put("hostile", job("Append", 0, "still alive"))
	w.did("ran", "still alive")
	t.eventually(func() bool { return len(t.firstRetries()) >= len(want) }, "each of %d fails and is to be retried", len(want))
	for _, record := range t.firstRetries() {
		job := strings.TrimSpace(gjson.GetBytes(record, "job").Raw)
		if _, found := want[job]; !found {
			t.Errorf("a job that was never enqueued comes back: %.300s", job)
		}
		delete(want, job)
	}
	require.Empty(t, want, "jobs that do not come back byte for byte")
	w.stop(t, 20*time.Second)
	require.Zero(t, t.left("hostile"))
	require.Empty(t, t.records(wire.DeadJobs))
}

// firstRetries returns the records of jobs that have failed once. On a busy machine some are due
// and fail again meanwhile.
func (s *streams) firstRetries() (all [][]byte) {
	for _, record := range s.seen(wire.Retries) {
		if gjson.GetBytes(record, "retry_count").Int() == 1 {
			all = append(all, record)
		}
	}
	return all
}
